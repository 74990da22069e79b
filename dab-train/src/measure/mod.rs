//! Measuring: how good a trained model is, beside what, at what cost, and whether the device computes the same.
//!
//! ```text
//! Snapshot + Task → evaluate (scores → metrics), comparison (baselines → the same metrics), parity (trainer against device)
//! recorded streams → stream (alarms an hour, delays, a configuration of the monitor)
//! model.dab + Task → assessed (what the channels of the file find, whether its p-values hold)
//! ```

pub mod alarms;
pub mod assessed;
pub mod baselines;
pub mod comparison;
pub mod cost;
pub mod evaluate;
pub mod metrics;
pub mod parity;
pub mod stream;
pub mod worth;
