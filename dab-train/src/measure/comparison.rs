//! What a run is compared with: the simple baselines, and for regression plain networks and their ensembles.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::{
    baselines::{self, ensemble, without_bottleneck},
    metrics::{Regression, ScoreReport, Scored, classification},
};
use crate::{
    config::{
        Experiment,
        defaults::{self, Wishes},
    },
    data::{Table, Targets, Task},
    export::head,
    learn::run::Setting,
};

/// Sizes of the ensembles.
const ENSEMBLES: [usize; 2] = [2, 4];

/// The baselines' measures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// One entry per score.
    pub scores: Vec<ScoreReport>,
    /// Regression: mean error of single plain networks with the same backbone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse_without_bottleneck: Option<f64>,
}

/// Measures every baseline that fits the task.
pub fn compare(experiment: &Experiment, task: &Task, setting: &Setting) -> Result<Comparison> {
    let mut comparison = Comparison { scores: on_features(task)?, rmse_without_bottleneck: None };
    if let Some(file) = experiment.retrofit.as_ref().and_then(|retrofit| retrofit.head.as_deref()) {
        comparison.scores.extend(of_own_head(Path::new(file), task)?);
    }
    if let Targets::Regression(targets) = &task.test.targets {
        let Experiment { name, seed, data, .. } = experiment;
        // A model that is computed has no network to compare with: the one that learning would take stands in.
        let learning = || defaults::experiment(name, *seed, data.clone(), &task.train, Wishes::default());
        let learning = experiment.retrofit.as_ref().map(|_| learning());
        members(learning.as_ref().unwrap_or(experiment), task, targets, setting, &mut comparison)?;
    }
    Ok(comparison)
}

/// Measures of the baselines that need no network.
pub fn on_features(task: &Task) -> Result<Vec<ScoreReport>> {
    let found = baselines::on_features(task)?;
    let logits = found.test_logits.as_ref();
    let correct = logits.and_then(|logits| classification::correct_of(logits, &task.test.targets));
    found.scored.iter().map(|scored| scored.report(correct.as_deref())).collect()
}

/// Scores of the logits of the user's own last layer.
fn of_own_head(file: &Path, task: &Task) -> Result<Vec<ScoreReport>> {
    let own = head::read(file)?;
    let test = own.apply(&task.test.inputs);
    let ood = task.each_ood(|inputs| anyhow::Ok(own.apply(inputs)))?;
    let correct = classification::correct_of(&test, &task.test.targets);
    let scored = baselines::on_logits(" (own)", &test, &ood);
    scored.iter().map(|scored| scored.report(correct.as_deref())).collect()
}

/// Trains the ensembles' members and adds their scores and their mean error.
fn members(
    experiment: &Experiment,
    task: &Task,
    targets: &Table,
    setting: &Setting,
    comparison: &mut Comparison,
) -> Result<()> {
    let count = ENSEMBLES.into_iter().max().unwrap_or(1);
    let mut nets = Vec::new();
    for member in 0..count as u64 {
        let seed = setting.seed.wrapping_mul(count as u64).wrapping_add(member);
        nets.push(without_bottleneck::train(experiment, &task.train, &Setting { seed, ..setting.clone() })?);
    }
    let mut sum = 0.0;
    for net in &nets {
        sum += Regression::new(&net.predict(&task.test.inputs).0, targets, None)?.rmse;
    }
    comparison.rmse_without_bottleneck = Some(sum / nets.len() as f64);
    for size in ENSEMBLES {
        let score = |inputs: &Table| {
            let (means, variances): (Vec<_>, Vec<_>) =
                nets[..size].iter().map(|net| net.predict(inputs)).unzip();
            ensemble::scores(&means, &variances.into_iter().flatten().collect::<Vec<_>>())
        };
        let (name, test) = (format!("ensemble of {size}"), score(&task.test.inputs)?);
        comparison.scores.push(Scored { name, test, ood: task.each_ood(score)? }.report(None)?);
    }
    Ok(())
}
