#![doc = include_str!("../README.md")]
//!
//! # How the crate is built up
//!
//! ```text
//! data → backbone → encoder head → codebook (RDFC) → decoder → metrics → export → model.dab
//! weights.safetensors → pack → model.dab → score, inspect, explain, self-test
//! ```
//!
//! The mathematics of inference lives in `dab-core`; here are its differentiable twins ([`bottleneck`]), the
//! learning ([`rdfc`], [`trainer`]), measuring ([`metrics`], [`baselines`], [`parity`]), and files, tables and words
//! ([`io`], [`pack`], [`plot`], [`report`], [`cli`]). [`dispatch`] runs the core's kernels on the widest
//! instructions of this processor.

pub mod backbone;
pub mod baselines;
pub mod bench;
pub mod bottleneck;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod cost;
pub mod data;
pub mod defaults;
pub mod device;
pub mod dispatch;
pub mod evaluate;
pub mod export;
pub mod finetune;
pub mod io;
pub mod machines;
pub mod metrics;
pub mod network;
pub mod optimiser;
pub mod pack;
pub mod parallel;
pub mod parity;
pub mod plain;
pub mod plot;
pub mod random;
pub mod rdfc;
pub mod report;
#[cfg(test)]
#[path = "../tests/stored/mod.rs"]
mod stored;
pub mod trained;
pub mod trainer;
