//! Cholesky encoder (method.md E3): a lower-triangular L, Σ = L Lᵀ; the choice for microcontrollers.
//!
//! `Lᵢᵢ = softplus(rᵢᵢ − 5) + 1e-5`, `Lᵢⱼ = rᵢⱼ` below the diagonal: no eigen-decomposition, `3 d`
//! transcendental calls.

use crate::linalg::triangle::{Layout, Triangle};
use crate::scalar::{ln, std_from_raw, tame};

/// Writes L (row-major, `dim²`, zeros above the diagonal) and returns ln|Σ|.
#[inline(always)]
pub fn factor_into(raw: &[f32], factor: &mut [f32], dim: usize) -> f32 {
    let triangle = Triangle::new(raw, dim, Layout::Packed);
    let mut log_det = 0.0;
    let mut rest = factor;
    for i in 0..dim {
        let Some((row, after)) = rest.split_at_mut_checked(dim) else { break };
        for (j, x) in row.iter_mut().enumerate() {
            *x = match triangle.row(i).get(j) {
                Some(&r) if j < i => tame(r),
                Some(&r) => {
                    let std = std_from_raw(tame(r));
                    log_det += 2.0 * ln(std);
                    std
                }
                None => 0.0,
            };
        }
        rest = after;
    }
    log_det
}
