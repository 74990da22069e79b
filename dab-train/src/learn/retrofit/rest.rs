//! The rest: what a view of fewer axes than columns does not keep, as one more axis of it.
//!
//! ```text
//! ρ² = ‖x̂ − c‖² − Σ_i (w_iᵀ (x̂ − c))² / ‖w_i‖²      z_d = √(n / mean ρ²) ρ      n = 2 (mean ρ²)² / var ρ²
//! ```
//!
//! Without it an input could do anything along the axes that are left out. Codes are at 0 along z_d, so u grows by ½ z_d². Mean and
//! variance of ρ² of familiar rows are those of n independent axes of one variance: so many the rest counts for. Real data vary
//! along few of the axes that are left out, and n is far below their number.

use super::whitening::Affine;
use crate::{data::Table, support::parallel::map_blocks};

/// The least mean of ρ², as a share of that of ‖x̂‖²: ρ² is a difference of sums of that size, whose rounding must not show. f32 sums
/// are right to some 1e-7 of them; at length 1 there is an offset besides; weights of one byte are rows that are turned and
/// stretched a little, so that ρ² is right to some 3e-3 (tests/rest.rs).
pub const fn least_share(bytes: bool, length_one: bool) -> f64 {
    match (bytes, length_one) {
        (true, _) => 1e-2,
        (false, true) => 1e-3,
        (false, false) => 1e-5,
    }
}

/// Rows of a unit of parallel work.
const BLOCK: usize = 256;

/// The last axis of a view, as its file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// One over the length of each other row of the head; 0 for a row of zeros.
    pub scales: Vec<f32>,
    /// √(n / mean ρ²).
    pub gain: f32,
}

impl Rest {
    /// The rest of a view with the rows of `head`.
    pub fn new(head: &Affine, gain: f32) -> Self {
        let inputs = head.weight.len() / head.outputs().max(1);
        let length = |row: &[f32]| row.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>().sqrt();
        let scale = |row: &[f32]| if length(row) > 0.0 { length(row).recip() as f32 } else { 0.0 };
        Self { scales: head.weight.chunks(inputs.max(1)).map(scale).collect(), gain }
    }

    /// ρ of an input whose latent values are `z`, of which the last is t.
    pub fn length(&self, x: &[f32], z: &[f64]) -> f64 {
        let Some((t, kept)) = z.split_last() else { return 0.0 };
        let inside: f64 = kept.iter().zip(&self.scales).map(|(z, &s)| (z * f64::from(s)).powi(2)).sum();
        (x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() - 2.0 * t - inside).max(0.0).sqrt()
    }

    /// Replaces t in every row of latent values by z_d.
    pub fn apply(&self, prepared: &Table, latent: &mut Table) {
        for (row, z) in latent.values.chunks_exact_mut(latent.cols.max(1)).enumerate() {
            let wide: Vec<f64> = z.iter().map(|&z| f64::from(z)).collect();
            let length = self.length(prepared.row(row), &wide);
            if let Some(last) = z.last_mut() {
                *last = (length * f64::from(self.gain)) as f32;
            }
        }
    }
}

/// ρ² and ‖x̂‖² of every row.
pub fn squares(head: &Affine, centre: &[f64], prepared: &Table) -> Vec<(f64, f64)> {
    let rest = Rest::new(head, 1.0);
    let blocks = map_blocks(prepared.rows, BLOCK, |rows| {
        let of = |row: usize| {
            let part: Vec<f64> =
                prepared.row(row).iter().zip(centre).map(|(&x, c)| f64::from(x) - c).collect();
            let along = |(weights, &scale): (&[f32], &f32)| {
                let dot: f64 = weights.iter().zip(&part).map(|(&w, x)| f64::from(w) * x).sum();
                (dot * f64::from(scale)).powi(2)
            };
            let whole: f64 = part.iter().map(|x| x * x).sum();
            let inside: f64 = head.weight.chunks(prepared.cols.max(1)).zip(&rest.scales).map(along).sum();
            let length = prepared.row(row).iter().map(|&x| f64::from(x).powi(2)).sum();
            ((whole - inside).max(0.0), length)
        };
        rows.map(of).collect::<Vec<_>>()
    });
    blocks.concat()
}

/// The gain that familiar rows ask for, from their ρ² and ‖x̂‖²; the rest has `axes` axes, and ρ² counts as at least `share` of ‖x̂‖².
pub fn gain(familiar: &[(f64, f64)], axes: usize, share: f64) -> f32 {
    let count = familiar.len().max(1) as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| familiar.iter().map(of).sum::<f64>() / count;
    let (rest, whole) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let variance = mean(&|pair| (pair.0 - rest).powi(2));
    let counts = if variance > 0.0 { 2.0 * rest * rest / variance } else { axes as f64 };
    let least = share * whole;
    let gain = (counts.clamp(1.0, axes.max(1) as f64) / rest.max(least)).sqrt() as f32;
    if gain.is_normal() { gain } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn as_many_axes_as_vary_alike_are_counted() {
        let mut random = Random::new(3, "rest");
        // 30 columns; the head keeps two of them, ten others vary alike, the rest hardly.
        let mut value = |column: usize| if column < 12 { 1.0 } else { 1e-3 } * random.normal() as f32;
        let rows: Vec<Vec<f32>> = (0..4000).map(|_| (0..30).map(&mut value).collect()).collect();
        let table = Table::from_rows(&rows).unwrap();
        let mut weight = vec![0.0; 60];
        (weight[0], weight[31]) = (3.0, -0.5);
        let head = Affine { weight, bias: vec![0.0; 2] };
        let found = squares(&head, &[0.0; 30], &table);
        for ((rest, whole), row) in found.iter().zip(&rows) {
            let exact: f64 = row[2..].iter().map(|&x| f64::from(x).powi(2)).sum();
            let all: f64 = row.iter().map(|&x| f64::from(x).powi(2)).sum();
            // Scales are f32.
            assert!((rest - exact).abs() < 1e-6 * all && (whole - all).abs() < 1e-9 * all);
        }
        // n / mean ρ² = 10 / 10.
        let gain = gain(&found, 28, 1e-4);
        assert!((gain - 1.0).abs() < 0.05, "{gain}");
    }

    #[test]
    fn rows_that_have_no_rest_ask_for_a_finite_gain() {
        assert!(
            gain(&[(0.0, 4.0); 9], 3, 1e-4).is_normal()
                && gain(&[(0.0, 0.0); 9], 3, 1e-4) == 1.0
                && gain(&[], 3, 1e-4) == 1.0
        );
    }
}
