//! Uncertainty as a reward: an exploration bonus for reinforcement learning.
//!
//! ```text
//! bonus = w(step) · clip( (u − m) / s, ±c ),   s the running deviation of u, m its mean or 0
//! ```
//!
//! The raw uncertainty of a fresh model drifts by orders of magnitude while it learns; divided by its running
//! deviation it keeps its size. `compute` never changes the statistics and `update` never gives a
//! bonus: evaluation runs must not teach the normaliser, and a batch is computed with one normaliser.

use core::fmt;

use crate::running::Running;
pub use crate::saved::RestoreError;
use crate::saved::{Reader, Saved, Writer, seal};
use crate::scalar::{LARGEST, exp, tame};

/// Bytes of a saved normaliser.
pub const SAVED_BYTES: usize = 40;
/// A deviation below this (nats) is none: all uncertainties were equal.
const SMALLEST_STD: f32 = 1e-8;

/// How the weight of the bonus goes with the step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Schedule {
    /// Always `start`.
    Constant {
        /// The weight.
        start: f32,
    },
    /// From `start` at step 0 in a straight line to `end` at step `steps`, and `end` ever after.
    Linear {
        /// Weight at step 0.
        start: f32,
        /// Weight from step `steps` on.
        end: f32,
        /// Length of the line.
        steps: u64,
    },
    /// `end + (start − end) e^(−step / steps)`.
    Exponential {
        /// Weight at step 0.
        start: f32,
        /// Weight that is approached.
        end: f32,
        /// Steps in which the difference falls to 1/e.
        steps: u64,
    },
}

impl Schedule {
    /// The weight at `step`.
    #[must_use]
    pub fn weight(&self, step: u64) -> f32 {
        let passed = |steps: u64| step as f32 / steps as f32;
        match *self {
            Self::Constant { start } => start,
            Self::Linear { end, steps, .. } if step >= steps => end,
            Self::Linear { start, end, steps } => start + (end - start) * passed(steps),
            Self::Exponential { start, end, steps } => end + (start - end) * exp(-passed(steps)),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let (weights, steps) = match *self {
            Self::Constant { start } => ([start, start], 1),
            Self::Linear { start, end, steps } | Self::Exponential { start, end, steps } => {
                ([start, end], steps)
            }
        };
        for weight in weights {
            // Also false for NaN.
            if !matches!(weight.abs().partial_cmp(&LARGEST), Some(order) if order.is_le()) {
                return Err(ConfigError::Weight { weight });
            }
        }
        if steps == 0 { Err(ConfigError::Steps) } else { Ok(()) }
    }
}

/// How a bonus is made of an uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// The weight.
    pub schedule: Schedule,
    /// Largest magnitude of a normalised uncertainty, in deviations; above 0.
    pub clip: f32,
    /// Whether the running mean is subtracted: typical inputs then give 0, familiar ones less than that.
    pub centered: bool,
    /// Updates before the first bonus, at least 2; until then it is 0.
    pub warmup: u64,
}

/// Why a [`Config`] describes no bonus.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConfigError {
    /// A weight of the schedule is NaN or beyond ±2⁵⁰.
    Weight {
        /// The weight that was given.
        weight: f32,
    },
    /// The schedule has a length of 0 steps.
    Steps,
    /// `clip` is not above 0, is NaN, or beyond 2⁵⁰.
    Clip {
        /// The limit that was given.
        clip: f32,
    },
    /// The warm-up is shorter than the two updates that a deviation needs.
    Warmup {
        /// The updates that were given.
        warmup: u64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Weight { weight } => {
                write!(f, "the schedule has the weight {weight}, allowed are magnitudes up to 2^50")
            }
            Self::Steps => write!(f, "the schedule has 0 steps, it needs at least 1"),
            Self::Clip { clip } => write!(f, "clip is {clip}, allowed are numbers above 0, up to 2^50"),
            Self::Warmup { warmup } => write!(f, "the warm-up has {warmup} updates, it needs at least 2"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// The bonus and its running normaliser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exploration {
    config: Config,
    running: Running,
}

impl Exploration {
    /// A bonus that has seen nothing.
    ///
    /// # Errors
    /// Unless weights are within ±2⁵⁰, `steps` and `clip` above 0 and `warmup` at least 2.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let Config { schedule, clip, warmup, .. } = config;
        schedule.check()?;
        if !(clip > 0.0 && clip <= LARGEST) {
            return Err(ConfigError::Clip { clip });
        }
        if warmup < 2 {
            return Err(ConfigError::Warmup { warmup });
        }
        Ok(Self { config, running: Running::EMPTY })
    }

    /// Teaches the normaliser one uncertainty, nats. One that is not finite is ignored, and so is `f32::MAX`: a memory without
    /// codes and a failed assessment have it, and it would drown all others.
    pub fn update(&mut self, uncertainty: f32) {
        if uncertainty < f32::MAX {
            self.running.push(uncertainty);
        }
    }

    /// The bonus for an uncertainty (nats) at a step of the caller's training. Finite for every argument; an
    /// uncertainty that is not finite gives 0, for a broken model is no discovery.
    #[must_use]
    pub fn compute(&self, uncertainty: f32, step: u64) -> f32 {
        if !uncertainty.is_finite() || self.running.count() < self.config.warmup {
            return 0.0;
        }
        let std = self.running.std();
        let std = if std > SMALLEST_STD { std } else { 1.0 };
        let center = if self.config.centered { self.running.mean() } else { 0.0 };
        let clip = self.config.clip;
        let normal = (tame(uncertainty) - center) / std;
        let normal = if normal > clip { clip } else { normal };
        let normal = if normal < -clip { -clip } else { normal };
        self.config.schedule.weight(step) * normal
    }

    /// The statistics of the updates.
    #[must_use]
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The normaliser as bytes, the same on every machine: tag, checksum, count, mean, m2, range. The
    /// configuration is not in them.
    #[must_use]
    pub fn save(&self) -> [u8; SAVED_BYTES] {
        let mut bytes = [0; SAVED_BYTES];
        Writer::new(&mut bytes).put(self.running.to_bytes());
        seal(&mut bytes, Saved::Normaliser.tag());
        bytes
    }

    /// Continues with a saved normaliser.
    ///
    /// # Errors
    /// When the bytes are damaged or are not one. Nothing changes then.
    pub fn restore(&mut self, bytes: &[u8; SAVED_BYTES]) -> Result<(), RestoreError> {
        let what = Saved::Normaliser;
        let running = Reader::new(bytes, what)?.take().ok_or(RestoreError::NotSaved { what })?;
        self.running = Running::from_bytes(&running).ok_or(RestoreError::Impossible { what })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;
    use crate::artifact::crc::crc32c;
    use proptest::prelude::*;

    const PLAIN: Config =
        Config { schedule: Schedule::Constant { start: 0.5 }, clip: 5.0, centered: true, warmup: 2 };

    #[test]
    fn schedules_begin_and_end_where_they_say() {
        let linear = Schedule::Linear { start: 1.0, end: 0.2, steps: 10 };
        assert_eq!([0, 5, 10, u64::MAX].map(|s| linear.weight(s)), [1.0, 0.6, 0.2, 0.2]);
        let exponential = Schedule::Exponential { start: 1.0, end: 0.0, steps: 100 };
        assert_eq!(exponential.weight(0), 1.0);
        assert!((exponential.weight(100) - libm::expf(-1.0)).abs() < 1e-6);
        assert_eq!(exponential.weight(u64::MAX), 0.0);
        assert_eq!(Schedule::Constant { start: 0.3 }.weight(9), 0.3);
    }

    #[test]
    fn unsound_configurations_are_refused_in_words() {
        let line = |start, end, steps| Schedule::Linear { start, end, steps };
        for (config, words) in [
            (Config { clip: 0.0, ..PLAIN }, "clip is 0, allowed are numbers above 0, up to 2^50"),
            (Config { clip: f32::NAN, ..PLAIN }, "clip is NaN, allowed are numbers above 0, up to 2^50"),
            (Config { warmup: 1, ..PLAIN }, "the warm-up has 1 updates, it needs at least 2"),
            (
                Config { schedule: line(f32::NAN, 0.0, 1), ..PLAIN },
                "the schedule has the weight NaN, allowed are magnitudes up to 2^50",
            ),
            (
                Config { schedule: line(1.0, f32::INFINITY, 1), ..PLAIN },
                "the schedule has the weight inf, allowed are magnitudes up to 2^50",
            ),
            (
                Config { schedule: line(1.0, 0.0, 0), ..PLAIN },
                "the schedule has 0 steps, it needs at least 1",
            ),
        ] {
            assert_eq!(Exploration::new(config).unwrap_err().to_string(), words);
        }
    }

    #[test]
    fn bytes_that_are_no_normaliser_are_refused_in_words() {
        let mut bonus = Exploration::new(PLAIN).unwrap();
        let saved = bonus.save();
        let mut refused = |change: fn(&mut [u8; SAVED_BYTES])| {
            let mut bytes = saved;
            change(&mut bytes);
            bonus.restore(&bytes).unwrap_err().to_string()
        };
        assert_eq!(refused(|b| b[0] = b'x'), "these bytes are not a saved normaliser");
        assert_eq!(
            refused(|b| b[4] ^= 1),
            "the saved normaliser is damaged (checksum 8a9136aa, stored 8a9136ab)",
        );
        // A mean of a quarter of no numbers, with a checksum that fits.
        let wrong = refused(|b| {
            b[23] = 0x3f;
            b[22] = 0xd0;
            let crc = crc32c(&b[8..]).to_le_bytes();
            b[4..8].copy_from_slice(&crc);
        });
        assert_eq!(wrong, "no uncertainties have the statistics of this saved normaliser");
    }

    #[test]
    fn there_is_no_bonus_before_the_warmup_and_none_for_a_broken_model() {
        let mut bonus = Exploration::new(Config { warmup: 3, ..PLAIN }).unwrap();
        for u in [1.0, 2.0] {
            bonus.update(u);
            assert_eq!(bonus.compute(9.0, 0), 0.0);
        }
        bonus.update(3.0);
        assert!(bonus.compute(9.0, 0) > 0.0);
        assert_eq!(bonus.compute(f32::NAN, 0), 0.0);
        assert_eq!(bonus.compute(2.0, 0), 0.0, "a typical input");
    }

    #[test]
    fn equal_uncertainties_are_not_blown_up() {
        let mut bonus = Exploration::new(PLAIN).unwrap();
        (0..10).for_each(|_| bonus.update(4.0));
        assert_eq!(bonus.compute(5.0, 0), 0.5);
        // A deviation up to the smallest counts as none.
        for (u, expected) in [(SMALLEST_STD, 0.5), (2.0 * SMALLEST_STD, 2.5)] {
            let mut bonus = Exploration::new(PLAIN).unwrap();
            bonus.update(u);
            bonus.update(-u);
            assert_eq!((bonus.running().mean(), bonus.running().std()), (0.0, u));
            assert_eq!(bonus.compute(1.0, 0), expected);
        }
    }

    proptest! {
        #[test]
        fn a_bonus_is_finite_clipped_and_monotone(
            seen in prop::collection::vec(prop::num::f32::ANY, 0..30), a: f32, b: f32, step: u64, centered: bool,
        ) {
            let mut bonus = Exploration::new(Config { centered, ..PLAIN }).unwrap();
            seen.iter().for_each(|&u| bonus.update(u));
            let (x, y) = (bonus.compute(a, step), bonus.compute(b, step));
            prop_assert!(x.is_finite() && x.abs() <= 0.5 * 5.0);
            prop_assert!(!(a.is_finite() && b.is_finite() && a <= b) || x <= y);
        }

        #[test]
        fn a_saved_normaliser_continues_bit_for_bit(
            seen in prop::collection::vec(0f32..1e4, 0..30), u in 0f32..1e4, flip in 0usize..SAVED_BYTES * 8,
        ) {
            let mut bonus = Exploration::new(PLAIN).unwrap();
            seen.iter().for_each(|&u| bonus.update(u));
            let mut saved = bonus.save();
            let mut other = Exploration::new(PLAIN).unwrap();
            prop_assert_eq!(other.restore(&saved), Ok(()));
            prop_assert_eq!(other.compute(u, 3).to_bits(), bonus.compute(u, 3).to_bits());
            bonus.update(u);
            other.update(u);
            prop_assert_eq!(other.save(), bonus.save());
            saved[flip / 8] ^= 1 << (flip % 8);
            prop_assert!(other.restore(&saved).is_err());
            prop_assert_eq!(other, bonus, "a refusal changes nothing");
        }
    }
}
