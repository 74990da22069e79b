//! A trained model → `model.dab`, and the proof that the device agrees.
//!
//! ```text
//! Trained → Spec → artifact without a table → scores of held-out inputs → artifact with the table
//! ```
//!
//! The calibration table is made of dab-core's own scores, not of the trainer's: the device ranks an input
//! among numbers that it would have computed itself, bit for bit.

use anyhow::{Context, Result, ensure};
use dab_core::artifact::AlignedBytes;
use dab_core::artifact::schema::Residual;
use dab_core::artifact::writer::{CalibrationSpec, Codes, DecoderSpec, Dense, Head, Normalization, Spec};
use dab_core::{CovarianceKind, Rates, Task};
use serde::Serialize;

use crate::{
    bottleneck::encoder::Covariance,
    data::Table,
    dispatch::Wide,
    network::Output,
    trained::{Affine, Trained},
};

/// Inputs that travel in the artifact as known answers.
const SELF_TESTS: usize = 4;
/// Where the trainer's and the device's u may differ, relative to u or to one nat, whichever is more: a
/// distance below a nat is a small difference of terms of several nats in both.
pub const PARITY: f64 = 1e-4;

/// How well two sets of scores of the same inputs agree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parity {
    /// Inputs compared.
    pub inputs: usize,
    /// Largest |Δu|, nats.
    pub largest_difference: f64,
    /// Largest |Δu| / max(u, 1 nat).
    pub largest_relative: f64,
    /// Rank correlation (Spearman) of the two.
    pub rank_correlation: f64,
}

/// The artifact of a trained model, calibrated on `held_out`.
///
/// # Errors
/// When a number cannot be stored: the writer names it.
pub fn artifact(trained: &Trained, held_out: &Table, info: Vec<(String, String)>) -> Result<Vec<u8>> {
    let mut spec = spec(trained, info);
    spec.self_test = held_out.iter().take(SELF_TESTS).map(<[f32]>::to_vec).collect();
    let draft = spec.to_bytes().context("the trained model cannot be stored")?;
    if held_out.rows > 0 {
        let scores = scores(&draft, held_out)?;
        spec.calibration = Some(CalibrationSpec { scores, rates: Rates::DEFAULT });
    }
    spec.to_bytes().context("the calibration table cannot be stored")
}

/// u of every row as the device computes it.
///
/// # Errors
/// When the bytes are no model or a row is not an input of it.
pub fn scores(artifact: &[u8], inputs: &Table) -> Result<Vec<f32>> {
    let bytes = AlignedBytes::from(artifact);
    let model = bytes.model()?;
    let mut scratch = vec![0.0; model.scratch_len()];
    let wide = Wide::detect();
    let score = |row: &[f32]| Ok(model.assess_on(wide, row, &mut scratch)?.uncertainty);
    inputs.iter().map(score).collect()
}

/// Compares the trainer's scores with the device's.
///
/// # Errors
/// When they are of different inputs, or differ by more than [`PARITY`].
pub fn verify(trainer: &[f32], device: &[f32]) -> Result<Parity> {
    ensure!(trainer.len() == device.len(), "{} scores against {}", trainer.len(), device.len());
    let (mut largest_difference, mut largest_relative) = (0.0f64, 0.0f64);
    for (&a, &b) in trainer.iter().zip(device) {
        let difference = (f64::from(a) - f64::from(b)).abs();
        largest_difference = largest_difference.max(difference);
        largest_relative = largest_relative.max(difference / f64::from(a).max(1.0));
    }
    let rank_correlation = rank_correlation(trainer, device);
    let found = Parity { inputs: trainer.len(), largest_difference, largest_relative, rank_correlation };
    ensure!(
        largest_relative <= PARITY,
        "the device's scores differ from the trainer's by {largest_relative:.1e} of u, allowed are {PARITY:.0e}"
    );
    Ok(found)
}

/// Spearman's correlation: Pearson's, of the ranks; ties share their mean rank.
fn rank_correlation(a: &[f32], b: &[f32]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let size = (product(&a, &a) * product(&b, &b)).sqrt();
    if size > 0.0 { product(&a, &b) / size } else { 1.0 }
}

fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = start as f64 + (tied.len() - 1) as f64 / 2.0;
        tied.iter().for_each(|&i| ranks[i] = rank);
        start += tied.len();
    }
    ranks
}

fn spec(trained: &Trained, info: Vec<(String, String)>) -> Spec {
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
    });
    Spec {
        inputs: trained.input_scale.mean.len(),
        normalization: scaled.then(|| Normalization {
            mean: trained.input_scale.mean.clone(),
            std: trained.input_scale.std.clone(),
        }),
        layers: layers.collect(),
        head: Head {
            weight: transposed(&trained.head),
            bias: trained.head.bias.clone(),
            activation: trained.activation,
            covariance: match trained.covariance {
                Covariance::Diagonal => CovarianceKind::Diagonal,
                Covariance::Spectral => CovarianceKind::Spectral,
                Covariance::Cholesky => CovarianceKind::Cholesky,
            },
            dim: trained.dim,
        },
        codes: Codes {
            means: wide(&codebook.means),
            covs: wide(&codebook.covs),
            priors: wide(&codebook.priors),
            alpha: trained.alpha,
        },
        decoder: Some(decoder(trained)),
        calibration: None,
        self_test: Vec::new(),
        info,
    }
}

/// The decoder in the targets' own units; of a learned variance, the means alone.
fn decoder(trained: &Trained) -> DecoderSpec {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]) - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_difference_is_refused() {
        assert!(verify(&[1.0, 2.0], &[1.0, 2.0001]).is_ok());
        assert!(verify(&[1.0, 2.0], &[1.0, 2.001]).is_err());
        assert!(verify(&[1.0], &[1.0, 2.0]).is_err());
    }
}
