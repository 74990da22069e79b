//! How good predicted numbers are: RMSE, and the likelihood of a predicted spread.
//!
//! predictions + targets (+ variances) → `Regression`.
//!
//! ```text
//! RMSE = √ mean (ŷ − y)²      NLL = mean ½ [ln 2πv + (ŷ − y)²/v]
//! ```
//!
//! RMSE is in the unit of its inputs: invert the target scale first for errors in raw units.

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::data::Table;

/// Quality of predicted numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Regression {
    /// Root mean squared error over all entries, in the targets' unit.
    pub rmse: f64,
    /// Mean absolute error, same unit.
    pub mae: f64,
    /// Mean Gaussian negative log-likelihood per entry, nats, where variances were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nll: Option<f64>,
}

impl Regression {
    /// Measures `predicted` against `targets`; `variances` (one per entry) add the likelihood.
    pub fn new(predicted: &Table, targets: &Table, variances: Option<&Table>) -> Result<Self> {
        let n = targets.values.len();
        ensure!(n > 0, "no examples: the metric is undefined");
        let shape = |t: &Table| (t.rows, t.cols);
        for other in [Some(predicted), variances].into_iter().flatten() {
            ensure!(shape(other) == shape(targets), "shape {:?} against {:?}", shape(other), shape(targets));
            other.check_finite("predictions")?;
        }
        let residuals: Vec<f64> = predicted
            .values
            .iter()
            .zip(&targets.values)
            .map(|(&p, &t)| f64::from(p) - f64::from(t))
            .collect();
        let nll = variances.map(|v| gaussian_nll(&residuals, &v.values)).transpose()?;
        Ok(Self {
            rmse: (residuals.iter().map(|r| r * r).sum::<f64>() / n as f64).sqrt(),
            mae: residuals.iter().map(|r| r.abs()).sum::<f64>() / n as f64,
            nll,
        })
    }
}

fn gaussian_nll(residuals: &[f64], variances: &[f32]) -> Result<f64> {
    ensure!(variances.iter().all(|&v| v > 0.0), "a variance is positive");
    let term = |(r, &v): (&f64, &f32)| {
        let v = f64::from(v);
        0.5 * ((std::f64::consts::TAU * v).ln() + r * r / v)
    };
    Ok(residuals.iter().zip(variances).map(term).sum::<f64>() / residuals.len() as f64)
}

/// Share of targets within `half_width` of the prediction: how honest a band is.
pub fn coverage(predicted: &[f32], half_width: &[f32], targets: &[f32]) -> f64 {
    let inside =
        predicted.iter().zip(half_width).zip(targets).filter(|((p, w), t)| (*p - *t).abs() <= **w).count();
    inside as f64 / targets.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_errors() {
        let predicted = Table::column(vec![1.0, 2.0]);
        let targets = Table::column(vec![1.0, 4.0]);
        let report = Regression::new(&predicted, &targets, Some(&Table::column(vec![1.0, 1.0]))).unwrap();
        assert_eq!((report.rmse, report.mae), (2f64.sqrt(), 1.0));
        assert!((report.nll.unwrap() - (0.5 * std::f64::consts::TAU.ln() + 1.0)).abs() < 1e-12);
        assert_eq!(coverage(&predicted.values, &[0.0, 1.0], &targets.values), 0.5);
        // 2, 1 and 0.5 away; the first lies on the edge of its band.
        assert_eq!(coverage(&[3.0, 4.0, 2.0], &[2.0, 0.9, 0.6], &[1.0, 5.0, 2.5]), 2.0 / 3.0);
        let report = Regression::new(&predicted, &targets, Some(&Table::column(vec![0.5, 4.0]))).unwrap();
        let [first, second] = [0.5, 4.0].map(|variance| 0.5 * (std::f64::consts::TAU * variance).ln());
        assert!((report.nll.unwrap() - (first + second + 0.5) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn refusals() {
        let two = Table::column(vec![1.0, 2.0]);
        assert!(Regression::new(&Table::column(vec![1.0]), &two, None).is_err());
        assert!(Regression::new(&two, &two, Some(&Table::column(vec![1.0, 0.0]))).is_err());
    }
}
