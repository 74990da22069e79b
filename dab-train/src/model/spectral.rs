//! The symmetric root of a spectral covariance, and its derivative (method.md E2).
//!
//! `A` `[batch, d, d]` → `root` → S = f(A) = U diag(f(λ)) Uᵀ and ln|S²|, f(λ) = softplus(|λ| − 5) + 1e-5.
//!
//! ```text
//! dS = U (Φ ∘ (Uᵀ dA U)) Uᵀ    Φ_ij = (f(λ_i) − f(λ_j)) / (λ_i − λ_j),  f′ on ties       Daleckii–Krein
//! ```
//!
//! Eigenvectors are never differentiated (they blow up where eigenvalues meet). The derivative above is linear
//! in dA, so it is written down as that linear map applied to A − stop(A): its value is exactly zero, its
//! gradient is the formula, and no operation of any backend has to be extended.

use burn::tensor::{DType, Tensor, TensorData};
use dab_core::isa::{Isa, Kernel};

use super::{encoder, product::Product};
use crate::support::simd::Widest;

/// Jacobi sweeps, at most. Convergence is quadratic: 8×8 needs 5 for full f32 precision, 7 for f64.
const SWEEPS: usize = 8;
/// Off-diagonal norm, relative to the matrix's, at which a dtype has nothing left to rotate away.
pub(super) const CONVERGED: (f64, f64) = (1e-9, 1e-15);
/// Eigenvalues closer than this, relative to their size, count as tied: below it the difference quotient
/// loses more digits than f′ at the midpoint does.
pub(super) const TIE: f64 = 1e-3;
/// Matrices that the CPU decomposes side by side: two registers' worth of AVX2.
pub(super) const LANES: usize = 8;

/// One cell of each of these matrices.
pub(super) type Lanes = [f64; LANES];

/// f′(λ) = sign(λ) sigmoid(|λ| − 5); 0 at the kink.
fn slope(values: Tensor<3>) -> Tensor<3> {
    let sigmoid = values.clone().abs().sub_scalar(encoder::STD_SHIFT).neg().exp().add_scalar(1.0).recip();
    values.sign() * sigmoid
}

/// S = f(A) `[batch, d, d]` and ln|Σ| = 2 Σ ln f(λ) `[batch, 1]` of symmetric matrices `a`.
pub fn root(a: Tensor<3>) -> (Tensor<3>, Tensor<2>) {
    let tracked = a.is_tracked();
    let fixed = a.clone().without_autodiff();
    let (values, vectors) = eigen(fixed.clone());
    let std = encoder::std(values.clone().abs()); // f(λ), an eigenvalue's standard deviation [batch, d]
    let root = scaled(&vectors, std.clone()).product(vectors.clone().transpose());
    let log_det = std.clone().log().sum_dim(1).mul_scalar(2.0);
    if !tracked {
        return (root, log_det);
    }
    let here = |t: Tensor<3>| t.autodiff();
    let delta = a - here(fixed); // zero, with A's gradient
    let phi = here(quotients(values.clone(), std.clone()));
    let (u, ut) = (here(vectors.clone()), here(vectors.clone().transpose()));
    let first_order = u.clone().product(phi * ut.clone().product(delta.clone()).product(u)).product(ut);
    // d ln|Σ| = ⟨U diag(2 f′/f) Uᵀ, dA⟩.
    let ratio = slope(values.unsqueeze_dim::<3>(2)).squeeze_dim::<2>(2).mul_scalar(2.0) / std;
    let gradient = here(scaled(&vectors, ratio).product(vectors.transpose()));
    let log_det_change = (delta * gradient).sum_dims_squeeze::<1, _>(&[1, 2]).unsqueeze_dim::<2>(1);
    (here(root) + first_order, log_det.autodiff() + log_det_change)
}

/// U diag(x).
fn scaled(vectors: &Tensor<3>, x: Tensor<2>) -> Tensor<3> {
    vectors.clone() * x.unsqueeze_dim::<3>(1)
}

/// Φ `[batch, d, d]`.
fn quotients(values: Tensor<2>, std: Tensor<2>) -> Tensor<3> {
    let difference = |t: Tensor<2>| t.clone().unsqueeze_dim::<3>(2) - t.unsqueeze_dim::<3>(1);
    let (rise, run) = (difference(std), difference(values.clone()));
    let middle =
        (values.clone().unsqueeze_dim::<3>(2) + values.clone().unsqueeze_dim::<3>(1)).mul_scalar(0.5);
    let size = values.clone().unsqueeze_dim::<3>(2).abs() + values.unsqueeze_dim::<3>(1).abs();
    let tied = run.clone().abs().lower_equal(size.add_scalar(1.0).mul_scalar(TIE));
    (rise / run.mask_fill(tied.clone(), 1.0)).mask_where(tied, slope(middle))
}

/// Eigenvalues `[batch, d]` (unordered) and eigenvectors (columns) `[batch, d, d]` of symmetric matrices, no gradient.
///
/// Always by the processor, a few matrices at a time and in `f64`: a GPU hands it a few kilobytes and gets them back, instead
/// of launching a thousand kernels for rotations, in a precision that its matrix units may cut.
pub fn eigen(a: Tensor<3>) -> (Tensor<2>, Tensor<3>) {
    let [batch, dim, _] = a.dims();
    let (device, dtype) = (a.device(), a.dtype());
    let tolerance = if dtype == DType::F64 { CONVERGED.1 } else { CONVERGED.0 };
    let given: Vec<f64> = a.into_data().iter::<f64>().collect();
    let cells = dim * dim;
    let (mut values, mut vectors) = (vec![0.0; batch * dim], vec![0.0; batch * cells]);
    let (mut matrix, mut basis) = (vec![[0.0; LANES]; cells], vec![[0.0; LANES]; cells]);
    let isa = Widest::detect();
    for first in (0..batch).step_by(LANES) {
        let lanes = first..batch.min(first + LANES);
        for (cell, lane) in matrix.iter_mut().enumerate() {
            *lane = [0.0; LANES];
            lanes.clone().for_each(|row| lane[row - first] = given[row * cells + cell]);
        }
        isa.run(Jacobi { a: &mut matrix, v: &mut basis, dim, tolerance });
        for row in lanes {
            (0..dim).for_each(|i| values[row * dim + i] = matrix[i * dim + i][row - first]);
            (0..cells).for_each(|cell| vectors[row * cells + cell] = basis[cell][row - first]);
        }
    }
    let tensor = |data, shape: &[usize]| TensorData::new::<f64, _>(data, shape.to_vec());
    (
        Tensor::from_data(tensor(values, &[batch, dim]), (&device, dtype)),
        Tensor::from_data(tensor(vectors, &[batch, dim, dim]), (&device, dtype)),
    )
}

/// Cyclic Jacobi in place: the matrices `a` become diagonal to `tolerance`, `v` their eigenvectors (columns).
pub(super) struct Jacobi<'a> {
    pub a: &'a mut [Lanes],
    pub v: &'a mut [Lanes],
    pub dim: usize,
    pub tolerance: f64,
}

impl Kernel for Jacobi<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { a, v, dim, tolerance } = self;
        v.fill([0.0; LANES]);
        (0..dim).for_each(|i| v[i * dim + i] = [1.0; LANES]);
        for _ in 0..SWEEPS {
            let live = unfinished(a, dim, tolerance);
            if live == [false; LANES] {
                return;
            }
            for p in 0..dim {
                for q in p + 1..dim {
                    let turn = rotation(&a[p * dim + p], &a[q * dim + q], &a[p * dim + q], &live);
                    for i in 0..dim {
                        rotate(a, i * dim + p, i * dim + q, &turn);
                        rotate(v, i * dim + p, i * dim + q, &turn);
                    }
                    for i in 0..dim {
                        rotate(a, p * dim + i, q * dim + i, &turn);
                    }
                }
            }
        }
    }
}

/// Which matrices still have something off their diagonals.
#[inline(always)]
fn unfinished(a: &[Lanes], dim: usize, tolerance: f64) -> [bool; LANES] {
    // `off` is summed itself, not as a difference: it is far below the rounding of `all`.
    let (mut all, mut off) = ([0.0; LANES], [0.0; LANES]);
    for (cell, values) in a.iter().enumerate() {
        let above = if cell % dim > cell / dim { 2.0 } else { 0.0 };
        for lane in 0..LANES {
            let square = values[lane] * values[lane];
            all[lane] += square;
            off[lane] += above * square;
        }
    }
    // A NaN is never finished.
    let finished: [bool; LANES] = core::array::from_fn(|lane| off[lane] <= tolerance * tolerance * all[lane]);
    finished.map(|finished| !finished)
}

/// The rotations (cos, sin) that make a pair's off-diagonal entry vanish; the identity where it is zero already, and in
/// finished matrices, whose bits thus do not depend on their neighbours.
#[inline(always)]
fn rotation(app: &Lanes, aqq: &Lanes, apq: &Lanes, live: &[bool; LANES]) -> (Lanes, Lanes) {
    let (mut cos, mut sin) = ([1.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let theta = (aqq[lane] - app[lane]) / (2.0 * apq[lane]);
        let t = 1.0_f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
        let c = 1.0 / (t * t + 1.0).sqrt();
        let turns = live[lane] && apq[lane] != 0.0;
        cos[lane] = if turns { c } else { 1.0 };
        sin[lane] = if turns { t * c } else { 0.0 };
    }
    (cos, sin)
}

/// Cells `p` and `q` of every matrix, rotated into each other.
#[inline(always)]
fn rotate(cells: &mut [Lanes], p: usize, q: usize, (cos, sin): &(Lanes, Lanes)) {
    let (mut x, mut y) = (cells[p], cells[q]);
    for lane in 0..LANES {
        (x[lane], y[lane]) =
            (cos[lane] * x[lane] - sin[lane] * y[lane], sin[lane] * x[lane] + cos[lane] * y[lane]);
    }
    (cells[p], cells[q]) = (x, y);
}
