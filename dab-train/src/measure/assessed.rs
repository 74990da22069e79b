//! What the model file itself says about test and OOD rows, computed as a device computes it, and what that is worth.
//!
//! `model.dab` + `Task` → [`Assessments`] → one `ScoreReport` per channel, false alarms → metrics.json, the report.
//!
//! ```text
//! unfamiliarity U: finds strangers     ambiguity A: finds errors     uncertainty u (E6): the distance alone
//! ```

use anyhow::{Context, Result};
use dab_core::artifact::AlignedBytes;

use super::{
    alarms::AlarmRate,
    baselines::logits,
    evaluate::TaskScores,
    metrics::{ScoreReport, Scored, classification},
};
use crate::{
    data::{Table, Targets, Task},
    support::simd::Widest,
};

/// Name of E6's distance in metrics.json.
pub const UNCERTAINTY: &str = "uncertainty";
/// Name of U in metrics.json.
pub const UNFAMILIARITY: &str = "unfamiliarity";
/// Name of A in metrics.json.
pub const AMBIGUITY: &str = "ambiguity";

/// What the model says about each row of one set; a list is empty where the model has no such number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessed {
    /// u of E6, nats.
    pub uncertainty: Vec<f32>,
    /// U of all views together.
    pub unfamiliarity: Vec<f32>,
    /// p-values of the score that is judged: U, or u without channels.
    pub p_value: Vec<f32>,
    /// A.
    pub ambiguity: Vec<f32>,
    /// Its p-values.
    pub ambiguity_p: Vec<f32>,
    /// The likeliest class.
    pub class: Vec<usize>,
    /// The second likeliest.
    pub runner_up: Vec<usize>,
    /// The view that is surprised most, the base being 0.
    pub alarmed_view: Vec<usize>,
}

/// What the model says about all sets of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessments {
    /// Of the held-out rows.
    pub held_out: Assessed,
    /// Of the test rows.
    pub test: Assessed,
    /// Of each OOD set, by name.
    pub ood: Vec<(String, Assessed)>,
    /// Rows behind the calibration table; 0 without one.
    pub calibrated: usize,
    /// The rates of `doubtful` and `unfamiliar`, where there is a table.
    pub rates: Option<[f32; 2]>,
    /// The rate of `ambiguous`, where there is a table of ambiguities.
    pub ambiguity_rate: Option<f32>,
}

/// Assesses every row of a task with the model file.
///
/// # Errors
/// When the bytes are no model, or a row is not an input of it.
pub fn assess(model: &[u8], task: &Task) -> Result<Assessments> {
    let bytes = AlignedBytes::from(model);
    let model = bytes.model()?;
    let mut scratch = vec![0.0; model.scratch_len()];
    let wide = Widest::detect();
    let mut rows = |name: &str, inputs: &Table| -> Result<Assessed> {
        let mut assessed = Assessed::default();
        for row in inputs.iter() {
            let found =
                model.assess_on(wide, row, &mut scratch).with_context(|| format!("the {name} rows"))?;
            assessed.uncertainty.push(found.uncertainty);
            assessed.p_value.extend(found.p_value);
            assessed.unfamiliarity.extend(found.unfamiliarity);
            assessed.ambiguity.extend(found.ambiguity);
            assessed.ambiguity_p.extend(found.ambiguity_p);
            assessed.class.extend(found.class);
            assessed.runner_up.extend(found.runner_up);
            assessed.alarmed_view.extend(found.view);
        }
        Ok(assessed)
    };
    let mut assessments = Assessments {
        held_out: rows("held-out", &task.held_out.inputs)?,
        test: rows("test", &task.test.inputs)?,
        ..Assessments::default()
    };
    for (name, inputs) in &task.ood {
        assessments.ood.push((name.clone(), rows(name, inputs)?));
    }
    if let Some(table) = model.calibration() {
        assessments.calibrated = table.held_out as usize;
        assessments.rates = Some([model.rates().doubtful(), model.rates().unfamiliar()]);
    }
    assessments.ambiguity_rate = model.ambiguity_calibration().map(|(_, rate)| rate);
    Ok(assessments)
}

impl Assessments {
    /// What each channel finds: strangers in the OOD sets, and errors of the decoder among the test rows.
    ///
    /// # Errors
    /// A score that is not finite, or sets that do not belong together.
    pub fn reports(&self, task: &Task, scores: &TaskScores) -> Result<Vec<ScoreReport>> {
        let column = |name: &str, of: fn(&Assessed) -> &Vec<f32>| Scored {
            name: name.to_owned(),
            test: of(&self.test).clone(),
            ood: self.ood.iter().map(|(set, rows)| (set.clone(), of(rows).clone())).collect(),
        };
        let mut channels = Vec::new();
        if !self.test.unfamiliarity.is_empty() {
            channels.push(column(UNFAMILIARITY, |rows| &rows.unfamiliarity));
        }
        channels.push(column(UNCERTAINTY, |rows| &rows.uncertainty));
        let mut correct = None;
        if let Targets::Classes { labels, .. } = &task.test.targets {
            correct = Some(classification::correct(&scores.test.outputs, labels));
            let ood = scores.ood.iter();
            channels.push(Scored {
                name: AMBIGUITY.to_owned(),
                test: logits::ambiguity(&scores.test.outputs),
                ood: ood.map(|(set, rows)| (set.clone(), logits::ambiguity(&rows.outputs))).collect(),
            });
        }
        channels.iter().map(|channel| channel.report(correct.as_deref())).collect()
    }

    /// False alarms among the test rows, at every rate of the model.
    #[must_use]
    pub fn alarms(&self) -> Vec<AlarmRate> {
        let Some([doubtful, unfamiliar]) = self.rates else { return Vec::new() };
        let judged = if self.test.unfamiliarity.is_empty() { UNCERTAINTY } else { UNFAMILIARITY };
        let mut alarms = [("doubtful", doubtful), ("unfamiliar", unfamiliar)]
            .map(|(verdict, rate)| AlarmRate::new(judged, verdict, rate, &self.test.p_value, self.calibrated))
            .to_vec();
        alarms.extend(self.ambiguity_rate.map(|rate| {
            AlarmRate::new(AMBIGUITY, "ambiguous", rate, &self.test.ambiguity_p, self.calibrated)
        }));
        alarms
    }
}
