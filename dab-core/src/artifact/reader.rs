//! Bytes → checked [`Model`]: everything is looked at once, here, so that nothing can fail later.
//!
//! Order: magic → length of the header → header checksum → version, features, schema → total length →
//! body checksum → section layout → padding → meta (decodes, nothing left over, canonical) → limits →
//! residuals → decoders that channels need → parameter count → alignment → all values, in the order of the file → monitor →
//! precisions → sum of the priors → α → the same of each further view → calibration table → rates → table and rate of
//! the ambiguity. A damaged file is told from a foreign or a newer one, and a flipped
//! bit in the length is a damaged header, not a truncated file. docs/format.md promises this order ("Checks, in
//! order"), and tests/refusal_order.rs compares the two.

use heapless::Vec;
use serde::de::DeserializeOwned;

use super::checks::{
    Allowed, check_assignment, check_build, check_calibration, check_codebook, check_layers, check_limits,
    check_norms, check_residuals, limit,
};
use super::crc::crc32c;
use super::error::{ArtifactError, Part};
use super::extension;
use super::schema::{
    CHANNELS, CalibrationMeta, ChannelsMeta, CovarianceKind, DecoderMeta, HeadMeta, INT8, LOCAL, LayerMeta,
    MONITOR, NORMS, ParamCounts, REST, Residual, SelfTestMeta, TAUGHT,
};
use super::schema::{HEADER_LEN, KNOWN_INCOMPATIBLE, MAGIC, MAJOR, Meta, PARAMS_ALIGN, schema_key};
use super::some_views::Block;
use super::{monitor, taught};
use crate::calibration::{Calibration, Rates};
use crate::codebook::{CodebookView, PrecisionLayout};
use crate::linalg::dot::take;
use crate::linalg::triangle::Layout;
use crate::model::{Decoder, Model, SelfTest};

/// Where the sections of a file lie.
pub(super) struct Sections<'a> {
    /// The incompatible-feature bits, all of them known.
    pub(super) features: u32,
    /// Whether the file has taught codes.
    pub(super) taught: bool,
    pub(super) meta: &'a [u8],
    pub(super) params: &'a [u8],
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
    let features = u32_at(header, 16) & KNOWN_INCOMPATIBLE;
    if u64_at(header, 48) != schema_key(features) {
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
    section_layout(bytes, header, features).ok_or(ArtifactError::SectionLayout)?
}

/// The sections, each where the one encoding of a model has it; `None` if one lies elsewhere.
fn section_layout<'a>(
    bytes: &'a [u8],
    header: &[u8],
    features: u32,
) -> Option<Result<Sections<'a>, ArtifactError>> {
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
        features,
        taught: features & TAUGHT != 0,
        meta: bytes.get(meta..meta_end)?,
        params: bytes.get(params..info)?,
        info: bytes.get(info..)?,
    }))
}

/// The meta section, field by field: a small machine then has one copy of postcard's code for each type, where
/// serde's for whole structs has one for each field.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// Whether every number had its shortest encoding. Nothing else has two.
    canonical: bool,
}

impl Fields<'_> {
    /// The next field, by postcard.
    #[inline(never)]
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Option<T> {
        let (value, rest) = postcard::take_from_bytes(self.rest).ok()?;
        let (used, rest) = self.rest.split_at_checked(self.rest.len() - rest.len())?;
        self.canonical &= used.len() == 1 || used.last() != Some(&0);
        self.rest = rest;
        Some(value)
    }

    /// Four bytes as they are.
    pub(super) fn bytes(&mut self) -> Option<[u8; 4]> {
        let (&bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(bytes)
    }

    /// What `read` gives when the next field says that there is something: postcard writes options so.
    #[inline(always)]
    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        Some(if self.next()? { Some(read(self)?) } else { None })
    }

    fn layer(&mut self) -> Option<LayerMeta> {
        Some(LayerMeta {
            outputs: self.next()?,
            bias: self.next()?,
            activation: self.next()?,
            residual: self.option(|f| Some(Residual { source: f.next()?, before_activation: f.next()? }))?,
        })
    }

    fn meta(&mut self) -> Option<Meta> {
        let (inputs, normalized, mut layers) = (self.next()?, self.next()?, Vec::new());
        for _ in 0..self.next::<u32>()? {
            layers.push(self.layer()?).ok()?;
        }
        Some(Meta {
            inputs,
            normalized,
            layers,
            head: HeadMeta { activation: self.next()?, bias: self.next()?, covariance: self.next()? },
            dim: self.next()?,
            codes: self.next()?,
            alpha: self.bytes()?,
            decoder: self
                .option(|f| Some(DecoderMeta { task: f.next()?, outputs: f.next()?, bias: f.next()? }))?,
            calibration: self.option(|f| {
                Some(CalibrationMeta {
                    points: f.next()?,
                    held_out: f.next()?,
                    doubtful: f.bytes()?,
                    unfamiliar: f.bytes()?,
                })
            })?,
            self_test: SelfTestMeta { vectors: self.next()?, digest: self.bytes()? },
            norms: 0,
            int8: false,
        })
    }
}

fn decode_meta(bytes: &[u8], features: u32) -> Result<(Meta, Option<ChannelsMeta>), ArtifactError> {
    // Without a cargo feature its bit was refused above; said once more, so that the compiler leaves out all that follows
    // from it.
    let channels = cfg!(feature = "channels") && features & CHANNELS != 0;
    let norms = cfg!(feature = "layer-norm") && features & NORMS != 0;
    let mut fields = Fields { rest: bytes, canonical: true };
    let mut meta = fields.meta().ok_or(ArtifactError::MetaEncoding)?;
    // Format 1.0 does not know this number.
    if !channels && meta.head.covariance == CovarianceKind::Constant {
        return Err(ArtifactError::MetaEncoding);
    }
    let mut extension = None;
    if channels {
        extension = Some(fields.channels().ok_or(ArtifactError::MetaEncoding)?);
    }
    if norms {
        meta.norms = fields.next().ok_or(ArtifactError::MetaEncoding)?;
    }
    meta.int8 = cfg!(feature = "int8") && features & INT8 != 0;
    if !fields.rest.is_empty() {
        return Err(ArtifactError::MetaTrailingBytes { left: fields.rest.len() });
    }
    if fields.canonical { Ok((meta, extension)) } else { Err(ArtifactError::MetaNotCanonical) }
}

/// The parameters that were not taken yet.
pub(super) struct Parameters<'a>(&'a [f32]);

impl<'a> Parameters<'a> {
    /// Values that were not checked yet.
    pub(super) const fn new(values: &'a [f32]) -> Self {
        Self(values)
    }

    /// What was not taken yet, unchecked.
    pub(super) const fn rest(&self) -> &'a [f32] {
        self.0
    }

    /// The next `n` values, checked.
    pub(super) fn next(
        &mut self,
        n: usize,
        part: Part,
        allowed: &Allowed,
    ) -> Result<&'a [f32], ArtifactError> {
        self.next_pairs(n, part, [allowed; 2])
    }

    /// The `n` weights of one byte with which the parameters end, and the zeros that fill the last word.
    fn bytes(&mut self, n: usize) -> Result<&'a [i8], ArtifactError> {
        if !cfg!(feature = "int8") {
            return Ok(&[]);
        }
        let all: &[i8] = bytemuck::try_cast_slice(self.0).map_err(|_| ArtifactError::Misaligned)?;
        let (weights, padding) = take(all, n);
        // −128 has no counterpart, so no writer makes it.
        let wrong = weights.iter().position(|&w| w == i8::MIN);
        match wrong.or_else(|| padding.iter().position(|&w| w != 0).map(|i| n + i)) {
            Some(index) => Err(ArtifactError::OutOfRange { part: Part::Weights, index }),
            None => Ok(weights),
        }
    }

    /// The next `n` values, checked: those at even places by the first rule, those at odd ones by the second.
    #[inline(never)]
    pub(super) fn next_pairs(
        &mut self,
        n: usize,
        part: Part,
        [even, odd]: [&Allowed; 2],
    ) -> Result<&'a [f32], ArtifactError> {
        let (taken, rest) = take(self.0, n);
        self.0 = rest;
        let wrong = |(i, &x): (usize, &f32)| !if i % 2 == 0 { even } else { odd }.has(x);
        match taken.iter().enumerate().position(wrong) {
            None => Ok(taken),
            Some(index) if taken.get(index).is_some_and(|x| x.is_finite()) => {
                Err(ArtifactError::OutOfRange { part, index })
            }
            Some(index) => Err(ArtifactError::NonFinite { part, index }),
        }
    }
}

/// Reads and checks a whole artifact.
pub(crate) fn read(bytes: &[u8]) -> Result<Model<'_>, ArtifactError> {
    let sections = sections(bytes)?;
    let (meta, channels) = decode_meta(sections.meta, sections.features)?;
    check_build(&meta)?;
    check_limits(&meta)?;
    if let Some(channels) = &channels {
        extension::check_limits(channels)?;
    }
    if sections.features & NORMS != 0 {
        limit("norms", meta.norms.into(), u16::MAX.into())?;
    }
    check_residuals(&meta)?;
    check_norms(&meta)?;
    if let Some(channels) = &channels {
        extension::check_decoders(channels, &meta)?;
    } else if sections.features & REST != 0 {
        return Err(ArtifactError::Channels { field: "rest" });
    } else if sections.features & LOCAL != 0 {
        return Err(ArtifactError::Channels { field: "local" });
    }

    let has_monitor = cfg!(feature = "monitor") && sections.features & MONITOR != 0;
    let (params, monitor_words) =
        if has_monitor { monitor::split(sections.params)? } else { (sections.params, &[][..]) };
    let has_taught = cfg!(feature = "channels") && sections.taught;
    let (params, taught_words, taught_codes) =
        if has_taught { taught::split(params, meta.dim)? } else { (params, &[][..], 0) };
    let with = |bit| channels.as_ref().filter(|_| sections.features & bit != 0);
    let (params, local_words, local_views) = match with(LOCAL) {
        Some(channels) => Block::Local.split(params, &meta, channels)?,
        None => (params, &[][..], 0),
    };
    let (params, rest_words, rest_views) = match with(REST) {
        Some(channels) => Block::Rest.split(params, &meta, channels)?,
        None => (params, &[][..], 0),
    };
    let found = params.len() / 4;
    let counts = meta
        .param_counts(channels.as_ref())
        .unwrap_or(ParamCounts { layers: usize::MAX, ..ParamCounts::default() });
    let expected = counts.total().unwrap_or(usize::MAX);
    if expected != found {
        return Err(ArtifactError::ParamCount { expected, found });
    }
    let mut params = Parameters(bytemuck::try_cast_slice(params).map_err(|_| ArtifactError::Misaligned)?);
    let normalize_mean = params.next(counts.normalize, Part::NormalizeMean, &Allowed::DOMAIN)?;
    let normalize_inverse_std =
        params.next(counts.normalize, Part::NormalizeInverseStd, &Allowed::POSITIVE)?;
    let layer_params = params.next(counts.layers, Part::Layers, &Allowed::DOMAIN)?;
    check_layers(&meta, layer_params)?;
    let head_allowed = if meta.has_bytes() { &Allowed::ALPHA } else { &Allowed::DOMAIN };
    let head_weight = params.next(counts.head_weight, Part::HeadWeight, head_allowed)?;
    let head_bias = params.next(counts.head_bias, Part::HeadBias, &Allowed::DOMAIN)?;
    let mut codebook = CodebookView {
        dim: meta.dim as usize,
        alpha: f32::from_le_bytes(meta.alpha),
        means: params.next(counts.code_means, Part::CodeMeans, &Allowed::DOMAIN)?,
        precisions: params.next(counts.code_precisions, Part::CodePrecisions, &Allowed::DOMAIN)?,
        layout: match meta.head.covariance {
            CovarianceKind::Diagonal => PrecisionLayout::Diagonal,
            CovarianceKind::Spectral | CovarianceKind::Cholesky => PrecisionLayout::Full(Layout::Packed),
            CovarianceKind::Constant => PrecisionLayout::Identity,
        },
        log_dets: params.next(counts.code_log_dets, Part::CodeLogDets, &Allowed::DOMAIN)?,
        priors: params.next(counts.codes, Part::CodePriors, &Allowed::PRIOR)?,
    };
    let decoder_weight = params.next(counts.decoder_weight, Part::DecoderWeight, &Allowed::DOMAIN)?;
    let decoder_bias = params.next(counts.decoder_bias, Part::DecoderBias, &Allowed::DOMAIN)?;
    let scores = params.next(counts.calibration, Part::CalibrationScores, &Allowed::NOT_NEGATIVE)?;
    let p_values = params.next(counts.calibration, Part::CalibrationPValues, &Allowed::PROBABILITY)?;
    let self_test = SelfTest {
        inputs: params.next(counts.self_test_inputs, Part::SelfTestInputs, &Allowed::FINITE)?,
        answers: params.next(counts.self_test_answers, Part::SelfTestAnswers, &Allowed::NOT_NEGATIVE)?,
        digest: u32::from_le_bytes(meta.self_test.digest),
    };
    let mut channels = match channels {
        Some(channels) => Some(extension::values(channels, meta.inputs, meta.has_bytes(), &mut params)?),
        None => None,
    };
    let weights = params.bytes(counts.weights)?;
    let view_weights = channels.as_ref().and_then(|c| c.meta.weight_count(meta.inputs)).unwrap_or(0);
    let (weights, view_weights) = take(weights, weights.len().saturating_sub(view_weights));
    if let Some(channels) = &mut channels {
        channels.weights = view_weights;
        if rest_views != 0 {
            channels.rests = Block::Rest.values(rest_words, rest_views)?;
        }
        if local_views != 0 {
            channels.locals = Block::Local.values(local_words, local_views)?;
        }
        let local = channels.base_local(meta.codes);
        if !local.is_empty() {
            (codebook.precisions, codebook.layout) = (local, PrecisionLayout::Local);
        }
    }
    let taught =
        if has_taught { Some(taught::values(taught_words, taught_codes, codebook.dim)?) } else { None };
    let monitor = if has_monitor { Some(monitor::values(monitor_words)?) } else { None };

    check_codebook(&codebook)?;
    if let Some(channels) = &channels {
        for view in channels.views(&meta) {
            check_assignment(&view.codebook)?;
        }
    }
    let (mut calibration, mut rates) = (None, Rates::DEFAULT);
    if let Some(c) = meta.calibration {
        let table = Calibration { scores, p_values, held_out: c.held_out };
        check_calibration(&table)?;
        rates = Rates::new(f32::from_le_bytes(c.doubtful), f32::from_le_bytes(c.unfamiliar))
            .map_err(|_| ArtifactError::Rates)?;
        calibration = Some(table);
    }
    if let Some(channels) = &channels {
        extension::check_ambiguity(channels)?;
    }
    let decoder = meta.decoder.map(|d| Decoder {
        task: d.task,
        outputs: d.outputs as usize,
        inputs: channels.as_ref().map_or(meta.dim, |c| c.meta.decoder_inputs(meta.inputs, meta.dim)) as usize,
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
        weights,
        codebook,
        decoder,
        calibration,
        rates,
        self_test,
        channels,
        taught,
        monitor,
        info: sections.info,
    })
}
