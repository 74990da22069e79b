//! The host side of dab: everything behind the `dab` command.

pub mod data;
pub mod metrics;
pub mod random;
