//! Why tensors are not a model: the fact, and what to do about it.

use std::fmt;

use dab_core::ArtifactError;
use dab_core::artifact::writer::SpecError;

/// Why a safetensors file could not be packed.
#[derive(Debug)]
#[non_exhaustive]
pub enum PackError {
    /// The bytes are not a safetensors file.
    NotSafetensors(safetensors::SafeTensorError),
    /// A tensor that `dab pack` has no use for.
    UnknownTensor {
        /// Its name.
        name: String,
    },
    /// A tensor that the model needs is not there.
    MissingTensor {
        /// Its name.
        name: String,
        /// The shape that it should have.
        expected: String,
        /// What to do.
        advice: String,
    },
    /// A tensor has the wrong shape.
    Shape {
        /// Its name.
        name: String,
        /// The shape that it should have.
        expected: String,
        /// The shape that it has.
        found: Vec<usize>,
        /// What to do.
        advice: String,
    },
    /// A tensor's numbers are of a type that `dab pack` does not read.
    Dtype {
        /// Its name.
        name: String,
        /// The type that it has.
        found: String,
    },
    /// A tensor holds a NaN, an infinity, or a number beyond f32.
    NonFinite {
        /// Its name.
        name: String,
        /// Where in the tensor.
        index: Vec<usize>,
        /// The number.
        value: f64,
    },
    /// A metadata string is missing or cannot be understood.
    Metadata {
        /// Its key.
        key: String,
        /// Its value, when there is one.
        value: Option<String>,
        /// What it should be, and what to do.
        advice: String,
    },
    /// The parts are well-formed but do not make a model.
    Spec(SpecError),
}

/// Every tensor name that `dab pack` reads.
const NAMES: &str = "normalize.mean, normalize.std, layers.N.weight, layers.N.bias, head.weight, head.bias, \
    codes.mean, codes.cov, codes.prior, decoder.weight, decoder.bias, calibration.scores, self_test.inputs";

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSafetensors(e) => {
                write!(f, "this is not a safetensors file ({e}): write one with safetensors' save_file")
            }
            Self::UnknownTensor { name } => {
                write!(f, "unknown tensor `{name}`: rename or remove it; known are {NAMES}")
            }
            Self::MissingTensor { name, expected, advice } => {
                write!(f, "tensor `{name}` is missing, expected shape {expected}: {advice}")
            }
            Self::Shape { name, expected, found, advice } => {
                write!(f, "tensor `{name}` has shape {found:?}, expected {expected}: {advice}")
            }
            Self::Dtype { name, found } => {
                write!(f, "tensor `{name}` has type {found}: convert it to F32, F64, F16 or BF16")
            }
            Self::NonFinite { name, index, value } if value.is_finite() => {
                write!(f, "tensor `{name}` holds {value} at {index:?}, too large for f32: rescale the model")
            }
            Self::NonFinite { name, index, value } => {
                write!(f, "tensor `{name}` holds {value} at {index:?}: every value must be finite, ")?;
                write!(f, "so check the training for divergence")
            }
            Self::Metadata { key, value: Some(value), advice } => {
                write!(f, "metadata `{key}` is `{value}`: {advice}")
            }
            Self::Metadata { key, value: None, advice } => write!(f, "metadata `{key}` is missing: {advice}"),
            Self::Spec(e) => write!(f, "{e}{}", spec_advice(e)),
        }
    }
}

/// What to do about an error of the writer, which states the fact alone.
fn spec_advice(error: &SpecError) -> &'static str {
    match error {
        SpecError::NotSymmetric { .. } => ": store the full covariance, both triangles, not a factor of it",
        SpecError::NotPositiveDefinite { .. } => {
            ": store covariances (variances for a diagonal head), not precisions or logarithms; add a small \
             ridge to a singular one"
        }
        SpecError::PriorSum { .. } => ": divide the priors by their sum",
        SpecError::OutOfRange { part, .. } if part == "normalize.std" => {
            ": a standard deviation must be positive; use 1 for a constant input"
        }
        SpecError::OutOfRange { part, .. } if part == "calibration.scores" => {
            ": scores are uncertainties in nats and never negative"
        }
        SpecError::OutOfRange { .. } => ": rescale the model, magnitudes may reach 2^50",
        SpecError::TooMany { .. } | SpecError::TooLarge => ": make the model smaller",
        SpecError::Refused(ArtifactError::Residual { .. }) => {
            ": it must name an earlier activation of the same width, and only one may be kept at a time"
        }
        SpecError::Refused(ArtifactError::Limit { .. }) => ": make the model smaller",
        SpecError::Refused(ArtifactError::Alpha) => ": alpha is a temperature, 0 or more (usually 1)",
        _ => "",
    }
}

impl std::error::Error for PackError {}

impl From<SpecError> for PackError {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}
