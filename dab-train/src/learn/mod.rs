//! Learning: a network and training examples in, a trained network and its codebook out.
//!
//! ```text
//! run (epochs, early stopping, checkpoints) → epoch: network_step (step 1), then codebook_step (steps 2–4)
//! ```
//!
//! The steps are those of method.md. [`examples`] gives mini-batches, from a table on the device or from rows that are read
//! while the network learns; [`images`] learns from images; [`machines`] shares a run among
//! several processes, by [`mpi`].

pub mod checkpoint;
pub mod codebook_step;
pub mod epoch;
pub mod examples;
pub mod images;
pub mod indexed_rows;
pub mod kmeans;
pub mod logistic;
pub mod loss_scaling;
pub mod machines;
pub mod mpi;
mod network_step;
pub mod optimiser;
mod parts;
pub mod retrofit;
pub mod ridge;
pub mod run;
mod start;

use std::path::Path;

use anyhow::Result;

use self::run::{Learnt, Observer, Setting};
use crate::{
    config::Experiment,
    data::{Loaded, Sealed, Seen, Task},
};

/// Learns from the training rows of an experiment. Also gives the rows as the bottleneck sees them (of images, their
/// features): those that learn and calibrate, and the others, still sealed. The features of a frozen image network are kept
/// in the folder `cache`.
pub fn learn(
    experiment: &Experiment,
    loaded: Loaded,
    setting: &Setting,
    cache: &Path,
    observer: &mut dyn Observer,
) -> Result<(Seen, Sealed, Learnt)> {
    match loaded {
        Loaded::Rows(task, _) => {
            let (seen, sealed) = task.seal();
            let learnt = run::train(experiment, &seen.train, setting, observer)?;
            Ok((seen, sealed, learnt))
        }
        Loaded::Images(images) => images::learn_task(experiment, *images, setting, cache, observer),
    }
}

/// What [`learn`] gave, from the checkpoint that it left. Of images, the training part of the task may be one of each class.
pub fn restore(experiment: &Experiment, loaded: Loaded, setting: &Setting) -> Result<(Task, Learnt)> {
    match loaded {
        Loaded::Rows(task, _) => {
            let learnt = run::restore(experiment, &task.train, setting)?;
            Ok((*task, learnt))
        }
        Loaded::Images(images) => images::restore_task(experiment, *images, setting),
    }
}
