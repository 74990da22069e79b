//! What format 1.1 adds behind its feature bit: the two channels of an answer, and further views of an input.
//!
//! The base view is the model of format 1.0. Up to three more views look at the same input, each with a norm, an affine
//! head, a codebook of constant covariance and perhaps a decoder of its own. Every view gives one score; the tails turn
//! scores into numbers that can be added ([`channels`](crate::channels) has the formulas).

use heapless::Vec;
use serde::{Deserialize, Serialize};

/// The incompatible-feature bit of this extension.
pub const CHANNELS: u32 = 1;
/// Most views of an input, with the base.
pub const MAX_VIEWS: usize = 4;
/// Most views beside the base.
pub const MAX_EXTRA_VIEWS: usize = MAX_VIEWS - 1;
/// Values that each view has in the part `tails`.
pub const TAIL_VALUES: usize = 6;

/// What a view's score is made of. The order is the encoding: append only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The distance u alone.
    #[default]
    Distance,
    /// The energy; the distance adds to it only where it is surprised.
    Joined,
    /// The energy and the distance, added.
    Sum,
    /// The energy alone.
    Energy,
}

impl Form {
    /// All of them, in the artifact's order.
    pub const ALL: [Self; 4] = [Self::Distance, Self::Joined, Self::Sum, Self::Energy];

    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Distance => "distance",
            Self::Joined => "joined",
            Self::Sum => "sum",
            Self::Energy => "energy",
        }
    }

    /// Whether the form needs the energy of a decoder's logits.
    #[must_use]
    pub const fn uses_energy(self) -> bool {
        !matches!(self, Self::Distance)
    }
}

/// What the decoder of the base view reads. The order is the encoding: append only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecoderReads {
    /// The latent mean, as in format 1.0.
    #[default]
    Latent,
    /// The input as it was given, before any normalisation: the last layer of the user's own network.
    Input,
}

impl DecoderReads {
    /// All of them, in the artifact's order.
    pub const ALL: [Self; 2] = [Self::Latent, Self::Input];

    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latent => "latent",
            Self::Input => "input",
        }
    }
}

/// What the extension says of the base view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseMeta {
    /// Whether inputs are brought to length 1, after the normalisation.
    pub l2: bool,
    /// What the view's score is made of.
    pub form: Form,
    /// What the decoder reads.
    pub decoder_reads: DecoderReads,
}

/// The decoder of a view: logits from its latent mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewDecoderMeta {
    /// How many there are.
    pub outputs: u32,
    /// Whether a bias is stored.
    pub bias: bool,
}

/// One view beside the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewMeta {
    /// Whether a normalisation is stored.
    pub normalized: bool,
    /// Whether inputs are brought to length 1, after the normalisation.
    pub l2: bool,
    /// Latent dimension.
    pub dim: u32,
    /// Number of codes.
    pub codes: u32,
    /// Temperature α, f32.
    pub alpha: [u8; 4],
    /// What the view's score is made of.
    pub form: Form,
    /// Decoder, if any.
    pub decoder: Option<ViewDecoderMeta>,
}

/// The calibration table of the ambiguity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AmbiguityMeta {
    /// Scores in the table.
    pub points: u16,
    /// Held-out inputs that they were chosen from.
    pub held_out: u32,
    /// False-alarm rate of ambiguous, f32.
    pub rate: [u8; 4],
}

/// What follows [`Meta`](super::schema::Meta) in the meta section of a file with the feature bit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelsMeta {
    /// The base view.
    pub base: BaseMeta,
    /// The views beside it.
    pub views: Vec<ViewMeta, MAX_EXTRA_VIEWS>,
    /// Calibration of the ambiguity, if any.
    pub ambiguity: Option<AmbiguityMeta>,
}

/// How many values each part of a view beside the base has, in their order in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewCounts {
    /// Mean, then inverse standard deviation: this many each.
    pub normalize: usize,
    /// Head weight, or its scales.
    pub head_weight: usize,
    /// Head bias.
    pub head_bias: usize,
    /// Code means.
    pub code_means: usize,
    /// Priors.
    pub codes: usize,
    /// Decoder weight.
    pub decoder_weight: usize,
    /// Decoder bias.
    pub decoder_bias: usize,
}

impl ViewMeta {
    /// Sizes of the view's parameters, those that are bytes aside; `None` when they overflow the machine's words.
    #[must_use]
    pub fn param_counts(&self, inputs: u32, bytes: bool) -> Option<ViewCounts> {
        let size = |a: u32| usize::try_from(a).ok();
        let (inputs, dim, codes) = (size(inputs)?, size(self.dim)?, size(self.codes)?);
        let outputs = size(self.decoder.map_or(0, |d| d.outputs))?;
        Some(ViewCounts {
            normalize: if self.normalized { inputs } else { 0 },
            head_weight: if bytes { dim } else { dim.checked_mul(inputs)? },
            head_bias: dim,
            code_means: codes.checked_mul(dim)?,
            codes,
            decoder_weight: outputs.checked_mul(dim)?,
            decoder_bias: if self.decoder.is_some_and(|d| d.bias) { outputs } else { 0 },
        })
    }
}

impl ViewCounts {
    /// Values of the view; `None` on overflow.
    #[must_use]
    pub fn total(&self) -> Option<usize> {
        let Self { normalize, head_weight, head_bias, code_means, codes, decoder_weight, decoder_bias } =
            *self;
        let parts =
            [normalize, normalize, head_weight, head_bias, code_means, codes, decoder_weight, decoder_bias];
        parts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n))
    }
}

impl ChannelsMeta {
    /// Views of an input, with the base.
    #[must_use]
    pub fn view_count(&self) -> usize {
        1 + self.views.len()
    }

    /// Values of the extension in the parameters, for a model of that many inputs; `None` on overflow.
    #[must_use]
    pub fn param_count(&self, inputs: u32, bytes: bool) -> Option<usize> {
        let table = self.ambiguity.map_or(0, |a| usize::from(a.points));
        let fixed = TAIL_VALUES * self.view_count() + 2 * table;
        self.views.iter().try_fold(fixed, |sum, v| sum.checked_add(v.param_counts(inputs, bytes)?.total()?))
    }

    /// Weights of the heads of the views beside the base, for a model of that many inputs; `None` on overflow.
    #[must_use]
    pub fn weight_count(&self, inputs: u32) -> Option<usize> {
        let inputs = usize::try_from(inputs).ok()?;
        let view = |v: &ViewMeta| usize::try_from(v.dim).ok()?.checked_mul(inputs);
        self.views.iter().try_fold(0usize, |sum, v| sum.checked_add(view(v)?))
    }

    /// Inputs of the base view's decoder.
    #[must_use]
    pub(crate) const fn decoder_inputs(&self, inputs: u32, dim: u32) -> u32 {
        match self.base.decoder_reads {
            DecoderReads::Latent => dim,
            DecoderReads::Input => inputs,
        }
    }
}
