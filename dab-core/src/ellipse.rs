//! One ellipse around all that was seen: novelty as a Mahalanobis distance from the origin.
//!
//! ```text
//! C = L Lᵀ, at first ridge · I;   b = ‖L⁻¹ φ‖² = φᵀ C⁻¹ φ;   learn: C ← C + φ φᵀ
//! ```
//!
//! b falls for directions that were seen often; `½ ln(1 + b)` is what an observation tells about a linear model of
//! φ, in nats. It is a memory of one code at 0 with a full covariance, for features that are spread around 0 (a random
//! encoder's). L is updated directly, by rotations: after 10⁶ updates of dimension 32 in f32 an updated inverse is off
//! by most of its value, L by a hundredth.
//!
//! Each update rounds L by up to 2⁻²⁴ of its size. That is nothing along directions that were seen; along one that was not, L
//! should stay √ridge. There b is right to 1 % while the lengths of all learned features add up to at most 2¹⁶ √ridge: 65,536
//! features of length 1 with a ridge of 1. Beyond, b may be far too small there, as if the direction were known; after one φ
//! with coordinates of 2³⁰ it was 4 for 2. Scale features, choose a larger ridge, or clear the ellipse in time.

use core::fmt;

use crate::linalg::dot::dot;
use crate::linalg::triangle::{Layout, Triangle, packed_len};
use crate::scalar::{flush, in_domain, ln, saturate, sqrt};

/// Largest magnitude of a feature, 2³⁰; larger ones are saturated, so that L stays finite for ever.
const LARGEST_FEATURE: f32 = (1u64 << 30) as f32;
/// Largest diagonal entry of L, 2⁶⁰.
const LARGEST_DIAGONAL: f32 = (1u64 << 60) as f32;

/// Why there is no ellipse, or why it refused a call. Nothing was learned.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum EllipseError {
    /// The ridge is not from 2⁻⁵⁰ to 2⁵⁰.
    Ridge {
        /// The ridge that was given.
        ridge: f32,
    },
    /// The storage is too short, or the dimension is 0.
    Storage {
        /// Floats that the ellipse needs.
        needed: usize,
        /// Floats that were given.
        found: usize,
    },
    /// The features have the wrong number of values.
    Length {
        /// The dimension of the ellipse.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A feature is NaN or infinite.
    NonFinite {
        /// Which one.
        index: usize,
    },
}

impl fmt::Display for EllipseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ridge { ridge } => {
                write!(f, "the ridge is {ridge}, allowed are numbers from 2^-50 to 2^50")
            }
            Self::Storage { needed, found } => {
                write!(f, "the ellipse needs {needed} floats of storage, there are {found}")
            }
            Self::Length { expected, found } => {
                write!(f, "the ellipse has dimension {expected}, there are {found} values")
            }
            Self::NonFinite { index } => write!(f, "feature {index} is not a finite number"),
        }
    }
}

impl core::error::Error for EllipseError {}

/// Floats of storage for an ellipse of dimension `dim`: a triangle, and one vector of features.
#[must_use]
pub const fn storage_len(dim: usize) -> usize {
    packed_len(dim) + dim
}

/// An ellipse whose numbers lie in storage of the caller.
#[derive(Debug)]
pub struct EllipseView<'a> {
    ridge: f32,
    layout: Layout,
    factor: &'a mut [f32],
    work: &'a mut [f32],
}

impl<'a> EllipseView<'a> {
    /// The ellipse that lies in `storage`; [`EllipseView::clear`] begins a new one there.
    ///
    /// # Errors
    /// When the ridge is out of its range or the storage is shorter than [`storage_len`].
    pub fn new(ridge: f32, dim: usize, storage: &'a mut [f32]) -> Result<Self, EllipseError> {
        if !(in_domain(ridge) && ridge > 0.0) {
            return Err(EllipseError::Ridge { ridge });
        }
        let short = EllipseError::Storage { needed: storage_len(dim), found: storage.len() };
        let (factor, rest) = storage.split_at_mut_checked(packed_len(dim)).ok_or(short)?;
        let work = rest.get_mut(..dim).ok_or(short)?;
        if dim == 0 {
            return Err(short);
        }
        Ok(Self { ridge, layout: Layout::Packed, factor, work })
    }

    /// The dimension.
    #[must_use]
    pub const fn dim(&self) -> usize {
        self.work.len()
    }

    /// Begins anew: nothing was seen.
    pub fn clear(&mut self) {
        self.factor.fill(0.0);
        let first = sqrt(self.ridge);
        for i in 0..self.work.len() {
            if let Some(l) = self.at(i, i) {
                *l = first;
            }
        }
    }

    /// The factor L.
    #[must_use]
    pub fn factor(&self) -> Triangle<'_> {
        Triangle::new(self.factor, self.work.len(), self.layout)
    }

    /// `b = φᵀ C⁻¹ φ`, at least 0 and finite. Nothing is learned. `d²/2` multiply-adds.
    ///
    /// # Errors
    /// When the length is not the dimension, or a value is not finite.
    pub fn assess(&mut self, features: &[f32]) -> Result<f32, EllipseError> {
        self.take_in(features)?;
        // Forward substitution, in place: L y = φ.
        let mut square = 0.0;
        for i in 0..self.work.len() {
            let triangle = Triangle::new(self.factor, self.work.len(), self.layout);
            let Some((&diagonal, before)) = triangle.row(i).split_last() else { break };
            let Some((solved, [x, ..])) = self.work.split_at_checked(i) else { break };
            let y = x - dot(before, solved);
            let y = flush(y / diagonal);
            if let Some(to) = self.work.get_mut(i) {
                *to = y;
            }
            square += y * y;
        }
        Ok(saturate(square))
    }

    /// [`EllipseView::assess`], then the features are learned. `d²` multiply-adds more.
    ///
    /// # Errors
    /// As [`EllipseView::assess`]; nothing is learned then.
    pub fn observe(&mut self, features: &[f32]) -> Result<f32, EllipseError> {
        let found = self.assess(features)?;
        self.take_in(features)?;
        self.learn();
        Ok(found)
    }

    /// `½ ln(1 + b)` nats: what an observation with this b tells.
    #[must_use]
    pub fn information(b: f32) -> f32 {
        0.5 * ln(1.0 + saturate(b))
    }

    fn take_in(&mut self, features: &[f32]) -> Result<(), EllipseError> {
        if features.len() != self.work.len() {
            return Err(EllipseError::Length { expected: self.work.len(), found: features.len() });
        }
        if let Some(index) = features.iter().position(|x| !x.is_finite()) {
            return Err(EllipseError::NonFinite { index });
        }
        for (to, &x) in self.work.iter_mut().zip(features) {
            let x = if x > LARGEST_FEATURE { LARGEST_FEATURE } else { x };
            let x = if x < -LARGEST_FEATURE { -LARGEST_FEATURE } else { x };
            *to = flush(x);
        }
        Ok(())
    }

    /// `L Lᵀ ← L Lᵀ + x xᵀ` with x in `work`: one rotation a column.
    fn learn(&mut self) {
        let dim = self.work.len();
        for k in 0..dim {
            let x = self.work.get(k).copied().unwrap_or(0.0);
            let Some(diagonal) = self.at(k, k) else { return };
            let before = *diagonal;
            // In increments: after many updates the angle is small, and 1 − cos would be lost in rounding. The sum adds
            // something that is not negative, so the diagonal never falls.
            let r = before + x * x / (before + sqrt(before * before + x * x));
            let r = if r > LARGEST_DIAGONAL { LARGEST_DIAGONAL } else { r };
            *diagonal = r;
            // The sine of the rotation that takes (L, x) to (r, 0), and the tangent of half its angle.
            let sine = flush(x / r);
            let half = flush(sine / (1.0 + before / r));
            for i in k + 1..dim {
                let x = self.work.get(i).copied().unwrap_or(0.0);
                let Some(l) = self.at(i, k) else { return };
                let before = *l;
                *l = flush(before + sine * (x - half * before));
                if let Some(to) = self.work.get_mut(i) {
                    *to = flush(x - sine * (before + half * x));
                }
            }
        }
    }

    fn at(&mut self, i: usize, j: usize) -> Option<&mut f32> {
        let start = match self.layout {
            Layout::Packed => packed_len(i),
            Layout::Square => i * self.work.len(),
        };
        self.factor.get_mut(start + j)
    }
}

/// An ellipse of dimension `D` that owns its numbers.
///
/// ```
/// use dab_core::ellipse::Ellipse;
///
/// let mut ellipse = Ellipse::<2>::new(1.0).unwrap();
/// let first = ellipse.observe(&[3.0, 0.0]).unwrap();
/// let again = ellipse.observe(&[3.0, 0.0]).unwrap();
/// let other = ellipse.observe(&[0.0, 3.0]).unwrap();
/// assert_eq!(first, 9.0);
/// assert!(again < 1.0 && other > 8.9);
/// ```
#[derive(Clone, Debug)]
pub struct Ellipse<const D: usize> {
    ridge: f32,
    factor: [[f32; D]; D],
    work: [f32; D],
}

impl<const D: usize> Ellipse<D> {
    /// An ellipse that has seen nothing; `ridge` is its first size, 2⁻⁵⁰ to 2⁵⁰.
    ///
    /// # Errors
    /// When the ridge is out of its range.
    pub fn new(ridge: f32) -> Result<Self, EllipseError> {
        const { assert!(D >= 1) };
        if !(in_domain(ridge) && ridge > 0.0) {
            return Err(EllipseError::Ridge { ridge });
        }
        let mut new = Self { ridge, factor: [[0.0; D]; D], work: [0.0; D] };
        new.view().clear();
        Ok(new)
    }

    /// The same ellipse as the kernels use it.
    #[must_use]
    pub const fn view(&mut self) -> EllipseView<'_> {
        EllipseView {
            ridge: self.ridge,
            layout: Layout::Square,
            factor: self.factor.as_flattened_mut(),
            work: &mut self.work,
        }
    }

    /// [`EllipseView::assess`].
    ///
    /// # Errors
    /// When a value is not finite.
    pub fn assess(&mut self, features: &[f32; D]) -> Result<f32, EllipseError> {
        self.view().assess(features)
    }

    /// [`EllipseView::observe`].
    ///
    /// # Errors
    /// As [`Ellipse::assess`].
    pub fn observe(&mut self, features: &[f32; D]) -> Result<f32, EllipseError> {
        self.view().observe(features)
    }

    /// [`EllipseView::clear`].
    pub fn clear(&mut self) {
        self.view().clear();
    }
}
