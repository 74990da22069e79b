//! Figures as SVG text: no fonts, no files, no system library.
//!
//! scores and curves → one function per figure → SVG → a file, or `report.html`.
//!
//! Every figure names its axes with units and its positive class where there is one. Text stays text:
//! the browser chooses the font, so a machine that never saw one can draw.

mod codes;
mod curves;
mod histogram;
mod latent;
mod regression;
mod style;

pub use codes::{code_class_counts, code_usage};
pub use curves::{Curve, accuracy_per_quantile, risk_coverage, roc};
pub use histogram::{Scores, score_histogram};
pub use latent::{Group, Plane, PlaneCode, latent_scatter};
pub use regression::{RegressionFigure, regression};
