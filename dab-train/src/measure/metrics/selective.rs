//! Answering only the certain part: risk against coverage.
//!
//! uncertainty + per-example loss → curve → area (AURC).
//!
//! ```text
//! risk(i) = mean loss of the i most certain;  AURC = (1/n) Σ_i risk(i)
//! ```
//!
//! Within a group of tied uncertainties the loss is spread evenly, which is its expectation over all
//! orders: a constant score gets the plain error rate, whatever the file's order.

use anyhow::{Result, ensure};
use serde::Serialize;

/// Selective-prediction quality of an uncertainty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selective {
    /// Area under the risk–coverage curve; smaller is better.
    pub aurc: f64,
    /// AURC of a perfect ordering of the same losses: the floor.
    pub aurc_best: f64,
    /// Risk at full coverage: the error rate, or the mean loss.
    pub risk: f64,
}

impl Selective {
    /// Measures `uncertainty` (larger = less certain) against `losses` (0/1 errors, or any loss).
    pub fn new(uncertainty: &[f32], losses: &[f32]) -> Result<Self> {
        let area = |points: &[(f64, f64)]| points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
        let curve = risk_coverage(uncertainty, losses)?;
        let best = risk_coverage(losses, losses)?;
        Ok(Self { aurc: area(&curve), aurc_best: area(&best), risk: curve.last().map_or(0.0, |p| p.1) })
    }
}

/// Losses (1 = wrong) for classification.
pub fn errors(correct: &[bool]) -> Vec<f32> {
    correct.iter().map(|&c| f32::from(u8::from(!c))).collect()
}

/// The curve as (coverage, risk), one point per example, most certain first.
pub fn risk_coverage(uncertainty: &[f32], losses: &[f32]) -> Result<Vec<(f64, f64)>> {
    let order = ascending(uncertainty, losses)?;
    let n = order.len();
    let mut curve = Vec::with_capacity(n);
    let (mut start, mut before) = (0, 0.0);
    for tied in order.chunk_by(|&a, &b| uncertainty[a] == uncertainty[b]) {
        let loss: f64 = tied.iter().map(|&i| f64::from(losses[i])).sum();
        let each = loss / tied.len() as f64;
        for more in 1..=tied.len() {
            let seen = (start + more) as f64;
            curve.push((seen / n as f64, (before + each * more as f64) / seen));
        }
        before += loss;
        start += tied.len();
    }
    Ok(curve)
}

fn ascending(uncertainty: &[f32], values: &[f32]) -> Result<Vec<usize>> {
    ensure!(!uncertainty.is_empty(), "no examples: the metric is undefined");
    ensure!(
        uncertainty.len() == values.len(),
        "{} uncertainties but {} losses",
        uncertainty.len(),
        values.len()
    );
    let bad = uncertainty.iter().chain(values).filter(|x| !x.is_finite()).count();
    ensure!(bad == 0, "{bad} uncertainties or losses are not finite");
    let mut order: Vec<usize> = (0..uncertainty.len()).collect();
    // Stable, and −0 equal to +0, so that the loss of a tied group can be spread.
    order.sort_by(|&a, &b| uncertainty[a].partial_cmp(&uncertainty[b]).unwrap_or(std::cmp::Ordering::Equal));
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_ties() {
        let good = Selective::new(&[0.1, 0.2, 0.3, 0.4], &[0.0, 0.0, 0.0, 1.0]).unwrap();
        assert_eq!((good.aurc, good.aurc_best, good.risk), (0.0625, 0.0625, 0.25));
        let constant = Selective::new(&[1.0; 4], &[0.0, 1.0, 0.0, 0.0]).unwrap();
        assert!((constant.aurc - 0.25).abs() < 1e-12);
        assert_eq!(constant, Selective::new(&[1.0; 4], &[1.0, 0.0, 0.0, 0.0]).unwrap());
    }

    #[test]
    fn the_curve_has_a_point_for_each_example() {
        let curve = risk_coverage(&[0.3, 0.1, 0.2, 0.2], &[1.0, 0.0, 0.0, 1.0]).unwrap();
        assert_eq!(curve, [(0.25, 0.0), (0.5, 0.25), (0.75, 1.0 / 3.0), (1.0, 0.5)]);
    }

    #[test]
    fn bad_numbers_are_refused() {
        assert!(risk_coverage(&[f32::NAN], &[0.0]).is_err());
        assert!(risk_coverage(&[1.0], &[]).is_err());
    }
}
