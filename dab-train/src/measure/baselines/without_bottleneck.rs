//! The same network without a bottleneck: what a model's error is compared with, and what ensembles are made of.
//!
//! ```text
//! x → backbone → h → y = V h + c        loss: NLL + λ₂‖W‖²
//! ```
//!
//! Backbone, optimiser, schedule, batches and epochs are the experiment's, so a difference in error is the
//! bottleneck's doing.

use anyhow::Result;
use burn::tensor::{Tensor, TensorData};

use crate::{
    config::{Experiment, OutputVariance},
    data::{Scale, Split, Table},
    learn::{
        epoch::batches,
        optimiser::Optimiser,
        run::{Setting, examples, input_scale, predicted},
    },
    model::{
        dense::{Dense, Mlp},
        network::{Output, nll},
    },
    support::random::Random,
};

/// A trained plain network.
#[derive(Clone, Debug)]
pub struct NetworkWithoutBottleneck {
    backbone: Mlp,
    decoder: Dense,
    log_variance: Option<Tensor<2>>,
    output: Output,
    input_scale: Scale,
    target_scale: Option<Scale>,
}

/// Trains a plain network with the experiment's backbone and optimiser.
pub fn train(experiment: &Experiment, split: &Split, setting: &Setting) -> Result<NetworkWithoutBottleneck> {
    experiment.check()?;
    let (output, target_scale) = predicted(experiment, &split.targets);
    let input_scale = input_scale(experiment.backbone.standardise, &split.inputs);
    let examples = examples(split, &input_scale, target_scale.as_ref(), &setting.device);
    let device = setting.device.clone().autodiff();
    let mut random = Random::new(setting.seed, "plain weights");
    let how = experiment.backbone.initialiser;
    let backbone = Mlp::random(split.inputs.cols, &experiment.backbone.layers, how, &mut random, &device);
    let features = experiment.backbone.layers.last().map_or(split.inputs.cols, |layer| layer.units);
    let decoder = Dense::random(features, output.width(), true, how, &mut random, &device);
    let log_variance = output.log_variance(&device);
    let mut plain =
        NetworkWithoutBottleneck { backbone, decoder, log_variance, output, input_scale, target_scale };
    plain.parameters_mut().into_iter().for_each(|parameter| *parameter = parameter.clone().require_grad());
    let mut optimiser = Optimiser::of(&experiment.optimiser);
    for epoch in 0..experiment.training.epochs {
        let batches = batches(experiment, setting.seed, epoch, examples.len());
        for (step, rows) in batches.iter().enumerate() {
            let (x, wanted) = examples.select(rows);
            let outputs = plain.forward(x.autodiff());
            let smoothing = experiment.objective.label_smoothing;
            let loss =
                nll(output, smoothing, plain.log_variance.as_ref(), outputs, &wanted.autodiff()).mean();
            let mut gradients = loss.backward();
            let rate = experiment.rate_at(epoch as f64 + step as f64 / batches.len() as f64);
            optimiser.step(plain.parameters_mut(), &mut gradients, rate);
        }
    }
    plain
        .parameters_mut()
        .into_iter()
        .for_each(|parameter| *parameter = parameter.clone().without_autodiff());
    Ok(plain)
}

impl NetworkWithoutBottleneck {
    fn parameters_mut(&mut self) -> Vec<&mut Tensor<2>> {
        let layers = self.backbone.layers.iter_mut().map(|layer| &mut layer.dense);
        layers
            .chain([&mut self.decoder])
            .flat_map(Dense::parameters_mut)
            .chain(&mut self.log_variance)
            .collect()
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.decoder.forward(self.backbone.forward(x))
    }

    /// Predictions in the targets' own unit (or logits), and, of a regression, their variances in its square.
    pub fn predict(&self, inputs: &Table) -> (Table, Option<Table>) {
        let scaled = self.input_scale.apply(inputs);
        let x = TensorData::new(scaled.values, [inputs.rows, inputs.cols]);
        let outputs = self.forward(Tensor::from_data(x, &self.decoder.weight.device()));
        let values: Vec<f32> = outputs.into_data().iter::<f32>().collect();
        let width = self.output.width();
        let table = |cols, values| Table { rows: inputs.rows, cols, values };
        let (Output::Regression(count, variance), Some(scale)) = (self.output, &self.target_scale) else {
            return (table(width, values), None);
        };
        let shared: Option<Vec<f32>> =
            self.log_variance.as_ref().map(|v| v.to_data().iter::<f32>().collect());
        let rows = || values.chunks_exact(width);
        let mean = |row: &[f32], target: usize| row[target] * scale.std[target] + scale.mean[target];
        let log_variance = |row: &[f32], target: usize| match variance {
            OutputVariance::Learned => row[count + target],
            _ => shared.as_ref().map_or(0.0, |v| v[target]),
        };
        let spread = |row: &[f32], target: usize| log_variance(row, target).exp() * scale.std[target].powi(2);
        let each = |f: &dyn Fn(&[f32], usize) -> f32| {
            table(
                count,
                rows().flat_map(|row| (0..count).map(|target| f(row, target)).collect::<Vec<_>>()).collect(),
            )
        };
        (each(&mean), Some(each(&spread)))
    }
}
