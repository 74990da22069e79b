//! A trained model → `model.dab`.
//!
//! ```text
//! Snapshot → Spec → artifact without a table → scores of held-out inputs → artifact with the table
//! ```
//!
//! The calibration table is made of dab-core's own scores, not of the trainer's: the device ranks an input
//! among numbers that it would have computed itself, bit for bit.

use anyhow::{Context, Result};
use dab_core::artifact::info::{INPUT_MEANS, means_text};
use dab_core::artifact::schema::Residual;
use dab_core::artifact::writer::{CalibrationSpec, Codes, DecoderSpec, Dense, Head, Spec};
use dab_core::{CovarianceKind, Rates, Task};

use super::{device, names};
use crate::{
    config::Experiment,
    data::{Description, Scale, Table},
    model::{
        encoder::Covariance,
        network::Output,
        snapshot::{Affine, Snapshot},
    },
};

/// Inputs that travel in the artifact as known answers.
const SELF_TESTS: usize = 4;
/// The artifact of a trained model, calibrated on `held_out`.
pub fn artifact(trained: &Snapshot, held_out: &Table, info: Vec<(String, String)>) -> Result<Vec<u8>> {
    let mut spec = spec(trained, info);
    spec.self_test = held_out.iter().take(SELF_TESTS).map(<[f32]>::to_vec).collect();
    let draft = spec.to_bytes().context("the trained model cannot be stored")?;
    if held_out.rows > 0 {
        let scores = scores(&draft, held_out)?;
        spec.calibration = Some(CalibrationSpec { rates: Rates::for_held_out(scores.len() as u32), scores });
    }
    spec.to_bytes().context("the calibration table cannot be stored")
}

/// What an artifact says about itself: its experiment, its seed, and the names of inputs and outputs.
pub fn info(experiment: &Experiment, data: &Description) -> Result<Vec<(String, String)>> {
    let mut info = vec![
        ("experiment".to_owned(), experiment.name.clone()),
        ("seed".to_owned(), experiment.seed.to_string()),
    ];
    // Inputs that were scaled before the model saw them are no longer the named columns.
    let inputs = if data.input_scale.is_none() { data.input_names.as_slice() } else { &[] };
    for (key, list) in [(names::INPUTS, inputs), (names::OUTPUTS, &data.output_names)] {
        if !list.is_empty() {
            info.push((key.to_owned(), names::join(list)?));
        }
    }
    Ok(info)
}

/// What the inputs are on average in the rows that a model learnt from, for a file whose normalisation does not say it.
pub fn means(train: &Table) -> (String, String) {
    (INPUT_MEANS.to_owned(), means_text(&Scale::fit(train).mean))
}

/// u of every row as the device computes it.
pub fn scores(artifact: &[u8], inputs: &Table) -> Result<Vec<f32>> {
    Ok(device::assessments(artifact, inputs)?.iter().map(|said| said.uncertainty).collect())
}

/// What the file of a trained model holds, but for calibration and known answers.
pub(crate) fn spec(trained: &Snapshot, info: Vec<(String, String)>) -> Spec {
    let codebook = &trained.codebook;
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect();
    let scaled = trained.input_scale.mean.iter().any(|&m| m != 0.0)
        || trained.input_scale.std.iter().any(|&s| s != 1.0);
    let layers = trained.layers.iter().map(|layer| Dense {
        weight: transposed(&layer.affine),
        bias: layer.affine.bias.clone(),
        outputs: layer.affine.outputs,
        activation: layer.activation,
        residual: layer.residual.map(|source| Residual { source: source as u8, before_activation: false }),
        norm: None,
    });
    let head = Head {
        weight: transposed(&trained.head),
        bias: trained.head.bias.clone(),
        activation: trained.activation,
        covariance: match trained.covariance {
            Covariance::Diagonal => CovarianceKind::Diagonal,
            Covariance::Spectral => CovarianceKind::Spectral,
            Covariance::Cholesky => CovarianceKind::Cholesky,
        },
        dim: trained.dim,
    };
    let codes = Codes {
        means: wide(&codebook.means),
        covs: wide(&codebook.covs),
        priors: wide(&codebook.priors),
        alpha: trained.alpha,
    };
    Spec {
        normalization: scaled.then(|| trained.input_scale.to_normalization()),
        layers: layers.collect(),
        decoder: Some(decoder(trained)),
        info,
        ..Spec::new(trained.input_scale.mean.len(), head, codes)
    }
}

/// The decoder in the targets' own units; of a learned variance, the means alone.
fn decoder(trained: &Snapshot) -> DecoderSpec {
    let affine = &trained.decoder;
    let (outputs, task) = match trained.output {
        Output::Regression(count, _) => (count, Task::Regression),
        Output::Classes(count) => (count, Task::Classification),
    };
    let mut weight = transposed(affine);
    weight.truncate(outputs * affine.inputs);
    let mut bias = affine.bias.clone().unwrap_or_else(|| vec![0.0; outputs]);
    bias.truncate(outputs);
    if let Some(scale) = &trained.target_scale {
        for ((row, bias), (mean, std)) in
            weight.chunks_mut(affine.inputs).zip(&mut bias).zip(scale.mean.iter().zip(&scale.std))
        {
            row.iter_mut().for_each(|w| *w *= std);
            *bias = *bias * std + mean;
        }
    }
    DecoderSpec { weight, bias: Some(bias), outputs, task }
}

fn transposed(affine: &Affine) -> Vec<f32> {
    let (inputs, outputs) = (affine.inputs, affine.outputs);
    (0..inputs * outputs).map(|k| affine.weight[(k % inputs) * outputs + k / inputs]).collect()
}
