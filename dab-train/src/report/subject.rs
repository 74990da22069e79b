//! What a report is about: a model, and rows as a device judges them.
//!
//! `model.dab` + rows → [`Subject`]. Every score on the page is dab-core's, bit for bit what a device says, whether the page
//! is made at the end of a training or by `dab report` years later.

use anyhow::{Context, Result};
use dab_core::{Assessment, Model, Task, Verdict, channels::Form};

use crate::{
    data::{Table, Targets},
    export::{model_file::ModelFile, names},
    measure::{
        baselines::logits,
        metrics::{ScoreReport, Scored, classification},
    },
    support::simd::Widest,
};

/// Latent means that are kept of a set, for the map: more hide each other.
const LATENT: usize = 1500;

/// One row as the device judges it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What p-value and verdict are of: U in a model with channels, else u.
    pub score: f32,
    /// u of the base view, nats.
    pub uncertainty: f32,
    /// Share of familiar inputs that are as strange; `None` without a calibration table.
    pub p_value: Option<f32>,
    /// The verdict at the model's rates.
    pub verdict: Option<Verdict>,
    /// The closest code, and how far it is in nats.
    pub nearest: (usize, f32),
    /// How undecided the decoder is between classes.
    pub ambiguity: Option<f32>,
    /// Share of familiar inputs that are as ambiguous; `None` without a table of them.
    pub ambiguity_p: Option<f32>,
    /// The view that is surprised most, where a model has several.
    pub view: Option<usize>,
    /// What the decoder gives: logits, or predictions.
    pub outputs: Vec<f32>,
}

impl Judged {
    fn new(assessment: &Assessment, outputs: Vec<f32>) -> Self {
        Self {
            score: assessment.score(),
            uncertainty: assessment.uncertainty,
            p_value: assessment.p_value,
            verdict: assessment.verdict,
            nearest: (assessment.nearest, assessment.nearest_distance),
            ambiguity: assessment.ambiguity,
            ambiguity_p: assessment.ambiguity_p,
            view: assessment.view,
            outputs,
        }
    }

    /// Whether the device calls it doubtful or unfamiliar.
    #[must_use]
    pub fn alarms(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict >= Verdict::Doubtful)
    }

    /// The likeliest class and the next, with their probabilities.
    #[must_use]
    pub fn classes(&self) -> Option<[(usize, f32); 2]> {
        let mut probabilities = self.outputs.clone();
        dab_core::layers::softmax(&mut probabilities);
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        let [first, second, ..] = *order else { return None };
        Some([first, second].map(|class| (class, probabilities[class])))
    }
}

/// A named set of rows.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// One entry per row.
    pub rows: Vec<Judged>,
    /// Latent means of some of the rows.
    pub latent: Table,
    /// Every how many rows one is in `latent`.
    pub stride: usize,
}

impl Set {
    fn new(name: &str, model: &Model<'_>, inputs: &Table) -> Result<Self> {
        let (wide, shape) = (Widest::detect(), model.shape());
        let stride = inputs.rows.div_ceil(LATENT).max(1);
        let mut scratch = vec![0.0; model.scratch_len()];
        let (mut rows, mut latent) = (Vec::with_capacity(inputs.rows), Vec::new());
        for (index, input) in inputs.iter().enumerate() {
            let mut outputs = vec![0.0; shape.outputs];
            let found = model.predict_on(wide, input, &mut outputs, &mut scratch);
            rows.push(Judged::new(&found.with_context(|| format!("{name}, row {}", index + 1))?, outputs));
            if index.is_multiple_of(stride) {
                latent.extend_from_slice(model.encode(input, &mut scratch)?.mean);
            }
        }
        let latent = Table::new(latent.len() / shape.dim, shape.dim, latent)?;
        let mut set = Self { name: name.to_owned(), rows, latent, stride };
        // A model without channels has logits all the same.
        let silent = set.rows.iter().any(|row| row.ambiguity.is_none());
        if silent && shape.task == Some(Task::Classification) && shape.outputs > 1 {
            let ambiguity = logits::ambiguity(&set.outputs());
            set.rows.iter_mut().zip(ambiguity).for_each(|(row, a)| row.ambiguity = Some(a));
        }
        Ok(set)
    }

    /// One number of each row that has it.
    pub fn each<T>(&self, pick: impl Fn(&Judged) -> Option<T>) -> Vec<T> {
        self.rows.iter().filter_map(pick).collect()
    }

    /// The decoder's outputs as a table.
    fn outputs(&self) -> Table {
        let cols = self.rows.first().map_or(0, |row| row.outputs.len());
        let values = self.rows.iter().flat_map(|row| row.outputs.iter().copied()).collect();
        Table { rows: self.rows.len(), cols, values }
    }
}

/// A model, and rows as it judges them.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The model.
    pub model: ModelFile,
    /// Fresh rows like the training data.
    pub test: Set,
    /// What they should give, where it is known.
    pub targets: Option<Targets>,
    /// Rows from elsewhere.
    pub ood: Vec<Set>,
    /// What the classes are called.
    pub classes: Vec<String>,
    /// What the views look at, where there are several.
    pub views: Vec<String>,
}

/// The views of a model in words, the base first; none where there is only one.
fn views(model: &Model<'_>) -> Vec<String> {
    let Some(meta) = model.channels_meta().filter(|meta| !meta.views.is_empty()) else { return Vec::new() };
    let views = meta.views.iter().map(|view| (view.l2, view.form));
    let words = |(index, (l2, form)): (usize, (bool, Form))| {
        let inputs = if l2 { "inputs of length 1" } else { "inputs as they are" };
        let score = match form {
            Form::Distance => "distance",
            Form::Joined => "energy, and distance where it surprises",
            Form::Sum => "energy and distance",
            Form::Energy => "energy",
        };
        format!("view {index} ({inputs}, {score})")
    };
    std::iter::once((meta.base.l2, meta.base.form)).chain(views).enumerate().map(words).collect()
}

impl Subject {
    /// Judges fresh rows and rows from elsewhere.
    ///
    /// # Errors
    /// When rows do not fit the model.
    pub fn new(
        model: ModelFile,
        test: &Table,
        targets: Option<Targets>,
        ood: &[(String, Table)],
    ) -> Result<Self> {
        let view = model.model()?;
        let outputs = view.shape().outputs;
        let named = names::find(&model.info, names::OUTPUTS, outputs);
        let classes = named.unwrap_or_else(|| (0..outputs).map(|class| class.to_string()).collect());
        let ood =
            ood.iter().map(|(name, inputs)| Set::new(name, &view, inputs)).collect::<Result<Vec<_>>>()?;
        let (test, views) = (Set::new("test", &view, test)?, views(&view));
        Ok(Self { model, test, targets, ood, classes, views })
    }

    /// Which test rows the decoder gets right, for a classifier with labels.
    #[must_use]
    pub fn correct(&self) -> Option<Vec<bool>> {
        let Some(Targets::Classes { labels, .. }) = &self.targets else { return None };
        Some(classification::correct(&self.test.outputs(), labels))
    }

    /// Predictions and targets of the test rows, for a regression.
    #[must_use]
    pub fn regression(&self) -> Option<(Table, &Table)> {
        let Some(Targets::Regression(targets)) = &self.targets else { return None };
        Some((self.test.outputs(), targets)).filter(|(outputs, _)| outputs.cols == targets.cols)
    }

    /// What a score is worth: the one that `pick` takes of each row.
    ///
    /// # Errors
    /// As [`Scored::report`].
    pub fn measured(&self, name: &str, pick: impl Fn(&Judged) -> Option<f32>) -> Result<ScoreReport> {
        let ood = self.ood.iter().map(|set| (set.name.clone(), set.each(&pick)));
        let scored = Scored { name: name.to_owned(), test: self.test.each(&pick), ood: ood.collect() };
        scored.report(self.correct().as_deref())
    }

    /// Whether the decoder tells classes apart.
    #[must_use]
    pub fn classifies(&self) -> bool {
        self.model.model().is_ok_and(|model| model.shape().task == Some(Task::Classification))
    }
}
