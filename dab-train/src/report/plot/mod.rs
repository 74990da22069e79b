//! Figures as SVG text: no fonts, no files, no system library.
//!
//! scores and curves → one function per figure → [`Drawing`] → an SVG file, or `report.html`.
//!
//! Every figure names its axes with units and its positive class where there is one. Text stays text:
//! the browser chooses the font, so a machine that never saw one can draw.

mod calibration;
mod codes;
mod compare;
mod curves;
mod histogram;
mod latent;
mod rate_distortion;
mod regression;
mod style;
mod timeline;

pub use calibration::{Channel, calibration};
pub use codes::code_class_counts;
pub use compare::{Lane, compare};
pub use curves::{Curve, risk_coverage, roc};
pub use histogram::score_histogram;
pub use latent::{Group, Plane, latent_scatter};
pub use rate_distortion::rate_distortion;
pub use regression::{RegressionFigure, regression};
pub use style::{Drawing, Entry};
pub use timeline::{budgets, timeline};
