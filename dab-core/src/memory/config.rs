//! The settings of a memory, and what can be wrong with them and with its arguments.

use core::fmt;

use crate::scalar::in_domain;

/// Largest horizon, 2²³: up to here a count of type f32 is exact.
pub const LARGEST_HORIZON: u32 = 1 << 23;

/// How a memory scores and learns.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// Temperature α of the assignment: above 0. Larger means that only near codes count.
    pub alpha: f32,
    /// An input farther than this (nats) from all codes becomes a new one, while there is a place.
    pub spawn: f32,
    /// A code's variance is at most so many times the input's; at least 1.
    pub widen: f32,
    /// What is left of every count after one observation, above 0; 1 never forgets.
    pub keep: f32,
    /// Largest count, 1 to [`LARGEST_HORIZON`]: how many observations a code averages over.
    pub horizon: u32,
}

impl Config {
    /// One nat, one temperature, no forgetting.
    pub const DEFAULT: Self = Self { alpha: 1.0, spawn: 1.0, widen: 4.0, keep: 1.0, horizon: 1 << 20 };

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self { alpha, spawn, widen, keep, horizon } = *self;
        if !(in_domain(alpha) && alpha > 0.0) {
            return Err(ConfigError::Alpha { alpha });
        }
        if !(in_domain(spawn) && spawn >= 0.0) {
            return Err(ConfigError::Spawn { spawn });
        }
        if !(in_domain(widen) && widen >= 1.0) {
            return Err(ConfigError::Widen { widen });
        }
        if !(in_domain(keep) && keep > 0.0 && keep <= 1.0) {
            return Err(ConfigError::Keep { keep });
        }
        if !(1..=LARGEST_HORIZON).contains(&horizon) {
            return Err(ConfigError::Horizon { horizon });
        }
        Ok(())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a [`Config`] describes no memory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ConfigError {
    /// The temperature is not above 0, or not in the numeric domain.
    Alpha {
        /// The temperature that was given.
        alpha: f32,
    },
    /// The distance of a new code is negative, or not in the numeric domain.
    Spawn {
        /// The distance that was given, nats.
        spawn: f32,
    },
    /// The widening is below 1, or not in the numeric domain.
    Widen {
        /// The factor that was given.
        widen: f32,
    },
    /// What is kept is not above 0, or above 1.
    Keep {
        /// The share that was given.
        keep: f32,
    },
    /// The horizon is 0 or above [`LARGEST_HORIZON`].
    Horizon {
        /// The horizon that was given.
        horizon: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alpha { alpha } => write!(f, "alpha is {alpha}, allowed are numbers from 2^-50 to 2^50"),
            Self::Spawn { spawn } => {
                write!(f, "spawn is {spawn} nats, allowed are 0 and numbers from 2^-50 to 2^50")
            }
            Self::Widen { widen } => write!(f, "widen is {widen}, allowed are numbers from 1 to 2^50"),
            Self::Keep { keep } => write!(f, "keep is {keep}, allowed are numbers above 0, up to 1"),
            Self::Horizon { horizon } => {
                write!(f, "the horizon is {horizon}, allowed are 1 to {LARGEST_HORIZON}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// Why a memory refused a call. Nothing was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum MemoryError {
    /// The number of places or the dimension is 0 or too large.
    Shape {
        /// Places that were asked for.
        codes: usize,
        /// Dimension that was asked for.
        dim: usize,
    },
    /// The storage is too short.
    Storage {
        /// Floats that the memory needs.
        needed: usize,
        /// Floats that were given.
        found: usize,
    },
    /// The input has the wrong number of values.
    Length {
        /// The dimension of the memory.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A value of the input is NaN or infinite.
    NonFinite {
        /// Which one.
        index: usize,
    },
    /// A standard deviation or variance is not above 0, or not finite.
    Width {
        /// Which one.
        index: usize,
    },
    /// Something was to be taught that lies at the end of the numeric domain, ±2⁵⁰: there everything larger looks the same, so its
    /// code would be that of every broken input.
    Saturated,
    /// Something was to be taught, and every place is taken.
    Full {
        /// How many there are.
        places: usize,
    },
    /// There is no taught code of that number.
    Index {
        /// The number.
        index: usize,
        /// How many taught codes there are.
        pinned: usize,
    },
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape { codes, dim } => {
                write!(f, "a memory has 1 to 65536 codes of dimension 1 to 1024, not {codes} of {dim}")
            }
            Self::Storage { needed, found } => {
                write!(f, "the memory needs {needed} floats of storage, there are {found}")
            }
            Self::Length { expected, found } => {
                write!(f, "the memory has dimension {expected}, there are {found} values")
            }
            Self::NonFinite { index } => write!(f, "value {index} of the input is not a finite number"),
            Self::Width { index } => write!(f, "deviation {index} of the input is not above 0 and finite"),
            Self::Saturated => {
                write!(f, "a value is 2^50 or larger, where all inputs look alike: it cannot be taught")
            }
            Self::Full { places } => write!(f, "all {places} places are taken: remove or clear codes first"),
            Self::Index { index, pinned } => {
                write!(f, "there is no taught code {index}, there are {pinned}")
            }
        }
    }
}

impl core::error::Error for MemoryError {}
