//! Bytes → checked [`Model`]: everything is looked at once, here, so that nothing can fail later.
//!
//! Order: magic → length of the header → header checksum → version, features, schema → total length →
//! body checksum → section layout → meta (decodes, nothing left over, canonical) → limits → parameter
//! count → padding → values. A damaged file is told from a foreign or a newer one, and a flipped bit
//! in the length is a damaged header, not a truncated file.

use postcard::ser_flavors::Flavor;
use serde::Serialize;

use super::crc::crc32c;
use super::error::{ArtifactError, Part};
use super::schema::{CovarianceKind, ParamCounts};
use super::schema::{
    HEADER_LEN, KNOWN_INCOMPATIBLE, MAGIC, MAJOR, MAX_CALIBRATION, MAX_CODES, MAX_DIM_DIAGONAL, MAX_DIM_FULL,
    MAX_SELF_TESTS, MAX_WIDTH, Meta, PARAMS_ALIGN, SCHEMA_KEY,
};
use crate::calibration::{Calibration, Rates};
use crate::codebook::{CodebookView, PrecisionLayout};
use crate::linalg::dot::take;
use crate::linalg::triangle::{Layout, Triangle};
use crate::model::{Decoder, Model, SelfTest};
use crate::scalar::in_domain;

/// Priors are f32 roundings of numbers that sum to 1.
const PRIOR_SUM_TOLERANCE: f32 = 1e-3;

/// Where the sections of a file lie.
pub(super) struct Sections<'a> {
    pub(super) meta: &'a [u8],
    pub(super) params: &'a [u8],
    #[cfg_attr(not(feature = "alloc"), expect(dead_code, reason = "a device does not read the info"))]
    pub(super) info: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u16::from_le_bytes(b))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u32::from_le_bytes(b))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u64::from_le_bytes(b))
}

/// Checks the container: everything up to, and not including, what the sections say.
pub(super) fn sections(bytes: &[u8]) -> Result<Sections<'_>, ArtifactError> {
    if !bytes.iter().zip(&MAGIC).all(|(a, b)| a == b) {
        return Err(ArtifactError::NotAnArtifact);
    }
    let found = bytes.len();
    let Some(header) = bytes.get(..HEADER_LEN) else {
        return Err(ArtifactError::Truncated { expected: HEADER_LEN, found });
    };
    let (stored, computed) = (u32_at(header, 60), crc32c(header.get(..60).unwrap_or(&[])));
    if stored != computed {
        return Err(ArtifactError::HeaderChecksum { stored, computed });
    }
    let (major, minor) = (u16_at(header, 8), u16_at(header, 10));
    if major != MAJOR {
        return Err(ArtifactError::Version { major, minor });
    }
    let unknown = u32_at(header, 16) & !KNOWN_INCOMPATIBLE;
    if unknown != 0 {
        return Err(ArtifactError::IncompatibleFeatures { bits: unknown });
    }
    if u64_at(header, 48) != SCHEMA_KEY {
        return Err(ArtifactError::Schema { found: u64_at(header, 48) });
    }
    let expected = u32_at(header, 12) as usize;
    if found < expected {
        return Err(ArtifactError::Truncated { expected, found });
    }
    if found > expected {
        return Err(ArtifactError::TrailingBytes { expected, found });
    }
    let (stored, computed) = (u32_at(header, 56), crc32c(bytes.get(HEADER_LEN..).unwrap_or(&[])));
    if stored != computed {
        return Err(ArtifactError::BodyChecksum { stored, computed });
    }
    section_layout(bytes, header).ok_or(ArtifactError::SectionLayout)?
}

/// The sections, each where the one encoding of a model has it; `None` if one lies elsewhere.
fn section_layout<'a>(bytes: &'a [u8], header: &[u8]) -> Option<Result<Sections<'a>, ArtifactError>> {
    let section = |at| (u32_at(header, at) as usize, u32_at(header, at + 4) as usize);
    let ((meta, meta_len), (params, params_len), (info, info_len)) = (section(24), section(32), section(40));
    let meta_end = meta.checked_add(meta_len)?;
    let sound = meta == HEADER_LEN
        && params == meta_end.checked_next_multiple_of(PARAMS_ALIGN)?
        && params_len.is_multiple_of(4)
        && info == params.checked_add(params_len)?
        && bytes.len() == info.checked_add(info_len)?;
    if !sound {
        return None;
    }
    let padding = bytes.get(meta_end..params)?;
    if let Some(i) = padding.iter().position(|&b| b != 0) {
        return Some(Err(ArtifactError::Padding { offset: meta_end + i }));
    }
    Some(Ok(Sections {
        meta: bytes.get(meta..meta_end)?,
        params: bytes.get(params..info)?,
        info: bytes.get(info..)?,
    }))
}

/// A serializer's sink that compares instead of storing: canonical encoding is checked without memory.
struct Compare<'a> {
    rest: &'a [u8],
}

impl Flavor for Compare<'_> {
    type Output = bool;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(postcard::Error::SerializeBufferFull),
        }
    }

    fn finalize(self) -> postcard::Result<bool> {
        Ok(self.rest.is_empty())
    }
}

/// Whether `bytes` are the canonical encoding of `value`.
pub(super) fn is_canonical<T: Serialize>(value: &T, bytes: &[u8]) -> bool {
    postcard::serialize_with_flavor(value, Compare { rest: bytes }).unwrap_or(false)
}

fn decode_meta(bytes: &[u8]) -> Result<Meta, ArtifactError> {
    let (meta, rest) = postcard::take_from_bytes::<Meta>(bytes).map_err(|_| ArtifactError::MetaEncoding)?;
    if !rest.is_empty() {
        return Err(ArtifactError::MetaTrailingBytes { left: rest.len() });
    }
    if !is_canonical(&meta, bytes) {
        return Err(ArtifactError::MetaNotCanonical);
    }
    Ok(meta)
}

/// Sizes within the limits of the format.
fn check_limits(meta: &Meta) -> Result<(), ArtifactError> {
    let limit = |field, value, max| {
        if (1..=max).contains(&value) { Ok(()) } else { Err(ArtifactError::Limit { field, value, max }) }
    };
    limit("inputs", meta.inputs, MAX_WIDTH)?;
    for layer in &meta.layers {
        limit("layers.outputs", layer.outputs, MAX_WIDTH)?;
    }
    let max_dim = match meta.head.covariance {
        CovarianceKind::Diagonal => MAX_DIM_DIAGONAL,
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

/// Residuals refer backwards, to an activation of the same width, and one slot of memory holds them all.
fn check_residuals(meta: &Meta) -> Result<(), ArtifactError> {
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

/// Every value finite and accepted by `sound`.
fn check(values: &[f32], part: Part, sound: impl Fn(f32) -> bool) -> Result<(), ArtifactError> {
    match values.iter().position(|&x| !sound(x)) {
        None => Ok(()),
        Some(index) if values.get(index).is_some_and(|x| x.is_finite()) => {
            Err(ArtifactError::OutOfRange { part, index })
        }
        Some(index) => Err(ArtifactError::NonFinite { part, index }),
    }
}

fn check_codebook(codes: &CodebookView<'_>) -> Result<(), ArtifactError> {
    check(codes.means, Part::CodeMeans, in_domain)?;
    check(codes.precisions, Part::CodePrecisions, in_domain)?;
    check(codes.log_dets, Part::CodeLogDets, in_domain)?;
    check(codes.priors, Part::CodePriors, |p| in_domain(p) && (0.0..=1.0).contains(&p))?;
    let mut precisions = codes.precisions;
    for code in 0..codes.len() {
        let (precision, rest) = take(precisions, codes.layout.stride(codes.dim));
        precisions = rest;
        let positive = match codes.layout {
            PrecisionLayout::Diagonal => precision.iter().all(|&p| p > 0.0),
            PrecisionLayout::Full(layout) => {
                let rows = Triangle::new(precision, codes.dim, layout);
                (0..codes.dim).all(|i| rows.diagonal(i) > 0.0)
            }
        };
        if !positive {
            return Err(ArtifactError::NotPositiveDefinite { code });
        }
    }
    let sum = crate::linalg::dot::sum(codes.priors, |p| p);
    if (sum - 1.0).abs() <= PRIOR_SUM_TOLERANCE { Ok(()) } else { Err(ArtifactError::PriorSum) }
}

fn check_calibration(table: &Calibration<'_>) -> Result<(), ArtifactError> {
    check(table.scores, Part::CalibrationScores, |s| s.is_finite() && s >= 0.0)?;
    check(table.p_values, Part::CalibrationPValues, |p| 0.0 < p && p < 1.0)?;
    for (i, (s, p)) in table.scores.windows(2).zip(table.p_values.windows(2)).enumerate() {
        if let ([s0, s1], [p0, p1]) = (s, p)
            && !(s0 < s1 && p0 > p1)
        {
            return Err(ArtifactError::CalibrationOrder { index: i + 1 });
        }
    }
    let smallest = (1.0 / (f64::from(table.held_out) + 1.0)) as f32;
    if table.p_values.last() != Some(&smallest) {
        return Err(ArtifactError::CalibrationOrder { index: table.p_values.len().saturating_sub(1) });
    }
    Ok(())
}

/// Takes the next `n` values off the front of `rest`.
fn next<'a>(rest: &mut &'a [f32], n: usize) -> &'a [f32] {
    let (taken, after) = take(rest, n);
    *rest = after;
    taken
}

/// Reads and checks a whole artifact.
pub(crate) fn read(bytes: &[u8]) -> Result<Model<'_>, ArtifactError> {
    let sections = sections(bytes)?;
    let meta = decode_meta(sections.meta)?;
    check_limits(&meta)?;
    check_residuals(&meta)?;

    let found = sections.params.len() / 4;
    let counts = meta.param_counts().unwrap_or(ParamCounts { layers: usize::MAX, ..ParamCounts::default() });
    let expected = counts.total().unwrap_or(usize::MAX);
    if expected != found {
        return Err(ArtifactError::ParamCount { expected, found });
    }
    let mut rest: &[f32] =
        bytemuck::try_cast_slice(sections.params).map_err(|_| ArtifactError::Misaligned)?;

    let rest = &mut rest;
    let normalize_mean = next(rest, counts.normalize);
    let normalize_inverse_std = next(rest, counts.normalize);
    let layer_params = next(rest, counts.layers);
    let head_weight = next(rest, counts.head_weight);
    let head_bias = next(rest, counts.head_bias);
    let codebook = CodebookView {
        dim: meta.dim as usize,
        alpha: f32::from_le_bytes(meta.alpha),
        means: next(rest, counts.code_means),
        precisions: next(rest, counts.code_precisions),
        layout: match meta.head.covariance {
            CovarianceKind::Diagonal => PrecisionLayout::Diagonal,
            CovarianceKind::Spectral | CovarianceKind::Cholesky => PrecisionLayout::Full(Layout::Packed),
        },
        log_dets: next(rest, counts.codes),
        priors: next(rest, counts.codes),
    };
    let decoder_weight = next(rest, counts.decoder_weight);
    let decoder_bias = next(rest, counts.decoder_bias);
    let calibration_scores = next(rest, counts.calibration);
    let calibration_p_values = next(rest, counts.calibration);
    let self_test = SelfTest {
        inputs: next(rest, counts.self_test_inputs),
        answers: next(rest, counts.self_test_answers),
        digest: u32::from_le_bytes(meta.self_test.digest),
    };

    check(normalize_mean, Part::NormalizeMean, in_domain)?;
    check(normalize_inverse_std, Part::NormalizeInverseStd, |x| in_domain(x) && x > 0.0)?;
    check(layer_params, Part::Layers, in_domain)?;
    check(head_weight, Part::HeadWeight, in_domain)?;
    check(head_bias, Part::HeadBias, in_domain)?;
    check_codebook(&codebook)?;
    if !(in_domain(codebook.alpha) && codebook.alpha >= 0.0) {
        return Err(ArtifactError::Alpha);
    }
    check(decoder_weight, Part::DecoderWeight, in_domain)?;
    check(decoder_bias, Part::DecoderBias, in_domain)?;
    check(self_test.inputs, Part::SelfTestInputs, f32::is_finite)?;
    check(self_test.answers, Part::SelfTestAnswers, |u| u.is_finite() && u >= 0.0)?;
    let (mut calibration, mut rates) = (None, Rates::DEFAULT);
    if let Some(c) = meta.calibration {
        let table =
            Calibration { scores: calibration_scores, p_values: calibration_p_values, held_out: c.held_out };
        check_calibration(&table)?;
        rates = Rates::new(f32::from_le_bytes(c.doubtful), f32::from_le_bytes(c.unfamiliar))
            .ok_or(ArtifactError::Rates)?;
        calibration = Some(table);
    }
    let decoder = meta.decoder.map(|d| Decoder {
        task: d.task,
        outputs: d.outputs as usize,
        weight: decoder_weight,
        bias: decoder_bias,
    });
    Ok(Model {
        meta,
        normalize_mean,
        normalize_inverse_std,
        layer_params,
        head_weight,
        head_bias,
        codebook,
        decoder,
        calibration,
        rates,
        self_test,
    })
}
