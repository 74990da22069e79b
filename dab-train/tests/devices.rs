//! One epoch of everything on another device, against the CPU: a Wide ResNet on real images, both full-covariance heads,
//! codebook steps, export.
//!
//! `tests/accelerators` builds it with the features `cuda` and `wgpu` and runs it on what there is: a GPU, or, for `wgpu`, Mesa's
//! llvmpipe, which runs a GPU's kernels on the processor. A build without them has nothing to compare, and no such test.

#![cfg(any(feature = "cuda", feature = "wgpu"))]

#[path = "stored/mod.rs"]
mod stored;

use std::path::Path;

use burn::tensor::Device;
use dab_train::{
    Experiment, Parity,
    data::DataConfig,
    internals::{
        export::artifact,
        learn::{images, run::Setting},
        support::device::DeviceChoice,
    },
};

/// Of losses and of scores, relative to themselves or one nat: f32 sums in another order. On llvmpipe scores are 4e-7 apart.
const AGREE: f64 = 1e-5;
/// Training images: two mini-batches, for devices that compile every kernel when it is first used.
const IMAGES: usize = 64;

fn experiment(covariance: &str) -> Experiment {
    let text = format!(
        r#"
        name = "devices"
        [data]
        kind = "images"
        train = "cifar10/cifar10_train6k_test2k.npz:x_train,y_train"
        test = "cifar10/cifar10_train6k_test2k.npz:x_test,y_test"
        [backbone]
        standardise = "none"
        initialiser = "he-normal"
        images = {{ network = {{ kind = "wide-resnet", depth = 16, width = 1 }} }}
        [bottleneck]
        dim = 4
        codes = 10
        covariance = "{covariance}"
        [objective]
        alpha = 1.0
        beta = 1e-3
        [codebook]
        start = "normal"
        warmup = 0
        [optimiser]
        rule = "sgd"
        learning_rate = 1e-2
        [training]
        epochs = 1
        batch = 32
        "#
    );
    Experiment::parse(&text).unwrap()
}

/// Losses of the epoch, and u of some images as the exported model gives it.
fn run(covariance: &str, device: &Device, root: &Path) -> (Vec<f64>, Vec<f32>) {
    let experiment = experiment(covariance);
    let DataConfig::Images(config) = &experiment.data else { panic!("images") };
    let mut task = config.load(0, root).unwrap();
    task.train = task.train.select(&(0..IMAGES).collect::<Vec<_>>());
    let setting =
        Setting { seed: 1, device: device.clone(), checkpoint: None, resume: false, machines: None };
    let run = images::train(&experiment, &task, None, &setting, &mut ()).unwrap();
    let some = task.held_out.set.select(&(0..64).collect::<Vec<_>>());
    let network = run.images.as_ref().unwrap();
    let features = images::features(network, &some, &task.preprocessing.normalise, device).unwrap();
    let artifact = artifact::artifact(&run.trained, &features, Vec::new()).unwrap();
    let scores = artifact::scores(&artifact, &features).unwrap();
    let trained = run.trained.score(&features, device).unwrap().uncertainty;
    Parity::new(&trained, &scores).unwrap().check().unwrap();
    let epoch = &run.history[0];
    (vec![epoch.nll, epoch.distortion, epoch.rate], scores)
}

#[test]
fn an_epoch_agrees_with_the_cpu() {
    let name = "an_epoch_agrees_with_the_cpu";
    let Some(root) = stored::data(name, "cifar10/cifar10_train6k_test2k.npz") else { return };
    let found: Vec<(DeviceChoice, Device)> = [DeviceChoice::Cuda(0), DeviceChoice::Wgpu]
        .into_iter()
        .filter_map(|choice| Some((choice, choice.open().ok()?)))
        .collect();
    if found.is_empty() {
        return stored::skipped(name, "no GPU, and no llvmpipe (apt-get install mesa-vulkan-drivers)");
    }
    for covariance in ["spectral", "cholesky"] {
        let (losses, scores) = run(covariance, &Device::flex(), &root);
        assert!(losses.iter().all(|loss| loss.is_finite()), "{losses:?}");
        for (choice, device) in &found {
            let (other, others) = run(covariance, device, &root);
            let relative = |a: f64, b: f64| (a - b).abs() / a.abs().max(1.0);
            let losses: Vec<f64> = losses.iter().zip(&other).map(|(&a, &b)| relative(a, b)).collect();
            let scores: Vec<f64> =
                scores.iter().zip(&others).map(|(&a, &b)| relative(a.into(), b.into())).collect();
            let worst = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
            println!(
                "{choice} {covariance}: losses differ by {:.1e}, scores by {:.1e}",
                worst(&losses),
                worst(&scores)
            );
            // Not the largest: f64::max passes over NaN.
            assert!(
                losses.iter().chain(&scores).all(|&e| e < AGREE),
                "{choice} {covariance}: {losses:?} {scores:?}"
            );
        }
    }
}
