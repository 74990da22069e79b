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
use crate::artifact::schema::{CovarianceKind, Meta, Task};
use crate::artifact::{ArtifactError, reader};
use crate::calibration::{Calibration, Rates, Verdict};
use crate::codebook::{CodebookView, Expected};
use crate::error::{InputError, SelfTestError};
use crate::gaussian::GaussianView;
use crate::isa::{Baseline, Isa};
use crate::linalg::dot::{dot, take};
use crate::linalg::jacobi;
use crate::pass::Decode;
use crate::scalar::tame;

/// What a model says of one input.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Assessment {
    /// Expected distance from the codebook, nats; larger is farther from the training data. Always
    /// finite.
    pub uncertainty: f32,
    /// Share of familiar inputs that are at least this uncertain, conservatively; `None` when the
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
}

/// The affine map from the latent mean to the outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'a> {
    pub(crate) task: Task,
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
    pub(crate) codebook: CodebookView<'a>,
    pub(crate) decoder: Option<Decoder<'a>>,
    pub(crate) calibration: Option<Calibration<'a>>,
    pub(crate) rates: Rates,
    pub(crate) self_test: SelfTest<'a>,
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
        }
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
    pub const fn set_rates(&mut self, rates: Rates) {
        self.rates = rates;
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
        for layer in &self.meta.layers {
            total += width * u64::from(layer.outputs);
            width = layer.outputs.into();
        }
        let triangle = dim * (dim + 1) / 2;
        let (encoder, code) = match self.meta.head.covariance {
            CovarianceKind::Diagonal => (dim, 2 * dim),
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
        total
            + encoder
            + self.codebook.len() as u64 * code
            + dim * self.decoder.map_or(0, |d| d.outputs as u64)
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
        self.evaluate(isa, input, scratch).map(|e| self.judge(&e.expected))
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
        if let Some(decoder) = &self.decoder {
            isa.run(Decode { decoder, mean: evaluation.gaussian.mean, outputs });
        }
        Ok(self.judge(&evaluation.expected))
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
        Ok(self.judge(&evaluation.expected))
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

    /// Uncertainty of one known-answer vector; the bits of its distances and outputs go into `digest`.
    pub(crate) fn answer(
        &self,
        isa: impl Isa,
        input: &[f32],
        scratch: &mut [f32],
        digest: &mut Crc,
    ) -> Result<f32, InputError> {
        let evaluation = self.evaluate(isa, input, scratch)?;
        for d in evaluation.distances {
            digest.update(&d.to_le_bytes());
        }
        if let Some(decoder) = &self.decoder {
            let mut rows = decoder.weight;
            for i in 0..decoder.outputs {
                let (row, after) = take(rows, self.codebook.dim);
                rows = after;
                let bias = decoder.bias.get(i).copied().unwrap_or(0.0);
                digest.update(&tame(dot(row, evaluation.gaussian.mean) + bias).to_le_bytes());
            }
        }
        Ok(evaluation.expected.uncertainty)
    }

    pub(crate) fn judge(&self, expected: &Expected) -> Assessment {
        let p_value = self.calibration.map(|table| table.p_value(expected.uncertainty));
        Assessment {
            uncertainty: expected.uncertainty,
            p_value,
            verdict: p_value.map(|p| self.rates.verdict(p)),
            nearest: expected.nearest,
            nearest_distance: expected.nearest_distance,
            saturated: expected.uncertainty >= f32::MAX,
        }
    }
}

pub(crate) fn check_len(
    expected: usize,
    found: usize,
    error: impl FnOnce(usize, usize) -> InputError,
) -> Result<(), InputError> {
    if expected == found { Ok(()) } else { Err(error(expected, found)) }
}
