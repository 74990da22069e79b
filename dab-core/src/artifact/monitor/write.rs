//! A file with a monitor from one without, on the host.

use alloc::string::String;
use alloc::vec::Vec;

use super::{MONITOR, MONITOR_WORDS, split};
use crate::artifact::aligned::AlignedBytes;
use crate::artifact::error::{ArtifactError, Part};
use crate::artifact::reader::sections;
use crate::artifact::taught::seal;
use crate::monitor::{Config, Drift};
use crate::scalar::{LARGEST, SMALLEST};

/// A model with this monitor in its file, whose ticks are `tick` seconds long, in place of the one that it had; and with
/// `info` in place of its info. Nothing else changes: every assessment keeps its bits.
///
/// # Errors
/// When `artifact` is no model, or the configuration describes no monitor. A magnitude above 2⁵⁰ is out of range, and one below
/// 2⁻⁵⁰ becomes 0, as everywhere in a file.
pub fn set_monitor(
    artifact: &[u8],
    config: &Config,
    tick: f32,
    info: &[(String, String)],
) -> Result<Vec<u8>, ArtifactError> {
    let bytes = AlignedBytes::from(artifact);
    bytes.model()?;
    let parts = sections(bytes.as_slice())?;
    let mut params =
        if parts.features & MONITOR != 0 { split(parts.params)?.0 } else { parts.params }.to_vec();
    for word in words(config, tick)? {
        params.extend_from_slice(&word.to_le_bytes());
    }
    let info = postcard::to_allocvec(info).map_err(|_| ArtifactError::Info)?;
    let file = seal(bytes.as_slice(), parts.meta, &params, &info, parts.features | MONITOR);
    file.model()?;
    Ok(file.as_slice().into())
}

/// The words of a monitor, each number in the one form that a file has for it.
fn words(config: &Config, tick: f32) -> Result<[u32; MONITOR_WORDS], ArtifactError> {
    let drift = if config.drift.block == 0 { Drift::OFF } else { config.drift };
    let floats = [config.enter, config.exit, tick, drift.alarm].into_iter();
    let floats = floats.chain(drift.levels).chain(drift.p_values);
    let numbers = [
        config.enter_votes,
        config.exit_votes,
        config.window,
        config.reject_votes,
        config.min_dwell,
        config.timeout,
        drift.block,
        u32::from(!drift.restart),
    ];
    let mut words = [0; MONITOR_WORDS];
    for (index, (to, x)) in words.iter_mut().zip(floats).enumerate() {
        if x.is_nan() || x.abs() > LARGEST {
            return Err(ArtifactError::OutOfRange { part: Part::Monitor, index });
        }
        *to = if x.abs() < SMALLEST { 0 } else { x.to_bits() };
    }
    for (to, number) in words.iter_mut().rev().zip(numbers.iter().rev()) {
        *to = *number;
    }
    Ok(words)
}
