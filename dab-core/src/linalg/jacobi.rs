//! Eigenvectors and |eigenvalues| of a small symmetric matrix, in bounded time.
//!
//! `A` → one-sided Jacobi → orthonormal `U` and `|λ|` with `A² = U diag(λ²) Uᵀ` (method.md E2 needs no
//! more: Σ depends on |λ| alone).
//!
//! ```text
//! G = A U.  Rotate pairs of columns of G and U until the columns of G are orthogonal; |λᵢ| = ‖gᵢ‖.
//! ```
//!
//! Surprising: a pair ±λ is never separated, since ‖g‖ cannot tell the two apart, and need not be: every
//! function of |λ| is the same on the whole plane. The number of sweeps depends on the dimension alone,
//! and a rotation costs the same whether it turns or not, so time does not depend on the values.

use super::dot::{LANES, dot, fold};
use crate::scalar::{SMALLEST, rsqrt, sqrt};

/// The largest dimension that the number of sweeps and the stated accuracy were measured for.
pub const MAX_DIM: usize = 64;

/// Accuracy: every entry of `U diag(|λ|) Uᵀ` is within `ACCURACY · dim · ε · ‖A‖` of |A|, for repeated,
/// zero, huge, graded and mixed-sign eigenvalues alike (tests below).
pub const ACCURACY: f32 = 4.0;

/// Columns whose inner product is below this, 2⁻⁵², are left alone. With entries scaled to about 1 it
/// bounds the error of |λ| that this leaves by 2⁻²⁶ ‖A‖, an eighth of f32's ε; and 4γ² is then so large that
/// a subnormal δ², which a process may flush to zero, is below its last bit.
const NEGLIGIBLE: f32 = f32::EPSILON * f32::EPSILON / 64.0;

/// A squared length below this, 2⁻⁹⁰, is zero: |λ| below 2⁻⁴⁵ ‖A‖ is far below the accuracy, and squares
/// of its entries may be subnormal.
const NO_LENGTH: f32 = SMALLEST * SMALLEST * 1024.0;

/// Columns whose cosine is below this are orthogonal: it is what rounding leaves. Without it, columns of
/// equal length would be turned by chance angles in every sweep, and the error would grow with them.
const ORTHOGONAL: f32 = 2.0 * f32::EPSILON;

/// Pairs whose angles are computed together: four lanes of one register on a wide machine.
const BLOCK: usize = 4;

/// Sweeps over all pairs, after which the hardest family of matrices in the tests has converged (for
/// dimension 8 that is a spectrum graded over eight decades; most others need two sweeps fewer).
#[inline(always)]
#[must_use]
pub const fn sweeps(dim: usize) -> usize {
    match dim {
        0..=1 => 0,
        2 => 2,
        3..=4 => 4,
        5..=8 => 7,
        9..=16 => 8,
        17..=32 => 10,
        _ => 11,
    }
}

/// Replaces the symmetric matrix in `g` (row-major, `dim²`) by `A U` and writes `U` to `u`, both with
/// one column of the mathematics per row of the memory: `u[i·dim ..]` is eigenvector `i`.
///
/// Returns the scale that [`magnitude`] needs. `sweeps · dim²/2` rotations of `7 dim` multiply-adds.
#[inline(always)]
pub fn orthogonalize(g: &mut [f32], u: &mut [f32], dim: usize) -> f32 {
    let scale = power_of_two_below(g);
    let inverse = 1.0 / scale;
    for x in g.iter_mut() {
        *x *= inverse;
    }
    for (i, row) in Rows(u, dim).enumerate() {
        for (j, x) in row.iter_mut().enumerate() {
            *x = if i == j { 1.0 } else { 0.0 };
        }
    }
    // Round-robin order: the pairs of one round are disjoint, so their angles can be found together.
    let players = dim + dim % 2;
    for _ in 0..sweeps(dim) {
        for round in 1..players {
            for first in (0..players / 2).step_by(BLOCK) {
                rotate_block(g, u, dim, |k| pairing(players, round, first + k));
            }
        }
    }
    scale
}

/// |λ| of the eigenvector whose row of `g` is `column`; `scale` is what [`orthogonalize`] returned.
#[inline(always)]
#[must_use]
pub fn magnitude(column: &[f32], scale: f32) -> f32 {
    let square = dot(column, column);
    if square < NO_LENGTH { 0.0 } else { sqrt(square) * scale }
}

/// The `k`-th pair of a round-robin tournament, smaller index first; `None` beyond the last pair.
#[inline(always)]
fn pairing(players: usize, round: usize, k: usize) -> Option<(usize, usize)> {
    if k >= players / 2 {
        return None;
    }
    let ring = players - 1;
    let wrap = |x: usize| if x >= ring { x - ring } else { x };
    let a = wrap(round - 1 + k);
    let b = if k == 0 { ring } else { wrap(round - 1 + ring - k) };
    Some(if a < b { (a, b) } else { (b, a) })
}

/// The largest power of two not above max|x|, 1 for a zero matrix: scaling by it is exact.
#[inline(always)]
fn power_of_two_below(values: &[f32]) -> f32 {
    const EXPONENT: u32 = 0x7f80_0000;
    let largest = values.iter().fold(0.0f32, |m, x| if x.abs() > m { x.abs() } else { m });
    if largest > 0.0 { f32::from_bits(largest.to_bits() & EXPONENT) } else { 1.0 }
}

/// Makes each of up to `BLOCK` disjoint pairs of columns of G orthogonal by one rotation, applied to G
/// and U.
#[inline(always)]
fn rotate_block(g: &mut [f32], u: &mut [f32], dim: usize, pair: impl Fn(usize) -> Option<(usize, usize)>) {
    let mut products = [[0.0; BLOCK]; 3];
    for k in 0..BLOCK {
        let Some((p, q)) = pair(k) else { continue };
        let (Some(gp), Some(gq)) = (row(g, dim, p), row(g, dim, q)) else { continue };
        for (lanes, product) in products.iter_mut().zip(inner_products(gp, gq)) {
            lanes[k] = product;
        }
    }
    let [cosines, sines] = angles(products);
    for k in 0..BLOCK {
        let Some((p, q)) = pair(k) else { continue };
        for m in [&mut *g, &mut *u] {
            if let Some((x, y)) = two_rows(m, dim, p, q) {
                rotate(x, y, cosines[k], sines[k]);
            }
        }
    }
}

/// Cosines and sines of the rotations, from ‖gₚ‖², ‖g_q‖² and gₚ·g_q.
#[inline(always)]
fn angles([alphas, betas, gammas]: [[f32; BLOCK]; 3]) -> [[f32; BLOCK]; 2] {
    let (mut cosines, mut sines) = ([0.0; BLOCK], [0.0; BLOCK]);
    for k in 0..BLOCK {
        let (alpha, beta, gamma) = (alphas[k], betas[k], gammas[k]);
        let delta = beta - alpha;
        let root = sqrt(delta * delta + 4.0 * (gamma * gamma));
        // The smaller of the two angles, |t| ≤ 1; the sum never cancels.
        let tangent = 2.0 * gamma / if delta < 0.0 { delta - root } else { delta + root };
        let turn = (gamma.abs() > NEGLIGIBLE) & (gamma * gamma > ORTHOGONAL * ORTHOGONAL * (alpha * beta));
        let tangent = if turn { tangent } else { 0.0 };
        cosines[k] = rsqrt(1.0 + tangent * tangent);
        sines[k] = cosines[k] * tangent;
    }
    [cosines, sines]
}

/// `x · x`, `y · y` and `x · y` in one pass.
#[inline(always)]
fn inner_products(x: &[f32], y: &[f32]) -> [f32; 3] {
    let ((xs, x_tail), (ys, y_tail)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    let mut acc = [[0.0; LANES]; 3];
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..LANES {
            let (x, y) = (x[lane], y[lane]);
            for (acc, product) in acc.iter_mut().zip([x * x, y * y, x * y]) {
                acc[lane] += product;
            }
        }
    }
    for (lane, (&x, &y)) in x_tail.iter().zip(y_tail).take(LANES).enumerate() {
        for (acc, product) in acc.iter_mut().zip([x * x, y * y, x * y]) {
            acc[lane] += product;
        }
    }
    acc.map(fold)
}

/// `(x, y) ← (c x − s y, s x + c y)`, element by element.
#[inline(always)]
fn rotate(x: &mut [f32], y: &mut [f32], c: f32, s: f32) {
    let turn = |x: &mut f32, y: &mut f32| (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    let (xs, x_tail) = x.as_chunks_mut::<LANES>();
    let (ys, y_tail) = y.as_chunks_mut::<LANES>();
    for (x, y) in xs.iter_mut().zip(ys) {
        for (x, y) in x.iter_mut().zip(y) {
            turn(x, y);
        }
    }
    for (x, y) in x_tail.iter_mut().zip(y_tail) {
        turn(x, y);
    }
}

/// Row `i` of a square matrix; `None` for the idle player of an odd dimension.
#[inline(always)]
fn row(m: &[f32], dim: usize, i: usize) -> Option<&[f32]> {
    m.get(i * dim..)?.get(..dim)
}

/// Rows `p < q` of a square matrix, both mutable.
#[inline(always)]
fn two_rows(m: &mut [f32], dim: usize, p: usize, q: usize) -> Option<(&mut [f32], &mut [f32])> {
    let (before, from_q) = m.split_at_mut_checked(q * dim)?;
    Some((before.get_mut(p * dim..)?.get_mut(..dim)?, from_q.get_mut(..dim)?))
}

/// The rows of a square matrix, mutable, one after another.
struct Rows<'a>(&'a mut [f32], usize);

impl<'a> Iterator for Rows<'a> {
    type Item = &'a mut [f32];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a mut [f32]> {
        let (row, rest) = core::mem::take(&mut self.0).split_at_mut_checked(self.1)?;
        self.0 = rest;
        if row.is_empty() { None } else { Some(row) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    /// Eigenvalues that trouble eigen-solvers, from uniform numbers `r` in (−1, 1).
    fn spectrum(family: usize, i: usize, r: f64) -> f64 {
        let alternate = |even, odd| if i.is_multiple_of(2) { even } else { odd };
        match family {
            0 => r,
            1 => r.signum() * libm::pow(10.0, -8.0 * r.abs()), // graded over eight decades, mixed signs
            2 => alternate(3.0, -3.0),                         // one magnitude, two signs
            3 => 3.0 + 1e-4 * r,                               // nearly repeated
            4 if i == 0 => 1.0,                                // rank one
            5 => alternate(1.0, 100.0),                        // two repeated values
            6 => libm::round(2.0 * r),                         // zeros, repeats and signs at once
            7 => 1e15 * r,                                     // huge
            8 => 1e-14 * r,                                    // tiny
            _ => 0.0,                                          // nothing at all
        }
    }
    const FAMILIES: usize = 10;

    /// |A| in float64 minus |A| from the kernel, largest entry, in units of `dim ε ‖A‖`.
    fn error(dim: usize, family: usize, numbers: &[f64]) -> f64 {
        let basis = DMatrix::from_fn(dim, dim, |i, j| numbers[i * dim + j]).qr().q();
        let lambda = DVector::from_fn(dim, |i, _| spectrum(family, i, numbers[dim * dim + i]));
        let a = &basis * DMatrix::from_diagonal(&lambda) * basis.transpose();
        let a = DMatrix::from_fn(dim, dim, |i, j| (0.5 * (a[(i, j)] + a[(j, i)])) as f32);
        let exact = a.map(f64::from).symmetric_eigen();
        let exact = &exact.eigenvectors
            * DMatrix::from_diagonal(&exact.eigenvalues.abs())
            * exact.eigenvectors.transpose();

        let mut g: Vec<f32> = a.as_slice().to_vec();
        let mut u = vec![0.0; dim * dim];
        let scale = orthogonalize(&mut g, &mut u, dim);
        let mut found = DMatrix::<f64>::zeros(dim, dim);
        for (g, u) in g.chunks(dim).zip(u.chunks(dim)) {
            let u = DVector::from_fn(dim, |i, _| f64::from(u[i]));
            found += &u * u.transpose() * f64::from(magnitude(g, scale));
        }
        let largest = lambda.abs().max().max(f64::MIN_POSITIVE);
        (found - exact).abs().max() / (dim as f64 * f64::from(f32::EPSILON) * largest)
    }

    fn check(dim: usize, numbers: &[f64]) -> Result<(), TestCaseError> {
        for family in 0..FAMILIES {
            let error = error(dim, family, numbers);
            prop_assert!(error <= f64::from(ACCURACY), "dimension {dim} family {family}: {error}");
        }
        Ok(())
    }

    fn numbers(dim: usize) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(-1.0..1.0f64, dim * dim + dim)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn accuracy_in_small_dimensions(n in numbers(8)) {
            check(2, &n)?;
            check(3, &n)?;
            check(4, &n)?;
            check(5, &n)?;
            check(8, &n)?;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn accuracy_in_large_dimensions(n in numbers(MAX_DIM)) {
            check(13, &n)?;
            check(16, &n)?;
            check(32, &n)?;
            check(MAX_DIM, &n)?;
        }
    }

    #[test]
    fn every_pair_meets_once_a_sweep() {
        for players in [2usize, 4, 8, 16] {
            let mut met = std::collections::BTreeSet::new();
            for round in 1..players {
                for k in 0..players / 2 {
                    let (p, q) = pairing(players, round, k).expect("a pair");
                    assert!(p < q && q < players);
                    assert!(met.insert((p, q)));
                }
            }
            assert_eq!(met.len(), players * (players - 1) / 2);
        }
    }
}
