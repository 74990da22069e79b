//! Why tensors are not a model: the fact, and what to do about it.

use dab_core::ArtifactError;
use dab_core::artifact::writer::SpecError;

use super::tensors::names;

/// Why a safetensors file could not be packed; each message says what is wrong and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    #[error("this is not a safetensors file ({0}): write one with safetensors' save_file")]
    NotSafetensors(safetensors::SafeTensorError),
    #[error("unknown tensor `{name}`: rename or remove it; known are {}", names())]
    UnknownTensor { name: String },
    #[error("tensor `{name}` is missing, expected shape {expected}: {advice}")]
    MissingTensor { name: String, expected: String, advice: String },
    #[error("tensor `{name}` has shape {found:?}, expected {expected}: {advice}")]
    Shape { name: String, expected: String, found: Vec<usize>, advice: String },
    #[error("tensor `{name}` has type {found}: convert it to F32, F64, F16 or BF16")]
    Dtype { name: String, found: String },
    #[error("tensor `{name}` holds {value} at {index:?}{}", number_advice(*value))]
    NonFinite { name: String, index: Vec<usize>, value: f64 },
    #[error("metadata `{key}` is {}: {advice}", value.as_ref().map_or("missing".into(), |value| format!("`{value}`")))]
    Metadata { key: String, value: Option<String>, advice: String },
    #[error("tensor `{name}` is there, and --fit computes it: remove the tensor, or pack without --fit")]
    Computed { name: String },
    #[error("{}{}", .0, spec_advice(.0))]
    Spec(#[from] SpecError),
}

impl PackError {
    pub fn absent(name: &str, expected: &str, advice: &str) -> Self {
        Self::MissingTensor { name: name.into(), expected: expected.into(), advice: advice.into() }
    }
}

fn number_advice(value: f64) -> &'static str {
    match value.is_finite() {
        true => ", too large for f32: rescale the model",
        false => ": every value must be finite, so check the training for divergence",
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
