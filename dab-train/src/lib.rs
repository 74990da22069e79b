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
//! What this page lists is the interface of the crate.

mod choose;
mod cli;
pub mod config;
pub mod data;
mod error;
pub mod experiment;
mod export;
mod fit;
mod learn;
mod measure;
mod model;
mod report;
mod run;
#[cfg(test)]
#[path = "../tests/stored/mod.rs"]
mod stored;
mod support;

pub use choose::Choice;
pub use cli::run as command;
pub use config::Experiment;
pub use error::{Cause, Error};
pub use fit::{Fit, fit};
pub use learn::epoch::Epoch;
pub use learn::run::{Learnt, Moment, Observer};
pub use measure::comparison::Comparison;
pub use measure::evaluate::{Evaluation, TaskScores};
pub use measure::parity::Parity;
pub use model::snapshot::{Scores, Snapshot};
pub use run::Run;

/// What the tests, benches and examples of the repository use besides the interface. It may change in any version.
#[doc(hidden)]
pub mod internals {
    pub mod data {
        pub use crate::data::files::Npz;
        pub use crate::data::images::{ImageSet, Labelled, Pixels, sources};
        pub use crate::data::sets::{KNOWN, Known};
    }
    pub mod export {
        pub use crate::export::artifact;
    }
    pub mod learn {
        pub use crate::learn::{epoch, examples, images, indexed_rows, loss_scaling, machines, mpi, run};
    }
    pub mod measure {
        pub use crate::measure::{baselines, cost, evaluate, metrics, parity, stream};
    }
    pub mod model {
        pub use crate::model::{conv, network, resnet, weights};
    }
    pub mod report {
        pub use crate::report::words;
    }
    pub mod support {
        pub use crate::support::{device, memory, random, simd};
    }
}
