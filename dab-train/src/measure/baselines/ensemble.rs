//! Uncertainty of a deep ensemble: spread between members plus spread within.
//!
//! predictions of each member → [`scores`] → one variance per example.
//!
//! ```text
//! Var[y] = Var_m[mean_m] + E_m[variance_m], summed over the outputs
//! ```
//!
//! One member has no spread between: with equal variances its score is constant, and says nothing.

use anyhow::{Result, ensure};

use crate::data::Table;

/// Total predictive variance per example. `variances` is empty when members predict means only.
pub fn scores(means: &[Table], variances: &[Table]) -> Result<Vec<f32>> {
    let first = means.first().ok_or_else(|| anyhow::anyhow!("an ensemble has a member"))?;
    ensure!(
        variances.is_empty() || variances.len() == means.len(),
        "{} members but {} variances",
        means.len(),
        variances.len()
    );
    for table in means.iter().chain(variances) {
        ensure!((table.rows, table.cols) == (first.rows, first.cols), "members differ in shape");
    }
    let members = means.len() as f64;
    let entry = |i: usize| {
        let at = |table: &Table| f64::from(table.values[i]);
        let mean = means.iter().map(at).sum::<f64>() / members;
        let between = means.iter().map(|m| (at(m) - mean).powi(2)).sum::<f64>() / members;
        between + variances.iter().map(at).sum::<f64>() / members
    };
    let row = |r: usize| (r * first.cols..(r + 1) * first.cols).map(entry).sum::<f64>();
    Ok((0..first.rows).map(|r| row(r).min(f64::from(f32::MAX)) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_between_plus_within() {
        let means = [Table::column(vec![1.0, 5.0]), Table::column(vec![3.0, 5.0])];
        let variances = [Table::column(vec![0.5, 2.0]), Table::column(vec![1.5, 4.0])];
        assert_eq!(scores(&means, &variances).unwrap(), [2.0, 3.0]);
        assert_eq!(scores(&means, &[]).unwrap(), [1.0, 0.0]);
        assert!(scores(&means, &variances[..1]).is_err());
        assert!(scores(&[], &[]).is_err());
    }
}
