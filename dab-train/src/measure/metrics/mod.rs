//! How good a score is: detection, selective prediction, classification, regression.
//!
//! scores + truth → one report per question → metrics.json, report.html. Every detection report
//! carries its positive class and prevalence:
//!
//! ```text
//! positive = the OOD input, or the misclassified input; a larger score must mean positive
//! ```
//!
//! Scores tie (a saturated softmax gives exactly 1 for thousands of inputs), and an AUROC that sorts
//! ties by luck is off by whole points: every metric here is invariant to the order of tied examples.

pub mod classification;
pub mod detection;
mod ranking;
pub mod regression;
pub mod scored;
pub mod selective;
pub mod summary;

pub use classification::{Classification, softmax};
pub use detection::{Detection, Positive, auroc};
pub use regression::Regression;
pub use scored::{ScoreReport, Scored};
pub use selective::Selective;
pub use summary::Summary;

#[cfg(test)]
#[path = "reference_tests.rs"]
mod reference_tests;
