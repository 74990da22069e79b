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

use super::dot::{LANES, WIDE, settled};
use crate::scalar::{SMALLEST, rsqrt_near_one, rsqrt_roughly, sqrt};

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

/// Columns of the matrices that the rotations work on: `dim`, made even by an idle column of zeros.
#[inline(always)]
#[must_use]
pub const fn columns(dim: usize) -> usize {
    dim + dim % 2
}

/// Floats of memory that a decomposition needs: G and U with [`columns`], and the angles of one round.
#[inline(always)]
#[must_use]
pub const fn work_len(dim: usize) -> usize {
    (2 * dim + 1) * columns(dim)
}

/// What [`decompose`] leaves in its memory.
pub struct Decomposition<'a> {
    /// `A U`, row-major, rows of [`columns`] values.
    pub g: &'a [f32],
    /// Orthonormal U, likewise: column `j` is eigenvector `j`.
    pub u: &'a [f32],
    /// What the columns of `g` are scaled by.
    pub scale: f32,
}

/// Decomposes the symmetric matrix that `entry(i, j)` gives; `work` has [`work_len`] floats, contents
/// ignored. `sweeps · dim²/2` rotations of `7 dim` multiply-adds.
#[inline(always)]
pub fn decompose(
    dim: usize,
    work: &mut [f32],
    entry: impl Fn(usize, usize) -> f32,
) -> Option<Decomposition<'_>> {
    let width = columns(dim);
    let (g, rest) = work.split_at_mut_checked(dim * width)?;
    let (u, rest) = rest.split_at_mut_checked(dim * width)?;
    let angles = rest.get_mut(..width)?;
    for (i, (g, u)) in Rows(g, width).zip(Rows(u, width)).enumerate() {
        for (j, (g, u)) in g.iter_mut().zip(u).enumerate() {
            *g = if j < dim { entry(i, j) } else { 0.0 };
            *u = if i == j { 1.0 } else { 0.0 };
        }
    }
    let scale = power_of_two_below(g);
    let inverse = 1.0 / scale;
    for x in g.iter_mut() {
        *x *= inverse;
    }
    // The same code with the size known to the compiler: a wide machine keeps a row in one register.
    if WIDE && dim == LANES {
        sweep(g, u, angles, LANES);
    } else {
        sweep(g, u, angles, dim);
    }
    Some(Decomposition { g, u, scale })
}

impl Decomposition<'_> {
    /// |λ| of eigenvector `j`.
    #[inline(always)]
    #[must_use]
    pub fn magnitude(&self, j: usize, dim: usize) -> f32 {
        let entry = |i: usize| self.g.get(i * columns(dim) + j).copied().unwrap_or(0.0);
        let square = (0..dim).fold(0.0, |sum, i| sum + entry(i) * entry(i));
        if square < NO_LENGTH { 0.0 } else { sqrt(square) * self.scale }
    }
}

/// All sweeps. Column `j` of the first half is paired with column `j` of the second; after each round the
/// columns move on by one place around a ring in which the first stays (the circle method), so that in a
/// sweep every pair meets once and every column comes home.
#[inline(always)]
fn sweep(g: &mut [f32], u: &mut [f32], angles: &mut [f32], dim: usize) {
    let width = columns(dim);
    let half = width / 2;
    for _ in 0..sweeps(dim) {
        for _ in 1..width {
            let Some((cosines, sines)) = angles.split_at_mut_checked(half) else { return };
            // Not `chunks_mut` zipped: that keeps a division by zero, and with it a panic, at some levels.
            let mut first = 0;
            while first < half {
                let found = rotation_angles(inner_products(g, width, first));
                for (all, from) in [&mut *cosines, &mut *sines].into_iter().zip(found) {
                    for (to, from) in all.get_mut(first..).unwrap_or_default().iter_mut().zip(from) {
                        *to = from;
                    }
                }
                first += BLOCK;
            }
            for m in [&mut *g, &mut *u] {
                for row in Rows(m, width) {
                    turn(row, cosines, sines);
                }
            }
        }
    }
}

/// `‖x‖²`, `‖y‖²` and `x · y` of up to `BLOCK` pairs of columns, from pair `first` on. Sums run down the
/// columns.
#[inline(always)]
fn inner_products(g: &[f32], width: usize, first: usize) -> [[f32; BLOCK]; 3] {
    let half = width / 2;
    let [mut xx, mut yy, mut xy] = [[0.0; BLOCK]; 3];
    let mut rest = g;
    while let Some((row, after)) = rest.split_at_checked(width) {
        let x = block(row, first, half);
        let y = block(row, half + first, width);
        for k in 0..BLOCK {
            xx[k] += x[k] * x[k];
            yy[k] += y[k] * y[k];
            xy[k] += x[k] * y[k];
        }
        if after.is_empty() {
            break;
        }
        rest = after;
    }
    settled([xx, yy, xy])
}

/// `row[first .. first + BLOCK]`, zeros from `end` on.
#[inline(always)]
fn block(row: &[f32], first: usize, end: usize) -> [f32; BLOCK] {
    let values = row.get(first..end).unwrap_or(&[]);
    match values.first_chunk::<BLOCK>() {
        Some(block) => *block,
        None => {
            let mut block = [0.0; BLOCK];
            for (b, v) in block.iter_mut().zip(values) {
                *b = *v;
            }
            block
        }
    }
}

/// Cosines and sines that make pairs of columns orthogonal, from their inner products.
#[inline(always)]
fn rotation_angles([xx, yy, xy]: [[f32; BLOCK]; 3]) -> [[f32; BLOCK]; 2] {
    let (mut tangents, mut cosines, mut sines) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    for k in 0..BLOCK {
        let (gamma, delta) = (xy[k], yy[k] - xx[k]);
        // root = √(δ² + 4γ²), by the larger of |δ| and 2|γ| times √(1 + q²). An angle may be a little off,
        // the next sweep mends it; only the rotation must be one to the last bit.
        let (a, b) = (delta.abs(), 2.0 * gamma.abs());
        let (large, small) = if a > b { (a, b) } else { (b, a) };
        let q = small / large;
        let one_to_two = 1.0 + q * q;
        let root = large * (one_to_two * rsqrt_roughly(one_to_two));
        // The smaller of the two angles, |t| ≤ 1; the sum never cancels.
        let tangent = 2.0 * gamma / if delta < 0.0 { delta - root } else { delta + root };
        let turn = (gamma.abs() > NEGLIGIBLE) & (gamma * gamma > ORTHOGONAL * ORTHOGONAL * (xx[k] * yy[k]));
        tangents[k] = if turn { tangent } else { 0.0 };
    }
    let tangents = settled(tangents);
    for k in 0..BLOCK {
        cosines[k] = rsqrt_near_one(1.0 + tangents[k] * tangents[k]);
        sines[k] = cosines[k] * tangents[k];
    }
    settled([cosines, sines])
}

/// `(x, y) ← (c x − s y, s x + c y)` for the first and second half of a row, then [`move_on`].
#[inline(always)]
fn turn(row: &mut [f32], cosines: &[f32], sines: &[f32]) {
    let rotated = |x: f32, y: f32, c: f32, s: f32| (c * x - s * y, s * x + c * y);
    if WIDE
        && let (Ok(row), Ok(c), Ok(s)) = (
            <&mut [f32; 8]>::try_from(&mut *row),
            <&[f32; 4]>::try_from(cosines),
            <&[f32; 4]>::try_from(sines),
        )
    {
        // Eight columns: both steps within registers.
        let (mut x, mut y) = ([0.0; 4], [0.0; 4]);
        for k in 0..4 {
            (x[k], y[k]) = rotated(row[k], row[4 + k], c[k], s[k]);
        }
        let (x, y) = settled((x, y));
        *row = [x[0], y[0], x[1], x[2], y[1], y[2], y[3], x[3]];
        return;
    }
    let Some((x, y)) = row.split_at_mut_checked(cosines.len()) else { return };
    for (((x, y), &c), &s) in x.iter_mut().zip(y).zip(cosines).zip(sines) {
        (*x, *y) = rotated(*x, *y, c, s);
    }
    move_on(row);
}

/// One step around the ring: `x₀ x₁ … x_h / y₀ … y_h` → `x₀ y₀ x₁ … / y₁ … y_h x_h`.
#[inline(always)]
fn move_on(row: &mut [f32]) {
    let half = row.len() / 2;
    let Some(([_, x @ ..], y)) = row.split_at_mut_checked(half) else { return };
    let [first, ..] = y else { return };
    // With one column a half there is no ring, and what is carried is the second column itself.
    let mut carried = *first;
    for place in x.iter_mut().chain(y.iter_mut().rev()) {
        carried = core::mem::replace(place, carried);
    }
}

/// The largest power of two not above max|x|, 1 for a zero matrix: scaling by it is exact.
#[inline(always)]
fn power_of_two_below(values: &[f32]) -> f32 {
    const EXPONENT: u32 = 0x7f80_0000;
    let largest = values.iter().fold(0.0f32, |m, x| if x.abs() > m { x.abs() } else { m });
    if largest > 0.0 { f32::from_bits(largest.to_bits() & EXPONENT) } else { 1.0 }
}

/// The rows of a matrix, mutable, one after another.
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

        let mut work = vec![f32::NAN; work_len(dim)];
        let found = decompose(dim, &mut work, |i, j| a[(i, j)]).expect("enough memory");
        let u = DMatrix::from_fn(dim, dim, |i, j| f64::from(found.u[i * columns(dim) + j]));
        let magnitudes = DVector::from_fn(dim, |j, _| f64::from(found.magnitude(j, dim)));
        let found = &u * DMatrix::from_diagonal(&magnitudes) * u.transpose();
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
    fn every_pair_meets_once_a_sweep_and_comes_home() {
        for players in [2usize, 4, 6, 8, 64] {
            let home: Vec<f32> = (0..players).map(|i| i as f32).collect();
            let (mut row, mut met) = (home.clone(), std::collections::BTreeSet::new());
            for _ in 1..players {
                for (x, y) in row.iter().zip(&row[players / 2..]) {
                    assert!(met.insert((x.min(*y) as usize, x.max(*y) as usize)));
                }
                move_on(&mut row);
            }
            assert_eq!(met.len(), players * (players - 1) / 2);
            assert_eq!(row, home);
        }
    }
}
