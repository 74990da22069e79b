//! Whether a model predicts anything: better than always saying the commonest class, or the mean.

use super::evaluate::Evaluation;
use crate::{
    data::{Targets, Task, count_labels},
    model::snapshot::Scores,
};

/// Standard deviations that an accuracy must be above that of the commonest class, and squared errors below those of the mean.
const CLEARLY: f64 = 2.0;

/// A warning when the decoder does not beat what knows no inputs.
pub fn useless(task: &Task, evaluation: &Evaluation, scores: &Scores) -> Option<String> {
    match (&task.train.targets, &task.test.targets) {
        (Targets::Classes { labels: train, count }, Targets::Classes { labels: test, .. }) => {
            let accuracy = evaluation.classification.as_ref()?.accuracy;
            let counts = count_labels(train, *count);
            let common = counts.iter().enumerate().max_by_key(|(_, n)| **n)?.0;
            let rows = test.len() as f64;
            let chance = test.iter().filter(|&&label| label as usize == common).count() as f64 / rows;
            let noise = CLEARLY * (chance * (1.0 - chance) / rows).sqrt();
            (accuracy <= chance + noise).then(|| {
                format!(
                    "THE MODEL PREDICTS NOTHING: its accuracy is {accuracy:.3} on test rows, and always saying the commonest \
                     class gives {chance:.3}; are the labels those of the rows?"
                )
            })
        }
        (Targets::Regression(train), Targets::Regression(test)) => {
            let rmse = evaluation.regression.as_ref()?.rmse;
            let means: Vec<f32> = train.column_stats().iter().map(|column| column.mean as f32).collect();
            let square = |given: &[f32], wanted: &[f32]| {
                given.iter().zip(wanted).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()
            };
            let trivial: Vec<f64> = test.iter().map(|wanted| square(&means, wanted)).collect();
            let gains: Vec<f64> = (trivial.iter().zip(test.iter()).enumerate())
                .map(|(row, (trivial, wanted))| trivial - square(scores.outputs.row(row), wanted))
                .collect();
            let rows = gains.len().max(1) as f64;
            let gain = gains.iter().sum::<f64>() / rows;
            let noise = CLEARLY * gains.iter().map(|g| (g - gain).powi(2)).sum::<f64>().sqrt() / rows;
            let trivial = (trivial.iter().sum::<f64>() / test.values.len().max(1) as f64).sqrt();
            (gain <= noise).then(|| {
                format!(
                    "THE MODEL PREDICTS NOTHING: its error (RMSE) is {rmse:.4} on test rows, and always saying the mean gives \
                     {trivial:.4}; are the targets those of the rows?"
                )
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{Split, Table},
        measure::evaluate::{TaskScores, evaluate_scores},
        support::random::Random,
    };

    fn column(random: &mut Random) -> Table {
        Table::column((0..200).map(|_| 5.0 + random.normal() as f32).collect())
    }

    fn warned(known: Targets, wanted: Targets, outputs: Table) -> Option<String> {
        let inputs = Table::column(vec![0.0; 200]);
        let split = |targets| Split { inputs: inputs.clone(), targets };
        let (train, held_out, test) = (split(known), split(wanted.clone()), split(wanted));
        let task = Task { name: "worth".into(), train, held_out, test, ood: Vec::new() };
        let scores = Scores {
            uncertainty: (0..200).map(|row| 1.0 + row as f32).collect(),
            outputs,
            ..Scores::default()
        };
        let all = TaskScores { held_out: scores.clone(), test: scores, ood: Vec::new() };
        useless(&task, &evaluate_scores(&[1.0], None, &task, &all).unwrap(), &all.test)
    }

    #[test]
    fn numbers_that_the_inputs_say_nothing_about_are_announced() {
        let mut random = Random::new(2, "worth");
        let (known, wanted, other) = (column(&mut random), column(&mut random), column(&mut random));
        let numbers = |table: &Table| Targets::Regression(table.clone());
        // Noise, the mean with a little noise, and near the truth.
        let shy = Table::column(other.values.iter().map(|y| 5.0 + 0.01 * (y - 5.0)).collect());
        for useless in [other, shy] {
            let warning = warned(numbers(&known), numbers(&wanted), useless).unwrap();
            assert!(warning.contains("THE MODEL PREDICTS NOTHING"), "{warning}");
        }
        let near = Table::column(wanted.values.iter().map(|y| y + 0.1).collect());
        assert_eq!(warned(numbers(&known), numbers(&wanted), near), None);
    }

    #[test]
    fn random_labels_are_announced() {
        let mut random = Random::new(3, "worth");
        let labels: Vec<u32> = (0..200).map(|_| u32::from(random.uniform() < 0.4)).collect();
        let classes = || Targets::Classes { labels: labels.clone(), count: 2 };
        let guess = Table { rows: 200, cols: 2, values: (0..400).map(|_| random.normal() as f32).collect() };
        assert!(warned(classes(), classes(), guess).unwrap().contains("THE MODEL PREDICTS NOTHING"));
        let values = labels.iter().flat_map(|&label| [-(label as f32), label as f32]).collect();
        assert_eq!(warned(classes(), classes(), Table { rows: 200, cols: 2, values }), None);
    }
}
