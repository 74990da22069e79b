//! One pass over one input: what happens between the arguments and the answer.
//!
//! ```text
//! input → normalise → dense layers → head → raw → Gaussian → distances → expected distance
//! ```
//!
//! A model with channels looks at the input several times: first the further views, then the base, so that the scratch ends
//! with the Gaussian and the distances of the base as it does without channels.
//!
//! Everything lies in the caller's scratch. All entry points of [`Model`] share one copy of this code:
//! `evaluate` is never inlined, all below it always is, so that an [`Isa`] compiles the whole of it.

use crate::artifact::extension::{Channels, View};
use crate::artifact::schema::{CovarianceKind, DecoderReads, Form, Task};
use crate::channels::{Logits, Tails, ViewScore, read_logits};
use crate::codebook::{CodebookView, Expected};
use crate::encoder;
use crate::error::InputError;
use crate::gaussian::{GaussianView, Spread};
use crate::isa::{Isa, Kernel};
use crate::layers::{add_into, layer_norm_into, normalize_into, rest_into, unit};
use crate::linalg::dot::{IS_64_BIT, affine_into, take};
use crate::linalg::int8::{Weights, steps_len};
use crate::linalg::jacobi;
use crate::memory::expected_beside;
use crate::model::{Decoder, Model, check_len};
use crate::scalar::{saturate, tame};

/// Everything that one pass leaves in scratch.
pub(crate) struct Evaluation<'s> {
    pub(crate) gaussian: GaussianView<'s>,
    pub(crate) distances: &'s [f32],
    pub(crate) expected: Expected,
    /// What the channels say; `None` in a model without them.
    pub(crate) joined: Option<Joined<'s>>,
}

impl<'s> Evaluation<'s> {
    /// The decoder's outputs, if the pass needed them.
    pub(crate) fn decoded(&self) -> Option<&'s [f32]> {
        self.joined.as_ref().map(|j| j.outputs).filter(|outputs| !outputs.is_empty())
    }
}

/// What all views say together. Small, because it is handed from call to call: the scores themselves stay in scratch.
pub(crate) struct Joined<'s> {
    /// The unfamiliarity U.
    pub(crate) unfamiliarity: f32,
    /// The scores of every view, the base first: [`SCORES`] floats each.
    pub(crate) scores: &'s [f32],
    /// What the decoder's logits say; `None` without a decoder of classes.
    pub(crate) logits: Option<Logits>,
    /// The decoder's outputs, where the pass needed them; else empty.
    pub(crate) outputs: &'s [f32],
}

/// Floats of scratch for each view: distance, energy, score, surprise.
const SCORES: usize = 4;

impl Joined<'_> {
    /// What every view says, the base first. Without a decoder of classes there is no energy.
    pub(crate) fn views(&self) -> impl Iterator<Item = ViewScore> + '_ {
        let (views, _) = self.scores.as_chunks::<SCORES>();
        views.iter().map(|&[distance, energy, score, surprise]| ViewScore {
            distance,
            energy: (energy < f32::MAX).then_some(energy),
            score,
            surprise,
        })
    }

    /// The view with the largest surprise, the first of equal ones.
    pub(crate) fn alarmed(&self) -> usize {
        let mut best = (0, -1.0);
        for (i, view) in self.views().enumerate() {
            if view.surprise > best.1 {
                best = (i, view.surprise);
            }
        }
        best.0
    }
}

/// Floats of scratch, by what they are used for. `work` is used twice: first for activations, then for
/// the covariance.
pub(crate) struct ScratchPlan {
    pub(crate) raw: usize,
    pub(crate) even: usize,
    pub(crate) odd: usize,
    pub(crate) held: usize,
    /// Inputs of a layer in whole steps, where weights are bytes.
    pub(crate) steps: usize,
    pub(crate) work: usize,
    pub(crate) distances: usize,
    /// The decoder's outputs, which only channels need in a pass.
    pub(crate) outputs: usize,
    /// The scores of the views.
    pub(crate) scores: usize,
    /// Variances and distances beside what was taught.
    pub(crate) taught: usize,
}

impl ScratchPlan {
    /// Floats in all.
    pub(crate) const fn total(&self) -> usize {
        self.base() + self.outputs + self.scores + self.taught
    }

    /// Floats of the base's own pass.
    const fn base(&self) -> usize {
        self.raw + self.work + self.distances
    }
}

impl<'a> Model<'a> {
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
        let steps = if self.meta.has_bytes() { steps_len(even.max(odd)) } else { 0 };
        let covariance = match self.meta.head.covariance {
            CovarianceKind::Diagonal => dim,
            CovarianceKind::Cholesky => dim * dim,
            CovarianceKind::Spectral => dim * dim + jacobi::work_len(dim),
            CovarianceKind::Constant => 0,
        };
        let mut plan = ScratchPlan {
            raw: self.meta.head.covariance.raw_len(dim),
            even,
            odd,
            held,
            steps,
            work: covariance.max(even + odd + held + steps),
            distances: self.codebook.len(),
            outputs: 0,
            scores: 0,
            taught: self.taught_codes().map_or(0, |taught| dim + taught.len()),
        };
        if let Some(channels) = self.channels() {
            plan.outputs = self.pass_decoder(channels).map_or(0, |d| d.outputs);
            plan.scores = SCORES * channels.meta.view_count();
            for view in &channels.meta.views {
                plan.raw = plan.raw.max(view.dim as usize);
                plan.distances = plan.distances.max(view.codes as usize);
                plan.outputs = plan.outputs.max(view.decoder.map_or(0, |d| d.outputs as usize));
            }
        }
        plan
    }

    /// The codes that were taught. Without the crate's feature no model has any, and the compiler knows it.
    #[inline(always)]
    fn taught_codes(&self) -> Option<&CodebookView<'_>> {
        if cfg!(feature = "channels") { self.taught.as_ref() } else { None }
    }

    /// Lowers what a pass found to what the taught codes say of it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn lower_by(
        &self,
        codes: &CodebookView<'_>,
        found: &mut Evaluation<'_>,
        beside: &mut [f32],
    ) -> Option<()> {
        let (variance, distances) = beside.split_at_mut_checked(codes.dim)?;
        let taught = expected_beside(codes, &found.gaussian, variance, distances).uncertainty;
        self.lower(found, taught);
        Some(())
    }

    /// The decoder of the base, where a pass has to run it: for its logits, or because it reads the input.
    pub(crate) fn pass_decoder(&self, channels: &Channels<'_>) -> Option<&Decoder<'_>> {
        let needed = |d: &&Decoder<'_>| {
            d.task == Task::Classification || channels.meta.base.decoder_reads == DecoderReads::Input
        };
        self.decoder.as_ref().filter(needed)
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
        isa.run(Pass { model: self, input, scratch, plan, short })
    }

    /// The base's pass. On a small machine it and [`Model::look`] are calls of their own: the variables of one are not on the
    /// stack of the other.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn forward<'s>(
        &self,
        input: &[f32],
        scratch: &'s mut [f32],
        plan: &ScratchPlan,
    ) -> Option<Evaluation<'s>> {
        let (raw, rest) = scratch.split_at_mut_checked(plan.raw)?;
        let (work, rest) = rest.split_at_mut_checked(plan.work)?;
        let distances = rest.get_mut(..plan.distances)?;
        let raw = raw.get_mut(..self.meta.head.covariance.raw_len(self.codebook.dim))?;
        let distances = distances.get_mut(..self.codebook.len())?;
        self.raw_into(input, raw, work, plan)?;
        let gaussian = self.gaussian(raw, work)?;
        self.codebook.distances_into(&gaussian, distances);
        let expected = self.codebook.expected_distance(distances);
        Some(Evaluation { gaussian, distances, expected, joined: None })
    }

    /// Every view beside the base, and the decoder if it reads the input. `rest` has the scores of the views, then the
    /// decoder's outputs.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn look(
        &self,
        channels: &Channels<'_>,
        input: &[f32],
        (base, rest): (&mut [f32], &mut [f32]),
        plan: &ScratchPlan,
    ) -> Option<()> {
        let (raw, base) = base.split_at_mut_checked(plan.raw)?;
        let (work, distances) = base.split_at_mut_checked(plan.work)?;
        let (scores, outputs) = rest.split_at_mut_checked(SCORES * channels.meta.view_count())?;
        let (scores, _) = scores.as_chunks_mut::<SCORES>();
        for (found, view) in scores.iter_mut().skip(1).zip(channels.views(&self.meta)) {
            *found = view.look(input, raw, work, distances, outputs)?;
        }
        if channels.meta.base.decoder_reads == DecoderReads::Input
            && let Some(decoder) = self.pass_decoder(channels)
        {
            let x = work.get_mut(..input.len())?;
            normalize_into(x, input, &[], &[]);
            decoder.decode_into(x, outputs.get_mut(..decoder.outputs)?);
        }
        Some(())
    }

    /// The base's own score, and the unfamiliarity of all views.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn join<'s>(
        &self,
        channels: &Channels<'_>,
        mean: &[f32],
        distance: f32,
        rest: &'s mut [f32],
    ) -> Option<Joined<'s>> {
        let count = channels.meta.view_count();
        let (scores, outputs) = rest.split_at_mut_checked(SCORES * count)?;
        let (mut logits, mut decoded) = (None, &[][..]);
        if let Some(decoder) = self.pass_decoder(channels) {
            let outputs = outputs.get_mut(..decoder.outputs)?;
            if channels.meta.base.decoder_reads == DecoderReads::Latent {
                decoder.decode_into(mean, outputs);
            }
            if decoder.task == Task::Classification {
                logits = read_logits(outputs);
            }
            decoded = &*outputs;
        }
        let (views, _) = scores.as_chunks_mut::<SCORES>();
        let base = views.first_mut()?;
        *base = scored(&channels.base_tails(), channels.meta.base.form, distance, logits.map(|l| l.energy));
        let sum = views.iter().fold(0.0, |sum, &[.., surprise]| sum + surprise);
        let unfamiliarity = saturate(sum / count as f32);
        Some(Joined { unfamiliarity, scores, logits, outputs: decoded })
    }

    /// Normalisation, dense layers and head: the raw encoder outputs.
    #[inline(always)]
    fn raw_into(&self, input: &[f32], raw: &mut [f32], work: &mut [f32], plan: &ScratchPlan) -> Option<()> {
        let (mut now, rest) = work.split_at_mut_checked(plan.even)?;
        let (mut next, rest) = rest.split_at_mut_checked(plan.odd)?;
        let (held, rest) = rest.split_at_mut_checked(plan.held)?;
        let steps = rest.get_mut(..plan.steps)?;
        let mut width = self.meta.inputs as usize;
        let x = now.get_mut(..width)?;
        normalize_into(x, input, self.normalize_mean, self.normalize_inverse_std);
        if self.channels().is_some_and(|c| c.meta.base.l2) {
            unit(x);
        }
        let (mut params, mut bytes) = (self.layer_params, self.weights);
        // The floats of a dense layer, and its bytes, if any.
        let mut weights = |floats: &mut &'a [f32], inputs: usize, outputs: usize| {
            let count = if self.meta.has_bytes() { outputs } else { inputs * outputs };
            let (weight, rest) = take(floats, count);
            *floats = rest;
            let (values, rest) = take(bytes, if self.meta.has_bytes() { inputs * outputs } else { 0 });
            bytes = rest;
            Weights::new(weight, self.meta.has_bytes().then_some(values))
        };
        for (i, layer) in self.meta.layers.iter().enumerate() {
            let outputs = layer.outputs as usize;
            let (x, y) = (now.get(..width)?, next.get_mut(..outputs)?);
            if self.meta.layers.iter().any(|l| l.residual.is_some_and(|r| usize::from(r.source) == i)) {
                for (h, x) in held.iter_mut().zip(x) {
                    *h = *x;
                }
            }
            if self.meta.is_norm(i) {
                let (epsilon, rest) = take(params, 1);
                let (weight, rest) = take(rest, outputs);
                let (bias, rest) = take(rest, if layer.bias { outputs } else { 0 });
                params = rest;
                layer_norm_into(y, x, *epsilon.first()?, weight, bias);
            } else {
                let weight = weights(&mut params, width, outputs);
                let (bias, rest) = take(params, if layer.bias { outputs } else { 0 });
                params = rest;
                weight.affine_into(y, bias, x, steps);
            }
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
        let weight = weights(&mut { self.head_weight }, width, raw.len());
        weight.affine_into(raw, self.head_bias, features, steps);
        if let (Some(channels), Some(mean)) = (self.channels(), raw.get_mut(..self.codebook.dim)) {
            rest_into(mean, features, channels.base_rest(self.meta.dim));
        }
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
            CovarianceKind::Diagonal if cfg!(feature = "diagonal") => {
                let variance = work.get_mut(..dim)?;
                let log_det = encoder::diagonal::variance_into(spread, variance);
                (Spread::Diagonal(variance), log_det)
            }
            CovarianceKind::Cholesky if cfg!(feature = "cholesky") => {
                let factor = work.get_mut(..dim * dim)?;
                let log_det = encoder::cholesky::factor_into(spread, factor, dim);
                (Spread::Full { factor, lower: true }, log_det)
            }
            CovarianceKind::Spectral if cfg!(feature = "spectral") => {
                let (factor, rest) = work.split_at_mut_checked(dim * dim)?;
                let log_det = encoder::spectral::factor_into(spread, factor, rest, dim)?;
                (Spread::Full { factor, lower: false }, log_det)
            }
            CovarianceKind::Constant => (Spread::Identity, 0.0),
            // The reader refused a kind that is left out of this build.
            _ => return None,
        };
        Some(GaussianView { mean, spread, log_det })
    }
}

impl View<'_> {
    /// The scores of `input`; the view's numbers lie in the front of each part of the scratch. `None` when one is too short.
    #[inline(always)]
    fn look(
        &self,
        input: &[f32],
        raw: &mut [f32],
        work: &mut [f32],
        distances: &mut [f32],
        outputs: &mut [f32],
    ) -> Option<[f32; SCORES]> {
        let (x, steps) = work.split_at_mut_checked(input.len())?;
        normalize_into(x, input, self.normalize_mean, self.normalize_inverse_std);
        if self.meta.l2 {
            unit(x);
        }
        let mean = raw.get_mut(..self.codebook.dim)?;
        self.head_weight.affine_into(mean, self.head_bias, x, steps);
        rest_into(mean, x, self.rest);
        for m in mean.iter_mut() {
            *m = tame(*m);
        }
        let distances = distances.get_mut(..self.codebook.len())?;
        self.codebook.half_squares_into(mean, distances);
        let expected = self.codebook.expected_distance(distances);
        let mut energy = None;
        if let Some(decoder) = &self.decoder {
            let logits = outputs.get_mut(..decoder.outputs)?;
            decoder.decode_into(mean, logits);
            energy = read_logits(logits).map(|l| l.energy);
        }
        Some(scored(&self.tails, self.meta.form, expected.uncertainty, energy))
    }
}

/// A view's distance and energy with the score that its form makes of them, and its surprise. An energy that there is
/// not is the largest number; a real one is below 2⁵¹.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn scored(tails: &Tails, form: Form, distance: f32, energy: Option<f32>) -> [f32; SCORES] {
    let score = tails.score(form, distance, energy);
    [distance, energy.unwrap_or(f32::MAX), score, tails.view.surprise(score)]
}

impl Decoder<'_> {
    /// The outputs from what the decoder reads (E7). Always inlined: it lies on the deepest path of the stack.
    #[inline(always)]
    pub(crate) fn decode_into(&self, x: &[f32], outputs: &mut [f32]) {
        affine_into(outputs, self.weight, self.bias, x);
        for y in outputs {
            *y = tame(*y);
        }
    }
}

/// One pass over one input.
struct Pass<'m, 'a, 's> {
    model: &'m Model<'a>,
    input: &'m [f32],
    scratch: &'s mut [f32],
    plan: ScratchPlan,
    /// What to say when the scratch is shorter than the plan.
    short: InputError,
}

impl<'s> Kernel for Pass<'_, '_, 's> {
    type Output = Result<Evaluation<'s>, InputError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        // On a wide machine first without a branch per value: it does many at a time.
        if (!IS_64_BIT || self.input.iter().fold(false, |bad, x| bad | !x.is_finite()))
            && let Some(index) = self.input.iter().position(|x| !x.is_finite())
        {
            return Err(InputError::NonFinite { index });
        }
        let Self { model, input, scratch, plan, short } = self;
        // What the channels add to the scratch lies behind everything of the base.
        let (base, rest) = scratch.split_at_mut_checked(plan.base()).ok_or(short)?;
        let (rest, beside) = rest.split_at_mut_checked(plan.outputs + plan.scores).ok_or(short)?;
        let channels = model.channels();
        if let Some(channels) = channels {
            model.look(channels, input, (&mut *base, &mut *rest), &plan).ok_or(short)?;
        }
        let mut found = model.forward(input, base, &plan).ok_or(short)?;
        if let Some(channels) = channels {
            let joined = model.join(channels, found.gaussian.mean, found.expected.uncertainty, rest);
            found.joined = Some(joined.ok_or(short)?);
        }
        if let Some(codes) = model.taught_codes() {
            model.lower_by(codes, &mut found, beside).ok_or(short)?;
        }
        Ok(found)
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
        self.decoder.decode_into(self.mean, self.outputs);
    }
}
