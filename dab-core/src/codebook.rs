//! The codebook: codes, priors, assignment, expected distance (method.md E5, E6).
//!
//! `GaussianView` → distances to all codes → `expected_distance` → the uncertainty.
//!
//! ```text
//! w_κ = π(κ) exp(−α (D_κ − D_min)),   π_x(κ) = w_κ / Σ w,   u = D_min + Σ w_κ (D_κ − D_min) / Σ w
//! ```
//!
//! No logarithm of a prior is needed. D_min is the smallest distance *among codes with a
//! positive prior*; its own weight is its prior, so the sum is never zero, a prior of 0 is simply a
//! weight of 0, and saturated distances cancel to 0 instead of giving ∞ − ∞.
//!
//! [`CodebookView`] borrows (an artifact in flash); `Codebook` (feature `nalgebra`) owns (Rust firmware, adaptation on
//! the device). The owned one is a view's worth of storage: every formula is the view's.

#[cfg(feature = "nalgebra")]
mod fixed;

#[cfg(feature = "nalgebra")]
pub use fixed::{CodeCovariance, Codebook, CodebookError, PushError};

use crate::divergence::{self, CodeView, Precision};
use crate::gaussian::GaussianView;
use crate::linalg::dot::{IS_64_BIT, LANES, fold, take};
pub use crate::linalg::triangle::Layout;
use crate::linalg::triangle::{Triangle, packed_len};
use crate::scalar::{SMALLEST, exp, flush, saturate};

/// Weights below this, 2⁻¹⁰⁰, are zero. The nearest code weighs at least 2⁻⁵⁰, so they cannot show in the
/// score; as subnormal numbers they would show in its bits where a process flushes those.
const NEGLIGIBLE: f32 = SMALLEST * SMALLEST;

/// How the precisions of a codebook lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecisionLayout {
    /// `d` values of `1/v` per code.
    Diagonal,
    /// A triangle R with P = Rᵀ R per code.
    Full(Layout),
    /// Nothing: every covariance is the identity, and no log-determinant is stored.
    Identity,
    /// The same, and one number per code that its distances are multiplied by.
    Local,
}

impl PrecisionLayout {
    /// Values per code of dimension `dim`.
    #[inline(always)]
    #[must_use]
    pub const fn stride(self, dim: usize) -> usize {
        match self {
            Self::Diagonal => dim,
            Self::Full(Layout::Packed) => packed_len(dim),
            Self::Full(Layout::Square) => dim * dim,
            Self::Identity => 0,
            Self::Local => 1,
        }
    }
}

/// What the codebook says of one input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// u(x), nats: between the smallest and the largest distance.
    pub uncertainty: f32,
    /// The closest code with a positive prior.
    pub nearest: usize,
    /// Its distance, nats.
    pub nearest_distance: f32,
    /// `Σ_κ π(κ) e^{−α D_κ}`: how much of the codebook lies near. With counts for priors, how often something like
    /// this was seen.
    pub visits: f32,
}

/// A codebook whose numbers lie elsewhere: in an artifact, or in an owned `Codebook`.
#[derive(Clone, Copy, Debug)]
pub struct CodebookView<'a> {
    /// Latent dimension d.
    pub dim: usize,
    /// Temperature α of the assignment.
    pub alpha: f32,
    /// Code means, `[k, d]`.
    pub means: &'a [f32],
    /// Code precisions, one after another.
    pub precisions: &'a [f32],
    /// What one of them looks like.
    pub layout: PrecisionLayout,
    /// ln|Σ_κ|, `[k]`, nats.
    pub log_dets: &'a [f32],
    /// π(κ), `[k]`.
    pub priors: &'a [f32],
}

impl<'a> CodebookView<'a> {
    /// Number of codes k.
    #[inline(always)]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.priors.len()
    }

    /// Whether there is no code.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.priors.is_empty()
    }

    /// The codes in order.
    #[inline(always)]
    pub fn codes(&self) -> impl Iterator<Item = CodeView<'a>> + use<'a> {
        let (dim, layout) = (self.dim, self.layout);
        self.codes_with(move |values| match layout {
            PrecisionLayout::Diagonal => Precision::Diagonal(values),
            PrecisionLayout::Full(layout) => Precision::Full(Triangle::new(values, dim, layout)),
            PrecisionLayout::Identity => Precision::Identity,
            PrecisionLayout::Local => Precision::Local(values.first().copied().unwrap_or(1.0)),
        })
    }

    #[inline(always)]
    fn codes_with<P>(&self, precision: P) -> impl Iterator<Item = CodeView<'a>> + use<'a, P>
    where
        P: Fn(&'a [f32]) -> Precision<'a>,
    {
        let (dim, stride) = (self.dim, self.layout.stride(self.dim));
        let (mut means, mut precisions) = (self.means, self.precisions);
        let mut log_dets = self.log_dets.iter();
        self.priors.iter().map(move |_| {
            // There is none with constant covariances: the logarithm of 1.
            let log_det = log_dets.next().copied().unwrap_or(0.0);
            let ((mean, other_means), (values, other_values)) = (take(means, dim), take(precisions, stride));
            (means, precisions) = (other_means, other_values);
            CodeView { mean, precision: precision(values), log_det }
        })
    }

    /// Writes D_κ of every code, nats (E4).
    #[inline(always)]
    pub fn distances_into(&self, p: &GaussianView<'_>, distances: &mut [f32]) {
        // On a wide machine the kind is decided once, not once a code.
        match self.layout {
            _ if !IS_64_BIT => {
                for (distance, code) in distances.iter_mut().zip(self.codes()) {
                    *distance = divergence::kl(p, &code);
                }
            }
            PrecisionLayout::Identity | PrecisionLayout::Local => self.half_squares_into(p.mean, distances),
            PrecisionLayout::Diagonal => {
                for (distance, code) in distances.iter_mut().zip(self.codes_with(Precision::Diagonal)) {
                    *distance = divergence::kl(p, &code);
                }
            }
            PrecisionLayout::Full(layout) => {
                let dim = self.dim;
                let codes = self.codes_with(|values| Precision::Full(Triangle::new(values, dim, layout)));
                for (distance, code) in distances.iter_mut().zip(codes) {
                    *distance = divergence::kl(p, &code);
                }
            }
        }
    }

    /// [`CodebookView::distances_into`] with constant covariances: D_κ = ½ ‖μ − m_κ‖², times p_κ where there are local
    /// precisions.
    #[inline(always)]
    pub(crate) fn half_squares_into(&self, mean: &[f32], distances: &mut [f32]) {
        let mut means = self.means;
        for distance in &mut *distances {
            let (code, rest) = take(means, self.dim);
            means = rest;
            *distance = divergence::half_square(mean, code);
        }
        for (distance, &precision) in distances.iter_mut().zip(self.precisions) {
            *distance = divergence::local(*distance, precision);
        }
    }

    /// Uncertainty and nearest code from the distances (E5, E6). One exponential per code. Without a code
    /// of positive prior everything is as far as can be: `f32::MAX`.
    // Further views are a second caller: on a small machine both then share one copy.
    #[cfg_attr(any(target_pointer_width = "64", not(feature = "channels")), inline(always))]
    #[must_use]
    pub fn expected_distance(&self, distances: &[f32]) -> Expected {
        let (nearest, nearest_distance) = self.nearest(distances);
        let (mut total, mut excess) = ([0.0; LANES], [0.0; LANES]);
        let mut add = |lane: usize, d: f32, pi: f32| {
            let w = self.weight(pi, d - nearest_distance);
            total[lane % LANES] += w;
            excess[lane % LANES] += w * (d - nearest_distance);
        };
        let ((d, d_tail), (pi, pi_tail)) = (distances.as_chunks::<LANES>(), self.priors.as_chunks::<LANES>());
        if IS_64_BIT {
            // Blocks of known length, of which a wide machine computes all weights at once.
            for (d, pi) in d.iter().zip(pi) {
                for lane in 0..LANES {
                    add(lane, d[lane], pi[lane]);
                }
            }
            for (lane, (&d, &pi)) in d_tail.iter().zip(pi_tail).enumerate() {
                add(lane, d, pi);
            }
        } else {
            for (i, (&d, &pi)) in distances.iter().zip(self.priors).enumerate() {
                add(i, d, pi);
            }
        }
        let total = fold(total);
        let uncertainty = saturate(nearest_distance + fold(excess) / total);
        // Two points may be closer than any two Gaussians of other kinds: see the domain of scalar.rs.
        let points = cfg!(feature = "channels")
            && matches!(self.layout, PrecisionLayout::Identity | PrecisionLayout::Local);
        let uncertainty = if points { flush(uncertainty) } else { uncertainty };
        let visits = exp(-(self.alpha * nearest_distance)) * total;
        let visits = if visits < NEGLIGIBLE { 0.0 } else { visits };
        Expected { uncertainty, nearest, nearest_distance, visits }
    }

    /// Writes π_x(κ) of every code (E5); they sum to 1, or are all 0 without a code of positive prior.
    #[inline(always)]
    pub fn assignment_into(&self, distances: &[f32], assignment: &mut [f32]) {
        let (_, nearest_distance) = self.nearest(distances);
        for ((a, &distance), &prior) in assignment.iter_mut().zip(distances).zip(self.priors) {
            *a = self.weight(prior, distance - nearest_distance);
        }
        let total = crate::linalg::dot::sum(assignment, |a| a);
        if total > 0.0 {
            for a in assignment {
                *a /= total;
            }
        }
    }

    /// Unnormalised weight of a code that lies `above` nats beyond the nearest one.
    #[inline(always)]
    fn weight(&self, prior: f32, above: f32) -> f32 {
        // A code of prior 0 may be nearer than the nearest live one: its exponential must not overflow.
        let above = if above > 0.0 { above } else { 0.0 };
        let weight = prior * exp(-(self.alpha * above));
        if weight < NEGLIGIBLE { 0.0 } else { weight }
    }

    /// The closest code with a positive prior, and its distance; code 0 at `f32::MAX` if there is none.
    #[inline(always)]
    fn nearest(&self, distances: &[f32]) -> (usize, f32) {
        let mut best = (0, f32::MAX);
        for (k, (&distance, &prior)) in distances.iter().zip(self.priors).enumerate() {
            if prior > 0.0 && distance < best.1 {
                best = (k, distance);
            }
        }
        if best.1 == f32::MAX {
            best.0 = self.priors.iter().position(|&p| p > 0.0).unwrap_or(0);
        }
        best
    }

    /// Writes what each latent dimension contributes to the uncertainty: `Σ_κ π_x(κ) D_κᵢ`. The
    /// contributions sum to u.
    #[inline(always)]
    pub fn per_dimension_into(&self, p: &GaussianView<'_>, assignment: &[f32], out: &mut [f32]) {
        out.fill(0.0);
        for (code, &weight) in self.codes().zip(assignment) {
            if weight > 0.0 {
                divergence::per_dimension_into(p, &code, weight, out);
            }
        }
    }
}
