//! Where the rows of a page come from: what a run knows about them, and `dab report` cannot.

use crate::{config::Experiment, data::DataConfig, measure::worth::Classifier};

/// What a run knows about the rows and the model of its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Whether the rows of the page were opened after every choice had been made.
    pub sealed: bool,
    /// Whether the test rows were cut from the training file.
    pub cut: bool,
    /// Whether rows that calibrate were given beside the training rows.
    pub calibrated: bool,
    /// Whether the last layer of the user's own network gives the classes.
    pub own_head: bool,
}

impl Origin {
    /// That of an experiment's own page.
    pub fn of(experiment: &Experiment) -> Self {
        let files = match &experiment.data {
            DataConfig::Features(files) => Some(files),
            _ => None,
        };
        Self {
            sealed: true,
            cut: files.is_some_and(|files| files.test_features.is_none()),
            calibrated: files.is_some_and(|files| files.calibration.is_some()),
            own_head: Classifier::of(experiment.retrofit.as_ref()) == Classifier::Own,
        }
    }
}
