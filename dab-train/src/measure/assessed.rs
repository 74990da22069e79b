//! What the model file itself says about test and OOD rows, computed as a device computes it, and what that is worth.
//!
//! `model.dab` + `Task` → [`Assessments`] → one `ScoreReport` per channel, false alarms → metrics.json, the report.
//!
//! ```text
//! unfamiliarity U: finds strangers     ambiguity A: finds errors     uncertainty u (E6): the distance alone
//! ```

use anyhow::{Context, Result};
use dab_core::{Assessment, Model, Task as Kind, Verdict, artifact::AlignedBytes};

use super::{
    alarms::AlarmRate,
    baselines::logits,
    metrics::{ScoreReport, Scored, classification},
};
use crate::{
    data::{Table, Targets, Task},
    export::device,
    support::simd::Widest,
};

/// Name of E6's distance in metrics.json.
pub const UNCERTAINTY: &str = "uncertainty";
/// Name of U in metrics.json.
pub const UNFAMILIARITY: &str = "unfamiliarity";
/// Name of A in metrics.json.
pub const AMBIGUITY: &str = "ambiguity";

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

/// A named set of rows as the device judges them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedSet {
    /// Its name.
    pub name: String,
    /// One entry per row.
    pub rows: Vec<Judged>,
    /// Latent means of some of the rows.
    pub latent: Table,
    /// Every how many rows one is in `latent`.
    pub stride: usize,
}

impl JudgedSet {
    /// Judges every row.
    ///
    /// # Errors
    /// When a row is not an input of the model.
    pub fn new(name: &str, model: &Model<'_>, inputs: &Table) -> Result<Self> {
        let (wide, shape) = (Widest::detect(), model.shape());
        let stride = inputs.rows.div_ceil(LATENT).max(1);
        let judged = device::each_row(model, inputs, |row, input, scratch| {
            let mut outputs = vec![0.0; shape.outputs];
            let found = model.predict_on(wide, input, &mut outputs, scratch);
            let judged = Judged::new(&found.with_context(|| format!("{name}, row {}", row + 1))?, outputs);
            let latent = match row.is_multiple_of(stride) {
                true => model.encode(input, scratch)?.mean.to_vec(),
                false => Vec::new(),
            };
            Ok((judged, latent))
        })?;
        let (rows, latent): (Vec<Judged>, Vec<Vec<f32>>) = judged.into_iter().unzip();
        let latent = latent.concat();
        let latent = Table::new(latent.len() / shape.dim, shape.dim, latent)?;
        let mut set = Self { name: name.to_owned(), rows, latent, stride };
        // A model without channels has logits all the same.
        let silent = set.rows.iter().any(|row| row.ambiguity.is_none());
        if silent && shape.task == Some(Kind::Classification) && shape.outputs > 1 {
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
    #[must_use]
    pub fn outputs(&self) -> Table {
        let cols = self.rows.first().map_or(0, |row| row.outputs.len());
        let values = self.rows.iter().flat_map(|row| row.outputs.iter().copied()).collect();
        Table { rows: self.rows.len(), cols, values }
    }
}

/// What the model says about all sets of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessments {
    /// The held-out rows.
    pub held_out: JudgedSet,
    /// Of the test rows.
    pub test: JudgedSet,
    /// Of each OOD set.
    pub ood: Vec<JudgedSet>,
    /// Whether the model has channels.
    pub channels: bool,
    /// Rows behind the calibration table; 0 without one.
    calibrated: usize,
    /// The rates of `doubtful` and `unfamiliar`, where there is a table.
    rates: Option<[f32; 2]>,
    /// The rate of `ambiguous`, where there is a table of ambiguities.
    ambiguity_rate: Option<f32>,
}

/// Assesses every held-out, test and OOD row of a task with the model file.
///
/// # Errors
/// When the bytes are no model, or a row is not an input of it.
pub fn assess(model: &[u8], task: &Task) -> Result<Assessments> {
    let bytes = AlignedBytes::from(model);
    let model = bytes.model()?;
    let ood = task.ood.iter().map(|(name, inputs)| JudgedSet::new(name, &model, inputs));
    Ok(Assessments {
        held_out: JudgedSet::new("held-out", &model, &task.held_out.inputs)?,
        test: JudgedSet::new("test", &model, &task.test.inputs)?,
        ood: ood.collect::<Result<_>>()?,
        channels: model.channels_meta().is_some(),
        calibrated: model.calibration().map_or(0, |table| table.held_out as usize),
        rates: model.calibration().map(|_| [model.rates().doubtful(), model.rates().unfamiliar()]),
        ambiguity_rate: model.ambiguity_calibration().map(|(_, rate)| rate),
    })
}

impl Assessments {
    /// What each channel finds: strangers in the OOD sets, and errors of the decoder among the test rows. The first is of the
    /// score that the verdict judges.
    ///
    /// # Errors
    /// A score that is not finite, or sets that do not belong together.
    pub fn reports(&self, task: &Task) -> Result<Vec<ScoreReport>> {
        let column = |name: &str, of: fn(&Judged) -> Option<f32>| Scored {
            name: name.to_owned(),
            test: self.test.each(of),
            ood: self.ood.iter().map(|set| (set.name.clone(), set.each(of))).collect(),
        };
        let mut channels = Vec::new();
        if self.channels {
            channels.push(column(UNFAMILIARITY, |row| Some(row.score)));
        }
        channels.push(column(UNCERTAINTY, |row| Some(row.uncertainty)));
        let mut correct = None;
        if let Targets::Classes { labels, .. } = &task.test.targets {
            correct = Some(classification::correct(&self.test.outputs(), labels));
            channels.push(column(AMBIGUITY, |row| row.ambiguity));
        }
        channels.iter().map(|channel| channel.report(correct.as_deref())).collect()
    }

    /// False alarms among the test rows, at every rate of the model.
    #[must_use]
    pub fn alarms(&self) -> Vec<AlarmRate> {
        let Some([doubtful, unfamiliar]) = self.rates else { return Vec::new() };
        let judged = if self.channels { UNFAMILIARITY } else { UNCERTAINTY };
        let p_values = self.test.each(|row| row.p_value);
        let mut alarms = [("doubtful", doubtful), ("unfamiliar", unfamiliar)]
            .map(|(verdict, rate)| AlarmRate::new(judged, verdict, rate, &p_values, self.calibrated))
            .to_vec();
        alarms.extend(self.ambiguity_rate.map(|rate| {
            let p_values = self.test.each(|row| row.ambiguity_p);
            AlarmRate::new(AMBIGUITY, "ambiguous", rate, &p_values, self.calibrated)
        }));
        alarms
    }
}
