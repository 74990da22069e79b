//! How good class probabilities are: accuracy, NLL, Brier, ECE.
//!
//! logits → [`softmax`] → `Classification::new` → one report.
//!
//! ```text
//! NLL = −mean ln p_y     Brier = mean Σ_j (p_j − 1[j = y])²     ECE = Σ_b (n_b/n) |acc_b − conf_b|
//! ```
//!
//! The Brier score here is the full multi-class one, from 0 to 2: for two classes it is twice the
//! score that many libraries call by the same name.

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::data::{Table, Targets};

/// Equal-width confidence bins of the calibration error, as in most of the literature.
pub const ECE_BINS: usize = 15;
/// Probabilities below this enter the NLL as this: the smallest normal f32.
const SMALLEST: f64 = f32::MIN_POSITIVE as f64;

/// Quality of class probabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Classification {
    /// Share of examples whose most probable class is right.
    pub accuracy: f64,
    /// Mean negative log-likelihood, nats.
    pub nll: f64,
    /// Multi-class Brier score, 0 to 2.
    pub brier: f64,
    /// Expected calibration error over [`ECE_BINS`] bins.
    pub ece: f64,
}

/// Row-wise softmax, summed in f64.
pub fn softmax(logits: &Table) -> Table {
    let mut values = Vec::with_capacity(logits.values.len());
    for row in logits.iter() {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = row.iter().map(|&x| f64::from(x - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        values.extend(powers.iter().map(|p| (p / sum) as f32));
    }
    Table { rows: logits.rows, cols: logits.cols, values }
}

/// Whether each row's largest entry is the right class.
pub fn correct(table: &Table, labels: &[u32]) -> Vec<bool> {
    table.largest().iter().zip(labels).map(|(p, l)| p == l).collect()
}

/// [`correct`] where there are classes.
pub fn correct_of(table: &Table, targets: &Targets) -> Option<Vec<bool>> {
    let Targets::Classes { labels, .. } = targets else { return None };
    Some(correct(table, labels))
}

impl Classification {
    /// Measures probabilities (rows sum to 1) against `labels`.
    pub fn new(probabilities: &Table, labels: &[u32]) -> Result<Self> {
        let n = probabilities.rows;
        ensure!(n > 0, "no examples: the metric is undefined");
        ensure!(n == labels.len(), "{n} rows of probabilities but {} labels", labels.len());
        probabilities.check_finite("probabilities")?;
        let correct = correct(probabilities, labels);
        let (mut nll, mut brier) = (0.0, 0.0);
        let mut bins = vec![(0.0, 0.0); ECE_BINS];
        for ((row, &label), &right) in probabilities.iter().zip(labels).zip(&correct) {
            let label = label as usize;
            ensure!(label < row.len(), "label {label} has no column among {}", row.len());
            nll -= f64::from(row[label]).max(SMALLEST).ln();
            let square = |(j, &p): (usize, &f32)| (f64::from(p) - f64::from(u8::from(j == label))).powi(2);
            brier += row.iter().enumerate().map(square).sum::<f64>();
            let confidence = f64::from(row.iter().copied().fold(0.0, f32::max));
            // Bins are (a, b]: a confidence of exactly 1 belongs to the last.
            let bin = ((confidence * ECE_BINS as f64).ceil() as usize).clamp(1, ECE_BINS) - 1;
            bins[bin].0 += f64::from(u8::from(right));
            bins[bin].1 += confidence;
        }
        let n = n as f64;
        Ok(Self {
            accuracy: correct.iter().filter(|&&c| c).count() as f64 / n,
            nll: nll / n,
            brier: brier / n,
            ece: bins.iter().map(|(right, confidence)| (right - confidence).abs() / n).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certain_and_right_model_is_perfect() {
        let p = Table::from_rows(&[[1.0, 0.0], [0.0, 1.0]]).unwrap();
        let report = Classification::new(&p, &[0, 1]).unwrap();
        assert_eq!(report, Classification { accuracy: 1.0, nll: 0.0, brier: 0.0, ece: 0.0 });
        let wrong = Classification::new(&p, &[1, 0]).unwrap();
        assert_eq!((wrong.accuracy, wrong.brier, wrong.ece), (0.0, 2.0, 1.0));
        assert!(wrong.nll.is_finite());
    }

    #[test]
    fn softmax_survives_large_logits() {
        let p = softmax(&Table::from_rows(&[[1000.0, 1000.0], [-1e30, 1e30]]).unwrap());
        assert_eq!(p.values, [0.5, 0.5, 0.0, 1.0]);
    }

    #[test]
    fn mismatches_are_refused() {
        let p = Table::from_rows(&[[0.5, 0.5]]).unwrap();
        assert!(Classification::new(&p, &[2]).unwrap_err().to_string().contains("label 2"));
        assert!(Classification::new(&p, &[0, 1]).is_err());
    }
}
