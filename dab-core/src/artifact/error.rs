//! Every way in which the bytes of an artifact can be wrong.

use core::fmt;

/// A part of the parameters, for errors that point into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Part {
    /// Input mean.
    NormalizeMean,
    /// Inverse input standard deviation.
    NormalizeInverseStd,
    /// Weights and biases of the dense layers, all together.
    Layers,
    /// Head weight.
    HeadWeight,
    /// Head bias.
    HeadBias,
    /// Code means.
    CodeMeans,
    /// Code precisions.
    CodePrecisions,
    /// Log-determinants of the codes.
    CodeLogDets,
    /// Priors of the codes.
    CodePriors,
    /// Decoder weight.
    DecoderWeight,
    /// Decoder bias.
    DecoderBias,
    /// Scores of the calibration table.
    CalibrationScores,
    /// p-values of the calibration table.
    CalibrationPValues,
    /// Inputs of the known-answer vectors.
    SelfTestInputs,
    /// Uncertainties of the known-answer vectors.
    SelfTestAnswers,
    /// Tails of all views.
    Tails,
    /// Input mean of a view beside the base.
    ViewNormalizeMean,
    /// Inverse input standard deviation of a view beside the base.
    ViewNormalizeInverseStd,
    /// Head weight of a view beside the base.
    ViewHeadWeight,
    /// Head bias of a view beside the base.
    ViewHeadBias,
    /// Code means of a view beside the base.
    ViewCodeMeans,
    /// Priors of a view beside the base.
    ViewCodePriors,
    /// Decoder weight of a view beside the base.
    ViewDecoderWeight,
    /// Decoder bias of a view beside the base.
    ViewDecoderBias,
    /// Scores of the ambiguity's calibration table.
    AmbiguityScores,
    /// p-values of the ambiguity's calibration table.
    AmbiguityPValues,
    /// Codes that were taught.
    Taught,
    /// Weights that are bytes, and the zeros behind them.
    Weights,
    /// Floats of the monitor.
    Monitor,
    /// Scales and gains of rests.
    Rest,
    /// Local precisions of codes.
    Local,
}

/// Why bytes are not a model. A later version of the format may add reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum ArtifactError {
    /// The bytes do not begin like an artifact.
    NotAnArtifact,
    /// The bytes end before the length that the header promises.
    Truncated {
        /// Bytes that there should be.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Bytes follow after the length that the header promises.
    TrailingBytes {
        /// Bytes that there should be.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// The header's checksum does not fit its bytes.
    HeaderChecksum {
        /// Checksum in the file.
        stored: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// A major version that this reader does not know.
    Version {
        /// Major version in the file.
        major: u16,
        /// Minor version in the file.
        minor: u16,
    },
    /// Features that this reader would have to know.
    IncompatibleFeatures {
        /// The unknown bits.
        bits: u32,
    },
    /// The meta section follows another schema.
    Schema {
        /// Key in the file.
        found: u64,
    },
    /// The checksum of the sections does not fit their bytes.
    BodyChecksum {
        /// Checksum in the file.
        stored: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// A section does not lie where the one encoding of a model has it.
    SectionLayout,
    /// The meta section cannot be decoded.
    MetaEncoding,
    /// Bytes are left over behind the meta section.
    MetaTrailingBytes {
        /// How many.
        left: usize,
    },
    /// The meta section is not the shortest encoding of what it says.
    MetaNotCanonical,
    /// A size is zero or beyond the limits of the format.
    Limit {
        /// Which size, by its name in docs/format.md.
        field: &'static str,
        /// The value in the file.
        value: u32,
        /// The largest that is allowed; the smallest is 1.
        max: u32,
    },
    /// A residual refers to a later or differently shaped activation, or two of them overlap.
    Residual {
        /// The layer that adds it, counting from 0.
        layer: usize,
    },
    /// A LayerNorm has other inputs than outputs, or there is no such layer.
    Norm {
        /// The layer, counting from 0.
        layer: usize,
    },
    /// The file is sound, and this build was made without the code for it: a cargo feature of dab-core.
    LeftOut {
        /// The feature.
        feature: &'static str,
    },
    /// A channel needs a decoder that the model does not have.
    Channels {
        /// Which setting, by its name in docs/format.md.
        field: &'static str,
    },
    /// The parameters are not as many as the meta section says.
    ParamCount {
        /// Values that there should be; `usize::MAX` when the product overflows.
        expected: usize,
        /// Values that there are.
        found: usize,
    },
    /// The numbers of the monitor describe no monitor.
    Monitor {
        /// Which of them, by their names in docs/format.md.
        field: &'static str,
    },
    /// A padding byte is not zero.
    Padding {
        /// Its offset in the file.
        offset: usize,
    },
    /// The buffer does not start at a multiple of four bytes.
    Misaligned,
    /// A parameter is NaN or infinite.
    NonFinite {
        /// Where it lies.
        part: Part,
        /// Index within the part.
        index: usize,
    },
    /// A parameter is not 0 and its magnitude not within 2⁻⁵⁰ … 2⁵⁰, or it is outside of the range of its part.
    OutOfRange {
        /// Where it lies.
        part: Part,
        /// Index within the part.
        index: usize,
    },
    /// Code `code` has no positive-definite covariance.
    NotPositiveDefinite {
        /// Which code.
        code: usize,
    },
    /// The priors do not sum to 1.
    PriorSum,
    /// The temperature is negative or out of range.
    Alpha,
    /// The calibration table is not sorted, or does not end where its formula does.
    CalibrationOrder {
        /// Index of the offending entry.
        index: usize,
    },
    /// The false-alarm rates are not `0 < unfamiliar ≤ doubtful < 1`.
    Rates,
    /// The info section cannot be decoded, or is not canonical (host only: a device does not read it).
    Info,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NormalizeMean => "normalize.mean",
            Self::NormalizeInverseStd => "normalize.inverse_std",
            Self::Layers => "layers",
            Self::HeadWeight => "head.weight",
            Self::HeadBias => "head.bias",
            Self::CodeMeans => "codes.mean",
            Self::CodePrecisions => "codes.precision",
            Self::CodeLogDets => "codes.log_det",
            Self::CodePriors => "codes.prior",
            Self::DecoderWeight => "decoder.weight",
            Self::DecoderBias => "decoder.bias",
            Self::CalibrationScores => "calibration.score",
            Self::CalibrationPValues => "calibration.p_value",
            Self::SelfTestInputs => "self_test.input",
            Self::SelfTestAnswers => "self_test.uncertainty",
            Self::Tails => "tails",
            Self::ViewNormalizeMean => "views.normalize.mean",
            Self::ViewNormalizeInverseStd => "views.normalize.inverse_std",
            Self::ViewHeadWeight => "views.head.weight",
            Self::ViewHeadBias => "views.head.bias",
            Self::ViewCodeMeans => "views.codes.mean",
            Self::ViewCodePriors => "views.codes.prior",
            Self::ViewDecoderWeight => "views.decoder.weight",
            Self::ViewDecoderBias => "views.decoder.bias",
            Self::AmbiguityScores => "ambiguity.score",
            Self::AmbiguityPValues => "ambiguity.p_value",
            Self::Taught => "taught",
            Self::Weights => "weights",
            Self::Monitor => "monitor",
            Self::Rest => "rest",
            Self::Local => "local",
        })
    }
}

impl fmt::Display for ArtifactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotAnArtifact => write!(f, "these bytes are not a dab artifact"),
            Self::Truncated { expected, found } => {
                write!(f, "the artifact should have {expected} bytes and ends after {found}")
            }
            Self::TrailingBytes { expected, found } => {
                write!(f, "the artifact should have {expected} bytes and has {found}")
            }
            Self::HeaderChecksum { stored, computed } => {
                write!(f, "the header is damaged (checksum {computed:08x}, stored {stored:08x})")
            }
            Self::Version { major, minor } => {
                write!(
                    f,
                    "the artifact has format {major}.{minor}; this reader knows {}.x",
                    super::schema::MAJOR
                )
            }
            Self::IncompatibleFeatures { bits } => {
                write!(f, "the artifact needs features that this reader lacks (bits {bits:#x})")
            }
            Self::Schema { found } => write!(f, "the artifact follows another schema ({found:016x})"),
            Self::BodyChecksum { stored, computed } => {
                write!(f, "the artifact is damaged (checksum {computed:08x}, stored {stored:08x})")
            }
            Self::SectionLayout => write!(f, "a section does not lie where the format has it"),
            Self::MetaEncoding => write!(f, "the meta section cannot be decoded"),
            Self::MetaTrailingBytes { left } => write!(f, "{left} bytes are left over in the meta section"),
            Self::MetaNotCanonical => write!(f, "the meta section is not in its shortest encoding"),
            Self::Limit { field, value, max } => write!(f, "{field} is {value}, allowed are 1 to {max}"),
            Self::Residual { layer } => write!(f, "the residual of layer {layer} does not fit"),
            Self::Norm { layer } => {
                write!(f, "the norm of layer {layer} has no layer of as many inputs as outputs")
            }
            Self::LeftOut { feature } => {
                write!(f, "this build has no code for the artifact: dab-core needs its feature `{feature}`")
            }
            Self::Channels { field } => write!(f, "{field} needs a decoder that the model does not have"),
            Self::ParamCount { expected, found } => {
                write!(f, "the model needs {expected} parameters and has {found}")
            }
            Self::Monitor { field } => {
                write!(f, "the monitor of the artifact cannot be: its {field} is out of range")
            }
            Self::Padding { offset } => write!(f, "the padding byte at {offset} is not zero"),
            Self::Misaligned => write!(f, "the buffer does not start at a multiple of four bytes"),
            Self::NonFinite { part, index } => write!(f, "{part}[{index}] is not a finite number"),
            Self::OutOfRange { part, index } => write!(f, "{part}[{index}] is out of range"),
            Self::NotPositiveDefinite { code } => {
                write!(f, "the covariance of code {code} is not positive definite")
            }
            Self::PriorSum => write!(f, "the priors do not sum to 1"),
            Self::Alpha => write!(f, "alpha is negative or out of range"),
            Self::CalibrationOrder { index } => write!(f, "the calibration table is wrong at entry {index}"),
            Self::Rates => write!(f, "the false-alarm rates are not 0 < unfamiliar <= doubtful < 1"),
            Self::Info => write!(f, "the info section cannot be decoded"),
        }
    }
}

impl core::error::Error for ArtifactError {}
