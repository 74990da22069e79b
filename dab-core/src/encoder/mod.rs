//! Encoders: raw outputs of the affine head → Gaussian (method.md E1–E3).
//!
//! ```text
//! raw = (μ₁ … μ_d, spread …)      spread: d values (diagonal) or d(d+1)/2, a triangle row by row
//! ```
//!
//! Three ways to read the spread, one file each. All keep ln|Σ| from the standard deviations themselves
//! (ln|Σ| = 2 Σ ln lᵢ): no determinant is ever computed from a matrix.

pub mod cholesky;
pub mod diagonal;
pub mod spectral;
