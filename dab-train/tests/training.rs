//! Training end to end on small data: it learns, repeats, resumes to the bit, and keeps its codes.

#[path = "training/checkpoints.rs"]
mod checkpoints;
#[path = "training/experiments.rs"]
mod experiments;
#[path = "training/parts.rs"]
mod parts;
#[path = "training/strangers.rs"]
mod strangers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use dab_train::{
    config::{Calibrated, EarlyStopping, Experiment},
    data::{self, Split, Table, Targets},
    internals::{
        learn::{
            epoch::Rdfc,
            examples::{Examples, Inputs},
            run::{self, Learnt, Setting},
        },
        measure::evaluate::median,
        model::network::Output,
        support::random::Random,
    },
};

/// Two well separated classes (or the same points with a number to predict).
fn points(count: usize, classes: bool) -> Split {
    let mut random = Random::new(3, "points");
    let (mut rows, mut labels) = (Vec::new(), Vec::new());
    for i in 0..count {
        let label = (i % 2) as u32;
        let centre = if label == 0 { -2.0 } else { 2.0 };
        rows.push([centre + 0.3 * random.normal() as f32, random.normal() as f32]);
        labels.push(label);
    }
    let targets = if classes {
        Targets::Classes { labels, count: 2 }
    } else {
        Targets::Regression(Table::column(rows.iter().map(|row| 10.0 * row[0] + row[1] + 100.0).collect()))
    };
    Split { inputs: Table::from_rows(&rows).unwrap(), targets }
}

/// A small experiment; `extra` lines come after it.
fn experiment(covariance: &str, extra: &str) -> Experiment {
    let text = format!(
        r#"
        name = "small"
        data = {{ kind = "regression-clusters" }}
        backbone = {{ layers = [{{ units = 16, activation = "elu" }}] }}
        bottleneck = {{ dim = 3, codes = 2, covariance = "{covariance}" }}
        objective = {{ alpha = 1.0, beta = 0.01 }}
        optimiser = {{ rule = "adam", learning_rate = 0.01 }}
        {extra}
        "#
    );
    Experiment::parse(&text).unwrap()
}

fn setting(checkpoint: Option<PathBuf>, resume: bool) -> Setting {
    Setting { seed: 4, device: Device::flex(), checkpoint, resume, machines: None }
}

fn train(experiment: &Experiment, split: &Split) -> Learnt {
    run::train(experiment, split, &setting(None, false), &mut ()).unwrap()
}

fn accuracy(run: &Learnt, split: &Split) -> f64 {
    let Targets::Classes { labels, .. } = &split.targets else { panic!("classes") };
    let scores = run.trained.score(&split.inputs, &Device::flex()).unwrap();
    let right = labels.iter().enumerate().filter(|&(row, &label)| {
        let logits = scores.outputs.row(row);
        (logits[1] > logits[0]) == (label == 1)
    });
    right.count() as f64 / labels.len() as f64
}

#[test]
fn every_covariance_and_mode_learns_and_scores_far_inputs_higher() {
    let split = points(64, true);
    for covariance in ["diagonal", "spectral", "cholesky"] {
        for codebook in [
            "codebook = { mean_learning_rate = 0.0, warmup = 5 }",
            "codebook = { mean_learning_rate = 0.01, warmup = 5 }",
            "codebook = { mode = \"reference\", pseudo_count = 5.0, momentum = 0.5, start = \"normal\" }",
        ] {
            let extra = format!("{codebook}\ntraining = {{ epochs = 60, batch = 16 }}");
            let run = train(&experiment(covariance, &extra), &split);
            assert_eq!(accuracy(&run, &split), 1.0, "{covariance} {codebook}");
            let far = Table::from_rows(&[[40.0, 40.0], [-60.0, 30.0], [3e37, -3e37]]).unwrap();
            let near = run.trained.score(&split.inputs, &Device::flex()).unwrap().uncertainty;
            let far = run.trained.score(&far, &Device::flex()).unwrap().uncertainty;
            let typical = median(&near);
            assert!(
                far.iter().all(|&u| u.is_finite() && u > 2.0 * typical),
                "{covariance} {codebook}: {far:?} {typical}"
            );
        }
    }
}

#[test]
fn regression_learns_in_the_targets_own_unit() {
    let split = points(64, false);
    let Targets::Regression(targets) = &split.targets else { panic!("regression") };
    for variance in ["unit", "homoscedastic", "learned"] {
        let mut experiment = experiment("cholesky", "training = { epochs = 300 }");
        experiment.objective.variance =
            serde_json::from_value(serde_json::Value::String(variance.into())).unwrap();
        experiment.objective.beta = 1e-4;
        let run = train(&experiment, &split);
        let scores = run.trained.score(&split.inputs, &Device::flex()).unwrap();
        let square: f32 = (0..64).map(|row| (scores.outputs.row(row)[0] - targets.row(row)[0]).powi(2)).sum();
        let rmse = (square / 64.0).sqrt();
        // The targets' standard deviation is about 20.
        assert!(rmse < 2.0, "{variance}: {rmse}");
        let noise = run.trained.noise(&scores).values[0];
        assert!(variance == "unit" || (noise > 0.0 && noise < 5.0), "{variance}: {noise}");
    }
}

#[test]
fn a_code_for_each_cluster_and_no_dead_code() {
    let split = points(64, false);
    for seed in 0..5 {
        let experiment = experiment("cholesky", "codebook = { warmup = 20 }\ntraining = { epochs = 100 }");
        let setting = Setting { seed, ..setting(None, false) };
        let run = run::train(&experiment, &split, &setting, &mut ()).unwrap();
        let scores = run.trained.score(&split.inputs, &Device::flex()).unwrap();
        assert!(run.trained.codebook.priors.iter().all(|&p| p > 0.3), "{:?}", run.trained.codebook.priors);
        let code = |row: usize| scores.assignment.row(row)[1] > 0.5;
        assert!((0..64).all(|row| code(row) == code(row % 2)) && code(0) != code(1), "seed {seed}");
    }
}

#[test]
fn the_demo_gives_each_cluster_a_code_of_its_own() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/regression-two-clusters.toml");
    let mut experiment = Experiment::read(&file).unwrap();
    // A fifth of the file's epochs: the codes start after 100 of them and have settled by then.
    experiment.training.epochs = 300;
    for seed in 0..4 {
        let task = data::load(&experiment.data, seed, Path::new("unused")).unwrap();
        let setting = Setting { seed, ..setting(None, false) };
        let run = run::train(&experiment, &task.train, &setting, &mut ()).unwrap();
        let priors = &run.trained.codebook.priors;
        assert!(priors.len() == 2 && priors.iter().all(|&p| p >= 0.2), "seed {seed}: {priors:?}");
        let inputs = &task.train.inputs;
        let scores = run.trained.score(inputs, &Device::flex()).unwrap();
        let owners = |left: bool| -> BTreeSet<bool> {
            let rows = (0..inputs.rows).filter(|&row| (inputs.row(row)[0] < 0.0) == left);
            rows.map(|row| scores.assignment.row(row)[1] > 0.5).collect()
        };
        let (left, right) = (owners(true), owners(false));
        assert!(left.len() == 1 && right.len() == 1 && left != right, "seed {seed}: {left:?} {right:?}");
    }
}

#[test]
fn a_useless_code_starts_again() {
    let split = points(64, true);
    let Targets::Classes { labels, .. } = &split.targets else { panic!("classes") };
    let one_hot: Vec<f32> = labels.iter().flat_map(|&label| [1.0 - label as f32, label as f32]).collect();
    let tensor =
        |values: &[f32]| Tensor::from_data(TensorData::new(values.to_vec(), [64, 2]), &Device::flex());
    let inputs = Inputs::Table { inputs: tensor(&split.inputs.values), wanted: tensor(&one_hot) };
    let examples = Examples { inputs, labels: Some(labels.clone()), noise: None };
    let after = |reseed_below: f64| {
        let extra = format!(
            "codebook = {{ start = \"normal\", mean_learning_rate = 0.0, reseed_below = {reseed_below} }}
            training = {{ epochs = 40 }}"
        );
        let experiment = experiment("diagonal", &extra);
        let mut model = Rdfc::new(&experiment, 2, Output::Classes(2), 4, &Device::flex());
        model.epoch(&experiment, &examples);
        // Code 1 is so far away that no example belongs to it.
        model.codebook.means[3..].fill(1e3);
        let epoch = model.epoch(&experiment, &examples);
        (epoch.reseeded, model.codebook.priors[1], model.codebook.means[3])
    };
    let (reseeded, prior, mean) = after(0.2);
    assert_eq!(reseeded, 1);
    assert!(prior > 0.3 && mean.abs() < 100.0, "it is among the examples again: {prior} {mean}");
    let (reseeded, prior, mean) = after(0.0);
    assert_eq!((reseeded, mean), (0, 1e3), "nothing happens where it is not asked for");
    assert!(prior < 0.01, "{prior}");
}

#[test]
fn the_calibrated_variant_pushes_errors_away() {
    // A third heap of points with both labels: half of them are misclassified, whatever is learnt.
    let mut split = points(96, true);
    let mixed: Vec<usize> = (0..96).filter(|row| row % 3 == 0).collect();
    for &row in &mixed {
        split.inputs.values[2 * row..][..2].copy_from_slice(&[0.01 * row as f32, 8.0]);
    }
    let extra = "codebook = { warmup = 5, mean_learning_rate = 0.0 }\ntraining = { epochs = 200 }";
    let mut experiment = experiment("diagonal", extra);
    experiment.optimiser.learning_rate = 0.005;
    let medians = |run: &Learnt| {
        let u = run.trained.score(&split.inputs, &Device::flex()).unwrap().uncertainty;
        let of = |mixed: bool| {
            let rows = (0..96).filter(|row| (row % 3 == 0) == mixed);
            median(&rows.map(|row| u[row]).collect::<Vec<_>>())
        };
        (of(true), of(false))
    };
    let plain = train(&experiment, &split);
    experiment.objective.calibrated = Some(Calibrated { least: 50.0, weight: 1.0 });
    let run = train(&experiment, &split);
    assert!(plain.history.iter().all(|epoch| epoch.hinge == 0.0));
    let ((mixed, clean), (mixed_before, _)) = (medians(&run), medians(&plain));
    println!("u at errors {mixed_before} -> {mixed}, elsewhere {clean}");
    assert!(
        mixed > 2.0 * mixed_before && mixed > 2.0 * clean,
        "{mixed_before} -> {mixed}, elsewhere {clean}"
    );
    assert!(mixed > 25.0, "half of the 50 nats that are asked for: {mixed}");
}

#[test]
fn early_stopping_keeps_the_best_epoch() {
    let split = points(40, true);
    let mut experiment = experiment("diagonal", "training = { epochs = 400 }");
    experiment.optimiser.learning_rate = 0.05;
    experiment.training.early_stopping = Some(EarlyStopping { patience: 5, share: 0.25 });
    let run = train(&experiment, &split);
    assert!(run.history.len() < 400, "stopped after {}", run.history.len());
    assert_eq!(run.kept_epoch + 5, run.history.len());
    let losses: Vec<(usize, f64)> =
        run.history.iter().filter_map(|epoch| Some((epoch.number, epoch.watched?))).collect();
    let best = losses.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(best.0, run.kept_epoch, "{losses:?}");
    assert!(losses.len() > 8 && losses[0].1 > best.1, "there was something to choose: {losses:?}");
    // The model that was kept is that of the best epoch, not that of the last one.
    let mut longer = experiment;
    longer.training.epochs = run.kept_epoch;
    assert_eq!(run.trained, train(&longer, &split).trained);
}
