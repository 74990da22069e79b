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
//!
//! Rows that are fewer than columns have a covariance in the space of the rows alone; everywhere else it is the ridge.

use anyhow::{Result, ensure};
use nalgebra::{DMatrix, DVector};

use crate::{
    data::Table,
    support::{
        matrix::{Cholesky, span},
        parallel::map_blocks,
    },
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
    /// Where the training rows were fewer than their columns: their space.
    space: Option<Space>,
}

/// The space of the training rows, in which everything else of a [`Mahalanobis`] is.
struct Space {
    /// Orthonormal, columns × axes.
    basis: DMatrix<f64>,
    centre: Vec<f64>,
    /// The variance along every other direction.
    ridge: f64,
}

impl Space {
    /// Rows as seen in the space, and their squared distances from it.
    fn enter(&self, inputs: &Table) -> (Table, Vec<f64>) {
        let axes = self.basis.ncols();
        let parts = map_blocks(inputs.rows, BLOCK, |rows| {
            rows.map(|i| {
                let row = inputs.row(i).iter().zip(&self.centre).map(|(&x, c)| f64::from(x) - c);
                let row = DVector::from_iterator(inputs.cols, row);
                let along = self.basis.tr_mul(&row);
                let outside = (row.norm_squared() - along.norm_squared()).max(0.0);
                (along.iter().map(|&x| x as f32).collect::<Vec<_>>(), outside)
            })
            .collect::<Vec<_>>()
        });
        let (values, outside): (Vec<_>, Vec<_>) = parts.into_iter().flatten().unzip();
        (Table { rows: inputs.rows, cols: axes, values: values.concat() }, outside)
    }
}

impl Mahalanobis {
    /// Fits one Gaussian per class, all with the pooled covariance; `labels` of `None` is one class.
    pub fn fit(inputs: &Table, labels: Option<&[u32]>) -> Result<Self> {
        ensure!(inputs.rows > 0, "no rows to fit");
        let one_class = vec![0; inputs.rows];
        let labels = labels.unwrap_or(&one_class);
        ensure!(labels.len() == inputs.rows, "{} rows but {} labels", inputs.rows, labels.len());
        if inputs.rows >= inputs.cols {
            return Ok(Self::fit_in(inputs, labels, inputs.cols)?.0);
        }
        let basis = span(&inputs.values, inputs.rows, inputs.cols);
        let centre = inputs.column_stats().iter().map(|s| s.mean).collect();
        let mut space = Space { basis, centre, ridge: 1.0 };
        let (fitted, ridge) = Self::fit_in(&space.enter(inputs).0, labels, inputs.cols)?;
        space.ridge = ridge;
        Ok(Self { space: Some(space), ..fitted })
    }

    /// Fits to rows in a space of `columns` dimensions, of which they may have fewer; and the ridge.
    fn fit_in(inputs: &Table, labels: &[u32], columns: usize) -> Result<(Self, f64)> {
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
        let (covariance, ridge) = pooled(inputs, labels, &centre, &means, columns);
        let cholesky = Cholesky::new(covariance, dim)?;
        // A class without examples must attract nobody.
        let mut means: Vec<Vec<f64>> =
            means.into_iter().zip(&counts).filter(|&(_, &n)| n > 0).map(|(m, _)| m).collect();
        means.iter_mut().for_each(|m| cholesky.whiten(m));
        Ok((Self { centre, cholesky, means, space: None }, ridge))
    }

    /// Squared distance to the nearest class mean, per row.
    pub fn distances(&self, inputs: &Table) -> Vec<f64> {
        let Some(space) = &self.space else { return self.distances_in(inputs) };
        let (inside, outside) = space.enter(inputs);
        self.distances_in(&inside).iter().zip(outside).map(|(d, o)| d + o / space.ridge).collect()
    }

    fn distances_in(&self, inputs: &Table) -> Vec<f64> {
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

/// Pooled within-class covariance with the ridge, lower triangle; and the ridge.
fn pooled(
    inputs: &Table,
    labels: &[u32],
    centre: &[f64],
    means: &[Vec<f64>],
    columns: usize,
) -> (Vec<f64>, f64) {
    let dim = inputs.cols;
    let mut covariance = within(inputs, labels, centre, means);
    let trace: f64 = (0..dim).map(|j| covariance[j * dim + j]).sum();
    // All-constant inputs leave no scale; any positive ridge then gives a finite distance.
    let ridge = if trace > 0.0 { RIDGE * trace / columns as f64 } else { RIDGE };
    for j in 0..dim {
        covariance[j * dim + j] += ridge;
    }
    (covariance, ridge)
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
    fn fewer_rows_than_columns_have_the_distances_of_the_whole_covariance() {
        let (count, cols) = (9, 25);
        let value = |i: usize| ((i * 7919 % 1013) as f32 / 100.0) * (1 + i % 3) as f32;
        let few = Table::new(count, cols, (0..count * cols).map(value).collect()).unwrap();
        let labels: Vec<u32> = (0..count as u32).map(|i| i % 2).collect();
        // Each row four times: more rows than columns, and the same covariance.
        let again: Vec<usize> = (0..4 * count).map(|i| i % count).collect();
        let often: Vec<u32> = again.iter().map(|&i| labels[i]).collect();
        let small = Mahalanobis::fit(&few, Some(&labels)).unwrap();
        let large = Mahalanobis::fit(&few.select(&again), Some(&often)).unwrap();
        assert!(small.space.is_some() && large.space.is_none());
        let other = Table::new(3, cols, (500..500 + 3 * cols).map(value).collect()).unwrap();
        for (a, b) in small.distances(&other).iter().zip(large.distances(&other)) {
            assert!((a / b - 1.0).abs() < 1e-4, "{a} {b}");
        }
        let own = small.distances(&few);
        assert!(own.iter().zip(large.distances(&few)).all(|(a, b)| (a - b).abs() < 1e-2), "{own:?}");
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
