//! What the model file itself says about held-out, test and OOD rows, computed as a device computes it, and what that is worth.
//!
//! `model.dab` + `Task` → [`Assessments`] → one `ScoreReport` per channel, false alarms; u, codes and outputs for all other
//! measures → metrics.json, scores.csv, the report.
//!
//! ```text
//! unfamiliarity U: finds strangers     ambiguity A: finds errors     uncertainty u (E6): the distance alone
//! ```

use anyhow::{Context, Result};
use dab_core::{Assessment, Model, Task as Kind, Verdict, artifact::AlignedBytes};

use super::{
    alarms::AlarmRate,
    baselines::logits,
    evaluate::TaskScores,
    metrics::{ScoreReport, Scored, classification},
};
use crate::{
    data::{Table, Task},
    export::device,
    model::snapshot::Scores,
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
    /// What the model says of it.
    pub said: Assessment,
    /// What the decoder gives: logits, or predictions.
    pub outputs: Vec<f32>,
}

impl Judged {
    /// Whether the device calls it doubtful or unfamiliar.
    pub fn alarms(&self) -> bool {
        self.said.verdict.is_some_and(|verdict| verdict >= Verdict::Doubtful)
    }

    /// The likeliest class and the next, with their probabilities.
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
    pub fn new(name: &str, model: &Model<'_>, inputs: &Table) -> Result<Self> {
        let (wide, shape) = (Widest::detect(), model.shape());
        let stride = inputs.rows.div_ceil(LATENT).max(1);
        let rows = device::each_row(model, inputs, |row, input, scratch| {
            let mut outputs = vec![0.0; shape.outputs];
            let found = model.predict_on(wide, input, &mut outputs, scratch);
            let said = found.with_context(|| format!("{name}, row {}", row + 1))?;
            let latent = match row.is_multiple_of(stride) {
                true => model.encode(input, scratch)?.mean.to_vec(),
                false => Vec::new(),
            };
            Ok((Judged { said, outputs }, latent))
        })?;
        let (rows, latent): (Vec<Judged>, Vec<Vec<f32>>) = rows.into_iter().unzip();
        let latent = latent.concat();
        let latent = Table::new(latent.len() / shape.dim, shape.dim, latent)?;
        let mut set = Self { name: name.to_owned(), rows, latent, stride };
        // A model without channels has logits all the same.
        let silent = set.rows.iter().any(|row| row.said.ambiguity.is_none());
        if silent && shape.task == Some(Kind::Classification) && shape.outputs > 1 {
            let ambiguity = logits::ambiguity(&set.outputs());
            set.rows.iter_mut().zip(ambiguity).for_each(|(row, a)| row.said.ambiguity = Some(a));
        }
        Ok(set)
    }

    /// One number of each row that has it.
    pub fn each<T>(&self, pick: impl Fn(&Judged) -> Option<T>) -> Vec<T> {
        self.rows.iter().filter_map(pick).collect()
    }

    /// The decoder's outputs as a table.
    pub fn outputs(&self) -> Table {
        let cols = self.rows.first().map_or(0, |row| row.outputs.len());
        let values = self.rows.iter().flat_map(|row| row.outputs.iter().copied()).collect();
        Table { rows: self.rows.len(), cols, values }
    }

    /// u, nearest code and outputs of every row.
    fn scores(&self) -> Scores {
        Scores {
            uncertainty: self.each(|row| Some(row.said.uncertainty)),
            code: self.each(|row| Some(row.said.nearest as u32)),
            outputs: self.outputs(),
            ..Scores::default()
        }
    }
}

/// What the model says about all sets of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessments {
    pub held_out: JudgedSet,
    pub test: JudgedSet,
    pub ood: Vec<JudgedSet>,
    pub channels: bool,
    /// False alarms among the test rows, at every rate of the model.
    pub alarms: Vec<AlarmRate>,
}

/// Assesses every held-out, test and OOD row of a task with the model file.
pub fn assess(model: &[u8], task: &Task) -> Result<Assessments> {
    let bytes = AlignedBytes::from(model);
    let model = bytes.model()?;
    let ood = task.ood.iter().map(|(name, inputs)| JudgedSet::new(name, &model, inputs));
    let test = JudgedSet::new("test", &model, &task.test.inputs)?;
    Ok(Assessments {
        held_out: JudgedSet::new("held-out", &model, &task.held_out.inputs)?,
        ood: ood.collect::<Result<_>>()?,
        channels: model.channels_meta().is_some(),
        alarms: alarms(&model, &test),
        test,
    })
}

/// False alarms among test rows, at every rate of the model; none without a calibration table.
pub fn alarms(model: &Model<'_>, test: &JudgedSet) -> Vec<AlarmRate> {
    let Some(table) = model.calibration() else { return Vec::new() };
    let judged = if model.channels_meta().is_some() { UNFAMILIARITY } else { UNCERTAINTY };
    let p_values = test.each(|row| row.said.p_value);
    let rates = [("doubtful", model.rates().doubtful()), ("unfamiliar", model.rates().unfamiliar())];
    let ambiguity = model.ambiguity_calibration();
    let together = rates.len() + usize::from(ambiguity.is_some());
    let alarm = |(verdict, rate)| {
        AlarmRate::new((judged, verdict), rate, &p_values, table.held_out as usize, together)
    };
    let mut alarms = rates.map(alarm).to_vec();
    alarms.extend(ambiguity.map(|(table, rate)| {
        let p_values = test.each(|row| row.said.ambiguity_p);
        AlarmRate::new((AMBIGUITY, "ambiguous"), rate, &p_values, table.held_out as usize, together)
    }));
    alarms
}

/// One score of test rows and of rows from elsewhere: the one that `pick` takes of each.
pub fn scored(
    name: &str,
    test: &JudgedSet,
    ood: &[JudgedSet],
    pick: impl Fn(&Judged) -> Option<f32>,
) -> Scored {
    let ood = ood.iter().map(|set| (set.name.clone(), set.each(&pick))).collect();
    Scored { name: name.to_owned(), test: test.each(&pick), ood }
}

impl Assessments {
    /// u, nearest codes and outputs of all sets.
    pub fn scores(&self) -> TaskScores {
        let ood = self.ood.iter().map(|set| (set.name.clone(), set.scores()));
        TaskScores { held_out: self.held_out.scores(), test: self.test.scores(), ood: ood.collect() }
    }

    /// What each channel finds: strangers in the OOD sets, and errors of the decoder among the test rows. The first is of the
    /// score that the verdict judges.
    pub fn reports(&self, task: &Task) -> Result<Vec<ScoreReport>> {
        let column = |name, of: fn(&Judged) -> Option<f32>| scored(name, &self.test, &self.ood, of);
        let mut channels = Vec::new();
        if self.channels {
            channels.push(column(UNFAMILIARITY, |row| Some(row.said.score())));
        }
        channels.push(column(UNCERTAINTY, |row| Some(row.said.uncertainty)));
        let correct = classification::correct_of(&self.test.outputs(), &task.test.targets);
        channels.extend(correct.as_ref().map(|_| column(AMBIGUITY, |row| row.said.ambiguity)));
        channels.iter().map(|channel| channel.report(correct.as_deref())).collect()
    }
}
