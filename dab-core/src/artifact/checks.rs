//! What the meta section and the values must be, one function a line of docs/format.md's table of checks;
//! [`reader`](super::reader) has their order.

use super::error::{ArtifactError, Part};
use super::schema::{
    CovarianceKind, MAX_CALIBRATION, MAX_CODES, MAX_DIM_DIAGONAL, MAX_DIM_FULL, MAX_LAYERS, MAX_SELF_TESTS,
    MAX_WIDTH, Meta,
};
use crate::calibration::Calibration;
use crate::codebook::{CodebookView, PrecisionLayout};
use crate::linalg::dot::take;
use crate::linalg::triangle::Triangle;
use crate::scalar::{SMALLEST, in_domain, ln};

/// Priors are f32 roundings of numbers that sum to 1.
const PRIOR_SUM_TOLERANCE: f32 = 1e-3;

/// A stored ln det Σ may miss the one of the stored precision by this much of the sum of the logarithms' magnitudes: f32 sums of
/// 1024 of them, and factors that were rounded after they were inverted.
const LOG_DET_TOLERANCE: f32 = 1e-4;

/// Whether a size is at least 1 and at most `max`.
pub(super) fn limit(field: &'static str, value: u32, max: u32) -> Result<(), ArtifactError> {
    if (1..=max).contains(&value) { Ok(()) } else { Err(ArtifactError::Limit { field, value, max }) }
}

/// Sizes within the limits of the format.
pub(super) fn check_limits(meta: &Meta) -> Result<(), ArtifactError> {
    limit("inputs", meta.inputs, MAX_WIDTH)?;
    for layer in &meta.layers {
        limit("layers.outputs", layer.outputs, MAX_WIDTH)?;
    }
    let max_dim = match meta.head.covariance {
        CovarianceKind::Diagonal | CovarianceKind::Constant => MAX_DIM_DIAGONAL,
        CovarianceKind::Spectral | CovarianceKind::Cholesky => MAX_DIM_FULL,
    };
    limit("dim", meta.dim, max_dim)?;
    limit("codes", meta.codes, MAX_CODES)?;
    if let Some(decoder) = meta.decoder {
        limit("decoder.outputs", decoder.outputs, MAX_WIDTH)?;
    }
    if let Some(calibration) = meta.calibration {
        limit("calibration.points", calibration.points.into(), MAX_CALIBRATION.into())?;
        limit("calibration.held_out", calibration.held_out, u32::MAX)?;
    }
    limit("self_test.vectors", meta.self_test.vectors.into(), MAX_SELF_TESTS.into())
}

/// The code that the model needs is in this build.
pub(super) fn check_build(meta: &Meta) -> Result<(), ArtifactError> {
    let left_out = |feature| Err(ArtifactError::LeftOut { feature });
    match meta.head.covariance {
        CovarianceKind::Diagonal if !cfg!(feature = "diagonal") => return left_out("diagonal"),
        CovarianceKind::Cholesky if !cfg!(feature = "cholesky") => return left_out("cholesky"),
        CovarianceKind::Spectral if !cfg!(feature = "spectral") => return left_out("spectral"),
        _ => {}
    }
    if !meta.int8 && !cfg!(feature = "float32") { left_out("float32") } else { Ok(()) }
}

/// Norms are layers, and have as many outputs as inputs.
pub(super) fn check_norms(meta: &Meta) -> Result<(), ArtifactError> {
    let mut width = meta.inputs;
    for layer in 0..MAX_LAYERS {
        let outputs = meta.layers.get(layer).map(|l| l.outputs);
        if meta.is_norm(layer) && outputs != Some(width) {
            return Err(ArtifactError::Norm { layer });
        }
        width = outputs.unwrap_or(width);
    }
    Ok(())
}

/// A norm's ε is positive, the scale of a row of bytes not negative.
pub(super) fn check_layers(meta: &Meta, params: &[f32]) -> Result<(), ArtifactError> {
    if meta.norms == 0 && !meta.has_bytes() {
        return Ok(());
    }
    let (mut rest, mut width, mut index) = (params, meta.inputs as usize, 0);
    for (i, layer) in meta.layers.iter().enumerate() {
        let outputs = layer.outputs as usize;
        let (checked, least, weights) = match (meta.is_norm(i), meta.has_bytes()) {
            (true, _) => (1, SMALLEST, outputs + 1),
            (false, true) => (outputs, 0.0, outputs),
            (false, false) => (0, 0.0, outputs * width),
        };
        let (values, after) = take(rest, weights + if layer.bias { outputs } else { 0 });
        if let Some(wrong) = take(values, checked).0.iter().position(|&x| x < least) {
            return Err(ArtifactError::OutOfRange { part: Part::Layers, index: index + wrong });
        }
        (rest, width) = (after, outputs);
        index += values.len();
    }
    Ok(())
}

/// Residuals refer backwards, to an activation of the same width, and one slot of memory holds them all.
pub(super) fn check_residuals(meta: &Meta) -> Result<(), ArtifactError> {
    let width = |activation: usize| match activation.checked_sub(1) {
        None => Some(meta.inputs),
        Some(layer) => meta.layers.get(layer).map(|l| l.outputs),
    };
    let mut last: Option<(usize, usize)> = None;
    for (i, layer) in meta.layers.iter().enumerate() {
        let Some(residual) = layer.residual else { continue };
        let source = usize::from(residual.source);
        let free =
            last.is_none_or(|(source_before, layer_before)| source == source_before || source > layer_before);
        if source > i || width(source) != Some(layer.outputs) || !free {
            return Err(ArtifactError::Residual { layer: i });
        }
        last = Some((source, i));
    }
    Ok(())
}

/// What the values of a part may be.
pub(super) struct Allowed {
    least: f32,
    most: f32,
    /// Whether they are in the numeric domain, too.
    domain: bool,
}

impl Allowed {
    pub(super) const FINITE: Self = Self { least: f32::MIN, most: f32::MAX, domain: false };
    pub(super) const NOT_NEGATIVE: Self = Self { least: 0.0, ..Self::FINITE };
    pub(super) const DOMAIN: Self = Self { domain: true, ..Self::FINITE };
    pub(super) const POSITIVE: Self = Self { least: SMALLEST, ..Self::DOMAIN };
    pub(super) const ALPHA: Self = Self { least: 0.0, ..Self::DOMAIN };
    pub(super) const PRIOR: Self = Self { most: 1.0, ..Self::ALPHA };
    pub(super) const PROBABILITY: Self =
        Self { least: f32::from_bits(1), most: 1.0f32.next_down(), domain: false };

    pub(super) fn has(&self, x: f32) -> bool {
        /// A second encoding of 0, and so of the model.
        const NEGATIVE_ZERO: u32 = 1 << 31;
        x.to_bits() != NEGATIVE_ZERO && self.least <= x && x <= self.most && (!self.domain || in_domain(x))
    }
}

pub(super) fn check_codebook(codes: &CodebookView<'_>) -> Result<(), ArtifactError> {
    let mut precisions = codes.precisions;
    for code in 0..codes.len() {
        let (precision, rest) = take(precisions, codes.layout.stride(codes.dim));
        precisions = rest;
        let positive = match codes.layout {
            PrecisionLayout::Diagonal | PrecisionLayout::Identity | PrecisionLayout::Local => {
                precision.iter().all(|&p| p > 0.0)
            }
            PrecisionLayout::Full(layout) => {
                let rows = Triangle::new(precision, codes.dim, layout);
                (0..codes.dim).all(|i| rows.diagonal(i) > 0.0)
            }
        };
        if !positive {
            return Err(ArtifactError::NotPositiveDefinite { code });
        }
    }
    check_log_dets(codes)?;
    check_assignment(codes)
}

/// ln det Σ is that of the precision, up to the rounding of both.
pub(super) fn check_log_dets(codes: &CodebookView<'_>) -> Result<(), ArtifactError> {
    let mut precisions = codes.precisions;
    for (index, log_det) in codes.log_dets.iter().enumerate() {
        let (precision, rest) = take(precisions, codes.layout.stride(codes.dim));
        precisions = rest;
        // Of a diagonal Σ⁻¹ every entry, of Σ⁻¹ = Rᵀ R the diagonal of R twice.
        let (mut total, mut size, mut at, mut gap) = (0.0, 0.0, 0, 1);
        let full = matches!(codes.layout, PrecisionLayout::Full(_));
        while let Some(&entry) = precision.get(at) {
            let term = if full { 2.0 * ln(entry) } else { ln(entry) };
            (total, size) = (total + term, size + term.abs());
            gap += usize::from(full);
            at += gap;
        }
        if (log_det + total).abs() > LOG_DET_TOLERANCE * (1.0 + size) {
            return Err(ArtifactError::OutOfRange { part: Part::CodeLogDets, index });
        }
    }
    Ok(())
}

/// The sum of the priors, and α.
pub(super) fn check_assignment(codes: &CodebookView<'_>) -> Result<(), ArtifactError> {
    let sum = crate::linalg::dot::sum(codes.priors, |p| p);
    if (sum - 1.0).abs() > PRIOR_SUM_TOLERANCE {
        return Err(ArtifactError::PriorSum);
    }
    if Allowed::ALPHA.has(codes.alpha) { Ok(()) } else { Err(ArtifactError::Alpha) }
}

pub(super) fn check_calibration(table: &Calibration<'_>) -> Result<(), ArtifactError> {
    for (i, (s, p)) in table.scores.windows(2).zip(table.p_values.windows(2)).enumerate() {
        if let ([s0, s1], [p0, p1]) = (s, p)
            && !(s0 < s1 && p0 > p1)
        {
            return Err(ArtifactError::CalibrationOrder { index: i + 1 });
        }
    }
    // The last p is 1 / (n + 1), rounded; in f32, as a small machine has no other arithmetic: exact below 2²⁴ held-out
    // inputs, and within three units in the last place beyond.
    let smallest = 1.0 / (table.held_out as f32 + 1.0);
    let slack = if table.held_out < 1 << 24 { 0 } else { 3 };
    if table.p_values.last().is_some_and(|p| p.to_bits().abs_diff(smallest.to_bits()) <= slack) {
        Ok(())
    } else {
        Err(ArtifactError::CalibrationOrder { index: table.p_values.len().saturating_sub(1) })
    }
}
