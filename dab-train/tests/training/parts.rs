//! Mini-batches that are computed in parts, by one device or by several.

use burn::tensor::Device;
use dab_train::{config::Calibrated, data::Targets, internals::learn::run::Learnt};

use super::{experiment, points, train};

/// A sum of 16 f32 terms in another order, over 72 gradient steps: Adam divides by gradients' size, so a rounding may
/// grow by some hundred.
const PARTS: f64 = 2e-3;

#[test]
fn parts_and_replicas_change_nothing_but_rounding() {
    let split = points(90, true);
    for covariance in ["spectral", "diagonal"] {
        let run = |parts: &str| {
            let extra = format!(
                "codebook = {{ warmup = 3, mean_learning_rate = 0.0 }}\ntraining = {{ epochs = 12, batch = 16{parts} }}"
            );
            train(&experiment(covariance, &extra), &split)
        };
        let whole = run("");
        let scores = |run: &Learnt| run.trained.score(&split.inputs, &Device::flex()).unwrap().uncertainty;
        for parts in [", accumulate = 4", ", replicas = 2", ", replicas = 4, accumulate = 2"] {
            let other = run(parts);
            for (a, b) in whole.history.iter().zip(&other.history) {
                let losses = [(a.nll, b.nll), (a.distortion, b.distortion), (a.rate, b.rate)];
                for (a, b) in losses {
                    assert!((a - b).abs() <= PARTS * a.abs().max(1.0), "{covariance}{parts}: {a} {b}");
                }
            }
            for (a, b) in scores(&whole).into_iter().zip(scores(&other)) {
                let difference = f64::from((a - b).abs()) / f64::from(a.abs().max(1.0));
                assert!(difference <= PARTS, "{covariance}{parts}: {a} {b}");
            }
        }
        assert_eq!(run(", replicas = 4").trained, run(", replicas = 4").trained, "replicas repeat");
    }
}

#[test]
fn the_means_of_e9_are_over_the_whole_mini_batch() {
    let mut split = points(90, true);
    let Targets::Classes { labels, .. } = &mut split.targets else { panic!("classes") };
    // Some examples are never classified correctly, so that one part of a mini-batch has more of them than another.
    labels.iter_mut().step_by(7).for_each(|label| *label = 1 - *label);
    let run = |parts: &str| {
        let extra = format!(
            "codebook = {{ warmup = 1, mean_learning_rate = 0.0 }}\ntraining = {{ epochs = 4, batch = 16{parts} }}"
        );
        let mut experiment = experiment("diagonal", &extra);
        experiment.objective.calibrated = Some(Calibrated { least: 50.0, weight: 0.1 });
        train(&experiment, &split).history
    };
    let whole = run("");
    assert!(whole.iter().skip(1).all(|epoch| epoch.hinge > 1.0), "there are misclassified examples");
    for parts in [", accumulate = 5", ", replicas = 3", ", replicas = 2, accumulate = 2"] {
        for (a, b) in whole.iter().zip(run(parts)) {
            for (a, b) in [(a.nll, b.nll), (a.distortion, b.distortion), (a.hinge, b.hinge)] {
                assert!((a - b).abs() <= PARTS * a.abs().max(1.0), "{parts}: {a} {b}");
            }
        }
    }
}
