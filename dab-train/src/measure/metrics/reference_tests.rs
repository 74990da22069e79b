//! Every metric against scikit-learn's values (`tests/reference/metrics.py` makes the file).

use super::*;
use crate::data::Table;
use serde::Deserialize;

/// f64 sums in another order than numpy's.
const EXACT: f64 = 1e-12;
/// Probabilities pass through f32 here and stay f64 there: a few f32 ulp of the largest term.
const PROBABILITY: f64 = 2e-6;

#[derive(Deserialize)]
struct Reference {
    detection: Vec<DetectionCase>,
    classification: Vec<ClassificationCase>,
    regression: RegressionCase,
}

#[derive(Deserialize)]
struct DetectionCase {
    name: String,
    negatives: Vec<f32>,
    positives: Vec<f32>,
    auroc: f64,
    aupr_out: f64,
    aupr_in: f64,
    fpr95: f64,
    aurc: f64,
}

#[derive(Deserialize)]
struct ClassificationCase {
    name: String,
    logits: Vec<Vec<f32>>,
    labels: Vec<u32>,
    accuracy: f64,
    nll: f64,
    brier: f64,
    ece: f64,
}

#[derive(Deserialize)]
struct RegressionCase {
    predicted: Vec<f32>,
    targets: Vec<f32>,
    rmse: f64,
    mae: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../../../tests/reference/metrics.json")).unwrap()
}

fn close(name: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{name}: {found} instead of {expected}");
}

#[test]
fn detection_agrees_with_scikit_learn() {
    let cases = reference().detection;
    assert_eq!(cases.len(), 5);
    for case in cases {
        let found = Detection::new(Positive::OutOfDistribution, &case.negatives, &case.positives).unwrap();
        close(&case.name, found.auroc, case.auroc, EXACT);
        close(&case.name, found.aupr_out, case.aupr_out, EXACT);
        close(&case.name, found.aupr_in, case.aupr_in, EXACT);
        close(&case.name, found.fpr95, case.fpr95, EXACT);
        let scores = [case.negatives.clone(), case.positives.clone()].concat();
        let losses = [vec![0.0; case.negatives.len()], vec![1.0; case.positives.len()]].concat();
        close(&case.name, Selective::new(&scores, &losses).unwrap().aurc, case.aurc, EXACT);
    }
}

#[test]
fn order_of_examples_does_not_matter() {
    for mut case in reference().detection {
        let before = Detection::new(Positive::OutOfDistribution, &case.negatives, &case.positives).unwrap();
        case.negatives.reverse();
        case.positives.reverse();
        let mut after =
            Detection::new(Positive::OutOfDistribution, &case.negatives, &case.positives).unwrap();
        // Places are in the order of the examples, and go with them.
        let (negatives, positives) = after.places.split_at_mut(case.negatives.len());
        negatives.reverse();
        positives.reverse();
        assert_eq!(before, after, "{}", case.name);
    }
}

#[test]
fn classification_agrees_with_scikit_learn() {
    for case in reference().classification {
        let probabilities = softmax(&Table::from_rows(&case.logits).unwrap());
        let found = Classification::new(&probabilities, &case.labels).unwrap();
        close(&case.name, found.accuracy, case.accuracy, EXACT);
        close(&case.name, found.nll, case.nll, PROBABILITY);
        close(&case.name, found.brier, case.brier, PROBABILITY);
        close(&case.name, found.ece, case.ece, PROBABILITY);
    }
}

#[test]
fn regression_agrees_with_scikit_learn() {
    let case = reference().regression;
    let found = Regression::new(&Table::column(case.predicted), &Table::column(case.targets), None).unwrap();
    close("rmse", found.rmse, case.rmse, EXACT);
    close("mae", found.mae, case.mae, EXACT);
}
