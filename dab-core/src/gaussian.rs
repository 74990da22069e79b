//! Gaussians: what an encoder makes of an input, and what a code is.
//!
//! raw head outputs → encoder → `Gaussian` → [`divergence`](crate::divergence).
//!
//! ```text
//! diagonal: variance vᵢ, ln|Σ| = Σ ln vᵢ        full: factor V with Σ = V Vᵀ, ln|Σ| = 2 Σ ln lᵢ
//! constant: Σ = I, ln|Σ| = 0
//! ```
//!
//! A full covariance is never formed. Both full encoders give a square root V, and the trace
//! tr(P Σ) = ‖R V‖² is a sum of squares, so it can neither cancel nor turn negative.
//!
//! [`GaussianView`] borrows its numbers (sizes known at run time). `Gaussian` (feature `nalgebra`) owns them (sizes
//! known to the compiler). Every kernel takes the view; `Gaussian::view` is how the owned one gets there.

#[cfg(feature = "nalgebra")]
mod fixed;

#[cfg(feature = "nalgebra")]
pub use fixed::{Covariance, Diagonal, Full, Gaussian};

pub use crate::linalg::jacobi::work_len as spectral_work_len;

/// The spread of a borrowed Gaussian.
#[derive(Clone, Copy, Debug)]
pub enum Spread<'a> {
    /// One variance per dimension.
    Diagonal(&'a [f32]),
    /// Row-major `d × d` factor V of Σ = V Vᵀ.
    Full {
        /// The factor's rows.
        factor: &'a [f32],
        /// Whether V is lower-triangular (Cholesky): what stands above the diagonal is zero.
        lower: bool,
    },
    /// The identity: a constant covariance, whose scale is in the head.
    Identity,
}

/// A Gaussian whose numbers lie elsewhere: in scratch, or in an owned `Gaussian`.
#[derive(Clone, Copy, Debug)]
pub struct GaussianView<'a> {
    /// Mean μ, one value per latent dimension.
    pub mean: &'a [f32],
    /// Covariance Σ.
    pub spread: Spread<'a>,
    /// ln|Σ|, nats.
    pub log_det: f32,
}
