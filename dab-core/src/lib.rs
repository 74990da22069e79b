#![doc = include_str!("../README.md")]
//!
//! # The path of an input
//!
//! ```text
//! bytes → checked Model view → features → Gaussian → distances → assignment → Assessment
//! ```
//!
//! [`model`] has the entry points, [`artifact`] the file and its checks, [`layers`] and [`gaussian`] the way to a
//! Gaussian, [`divergence`] and [`codebook`] the distances. [`memory`] and [`ellipse`] learn where they run. Every target gives the same bits because sums have
//! one order (`linalg/dot.rs`) and no function comes from the platform (`scalar.rs`).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(target_endian = "big")]
compile_error!("artifacts are little-endian and read in place: big-endian targets are not supported");

#[cfg(not(any(feature = "float32", feature = "int8")))]
compile_error!("a model has weights: enable dab-core's feature `float32`, `int8`, or both");

pub mod artifact;
pub mod attribute;
pub mod band;
pub mod calibration;
pub mod channels;
pub mod codebook;
pub mod divergence;
pub mod ellipse;
mod encoder;
pub mod error;
pub mod explore;
pub mod gaussian;
pub mod guard;
pub mod isa;
pub mod layers;
mod linalg;
pub mod memory;
pub mod model;
pub mod monitor;
mod pass;
pub mod random;
mod running;
pub mod saved;
mod scalar;
pub mod slots;
pub mod teach;

pub use artifact::ArtifactError;
pub use artifact::schema::{CovarianceKind, Task};
pub use calibration::{Rates, RatesError, Verdict};
#[cfg(feature = "nalgebra")]
pub use codebook::Codebook;
pub use ellipse::Ellipse;
pub use error::{InputError, SelfTestError};
#[cfg(feature = "nalgebra")]
pub use gaussian::Gaussian;
pub use guard::Guard;
pub use isa::Isa;
pub use layers::Activation;
pub use memory::Memory;
pub use model::{Assessment, Model, Shape};
pub use running::Running;

/// What the tests of other crates and [`aligned_artifact!`] need. Not part of the interface: it may change in any
/// version.
#[doc(hidden)]
pub mod parts {
    pub use crate::artifact::embed::Aligned;
    pub use crate::scalar::{LARGEST, SMALLEST, SOFTPLUS_SHIFT, STD_FLOOR};
}
