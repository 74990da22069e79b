//! "This is normal now": a model and a memory of what was taught beside it.
//!
//! ```text
//! u′ = min(u_model, u_taught),   p-value and verdict from u′
//! U′ = min(U, g_u(u_taught))     in a model with channels, p-value and verdict from U′
//! ```
//!
//! An operator confirms inputs that the model calls unfamiliar. Each becomes a pinned code of a memory in the model's
//! latent space, at least as wide as the model's own codes are on average. Teaching can only lower an uncertainty: what
//! was familiar stays so, p-values of old inputs only rise, and an input that is far from both is as unfamiliar as
//! before.
//!
//! The memory may be a memory of the device, in RAM and saved to flash, or taught codes in the artifact itself (`dab teach`,
//! [`add_taught`](crate::artifact::taught::add_taught)): the same formula, the same bits.

use core::fmt;

use crate::codebook::{CodebookView, PrecisionLayout};
use crate::divergence::{Precision, local};
use crate::error::InputError;
use crate::gaussian::GaussianView;
use crate::isa::Baseline;
use crate::linalg::dot::dot;
use crate::linalg::jacobi::MAX_DIM;
use crate::memory::{MemoryError, MemoryView, Novelty, Width};
use crate::model::{Assessment, Model};
use crate::pass::Evaluation;
use crate::scalar::LARGEST;

/// Why something was not taught or assessed. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TeachError {
    /// The model refused the input.
    Input(InputError),
    /// The memory refused the model's Gaussian: another dimension, no place, or an input beyond the numeric domain.
    Memory(MemoryError),
}

impl fmt::Display for TeachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TeachError {}

impl Model<'_> {
    /// Teaches `memory`, whose dimension is the model's latent one, that `input` is normal. The answer says how far it was
    /// from what was taught before.
    ///
    /// # Errors
    /// As [`Model::assess`], when the memory has another dimension or no place, and when a value of the input, or what the
    /// encoder makes of it, lies at the end of the numeric domain, ±2⁵⁰: a code there would be that of every broken sensor.
    pub fn teach(
        &self,
        memory: &mut MemoryView<'_>,
        input: &[f32],
        scratch: &mut [f32],
    ) -> Result<Novelty, TeachError> {
        let gaussian = self.encode(input, scratch).map_err(TeachError::Input)?;
        if input.iter().any(|x| x.abs() >= LARGEST) {
            return Err(TeachError::Memory(MemoryError::Saturated));
        }
        let mut base = [0.0; MAX_DIM];
        self.codebook.mean_variance_into(&mut base);
        let base = base.get(..self.codebook.dim);
        memory.teach(gaussian.mean, Width::Spread(gaussian.spread), base).map_err(TeachError::Memory)
    }

    /// [`Model::assess`], where what was taught counts as familiar. `nearest` stays the model's own code.
    ///
    /// # Errors
    /// As [`Model::assess`], and when the memory has another dimension.
    pub fn assess_taught(
        &self,
        memory: &mut MemoryView<'_>,
        input: &[f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, TeachError> {
        let mut found = self.evaluate(Baseline, input, scratch).map_err(TeachError::Input)?;
        let taught = taught(memory, &found.gaussian)?;
        self.lower(&mut found, taught);
        Ok(self.judge(&found))
    }

    /// Lowers what a pass found to what was taught says of it, nats: the module's formula. What lies outside of the base's axes
    /// cannot be taught: its length has no direction, and one broken sensor would speak for all. It counts as much as in the
    /// distance from the nearest code, and so is never more than u.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn lower(&self, found: &mut Evaluation<'_>, mut taught: f32) {
        if self.channels().is_some_and(|c| c.rests.views & 1 == 1)
            && let Some(&outside) = found.gaussian.mean.last()
        {
            let outside = 0.5 * outside * outside;
            let precision = self.codebook.precisions.get(found.expected.nearest);
            taught = taught.max(match (self.codebook.layout, precision) {
                (PrecisionLayout::Local, Some(&precision)) => local(outside, precision),
                _ => outside,
            });
        }
        if taught < found.expected.uncertainty {
            found.expected.uncertainty = taught;
        }
        if let (Some(channels), Some(joined)) = (self.channels(), &mut found.joined) {
            let surprise = channels.base_tails().u.surprise(taught);
            if surprise < joined.unfamiliarity {
                joined.unfamiliarity = surprise;
            }
        }
    }
}

/// Uncertainty of a Gaussian beside what was taught, nats.
fn taught(memory: &mut MemoryView<'_>, gaussian: &GaussianView<'_>) -> Result<f32, TeachError> {
    let width = Width::Spread(gaussian.spread);
    memory.assess_taught(gaussian.mean, width).map(|found| found.uncertainty).map_err(TeachError::Memory)
}

impl CodebookView<'_> {
    /// Writes the mean variance of the codes in each dimension, each code weighted with its prior. `k d³/6` multiply-adds
    /// for full covariances.
    pub fn mean_variance_into(&self, out: &mut [f32]) {
        out.fill(0.0);
        let mut total = 0.0;
        for (code, &prior) in self.codes().zip(self.priors) {
            total += prior;
            match code.precision {
                Precision::Diagonal(precision) => {
                    for (v, p) in out.iter_mut().zip(precision) {
                        *v += prior / p;
                    }
                }
                Precision::Identity => {
                    for v in out.iter_mut() {
                        *v += prior;
                    }
                }
                Precision::Local(precision) => {
                    for v in out.iter_mut() {
                        *v += prior / precision;
                    }
                }
                // Σ = R⁻¹ R⁻ᵀ: the squares of the rows of R⁻¹, which is made column by column.
                Precision::Full(rows) => {
                    for j in 0..self.dim {
                        let mut column = [0.0; MAX_DIM];
                        for i in j..self.dim {
                            let Some((&diagonal, before)) = rows.row(i).split_last() else { return };
                            let Some((solved, [x, ..])) = column.split_at_mut_checked(i) else { return };
                            let unit = if i == j { 1.0 } else { 0.0 };
                            *x = (unit - dot(before, solved)) / diagonal;
                            if let Some(v) = out.get_mut(i) {
                                *v += prior * (*x * *x);
                            }
                        }
                    }
                }
            }
        }
        if total > 0.0 {
            for v in out {
                *v /= total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codebook::PrecisionLayout;
    use crate::linalg::triangle::Layout;

    /// The mean variances of codes whose weights need not sum to 1.
    fn mean_variances<const D: usize>(
        layout: PrecisionLayout,
        precisions: &[f32],
        priors: &[f32],
    ) -> [f32; D] {
        let means = [0.0; 16];
        let codes =
            CodebookView { dim: D, alpha: 1.0, means: &means, precisions, layout, log_dets: &[], priors };
        let mut out = [f32::NAN; D];
        codes.mean_variance_into(&mut out);
        out
    }

    #[test]
    fn variances_of_codes_are_averaged_by_their_weights() {
        let diagonal = mean_variances(PrecisionLayout::Diagonal, &[2.0, 4.0, 8.0, 0.5], &[1.0, 3.0]);
        assert_eq!(diagonal, [(0.5 + 3.0 / 8.0) / 4.0, (0.25 + 3.0 / 0.5) / 4.0]);
        assert_eq!(mean_variances(PrecisionLayout::Identity, &[], &[1.0, 3.0]), [1.0; 2]);
        assert_eq!(mean_variances(PrecisionLayout::Local, &[2.0, 0.5], &[1.0, 3.0]), [(0.5 + 6.0) / 4.0; 2]);
        // R and its inverse: ½; −⅛ ¼; 3½ −1 2. The squares of a row sum to a variance. The other code has the identity.
        let rows = [2.0, 1.0, 4.0, -3.0, 2.0, 0.5, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0];
        let full = mean_variances(PrecisionLayout::Full(Layout::Packed), &rows, &[1.0, 3.0]);
        assert_eq!(full, [0.25, 1.0 / 64.0 + 1.0 / 16.0, 12.25 + 1.0 + 4.0].map(|v| (v + 3.0) / 4.0));
    }

    #[test]
    fn codes_without_weight_have_no_variance() {
        assert_eq!(mean_variances(PrecisionLayout::Diagonal, &[2.0, 4.0], &[0.0]), [0.0; 2]);
        assert_eq!(mean_variances(PrecisionLayout::Identity, &[], &[]), [0.0; 2]);
    }
}
