//! Training end to end on small data: it learns, repeats, resumes to the bit, and keeps its codes.

#[path = "training/strangers.rs"]
mod strangers;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Tensor, TensorData};
use dab_train::{
    config::{Calibrated, EarlyStopping, Experiment, ImageBackbone, Training},
    data::{self, Split, Table, Targets},
    internals::{
        learn::{
            epoch::{Epoch, Rdfc},
            examples::{Examples, Inputs},
            run::{self, Learnt, Observer, Setting},
        },
        measure::evaluate::median,
        model::{
            network::{Output, Wanted},
            resnet::Architecture,
        },
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
fn a_finished_run_is_restored_and_an_unfinished_one_is_not() {
    let split = points(50, true);
    let mut experiment = experiment("diagonal", "training = { epochs = 6 }");
    for stopping in [None, Some(EarlyStopping { patience: 2, share: 0.2 })] {
        experiment.training.early_stopping = stopping;
        let kept = setting(Some(checkpoint("restored")), false);
        assert!(run::restore(&experiment, &split, &kept).is_err());
        let run = run::train(&experiment, &split, &kept, &mut ()).unwrap();
        let restored = run::restore(&experiment, &split, &kept).unwrap();
        assert_eq!((restored.trained, restored.kept_epoch), (run.trained, run.kept_epoch));
    }
    experiment.training = Training { early_stopping: None, checkpoint_every: 1, ..experiment.training };
    let kept = setting(Some(checkpoint("unfinished")), false);
    let killed = catch_unwind(AssertUnwindSafe(|| run::train(&experiment, &split, &kept, &mut Killer(3))));
    assert!(killed.is_err());
    let error = run::restore(&experiment, &split, &kept).unwrap_err();
    assert!(error.to_string().contains("after epoch 3 of 6"), "{error:#}");
}

#[test]
fn a_useless_code_starts_again() {
    let split = points(64, true);
    let Targets::Classes { labels, .. } = &split.targets else { panic!("classes") };
    let one_hot: Vec<f32> = labels.iter().flat_map(|&label| [1.0 - label as f32, label as f32]).collect();
    let tensor =
        |values: &[f32]| Tensor::from_data(TensorData::new(values.to_vec(), [64, 2]), &Device::flex());
    let inputs =
        Inputs::Table { inputs: tensor(&split.inputs.values), wanted: Wanted::Classes(tensor(&one_hot)) };
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

/// Stops a run after some epochs, as a kill would.
struct Killer(usize);

impl Observer for Killer {
    fn epoch(&mut self, epoch: &Epoch, _: usize, _: std::time::Duration) {
        assert!(epoch.number <= self.0, "killed");
    }
}

fn checkpoint(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder.join("checkpoint.safetensors")
}

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let split = points(50, true);
    for (index, kind) in ["diagonal", "spectral", "cholesky"].into_iter().enumerate() {
        let extra = "codebook = { warmup = 3, mean_learning_rate = 0.01 }
            training = { epochs = 12, batch = 16, input_noise = 0.1, checkpoint_every = 1 }";
        let mut experiment = experiment(kind, extra);
        if index == 1 {
            experiment.training.early_stopping = Some(EarlyStopping { patience: 20, share: 0.2 });
        }
        let whole = train(&experiment, &split);
        assert_eq!(whole.trained, train(&experiment, &split).trained, "the same seed gives the same model");
        for kill_after in [1, 3, 8] {
            let path = checkpoint(&format!("resume-{kind}-{kill_after}"));
            let killed = catch_unwind(AssertUnwindSafe(|| {
                let setting = setting(Some(path.clone()), false);
                run::train(&experiment, &split, &setting, &mut Killer(kill_after))
            }));
            assert!(killed.is_err());
            let run =
                run::train(&experiment, &split, &setting(Some(path), true), &mut Killer(usize::MAX)).unwrap();
            assert_eq!(run.trained, whole.trained, "{kind} killed after {kill_after}");
            assert_eq!(run.history.len(), 12);
        }
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let split = points(50, true);
    let path = checkpoint("refused");
    let extra = "training = { epochs = 4, checkpoint_every = 1 }";
    let mut experiment = experiment("diagonal", extra);
    run::train(&experiment, &split, &setting(Some(path.clone()), false), &mut ()).unwrap();
    let resume = setting(Some(path.clone()), true);
    let other = Setting { seed: 5, ..resume.clone() };
    let error = run::train(&experiment, &split, &other, &mut ()).unwrap_err();
    assert!(format!("{error:#}").contains("seed 4"), "{error:#}");
    experiment.objective.beta = 0.5;
    let error = run::train(&experiment, &split, &resume, &mut ()).unwrap_err();
    assert!(format!("{error:#}").contains("another version"), "{error:#}");
    std::fs::write(&path, b"not a checkpoint").unwrap();
    assert!(run::train(&experiment, &split, &resume, &mut ()).is_err());
}

#[test]
fn a_damaged_checkpoint_and_a_full_disk_are_told() {
    let split = points(50, true);
    let path = checkpoint("damaged");
    let experiment = experiment("diagonal", "training = { epochs = 4, checkpoint_every = 1 }");
    run::train(&experiment, &split, &setting(Some(path.clone()), false), &mut ()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in [whole.len() - 1, whole.len() - 400] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let error = run::train(&experiment, &split, &setting(Some(path.clone()), true), &mut ()).unwrap_err();
        assert!(format!("{error:#}").contains("it is damaged"), "{error:#}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "a refused checkpoint stays as it is");
    }
    let full = Path::new("/dev/full");
    if !full.exists() {
        println!("SKIPPED a_damaged_checkpoint_and_a_full_disk_are_told: no /dev/full");
        return;
    }
    let error = run::train(&experiment, &split, &setting(Some(full.into()), false), &mut ()).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("cannot write /dev/full") && text.contains("space"), "{text}");
}

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

/// A setting, and the words that refuse it.
type Refusal = (fn(&mut Experiment), &'static str);

#[test]
fn every_contradiction_in_an_experiment_is_told() {
    let refusals: [Refusal; 28] = [
        (|e| e.bottleneck.dim = 0, "bottleneck.dim is 0, allowed are 1 to"),
        (|e| e.bottleneck.dim = 70_000, "bottleneck.dim is 70000, allowed are 1 to"),
        (|e| e.bottleneck.codes = 0, "bottleneck.codes is 0, allowed are 1 to"),
        (|e| e.backbone.layers = vec![e.backbone.layers[0].clone(); 99], "at most 16 backbone layers"),
        (|e| e.objective.alpha = 0.0, "objective.alpha must be positive"),
        (|e| e.objective.alpha = f64::INFINITY, "objective.alpha must be positive"),
        (|e| e.objective.beta = -1.0, "objective.beta must not be negative"),
        (|e| e.objective.beta = f64::NAN, "objective.beta must not be negative"),
        (|e| e.codebook.momentum = 1.0, "codebook.momentum lies in [0, 1)"),
        (|e| e.codebook.prior_floor = 1.1, "codebook.prior_floor lies in [0, 1]"),
        (|e| e.codebook.reseed_below = -0.1, "codebook.reseed_below lies in [0, 1]"),
        (|e| e.codebook.pooled = 2.0, "codebook.pooled lies in [0, 1]"),
        (|e| e.codebook.ridge = -1e-9, "codebook.ridge must not be negative"),
        (|e| e.codebook.pseudo_count = -1.0, "codebook.pseudo_count must not be negative"),
        (|e| e.optimiser.learning_rate = 0.0, "optimiser.learning_rate must be positive"),
        (|e| e.training.accumulate = 0, "training.accumulate and training.replicas start at 1"),
        (|e| e.training.replicas = 0, "training.accumulate and training.replicas start at 1"),
        (|e| e.training.synchronised_norms = true, "synchronised_norms is for an image network that learns"),
        (
            |e| {
                on_images(e, resnet(10, false));
                (e.training.synchronised_norms, e.training.accumulate) = (true, 2);
            },
            "synchronised_norms needs all of a mini-batch at once: training.accumulate must be 1",
        ),
        (|e| e.training.epochs = 1, "training.epochs must exceed codebook.warmup"),
        (|e| e.backbone.layers[0].units = 0, "backbone layer 1 has 0 units, allowed are 1 to"),
        (|e| e.backbone.layers[0].residual = Some(1), "backbone layer 1 cannot add the output of layer 1"),
        (|e| e.backbone.images = Some(resnet(10, false)), "\"images\" and [backbone.images] belong together"),
        (|e| on_images(e, resnet(11, false)), "a wide ResNet has a depth of 10, 16, 22, 28, …, not 11"),
        (|e| on_images(e, resnet(10, true)), "a frozen backbone needs backbone.images.weights"),
        (
            |e| on_images(e, ImageBackbone { rate_share: 0.0, ..resnet(10, false) }),
            "backbone.images.rate_share must be positive; 0 is `frozen = true`",
        ),
        (
            |e| e.training.early_stopping = Some(EarlyStopping { patience: 5, share: 1.0 }),
            "early_stopping.share lies in (0, 1)",
        ),
        (
            |e| e.training.early_stopping = Some(EarlyStopping { patience: 0, share: 0.5 }),
            "early_stopping.patience starts at 1",
        ),
    ];
    for (change, words) in refusals {
        let mut experiment = experiment("diagonal", "training = { epochs = 5 }");
        experiment.check().unwrap();
        change(&mut experiment);
        let said = experiment.check().expect_err(words).to_string();
        assert!(said.contains(words), "expected {words:?}, found {said:?}");
    }
    let text = experiment("diagonal", "training = { epochs = 5 }").resolved().unwrap();
    let misspelt = Experiment::parse(&text.replace("epochs =", "epocs =")).unwrap_err().to_string();
    assert!(misspelt.contains("unknown field `epocs`"), "{misspelt}");
}

fn resnet(depth: usize, frozen: bool) -> ImageBackbone {
    let network = Architecture::WideResnet { depth, width: 1 };
    ImageBackbone { network, weights: None, frozen, rate_share: 1.0 }
}

fn on_images(experiment: &mut Experiment, backbone: ImageBackbone) {
    experiment.data = toml::from_str("kind = \"images\"\ntrain = \"x\"\ntest = \"x\"").unwrap();
    experiment.backbone.images = Some(backbone);
}

#[test]
fn codes_that_start_at_classes_need_as_many_classes() {
    let mut experiment = experiment("diagonal", "training = { epochs = 5 }");
    experiment.codebook.start = dab_train::config::Start::Classes;
    let refusal = |experiment: &Experiment, classes| {
        run::train(experiment, &points(8, classes), &setting(None, false), &mut ()).unwrap_err().to_string()
    };
    assert_eq!(refusal(&experiment, false), "codebook.start = \"classes\" needs classes");
    experiment.bottleneck.codes = 3;
    assert_eq!(refusal(&experiment, true), "codebook.start = \"classes\" needs 2 codes, not 3");
}

#[test]
fn every_experiment_file_parses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let experiment = Experiment::read(&path).unwrap();
        assert_eq!(Some(experiment.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert_eq!(Experiment::parse(&experiment.resolved().unwrap()).unwrap(), experiment);
        count += 1;
    }
    assert!(count >= 6);
}
