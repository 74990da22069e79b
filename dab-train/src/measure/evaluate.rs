//! What a model is worth on its task.
//!
//! `TaskScores` of the model file + `Task` → [`evaluate`] → `Evaluation`: detection of each OOD set and of errors, accuracy or RMSE, and for
//! regression the interval that u gives.
//!
//! ```text
//! interval  ŷ ± 2 s u(x) = ŷ ± w u(x),   w as the model file has it, one for each target
//! ```
//!
//! u is in nats and y is not: a band ŷ ± 2u has no unit. s turns nats into a target's unit. `export::band` chose it with held-out
//! rows; here it is read from the file, and test rows say what the band is worth.

use anyhow::Result;
use dab_core::band::half_width;
use serde::Serialize;

use super::{
    alarms::AlarmRate,
    metrics::{Classification, Regression, ScoreReport, Scored, classification, regression},
};
use crate::{
    data::{Table, Targets, Task},
    model::snapshot::Scores,
};

/// Half-width of an interval in scaled uncertainties.
pub const INTERVAL_FACTOR: f32 = 2.0;

/// A regression's band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// s of each target: its unit per nat.
    pub scales: Vec<f64>,
    /// Share of test targets inside ŷ ± 2 s u, of all targets together.
    pub coverage: f64,
    /// The same of each target, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coverages: Vec<f64>,
    /// Share of held-out targets inside it: what s was chosen for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<f64>,
    /// Where the noise-free function is known: its share inside ŷ ± 2 s u over test and OOD inputs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<f64>,
}

/// Measures of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// Detection of OOD sets and of errors by u; of a model file, by the score that its verdicts judge.
    pub report: ScoreReport,
    /// The same of every channel of the model file, by name; the corridor fills it in.
    pub scores: Vec<ScoreReport>,
    /// False alarms among the test rows; the corridor fills it in.
    pub alarms: Vec<AlarmRate>,
    /// Classification: accuracy, likelihood, calibration of the decoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
    /// Regression: errors in the task's target unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regression: Option<Regression>,
    /// Regression: the band.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Priors π of the codes.
    pub usage: Vec<f32>,
    /// Median u of the test inputs, nats.
    pub median_uncertainty: f32,
    /// Mean u of each OOD set ÷ mean u of the test inputs.
    pub ratios: Vec<(String, f64)>,
}

/// All scores of a task.
#[derive(Clone, Debug)]
pub struct TaskScores {
    /// Of the held-out split.
    pub held_out: Scores,
    /// Of the test split.
    pub test: Scores,
    /// Of each OOD set, by name.
    pub ood: Vec<(String, Scores)>,
}

impl TaskScores {
    /// What `score` gives for every split of a task.
    ///
    /// # Errors
    /// The first of `score`.
    pub fn of<E>(task: &Task, score: impl Fn(&Table) -> Result<Scores, E>) -> Result<Self, E> {
        Ok(Self {
            held_out: score(&task.held_out.inputs)?,
            test: score(&task.test.inputs)?,
            ood: task.each_ood(score)?,
        })
    }
}

/// The middle value, or the mean of the middle two; 0 of nothing.
pub fn median(values: &[f32]) -> f32 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f32::total_cmp);
    let middle = sorted.len() / 2;
    let below = middle.saturating_sub(1 - sorted.len() % 2);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
    f32::midpoint(at(below), at(middle))
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len().max(1) as f64
}

/// Share of the noise-free function `truth` inside ŷ ± w u, over test and OOD inputs together.
pub fn truth_coverage(task: &Task, scores: &TaskScores, width: f32, truth: impl Fn(&[f32]) -> f32) -> f64 {
    let ood = task.ood.iter().zip(&scores.ood).map(|((_, inputs), (_, scores))| (inputs, scores));
    let (mut inside, mut total) = (0, 0);
    for (inputs, scores) in std::iter::once((&task.test.inputs, &scores.test)).chain(ood) {
        total += inputs.rows;
        let covered = |&row: &usize| {
            let half = half_width(width, scores.uncertainty[row]);
            (scores.outputs.row(row)[0] - truth(inputs.row(row))).abs() <= half
        };
        inside += (0..inputs.rows).filter(covered).count();
    }
    f64::from(inside as u32) / total.max(1) as f64
}

/// The first column of decoder outputs: the predictions of a one-target regression.
fn predictions(scores: &Scores, targets: usize) -> Table {
    let values = scores.outputs.iter().flat_map(|row| row[..targets].iter().copied()).collect();
    Table { rows: scores.outputs.rows, cols: targets, values }
}

/// Share of targets inside ŷ ± w u: of each target.
fn inside(scores: &Scores, targets: &Table, widths: &[f32]) -> Vec<f64> {
    let predicted = predictions(scores, targets.cols);
    let column = |table: &Table, target: usize| table.iter().map(|row| row[target]).collect::<Vec<f32>>();
    let share = |(target, &width): (usize, &f32)| {
        let half: Vec<f32> = scores.uncertainty.iter().map(|&u| half_width(width, u)).collect();
        regression::coverage(&column(&predicted, target), &half, &column(targets, target))
    };
    widths.iter().enumerate().map(share).collect()
}

/// What bands of these widths hold. Every target has as many rows, so the share of all is the mean of theirs.
fn interval(scores: &TaskScores, widths: &[f32], targets: &Table, held_out: &Table) -> Interval {
    let all = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let test = inside(&scores.test, targets, widths);
    Interval {
        scales: widths.iter().map(|&width| f64::from(width) / f64::from(INTERVAL_FACTOR)).collect(),
        coverage: all(&test),
        coverages: if test.len() > 1 { test } else { Vec::new() },
        held_out: Some(all(&inside(&scores.held_out, held_out, widths))),
        truth: None,
    }
}

/// Measures scores: `usage` are the priors of the codes, `noise` the variance of each prediction where one is known, `widths`
/// those of the bands in the model's file, if it has any.
pub fn evaluate(
    usage: &[f32],
    noise: Option<&Table>,
    widths: Option<&[f32]>,
    task: &Task,
    scores: &TaskScores,
) -> Result<Evaluation> {
    let scored = Scored {
        name: "DAB".to_owned(),
        test: scores.test.uncertainty.clone(),
        ood: scores.ood.iter().map(|(name, scores)| (name.clone(), scores.uncertainty.clone())).collect(),
    };
    let correct = classification::correct_of(&scores.test.outputs, &task.test.targets);
    let mut evaluation = Evaluation {
        report: scored.report(correct.as_deref())?,
        scores: Vec::new(),
        alarms: Vec::new(),
        classification: None,
        regression: None,
        interval: None,
        usage: usage.to_vec(),
        median_uncertainty: median(&scores.test.uncertainty),
        ratios: scores
            .ood
            .iter()
            .map(|(name, ood)| (name.clone(), mean(&ood.uncertainty) / mean(&scores.test.uncertainty)))
            .collect(),
    };
    match &task.test.targets {
        Targets::Classes { labels, .. } => {
            let probabilities = classification::softmax(&scores.test.outputs);
            evaluation.classification = Some(Classification::new(&probabilities, labels)?);
        }
        Targets::Regression(targets) => {
            let predicted = predictions(&scores.test, targets.cols);
            evaluation.regression = Some(Regression::new(&predicted, targets, noise)?);
            if let (Some(widths), Targets::Regression(held_out)) = (widths, &task.held_out.targets) {
                evaluation.interval = Some(interval(scores, widths, targets, held_out));
            }
        }
    }
    Ok(evaluation)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn an_even_number_of_values_has_two_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[8.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!((median(&[7.0]), median(&[])), (7.0, 0.0));
    }
}
