//! Small models of every kind, made once.

use std::sync::OnceLock;

use dab_core::artifact::info::{OUTPUT_BANDS, numbers_text};
use dab_core::artifact::monitor::set_monitor;
use dab_core::{CovarianceKind, Task};

use crate::specs::{Random, add_locals, add_rests, any, monitors, real, same_bits};

/// Bytes of a small model.
const SMALL: usize = 640;

/// The bytes of each model: the seeds of the corpus, and what a liar starts from.
pub fn models() -> &'static [(String, Vec<u8>)] {
    static MODELS: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let named = real().into_iter().chain(same_bits()).enumerate();
        let mut models: Vec<_> = named.map(|(i, (name, spec))| (format!("{name}-{i}"), spec)).collect();
        let mut random = Random(18);
        for kind in CovarianceKind::ALL {
            // Small ones: the fuzzer gets through more of them.
            let small = std::iter::repeat_with(|| any(&mut random, kind, 1.0));
            let small = small.filter(|spec| spec.to_bytes().is_ok_and(|bytes| bytes.len() < SMALL));
            models.extend(small.take(3).enumerate().map(|(i, s)| (format!("{}-any-{i}", kind.name()), s)));
        }
        for (_, spec) in models.clone().iter_mut().filter(|(_, spec)| spec.channels.is_some()) {
            add_rests(&mut random, spec);
            models.push((format!("rest-{}", models.len()), spec.clone()));
        }
        // Of these some have rests, too.
        for (_, spec) in models.clone().iter_mut().filter(|(_, spec)| spec.channels.is_some()) {
            add_locals(&mut random, spec);
            models.push((format!("local-{}", models.len()), spec.clone()));
        }
        // Bands, where there are predictions that may have one.
        for (_, spec) in &mut models {
            if let Some(decoder) = spec.decoder.as_ref().filter(|decoder| decoder.task == Task::Regression) {
                spec.info.push((OUTPUT_BANDS.into(), numbers_text(&vec![0.5; decoder.outputs])));
            }
        }
        let mut models: Vec<_> =
            models.into_iter().map(|(name, spec)| (name, spec.to_bytes().expect("a model"))).collect();
        for (name, config) in monitors() {
            let (_, small) = models.last().expect("a model");
            models.push((name.into(), set_monitor(small, &config, 0.01, &[]).expect("a monitor")));
        }
        models
    })
}
