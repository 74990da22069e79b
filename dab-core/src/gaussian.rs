//! Gaussians: what an encoder makes of an input, and what a code is.
//!
//! raw head outputs → encoder → `Gaussian` → [`divergence`](crate::divergence).
//!
//! ```text
//! diagonal: variance vᵢ, ln|Σ| = Σ ln vᵢ        full: factor V with Σ = V Vᵀ, ln|Σ| = 2 Σ ln lᵢ
//! ```
//!
//! Surprising: a full covariance is never formed. Both full encoders give a square root V, and the trace
//! tr(P Σ) = ‖R V‖² is a sum of squares, so it can neither cancel nor turn negative.
//!
//! [`GaussianView`] borrows its numbers (sizes known at run time); [`Gaussian`] owns them (sizes known to
//! the compiler). Every kernel takes the view; [`Gaussian::view`] is how the owned one gets there.

use nalgebra::{SMatrix, SVector};

use crate::encoder;
pub use crate::linalg::jacobi::work_len as spectral_work_len;
use crate::linalg::triangle::packed_len;
use crate::scalar;

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
}

/// A Gaussian whose numbers lie elsewhere: in scratch, or in an owned [`Gaussian`].
#[derive(Clone, Copy, Debug)]
pub struct GaussianView<'a> {
    /// Mean μ, one value per latent dimension.
    pub mean: &'a [f32],
    /// Covariance Σ.
    pub spread: Spread<'a>,
    /// ln|Σ|, nats.
    pub log_det: f32,
}

mod sealed {
    pub trait Sealed {}
}

/// The two kinds of covariance that a fixed-size [`Gaussian`] can have: [`Diagonal`] and [`Full`].
pub trait Covariance<const D: usize>: sealed::Sealed {
    /// What a Gaussian stores of its covariance.
    type Factor: Copy + core::fmt::Debug + bytemuck::Pod;
    /// The factor as the kernels read it.
    fn spread(factor: &Self::Factor, lower: bool) -> Spread<'_>;
}

/// Independent dimensions: `D` variances.
#[derive(Clone, Copy, Debug)]
pub struct Diagonal;

/// Full covariance: a `D × D` factor.
#[derive(Clone, Copy, Debug)]
pub struct Full;

impl sealed::Sealed for Diagonal {}
impl sealed::Sealed for Full {}

impl<const D: usize> Covariance<D> for Diagonal {
    type Factor = SVector<f32, D>;

    #[inline(always)]
    fn spread(factor: &Self::Factor, _lower: bool) -> Spread<'_> {
        Spread::Diagonal(factor.as_slice())
    }
}

impl<const D: usize> Covariance<D> for Full {
    // Transposed: nalgebra stores columns one after another, so its column j is our row j.
    type Factor = SMatrix<f32, D, D>;

    #[inline(always)]
    fn spread(factor: &Self::Factor, lower: bool) -> Spread<'_> {
        Spread::Full { factor: factor.as_slice(), lower }
    }
}

/// A Gaussian of compile-time dimension that owns its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Gaussian<const D: usize, S: Covariance<D> = Diagonal> {
    mean: SVector<f32, D>,
    factor: S::Factor,
    lower: bool,
    log_det: f32,
}

impl<const D: usize, S: Covariance<D>> Gaussian<D, S> {
    /// Mean μ.
    #[must_use]
    pub const fn mean(&self) -> &SVector<f32, D> {
        &self.mean
    }

    /// ln|Σ|, nats.
    #[must_use]
    pub const fn log_det(&self) -> f32 {
        self.log_det
    }

    /// The same Gaussian as the kernels read it.
    #[inline(always)]
    #[must_use]
    pub fn view(&self) -> GaussianView<'_> {
        GaussianView {
            mean: self.mean.as_slice(),
            spread: S::spread(&self.factor, self.lower),
            log_det: self.log_det,
        }
    }
}

impl<const D: usize> Gaussian<D, Diagonal> {
    /// From a mean and standard deviations. `None` unless all are in the numeric domain and the
    /// deviations positive.
    #[must_use]
    pub fn new(mean: SVector<f32, D>, std: SVector<f32, D>) -> Option<Self> {
        let sound = mean.iter().chain(&std).all(|&x| scalar::in_domain(x)) && std.iter().all(|&s| s > 0.0);
        let log_det = 2.0 * crate::linalg::dot::sum(std.as_slice(), scalar::ln);
        sound.then_some(Self { mean, factor: std.component_mul(&std), lower: false, log_det })
    }

    /// From `2D` raw head outputs (method.md E1). `None` for another length.
    #[must_use]
    pub fn from_raw(raw: &[f32]) -> Option<Self> {
        let (mean, spread) = raw.split_at_checked(D).filter(|(_, s)| s.len() == D)?;
        let mut factor = SVector::<f32, D>::zeros();
        let log_det = encoder::diagonal::variance_into(spread, factor.as_mut_slice());
        Some(Self { mean: tamed(mean), factor, lower: false, log_det })
    }
}

impl<const D: usize> Gaussian<D, Full> {
    /// From a mean and a covariance matrix, of which the lower triangle is read. `None` when a number
    /// leaves the domain or `cov` is not positive definite.
    #[must_use]
    pub fn new(mean: SVector<f32, D>, cov: SMatrix<f32, D, D>) -> Option<Self> {
        let factor = cov.cholesky()?.unpack().map(scalar::flush);
        let sound = mean.iter().chain(&factor).all(|&x| scalar::in_domain(x))
            && factor.diagonal().iter().all(|&l| l > 0.0);
        let log_det = factor.diagonal().iter().fold(0.0, |sum, &l| sum + 2.0 * scalar::ln(l));
        sound.then_some(Self { mean, factor: factor.transpose(), lower: true, log_det })
    }

    /// From `D + D(D+1)/2` raw head outputs, Cholesky parametrisation (method.md E3). `None` for
    /// another length.
    #[must_use]
    pub fn from_cholesky_raw(raw: &[f32]) -> Option<Self> {
        let (mean, spread) = raw.split_at_checked(D).filter(|(_, s)| s.len() == packed_len(D))?;
        let mut factor = SMatrix::<f32, D, D>::zeros();
        let log_det = encoder::cholesky::factor_into(spread, factor.as_mut_slice(), D);
        Some(Self { mean: tamed(mean), factor, lower: true, log_det })
    }

    /// From `D + D(D+1)/2` raw head outputs, spectral parametrisation (method.md E2); `work` has
    /// [`spectral_work_len`] of `D` floats, contents ignored. `None` for another length of `raw`, or too short a
    /// `work`.
    #[must_use]
    pub fn from_spectral_raw(raw: &[f32], work: &mut [f32]) -> Option<Self> {
        let (mean, spread) = raw.split_at_checked(D).filter(|(_, s)| s.len() == packed_len(D))?;
        let mut factor = SMatrix::<f32, D, D>::zeros();
        let log_det = encoder::spectral::factor_into(spread, factor.as_mut_slice(), work, D)?;
        Some(Self { mean: tamed(mean), factor, lower: false, log_det })
    }

    /// The covariance matrix Σ = V Vᵀ.
    #[must_use]
    pub fn cov(&self) -> SMatrix<f32, D, D> {
        self.factor.transpose() * self.factor
    }
}

fn tamed<const D: usize>(mean: &[f32]) -> SVector<f32, D> {
    let mut tamed = SVector::<f32, D>::zeros();
    for (t, &x) in tamed.iter_mut().zip(mean) {
        *t = scalar::tame(x);
    }
    tamed
}
