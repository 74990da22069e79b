//! The most important numbers of a run, by name, and their summary over seeds.

use crate::{
    measure::{
        assessed::{AMBIGUITY, UNFAMILIARITY},
        evaluate::Evaluation,
        metrics::Summary,
    },
    run::Run,
    support::text::decimal,
};

/// The most important numbers, on one line.
pub fn headline(evaluation: &Evaluation) -> String {
    named(evaluation)
        .into_iter()
        .map(|(name, value)| format!("{name} {}", decimal(value)))
        .collect::<Vec<_>>()
        .join("  ")
}

/// Numbers that are summarised over seeds, by name.
pub fn named(evaluation: &Evaluation) -> Vec<(String, f64)> {
    let mut list = Vec::new();
    if let Some(classification) = &evaluation.classification {
        list.push(("accuracy".to_owned(), classification.accuracy));
    }
    if let Some(regression) = &evaluation.regression {
        list.push(("RMSE".to_owned(), regression.rmse));
    }
    // Each channel for its job; a model without channels has u for both.
    let channels = evaluation.scores.iter().any(|report| report.name == UNFAMILIARITY);
    let of = |name: &str| evaluation.scores.iter().find(|report| channels && report.name == name);
    let (errors, strangers) =
        (of(AMBIGUITY).unwrap_or(&evaluation.report), of(UNFAMILIARITY).unwrap_or(&evaluation.report));
    if let Some(detection) = &errors.misclassification {
        list.push(("AUROC misclassified".to_owned(), detection.auroc));
    }
    for (name, detection) in &strangers.ood {
        list.push((format!("AUROC {name}"), detection.auroc));
    }
    if let Some(interval) = &evaluation.interval {
        for (target, &scale) in interval.scales.iter().enumerate() {
            let which = if interval.scales.len() > 1 { format!(" {}", target + 1) } else { String::new() };
            list.push((format!("nats to target unit{which}"), scale));
        }
        list.push(("test inside ±2su".to_owned(), interval.coverage));
        list.extend(interval.held_out.map(|held_out| ("held-out inside ±2su".to_owned(), held_out)));
        list.extend(interval.truth.map(|truth| ("truth inside ±2su".to_owned(), truth)));
        list.extend(evaluation.ratios.iter().map(|(name, ratio)| (format!("mean u {name} ÷ test"), *ratio)));
    }
    list.push(("median u".to_owned(), f64::from(evaluation.median_uncertainty)));
    let least = evaluation.usage.iter().copied().fold(f32::INFINITY, f32::min);
    list.push(("least prior".to_owned(), f64::from(least)));
    list
}

/// The same numbers over all runs, and the error of networks without a bottleneck.
pub fn summarise(all: &[Run]) -> Vec<(String, Summary)> {
    let numbers: Vec<Vec<(String, f64)>> = all.iter().map(|run| named(&run.evaluation)).collect();
    let mut list = joined(&numbers);
    let plain: Vec<f64> = all.iter().filter_map(|run| run.comparison.rmse_without_bottleneck).collect();
    list.extend(Summary::of(&plain).map(|summary| ("RMSE of plain networks".to_owned(), summary)));
    list
}

/// The numbers of all runs by their names: a run without an error has no AUROC of errors, so places say nothing.
fn joined(runs: &[Vec<(String, f64)>]) -> Vec<(String, Summary)> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in runs.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let values = |wanted: &String| -> Vec<f64> {
        runs.iter().flatten().filter(|(name, _)| name == wanted).map(|(_, value)| *value).collect()
    };
    names.iter().filter_map(|name| Some(((*name).clone(), Summary::of(&values(name))?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_runs_are_joined_by_their_names() {
        let run =
            |numbers: &[(&str, f64)]| numbers.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect();
        let joined = joined(&[
            run(&[("accuracy", 1.0), ("median u", 6.0)]),
            run(&[("accuracy", 0.5), ("AUROC misclassified", 0.9), ("median u", 4.0)]),
        ]);
        let means: Vec<(&str, f64)> = joined.iter().map(|(name, of)| (name.as_str(), of.mean)).collect();
        assert_eq!(means, [("accuracy", 0.75), ("median u", 5.0), ("AUROC misclassified", 0.9)]);
    }
}
