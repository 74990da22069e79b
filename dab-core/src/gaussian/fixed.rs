//! Gaussians of a size that the compiler knows, which own their numbers (feature `nalgebra`).

use nalgebra::{SMatrix, SVector};

use super::{GaussianView, Spread};
use crate::encoder;
use crate::linalg::triangle::packed_len;
use crate::scalar;

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
    /// [`spectral_work_len`](super::spectral_work_len) of `D` floats, contents ignored. `None` for another length of `raw`, or too short a
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gaussian_outside_of_the_numeric_domain_is_none() {
        let new = |mean: f32, variance: f32| {
            Gaussian::<1, Full>::new(SVector::<f32, 1>::new(mean), SMatrix::<f32, 1, 1>::new(variance))
        };
        let largest = (1u64 << 50) as f32;
        let smallest = 1.0 / largest;
        assert!(new(largest, 1.0).is_some() && new(2.0 * largest, 1.0).is_none());
        // Deviations of 2^-50 and of 2^-51, which is rounded to 0.
        assert!(new(0.0, smallest * smallest).is_some() && new(0.0, smallest * smallest / 4.0).is_none());
    }
}
