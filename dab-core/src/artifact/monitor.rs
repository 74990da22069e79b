//! The configuration of a monitor, in the artifact itself: `dab monitor tune --into` puts it there.
//!
//! A monitor is tuned for the scores of one model at one length of a tick. With both in one file, nobody can ship one without
//! the other. It stands behind feature bit 3, in the last words of the parameters, and changes no assessment.
//!
//! ```text
//! f32  enter, exit, tick (seconds), alarm, levels (7), p (7)
//! u32  enter_votes, exit_votes, window, reject_votes, min_dwell, timeout, block, keeps
//! ```

#[cfg(feature = "alloc")]
mod write;

use super::checks::Allowed;
use super::error::{ArtifactError, Part};
use super::reader::Parameters;
use crate::model::Model;
use crate::monitor::{Config, ConfigError, Drift, LEVELS};

/// The incompatible-feature bit of a monitor.
pub const MONITOR: u32 = 1 << 3;
/// What follows the schema of a file with a monitor; its key continues the hash of the schema without it.
pub const MONITOR_SCHEMA: &str = " monitor:(enter exit tick alarm levels p:f32 enter_votes exit_votes window reject_votes \
     min_dwell timeout block keeps:u32le)";
/// Words of four bytes that a monitor takes, floats first.
pub const MONITOR_WORDS: usize = FLOATS + 8;
/// Those that are floats.
const FLOATS: usize = 4 + 2 * LEVELS;

/// The parameters without the monitor, and its bytes.
pub(super) fn split(params: &[u8]) -> Result<(&[u8], &[u8]), ArtifactError> {
    let found = params.len() / 4;
    let short = ArtifactError::ParamCount { expected: MONITOR_WORDS, found };
    let rest = found.checked_sub(MONITOR_WORDS).ok_or(short)?;
    params.split_at_checked(4 * rest).ok_or(short)
}

/// The words of a monitor, checked: its floats one by one, then what they say together. Not inlined: the configuration would
/// lie on the reader's stack while everything else is checked.
#[inline(never)]
pub(super) fn values(bytes: &[u8]) -> Result<&[u32; MONITOR_WORDS], ArtifactError> {
    let floats = bytemuck::try_cast_slice(bytes).map_err(|_| ArtifactError::Misaligned)?;
    Parameters::new(floats).next(FLOATS, Part::Monitor, &Allowed::DOMAIN)?;
    let words: &[u32] = bytemuck::try_cast_slice(bytes).map_err(|_| ArtifactError::Misaligned)?;
    let words = words.first_chunk().ok_or(ArtifactError::Misaligned)?;
    let (config, tick) = decode(words);
    let wrong = |field| Err(ArtifactError::Monitor { field });
    match config.check() {
        Ok(()) => {}
        Err(ConfigError::Thresholds { .. }) => return wrong("enter"),
        Err(ConfigError::Window { .. }) => return wrong("window"),
        Err(ConfigError::Votes { .. }) => return wrong("votes"),
        Err(ConfigError::Timeout { .. }) => return wrong("timeout"),
        Err(ConfigError::Drift { .. }) => return wrong("drift"),
    }
    // A channel that is off has one encoding, and `keeps` is a bool.
    let off = config.drift.block == 0 && config.drift != Drift::OFF;
    if off || words.last().is_some_and(|&keeps| keeps > 1) {
        return wrong("drift");
    }
    if tick > 0.0 { Ok(words) } else { wrong("tick") }
}

/// The configuration, and the seconds of a tick.
pub(crate) fn decode(words: &[u32; MONITOR_WORDS]) -> (Config, f32) {
    let [
        enter,
        exit,
        tick,
        alarm,
        levels @ ..,
        enter_votes,
        exit_votes,
        window,
        reject_votes,
        min_dwell,
        timeout,
        block,
        keeps,
    ] = *words;
    let mut drift = Drift { block, alarm: f32::from_bits(alarm), restart: keeps == 0, ..Drift::OFF };
    for (to, &bits) in drift.levels.iter_mut().chain(&mut drift.p_values).zip(&levels) {
        *to = f32::from_bits(bits);
    }
    let config = Config {
        enter: f32::from_bits(enter),
        exit: f32::from_bits(exit),
        enter_votes,
        exit_votes,
        window,
        reject_votes,
        min_dwell,
        timeout,
        drift,
    };
    (config, f32::from_bits(tick))
}

impl Model<'_> {
    /// The monitor that was tuned for this model and lies in its file (`dab monitor tune --into`); `None` in most models.
    /// [`Guard::tuned`](crate::Guard::tuned) starts it.
    #[must_use]
    pub fn monitor_config(&self) -> Option<Config> {
        self.tuned().map(|(config, _)| config)
    }

    /// The seconds of a tick for which that monitor was tuned: with other ticks its false alarms an hour are other ones.
    #[must_use]
    pub fn monitor_tick(&self) -> Option<f32> {
        self.tuned().map(|(_, tick)| tick)
    }

    /// Without the crate's feature no model has one, and the compiler knows it.
    fn tuned(&self) -> Option<(Config, f32)> {
        if cfg!(feature = "monitor") { self.monitor.map(decode) } else { None }
    }
}

#[cfg(feature = "alloc")]
pub use write::set_monitor;
