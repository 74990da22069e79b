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

use burn::tensor::{DType, Device, Tensor, TensorData, activation::softplus};

use super::{constant, encoder};

/// Jacobi sweeps, at most. Convergence is quadratic: 8×8 needs 5 for full f32 precision, 7 for f64.
const SWEEPS: usize = 8;
/// Off-diagonal norm, relative to the matrix's, at which a dtype has nothing left to rotate away.
const CONVERGED: (f64, f64) = (1e-9, 1e-15);
/// Eigenvalues closer than this, relative to their size, count as tied: below it the difference quotient
/// loses more digits than f′ at the midpoint does.
const TIE: f64 = 1e-3;

/// f(λ) = softplus(|λ| − 5) + 1e-5: an eigenvalue's standard deviation.
fn spread(values: Tensor<2>) -> Tensor<2> {
    softplus(values.abs().sub_scalar(encoder::STD_SHIFT), 1.0).add_scalar(encoder::STD_FLOOR)
}

/// f′(λ) = sign(λ) sigmoid(|λ| − 5); 0 at the kink.
fn slope(values: Tensor<3>) -> Tensor<3> {
    let sigmoid = values.clone().abs().sub_scalar(encoder::STD_SHIFT).neg().exp().add_scalar(1.0).recip();
    values.sign() * sigmoid
}

/// S = f(A) `[batch, d, d]` and ln|Σ| = 2 Σ ln f(λ) `[batch, 1]` of symmetric matrices `a`.
#[must_use]
pub fn root(a: Tensor<3>) -> (Tensor<3>, Tensor<2>) {
    let tracked = a.is_tracked();
    let fixed = a.clone().without_autodiff();
    let (values, vectors) = eigen(fixed.clone());
    let std = spread(values.clone()); // [batch, d]
    let root = scaled(&vectors, std.clone()).matmul(vectors.clone().transpose());
    let log_det = std.clone().log().sum_dim(1).mul_scalar(2.0);
    if !tracked {
        return (root, log_det);
    }
    let here = |t: Tensor<3>| t.autodiff();
    let delta = a - here(fixed); // zero, with A's gradient
    let phi = here(quotients(values.clone(), std.clone()));
    let (u, ut) = (here(vectors.clone()), here(vectors.clone().transpose()));
    let first_order = u.clone().matmul(phi * ut.clone().matmul(delta.clone()).matmul(u)).matmul(ut);
    // d ln|Σ| = ⟨U diag(2 f′/f) Uᵀ, dA⟩.
    let ratio = slope(values.unsqueeze_dim::<3>(2)).squeeze_dim::<2>(2).mul_scalar(2.0) / std;
    let gradient = here(scaled(&vectors, ratio).matmul(vectors.transpose()));
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
/// On the CPU one matrix after the other, in `f64`; elsewhere all at once as tensor code.
#[must_use]
pub fn eigen(a: Tensor<3>) -> (Tensor<2>, Tensor<3>) {
    if a.device() == Device::flex() { eigen_host(a) } else { eigen_tensor(a) }
}

pub(super) fn eigen_host(a: Tensor<3>) -> (Tensor<2>, Tensor<3>) {
    let [batch, dim, _] = a.dims();
    let (device, dtype) = (a.device(), a.dtype());
    let tolerance = if dtype == DType::F64 { CONVERGED.1 } else { CONVERGED.0 };
    let mut matrices: Vec<f64> = a.into_data().iter::<f64>().collect();
    let mut vectors = vec![0.0; matrices.len()];
    let mut values = Vec::with_capacity(batch * dim);
    for (matrix, vectors) in matrices.chunks_mut(dim * dim).zip(vectors.chunks_mut(dim * dim)) {
        jacobi(matrix, vectors, dim, tolerance);
        values.extend((0..dim).map(|i| matrix[i * dim + i]));
    }
    let tensor = |data, shape: &[usize]| TensorData::new::<f64, _>(data, shape.to_vec());
    (
        Tensor::from_data(tensor(values, &[batch, dim]), (&device, dtype)),
        Tensor::from_data(tensor(vectors, &[batch, dim, dim]), (&device, dtype)),
    )
}

/// The rotation (cos, sin) that makes a pair's off-diagonal entry vanish; the identity when it is zero already.
fn rotation(app: f64, aqq: f64, apq: f64) -> (f64, f64) {
    if apq == 0.0 {
        return (1.0, 0.0);
    }
    let theta = (aqq - app) / (2.0 * apq);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    (c, t * c)
}

/// Cyclic Jacobi in place: `a` becomes diagonal to `tolerance`, `v` its eigenvectors (columns).
fn jacobi(a: &mut [f64], v: &mut [f64], dim: usize, tolerance: f64) {
    v.fill(0.0);
    (0..dim).for_each(|i| v[i * dim + i] = 1.0);
    for _ in 0..SWEEPS {
        let all: f64 = a.iter().map(|value| value * value).sum();
        // Summed itself, not as a difference: it is far below the rounding of `all`.
        let above = a.chunks_exact(dim).enumerate().flat_map(|(i, row)| &row[i + 1..]);
        let off: f64 = above.map(|value| 2.0 * value * value).sum();
        if off <= tolerance * tolerance * all {
            return;
        }
        for p in 0..dim {
            for q in p + 1..dim {
                let (c, s) = rotation(a[p * dim + p], a[q * dim + q], a[p * dim + q]);
                for i in 0..dim {
                    let (x, y) = (a[i * dim + p], a[i * dim + q]);
                    (a[i * dim + p], a[i * dim + q]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (v[i * dim + p], v[i * dim + q]);
                    (v[i * dim + p], v[i * dim + q]) = (c * x - s * y, s * x + c * y);
                }
                for i in 0..dim {
                    let (x, y) = (a[p * dim + i], a[q * dim + i]);
                    (a[p * dim + i], a[q * dim + i]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
}

/// One round of disjoint pairs: every index's partner (itself when it rests), in round-robin order.
fn partners(dim: usize, round: usize) -> Vec<usize> {
    let players = dim + dim % 2;
    let seat = |i: usize| if i == 0 { 0 } else { (i - 1 + round) % (players - 1) + 1 };
    let mut partner: Vec<usize> = (0..dim).collect();
    for i in 0..players / 2 {
        let (p, q) = (seat(i), seat(players - 1 - i));
        if p < dim && q < dim {
            (partner[p], partner[q]) = (q, p);
        }
    }
    partner
}

/// Parallel-ordered Jacobi: each round rotates d/2 disjoint pairs of every matrix in the batch at once.
pub(super) fn eigen_tensor(mut a: Tensor<3>) -> (Tensor<2>, Tensor<3>) {
    let [batch, dim, _] = a.dims();
    let (device, dtype) = (a.device(), a.dtype());
    let matrix = |cell: &dyn Fn(usize, usize) -> f64| {
        let cells = (0..dim * dim).map(|c| cell(c / dim, c % dim)).collect();
        constant::<3>(cells, [1, dim, dim], &device, dtype)
    };
    let identity = matrix(&|i, j| f64::from(u8::from(i == j)));
    let mut vectors = identity.clone().repeat_dim(0, batch);
    let diagonal = |a: &Tensor<3>| (a.clone() * identity.clone()).sum_dim(2); // [batch, d, 1]
    for round in (0..SWEEPS * (dim + dim % 2 - 1)).map(|round| round % (dim + dim % 2 - 1)) {
        let partner = partners(dim, round);
        let swap = matrix(&|i, j| f64::from(u8::from(partner[i] == j && i != j)));
        // Of a pair p < q: row p carries θ = (a_qq − a_pp) / 2 a_pq, row q its negative.
        let own = diagonal(&a);
        let other = swap.clone().matmul(own.clone());
        let off = (a.clone() * swap.clone()).sum_dim(2); // [batch, d, 1]
        let still = off.clone().equal_scalar(0.0);
        let theta = (other - own) / off.mask_fill(still.clone(), 1.0).mul_scalar(2.0);
        // An exact zero has no sign: the lower index of the pair takes +1, its partner −1.
        let tie = constant::<3>(
            (0..dim).map(|i| if partner[i] > i { 1.0 } else { -1.0 }).collect(),
            [1, dim, 1],
            &device,
            dtype,
        );
        let zero = theta.clone().equal_scalar(0.0);
        let sign = theta.clone().sign().mask_where(zero, tie.repeat_dim(0, batch));
        let t = sign / (theta.clone().abs() + theta.square().add_scalar(1.0).sqrt());
        let t = t.mask_fill(still, 0.0);
        let cos = t.clone().square().add_scalar(1.0).sqrt().recip(); // [batch, d, 1]
        let sin = t * cos.clone();
        // J = diag(c) − diag(s) swap: J_pq = … the same plane rotation as `rotation`, for all pairs at once.
        let turn = cos * identity.clone() - sin * swap; // rows: [batch, d, d]
        a = turn.clone().matmul(a).matmul(turn.clone().transpose());
        vectors = vectors.matmul(turn.transpose());
    }
    (diagonal(&a).squeeze_dim::<2>(2), vectors)
}
