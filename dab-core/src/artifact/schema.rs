//! What is in an artifact: the wire structs, the limits, and the order of the parameters.
//!
//! The device reads exactly these; the writer encodes exactly these. Never edit a released struct:
//! postcard does not describe itself. Add a section and a feature bit, or a new major version.
//!
//! Floats are `[u8; 4]` here (little-endian): a bare `f32` field keeps a panic path in postcard.

use heapless::Vec;
use serde::{Deserialize, Serialize};

pub use super::channels::{
    AmbiguityMeta, BaseMeta, CHANNELS, ChannelsMeta, DecoderReads, Form, MAX_EXTRA_VIEWS, MAX_VIEWS,
    TAIL_VALUES, ViewCounts, ViewDecoderMeta, ViewMeta,
};
pub use super::monitor::{MONITOR, MONITOR_SCHEMA, MONITOR_WORDS};
pub use super::some_views::{LOCAL, LOCAL_SCHEMA, REST, REST_SCHEMA};
pub use super::taught::{TAUGHT, TAUGHT_SCHEMA};
use crate::layers::Activation;
use crate::linalg::jacobi;
use crate::linalg::triangle::packed_len;

/// First bytes of every artifact: not text, and a text-mode transfer breaks it visibly.
pub const MAGIC: [u8; 8] = *b"\x89DAB\r\n\x1a\n";
/// Format version that this crate writes; it reads every minor version of this major one.
pub const MAJOR: u16 = 1;
/// Newest minor version that this crate knows. It is written only for a model that needs it: a file without a feature
/// bit says 0, and is the file that format 1.0 has.
pub const MINOR: u16 = 4;
/// The minor version of a file with these feature bits: the oldest one that has them all.
#[cfg(feature = "alloc")]
pub(crate) const fn minor(features: u32) -> u16 {
    match features {
        0 => 0,
        CHANNELS => 1,
        _ if features & LOCAL != 0 => MINOR,
        _ if features & REST != 0 => 3,
        _ => 2,
    }
}
/// Incompatible-feature bit of format 1.2: some layers are LayerNorms.
pub const NORMS: u32 = 2;
/// Incompatible-feature bit of format 1.2: the weights of dense layers and heads are bytes.
pub const INT8: u32 = 4;
/// Incompatible-feature bits that this crate knows.
pub const KNOWN_INCOMPATIBLE: u32 =
    if cfg!(feature = "channels") { CHANNELS | TAUGHT | REST | LOCAL } else { 0 }
        | if cfg!(feature = "layer-norm") { NORMS } else { 0 }
        | if cfg!(feature = "int8") { INT8 } else { 0 }
        | if cfg!(feature = "monitor") { MONITOR } else { 0 };
/// Bytes before the first section.
pub const HEADER_LEN: usize = 64;
/// The parameters start at a multiple of this.
pub const PARAMS_ALIGN: usize = 16;

/// Most dense layers before the head.
pub const MAX_LAYERS: usize = 16;
/// Most inputs, and outputs of a layer or the decoder.
pub const MAX_WIDTH: u32 = 1 << 16;
/// Most codes.
pub const MAX_CODES: u32 = 1 << 16;
/// Largest latent dimension with diagonal or constant covariances.
pub const MAX_DIM_DIAGONAL: u32 = 1024;
/// Largest latent dimension with full covariances: what the eigen-decomposition is measured for.
pub const MAX_DIM_FULL: u32 = jacobi::MAX_DIM as u32;
/// Most scores in the calibration table.
pub const MAX_CALIBRATION: u16 = 256;
/// Most known-answer vectors.
pub const MAX_SELF_TESTS: u8 = 8;

/// The meta fields of format 1.0.
macro_rules! meta_fields {
    () => {
        "inputs:u32 normalized:bool \
        layers:[outputs:u32 bias:bool activation:enum residual:?(source:u8 before_activation:bool)] \
        head:(activation:enum bias:bool covariance:enum) dim:u32 codes:u32 alpha:f32 \
        decoder:?(task:enum outputs:u32 bias:bool) \
        calibration:?(points:u16 held_out:u32 doubtful:f32 unfamiliar:f32) \
        self_test:(vectors:u8 digest:u32le) "
    };
}

/// The parts of format 1.0.
macro_rules! parts {
    () => {
        "normalize.mean normalize.inverse_std (layer.weight layer.bias)* head.weight head.bias \
        codes.mean codes.precision codes.log_det codes.prior decoder.weight decoder.bias \
        calibration.score calibration.p_value self_test.input self_test.uncertainty"
    };
}

/// The structs below in words; its hash is the schema key in the header.
pub const SCHEMA: &str = concat!(meta_fields!(), "params:[", parts!(), "]");

/// [`SCHEMA`] of a file with the feature bit [`CHANNELS`].
pub const CHANNELS_SCHEMA: &str = concat!(
    meta_fields!(),
    "channels:(base:(l2:bool form:enum decoder_reads:enum) \
    views:[normalized:bool l2:bool dim:u32 codes:u32 alpha:f32 form:enum decoder:?(outputs:u32 bias:bool)] \
    ambiguity:?(points:u16 held_out:u32 rate:f32)) params:[",
    parts!(),
    " (tails.u tails.energy tails.view)* (views.normalize.mean views.normalize.inverse_std views.head.weight \
    views.head.bias views.codes.mean views.codes.prior views.decoder.weight views.decoder.bias)* \
    ambiguity.score ambiguity.p_value]"
);

/// FNV-1a of [`SCHEMA`].
pub const SCHEMA_KEY: u64 = fnv_1a(SCHEMA);
/// FNV-1a of [`CHANNELS_SCHEMA`].
pub const CHANNELS_SCHEMA_KEY: u64 = fnv_1a(CHANNELS_SCHEMA);

/// What follows [`SCHEMA`] or [`CHANNELS_SCHEMA`] in the schema of a file with the feature bit [`NORMS`].
pub const NORMS_SCHEMA: &str = " norms:u16 params:[layer.epsilon]";
/// What follows all that in the schema of a file with the feature bit [`INT8`].
pub const INT8_SCHEMA: &str = " params:[layer.scale head.scale views.head.scale weights:[i8]]";

/// The schema keys by the three lowest feature bits of a file: [`schema_key`] of files without more.
pub const SCHEMA_KEYS: [u64; 8] = {
    let (mut keys, mut features) = ([0; 8], 0);
    while features < keys.len() {
        let mut key = if features as u32 & CHANNELS != 0 { CHANNELS_SCHEMA_KEY } else { SCHEMA_KEY };
        if features as u32 & NORMS != 0 {
            key = fnv_1a_from(key, NORMS_SCHEMA);
        }
        if features as u32 & INT8 != 0 {
            key = fnv_1a_from(key, INT8_SCHEMA);
        }
        keys[features] = key;
        features += 1;
    }
    keys
};

/// The schema key of a file with these feature bits: rests continue the hash, then local precisions, what was taught, and the
/// monitor.
#[must_use]
pub fn schema_key(features: u32) -> u64 {
    let mut key = SCHEMA_KEYS.get((features & 7) as usize).copied().unwrap_or(0);
    if cfg!(feature = "channels") && features & REST != 0 {
        key = fnv_1a_from(key, REST_SCHEMA);
    }
    if cfg!(feature = "channels") && features & LOCAL != 0 {
        key = fnv_1a_from(key, LOCAL_SCHEMA);
    }
    if cfg!(feature = "channels") && features & TAUGHT != 0 {
        key = fnv_1a_from(key, TAUGHT_SCHEMA);
    }
    if cfg!(feature = "monitor") && features & MONITOR != 0 {
        key = fnv_1a_from(key, MONITOR_SCHEMA);
    }
    key
}

const fn fnv_1a(text: &str) -> u64 {
    fnv_1a_from(0xcbf2_9ce4_8422_2325, text)
}

/// FNV-1a of a text whose beginning has the hash `hash`.
pub(crate) const fn fnv_1a_from(mut hash: u64, text: &str) -> u64 {
    let (bytes, mut i) = (text.as_bytes(), 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

/// How the head's outputs describe a covariance. The order is the encoding: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CovarianceKind {
    /// One standard deviation for each dimension, softplus of a raw value (method.md E1).
    Diagonal,
    /// The eigenvalues of a symmetric matrix of raw values become standard deviations (method.md E2).
    Spectral,
    /// A triangular factor, its diagonal made positive by softplus (method.md E3).
    Cholesky,
    /// The identity, for the encoder and for every code: the head gives the mean alone. Only in a file with channels.
    Constant,
}

impl CovarianceKind {
    /// All of them, in the artifact's order.
    pub const ALL: [Self; 4] = [Self::Diagonal, Self::Spectral, Self::Cholesky, Self::Constant];

    /// Lower-case name, as `dab pack` reads it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Diagonal => "diagonal",
            Self::Spectral => "spectral",
            Self::Cholesky => "cholesky",
            Self::Constant => "constant",
        }
    }

    /// Outputs of the head: mean and spread.
    #[must_use]
    pub const fn raw_len(self, dim: usize) -> usize {
        dim + self.precision_len(dim)
    }

    /// Values that a code stores of its precision.
    #[must_use]
    pub const fn precision_len(self, dim: usize) -> usize {
        match self {
            Self::Diagonal => dim,
            Self::Spectral | Self::Cholesky => packed_len(dim),
            Self::Constant => 0,
        }
    }

    /// Log-determinants that a codebook of `codes` codes stores.
    #[must_use]
    pub const fn log_det_len(self, codes: usize) -> usize {
        match self {
            Self::Diagonal | Self::Spectral | Self::Cholesky => codes,
            Self::Constant => 0,
        }
    }
}

/// What the decoder's outputs mean. The order is the encoding: append only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Task {
    /// Means of normal distributions.
    Regression,
    /// Logits, one per class.
    Classification,
}

/// An earlier activation that a layer adds to its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residual {
    /// Which: 0 is the normalised input, `n` the output of the `n`-th layer (counting from 1).
    pub source: u8,
    /// Whether it is added before the activation function rather than after it.
    pub before_activation: bool,
}

/// One dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerMeta {
    /// Outputs.
    pub outputs: u32,
    /// Whether a bias is stored.
    pub bias: bool,
    /// What follows the affine map.
    pub activation: Activation,
    /// Earlier activation to add.
    pub residual: Option<Residual>,
}

/// The affine map to the raw encoder outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadMeta {
    /// Applied to the features before the head.
    pub activation: Activation,
    /// Whether a bias is stored.
    pub bias: bool,
    /// How the outputs are read.
    pub covariance: CovarianceKind,
}

/// The affine map from the latent mean to the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecoderMeta {
    /// What the outputs mean.
    pub task: Task,
    /// How many there are.
    pub outputs: u32,
    /// Whether a bias is stored.
    pub bias: bool,
}

/// The calibration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationMeta {
    /// Scores in the table.
    pub points: u16,
    /// Held-out inputs that they were chosen from.
    pub held_out: u32,
    /// False-alarm rate of doubtful or worse, f32.
    pub doubtful: [u8; 4],
    /// False-alarm rate of unfamiliar, f32.
    pub unfamiliar: [u8; 4],
}

/// The known-answer vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfTestMeta {
    /// How many.
    pub vectors: u8,
    /// CRC-32C, little-endian, of the bits of every distance and output of every vector.
    pub digest: [u8; 4],
}

/// The meta section: everything a device needs to know besides the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Values per input.
    pub inputs: u32,
    /// Whether a normalisation is stored.
    pub normalized: bool,
    /// Dense layers, first one first.
    pub layers: Vec<LayerMeta, MAX_LAYERS>,
    /// The encoder's head.
    pub head: HeadMeta,
    /// Latent dimension d.
    pub dim: u32,
    /// Number of codes k.
    pub codes: u32,
    /// Temperature α, f32.
    pub alpha: [u8; 4],
    /// Decoder, if any.
    pub decoder: Option<DecoderMeta>,
    /// Calibration, if any.
    pub calibration: Option<CalibrationMeta>,
    /// Known answers.
    pub self_test: SelfTestMeta,
    /// Bit n: layer n is a LayerNorm. It follows everything else in a file with the feature bit [`NORMS`].
    #[serde(skip)]
    pub norms: u16,
    /// Whether the file has the feature bit [`INT8`].
    #[serde(skip)]
    pub int8: bool,
}

/// How many values each part of the parameters has, in their order in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamCounts {
    /// Mean, then inverse standard deviation: this many each.
    pub normalize: usize,
    /// All weights (or scales, where the weights are bytes) and biases of all layers.
    pub layers: usize,
    /// Head weight, or its scales.
    pub head_weight: usize,
    /// Head bias.
    pub head_bias: usize,
    /// Code means.
    pub code_means: usize,
    /// Code precisions.
    pub code_precisions: usize,
    /// Log-determinants.
    pub code_log_dets: usize,
    /// Priors.
    pub codes: usize,
    /// Decoder weight.
    pub decoder_weight: usize,
    /// Decoder bias.
    pub decoder_bias: usize,
    /// Scores, then p-values: this many each.
    pub calibration: usize,
    /// Inputs of all known-answer vectors.
    pub self_test_inputs: usize,
    /// Their uncertainties.
    pub self_test_answers: usize,
    /// Everything that a file with channels has behind these.
    pub channels: usize,
    /// Weights that are bytes: those of all dense layers, of the head, and of the heads of further views.
    pub weights: usize,
}

impl Meta {
    /// Inputs of the head: outputs of the last layer, or the model's own.
    #[must_use]
    pub fn features(&self) -> u32 {
        self.layers.last().map_or(self.inputs, |layer| layer.outputs)
    }

    /// Whether layer `layer` is a LayerNorm.
    #[must_use]
    pub fn is_norm(&self, layer: usize) -> bool {
        cfg!(feature = "layer-norm")
            && layer < MAX_LAYERS
            && self.norms & 1u16.checked_shl(layer as u32).unwrap_or(0) != 0
    }

    /// Whether the weights of dense layers and heads are bytes.
    #[must_use]
    pub const fn has_bytes(&self) -> bool {
        // A program without one of the two kinds has no code for it.
        cfg!(feature = "int8") && (self.int8 || !cfg!(feature = "float32"))
    }

    /// Sizes of the parameters; `None` when they overflow the machine's words.
    #[must_use]
    pub fn param_counts(&self, channels: Option<&ChannelsMeta>) -> Option<ParamCounts> {
        let product = |a: u32, b: usize| usize::try_from(a).ok()?.checked_mul(b);
        let size = |a: u32| usize::try_from(a).ok();
        let (inputs, dim, codes) = (size(self.inputs)?, size(self.dim)?, size(self.codes)?);
        let (mut layers, mut weights) = (0usize, 0usize);
        let mut width = inputs;
        for (i, layer) in self.layers.iter().enumerate() {
            let outputs = size(layer.outputs)?;
            let product = outputs.checked_mul(width)?;
            layers = layers.checked_add(match (self.is_norm(i), self.has_bytes()) {
                (true, _) => outputs.checked_add(1)?,
                (false, true) => {
                    weights = weights.checked_add(product)?;
                    outputs
                }
                (false, false) => product,
            })?;
            layers = layers.checked_add(if layer.bias { outputs } else { 0 })?;
            width = outputs;
        }
        let raw = self.head.covariance.raw_len(dim);
        let mut head_weight = raw.checked_mul(width)?;
        if self.has_bytes() {
            weights = weights.checked_add(head_weight)?;
            weights = weights.checked_add(channels.map_or(Some(0), |c| c.weight_count(self.inputs))?)?;
            head_weight = raw;
        }
        let decoder = self.decoder.map_or(0, |d| d.outputs);
        let decoder_inputs = size(channels.map_or(self.dim, |c| c.decoder_inputs(self.inputs, self.dim)))?;
        let vectors = usize::from(self.self_test.vectors);
        Some(ParamCounts {
            normalize: if self.normalized { inputs } else { 0 },
            layers,
            head_weight,
            head_bias: if self.head.bias { raw } else { 0 },
            code_means: product(self.codes, dim)?,
            code_precisions: product(self.codes, self.head.covariance.precision_len(dim))?,
            code_log_dets: self.head.covariance.log_det_len(codes),
            codes,
            decoder_weight: product(decoder, decoder_inputs)?,
            decoder_bias: if self.decoder.is_some_and(|d| d.bias) { size(decoder)? } else { 0 },
            calibration: self.calibration.map_or(0, |c| usize::from(c.points)),
            self_test_inputs: inputs.checked_mul(vectors)?,
            self_test_answers: vectors,
            channels: channels.map_or(Some(0), |c| c.param_count(self.inputs, self.has_bytes()))?,
            weights,
        })
    }
}

impl ParamCounts {
    /// Values of four bytes in the whole section, those that hold weights of one byte included; `None` on overflow.
    #[must_use]
    pub fn total(&self) -> Option<usize> {
        let Self { normalize, layers, head_weight, head_bias, code_means, code_precisions, .. } = *self;
        let Self { code_log_dets, codes, decoder_weight, decoder_bias, calibration, .. } = *self;
        let Self { self_test_inputs, self_test_answers, channels, weights, .. } = *self;
        let parts = [
            normalize,
            normalize,
            layers,
            head_weight,
            head_bias,
            code_means,
            code_precisions,
            code_log_dets,
            codes,
            decoder_weight,
            decoder_bias,
            calibration,
            calibration,
            self_test_inputs,
            self_test_answers,
            channels,
            weights.div_ceil(4),
        ];
        parts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n))
    }
}
