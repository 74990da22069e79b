//! Small kernels: each states its bound, and its tests measure it.

pub mod dot;
pub mod jacobi;
pub mod triangle;
