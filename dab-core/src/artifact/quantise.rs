//! A model with weights of four bytes → the same with weights of one (feature `alloc`).
//!
//! Everything else is taken over bit by bit, codes and precisions included; only the known answers are computed anew. The
//! calibration table was made of scores that the old weights gave: new held-out scores can replace it.
//!
//! The scales of rests stay, too, although they are 1/‖w‖ of rows that are rounded now. Rounding turns a row by as much as it changes
//! its length. Along an input that lies on the row's own axis only the length shows, but over all inputs the largest error of ρ²
//! is the same with scales of the rounded rows: some 0.3 % of ‖x‖² (tests/rest.rs). So a file with bytes keeps the scales of its
//! writer, which need not be 1/‖w‖.

use alloc::vec::Vec;

use super::aligned::AlignedBytes;
use super::derive::{calibration_table, quantised};
use super::error::ArtifactError;
use super::info::read_info;
use super::monitor::set_monitor;
use super::reader::sections;
use super::schema::{AmbiguityMeta, CalibrationMeta, LOCAL, MAX_CALIBRATION, REST};
use super::spec::{SpecError, WeightKind};
use super::taught::add_taught;
use super::writer::{Params, answered, size};
use crate::calibration::Calibration;
use crate::codebook::PrecisionLayout;
use crate::linalg::dot::take;
use crate::linalg::int8::Weights;
use crate::model::Model;

/// Rows of `columns` weights as a file with weights of one byte stores them: each a whole number of its row's scale.
#[must_use]
pub fn rounded(weights: &[f32], columns: usize) -> Vec<f32> {
    let (scales, bytes) = quantised(weights, columns);
    let rows = scales.iter().zip(bytes.chunks(columns.max(1)));
    rows.flat_map(|(&scale, row)| row.iter().map(move |&w| scale * f32::from(w))).collect()
}

/// Scores of held-out inputs, as the model with bytes gives them. Empty: the old table stays.
#[derive(Clone, Debug, Default)]
pub struct HeldOut {
    /// What p-values judge: uncertainties, or unfamiliarities in a model with channels.
    pub scores: Vec<f32>,
    /// Ambiguities, where the model has them.
    pub ambiguities: Vec<f32>,
}

/// The artifact in `bytes`, whose weights are floats, with weights of one byte.
///
/// # Errors
/// When the bytes are no model, or a score is not finite.
pub fn quantise(bytes: &[u8], held_out: &HeldOut) -> Result<Vec<u8>, SpecError> {
    let file = AlignedBytes::from(bytes);
    let model = file.model().map_err(SpecError::Refused)?;
    let sections = sections(file.as_slice()).map_err(SpecError::Refused)?;
    let mut meta = model.meta.clone();
    meta.int8 = true;
    let mut params = Params::new(WeightKind::Int8);
    base(&model, &mut params)?;
    if let (Some(old), Some(table)) = (&mut meta.calibration, model.calibration) {
        *old = CalibrationMeta {
            points: push_table(&mut params, &table, &held_out.scores, 0.0)?,
            held_out: count(&held_out.scores).unwrap_or(old.held_out),
            ..*old
        };
    }
    let inputs = model.meta.inputs as usize;
    let vectors: Vec<Vec<f32>> = model.self_test.inputs.chunks(inputs.max(1)).map(<[f32]>::to_vec).collect();
    params.floats.extend(model.self_test.inputs);
    let answers = params.floats.len();
    params.floats.extend(model.self_test.answers);
    let mut channels = model.channels_meta().cloned();
    if let Some(meta) = &mut channels {
        views(&model, &mut params)?;
        if let Some(channels) = model.channels() {
            params.some_views = channels.rests.to_bytes();
            params.some_views.extend(channels.locals.to_bytes());
        }
        params.features = sections.features & (REST | LOCAL);
        if let (Some(old), Some((table, _))) = (&mut meta.ambiguity, model.ambiguity_calibration()) {
            *old = AmbiguityMeta {
                points: push_table(&mut params, table, &held_out.ambiguities, f32::MIN)?,
                held_out: count(&held_out.ambiguities).unwrap_or(old.held_out),
                ..*old
            };
        }
    }
    let mut bytes = answered(&mut meta, channels.as_ref(), &mut params, sections.info, (answers, &vectors))?;
    // What was taught lies in the latent space, and stays; so does the monitor, whose thresholds were tuned on the old scores.
    let info = read_info(file.as_slice()).map_err(SpecError::Refused)?;
    if let Some(taught) = model.taught() {
        bytes = add_taught(&bytes, taught, &info).map_err(SpecError::Refused)?;
    }
    if let (Some(config), Some(tick)) = (model.monitor_config(), model.monitor_tick()) {
        bytes = set_monitor(&bytes, &config, tick, &info).map_err(SpecError::Refused)?;
    }
    Ok(bytes)
}

fn count(scores: &[f32]) -> Option<u32> {
    (!scores.is_empty()).then(|| size(scores.len()))
}

/// Appends the table of new scores, or the old one without any; gives its length.
fn push_table(
    params: &mut Params,
    old: &Calibration<'_>,
    scores: &[f32],
    least: f32,
) -> Result<u16, SpecError> {
    if scores.is_empty() {
        params.floats.extend(old.scores);
        params.floats.extend(old.p_values);
        return Ok(u16::try_from(old.scores.len()).unwrap_or(MAX_CALIBRATION));
    }
    let table = calibration_table("calibration.scores", scores, least)?;
    params.floats.extend(table.iter().map(|&(score, _)| score));
    params.floats.extend(table.iter().map(|&(_, p)| p));
    Ok(u16::try_from(table.len()).unwrap_or(MAX_CALIBRATION))
}

/// What format 1.0 has before the calibration table.
fn base(model: &Model<'_>, params: &mut Params) -> Result<(), SpecError> {
    params.floats.extend(model.normalize_mean);
    params.floats.extend(model.normalize_inverse_std);
    let (mut rest, mut width) = (model.layer_params, model.meta.inputs as usize);
    for (i, layer) in model.meta.layers.iter().enumerate() {
        let outputs = layer.outputs as usize;
        if model.meta.is_norm(i) {
            let (values, after) = take(rest, 1 + outputs);
            params.floats.extend(values);
            rest = after;
        } else {
            let (weight, after) = take(rest, outputs * width);
            params.push_weights("layers", weight, outputs, width)?;
            rest = after;
        }
        let (bias, after) = take(rest, if layer.bias { outputs } else { 0 });
        params.floats.extend(bias);
        (rest, width) = (after, outputs);
    }
    let raw = model.meta.head.covariance.raw_len(model.codebook.dim);
    params.push_weights("head.weight", model.head_weight, raw, width)?;
    let codes = &model.codebook;
    // Local precisions have a block of their own.
    let precisions = if codes.layout == PrecisionLayout::Local { &[] } else { codes.precisions };
    for values in [model.head_bias, codes.means, precisions, codes.log_dets, codes.priors] {
        params.floats.extend(values);
    }
    if let Some(decoder) = &model.decoder {
        params.floats.extend(decoder.weight);
        params.floats.extend(decoder.bias);
    }
    Ok(())
}

/// Tails and further views.
fn views(model: &Model<'_>, params: &mut Params) -> Result<(), SpecError> {
    for tails in model.tails() {
        params.floats.extend(tails.values());
    }
    let Some(channels) = model.channels() else { return Ok(()) };
    for view in channels.views(&model.meta) {
        params.floats.extend(view.normalize_mean);
        params.floats.extend(view.normalize_inverse_std);
        let Weights::Float(weight) = view.head_weight else {
            return Err(SpecError::Refused(ArtifactError::LeftOut { feature: "float32" }));
        };
        params.push_weights("views.head.weight", weight, view.codebook.dim, model.meta.inputs as usize)?;
        for values in [view.head_bias, view.codebook.means, view.codebook.priors] {
            params.floats.extend(values);
        }
        if let Some(decoder) = &view.decoder {
            params.floats.extend(decoder.weight);
            params.floats.extend(decoder.bias);
        }
    }
    Ok(())
}
