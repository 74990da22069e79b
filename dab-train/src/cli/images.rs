//! `dab train` on images: what comes before the bottleneck.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{
    config::Experiment,
    data::{self, Task, images::Config},
    finetune,
    random::Random,
    trainer::{self, Observer, Run, Setting},
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
    config: &Config,
    setting: &Setting,
    cache: &Path,
    observer: &mut dyn Observer,
) -> Result<(Task, Run)> {
    let shared = data::shared_root();
    let (seed, device) = (setting.seed, &setting.device);
    let backbone = experiment.backbone.images.as_ref().context("images need [backbone.images]")?;
    let mut images = config.load(seed, &shared)?;
    let side = images.train.set.images.side();
    ensure!(backbone.network.takes(side), "{:?} takes no images of {side} × {side}", backbone.network);
    let weights = finetune::pretrained(backbone, &shared)?;
    let (network, mut run) = match (backbone.frozen, &weights) {
        (true, Some(weights)) => (finetune::frozen(backbone, weights, device)?, None),
        _ => {
            let run = finetune::train(experiment, &images, weights.as_ref(), setting, observer)?;
            (run.images.clone().context("the run kept no image network")?, Some(run))
        }
    };
    let normalise = images.normalise;
    let cached = |set: &_| finetune::cached(&network, set, &normalise, cache, device);
    if run.is_none() && finetune::streams(experiment) {
        let features = cached(&images.train.set)?;
        run = Some(finetune::train_frozen(experiment, &images, &features, setting, observer)?);
        if images.train.set.len() > IN_MEMORY {
            let order = Random::new(seed, "kept in memory").permutation(images.train.set.len());
            images.train = images.train.select(&order[..IN_MEMORY]);
        }
    }
    let task = images.featured(&experiment.name, |set| match backbone.frozen {
        true => cached(set)?.table(),
        false => finetune::features(&network, set, &normalise, device),
    })?;
    let run = run.map_or_else(|| trainer::train(experiment, &task.train, setting, observer), Ok)?;
    Ok((task, run))
}
