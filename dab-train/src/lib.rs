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
//! passes the rooms: [`config`] says what is to be done, [`data`] gives the examples, `learn` trains a `model`, `measure`
//! tells how good it is, `export` writes it as a file, `report` draws and tabulates. `cli` is the command, `support` what
//! all of them use. The mathematics of inference lives in `dab-core`; `model` has its differentiable twins.
//!
//! What this page lists is the interface of the crate. Other modules are reachable for the tests, benches and examples of
//! its repository, and may change in any version.

#[doc(hidden)]
pub mod choose;
#[doc(hidden)]
pub mod cli;
pub mod config;
pub mod data;
mod error;
pub mod experiment;
#[doc(hidden)]
pub mod export;
mod fit;
#[doc(hidden)]
pub mod learn;
#[doc(hidden)]
pub mod measure;
#[doc(hidden)]
pub mod model;
#[doc(hidden)]
pub mod report;
mod run;
#[cfg(test)]
#[path = "../tests/stored/mod.rs"]
mod stored;
#[doc(hidden)]
pub mod support;

pub use choose::Choice;
pub use config::Experiment;
pub use error::Error;
pub use fit::{Fit, fit};
pub use learn::epoch::Epoch;
pub use learn::run::{Learnt, Moment, Observer};
pub use measure::comparison::Comparison;
pub use measure::evaluate::{Evaluation, TaskScores};
pub use measure::parity::Parity;
pub use model::snapshot::{Scores, Snapshot};
pub use run::Run;
