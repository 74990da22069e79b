//! `dab train` and `dab verify` on images: what comes before the bottleneck.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{
    config::{Experiment, ImageBackbone},
    data::{
        self, Task,
        images::{ImageTask, ImagesConfig},
    },
    learn::{
        images,
        run::{self, Observer, Run, Setting},
    },
    support::random::Random,
};

/// Training examples that the task keeps in memory for baselines; a run on mapped features learns from all of them.
const IN_MEMORY: usize = 100_000;

/// Trains on images, and gives the task as the trained bottleneck sees it. A frozen network's features are kept in
/// `cache`.
///
/// # Errors
/// Missing data, weights of another network, and what stops any run.
pub fn train(
    experiment: &Experiment,
    config: &ImagesConfig,
    setting: &Setting,
    cache: &Path,
    observer: &mut dyn Observer,
) -> Result<(Task, Run)> {
    let (seed, device) = (setting.seed, &setting.device);
    let (mut images, backbone) = load(experiment, config, seed)?;
    let weights = images::pretrained(backbone, &data::data_root())?;
    let (network, mut run) = match (backbone.frozen, &weights) {
        (true, Some(weights)) => (images::frozen(backbone, weights, device)?, None),
        _ => {
            let run = images::train(experiment, &images, weights.as_ref(), setting, observer)?;
            (run.images.clone().context("the run kept no image network")?, Some(run))
        }
    };
    let normalise = images.normalise;
    let cached = |set: &_| images::cached(&network, set, &normalise, cache, device);
    if run.is_none() && images::streams(experiment) {
        let features = cached(&images.train.set)?;
        run = Some(images::train_frozen(experiment, &images, &features, setting, observer)?);
        if images.train.set.len() > IN_MEMORY {
            let order = Random::new(seed, "kept in memory").permutation(images.train.set.len());
            images.train = images.train.select(&order[..IN_MEMORY]);
        }
    }
    let task = images.featured(&experiment.name, |set| match backbone.frozen {
        true => cached(set)?.table(),
        false => images::features(&network, set, &normalise, device),
    })?;
    let run = run.map_or_else(|| run::train(experiment, &task.train, setting, observer), Ok)?;
    Ok((task, run))
}

/// A finished run on images, and its task as the bottleneck sees it. The training images' part of the task is one of each
/// class where nothing depends on the others.
///
/// # Errors
/// Missing data or weights, and what [`run::restore`] refuses.
pub fn restore(experiment: &Experiment, config: &ImagesConfig, setting: &Setting) -> Result<(Task, Run)> {
    let (mut images, backbone) = load(experiment, config, setting.seed)?;
    let device = &setting.device;
    // A network that learnt is in the checkpoint.
    let weights = backbone.frozen.then(|| images::pretrained(backbone, &data::data_root())).transpose()?;
    let frozen = weights.flatten().map(|weights| images::frozen(backbone, &weights, device)).transpose()?;
    let mut run = None;
    if images::streams(experiment) {
        let cols =
            frozen.as_ref().map_or(images.train.set.cols(), |network| network.architecture().features());
        run = Some(images::restore(experiment, &images, cols, setting)?);
        let labels = &images.train.labels;
        let first = (0..images.classes).filter_map(|class| labels.iter().position(|&l| l as usize == class));
        images.train = images.train.select(&first.collect::<Vec<_>>());
    }
    let learnt = run.as_ref().and_then(|run| run.images.clone());
    let network = frozen.or(learnt).context("the run kept no image network")?;
    let features = |set: &_| images::features(&network, set, &images.normalise, device);
    let task = images.featured(&experiment.name, features)?;
    let run = run.map_or_else(|| run::restore(experiment, &task.train, setting), Ok)?;
    Ok((task, run))
}

/// The images of an experiment, and the network that takes them.
fn load<'a>(
    experiment: &'a Experiment,
    config: &ImagesConfig,
    seed: u64,
) -> Result<(ImageTask, &'a ImageBackbone)> {
    let backbone = experiment.backbone.images.as_ref().context("images need [backbone.images]")?;
    let images = config.load(seed, &data::data_root())?;
    let side = images.train.set.images.side();
    ensure!(backbone.network.takes(side), "{:?} takes no images of {side} × {side}", backbone.network);
    Ok((images, backbone))
}
