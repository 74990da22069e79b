//! What every room uses and none owns: devices, random streams, wide instructions, matrix products, files, settings, memory, threads, counts in words.

pub mod cuda;
pub mod device;
pub mod digest;
pub mod files;
pub mod interrupt;
pub mod limits;
pub mod lock;
pub mod matrix;
pub mod memory;
pub mod parallel;
pub mod random;
pub mod settings;
pub mod simd;
pub mod text;
