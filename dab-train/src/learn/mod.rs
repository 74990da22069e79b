//! Learning: a network and training examples in, a trained network and its codebook out.
//!
//! ```text
//! run (epochs, early stopping, checkpoints) → epoch: network_step (step 1), then codebook_step (steps 2–4)
//! ```
//!
//! The steps are those of method.md. [`examples`] gives mini-batches, from a table on the device or from rows that are read
//! while the network learns; [`images`] learns from images; [`machines`] shares a run among several computers.

pub mod checkpoint;
pub mod clock;
pub mod codebook_step;
pub mod epoch;
pub mod examples;
pub mod images;
pub mod indexed_rows;
pub mod kmeans;
pub mod loss_scaling;
pub mod machines;
mod network_step;
pub mod optimiser;
pub mod run;
