//! What the writer derives from a [`Spec`](super::writer::Spec), in float64: a device never inverts a
//! matrix, sorts a score or divides by a count.

use alloc::vec::Vec;

use nalgebra::DMatrix;

use super::schema::MAX_CALIBRATION;
use super::writer::SpecError;
use crate::calibration::Calibration;
use crate::scalar::{LARGEST, SMALLEST};

/// Priors may miss a sum of 1 by this much, as float roundings do; they are rescaled.
const PRIOR_SUM_TOLERANCE: f64 = 1e-3;
/// A covariance may miss symmetry by this much of its largest entry; the average of both halves is used.
const SYMMETRY_TOLERANCE: f64 = 1e-4;

pub(super) fn check_len(part: &str, found: usize, expected: usize) -> Result<(), SpecError> {
    if found == expected { Ok(()) } else { Err(SpecError::Shape { part: part.into(), expected, found }) }
}

pub(super) fn check_finite(part: &str, index: usize, value: f64) -> Result<(), SpecError> {
    if value.is_finite() { Ok(()) } else { Err(SpecError::NonFinite { part: part.into(), index }) }
}

/// Priors that sum to 1 in f64, as f32.
pub(super) fn priors(part: &str, priors: &[f64]) -> Result<Vec<f32>, SpecError> {
    for (index, &value) in priors.iter().enumerate() {
        check_finite(part, index, value)?;
        if value < 0.0 {
            return Err(SpecError::OutOfRange { part: part.into(), index, value });
        }
    }
    let sum: f64 = priors.iter().sum();
    if (sum - 1.0).abs() > PRIOR_SUM_TOLERANCE {
        return Err(SpecError::PriorSum { sum });
    }
    Ok(priors.iter().map(|p| (p / sum) as f32).collect())
}

/// Whether the table of these scores has p-values as small as `rate`.
pub(super) fn check_reach(table: &[(f32, f32)], held_out: usize, rate: f32) -> Result<(), SpecError> {
    let (scores, p_values): (Vec<f32>, Vec<f32>) = table.iter().copied().unzip();
    let held_out = u32::try_from(held_out).unwrap_or(u32::MAX);
    let table = Calibration { scores: &scores, p_values: &p_values, held_out };
    table.check_reach(rate).map_err(SpecError::Rates)
}

/// The scale of every row of `columns` weights, and the rows in units of it: −127 … 127, ties to the even one. A row that is
/// too small for a scale of the numeric domain is a row of zeros.
pub(super) fn quantised(weights: &[f32], columns: usize) -> (Vec<f32>, Vec<i8>) {
    let (mut scales, mut bytes) = (Vec::new(), Vec::new());
    for row in weights.chunks(columns.max(1)) {
        let largest = row.iter().fold(0.0f32, |most, w| most.max(w.abs()));
        let scale = (f64::from(largest) / f64::from(i8::MAX)) as f32;
        let scale = if scale < SMALLEST { 0.0 } else { scale };
        scales.push(scale);
        bytes.extend(row.iter().map(|&w| match scale > 0.0 {
            true => libm::rint(f64::from(w) / f64::from(scale)).clamp(-127.0, 127.0) as i8,
            false => 0,
        }));
    }
    (scales, bytes)
}

pub(super) fn inverse_std(part: &str, std: &[f32]) -> Result<Vec<f32>, SpecError> {
    let invert = |(index, &value): (usize, &f32)| {
        check_finite(part, index, value.into())?;
        if (SMALLEST..=LARGEST).contains(&value) {
            Ok((1.0 / f64::from(value)) as f32)
        } else {
            Err(SpecError::OutOfRange { part: part.into(), index, value: value.into() })
        }
    };
    std.iter().enumerate().map(invert).collect()
}

/// `1/v` and ln|Σ|; `None` when a variance is not positive.
pub(super) fn diagonal_precision(variance: &[f64]) -> Option<(Vec<f64>, f64)> {
    let positive = variance.iter().all(|&v| v > 0.0);
    let log_det = variance.iter().map(|&v| libm::log(v)).sum();
    positive.then(|| (variance.iter().map(|v| 1.0 / v).collect(), log_det))
}

/// Packed R = C⁻¹ of Σ = C Cᵀ, and ln|Σ|; `None` when Σ is not positive definite.
pub(super) fn full_precision(
    cov: &[f64],
    dim: usize,
    code: usize,
) -> Result<Option<(Vec<f64>, f64)>, SpecError> {
    let cov = DMatrix::from_row_slice(dim, dim, cov);
    let asymmetry = (&cov - cov.transpose()).amax();
    if asymmetry > SYMMETRY_TOLERANCE * cov.amax() {
        return Err(SpecError::NotSymmetric { code });
    }
    let cov = (&cov + cov.transpose()) * 0.5;
    let factor = || {
        let c = cov.cholesky()?.unpack();
        let log_det = c.diagonal().iter().map(|&l| 2.0 * libm::log(l)).sum();
        let r = c.solve_lower_triangular(&DMatrix::identity(dim, dim))?;
        Some(((0..dim).flat_map(|i| (0..=i).map(move |j| (i, j))).map(|at| r[at]).collect(), log_det))
    };
    Ok(factor())
}

/// Pairs of score and p-value just above it: all of up to 256 distinct scores, else a choice that is
/// dense in the upper tail, where the verdicts are made.
/// `part` names the scores, `least` is the smallest that one may be.
pub(super) fn calibration_table(
    part: &str,
    scores: &[f32],
    least: f32,
) -> Result<Vec<(f32, f32)>, SpecError> {
    if scores.is_empty() {
        return Err(SpecError::Shape { part: part.into(), expected: 1, found: 0 });
    }
    for (index, &value) in scores.iter().enumerate() {
        check_finite(part, index, value.into())?;
        if value < least {
            return Err(SpecError::OutOfRange { part: part.into(), index, value: value.into() });
        }
    }
    let mut sorted: Vec<f32> = scores.iter().map(|&s| s + 0.0).collect();
    sorted.sort_by(f32::total_cmp);
    let n = sorted.len();
    // The last of equal scores, with how many lie above it.
    let mut table: Vec<(f32, usize)> = Vec::new();
    for (i, &score) in sorted.iter().enumerate() {
        if table.last().is_some_and(|&(s, _)| s == score) {
            table.pop();
        }
        table.push((score, n - 1 - i));
    }
    thin(&mut table, usize::from(MAX_CALIBRATION));
    Ok(probabilities(&table, n))
}

/// `(score, count above it)` → `(score, p just above it)`, for `n` scores. Beyond 2²⁴ of them f32 cannot
/// tell neighbouring probabilities near 1 apart: of equal ones the first says it all, and a p of 1 needs
/// no entry.
fn probabilities(table: &[(f32, usize)], n: usize) -> Vec<(f32, f32)> {
    let p = |above: usize| ((1 + above) as f64 / (n as f64 + 1.0)) as f32;
    let mut table: Vec<(f32, f32)> = table.iter().map(|&(score, above)| (score, p(above))).collect();
    table.retain(|&(_, p)| p < 1.0);
    table.dedup_by_key(|&mut (_, p)| p);
    table
}

/// Keeps `max` entries: every one of the upper tail, then ever fewer.
fn thin(table: &mut Vec<(f32, usize)>, max: usize) {
    let (n, mut kept) = (table.len(), 0);
    if n <= max {
        return;
    }
    // Rank from the top of the j-th kept entry: j for the first quarter, then growing so that the last
    // of them is the lowest score.
    let dense = max / 4;
    let ratio = (n - 1) as f64 / dense as f64;
    let rank = |j: usize| {
        if j < dense {
            j
        } else {
            let share = (j - dense) as f64 / (max - 1 - dense) as f64;
            let geometric = dense as f64 * libm::pow(ratio, share);
            (libm::round(geometric) as usize).max(j)
        }
    };
    let wanted: Vec<usize> = (0..max).map(rank).collect();
    let mut position = n;
    table.retain(|_| {
        position -= 1;
        let keep = wanted.binary_search(&position).is_ok();
        kept += usize::from(keep);
        keep
    });
    debug_assert!(kept <= max);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_round_to_the_nearest_of_255_and_ties_to_the_even_one() {
        let (scales, bytes) =
            quantised(&[127.0, -2.5, 3.5, 0.5, -254.0, 0.0, 2.9, 3.0, 1e-20, 0.0, 0.0, 0.0], 4);
        assert_eq!(scales, [1.0, 2.0, 0.0]);
        assert_eq!(bytes, [127, -2, 4, 0, -127, 0, 1, 2, 0, 0, 0, 0]);
        // The smallest scale that there is, and less.
        let smallest = 127.0 * SMALLEST;
        assert_eq!(
            quantised(&[smallest, smallest.next_down()], 1),
            (alloc::vec![SMALLEST, 0.0], alloc::vec![127, 0])
        );
    }

    #[test]
    fn a_long_table_keeps_its_upper_tail_and_ever_fewer_below() {
        let mut table: Vec<(f32, usize)> = (0..100).rev().map(|above| (-(above as f32), above)).collect();
        thin(&mut table, 8);
        // 2 · 49.5^(i/5): the first quarter is whole, the last is the lowest score.
        let above: Vec<usize> = table.iter().rev().map(|&(_, above)| above).collect();
        assert_eq!(above, [0, 1, 2, 4, 10, 21, 45, 99]);
        let mut table: Vec<(f32, usize)> = (0..8).map(|i| (i as f32, 7 - i)).collect();
        thin(&mut table, 8);
        assert_eq!(table.len(), 8);
    }

    #[test]
    fn probabilities_stay_distinct_beyond_the_precision_of_f32() {
        let n = 1 << 26;
        let table = probabilities(&[(1.0, n - 1), (2.0, n - 3), (3.0, n - 4), (4.0, 9), (5.0, 0)], n);
        assert_eq!(table.iter().map(|&(score, _)| score).collect::<Vec<_>>(), [2.0, 4.0, 5.0]);
        assert!(table.iter().all(|&(_, p)| 0.0 < p && p < 1.0));
        assert!(table.windows(2).all(|w| w[0].1 > w[1].1));
        assert_eq!(table.last(), Some(&(5.0, (1.0 / (n as f64 + 1.0)) as f32)));
    }
}
