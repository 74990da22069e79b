//! Files: rows of numbers in, artifacts in, whole files out.

pub mod artifact;
mod csv;
pub mod digest;
pub mod names;
mod npy;
pub mod rows;
pub mod whole;
