//! `dab train` on images: what comes before the bottleneck.

use anyhow::{Context, Result};

use crate::{
    config::Experiment,
    data::{self, Task, images::Config},
    finetune,
    trainer::{self, Observer, Run, Setting},
};

/// Trains on images, and gives the task as the trained bottleneck sees it.
///
/// # Errors
/// Missing data, weights of another network, and what stops any run.
pub fn train(
    experiment: &Experiment,
    config: &Config,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<(Task, Run)> {
    let shared = data::shared_root();
    let backbone = experiment.backbone.images.as_ref().context("images need [backbone.images]")?;
    let images = config.load(setting.seed, &shared)?;
    let weights = finetune::pretrained(backbone, &shared)?;
    if let (true, Some(weights)) = (backbone.frozen, &weights) {
        let network = finetune::frozen(backbone, weights, &setting.device)?;
        let features = |_: &str, set: &_| {
            finetune::features(&network, set, &images.normalise, &setting.device)
        };
        let task = images.featured(&experiment.name, features)?;
        let run = trainer::train(experiment, &task.train, setting, observer)?;
        return Ok((task, run));
    }
    let run = finetune::train(experiment, &images, weights.as_ref(), setting, observer)?;
    let network = run.images.as_ref().context("the run kept no image network")?;
    let features =
        |_: &str, set: &_| finetune::features(network, set, &images.normalise, &setting.device);
    let task = images.featured(&experiment.name, features)?;
    Ok((task, run))
}
