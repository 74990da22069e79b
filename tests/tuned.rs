//! A monitor in the file of its model: it comes back as it was put in, changes no assessment, and damage is refused by name.

use dab_core::artifact::info::read_info;
use dab_core::artifact::monitor::set_monitor;
use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::artifact::schema::{CovarianceKind, MONITOR, MONITOR_WORDS};
use dab_core::artifact::taught::add_taught;
use dab_core::artifact::{AlignedBytes, ArtifactError as E, Part};
use dab_core::codebook::{CodebookView, PrecisionLayout};
use dab_core::guard::Guard;
use dab_core::monitor::{Config, Drift, MAX_WINDOW};
use dab_tests::patch::{Parts, seal, word};
use dab_tests::specs::{Random, any, monitors, same_bits, views};

const TICK: f32 = 0.001;

fn model() -> Vec<u8> {
    views().to_bytes().expect("a model")
}

/// The monitor of a file, and its tick.
fn found(bytes: &[u8]) -> Option<(Config, f32)> {
    let bytes = AlignedBytes::from(bytes);
    let model = bytes.model().expect("a model");
    assert_eq!(Guard::tuned(&model).map(|g| *g.monitor().config()), model.monitor_config());
    model.monitor_config().zip(model.monitor_tick())
}

#[test]
fn what_is_put_in_comes_back_and_no_assessment_changes() {
    let mut random = Random(15);
    let info = [("monitor".to_owned(), "a stream".to_owned())];
    for round in 0..60 {
        let kind = random.pick(&CovarianceKind::ALL);
        let spec = any(&mut random, kind, 1.0);
        let before = spec.to_bytes().expect("a model");
        assert_eq!(found(&before), None);
        for (_, config) in monitors() {
            let after = set_monitor(&before, &config, TICK, &info).expect("a monitor");
            assert_eq!(found(&after), Some((config, TICK)), "round {round}");
            assert_eq!(read_info(&after), Ok(info.to_vec()));
            assert_eq!(after[8..12], [1, 0, 2, 0], "format 1.2");
            assert_eq!(word(&after, 16), word(&before, 16) | MONITOR);
            let (a, b) = (AlignedBytes::from(&*before), AlignedBytes::from(&*after));
            let (a, b) = (a.model().expect("a model"), b.model().expect("a model"));
            let mut scratch = vec![0.0; a.scratch_len()];
            assert_eq!((b.scratch_len(), b.self_test(&mut scratch)), (scratch.len(), Ok(())));
            for _ in 0..5 {
                let x = random.floats(spec.inputs, 3.0);
                assert_eq!(a.assess(&x, &mut scratch), b.assess(&x, &mut scratch));
            }
        }
    }
}

/// The file is the one encoding of its contents: a second monitor takes the place of the first, byte for byte.
#[test]
fn a_monitor_is_replaced_and_goes_with_what_is_taught_and_with_bytes() {
    let [(_, plain), (_, whole)] = monitors();
    let before = model();
    let first = set_monitor(&before, &plain, 1.0, &[]).expect("a monitor");
    let second = set_monitor(&first, &whole, TICK, &[]).expect("a monitor");
    assert_eq!(second, set_monitor(&before, &whole, TICK, &[]).expect("a monitor"));
    assert_eq!(second.len(), set_monitor(&before, &plain, 1.0, &[]).expect("a monitor").len());

    let bytes = AlignedBytes::from(&*before);
    let dim = bytes.model().expect("a model").shape().dim;
    let (means, ones) = (vec![0.25; dim], vec![1.0; dim]);
    let codes = CodebookView {
        dim,
        means: &means,
        precisions: &ones,
        layout: PrecisionLayout::Diagonal,
        log_dets: &[0.0],
        priors: &[3.0],
        alpha: 1.0,
    };
    // In either order, and twice: the same file.
    let teach = |bytes: &[u8]| add_taught(bytes, &codes, &[]).expect("taught codes");
    let tune = |bytes: &[u8]| set_monitor(bytes, &whole, TICK, &[]).expect("a monitor");
    let both = teach(&tune(&before));
    assert_eq!(both, tune(&teach(&before)));
    assert_eq!(teach(&both), tune(&teach(&teach(&before))));
    assert_eq!(found(&both), Some((whole, TICK)));
    assert_eq!(Parts::of(&both).join().as_slice(), both, "the layout of the tests is the writer's");

    let small = quantise(&both, &HeldOut::default()).expect("bytes");
    assert_eq!(found(&small), Some((whole, TICK)), "weights of one byte keep the monitor");
    let aligned = AlignedBytes::from(&*small);
    assert_eq!(aligned.model().expect("a model").taught().map(CodebookView::len), Some(1));
}

#[test]
fn numbers_that_are_no_monitor_are_refused_with_their_name() {
    let [(_, plain), (_, whole)] = monitors();
    let refused = |config: &Config, at: usize, bits: u32| {
        let mut bytes = set_monitor(&model(), config, TICK, &[]).expect("a monitor");
        let place = word(&bytes, 40) as usize - 4 * (MONITOR_WORDS - at);
        bytes[place..place + 4].copy_from_slice(&bits.to_le_bytes());
        seal(&mut bytes);
        AlignedBytes::from(&*bytes).model().err()
    };
    let float = |at: usize, x: f32| refused(&whole, at, x.to_bits());
    for at in 0..18 {
        assert_eq!(float(at, f32::NAN), Some(E::NonFinite { part: Part::Monitor, index: at }));
        for wrong in [-0.0, 1e-30, 1e30] {
            assert_eq!(float(at, wrong), Some(E::OutOfRange { part: Part::Monitor, index: at }), "{wrong}");
        }
    }
    let monitor = |field| Some(E::Monitor { field });
    assert_eq!(float(0, 1.0), monitor("enter"), "enter below exit");
    assert_eq!(refused(&whole, 20, 0), monitor("window"));
    assert_eq!(refused(&whole, 20, MAX_WINDOW + 1), monitor("window"));
    for (at, votes) in [(18, 0), (18, 17), (19, 0), (19, 17), (21, 17)] {
        assert_eq!(refused(&whole, at, votes), monitor("votes"), "{at} {votes}");
    }
    assert_eq!(refused(&whole, 23, 1 << 31), monitor("timeout"));
    assert_eq!(refused(&whole, 22, u32::MAX), None, "any dwell");
    for (at, wrong) in [(3, 0.0), (3, 20_000.0), (5, 0.5), (12, 0.9), (17, 0.0)] {
        assert_eq!(float(at, wrong), monitor("drift"), "{at} {wrong}");
    }
    assert_eq!(refused(&whole, 24, (1 << 30) + 1), monitor("drift"));
    assert_eq!(refused(&whole, 25, 2), monitor("drift"));
    // A channel that is off has one encoding.
    for (at, bits) in [(3, 1f32.to_bits()), (4, 1f32.to_bits()), (11, 0.5f32.to_bits()), (25, 1)] {
        assert_eq!(refused(&plain, at, bits), monitor("drift"), "{at}");
    }
    for tick in [0.0, -1.0] {
        assert_eq!(float(2, tick), monitor("tick"), "{tick}");
    }
    let words = E::Monitor { field: "window" }.to_string();
    assert_eq!(words, "the monitor of the artifact cannot be: its window is out of range");
    // A writer refuses what a reader would.
    let wrong = Config { window: 0, ..whole };
    assert_eq!(set_monitor(&model(), &wrong, TICK, &[]).err(), monitor("window"));
    let wrong = Config { enter: 1e20, ..whole };
    let out = E::OutOfRange { part: Part::Monitor, index: 0 };
    assert_eq!(set_monitor(&model(), &wrong, TICK, &[]).err(), Some(out));
    // What does not show in a file is not in it: −0, and the table of a channel that is off.
    let dirty = Config { exit: -0.0, drift: Drift { alarm: 3.0, ..Drift::OFF }, ..plain };
    let clean = Config { exit: 0.0, ..plain };
    assert_eq!(set_monitor(&model(), &dirty, TICK, &[]), set_monitor(&model(), &clean, TICK, &[]));
}

#[test]
fn the_bit_and_the_words_belong_together() {
    let [_, (_, whole)] = monitors();
    let bytes = set_monitor(&model(), &whole, TICK, &[]).expect("a monitor");
    // Without the bit the schema is another one; with the schema, the parameters are too many.
    let mut parts = Parts::of(&bytes);
    parts.monitor = false;
    let count = parts.params.len();
    let expected = count - MONITOR_WORDS;
    assert_eq!(parts.join().model().err(), Some(E::ParamCount { expected, found: count }));
    // With the bit and no room for it.
    for (_, spec) in same_bits() {
        let mut parts = Parts::of(&spec.to_bytes().expect("a model"));
        let expected = parts.params.len();
        parts.monitor = true;
        let short = parts.join().model().err();
        assert_eq!(short, Some(E::ParamCount { expected, found: expected - MONITOR_WORDS }));
        parts.params.truncate(MONITOR_WORDS - 1);
        let few = E::ParamCount { expected: MONITOR_WORDS, found: MONITOR_WORDS - 1 };
        assert_eq!(parts.join().model().err(), Some(few));
    }
}
