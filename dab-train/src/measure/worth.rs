//! Whether a model predicts anything: better than always saying the commonest class, or the mean.

use super::evaluate::Evaluation;
use crate::data::{Targets, Task};

/// Standard deviations that an accuracy must be above that of the commonest class.
const CLEARLY: f64 = 2.0;

/// A warning when the decoder does not beat what knows no inputs.
#[must_use]
pub fn useless(task: &Task, evaluation: &Evaluation) -> Option<String> {
    match (&task.train.targets, &task.test.targets) {
        (Targets::Classes { labels: train, count }, Targets::Classes { labels: test, .. }) => {
            let accuracy = evaluation.classification.as_ref()?.accuracy;
            let mut counts = vec![0_usize; *count];
            train.iter().for_each(|&label| counts[label as usize] += 1);
            let common = counts.iter().enumerate().max_by_key(|(_, n)| **n)?.0;
            let rows = test.len() as f64;
            let chance = test.iter().filter(|&&label| label as usize == common).count() as f64 / rows;
            let noise = CLEARLY * (chance * (1.0 - chance) / rows).sqrt();
            (accuracy <= chance + noise).then(|| {
                format!(
                    "the model predicts nothing: its accuracy is {accuracy:.3} on test rows, and always saying the commonest \
                     class gives {chance:.3}; are the labels those of the rows?"
                )
            })
        }
        (Targets::Regression(train), Targets::Regression(test)) => {
            let rmse = evaluation.regression.as_ref()?.rmse;
            let means: Vec<f64> = train.column_stats().iter().map(|column| column.mean).collect();
            let square =
                |row: &[f32]| row.iter().zip(&means).map(|(&y, m)| (f64::from(y) - m).powi(2)).sum::<f64>();
            let trivial = (test.iter().map(square).sum::<f64>() / test.values.len().max(1) as f64).sqrt();
            (rmse >= trivial).then(|| {
                format!(
                    "the model predicts nothing: its error (RMSE) is {rmse:.4} on test rows, and always saying the mean gives \
                     {trivial:.4}; are the targets those of the rows?"
                )
            })
        }
        _ => None,
    }
}
