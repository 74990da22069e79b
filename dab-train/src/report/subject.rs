//! What a report is about: a model, and rows as a device judges them.
//!
//! `model.dab` + rows → [`Subject`]. Every score on the page is dab-core's, bit for bit what a device says, whether the page
//! is made at the end of a training or by `dab report` years later.

use anyhow::Result;
use dab_core::{Model, Task, channels::Form};

use crate::{
    data::{RowNames, Table, Targets},
    export::model_file::ModelFile,
    measure::{
        assessed::{Judged, JudgedSet, scored},
        metrics::{ScoreReport, classification},
    },
};

/// A model, and rows as it judges them.
#[derive(Clone, Debug)]
pub struct Subject {
    pub model: ModelFile,
    /// Fresh rows like the training data.
    pub test: JudgedSet,
    /// What they should give, where it is known.
    pub targets: Option<Targets>,
    /// Rows from elsewhere.
    pub ood: Vec<JudgedSet>,
    pub classes: Vec<String>,
    /// What the views look at, where there are several.
    pub views: Vec<String>,
    /// What rows are called, where they have names.
    pub names: RowNames,
}

/// The views of a model in words, the base first; none where there is only one.
fn views(model: &Model<'_>) -> Vec<String> {
    let Some(meta) = model.channels_meta().filter(|meta| !meta.views.is_empty()) else { return Vec::new() };
    let views = meta.views.iter().map(|view| (view.l2, view.form));
    let words = |(index, (l2, form)): (usize, (bool, Form))| {
        // A mean alone centres an input: its columns keep their scales.
        let inputs = match (model.scales_columns(index), l2) {
            (false, false) => "inputs as they are",
            (true, false) => "columns standardised",
            (false, true) => "inputs of length 1",
            (true, true) => "columns standardised, then length 1",
        };
        let score = match form {
            Form::Distance => "distance",
            Form::Joined => "energy, and distance where it surprises",
            Form::Sum => "energy and distance",
            Form::Energy => "energy",
        };
        let local = if model.is_local(index) { ", which counts by how densely rows lie" } else { "" };
        format!("view {index} ({inputs}, {score}{local})")
    };
    std::iter::once((meta.base.l2, meta.base.form)).chain(views).enumerate().map(words).collect()
}

impl Subject {
    /// Rows that the model has judged.
    pub fn new(
        model: ModelFile,
        test: JudgedSet,
        targets: Option<Targets>,
        ood: Vec<JudgedSet>,
    ) -> Result<Self> {
        let view = model.model()?;
        let (classes, views) = (model.class_names(view.shape().outputs), views(&view));
        drop(view);
        Ok(Self { model, test, targets, ood, classes, views, names: RowNames::default() })
    }

    /// Which test rows the decoder gets right, for a classifier with labels.
    pub fn correct(&self) -> Option<Vec<bool>> {
        classification::correct_of(&self.test.outputs(), self.targets.as_ref()?)
    }

    /// Predictions and targets of the test rows, for a regression.
    pub fn regression(&self) -> Option<(Table, &Table)> {
        let Some(Targets::Regression(targets)) = &self.targets else { return None };
        Some((self.test.outputs(), targets)).filter(|(outputs, _)| outputs.cols == targets.cols)
    }

    /// What a score is worth: the one that `pick` takes of each row.
    pub fn measured(&self, name: &str, pick: impl Fn(&Judged) -> Option<f32>) -> Result<ScoreReport> {
        scored(name, &self.test, &self.ood, pick).report(self.correct().as_deref())
    }

    /// Whether the decoder tells classes apart.
    pub fn classifies(&self) -> bool {
        self.model.model().is_ok_and(|model| model.shape().task == Some(Task::Classification))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::retrofit::{Norm, ViewConfig},
        data::Split,
        export::retrofit::{Calibration, artifact},
        learn::retrofit::Retrofitted,
        support::random::Random,
    };

    #[test]
    fn views_whose_columns_are_only_centred_are_of_inputs_as_they_are() {
        let mut random = Random::new(1, "subject");
        let labels: Vec<u32> = (0..120).map(|row| row % 2).collect();
        let rows: Vec<[f32; 6]> = labels
            .iter()
            .map(|&label| [(); 6].map(|()| 50.0 + 5.0 * label as f32 + 3.0 * random.normal() as f32))
            .collect();
        let train = Split {
            inputs: Table::from_rows(&rows).unwrap(),
            targets: Targets::Classes { labels, count: 2 },
        };
        // A view that leaves axes out centres its inputs, whatever their norm is.
        let view = |norm| ViewConfig { norm, rank: Some(3), ..ViewConfig::default() };
        let fitted =
            Retrofitted::fit(&[view(Norm::Raw), view(Norm::Raw), view(Norm::Columns)], &train, None, 0)
                .unwrap();
        let bytes = artifact(&fitted, Calibration::HeldOut(&train.inputs), Vec::new()).unwrap();
        let file = ModelFile::from_bytes(&bytes).unwrap();
        let model = file.model().unwrap();
        assert!(model.meta().normalized, "the base view centres its inputs");
        let told = views(&model);
        let kinds = ["inputs as they are", "inputs as they are", "columns standardised"];
        assert!(told.iter().zip(kinds).all(|(words, kind)| words.contains(kind)), "{told:?}");
    }
}
