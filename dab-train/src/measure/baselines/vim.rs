//! Virtual-logit matching: what the classifier's subspace does not explain, added to the energy.
//!
//! features + last layer → `Vim` → one score per row (Wang, Li, Feng, Zhang: ViM, CVPR 2022).
//!
//! ```text
//! o = −W⁺ b     R: the directions of x − o with the least variance, half of them     r(x) = ‖R (x − o)‖
//! score = α r(x) − ln Σ exp(l),   α = mean of the largest logit ÷ mean r, over the training rows
//! ```
//!
//! o is where all logits are 0, so r does not depend on how the features were shifted.

use anyhow::{Context, Result, ensure};
use nalgebra::{DMatrix, DVector};

use super::{logits::energy, mahalanobis::second_moment};
use crate::{
    data::Table,
    support::{matrix::eigen, parallel::map_blocks},
};

/// More columns than this are not scored: the eigenvectors alone would take minutes.
pub const MOST_COLUMNS: usize = 1024;
/// The authors keep 512 of 768 columns and more, else half of them.
const KEPT: (usize, usize) = (768, 512);
/// Singular values below this share of the largest count as 0 in W⁺: rows of a softmax regression sum to 0 up to the
/// solver's tolerance, so one singular value is 0 but for rounding.
const SINGULAR: f64 = 1e-4;
/// Rows per unit of parallel work.
const BLOCK: usize = 128;

/// The residual space of the training features.
pub struct Vim {
    origin: Vec<f64>,
    /// Orthonormal rows, `columns` numbers each.
    residual: Vec<f64>,
    alpha: f64,
}

impl Vim {
    /// Fits to training features, their `logits`, and the layer that made these: `weight` is `classes × columns`.
    pub fn fit(inputs: &Table, logits: &Table, weight: &[f64], bias: &[f64]) -> Result<Self> {
        let (cols, classes) = (inputs.cols, bias.len());
        ensure!(inputs.rows > 0 && inputs.rows == logits.rows, "ViM needs logits of every training row");
        ensure!(weight.len() == classes * cols, "{} weights for {classes} × {cols}", weight.len());
        let matrix = DMatrix::from_row_slice(classes, cols, weight);
        let svd = matrix.svd(true, true);
        let least = SINGULAR * svd.singular_values.max();
        let origin = svd.solve(&-DVector::from_column_slice(bias), least);
        let origin = origin.map_err(anyhow::Error::msg).context("the origin of ViM")?;
        let origin: Vec<f64> = origin.iter().copied().collect();
        let moment = second_moment(inputs, &origin);
        let symmetric = DMatrix::from_fn(cols, cols, |i, j| moment[i.max(j) * cols + i.min(j)]);
        let eigen = eigen(symmetric);
        let mut order: Vec<usize> = (0..cols).collect();
        order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
        let kept = if cols >= KEPT.0 { KEPT.1 } else { cols / 2 };
        let residual = order[kept..]
            .iter()
            .flat_map(|&j| eigen.eigenvectors.column(j).iter().copied().collect::<Vec<_>>());
        let mut vim = Self { origin, residual: residual.collect(), alpha: 0.0 };
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let largest = |row: &[f32]| f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let norm = mean(vim.norms(inputs));
        // Features that never leave the kept directions have no residual to scale.
        vim.alpha = if norm > 0.0 { mean(logits.iter().map(largest).collect()) / norm } else { 0.0 };
        Ok(vim)
    }

    /// r of each row.
    fn norms(&self, inputs: &Table) -> Vec<f64> {
        let cols = inputs.cols;
        let blocks = map_blocks(inputs.rows, BLOCK, |rows| {
            let norm = |i| {
                let centred: Vec<f64> =
                    inputs.row(i).iter().zip(&self.origin).map(|(&x, o)| f64::from(x) - o).collect();
                let along = |axis: &[f64]| axis.iter().zip(&centred).map(|(a, x)| a * x).sum::<f64>().powi(2);
                self.residual.chunks_exact(cols).map(along).sum::<f64>().sqrt()
            };
            rows.map(norm).collect::<Vec<f64>>()
        });
        blocks.concat()
    }

    /// The score of each row, from its features and its logits.
    pub fn scores(&self, inputs: &Table, logits: &Table) -> Vec<f64> {
        let energy = energy(logits);
        self.norms(inputs).iter().zip(energy).map(|(r, e)| self.alpha * r + f64::from(e)).collect()
    }
}
