//! Diagonal encoder (method.md E1): `sᵢ = softplus(rᵢ − 5) + 1e-5`, Σ = diag(s²).

use crate::linalg::dot;
use crate::scalar::{ln, std_from_raw, tame};

/// Writes the variances and returns ln|Σ|. `3 d` transcendental calls.
#[inline(always)]
pub fn variance_into(raw: &[f32], variance: &mut [f32]) -> f32 {
    for (v, &r) in variance.iter_mut().zip(raw) {
        *v = std_from_raw(tame(r));
    }
    let log_det = 2.0 * dot::sum(variance, ln);
    for v in variance {
        *v *= *v;
    }
    log_det
}
