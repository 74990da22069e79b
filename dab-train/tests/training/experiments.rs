//! Experiment files: what contradicts itself is refused in words, and the files of the repository are sound.

use std::path::Path;

use dab_core::channels::Form;
use dab_train::{
    config::{
        ConvPrecision, EarlyStopping, Experiment, ImageBackbone,
        retrofit::{Retrofit, ViewConfig},
    },
    data::{DataConfig, ImagesConfig, RandAugment},
    internals::{learn::run, model::resnet::Architecture},
};

use super::{experiment, points, setting};

/// A setting, and the words that refuse it.
type Refusal = (fn(&mut Experiment), &'static str);

#[track_caller]
fn refused(refusals: &[Refusal]) {
    for (change, words) in refusals {
        let mut experiment = experiment("diagonal", "training = { epochs = 5 }");
        experiment.check().unwrap();
        change(&mut experiment);
        let said = experiment.check().expect_err(words).to_string();
        assert!(said.contains(words), "expected {words:?}, found {said:?}");
    }
}

#[test]
fn every_contradiction_in_an_experiment_is_told() {
    let refusals: [Refusal; 30] = [
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
            |e| e.training.precision = ConvPrecision::Tf32,
            "training.precision is that of the convolutions of an image network that learns",
        ),
        (
            |e| {
                on_images(e, resnet(10, true));
                e.training.precision = ConvPrecision::Bf16;
            },
            "training.precision is that of the convolutions of an image network that learns",
        ),
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
    refused(&refusals);
    let text = experiment("diagonal", "training = { epochs = 5 }").resolved().unwrap();
    let misspelt = Experiment::parse(&text.replace("epochs =", "epocs =")).unwrap_err().to_string();
    assert!(misspelt.contains("unknown field `epocs`"), "{misspelt}");
}

#[test]
fn views_that_cannot_be_fitted_are_told() {
    let refusals: [Refusal; 10] = [
        (|e| e.retrofit = Some(Retrofit::default()), "[retrofit] learns nothing by gradients"),
        (|e| computed(e, vec![ViewConfig::default(); 99]), "retrofit.views: 99 views, a file holds "),
        (
            |e| computed(e, view(|view| view.ridge = -1.0)),
            "retrofit.views, view 0: ridge is -1, it must not be below 0",
        ),
        (
            |e| computed(e, view(|view| view.alpha = 0.0)),
            "retrofit.views, view 0: alpha is 0, it must be above 0",
        ),
        (|e| computed(e, view(|view| view.codes = 0)), "retrofit.views, view 0: codes start at 1"),
        (|e| computed(e, view(|view| view.rank = Some(0))), "retrofit.views, view 0: rank is from 1 to "),
        (|e| e.beside.views = vec![ViewConfig::default(); 99], "beside.views: 99 views, a file holds "),
        (|e| e.beside.views = view(|view| view.form = Form::Sum), "beside.views: their form is \"distance\""),
        (|e| e.beside.views = view(|view| view.codes = 0), "beside.views, view 0: codes start at 1"),
        (
            |e| {
                on_images(e, resnet(10, false));
                e.beside.views = view(|_| ());
            },
            "beside.views are of rows; an image network has images",
        ),
    ];
    refused(&refusals);
    let retrofit = Retrofit { seconds: Some(0.0), ..Retrofit::default() };
    let none = Experiment::without_gradients("none", 0, DataConfig::Memory, retrofit).check().unwrap_err();
    assert_eq!(none.to_string(), "retrofit.seconds must be above 0");
}

/// One view, changed.
fn view(change: fn(&mut ViewConfig)) -> Vec<ViewConfig> {
    let mut view = ViewConfig::default();
    change(&mut view);
    vec![view]
}

/// Turns an experiment into one that computes its model from these views.
fn computed(experiment: &mut Experiment, views: Vec<ViewConfig>) {
    let retrofit = Retrofit { views, ..Retrofit::default() };
    *experiment = Experiment::without_gradients("computed", 0, experiment.data.clone(), retrofit);
}

#[test]
fn settings_of_images_that_cannot_be_are_told() {
    fn change(experiment: &mut Experiment, change: fn(&mut ImagesConfig)) {
        on_images(experiment, resnet(10, false));
        if let DataConfig::Images(images) = &mut experiment.data {
            change(images);
        }
    }
    let refusals: [Refusal; 5] = [
        (|e| change(e, |data| data.held_out = 1.0), "data.held_out = 1: it must be a share, 0 to below 1"),
        (|e| change(e, |data| data.side = Some(0)), "data.side = 0: images need pixels"),
        (
            |e| change(e, |data| (data.side, data.resize) = (Some(9), Some(8))),
            "data.resize = 8 is less than data.side = 9, which is cut out of it",
        ),
        (
            |e| change(e, |data| data.normalise.std[1] = 0.0),
            "data.normalise.std = [0.229, 0.0, 0.225]: three positive numbers divide the colours",
        ),
        (
            |e| change(e, |data| data.augment.rand = Some(RandAugment { operations: 1, magnitude: 31 })),
            "augment.rand.magnitude is 31, allowed are 0 to 30",
        ),
    ];
    refused(&refusals);
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
