//! Ridge regression: the decoder of a regression that is not trained by gradients.
//!
//! ```text
//! min_W  ‖Y − X W − b‖² / n + λ ‖W‖²,   X standardised, λ from a path, chosen by held-out error
//! W = (Xᵀ X / n + λ)⁻¹ Xᵀ Y / n  =  Xᵀ (X Xᵀ / n + λ)⁻¹ Y / n
//! ```
//!
//! The first form inverts columns × columns numbers, the second rows × rows: the smaller of the two is taken.

use anyhow::{Context, Result, ensure};
use nalgebra::DMatrix;

use crate::data::{Scale, Table};

/// Penalties λ, strongest first.
const PENALTIES: [f64; 9] = [10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4];

/// A linear map from inputs to targets, both in their own units.
#[derive(Clone, Debug, PartialEq)]
pub struct Ridge {
    /// Row-major, `targets × columns`.
    pub weight: Vec<f64>,
    /// One per target.
    pub bias: Vec<f64>,
    pub penalty: f64,
}

fn matrix(table: &Table) -> DMatrix<f64> {
    DMatrix::from_row_iterator(table.rows, table.cols, table.values.iter().map(|&x| f64::from(x)))
}

impl Ridge {
    /// Fits `train` and chooses the penalty on `held_out` (on `train` when there is none), unless it is given.
    pub fn fit(train: (&Table, &Table), held_out: (&Table, &Table), only: Option<f64>) -> Result<Self> {
        Self::fit_scaled(train, held_out, Scale::fit(train.0), only)
    }

    /// [`Ridge::fit`] with a scale of the inputs that is given.
    pub fn fit_scaled(
        train: (&Table, &Table),
        held_out: (&Table, &Table),
        scale: Scale,
        only: Option<f64>,
    ) -> Result<Self> {
        for (inputs, targets) in [train, held_out] {
            ensure!(inputs.rows == targets.rows, "{} rows but {} targets", inputs.rows, targets.rows);
        }
        ensure!(train.0.rows > 0, "no rows to fit");
        let centre = Scale::fit(train.1);
        let x = matrix(&scale.apply(train.0));
        let mut y = matrix(train.1);
        for (mut column, &mean) in y.column_iter_mut().zip(&centre.mean) {
            column.add_scalar_mut(-f64::from(mean));
        }
        let n = x.nrows() as f64;
        let wide = x.ncols() > x.nrows();
        let (gram, right) = match wide {
            true => (&x * x.transpose() / n, y / n),
            false => (x.transpose() * &x / n, x.transpose() * &y / n),
        };
        let judge = if held_out.0.rows > 0 { held_out } else { train };
        let mut best: Option<(f64, Self)> = None;
        for penalty in only.map_or_else(|| PENALTIES.to_vec(), |only| vec![only]) {
            let sum = &gram + DMatrix::identity(gram.nrows(), gram.ncols()) * penalty;
            let solved = sum.cholesky().context("the inputs' covariance is not finite")?.solve(&right);
            let solved = if wide { x.transpose() * solved } else { solved };
            let candidate = Self::unscaled(&solved, &scale, &centre, penalty);
            let error = candidate.error(judge.0, judge.1);
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, candidate));
            }
        }
        best.map(|(_, fitted)| fitted).context("no penalty to try")
    }

    fn unscaled(solved: &DMatrix<f64>, scale: &Scale, centre: &Scale, penalty: f64) -> Self {
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for (column, &mean) in solved.column_iter().zip(&centre.mean) {
            let own: Vec<f64> = column.iter().zip(&scale.std).map(|(w, &std)| w / f64::from(std)).collect();
            let shift: f64 = own.iter().zip(&scale.mean).map(|(w, &m)| w * f64::from(m)).sum();
            bias.push(f64::from(mean) - shift);
            weight.extend(own);
        }
        Self { weight, bias, penalty }
    }

    /// Target `column` of an input.
    pub fn predict(&self, input: &[f32], column: usize) -> f64 {
        let weights = &self.weight[column * input.len()..(column + 1) * input.len()];
        weights.iter().zip(input).map(|(w, &x)| w * f64::from(x)).sum::<f64>() + self.bias[column]
    }

    /// Mean squared error over all targets.
    pub fn error(&self, inputs: &Table, targets: &Table) -> f64 {
        let rows = inputs.iter().zip(targets.iter());
        let squares = rows.map(|(row, wanted)| {
            let each =
                wanted.iter().enumerate().map(|(at, &y)| (self.predict(row, at) - f64::from(y)).powi(2));
            each.sum::<f64>()
        });
        squares.sum::<f64>() / targets.values.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn a_linear_law_is_found() {
        let mut random = Random::new(2, "ridge");
        let rows: Vec<[f32; 3]> =
            (0..200).map(|_| [(); 3].map(|()| 5.0 + 2.0 * random.normal() as f32)).collect();
        let law = |x: &[f32; 3]| 3.0 * x[0] - x[2] + 40.0;
        let targets = Table::column(rows.iter().map(law).collect());
        let inputs = Table::from_rows(&rows).unwrap();
        let fitted = Ridge::fit((&inputs, &targets), (&inputs, &targets), None).unwrap();
        assert!(fitted.error(&inputs, &targets) < 1e-4, "{fitted:?}");
        assert!((fitted.weight[0] - 3.0).abs() < 1e-2 && fitted.weight[1].abs() < 1e-2, "{fitted:?}");
        assert!(Ridge::fit((&inputs, &Table::column(vec![1.0])), (&inputs, &targets), None).is_err());
    }

    /// Both forms are the same map: rows that are given twice make the same problem with more rows than columns.
    #[test]
    fn more_columns_than_rows_are_fitted_alike() {
        let mut random = Random::new(4, "ridge");
        let mut draw = |count: usize| -> Vec<f32> { (0..count).map(|_| random.normal() as f32).collect() };
        let (inputs, targets) = (draw(6 * 10), draw(6));
        let fitted = |times: usize| {
            let inputs = Table { rows: 6 * times, cols: 10, values: inputs.repeat(times) };
            let targets = Table::column(targets.repeat(times));
            Ridge::fit((&inputs, &targets), (&inputs, &targets), Some(0.1)).unwrap()
        };
        let (wide, tall) = (fitted(1), fitted(2));
        for (wide, tall) in wide.weight.iter().chain(&wide.bias).zip(tall.weight.iter().chain(&tall.bias)) {
            assert!((wide - tall).abs() < 1e-6, "{wide} {tall}");
        }
    }

    #[test]
    fn noise_asks_for_a_penalty() {
        let mut random = Random::new(3, "ridge");
        let mut draw = |rows: usize, cols: usize| Table {
            rows,
            cols,
            values: (0..rows * cols).map(|_| random.normal() as f32).collect(),
        };
        let (train, held) = ((draw(40, 30), draw(40, 1)), (draw(40, 30), draw(40, 1)));
        let fitted = Ridge::fit((&train.0, &train.1), (&held.0, &held.1), None).unwrap();
        assert!(fitted.penalty >= 1.0, "{fitted:?}");
    }
}
