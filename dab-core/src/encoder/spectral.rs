//! Spectral encoder (method.md E2): Σ = U diag(l²) Uᵀ from a symmetric A = U diag(λ) Uᵀ.
//!
//! ```text
//! Aᵢᵢ = rᵢᵢ,  Aᵢⱼ = Aⱼᵢ = rᵢⱼ/2,   lᵢ = softplus(|λᵢ| − 5) + 1e-5,   V = U diag(l)
//! ```
//!
//! The decomposition is [`jacobi`]: a fixed number of sweeps. An error of ε‖A‖ in λ moves l by no more
//! than that (softplus has slope below 1), so large and small eigenvalues are equally safe.

use crate::linalg::jacobi;
use crate::linalg::triangle::{Layout, Triangle};
use crate::scalar::{ln, std_from_raw, tame};

/// Writes V (row-major, `dim²`) and returns ln|Σ|; `work` has [`jacobi::work_len`] floats, contents
/// ignored. `None` when it is too short.
#[inline(always)]
pub fn factor_into(raw: &[f32], factor: &mut [f32], work: &mut [f32], dim: usize) -> Option<f32> {
    let triangle = Triangle::new(raw, dim, Layout::Packed);
    let entry = |i: usize, j: usize| {
        let (row, column) = if i < j { (j, i) } else { (i, j) };
        let r = tame(triangle.row(row).get(column).copied().unwrap_or(0.0));
        if i == j { r } else { 0.5 * r }
    };
    let found = jacobi::decompose(dim, work, entry)?;
    let mut log_det = 0.0;
    for j in 0..dim {
        let std = std_from_raw(tame(found.magnitude(j)));
        log_det += 2.0 * ln(std);
        for (i, u) in found.vector(j).iter().enumerate().take(dim) {
            if let Some(v) = factor.get_mut(i * dim + j) {
                *v = u * std;
            }
        }
    }
    Some(log_det)
}
