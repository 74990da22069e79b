//! The model as people think of it, before it is a file (feature `alloc`).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::error::ArtifactError;
use super::schema::{CovarianceKind, DecoderReads, Form, Residual, Task};
use crate::calibration::{Rates, RatesError};
use crate::channels::Tails;
use crate::layers::Activation;

/// Input normalisation: `(x − mean) / std`.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// One per input.
    pub mean: Vec<f32>,
    /// One per input, positive.
    pub std: Vec<f32>,
}

/// How the weights of dense layers and heads are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightKind {
    /// Four bytes each.
    #[default]
    Float32,
    /// One byte each, and a scale for each row: format 1.2.
    Int8,
}

/// One dense layer, or a norm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dense {
    /// ε of a LayerNorm over all values, which has one weight for each of them; `None` for a dense layer.
    pub norm: Option<f32>,
    /// Row-major `[outputs, inputs]`; `[outputs]` of a norm.
    pub weight: Vec<f32>,
    /// One per output.
    pub bias: Option<Vec<f32>>,
    /// Outputs.
    pub outputs: usize,
    /// What follows.
    pub activation: Activation,
    /// Earlier activation to add.
    pub residual: Option<Residual>,
}

/// The affine map to the raw encoder outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Row-major `[raw, features]`.
    pub weight: Vec<f32>,
    /// One per raw output.
    pub bias: Option<Vec<f32>>,
    /// Applied to the features first.
    pub activation: Activation,
    /// How the raw outputs are read.
    pub covariance: CovarianceKind,
    /// Latent dimension d.
    pub dim: usize,
}

/// The codebook.
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// `[k, d]`.
    pub means: Vec<f64>,
    /// Variances `[k, d]` for a diagonal head, covariances `[k, d, d]` for a full one; none for a constant one.
    pub covs: Vec<f64>,
    /// `[k]`, sum 1. A prior of 0 is legal.
    pub priors: Vec<f64>,
    /// Temperature α.
    pub alpha: f32,
}

/// The affine map from the latent mean to the outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderSpec {
    /// Row-major `[outputs, d]`.
    pub weight: Vec<f32>,
    /// One per output.
    pub bias: Option<Vec<f32>>,
    /// Outputs.
    pub outputs: usize,
    /// What they mean.
    pub task: Task,
}

/// Held-out scores and the rates of the verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationSpec {
    /// Scores of held-out inputs, in any order: uncertainties in nats, or unfamiliarities in a model with channels.
    pub scores: Vec<f32>,
    /// False-alarm rates.
    pub rates: Rates,
}

/// The base view's part of the channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseSpec {
    /// Whether inputs are brought to length 1, after the normalisation.
    pub l2: bool,
    /// What the view's score is made of.
    pub form: Form,
    /// What the decoder reads. If it is the input, the decoder's weight is `[outputs, inputs]`.
    pub decoder_reads: DecoderReads,
    /// Tails of the view's scores.
    pub tails: Tails,
}

impl Default for BaseSpec {
    /// No norm, the distance alone, a decoder of the latent mean, tails that are not fitted.
    fn default() -> Self {
        Self { l2: false, form: Form::Distance, decoder_reads: DecoderReads::Latent, tails: Tails::UNIT }
    }
}

/// The decoder of a view: logits from its latent mean.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewDecoder {
    /// Outputs, one per class.
    pub outputs: usize,
    /// Row-major `[outputs, dim]`.
    pub weight: Vec<f32>,
    /// One per output.
    pub bias: Option<Vec<f32>>,
}

/// One view beside the base: norm, affine head, codes of constant covariance, perhaps a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewSpec {
    /// Input normalisation.
    pub normalization: Option<Normalization>,
    /// Whether inputs are brought to length 1, after the normalisation.
    pub l2: bool,
    /// Row-major `[dim, inputs]`.
    pub head_weight: Vec<f32>,
    /// `[dim]`.
    pub head_bias: Vec<f32>,
    /// Latent dimension.
    pub dim: usize,
    /// Temperature α.
    pub alpha: f32,
    /// Code means, `[k, dim]`.
    pub means: Vec<f32>,
    /// `[k]`, sum 1.
    pub priors: Vec<f64>,
    /// Decoder, if any.
    pub decoder: Option<ViewDecoder>,
    /// What the view's score is made of.
    pub form: Form,
    /// Tails of the view's scores.
    pub tails: Tails,
}

/// Held-out ambiguities and the rate of the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct AmbiguitySpec {
    /// Ambiguities of held-out inputs, in any order.
    pub scores: Vec<f32>,
    /// False-alarm rate of ambiguous.
    pub rate: f32,
}

/// The last axis of a view that leaves axes out: how far an input lies outside of the others (format 1.3).
///
/// The last row of the view's head and its bias are c and −½‖c‖²; its other rows are orthogonal. Codes should be at 0 along it,
/// and decoders should not read it.
#[derive(Clone, Debug, PartialEq)]
pub struct RestSpec {
    /// Which view, 0 is the base.
    pub view: usize,
    /// `[dim − 1]`: one over the length of each other row of the head.
    pub scales: Vec<f32>,
    /// What the length is multiplied by.
    pub gain: f32,
}

/// What the distances from the codes of a view are multiplied by (format 1.4). The covariance of such a view is constant.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSpec {
    /// Which view, 0 is the base.
    pub view: usize,
    /// `[k]`, positive.
    pub precisions: Vec<f32>,
}

/// What makes a model of format 1.1: two channels, and up to three views beside the base.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelsSpec {
    /// The base view.
    pub base: BaseSpec,
    /// The other views, up to three.
    pub views: Vec<ViewSpec>,
    /// Calibration of the ambiguity, if any.
    pub ambiguity: Option<AmbiguitySpec>,
    /// Views whose last axis is a rest, each at most once, in the order of the views: format 1.3.
    pub rests: Vec<RestSpec>,
    /// Views with local precisions, each at most once, in the order of the views: format 1.4.
    pub locals: Vec<LocalSpec>,
}

/// A whole model, before it is a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Values per input.
    pub inputs: usize,
    /// Input normalisation.
    pub normalization: Option<Normalization>,
    /// Dense layers, first one first.
    pub layers: Vec<Dense>,
    /// The encoder's head.
    pub head: Head,
    /// The codebook.
    pub codes: Codes,
    /// Decoder, if any.
    pub decoder: Option<DecoderSpec>,
    /// Calibration, if any.
    pub calibration: Option<CalibrationSpec>,
    /// Inputs of the known-answer vectors, up to 8; when empty, four are made up.
    pub self_test: Vec<Vec<f32>>,
    /// Channels and further views: format 1.1. Without them the file is one of format 1.0.
    pub channels: Option<ChannelsSpec>,
    /// How weights are stored.
    pub weights: WeightKind,
    /// Names, units, provenance: key–value strings for people and host tools.
    pub info: Vec<(String, String)>,
}

impl Spec {
    /// A head and its codes alone: nothing before them and nothing behind them, weights of four bytes.
    #[must_use]
    pub const fn new(inputs: usize, head: Head, codes: Codes) -> Self {
        Self {
            inputs,
            normalization: None,
            layers: Vec::new(),
            head,
            codes,
            decoder: None,
            calibration: None,
            self_test: Vec::new(),
            channels: None,
            weights: WeightKind::Float32,
            info: Vec::new(),
        }
    }
}

/// Why a [`Spec`] is not a model. `part` is the tensor's name as `dab pack` reads it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SpecError {
    /// A tensor has the wrong number of values.
    Shape {
        /// Which tensor.
        part: String,
        /// Values that there should be.
        expected: usize,
        /// Values that there are.
        found: usize,
    },
    /// A value is NaN or infinite.
    NonFinite {
        /// Which tensor.
        part: String,
        /// Index within it.
        index: usize,
    },
    /// A value is too large (2⁵⁰) or has the wrong sign.
    OutOfRange {
        /// Which tensor.
        part: String,
        /// Index within it.
        index: usize,
        /// The value.
        value: f64,
    },
    /// The covariance of a code is not symmetric.
    NotSymmetric {
        /// Which code.
        code: usize,
    },
    /// The covariance of a code is not positive definite, or too nearly singular.
    NotPositiveDefinite {
        /// Which code.
        code: usize,
    },
    /// The priors do not sum to 1.
    PriorSum {
        /// What they sum to.
        sum: f64,
    },
    /// More layers or known-answer vectors than the format holds.
    TooMany {
        /// Of what.
        part: String,
        /// The limit.
        max: usize,
        /// How many there are.
        found: usize,
    },
    /// The covariance is constant, and the model has no channels: format 1.0 does not know it.
    ConstantCovariance,
    /// A false-alarm rate does not fit the held-out scores.
    Rates(RatesError),
    /// The file would be larger than 4 GiB.
    TooLarge,
    /// The reader refuses the result.
    Refused(ArtifactError),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { part, expected, found } => {
                write!(f, "{part} has {found} values, expected {expected}")
            }
            Self::NonFinite { part, index } => write!(f, "{part}[{index}] is not a finite number"),
            Self::OutOfRange { part, index, value } => write!(f, "{part}[{index}] = {value} is out of range"),
            Self::NotSymmetric { code } => write!(f, "codes.cov[{code}] is not symmetric"),
            Self::NotPositiveDefinite { code } => write!(f, "codes.cov[{code}] is not positive definite"),
            Self::PriorSum { sum } => write!(f, "codes.prior sums to {sum}, not to 1"),
            Self::TooMany { part, max, found } => write!(f, "{found} {part}, the format holds {max}"),
            Self::ConstantCovariance => {
                write!(f, "a constant covariance needs a model with channels (format 1.1)")
            }
            Self::Rates(e) => e.fmt(f),
            Self::TooLarge => write!(f, "the artifact would be larger than 4 GiB"),
            Self::Refused(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for SpecError {}
