#![doc = include_str!("../README.md")]
//!
//! # How the crate is built up
//!
//! ```text
//! config  →  data  →  learn (with model)  →  measure  →  export → model.dab  →  report
//! TOML       rows     epochs                 scores      weights.safetensors    tables, plots
//! ```
//!
//! [`Fit`] learns from rows in memory; [`experiment::run`] does what an experiment file says, and is the corridor that
//! passes the rooms: [`config`] says what is to be done, [`data`] gives the examples, [`learn`] trains a [`model`],
//! [`measure`] tells how good it is, [`export`] writes it as a file, [`report`] draws and tabulates. [`cli`] is the command,
//! [`support`] what all of them use. The mathematics of inference lives in `dab-core`; [`model`] has its differentiable
//! twins.

pub mod cli;
pub mod config;
pub mod data;
mod error;
pub mod experiment;
pub mod export;
mod fit;
pub mod learn;
pub mod measure;
pub mod model;
pub mod report;
mod run;
#[cfg(test)]
#[path = "../tests/stored/mod.rs"]
mod stored;
pub mod support;

pub use config::Experiment;
pub use error::Error;
pub use fit::{Fit, fit};
pub use run::Run;
