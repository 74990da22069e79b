//! Distance Aware Bottleneck inference for microcontrollers: one file in, a verdict out.
//!
//! ```text
//! bytes → checked Model view → features → Gaussian → distances → assignment → Assessment
//! ```
//!
//! No heap, no globals, no `unsafe`, no reachable panic. Weights are read where they lie (flash), scratch
//! memory is the caller's, time depends on the model's shape alone, and every target gives the same f32
//! bits ([`linalg::dot`], [`scalar`]).
//!
//! ```no_run
//! use dab_core::{Model, Verdict};
//!
//! // Flash: `include_bytes!` in an aligned wrapper, or any buffer that starts at a multiple of 4.
//! # static ARTIFACT: &[u8] = &[];
//! let model = Model::from_bytes(ARTIFACT)?;
//! let mut scratch = [0.0; 512]; // at least model.scratch_len()
//! model.self_test(&mut scratch)?; // once, at boot
//!
//! let assessment = model.assess(&[0.1, -0.3, 0.7], &mut scratch)?;
//! if assessment.verdict == Some(Verdict::Unfamiliar) {
//!     // fall back to the safe controller
//! }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Where to look: [`model`] the entry points, [`codebook`] and [`divergence`] the mathematics,
//! [`artifact`] the file, [`calibration`] from nats to a verdict, [`gaussian`] and [`codebook::Codebook`]
//! the fixed-size types for Rust firmware that builds its own codebook, [`monitor`] from a stream of
//! uncertainties to a decision, [`explore`] to a reward.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(target_endian = "big")]
compile_error!("artifacts are little-endian and read in place: big-endian targets are not supported");

pub mod artifact;
pub mod calibration;
pub mod codebook;
pub mod divergence;
pub mod encoder;
pub mod error;
pub mod explore;
pub mod gaussian;
pub mod isa;
pub mod layers;
pub mod linalg;
pub mod model;
pub mod monitor;
mod pass;
pub mod running;
pub mod scalar;

pub use artifact::ArtifactError;
pub use artifact::schema::{CovarianceKind, Task};
pub use calibration::{Rates, Verdict};
pub use codebook::Codebook;
pub use error::{InputError, SelfTestError};
pub use gaussian::Gaussian;
pub use isa::Isa;
pub use layers::Activation;
pub use model::{Assessment, Model, Shape};
