//! The host side of dab: everything behind the `dab` command.

pub mod baselines;
pub mod data;
pub mod metrics;
pub mod parallel;
pub mod plot;
pub mod random;
pub mod report;
