//! The host side of dab: everything behind the `dab` command.
//!
//! ```text
//! data → backbone → encoder head → codebook (RDFC) → decoder → metrics → export → model.dab
//! ```

pub mod backbone;
pub mod baselines;
pub mod bottleneck;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod data;
pub mod device;
pub mod evaluate;
pub mod metrics;
pub mod network;
pub mod optimiser;
pub mod parallel;
pub mod plain;
pub mod plot;
pub mod random;
pub mod rdfc;
pub mod report;
pub mod trained;
pub mod trainer;
