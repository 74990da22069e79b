//! What can be wrong with the arguments of a call, and with a self-test.
//!
//! Exhaustive: C has a number for every one, and the compiler misses none.

use core::fmt;

/// Why an input was not assessed. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum InputError {
    /// The input has the wrong number of values.
    Length {
        /// What the model takes.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A value of the input is NaN or infinite.
    NonFinite {
        /// Which one.
        index: usize,
    },
    /// The scratch memory is too short.
    Scratch {
        /// Floats that the model needs.
        needed: usize,
        /// Floats that were given.
        found: usize,
    },
    /// Memory for results has the wrong number of values.
    OutputLength {
        /// What the model gives.
        expected: usize,
        /// What there is room for.
        found: usize,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { expected, found } => {
                write!(f, "the model takes {expected} values, the input has {found}")
            }
            Self::NonFinite { index } => write!(f, "value {index} of the input is not a finite number"),
            Self::Scratch { needed, found } => {
                write!(f, "the model needs {needed} floats of scratch, there are {found}")
            }
            Self::OutputLength { expected, found } => {
                write!(f, "the model gives {expected} values, there is room for {found}")
            }
        }
    }
}

impl core::error::Error for InputError {}

/// Why a self-test failed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SelfTestError {
    /// A known-answer vector gave another uncertainty than recorded.
    Uncertainty {
        /// Which vector.
        vector: usize,
        /// The recorded uncertainty.
        expected: f32,
        /// The one found here.
        found: f32,
    },
    /// The uncertainties agree, but the bits of some distance or output do not.
    Digest {
        /// The recorded digest.
        expected: u32,
        /// The one found here.
        found: u32,
    },
    /// A vector could not be assessed.
    Input(InputError),
}

impl fmt::Display for SelfTestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Uncertainty { vector, expected, found } => write!(
                f,
                "known-answer vector {vector} gives {found} ({:08x}), recorded is {expected} ({:08x})",
                found.to_bits(),
                expected.to_bits()
            ),
            Self::Digest { expected, found } => {
                write!(f, "the known answers have digest {found:08x}, recorded is {expected:08x}")
            }
            Self::Input(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for SelfTestError {}
