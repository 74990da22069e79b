//! Small kernels: each states its bound, and its tests measure it.

pub mod dot;
pub mod int8;
pub mod jacobi;
pub mod triangle;
