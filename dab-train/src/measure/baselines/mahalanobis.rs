//! Mahalanobis distance to the nearest class, and the relative one.
//!
//! training features (+ labels) → `Mahalanobis` → squared distance per input.
//!
//! ```text
//! M(x) = min_c (x − μ_c)ᵀ Σ⁻¹ (x − μ_c),  Σ shared by the classes;   relative: M(x) − M₀(x)
//! ```
//!
//! M₀ is the distance under one Gaussian of all data. Without classes M is M₀, and the ridge decides
//! the result where columns are collinear: directions that never vary in training count most.

use anyhow::{Result, ensure};

use crate::{
    data::Table,
    support::{matrix::Cholesky, parallel::map_blocks},
};

/// Added to the covariance's diagonal, as a fraction of its mean.
pub const RIDGE: f64 = 1e-6;
/// Rows per unit of parallel work.
const BLOCK: usize = 128;

/// Class means in the space where the shared covariance is the identity.
pub struct Mahalanobis {
    centre: Vec<f64>,
    cholesky: Cholesky,
    means: Vec<Vec<f64>>,
}

impl Mahalanobis {
    /// Fits one Gaussian per class, all with the pooled covariance; `labels` of `None` is one class.
    ///
    /// # Errors
    /// No rows, or differing lengths.
    pub fn fit(inputs: &Table, labels: Option<&[u32]>) -> Result<Self> {
        ensure!(inputs.rows > 0, "no rows to fit");
        let one_class = vec![0; inputs.rows];
        let labels = labels.unwrap_or(&one_class);
        ensure!(labels.len() == inputs.rows, "{} rows but {} labels", inputs.rows, labels.len());
        let classes = labels.iter().max().map_or(0, |&m| m as usize + 1);
        let dim = inputs.cols;
        let centre: Vec<f64> = inputs.column_stats().iter().map(|s| s.mean).collect();
        let mut means = vec![vec![0.0; dim]; classes];
        let mut counts = vec![0usize; classes];
        for (row, &label) in inputs.iter().zip(labels) {
            counts[label as usize] += 1;
            for ((m, &x), c) in means[label as usize].iter_mut().zip(row).zip(&centre) {
                *m += f64::from(x) - c;
            }
        }
        for (mean, &count) in means.iter_mut().zip(&counts) {
            mean.iter_mut().for_each(|m| *m /= count.max(1) as f64);
        }
        let cholesky = Cholesky::new(pooled(inputs, labels, &centre, &means), dim)?;
        // A class without examples must attract nobody.
        let mut means: Vec<Vec<f64>> =
            means.into_iter().zip(&counts).filter(|&(_, &n)| n > 0).map(|(m, _)| m).collect();
        means.iter_mut().for_each(|m| cholesky.whiten(m));
        Ok(Self { centre, cholesky, means })
    }

    /// Squared distance to the nearest class mean, per row.
    #[must_use]
    pub fn distances(&self, inputs: &Table) -> Vec<f64> {
        let blocks = map_blocks(inputs.rows, BLOCK, |rows| {
            let mut white = vec![0.0; inputs.cols];
            rows.map(|i| {
                for ((w, &x), c) in white.iter_mut().zip(inputs.row(i)).zip(&self.centre) {
                    *w = f64::from(x) - c;
                }
                self.cholesky.whiten(&mut white);
                let square =
                    |mean: &Vec<f64>| mean.iter().zip(&white).map(|(m, w)| (m - w) * (m - w)).sum::<f64>();
                self.means.iter().map(square).fold(f64::INFINITY, f64::min)
            })
            .collect::<Vec<f64>>()
        });
        blocks.concat()
    }
}

/// Mean of (x − centre)(x − centre)ᵀ, lower triangle.
pub(super) fn second_moment(inputs: &Table, centre: &[f64]) -> Vec<f64> {
    within(inputs, &vec![0; inputs.rows], centre, &[vec![0.0; inputs.cols]])
}

/// Pooled within-class covariance with the ridge, lower triangle.
fn pooled(inputs: &Table, labels: &[u32], centre: &[f64], means: &[Vec<f64>]) -> Vec<f64> {
    let dim = inputs.cols;
    let mut covariance = within(inputs, labels, centre, means);
    let trace: f64 = (0..dim).map(|j| covariance[j * dim + j]).sum();
    // All-constant inputs leave no scale; any positive ridge then gives a finite distance.
    let ridge = if trace > 0.0 { RIDGE * trace / dim as f64 } else { RIDGE };
    for j in 0..dim {
        covariance[j * dim + j] += ridge;
    }
    covariance
}

/// Mean outer product of the rows' differences from `centre` + their class's mean, lower triangle.
fn within(inputs: &Table, labels: &[u32], centre: &[f64], means: &[Vec<f64>]) -> Vec<f64> {
    let dim = inputs.cols;
    let partial = map_blocks(inputs.rows, inputs.rows.div_ceil(16), |rows| {
        let mut sum = vec![0.0; dim * dim];
        let mut residual = vec![0.0; dim];
        for i in rows {
            let mean = &means[labels[i] as usize];
            for (j, r) in residual.iter_mut().enumerate() {
                *r = f64::from(inputs.row(i)[j]) - centre[j] - mean[j];
            }
            for (j, &r) in residual.iter().enumerate() {
                for (s, &q) in sum[j * dim..=j * dim + j].iter_mut().zip(&residual) {
                    *s += r * q;
                }
            }
        }
        sum
    });
    let mut covariance = vec![0.0; dim * dim];
    for part in partial {
        covariance.iter_mut().zip(part).for_each(|(c, p)| *c += p / inputs.rows as f64);
    }
    covariance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_standard_deviations() {
        let rows: Vec<[f32; 2]> =
            (0..400).map(|i| [(i % 20) as f32 - 9.5, 10.0 * ((i / 20) as f32 - 9.5)]).collect();
        let table = Table::from_rows(&rows).unwrap();
        let std = table.column_stats()[0].std as f32;
        let fitted = Mahalanobis::fit(&table, None).unwrap();
        let d = fitted.distances(&Table::from_rows(&[[3.0 * std, 0.0], [0.0, 30.0 * std]]).unwrap());
        // The ridge shrinks the first column's distance by 5e-5 relative: 1e-6 of the larger variance.
        assert!((d[0] - 9.0).abs() < 1e-3 && (d[1] - 9.0).abs() < 1e-3, "{d:?}");
    }

    #[test]
    fn constant_columns_and_empty_classes_stay_finite() {
        let table = Table::from_rows(&[[0.0, 1.0], [1.0, 1.0], [5.0, 1.0], [6.0, 1.0]]).unwrap();
        let fitted = Mahalanobis::fit(&table, Some(&[0, 0, 2, 2])).unwrap();
        let d = fitted.distances(&Table::from_rows(&[[0.5, 1.0], [5.5, 1.0], [5.5, 1e6]]).unwrap());
        assert!(d[0] < 1e-6 && d[1] < 1e-6 && d[2] > 1e6 && d[2].is_finite(), "{d:?}");
        assert!(Mahalanobis::fit(&table, Some(&[0])).is_err());
    }
}
