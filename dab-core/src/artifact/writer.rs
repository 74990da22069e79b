//! Bytes from a model: the host's side of the artifact (feature `alloc`).
//!
//! [`Spec`] is the model as people think of it (weights, covariances, held-out scores);
//! [`Spec::to_bytes`] derives what inference needs (precision factors, log-determinants, the calibration
//! table, known answers), in float64, and encodes it with the reader's own structs. Whatever it returns,
//! [`Model::from_bytes`](crate::Model::from_bytes) has accepted.

use alloc::format;
use alloc::vec::Vec;

use super::aligned::AlignedBytes;
use super::crc::{Crc, crc32c};
use super::derive::{
    calibration_table, check_finite, check_len, check_reach, diagonal_precision, full_precision, inverse_std,
    priors, quantised,
};
use super::schema::{
    CHANNELS, CalibrationMeta, ChannelsMeta, CovarianceKind, DecoderMeta, DecoderReads, HEADER_LEN, HeadMeta,
    INT8, LOCAL, LayerMeta, MAGIC, MAJOR, MAX_LAYERS, MAX_SELF_TESTS, Meta, NORMS, PARAMS_ALIGN, REST,
    SelfTestMeta, minor, schema_key,
};
pub use super::spec::{
    AmbiguitySpec, BaseSpec, CalibrationSpec, ChannelsSpec, Codes, DecoderSpec, Dense, Head, LocalSpec,
    Normalization, RestSpec, Spec, SpecError, ViewDecoder, ViewSpec, WeightKind,
};
use crate::isa::Baseline;
use crate::model::Model;
use crate::scalar::{LARGEST, SMALLEST};

/// Held-out scores, as errors name them.
const CALIBRATION: &str = "calibration.scores";
/// Known-answer vectors that are made up when the caller gives none.
const DEFAULT_SELF_TESTS: usize = 4;

/// The parameters as they go into the file: flushed into the numeric domain, or refused.
pub(super) struct Params {
    kind: WeightKind,
    pub(super) floats: Vec<f32>,
    /// Weights of one byte, which lie behind all floats.
    pub(super) bytes: Vec<i8>,
    /// The blocks of rests and of local precisions, behind everything else.
    pub(super) some_views: Vec<u8>,
    /// Their feature bits.
    pub(super) features: u32,
}

impl Params {
    pub(super) const fn new(kind: WeightKind) -> Self {
        Self { kind, floats: Vec::new(), bytes: Vec::new(), some_views: Vec::new(), features: 0 }
    }

    /// Appends the weights of a dense layer or a head, `[rows, columns]`: in bytes, their scales alone.
    pub(super) fn push_weights(
        &mut self,
        part: &str,
        values: &[f32],
        rows: usize,
        columns: usize,
    ) -> Result<(), SpecError> {
        let begin = self.floats.len();
        self.push(part, values, rows * columns)?;
        if self.kind == WeightKind::Int8 {
            let (scales, bytes) = quantised(&self.floats.split_off(begin), columns);
            self.floats.extend(scales);
            self.bytes.extend(bytes);
        }
        Ok(())
    }

    /// Appends values that must be `expected` many and lie in the numeric domain; those below its
    /// smallest magnitude become 0.
    pub(super) fn push(&mut self, part: &str, values: &[f32], expected: usize) -> Result<(), SpecError> {
        check_len(part, values.len(), expected)?;
        for (index, &value) in values.iter().enumerate() {
            check_finite(part, index, value.into())?;
            if value.abs() > LARGEST {
                return Err(SpecError::OutOfRange { part: part.into(), index, value: value.into() });
            }
            self.floats.push(if value.abs() < SMALLEST { 0.0 } else { value });
        }
        Ok(())
    }

    pub(super) fn push_optional(
        &mut self,
        part: &str,
        values: Option<&Vec<f32>>,
        expected: usize,
    ) -> Result<(), SpecError> {
        values.map_or(Ok(()), |v| self.push(part, v, expected))
    }
}

impl Spec {
    /// The artifact. The same spec gives the same bytes.
    ///
    /// # Errors
    /// When the parts do not fit together or hold impossible numbers, by the name of the part.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SpecError> {
        if self.head.covariance == CovarianceKind::Constant && self.channels.is_none() {
            return Err(SpecError::ConstantCovariance);
        }
        let vectors = self.self_test_inputs()?;
        let mut meta = self.meta(vectors.len())?;
        let channels = self.channels.as_ref().map(ChannelsSpec::meta).transpose()?;
        let (mut params, answers) = self.params(&vectors)?;
        let info = postcard::to_allocvec(&self.info).map_err(|_| SpecError::TooLarge)?;
        answered(&mut meta, channels.as_ref(), &mut params, &info, (answers, &vectors))
    }

    fn meta(&self, vectors: usize) -> Result<Meta, SpecError> {
        let layers = self.layers.iter().map(|layer| LayerMeta {
            outputs: size(layer.outputs),
            bias: layer.bias.is_some(),
            activation: layer.activation,
            residual: layer.residual,
        });
        let found = self.layers.len();
        if found > MAX_LAYERS {
            return Err(SpecError::TooMany { part: "layers".into(), max: MAX_LAYERS, found });
        }
        let calibration = match &self.calibration {
            Some(c) => {
                let table = calibration_table(CALIBRATION, &c.scores, 0.0)?;
                check_reach(&table, c.scores.len(), c.rates.unfamiliar())?;
                Some(CalibrationMeta {
                    points: table.len() as u16,
                    held_out: size(c.scores.len()),
                    doubtful: c.rates.doubtful().to_le_bytes(),
                    unfamiliar: c.rates.unfamiliar().to_le_bytes(),
                })
            }
            None => None,
        };
        Ok(Meta {
            inputs: size(self.inputs),
            normalized: self.normalization.is_some(),
            layers: layers.collect(),
            head: HeadMeta {
                activation: self.head.activation,
                bias: self.head.bias.is_some(),
                covariance: self.head.covariance,
            },
            dim: size(self.head.dim),
            codes: size(self.codes.priors.len()),
            alpha: (self.codes.alpha + 0.0).to_le_bytes(),
            decoder: self.decoder.as_ref().map(|d| DecoderMeta {
                task: d.task,
                outputs: size(d.outputs),
                bias: d.bias.is_some(),
            }),
            calibration,
            self_test: SelfTestMeta { vectors: vectors as u8, digest: [0; 4] },
            norms: self
                .layers
                .iter()
                .rev()
                .fold(0, |mask, layer| mask << 1 | u16::from(layer.norm.is_some())),
            int8: self.weights == WeightKind::Int8,
        })
    }

    /// All parameters in the file's order, and where the known answers begin.
    fn params(&self, vectors: &[Vec<f32>]) -> Result<(Params, usize), SpecError> {
        let mut params = Params::new(self.weights);
        if let Some(n) = &self.normalization {
            params.push("normalize.mean", &n.mean, self.inputs)?;
            let inverse = inverse_std("normalize.std", &n.std)?;
            params.push("normalize.std", &inverse, self.inputs)?;
        }
        let mut width = self.inputs;
        for (i, layer) in self.layers.iter().enumerate() {
            let name = format!("layers.{i}.weight");
            match layer.norm {
                Some(epsilon) => {
                    params.push(&format!("layers.{i}.epsilon"), &[epsilon], 1)?;
                    params.push(&name, &layer.weight, layer.outputs)?;
                }
                None => params.push_weights(&name, &layer.weight, layer.outputs, width)?,
            }
            params.push_optional(&format!("layers.{i}.bias"), layer.bias.as_ref(), layer.outputs)?;
            width = layer.outputs;
        }
        let Head { dim, covariance, .. } = self.head;
        let raw = covariance.raw_len(dim);
        params.push_weights("head.weight", &self.head.weight, raw, width)?;
        params.push_optional("head.bias", self.head.bias.as_ref(), raw)?;
        self.push_codes(&mut params)?;
        if let Some(d) = &self.decoder {
            let reads = self.channels.as_ref().map_or(DecoderReads::Latent, |c| c.base.decoder_reads);
            let read = if reads == DecoderReads::Input { self.inputs } else { dim };
            params.push("decoder.weight", &d.weight, d.outputs * read)?;
            params.push_optional("decoder.bias", d.bias.as_ref(), d.outputs)?;
        }
        if let Some(c) = &self.calibration {
            let table = calibration_table(CALIBRATION, &c.scores, 0.0)?;
            params.floats.extend(table.iter().map(|&(score, _)| score));
            params.floats.extend(table.iter().map(|&(_, p)| p));
        }
        // −0 becomes 0: a model has one encoding.
        params.floats.extend(vectors.iter().flatten().map(|x| x + 0.0));
        let answers = params.floats.len();
        params.floats.resize(answers + vectors.len(), 0.0);
        if let Some(channels) = &self.channels {
            let extension = channels.params(self.inputs, self.weights)?;
            params.floats.extend(extension.floats);
            params.bytes.extend(extension.bytes);
            params.some_views = channels.some_views(self.head.dim, self.codes.priors.len())?;
            params.features = if channels.rests.is_empty() { 0 } else { REST }
                | if channels.locals.is_empty() { 0 } else { LOCAL };
        }
        Ok((params, answers))
    }

    fn push_codes(&self, params: &mut Params) -> Result<(), SpecError> {
        let (codes, dim, covariance) = (&self.codes, self.head.dim, self.head.covariance);
        let k = codes.priors.len();
        let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        params.push("codes.mean", &narrow(&codes.means), k * dim)?;
        let size = match covariance {
            CovarianceKind::Diagonal => dim,
            CovarianceKind::Spectral | CovarianceKind::Cholesky => dim * dim,
            CovarianceKind::Constant => 0,
        };
        check_len("codes.cov", codes.covs.len(), k * size)?;
        for (index, &value) in codes.covs.iter().enumerate() {
            check_finite("codes.cov", index, value)?;
        }
        let (mut precisions, mut log_dets) = (Vec::new(), Vec::new());
        for code in 0..k {
            let cov = codes.covs.get(code * size..(code + 1) * size).unwrap_or_default();
            let (precision, log_det) = match covariance {
                CovarianceKind::Diagonal => diagonal_precision(cov),
                CovarianceKind::Spectral | CovarianceKind::Cholesky => full_precision(cov, dim, code)?,
                CovarianceKind::Constant => break,
            }
            .ok_or(SpecError::NotPositiveDefinite { code })?;
            precisions.extend(narrow(&precision));
            log_dets.push(log_det as f32);
        }
        params.push("codes.cov (inverted)", &precisions, k * covariance.precision_len(dim))?;
        params.push("codes.cov (log-determinant)", &log_dets, covariance.log_det_len(k))?;
        params.push("codes.prior", &priors("codes.prior", &codes.priors)?, k)
    }

    fn self_test_inputs(&self) -> Result<Vec<Vec<f32>>, SpecError> {
        let (found, max) = (self.self_test.len(), usize::from(MAX_SELF_TESTS));
        if found > max {
            return Err(SpecError::TooMany { part: "self-test vectors".into(), max, found });
        }
        for (i, vector) in self.self_test.iter().enumerate() {
            let part = format!("self_test[{i}]");
            check_len(&part, vector.len(), self.inputs)?;
            for (index, &value) in vector.iter().enumerate() {
                check_finite(&part, index, value.into())?;
            }
        }
        if found > 0 {
            return Ok(self.self_test.clone());
        }
        let mut random = Weyl(0);
        let vector = |random: &mut Weyl| {
            (0..self.inputs)
                .map(|i| {
                    let (mean, std) = match &self.normalization {
                        Some(n) => {
                            (n.mean.get(i).copied().unwrap_or(0.0), n.std.get(i).copied().unwrap_or(1.0))
                        }
                        None => (0.0, 1.0),
                    };
                    let x = mean + 2.0 * std * random.next();
                    if x.is_finite() { x } else { 0.0 }
                })
                .collect()
        };
        Ok((0..DEFAULT_SELF_TESTS).map(|_| vector(&mut random)).collect())
    }
}

/// Sizes beyond u32 become the largest u32, which no limit allows.
pub(super) fn size(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A low-discrepancy sequence in (−1, 1) for made-up known-answer inputs.
struct Weyl(u32);

impl Weyl {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9);
        // The upper 24 bits are exact in f32.
        (self.0 >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// Uncertainties of the vectors and the digest of everything else about them.
fn known_answers(model: &Model<'_>, vectors: &[Vec<f32>]) -> (Vec<f32>, u32) {
    let mut scratch = alloc::vec![0.0; model.scratch_len()];
    let mut digest = Crc::new();
    let answer = |vector: &Vec<f32>| model.answer(Baseline, vector, &mut scratch, &mut digest).unwrap_or(0.0);
    (vectors.iter().map(answer).collect(), digest.value())
}

/// The file with its known answers: encoded once without them, to compute them, and once with them. `at` is where they begin
/// in the parameters, and what they are the answers to.
pub(super) fn answered(
    meta: &mut Meta,
    channels: Option<&ChannelsMeta>,
    params: &mut Params,
    info: &[u8],
    (at, vectors): (usize, &[Vec<f32>]),
) -> Result<Vec<u8>, SpecError> {
    let draft = encode(meta, channels, params, info)?;
    let (found, digest) = known_answers(&draft.model().map_err(SpecError::Refused)?, vectors);
    for (answer, found) in params.floats.iter_mut().skip(at).zip(found) {
        *answer = found;
    }
    meta.self_test.digest = digest.to_le_bytes();
    let artifact = encode(meta, channels, params, info)?;
    artifact.model().map_err(SpecError::Refused)?;
    Ok(artifact.as_slice().into())
}

/// Header and sections, with their checksums.
fn encode(
    meta: &Meta,
    channels: Option<&ChannelsMeta>,
    params: &Params,
    info: &[u8],
) -> Result<AlignedBytes, SpecError> {
    let (norms, int8) = (meta.norms, meta.int8);
    let mut meta = postcard::to_allocvec(meta).map_err(|_| SpecError::TooLarge)?;
    let mut features = 0;
    if let Some(channels) = channels {
        meta.extend(postcard::to_allocvec(channels).map_err(|_| SpecError::TooLarge)?);
        features |= CHANNELS;
    }
    if norms != 0 {
        meta.extend(postcard::to_allocvec(&norms).map_err(|_| SpecError::TooLarge)?);
        features |= NORMS;
    }
    if int8 {
        features |= INT8;
    }
    features |= params.features;
    let mut values: Vec<u8> = bytemuck::cast_slice(&params.floats).to_vec();
    values.extend_from_slice(bytemuck::cast_slice(&params.bytes));
    values.resize(values.len().next_multiple_of(4), 0);
    values.extend_from_slice(&params.some_views);
    let params: &[u8] = &values;
    let params_at = (HEADER_LEN + meta.len()).next_multiple_of(PARAMS_ALIGN);
    let info_at = params_at + params.len();
    let len = info_at + info.len();
    if u32::try_from(len).is_err() {
        return Err(SpecError::TooLarge);
    }
    let mut body = meta.clone();
    body.resize(params_at - HEADER_LEN, 0);
    body.extend_from_slice(params);
    body.extend_from_slice(info);

    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&MAJOR.to_le_bytes());
    bytes.extend_from_slice(&minor(features).to_le_bytes());
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend_from_slice(&value.to_le_bytes());
    for value in [size(len), features, 0] {
        word(&mut bytes, value);
    }
    for (at, len) in [(HEADER_LEN, meta.len()), (params_at, params.len()), (info_at, info.len())] {
        word(&mut bytes, size(at));
        word(&mut bytes, size(len));
    }
    bytes.extend_from_slice(&schema_key(features).to_le_bytes());
    word(&mut bytes, crc32c(&body));
    let header = crc32c(&bytes);
    word(&mut bytes, header);
    bytes.extend_from_slice(&body);

    Ok(AlignedBytes::from(&*bytes))
}
