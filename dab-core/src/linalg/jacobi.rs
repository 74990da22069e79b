//! Eigenvectors and |eigenvalues| of a small symmetric matrix, in bounded time.
//!
//! `A` → Jacobi's rotations, half of all columns at a time → orthonormal `U` and |λ| with `|A| = U diag(|λ|) Uᵀ`
//! (method.md E2 needs no more: Σ depends on |λ| alone).
//!
//! ```text
//! A ← Jᵀ A J,  Uᵀ ← Jᵀ Uᵀ  with J a rotation of d/2 disjoint pairs; at the end λᵢ = Aᵢᵢ
//! ```
//!
//! The number of sweeps depends on the dimension alone, and a rotation costs the same whether it turns or not,
//! so time does not depend on the values.
//!
//! The columns of A move and its rows stay. Column `j` of the first half is paired with column `j` of
//! the second; after each round the columns move on by one place around a ring in which the first stays (the
//! circle method), so that in a sweep every pair meets once and every column comes home. The rows, which are
//! contiguous, are found by a list instead.

use super::dot::{IS_64_BIT, LANES};

/// The largest dimension that the number of sweeps and the stated accuracy were measured for.
pub const MAX_DIM: usize = 64;

/// Accuracy: every entry of `U diag(|λ|) Uᵀ` is within `ACCURACY · dim · ε · ‖A‖` of |A|, for repeated,
/// zero, huge, graded and mixed-sign eigenvalues alike (tests below).
#[cfg(test)]
const ACCURACY: f32 = 4.0;

/// Off-diagonal entries up to this, half of f32's ε, are zero; the largest entry of the matrix is scaled to about
/// 1. It is what rounding leaves: without it, equal eigenvalues would be turned by chance angles in every sweep.
const NEGLIGIBLE: f32 = 0.5 * f32::EPSILON;

/// Pairs whose angles are computed together: four lanes of one register on a wide machine.
const BLOCK: usize = if IS_64_BIT { 4 } else { 1 };

/// Sweeps over all pairs, after which the hardest family of matrices in the tests has converged (for
/// dimension 8 those are repeated eigenvalues; most others need two sweeps fewer).
#[inline(always)]
#[must_use]
pub const fn sweeps(dim: usize) -> usize {
    match dim {
        0..=1 => 0,
        2 => 3,
        3..=4 => 5,
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

/// Floats of memory that a decomposition needs: A and Uᵀ with `columns`, and the angles of one round.
#[inline(always)]
#[must_use]
pub const fn work_len(dim: usize) -> usize {
    (2 * columns(dim) + 1) * columns(dim)
}

/// What [`decompose`] leaves in its memory.
pub struct Decomposition<'a> {
    /// A, diagonal but for what is negligible; row-major, rows of [`columns`] values.
    a: &'a [f32],
    /// Uᵀ, likewise: row `j` is eigenvector `j`.
    u: &'a [f32],
    /// What A is scaled by.
    scale: f32,
    width: usize,
}

/// Decomposes the symmetric matrix that `entry(i, j)` gives; `work` has [`work_len`] floats, contents
/// ignored. `None` when it is shorter, or `dim` above [`MAX_DIM`]. `sweeps · dim²/2` rotations of `12 dim`
/// multiplications.
#[inline(always)]
pub fn decompose(
    dim: usize,
    work: &mut [f32],
    entry: impl Fn(usize, usize) -> f32,
) -> Option<Decomposition<'_>> {
    let width = columns(dim);
    let (a, rest) = work.split_at_mut_checked(width * width)?;
    let (u, rest) = rest.split_at_mut_checked(width * width)?;
    let angles = rest.get_mut(..width)?;
    let mut places = [0; MAX_DIM];
    let order = places.get_mut(..width)?;
    for (i, ((a, u), place)) in Rows(a, width).zip(Rows(u, width)).zip(&mut *order).enumerate() {
        *place = i as u8;
        for (j, (a, u)) in a.iter_mut().zip(u).enumerate() {
            *a = if i < dim && j < dim { entry(i, j) } else { 0.0 };
            *u = if i == j { 1.0 } else { 0.0 };
        }
    }
    let scale = power_of_two_below(a);
    let inverse = 1.0 / scale;
    for x in a.iter_mut() {
        *x *= inverse;
    }
    // The same code with the size known to the compiler: a wide machine keeps a row in one register.
    if IS_64_BIT && dim == LANES {
        sweep(a, u, order, angles, LANES);
    } else {
        sweep(a, u, order, angles, dim);
    }
    Some(Decomposition { a, u, scale, width })
}

impl Decomposition<'_> {
    /// |λ| of eigenvector `j`.
    #[inline(always)]
    #[must_use]
    pub fn magnitude(&self, j: usize) -> f32 {
        self.a.get(j * self.width + j).map_or(0.0, |lambda| lambda.abs() * self.scale)
    }

    /// Eigenvector `j`, of length 1.
    #[inline(always)]
    #[must_use]
    pub fn vector(&self, j: usize) -> &[f32] {
        self.u.get(j * self.width..).unwrap_or(&[])
    }
}

/// All sweeps. `order` has the row of A and of Uᵀ that belongs to each column of A.
#[inline(always)]
fn sweep(a: &mut [f32], u: &mut [f32], order: &mut [u8], angles: &mut [f32], dim: usize) {
    let width = columns(dim);
    let half = width / 2;
    let Some((cosines, sines)) = angles.split_at_mut_checked(half) else { return };
    for _ in 0..sweeps(dim) {
        for _ in 1..width {
            // Not `chunks_mut` zipped: that keeps a division by zero, and with it a panic, at some levels.
            let mut first = 0;
            while first < half {
                let found = rotation_angles(pivots(a, order, width, first));
                for (all, from) in [&mut *cosines, &mut *sines].into_iter().zip(found) {
                    for (to, from) in all.get_mut(first..).unwrap_or_default().iter_mut().zip(from) {
                        *to = from;
                    }
                }
                first += BLOCK;
            }
            turn_columns(a, width, cosines, sines);
            let Some((xs, ys)) = order.split_at_checked(half) else { return };
            for (((&x, &y), &c), &s) in xs.iter().zip(ys).zip(&*cosines).zip(&*sines) {
                for matrix in [&mut *a, &mut *u] {
                    turn_rows(matrix, width, [x, y], c, s);
                }
            }
            move_on(order);
        }
    }
}

/// `Aₓₓ`, `Aᵧᵧ` and `Aₓᵧ` of up to `BLOCK` pairs of columns, from pair `first` on; zeros beyond the last.
#[inline(always)]
fn pivots(a: &[f32], order: &[u8], width: usize, first: usize) -> [[f32; BLOCK]; 3] {
    let half = width / 2;
    let [mut xx, mut yy, mut xy] = [[0.0; BLOCK]; 3];
    let at = |row: u8, column: usize| a.get(usize::from(row) * width + column).copied().unwrap_or(0.0);
    for k in 0..BLOCK {
        let (x, y) = (first + k, half + first + k);
        if let (true, Some(&row_x), Some(&row_y)) = (x < half, order.get(x), order.get(y)) {
            (xx[k], yy[k], xy[k]) = (at(row_x, x), at(row_y, y), at(row_x, y));
        }
    }
    [xx, yy, xy]
}

/// Cosines and sines that make the off-diagonal entries of pairs small, from [`pivots`].
///
/// With `tan 2φ = 2γ/δ` the tangent of φ/2 is `2γ / D(|δ|, 2|γ|)` with a convex D. Three lines below D are within
/// 4 % of it and exact for small angles, so convergence stays quadratic; an angle may be a little off, the next
/// sweep mends it. Only the rotation must be one to the last bit: `s = 2w/(1+w²)`, `c = 1 − ws`.
#[inline(always)]
fn rotation_angles([xx, yy, xy]: [[f32; BLOCK]; 3]) -> [[f32; BLOCK]; 2] {
    let (mut cosines, mut sines) = ([0.0; BLOCK], [0.0; BLOCK]);
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    for k in 0..BLOCK {
        let (gamma, delta) = (xy[k], yy[k] - xx[k]);
        let (a, b) = (delta.abs(), 2.0 * gamma.abs());
        let d = larger(larger(4.0 * a, 3.5 * a + 1.5 * b), 2.25 * a + 2.414 * b);
        let w = 2.0 * gamma / if delta < 0.0 { -d } else { d };
        let w = if gamma.abs() > NEGLIGIBLE { w } else { 0.0 };
        sines[k] = 2.0 * w / (1.0 + w * w);
        cosines[k] = 1.0 - w * sines[k];
    }
    [cosines, sines]
}

/// `(x, y) ← (c x − s y, s x + c y)`.
#[inline(always)]
fn rotated(x: f32, y: f32, c: f32, s: f32) -> (f32, f32) {
    (c * x - s * y, s * x + c * y)
}

/// Rotates the first against the second half of every row of A, which then moves on.
#[inline(always)]
fn turn_columns(a: &mut [f32], width: usize, cosines: &[f32], sines: &[f32]) {
    // Eight columns are what the published models have. A wide machine turns a row in two registers; on a small one, compiled for
    // size, a loop would cost as much as the rotations in it.
    if width == LANES
        && let (Some(&c), Some(&s)) = (cosines.first_chunk::<4>(), sines.first_chunk::<4>())
    {
        for row in a.as_chunks_mut::<LANES>().0 {
            let (mut x, mut y) = ([0.0; 4], [0.0; 4]);
            if IS_64_BIT {
                for k in 0..4 {
                    (x[k], y[k]) = rotated(row[k], row[4 + k], c[k], s[k]);
                }
            } else {
                (x[0], y[0]) = rotated(row[0], row[4], c[0], s[0]);
                (x[1], y[1]) = rotated(row[1], row[5], c[1], s[1]);
                (x[2], y[2]) = rotated(row[2], row[6], c[2], s[2]);
                (x[3], y[3]) = rotated(row[3], row[7], c[3], s[3]);
            }
            *row = [x[0], y[0], x[1], x[2], y[1], y[2], y[3], x[3]];
        }
        return;
    }
    for row in Rows(a, width) {
        let Some((x, y)) = row.split_at_mut_checked(cosines.len()) else { return };
        for (((x, y), &c), &s) in x.iter_mut().zip(y).zip(cosines).zip(sines) {
            (*x, *y) = rotated(*x, *y, c, s);
        }
        move_on(row);
    }
}

/// Rotates two rows against each other.
#[inline(always)]
fn turn_rows(m: &mut [f32], width: usize, pair: [u8; 2], c: f32, s: f32) {
    if IS_64_BIT {
        let rows = pair.map(|row| usize::from(row) * width..(usize::from(row) + 1) * width);
        if let Ok([x, y]) = m.get_disjoint_mut(rows) {
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = rotated(*x, *y, c, s);
            }
        }
        return;
    }
    // With fewer checks, which a small machine would feel. The earlier row first: turned the other way, the same products and sums.
    let ([x, y], s) = if pair[0] < pair[1] { (pair, s) } else { ([pair[1], pair[0]], -s) };
    let Some((head, y)) = m.split_at_mut_checked(usize::from(y) * width) else { return };
    let Some(x) = head.get_mut(usize::from(x) * width..) else { return };
    for (x, y) in x.iter_mut().zip(y).take(width) {
        (*x, *y) = rotated(*x, *y, c, s);
    }
}

/// One step around the ring: `x₀ x₁ … x_h / y₀ … y_h` → `x₀ y₀ x₁ … / y₁ … y_h x_h`.
#[inline(always)]
fn move_on<T: Copy>(row: &mut [T]) {
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

    #[test]
    fn the_number_of_sweeps_is_part_of_the_bits() {
        let found = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64].map(sweeps);
        assert_eq!(found, [0, 0, 3, 5, 5, 7, 7, 8, 8, 10, 10, 11, 11]);
    }

    #[test]
    fn equal_diagonals_turn_forward_and_what_is_negligible_does_not_turn() {
        let turned = |xx: f32, yy: f32, xy: f32| {
            let [cosines, sines] = rotation_angles([[xx; BLOCK], [yy; BLOCK], [xy; BLOCK]]);
            (cosines[0], sines[0])
        };
        // By about 45°, in the direction of the entry's sign.
        let (c, s) = turned(1.0, 1.0, 0.5);
        assert!((c - s).abs() < 0.01 && (c * c + s * s - 1.0).abs() < 1e-6, "{c} {s}");
        assert_eq!(turned(1.0, 1.0, -0.5), (c, -s));
        assert!(turned(1.0, 0.5, 0.25).1 < 0.0 && turned(0.5, 1.0, 0.25).1 > 0.0);
        for sign in [1.0, -1.0] {
            assert_eq!(turned(0.5, 1.0, sign * NEGLIGIBLE), (1.0, 0.0));
            assert!(turned(0.5, 1.0, sign * NEGLIGIBLE.next_up()).1 * sign > 0.0);
        }
    }

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
        let u = DMatrix::from_fn(dim, dim, |i, j| f64::from(found.vector(j)[i]));
        let magnitudes = DVector::from_fn(dim, |j, _| f64::from(found.magnitude(j)));
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
