//! The loaded artifact and its entry points: one input in, an [`Assessment`] out.
//!
//! ```text
//! input → normalise → dense layers → head → Gaussian → distances → uncertainty → p-value → verdict
//!                                             └→ decoder → outputs
//! ```
//!
//! A `Model` borrows the artifact's bytes and owns no numbers. The caller lends scratch memory for each
//! call; its size is known from the model and its contents mean nothing between calls. After
//! [`Model::from_bytes`] nothing here can panic, and only the caller's arguments can be wrong.

mod cost;
mod self_test;

use crate::artifact::extension::Channels;
use crate::artifact::schema::{ChannelsMeta, CovarianceKind, MONITOR_WORDS, Meta, Task};
use crate::artifact::{ArtifactError, reader};
use crate::calibration::{Calibration, Rates, RatesError, Verdict};
use crate::channels::{Tails, ViewScore};
use crate::codebook::{CodebookView, Expected};
use crate::error::InputError;
use crate::gaussian::GaussianView;
use crate::isa::{Baseline, Isa};
use crate::pass::{Decode, Evaluation, Joined};

/// What a model says of one input.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Assessment {
    /// Expected distance from the codebook, nats; larger is farther from the training data. Always
    /// finite.
    pub uncertainty: f32,
    /// Share of familiar inputs whose [score](Assessment::score) is at least this large, conservatively; `None` when the
    /// artifact has no calibration table.
    pub p_value: Option<f32>,
    /// The verdict at the false-alarm rates of the model; `None` without a calibration table.
    pub verdict: Option<Verdict>,
    /// The closest code with a positive prior.
    pub nearest: usize,
    /// Its distance, nats.
    pub nearest_distance: f32,
    /// Whether the uncertainty is at the largest finite number because it overflowed.
    pub saturated: bool,
    /// Unfamiliarity U of all views together, at least 0 and finite; `None` in a model without channels.
    pub unfamiliarity: Option<f32>,
    /// Ambiguity A between the two likeliest classes: ln of the odds against the class; may be negative. `None` without
    /// channels, or without a decoder of at least two classes.
    pub ambiguity: Option<f32>,
    /// Share of familiar inputs that are at least this ambiguous, conservatively; `None` without a table of them.
    pub ambiguity_p: Option<f32>,
    /// The likeliest class, in a model with channels and a decoder of classes.
    pub class: Option<usize>,
    /// The second likeliest class, where there is an ambiguity.
    pub runner_up: Option<usize>,
    /// The view that is surprised most, 0 is the base; `None` without channels.
    pub view: Option<usize>,
}

impl Assessment {
    /// The score that p-value and verdict judge, and that a threshold or a monitor is compared with: the unfamiliarity
    /// of a model with channels, the uncertainty of one without.
    #[must_use]
    pub fn score(&self) -> f32 {
        self.unfamiliarity.unwrap_or(self.uncertainty)
    }
}

/// Sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Shape {
    /// Values per input.
    pub inputs: usize,
    /// Dense layers before the head.
    pub layers: usize,
    /// Values that enter the head.
    pub features: usize,
    /// Kind of covariance.
    pub covariance: CovarianceKind,
    /// Latent dimension d.
    pub dim: usize,
    /// Codes k.
    pub codes: usize,
    /// Values that the decoder gives; 0 without one.
    pub outputs: usize,
    /// What they mean; `None` without a decoder.
    pub task: Option<Task>,
    /// Views of an input, the base included: 1 to 4.
    pub views: usize,
}

/// The affine map from the latent mean, or from the input, to the outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'a> {
    pub(crate) task: Task,
    /// Values that it reads: latent dimensions, or the model's inputs.
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) weight: &'a [f32],
    pub(crate) bias: &'a [f32],
}

/// Known-answer vectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SelfTest<'a> {
    pub(crate) inputs: &'a [f32],
    pub(crate) answers: &'a [f32],
    pub(crate) digest: u32,
}

/// A checked view over the bytes of an artifact.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    pub(crate) meta: Meta,
    pub(crate) normalize_mean: &'a [f32],
    pub(crate) normalize_inverse_std: &'a [f32],
    pub(crate) layer_params: &'a [f32],
    pub(crate) head_weight: &'a [f32],
    pub(crate) head_bias: &'a [f32],
    /// Weights of the dense layers and the head, where they are bytes; else none.
    pub(crate) weights: &'a [i8],
    pub(crate) codebook: CodebookView<'a>,
    pub(crate) decoder: Option<Decoder<'a>>,
    pub(crate) calibration: Option<Calibration<'a>>,
    pub(crate) rates: Rates,
    pub(crate) self_test: SelfTest<'a>,
    pub(crate) channels: Option<Channels<'a>>,
    /// Codes that were taught after the training.
    pub(crate) taught: Option<CodebookView<'a>>,
    /// The words of the monitor that was tuned for the model, checked.
    pub(crate) monitor: Option<&'a [u32; MONITOR_WORDS]>,
    /// The info section, unchecked.
    pub(crate) info: &'a [u8],
}

impl<'a> Model<'a> {
    /// Checks `bytes` once and for all. The buffer must start at a multiple of four bytes.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes, by name.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, ArtifactError> {
        reader::read(bytes)
    }

    /// Sizes of the model.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            inputs: self.meta.inputs as usize,
            layers: self.meta.layers.len(),
            features: self.meta.features() as usize,
            covariance: self.meta.head.covariance,
            dim: self.codebook.dim,
            codes: self.codebook.len(),
            outputs: self.decoder.map_or(0, |d| d.outputs),
            task: self.decoder.map(|d| d.task),
            views: self.channels().map_or(1, |c| c.meta.view_count()),
        }
    }

    /// The extension of a model of format 1.1. Without the crate's feature no model has one, and the compiler knows it.
    #[inline(always)]
    pub(crate) fn channels(&self) -> Option<&Channels<'a>> {
        if cfg!(feature = "channels") { self.channels.as_ref() } else { None }
    }

    /// What the meta section says of channels and views; `None` in a model without them.
    #[must_use]
    pub fn channels_meta(&self) -> Option<&ChannelsMeta> {
        self.channels().map(|c| &c.meta)
    }

    /// The tails of every view, the base first; none in a model without channels.
    pub fn tails(&self) -> impl Iterator<Item = Tails> + '_ {
        let channels = self.channels();
        let base = channels.map(Channels::base_tails);
        base.into_iter().chain(channels.into_iter().flat_map(|c| c.views(&self.meta).map(|v| v.tails)))
    }

    /// Whether the last axis of a view, 0 is the base, is how far an input lies outside of the others.
    #[must_use]
    pub fn has_rest(&self, view: usize) -> bool {
        self.channels().is_some_and(|c| view < c.meta.view_count() && c.rests.views >> view & 1 == 1)
    }

    /// Whether distances from the codes of a view, 0 is the base, count in units of how densely training rows lie there.
    #[must_use]
    pub fn is_local(&self, view: usize) -> bool {
        self.channels().is_some_and(|c| view < c.meta.view_count() && c.locals.views >> view & 1 == 1)
    }

    /// Whether a view, 0 is the base, brings the columns of its inputs to one scale; one that only centres them does not.
    #[must_use]
    pub fn scales_columns(&self, view: usize) -> bool {
        let mut beside = self.channels().into_iter().flat_map(|c| c.views(&self.meta));
        let scales = match view.checked_sub(1) {
            None => Some(self.normalize_inverse_std),
            Some(view) => beside.nth(view).map(|view| view.normalize_inverse_std),
        };
        scales.is_some_and(|scales| scales.iter().any(|&scale| scale != 1.0))
    }

    /// The calibration table of the ambiguity and the false-alarm rate of [`Verdict::Ambiguous`], if there are any.
    #[must_use]
    pub fn ambiguity_calibration(&self) -> Option<(&Calibration<'a>, f32)> {
        self.channels()?.ambiguity.as_ref().map(|(table, rate)| (table, *rate))
    }

    /// The meta section: layers, activations and flags.
    #[must_use]
    pub const fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The codes.
    #[must_use]
    pub const fn codebook(&self) -> &CodebookView<'a> {
        &self.codebook
    }

    /// The codes that the model was taught after its training (`dab teach`), with counts for priors; `None` in most models.
    #[must_use]
    pub const fn taught(&self) -> Option<&CodebookView<'a>> {
        self.taught.as_ref()
    }

    /// The calibration table, if there is one.
    #[must_use]
    pub const fn calibration(&self) -> Option<&Calibration<'a>> {
        self.calibration.as_ref()
    }

    /// The false-alarm rates at which verdicts are given.
    #[must_use]
    pub const fn rates(&self) -> Rates {
        self.rates
    }

    /// Gives verdicts at other false-alarm rates than the artifact's.
    ///
    /// # Errors
    /// Without a calibration table, or when the held-out inputs behind it are too few for the rate of unfamiliar: such a
    /// model would call nothing unfamiliar. The rates stay as they were.
    pub fn set_rates(&mut self, rates: Rates) -> Result<(), RatesError> {
        let table = self.calibration.as_ref().ok_or(RatesError::NotCalibrated)?;
        table.check_reach(rates.unfamiliar())?;
        self.rates = rates;
        Ok(())
    }

    /// Calls inputs ambiguous at another false-alarm rate than the artifact's.
    ///
    /// # Errors
    /// Without a table of ambiguities, unless `0 < rate < 1`, or when the held-out inputs are too few for the rate.
    pub fn set_ambiguity_rate(&mut self, rate: f32) -> Result<(), RatesError> {
        let channels = self.channels.as_mut().and_then(|c| c.ambiguity.as_mut());
        let (table, current) = channels.ok_or(RatesError::NotCalibrated)?;
        Rates::new(rate, rate)?;
        table.check_reach(rate)?;
        *current = rate;
        Ok(())
    }

    /// Floats of scratch that every call needs.
    #[must_use]
    pub fn scratch_len(&self) -> usize {
        self.scratch_plan().total()
    }

    /// How far `input` lies from the training data.
    ///
    /// # Errors
    /// When `input` has the wrong length or a non-finite value, or `scratch` is too short.
    pub fn assess(&self, input: &[f32], scratch: &mut [f32]) -> Result<Assessment, InputError> {
        self.assess_on(Baseline, input, scratch)
    }

    /// [`Model::assess`] on the instructions of `isa`: the same bits.
    ///
    /// # Errors
    /// As [`Model::assess`].
    pub fn assess_on(
        &self,
        isa: impl Isa,
        input: &[f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        self.evaluate(isa, input, scratch).map(|e| self.judge(&e))
    }

    /// The assessment, and the decoder's outputs: means (regression) or logits (classification,
    /// [`softmax`](crate::layers::softmax) makes probabilities of them).
    ///
    /// # Errors
    /// As [`Model::assess`], and when `outputs` does not have exactly the length of the model's outputs.
    pub fn predict_into(
        &self,
        input: &[f32],
        outputs: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        self.predict_on(Baseline, input, outputs, scratch)
    }

    /// [`Model::predict_into`] on the instructions of `isa`: the same bits.
    ///
    /// # Errors
    /// As [`Model::predict_into`].
    pub fn predict_on(
        &self,
        isa: impl Isa + Copy,
        input: &[f32],
        outputs: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        check_len(self.decoder.map_or(0, |d| d.outputs), outputs.len(), |expected, found| {
            InputError::OutputLength { expected, found }
        })?;
        let evaluation = self.evaluate(isa, input, scratch)?;
        if let Some(found) = evaluation.decoded() {
            for (out, y) in outputs.iter_mut().zip(found) {
                *out = *y;
            }
        } else if let Some(decoder) = &self.decoder {
            isa.run(Decode { decoder, mean: evaluation.gaussian.mean, outputs });
        }
        Ok(self.judge(&evaluation))
    }

    /// The assessment, and what every view says, the base first: distance, energy, score and surprise. For hosts that
    /// fit tails, and for people who ask which view was alarmed. In a model without channels the one view's score is its
    /// distance, and its surprise 0.
    ///
    /// # Errors
    /// As [`Model::assess`], and when `views` does not have exactly the length of the model's views.
    pub fn views_into(
        &self,
        input: &[f32],
        views: &mut [ViewScore],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        check_len(self.shape().views, views.len(), |expected, found| InputError::OutputLength {
            expected,
            found,
        })?;
        let evaluation = self.evaluate(Baseline, input, scratch)?;
        let distance = evaluation.expected.uncertainty;
        let alone = ViewScore { distance, score: distance, ..ViewScore::default() };
        let joined = evaluation.joined.as_ref().into_iter().flat_map(Joined::views);
        for (out, view) in views.iter_mut().zip(joined.chain([alone])) {
            *out = view;
        }
        Ok(self.judge(&evaluation))
    }

    /// Why the input is as far as it is: the distance to each code (nats), the assignment to each code
    /// (sum 1), and what each latent dimension contributes to the uncertainty (nats, sum u).
    ///
    /// # Errors
    /// As [`Model::assess`], and when a slice does not have exactly the length `codes`, `codes`, `dim`.
    pub fn explain_into(
        &self,
        input: &[f32],
        distances: &mut [f32],
        assignment: &mut [f32],
        dimensions: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        let codes = self.codebook.len();
        let wrong = |expected, found| InputError::OutputLength { expected, found };
        check_len(codes, distances.len(), wrong)?;
        check_len(codes, assignment.len(), wrong)?;
        check_len(self.codebook.dim, dimensions.len(), wrong)?;
        let evaluation = self.evaluate(Baseline, input, scratch)?;
        for (out, d) in distances.iter_mut().zip(evaluation.distances) {
            *out = *d;
        }
        self.codebook.assignment_into(distances, assignment);
        self.codebook.per_dimension_into(&evaluation.gaussian, assignment, dimensions);
        Ok(self.judge(&evaluation))
    }

    /// The Gaussian that the encoder makes of `input`; it lies in `scratch`.
    ///
    /// # Errors
    /// As [`Model::assess`].
    pub fn encode<'s>(&self, input: &[f32], scratch: &'s mut [f32]) -> Result<GaussianView<'s>, InputError> {
        self.evaluate(Baseline, input, scratch).map(|e| e.gaussian)
    }

    pub(crate) fn judge(&self, evaluation: &Evaluation<'_>) -> Assessment {
        let Expected { uncertainty, nearest, nearest_distance, .. } = evaluation.expected;
        let mut found = Assessment {
            uncertainty,
            p_value: None,
            verdict: None,
            nearest,
            nearest_distance,
            saturated: uncertainty >= f32::MAX,
            unfamiliarity: None,
            ambiguity: None,
            ambiguity_p: None,
            class: None,
            runner_up: None,
            view: None,
        };
        let mut ambiguous = false;
        if let (Some(channels), Some(joined)) = (self.channels(), &evaluation.joined) {
            found.unfamiliarity = Some(joined.unfamiliarity);
            found.view = Some(joined.alarmed());
            found.class = joined.logits.map(|l| l.class);
            if let Some((runner_up, ambiguity)) = joined.logits.and_then(|l| l.runner_up) {
                (found.runner_up, found.ambiguity) = (Some(runner_up), Some(ambiguity));
                if let Some((table, rate)) = &channels.ambiguity {
                    let p = table.p_value(ambiguity);
                    found.ambiguity_p = Some(p);
                    ambiguous = p <= *rate;
                }
            }
        }
        found.p_value = self.calibration.map(|table| table.p_value(found.score()));
        found.verdict = found.p_value.map(|p| match self.rates.verdict(p) {
            Verdict::Familiar if ambiguous => Verdict::Ambiguous,
            verdict => verdict,
        });
        found
    }
}

pub(crate) fn check_len(
    expected: usize,
    found: usize,
    error: impl FnOnce(usize, usize) -> InputError,
) -> Result<(), InputError> {
    if expected == found { Ok(()) } else { Err(error(expected, found)) }
}
