//! Codebooks of a size that the compiler knows, which own their numbers (feature `nalgebra`).

use core::fmt;

use heapless::Vec;
use nalgebra::SVector;

use super::{CodebookView, Expected, Layout, PrecisionLayout};
use crate::gaussian::{Covariance, Diagonal, Full, Gaussian, Spread};
use crate::linalg::dot::take;
use crate::scalar::{flush, in_domain};

/// Why a code was not added to a [`Codebook`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PushError {
    /// All `K` places are taken.
    Full,
    /// The prior is negative, above 1, or not in the numeric domain.
    Prior,
    /// The inverse of the covariance leaves the numeric domain.
    Precision,
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the codebook is full",
            Self::Prior => "the prior is not 0 or a number from 2^-50 to 1",
            Self::Precision => {
                "the code is too narrow or too wide: its precision must stay within 2^-50 and 2^50"
            }
        })
    }
}

impl core::error::Error for PushError {}

/// Why there is no [`Codebook`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CodebookError {
    /// The temperature is negative or not in the numeric domain.
    Alpha {
        /// The temperature that was given.
        alpha: f32,
    },
}

impl fmt::Display for CodebookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alpha { alpha } => {
                write!(f, "alpha is {alpha}, allowed are 0 and numbers from 2^-50 to 2^50")
            }
        }
    }
}

impl core::error::Error for CodebookError {}

/// Kinds of covariance that codes can have; what a code stores of its precision.
pub trait CodeCovariance<const D: usize>: Covariance<D> {
    /// How precisions of this kind lie in memory.
    const LAYOUT: PrecisionLayout;
    /// The precision of a code with that spread, `None` when it leaves the numeric domain.
    fn precision(spread: Spread<'_>) -> Option<Self::Factor>;
}

impl<const D: usize> CodeCovariance<D> for Diagonal {
    const LAYOUT: PrecisionLayout = PrecisionLayout::Diagonal;

    fn precision(spread: Spread<'_>) -> Option<Self::Factor> {
        let Spread::Diagonal(variance) = spread else { return None };
        let mut precision = SVector::<f32, D>::zeros();
        for (p, v) in precision.iter_mut().zip(variance) {
            *p = 1.0 / v;
        }
        precision.iter().all(|&p| in_domain(p)).then_some(precision)
    }
}

impl<const D: usize> CodeCovariance<D> for Full {
    const LAYOUT: PrecisionLayout = PrecisionLayout::Full(Layout::Square);

    fn precision(spread: Spread<'_>) -> Option<Self::Factor> {
        let Spread::Full { factor, lower } = spread else { return None };
        let rows = Self::Factor::from_column_slice(factor.get(..D * D)?);
        let lower = if lower { rows.transpose() } else { (rows.transpose() * rows).cholesky()?.unpack() };
        let inverse = lower.solve_lower_triangular(&Self::Factor::identity())?.map(flush);
        let sound = inverse.iter().all(|&p| in_domain(p)) && inverse.diagonal().iter().all(|&p| p > 0.0);
        sound.then(|| inverse.transpose())
    }
}

/// A codebook of up to `K` codes of dimension `D` that owns its numbers.
///
/// ```
/// use dab_core::codebook::Codebook;
/// use dab_core::gaussian::{Diagonal, Gaussian};
/// use nalgebra::Vector2;
///
/// let mut codebook = Codebook::<4, 2>::new(1.0).unwrap();
/// for mean in [Vector2::new(-1.0, 0.0), Vector2::new(1.0, 0.0)] {
///     codebook.push(&Gaussian::<2, Diagonal>::new(mean, Vector2::new(0.5, 0.5)).unwrap(), 0.5).unwrap();
/// }
/// let here = Gaussian::<2, Diagonal>::new(Vector2::new(1.1, 0.1), Vector2::new(0.4, 0.4)).unwrap();
/// let far = Gaussian::<2, Diagonal>::new(Vector2::new(1.1, 9.0), Vector2::new(0.4, 0.4)).unwrap();
/// assert_eq!(codebook.assess(&here).nearest, 1);
/// assert!(codebook.assess(&far).uncertainty > 10.0 * codebook.assess(&here).uncertainty);
/// ```
#[derive(Clone, Debug)]
pub struct Codebook<const K: usize, const D: usize, S: CodeCovariance<D> = Diagonal> {
    alpha: f32,
    means: Vec<SVector<f32, D>, K>,
    precisions: Vec<S::Factor, K>,
    log_dets: Vec<f32, K>,
    priors: Vec<f32, K>,
}

impl<const K: usize, const D: usize, S: CodeCovariance<D>> Codebook<K, D, S> {
    /// An empty codebook of temperature `alpha`.
    ///
    /// # Errors
    /// When the temperature is negative or not in the numeric domain.
    pub const fn new(alpha: f32) -> Result<Self, CodebookError> {
        if !(in_domain(alpha) && alpha >= 0.0) {
            return Err(CodebookError::Alpha { alpha });
        }
        Ok(Self {
            alpha,
            means: Vec::new(),
            precisions: Vec::new(),
            log_dets: Vec::new(),
            priors: Vec::new(),
        })
    }

    /// Adds a code. Priors need not sum to 1: the assignment is normalised by itself.
    ///
    /// # Errors
    /// When the codebook is full, the prior is not a probability, or the code is too narrow or too wide.
    pub fn push(&mut self, code: &Gaussian<D, S>, prior: f32) -> Result<(), PushError> {
        if self.priors.is_full() {
            return Err(PushError::Full);
        }
        if !(in_domain(prior) && (0.0..=1.0).contains(&prior)) {
            return Err(PushError::Prior);
        }
        let precision = S::precision(code.view().spread).ok_or(PushError::Precision)?;
        // All four have the same length and there is room: none of these can fail.
        let _ = self.means.push(*code.mean());
        let _ = self.precisions.push(precision);
        let _ = self.log_dets.push(code.log_det());
        let _ = self.priors.push(prior);
        Ok(())
    }

    /// The same codebook as the kernels read it.
    #[must_use]
    pub fn view(&self) -> CodebookView<'_> {
        CodebookView {
            dim: D,
            alpha: self.alpha,
            means: bytemuck::try_cast_slice(&self.means).unwrap_or(&[]),
            precisions: bytemuck::try_cast_slice(&self.precisions).unwrap_or(&[]),
            layout: S::LAYOUT,
            log_dets: &self.log_dets,
            priors: &self.priors,
        }
    }

    /// Distance of `p` from every code, nats; entries beyond the number of codes are 0.
    #[must_use]
    pub fn distances(&self, p: &Gaussian<D, S>) -> [f32; K] {
        let mut distances = [0.0; K];
        self.view().distances_into(&p.view(), &mut distances);
        distances
    }

    /// Uncertainty of `p`, nats, and the code that is nearest to it.
    #[must_use]
    pub fn assess(&self, p: &Gaussian<D, S>) -> Expected {
        let distances = self.distances(p);
        let (used, _) = take(&distances, self.priors.len());
        self.view().expected_distance(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Matrix2;

    const LARGEST: f32 = (1u64 << 50) as f32;

    fn precision(factor: [f32; 4], lower: bool) -> Option<Matrix2<f32>> {
        <Full as CodeCovariance<2>>::precision(Spread::Full { factor: &factor, lower })
    }

    #[test]
    fn the_precision_of_any_root_is_the_inverse_of_its_square() {
        for (factor, lower) in [([2.0, 1.0, 1.0, 3.0], false), ([2.0, 0.0, 1.0, 3.0], true)] {
            let root = Matrix2::from_row_slice(&factor);
            let found = precision(factor, lower).expect("a precision");
            let identity = (found * found.transpose()) * (root * root.transpose());
            assert!((identity - Matrix2::identity()).abs().max() < 1e-5, "{identity}");
        }
    }

    #[test]
    fn a_precision_outside_of_the_numeric_domain_is_none() {
        // 1 / (sqrt(2) 2^50) is rounded to 0.
        assert!(precision([LARGEST, LARGEST, -LARGEST, LARGEST], false).is_none());
        // The other corner is 2^80.
        let small = 1.0 / (1u64 << 40) as f32;
        assert!(precision([small, 0.0, 1.0, small], true).is_none());
        assert!(precision([small, 0.0, small, small], true).is_some());
    }
}
