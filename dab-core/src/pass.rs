//! One pass over one input: what happens between the arguments and the answer.
//!
//! ```text
//! input → normalise → dense layers → head → raw → Gaussian → distances → expected distance
//! ```
//!
//! Everything lies in the caller's scratch. All entry points of [`Model`] share one copy of this code:
//! `evaluate` is never inlined, all below it always is, so that an [`Isa`] compiles the whole of it.

use crate::artifact::schema::CovarianceKind;
use crate::codebook::Expected;
use crate::encoder;
use crate::error::InputError;
use crate::gaussian::{GaussianView, Spread};
use crate::isa::{Isa, Kernel};
use crate::layers::{add_into, normalize_into};
use crate::linalg::dot::{WIDE, affine_into, take};
use crate::linalg::jacobi;
use crate::model::{Decoder, Model, check_len};
use crate::scalar::tame;

/// Everything that one pass leaves in scratch.
pub(crate) struct Evaluation<'s> {
    pub(crate) gaussian: GaussianView<'s>,
    pub(crate) distances: &'s [f32],
    pub(crate) expected: Expected,
}

/// Floats of scratch, by what they are used for. `work` is used twice: first for activations, then for
/// the covariance.
pub(crate) struct ScratchPlan {
    pub(crate) raw: usize,
    pub(crate) even: usize,
    pub(crate) odd: usize,
    pub(crate) held: usize,
    pub(crate) work: usize,
    pub(crate) distances: usize,
}

impl ScratchPlan {
    /// Floats in all.
    pub(crate) const fn total(&self) -> usize {
        self.raw + self.work + self.distances
    }
}

impl Model<'_> {
    pub(crate) fn scratch_plan(&self) -> ScratchPlan {
        let dim = self.codebook.dim;
        let (mut even, mut odd, mut held) = (self.meta.inputs, 0, 0);
        for (i, layer) in self.meta.layers.iter().enumerate() {
            let parity = if i % 2 == 0 { &mut odd } else { &mut even };
            *parity = layer.outputs.max(*parity);
            if layer.residual.is_some() {
                held = layer.outputs.max(held);
            }
        }
        let [even, odd, held] = [even as usize, odd as usize, held as usize];
        let covariance = match self.meta.head.covariance {
            CovarianceKind::Diagonal => dim,
            CovarianceKind::Cholesky => dim * dim,
            CovarianceKind::Spectral => dim * dim + jacobi::work_len(dim),
        };
        ScratchPlan {
            raw: self.meta.head.covariance.raw_len(dim),
            even,
            odd,
            held,
            work: covariance.max(even + odd + held),
            distances: self.codebook.len(),
        }
    }

    /// One pass, after the arguments were checked. All entry points share this one copy of the kernels.
    #[inline(never)]
    pub(crate) fn evaluate<'s>(
        &self,
        isa: impl Isa,
        input: &[f32],
        scratch: &'s mut [f32],
    ) -> Result<Evaluation<'s>, InputError> {
        check_len(self.meta.inputs as usize, input.len(), |expected, found| InputError::Length {
            expected,
            found,
        })?;
        let plan = self.scratch_plan();
        let short = InputError::Scratch { needed: plan.total(), found: scratch.len() };
        let scratch = scratch.get_mut(..plan.total()).ok_or(short)?;
        isa.run(Pass { model: self, input, scratch, plan }).and_then(|pass| pass.ok_or(short))
    }

    #[inline(always)]
    fn forward<'s>(
        &self,
        input: &[f32],
        scratch: &'s mut [f32],
        plan: &ScratchPlan,
    ) -> Option<Evaluation<'s>> {
        let (raw, rest) = scratch.split_at_mut_checked(plan.raw)?;
        let (work, distances) = rest.split_at_mut_checked(plan.work)?;
        self.raw_into(input, raw, work, plan)?;
        let gaussian = self.gaussian(raw, work)?;
        self.codebook.distances_into(&gaussian, distances);
        let expected = self.codebook.expected_distance(distances);
        Some(Evaluation { gaussian, distances, expected })
    }

    /// Normalisation, dense layers and head: the raw encoder outputs.
    #[inline(always)]
    fn raw_into(&self, input: &[f32], raw: &mut [f32], work: &mut [f32], plan: &ScratchPlan) -> Option<()> {
        let (mut now, rest) = work.split_at_mut_checked(plan.even)?;
        let (mut next, rest) = rest.split_at_mut_checked(plan.odd)?;
        let held = rest.get_mut(..plan.held)?;
        let mut width = self.meta.inputs as usize;
        normalize_into(now.get_mut(..width)?, input, self.normalize_mean, self.normalize_inverse_std);
        let mut params = self.layer_params;
        for (i, layer) in self.meta.layers.iter().enumerate() {
            let outputs = layer.outputs as usize;
            let (x, y) = (now.get(..width)?, next.get_mut(..outputs)?);
            if self.meta.layers.iter().any(|l| l.residual.is_some_and(|r| usize::from(r.source) == i)) {
                for (h, x) in held.iter_mut().zip(x) {
                    *h = *x;
                }
            }
            let (weight, rest) = take(params, width * outputs);
            let (bias, rest) = take(rest, if layer.bias { outputs } else { 0 });
            params = rest;
            affine_into(y, weight, bias, x);
            let adds = |before| layer.residual.is_some_and(|r| r.before_activation == before);
            if adds(true) {
                add_into(y, held);
            }
            layer.activation.apply(y);
            if adds(false) {
                add_into(y, held);
            }
            core::mem::swap(&mut now, &mut next);
            width = outputs;
        }
        let features = now.get_mut(..width)?;
        self.meta.head.activation.apply(features);
        affine_into(raw, self.head_weight, self.head_bias, features);
        Some(())
    }

    /// E1–E3: the encoder's Gaussian, in place of the raw outputs and the work memory.
    #[inline(always)]
    fn gaussian<'s>(&self, raw: &'s mut [f32], work: &'s mut [f32]) -> Option<GaussianView<'s>> {
        let dim = self.codebook.dim;
        let (mean, spread) = raw.split_at_mut_checked(dim)?;
        for m in mean.iter_mut() {
            *m = tame(*m);
        }
        let (spread, log_det) = match self.meta.head.covariance {
            CovarianceKind::Diagonal => {
                let variance = work.get_mut(..dim)?;
                let log_det = encoder::diagonal::variance_into(spread, variance);
                (Spread::Diagonal(variance), log_det)
            }
            CovarianceKind::Cholesky => {
                let factor = work.get_mut(..dim * dim)?;
                let log_det = encoder::cholesky::factor_into(spread, factor, dim);
                (Spread::Full { factor, lower: true }, log_det)
            }
            CovarianceKind::Spectral => {
                let (factor, rest) = work.split_at_mut_checked(dim * dim)?;
                let log_det = encoder::spectral::factor_into(spread, factor, rest, dim)?;
                (Spread::Full { factor, lower: false }, log_det)
            }
        };
        Some(GaussianView { mean, spread, log_det })
    }
}

/// One pass over one input.
struct Pass<'m, 'a, 's> {
    model: &'m Model<'a>,
    input: &'m [f32],
    scratch: &'s mut [f32],
    plan: ScratchPlan,
}

impl<'s> Kernel for Pass<'_, '_, 's> {
    /// `None` when the scratch is shorter than the plan.
    type Output = Result<Option<Evaluation<'s>>, InputError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        // On a wide machine first without a branch per value: it does many at a time.
        if (!WIDE || self.input.iter().fold(false, |bad, x| bad | !x.is_finite()))
            && let Some(index) = self.input.iter().position(|x| !x.is_finite())
        {
            return Err(InputError::NonFinite { index });
        }
        Ok(self.model.forward(self.input, self.scratch, &self.plan))
    }
}

/// The outputs from the latent mean (E7).
pub(crate) struct Decode<'m, 'a> {
    pub(crate) decoder: &'m Decoder<'a>,
    pub(crate) mean: &'m [f32],
    pub(crate) outputs: &'m mut [f32],
}

impl Kernel for Decode<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        affine_into(self.outputs, self.decoder.weight, self.decoder.bias, self.mean);
        for y in self.outputs {
            *y = tame(*y);
        }
    }
}
