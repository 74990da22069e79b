//! Simple scores that a model must beat, on the same features.
//!
//! `Task` → [`on_features`] → one `Scored` per baseline → [`Scored::report`] → the table beside the model.
//!
//! ```text
//! of the logits of a tuned logistic regression (or of the user's own last layer): MSP, margin, entropy, energy, GEN
//! of logits and features: ViM
//! of features: Mahalanobis, relative Mahalanobis, k-NN (Euclidean, cosine), L2 norm
//! ```
//!
//! Baselines are fitted to training rows; held-out rows choose the penalty of the logistic regression. Every score grows
//! with strangeness.

pub mod ensemble;
pub mod knn;
pub mod logits;
pub mod mahalanobis;
pub mod vim;
pub mod without_bottleneck;

use anyhow::Result;

pub use logits::{energy, msp, on_logits};

use super::metrics::Scored;
use crate::{
    data::{Table, Targets, Task},
    learn::logistic::Logistic,
};

/// Inputs of more columns are not scored by a covariance: decomposing it would take minutes.
const MOST_COLUMNS: usize = 2048;
/// Neighbour counts of the k-NN baselines.
const NEIGHBOURS: [usize; 3] = [1, 10, 50];

/// Scores of all baselines that fit the task.
#[derive(Debug, Clone, PartialEq)]
pub struct Baselines {
    /// One entry per baseline.
    pub scored: Vec<Scored>,
    /// The softmax regression's logits on the test inputs, for classification.
    pub test_logits: Option<Table>,
}

/// Fits every baseline to the training inputs and scores test and OOD inputs.
///
/// Classification: all of this room (L2 norm negated: unknown inputs excite a network's features less). Regression:
/// Mahalanobis, k-NN, cosine k-NN, L2 norm.
pub fn on_features(task: &Task) -> Result<Baselines> {
    let train = &task.train.inputs;
    let mut scored = Vec::new();
    let mut test_logits = None;
    let narrow = train.cols <= MOST_COLUMNS;
    let fit = |labels| mahalanobis::Mahalanobis::fit(train, labels);
    let single = if narrow { Some(fit(None)?) } else { None };
    match (&task.train.targets, &task.held_out.targets) {
        (Targets::Classes { labels, count }, Targets::Classes { labels: held_labels, .. }) => {
            let fitted = Logistic::fit((train, labels), (&task.held_out.inputs, held_labels), *count)?;
            let logits_of = |inputs: &Table| logits::centred(&fitted.logits(inputs));
            let logits = all(task, logits_of);
            scored.extend(on_logits("", &logits.0, &logits.1));
            if train.cols <= vim::MOST_COLUMNS {
                let (weight, bias) = fitted.layer();
                let vim = vim::Vim::fit(train, &logits_of(train), &weight, &bias)?;
                let scores = all(task, |inputs| vim.scores(inputs, &logits_of(inputs)));
                scored.push(named("ViM", &scores, |s| saturated(s)));
            }
            test_logits = Some(logits.0);
            if let Some(single) = &single {
                let classes = fit(Some(labels))?;
                let distances = all(task, |inputs| (classes.distances(inputs), single.distances(inputs)));
                let nearest = |(near, _): &(Vec<f64>, Vec<f64>)| saturated(near);
                let relative = |(near, all): &(Vec<f64>, Vec<f64>)| {
                    saturated(&near.iter().zip(all).map(|(n, a)| n - a).collect::<Vec<_>>())
                };
                scored.push(named("Mahalanobis", &distances, nearest));
                scored.push(named("relative Mahalanobis", &distances, relative));
            }
        }
        _ => {
            if let Some(single) = &single {
                let distances = all(task, |inputs| single.distances(inputs));
                scored.push(named("Mahalanobis", &distances, |d| saturated(d)));
            }
        }
    }
    scored.extend(nearest(task, "", Table::clone)?);
    scored.extend(nearest(task, "cosine ", knn::unit_rows)?);
    let norms = all(task, l2_norms);
    if test_logits.is_some() {
        scored.push(named("−L2 norm", &norms, |n| n.iter().map(|x| -x).collect()));
    } else {
        scored.push(named("L2 norm", &norms, Clone::clone));
    }
    Ok(Baselines { scored, test_logits })
}

/// The k-NN scores of what `prepare` makes of the rows.
fn nearest(task: &Task, prefix: &str, prepare: impl Fn(&Table) -> Table) -> Result<Vec<Scored>> {
    let neighbours = knn::Neighbours::fit(&prepare(&task.train.inputs))?;
    let most = NEIGHBOURS.into_iter().max().unwrap_or(1);
    let distances = all(task, |inputs| neighbours.distances(&prepare(inputs), most));
    let kth = |k: usize| move |t: &Table| t.iter().map(|row| row[k.min(row.len()) - 1]).collect();
    Ok(NEIGHBOURS.map(|k| named(&format!("{prefix}{k}-NN"), &distances, kth(k))).to_vec())
}

/// Euclidean length of each row.
pub fn l2_norms(inputs: &Table) -> Vec<f32> {
    let length = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    saturated(&inputs.iter().map(length).collect::<Vec<_>>())
}

/// f32 with overflow held at the largest finite value: most strange, never invalid.
fn saturated(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32).collect()
}

type OnSets<T> = (T, Vec<(String, T)>);

fn all<T>(task: &Task, f: impl Fn(&Table) -> T) -> OnSets<T> {
    (f(&task.test.inputs), task.ood.iter().map(|(name, inputs)| (name.clone(), f(inputs))).collect())
}

fn named<T>(name: &str, sets: &OnSets<T>, score: impl Fn(&T) -> Vec<f32>) -> Scored {
    let ood = sets.1.iter().map(|(set, value)| (set.clone(), score(value))).collect();
    Scored { name: name.into(), test: score(&sets.0), ood }
}

#[cfg(test)]
#[path = "baselines_tests.rs"]
mod tests;
