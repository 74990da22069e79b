//! The baselines together, on generated and on stored data.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::{
    data::{DataConfig, Split, load},
    measure::metrics::classification,
    support::random::Random,
};

/// What NumPy and scikit-learn make of the same rows (`tests/reference/baselines.py` writes the file).
#[derive(Deserialize)]
struct Reference {
    train: Vec<Vec<f32>>,
    labels: Vec<u32>,
    held_out: Vec<Vec<f32>>,
    held_labels: Vec<u32>,
    queries: Vec<Vec<f32>>,
    penalty: f64,
    scores: BTreeMap<String, Vec<f64>>,
}

/// Distances pass through f32, theirs do not: some ulp of the longest row.
const DISTANCE: f64 = 1e-5;
/// L-BFGS stops when a step gains less than 1e-6 of the objective; logits are then known to this.
const LOGIT: f64 = 4e-3;

/// Three Gaussian classes in four dimensions, and an OOD set far from all.
fn blobs() -> Task {
    let mut random = Random::new(4, "baselines");
    let mut split = |rows: usize| {
        let labels: Vec<u32> = (0..rows).map(|i| (i % 3) as u32).collect();
        let rows: Vec<[f32; 4]> = labels
            .iter()
            .map(|&l| {
                std::array::from_fn(|j| (random.normal() + 5.0 * f64::from(u8::from(j == l as usize))) as f32)
            })
            .collect();
        Split { inputs: Table::from_rows(&rows).unwrap(), targets: Targets::Classes { labels, count: 3 } }
    };
    let (train, held_out, test) = (split(600), split(150), split(300));
    let far = (0..200).map(|_| random.normal() as f32 - 4.0).collect();
    Task {
        name: "blobs".into(),
        train,
        held_out,
        test,
        ood: vec![("far".into(), Table::new(50, 4, far).unwrap())],
    }
}

#[test]
fn distances_find_a_far_set() {
    let task = blobs();
    let baselines = on_features(&task).unwrap();
    let names: Vec<&str> = baselines.scored.iter().map(|s| s.name.as_str()).collect();
    let expected = "MSP, margin, entropy, energy, GEN, ViM, Mahalanobis, relative Mahalanobis, 1-NN, 10-NN, 50-NN, \
                    cosine 1-NN, cosine 10-NN, cosine 50-NN, −L2 norm";
    assert_eq!(names.join(", "), expected);
    let Targets::Classes { labels, .. } = &task.test.targets else { panic!("classes") };
    let correct = classification::correct(baselines.test_logits.as_ref().unwrap(), labels);
    for scored in &baselines.scored {
        let report = scored.report(Some(&correct)).unwrap();
        assert_eq!(report.ood[0].1.prevalence, 50.0 / 350.0);
        if ["Mahalanobis", "1-NN", "10-NN", "50-NN"].contains(&scored.name.as_str()) {
            assert!(report.ood[0].1.auroc > 0.99, "{}: {:?}", scored.name, report.ood[0].1);
        }
    }
}

#[test]
fn every_score_is_that_of_scikit_learn() {
    let reference: Reference =
        serde_json::from_str(include_str!("../../../tests/reference/baselines.json")).unwrap();
    let split = |rows: &[Vec<f32>], labels: &[u32]| Split {
        inputs: Table::from_rows(rows).unwrap(),
        targets: Targets::Classes { labels: labels.to_vec(), count: 3 },
    };
    let task = Task {
        name: "reference".into(),
        train: split(&reference.train, &reference.labels),
        held_out: split(&reference.held_out, &reference.held_labels),
        test: split(&reference.queries, &vec![0; reference.queries.len()]),
        ood: Vec::new(),
    };
    let Targets::Classes { labels, count } = &task.train.targets else { panic!("classes") };
    let held_out = (&task.held_out.inputs, reference.held_labels.as_slice());
    let chosen = Logistic::fit((&task.train.inputs, labels), held_out, *count).unwrap().penalty;
    assert_eq!(chosen, reference.penalty);
    let found = on_features(&task).unwrap().scored;
    assert_eq!(found.len(), reference.scores.len());
    for scored in found {
        let expected = &reference.scores[&scored.name];
        let of_logits = logits::SCORES.iter().any(|(name, _)| *name == scored.name) || scored.name == "ViM";
        let tolerance = if of_logits { LOGIT } else { DISTANCE };
        for (found, expected) in scored.test.iter().zip(expected) {
            let difference = (f64::from(*found) - expected).abs();
            assert!(
                difference <= tolerance * expected.abs().max(1.0),
                "{}: {found} instead of {expected}",
                scored.name
            );
        }
    }
}

#[test]
fn regression_has_no_logits() {
    let config: DataConfig = toml::from_str("kind = \"regression-clusters\"\npoints = 50").unwrap();
    let baselines = on_features(&load(&config, 0, std::path::Path::new("unused")).unwrap()).unwrap();
    let names: Vec<&str> = baselines.scored.iter().map(|s| s.name.as_str()).collect();
    let expected = "Mahalanobis, 1-NN, 10-NN, 50-NN, cosine 1-NN, cosine 10-NN, cosine 50-NN, L2 norm";
    assert_eq!(names.join(", "), expected);
    // Outside [−4, 4] is exactly where |x| is larger.
    assert_eq!(baselines.scored[7].report(None).unwrap().ood[0].1.auroc, 1.0);
}

#[test]
fn raw_inputs_of_any_size_score_finite() {
    let mut task = blobs();
    task.ood.push(("huge".into(), Table::new(1, 4, vec![f32::MAX, -f32::MAX, 0.0, 1.0]).unwrap()));
    for scored in on_features(&task).unwrap().scored {
        assert!(scored.ood[1].1[0].is_finite(), "{}: {:?}", scored.name, scored.ood[1].1);
    }
}

#[test]
fn energy_is_nearly_trivial_for_distances() {
    let config: DataConfig = toml::from_str("kind = \"uci\"\nscaling = [\"own\", \"raw\"]").unwrap();
    let found = crate::stored::data("energy_is_nearly_trivial_for_distances", "uci/energy_efficiency.csv.gz");
    let Some(root) = found else { return };
    let baselines = on_features(&load(&config, 0, &root).unwrap()).unwrap();
    let report = baselines.scored[0].report(None).unwrap();
    assert!(report.ood.iter().all(|(_, d)| d.auroc > 0.999), "{report:?}");
}
