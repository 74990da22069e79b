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

/// Writes V (row-major, `dim²`) and returns ln|Σ|. `work` is two matrices of `dim²`, contents ignored.
#[inline(always)]
pub fn factor_into(raw: &[f32], factor: &mut [f32], work: (&mut [f32], &mut [f32]), dim: usize) -> f32 {
    let (g, u) = work;
    let triangle = Triangle::new(raw, dim, Layout::Packed);
    for i in 0..dim {
        for (j, &r) in triangle.row(i).iter().enumerate() {
            let a = if i == j { tame(r) } else { 0.5 * tame(r) };
            for at in [i * dim + j, j * dim + i] {
                if let Some(entry) = g.get_mut(at) {
                    *entry = a;
                }
            }
        }
    }
    let scale = jacobi::orthogonalize(g, u, dim);
    let mut log_det = 0.0;
    for i in 0..dim {
        let row = i * dim..(i + 1) * dim;
        let (Some(column), Some(vector)) = (g.get(row.clone()), u.get(row)) else { break };
        let std = std_from_raw(tame(jacobi::magnitude(column, scale)));
        log_det += 2.0 * ln(std);
        // Row j of V holds entry j of every eigenvector.
        for (j, &x) in vector.iter().enumerate() {
            if let Some(entry) = factor.get_mut(j * dim + i) {
                *entry = x * std;
            }
        }
    }
    log_det
}
