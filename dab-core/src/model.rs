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

use crate::artifact::crc::Crc;
use crate::artifact::extension::Channels;
use crate::artifact::schema::{ChannelsMeta, CovarianceKind, Meta, Task, ViewMeta};
use crate::artifact::{ArtifactError, reader};
use crate::calibration::{Calibration, Rates, RatesError, Verdict};
use crate::channels::{Tails, ViewScore};
use crate::codebook::{CodebookView, Expected};
use crate::error::{InputError, SelfTestError};
use crate::gaussian::GaussianView;
use crate::isa::{Baseline, Isa};
use crate::linalg::dot::{dot, take};
use crate::linalg::jacobi;
use crate::pass::{Decode, Evaluation, Joined};
use crate::scalar::tame;

/// What a model says of one input.
#[derive(Clone, Copy, Debug, PartialEq)]
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
        base.into_iter().chain(
            channels
                .into_iter()
                .flat_map(|c| c.views(self.meta.inputs, self.meta.has_bytes()).map(|v| v.tails)),
        )
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

    /// Multiply-adds per assessment, decoder included: what the shape costs, whatever the input.
    #[must_use]
    pub fn multiply_adds(&self) -> u64 {
        let dim = self.codebook.dim as u64;
        let mut width = u64::from(self.meta.inputs);
        let mut total = 0;
        for (i, layer) in self.meta.layers.iter().enumerate() {
            total += u64::from(layer.outputs) * if self.meta.is_norm(i) { 4 } else { width };
            width = layer.outputs.into();
        }
        let triangle = dim * (dim + 1) / 2;
        let (encoder, code) = match self.meta.head.covariance {
            CovarianceKind::Diagonal => (dim, 2 * dim),
            CovarianceKind::Constant => (0, dim),
            CovarianceKind::Cholesky => (0, dim * (dim + 1) * (dim + 2) / 6 + triangle + dim),
            CovarianceKind::Spectral => {
                let sweeps = jacobi::sweeps(self.codebook.dim) as u64;
                (
                    sweeps * (dim * dim.saturating_sub(1) / 2) * 12 * dim + dim * dim,
                    dim * triangle + triangle + dim,
                )
            }
        };
        total += width * self.meta.head.covariance.raw_len(self.codebook.dim) as u64;
        total += encoder + self.codebook.len() as u64 * code;
        total += self.decoder.map_or(0, |d| d.inputs as u64 * d.outputs as u64);
        total += self.taught.map_or(0, |t| t.len() as u64 * 2 * dim);
        total + self.channels().map_or(0, |c| self.channel_multiply_adds(&c.meta))
    }

    /// What norms and further views cost.
    fn channel_multiply_adds(&self, channels: &ChannelsMeta) -> u64 {
        let inputs = u64::from(self.meta.inputs);
        let norm = |l2: bool| if l2 { 2 * inputs } else { 0 };
        let view = |v: &ViewMeta| {
            let outputs = v.decoder.map_or(0, |d| d.outputs);
            norm(v.l2) + u64::from(v.dim) * (inputs + u64::from(v.codes) + u64::from(outputs))
        };
        norm(channels.base.l2) + channels.views.iter().map(view).sum::<u64>()
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
    /// As [`Model::assess`], and when `outputs` has not exactly the length of the model's outputs.
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
    /// As [`Model::assess`], and when `views` has not exactly the length of the model's views.
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
    /// As [`Model::assess`], and when a slice has not exactly the length `codes`, `codes`, `dim`.
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

    /// Proves that file, build and floating-point environment agree: every known-answer vector of the
    /// artifact must give its recorded uncertainty, distances and outputs, bit for bit. Call it at boot.
    ///
    /// # Errors
    /// When a result differs, or `scratch` is too short.
    pub fn self_test(&self, scratch: &mut [f32]) -> Result<(), SelfTestError> {
        self.self_test_on(Baseline, scratch)
    }

    /// [`Model::self_test`] on the instructions of `isa`, which must give the same bits.
    ///
    /// # Errors
    /// As [`Model::self_test`].
    pub fn self_test_on(&self, isa: impl Isa + Copy, scratch: &mut [f32]) -> Result<(), SelfTestError> {
        let mut rest = self.self_test.inputs;
        let mut digest = Crc::new();
        for (vector, answer) in self.self_test.answers.iter().enumerate() {
            let (input, after) = take(rest, self.meta.inputs as usize);
            rest = after;
            let found = self.answer(isa, input, scratch, &mut digest).map_err(SelfTestError::Input)?;
            if found.to_bits() != answer.to_bits() {
                return Err(SelfTestError::Uncertainty { vector, expected: *answer, found });
            }
        }
        let (expected, found) = (self.self_test.digest, digest.value());
        if expected == found { Ok(()) } else { Err(SelfTestError::Digest { expected, found }) }
    }

    /// Uncertainty of one known-answer vector; the bits of everything else about it go into `digest`.
    pub(crate) fn answer(
        &self,
        isa: impl Isa,
        input: &[f32],
        scratch: &mut [f32],
        digest: &mut Crc,
    ) -> Result<f32, InputError> {
        let evaluation = self.evaluate(isa, input, scratch)?;
        let mut take_in = |x: f32| digest.update(&x.to_le_bytes());
        for d in evaluation.distances {
            take_in(*d);
        }
        if let Some(found) = evaluation.decoded() {
            for y in found {
                take_in(*y);
            }
        } else if let Some(decoder) = &self.decoder {
            let mut rows = decoder.weight;
            for i in 0..decoder.outputs {
                let (row, after) = take(rows, self.codebook.dim);
                rows = after;
                let bias = decoder.bias.get(i).copied().unwrap_or(0.0);
                take_in(tame(dot(row, evaluation.gaussian.mean) + bias));
            }
        }
        if let Some(joined) = &evaluation.joined {
            for view in joined.views().skip(1) {
                take_in(view.distance);
                if let Some(energy) = view.energy {
                    take_in(energy);
                }
            }
            take_in(joined.unfamiliarity);
            if let Some((_, ambiguity)) = joined.logits.and_then(|l| l.runner_up) {
                take_in(ambiguity);
            }
        }
        Ok(evaluation.expected.uncertainty)
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
