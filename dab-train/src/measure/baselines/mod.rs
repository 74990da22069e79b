//! Simple scores that a model must beat, on the same features.
//!
//! `Task` → [`on_features`] → one `Scored` per baseline → [`Scored::report`] → the table beside the model.
//!
//! ```text
//! MSP 1 − max p     energy −ln Σ exp(logit)     Mahalanobis, relative     k-NN distance     L2 norm
//! ```
//!
//! Every score grows with strangeness. 1 − max p is summed from the other probabilities in f64: taken
//! as a difference it saturates at 0 for thousands of inputs and ties.

pub mod ensemble;
pub mod knn;
pub mod mahalanobis;
pub mod without_bottleneck;

use anyhow::Result;

use super::metrics::{Scored, classification};
use crate::{
    data::{Table, Targets, Task},
    learn::logistic::Logistic,
};

/// Neighbour counts of the k-NN baselines.
const NEIGHBOURS: [usize; 2] = [1, 10];

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
/// Classification: MSP, energy, Mahalanobis, relative Mahalanobis, 1-NN, 10-NN, L2 norm (negated:
/// unknown inputs excite a network's features less). Regression: Mahalanobis, 1-NN, 10-NN, L2 norm.
///
/// # Errors
/// Training data that a baseline cannot be fitted to.
pub fn on_features(task: &Task) -> Result<Baselines> {
    let train = &task.train.inputs;
    let mut scored = Vec::new();
    let mut test_logits = None;
    let neighbours = knn::Neighbours::fit(train)?;
    let k_most = NEIGHBOURS.into_iter().max().unwrap_or(1);
    let single = mahalanobis::Mahalanobis::fit(train, None)?;
    match (&task.train.targets, &task.held_out.targets) {
        (Targets::Classes { labels, count }, Targets::Classes { labels: held_labels, .. }) => {
            let fitted = Logistic::fit((train, labels), (&task.held_out.inputs, held_labels), *count)?;
            let logits = all(task, |inputs| Ok(fitted.logits(inputs)))?;
            scored.extend(on_logits("", &logits.0, &logits.1));
            test_logits = Some(logits.0);
            let classes = mahalanobis::Mahalanobis::fit(train, Some(labels))?;
            let distances = all(task, |inputs| Ok((classes.distances(inputs), single.distances(inputs))))?;
            let nearest = |(near, _): &(Vec<f64>, Vec<f64>)| saturated(near);
            let relative = |(near, all): &(Vec<f64>, Vec<f64>)| {
                saturated(&near.iter().zip(all).map(|(n, a)| n - a).collect::<Vec<_>>())
            };
            scored.push(named("Mahalanobis", &distances, nearest));
            scored.push(named("relative Mahalanobis", &distances, relative));
        }
        _ => {
            let distances = all(task, |inputs| Ok(single.distances(inputs)))?;
            scored.push(named("Mahalanobis", &distances, |d| saturated(d)));
        }
    }
    let distances = all(task, |inputs| Ok(neighbours.distances(inputs, k_most)))?;
    for k in NEIGHBOURS {
        scored.push(named(&format!("{k}-NN"), &distances, |t| kth(t, k)));
    }
    let norms = all(task, |inputs| Ok(l2_norms(inputs)))?;
    if test_logits.is_some() {
        scored.push(named("−L2 norm", &norms, |n| n.iter().map(|x| -x).collect()));
    } else {
        scored.push(named("L2 norm", &norms, Clone::clone));
    }
    Ok(Baselines { scored, test_logits })
}

/// MSP and energy of given logits; `suffix` tells whose logits they are, as in `" (backbone)"`.
#[must_use]
pub fn on_logits(suffix: &str, test: &Table, ood: &[(String, Table)]) -> Vec<Scored> {
    let scored = |name: &str, score: fn(&Table) -> Vec<f32>| Scored {
        name: format!("{name}{suffix}"),
        test: score(test),
        ood: ood.iter().map(|(set, logits)| (set.clone(), score(logits))).collect(),
    };
    vec![scored("MSP", msp), scored("energy", energy)]
}

/// 1 − the largest softmax probability, per row of logits.
#[must_use]
pub fn msp(logits: &Table) -> Vec<f32> {
    let best = classification::predictions(logits);
    let rest = |(row, &best): (&[f32], &u32)| {
        let top = row[best as usize];
        let powers = |skip| {
            let kept = row.iter().enumerate().filter(move |&(j, _)| Some(j) != skip);
            kept.map(|(_, &x)| f64::from(x - top).exp()).sum::<f64>()
        };
        (powers(Some(best as usize)) / powers(None)) as f32
    };
    logits.iter().zip(&best).map(rest).collect()
}

/// −ln Σ exp(logit), per row.
#[must_use]
pub fn energy(logits: &Table) -> Vec<f32> {
    let row_energy = |row: &[f32]| {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|&x| f64::from(x - top).exp()).sum();
        (-(f64::from(top) + sum.ln())) as f32
    };
    logits.iter().map(row_energy).collect()
}

/// Euclidean length of each row.
#[must_use]
pub fn l2_norms(inputs: &Table) -> Vec<f32> {
    let length = |row: &[f32]| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    saturated(&inputs.iter().map(length).collect::<Vec<_>>())
}

fn kth(distances: &Table, k: usize) -> Vec<f32> {
    distances.iter().map(|row| row[k.min(row.len()) - 1]).collect()
}

/// f32 with overflow held at the largest finite value: most strange, never invalid.
fn saturated(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32).collect()
}

type OnSets<T> = (T, Vec<(String, T)>);

fn all<T>(task: &Task, f: impl Fn(&Table) -> Result<T>) -> Result<OnSets<T>> {
    let ood = task.ood.iter().map(|(name, inputs)| Ok((name.clone(), f(inputs)?))).collect::<Result<_>>()?;
    Ok((f(&task.test.inputs)?, ood))
}

fn named<T>(name: &str, sets: &OnSets<T>, score: impl Fn(&T) -> Vec<f32>) -> Scored {
    let ood = sets.1.iter().map(|(set, value)| (set.clone(), score(value))).collect();
    Scored { name: name.into(), test: score(&sets.0), ood }
}

#[cfg(test)]
#[path = "baselines_tests.rs"]
mod tests;
