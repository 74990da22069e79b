//! Rate-distortion finite-cardinality learning: one epoch of alternating minimisation (method.md E8–E13, paper §4).
//!
//! ```text
//! 1  θ by gradient on  NLL + λ₂‖W‖² + αβ · mean_x u(x)         codebook fixed, π_x held constant     E8, E9
//! 2  π_x(κ) ∝ π(κ) exp(−α D_κ(x))                              θ fixed from here on                  E5
//! 3  m_κ by gradient on mean_x u(x), Σ_κ in closed form                                              E10, E11
//! 4  π(κ) = mean_x π_x(κ)                                                                            E12
//! ```
//!
//! θ is fixed in 2–4, so each example is encoded once and the encodings serve all three. Step 1 is in `network_step.rs`,
//! steps 2–4 are in `codebook_step.rs`, with what keeps codes alive.

use std::{ops::ControlFlow, sync::Arc};

use burn::tensor::{DType, Device};
use serde::{Deserialize, Serialize};

use super::{examples::Examples, loss_scaling::Scaling, machines::Machines, optimiser::Optimiser};
use crate::{
    config::{Experiment, Rule, Start},
    model::{
        codebook::{Codebook, Codes, INITIAL_MEAN_STD},
        conv::InitialWeights,
        dense::{Dense, Mlp},
        network::{Network, Output},
        resnet::ResNet,
    },
    support::{random::Random, settings::is_default},
};

/// Code means, in numbers (codes × dim), from which on training expands diagonal distances into matrix products.
const EXPAND_NUMBERS: usize = 512;

/// What one epoch did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counted from 1.
    pub number: usize,
    /// Mean negative log-likelihood in step 1, nats.
    pub nll: f64,
    /// Mean u(x) in step 1 (of correctly classified examples under E9), nats.
    pub distortion: f64,
    /// Mean hinge of misclassified examples (E9), nats.
    pub hinge: f64,
    /// mean_x KL(π_x ‖ π) after step 2, nats.
    pub rate: f64,
    /// π(κ) after step 4.
    pub usage: Vec<f32>,
    /// Codes that started again in this epoch.
    pub reseeded: usize,
    /// Learning rate of the last mini-batch.
    pub learning_rate: f64,
    /// Examples that step 1 learnt from.
    #[serde(default)]
    pub examples: usize,
    /// The loss on the examples that early stopping watches, nats; from the codes' start on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<f64>,
    /// Mini-batches that were skipped because their gradients, in f16, were not finite.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skipped: usize,
}

/// The model in training.
#[derive(Clone, Debug)]
pub struct Rdfc {
    /// θ.
    pub network: Network,
    /// m, Σ, π.
    pub codebook: Codebook,
    /// θ's optimiser.
    pub network_optimiser: Optimiser,
    /// The code means' optimiser.
    pub means_optimiser: Optimiser,
    /// Whether the codebook has been updated: until then π_x is uniform.
    pub started: bool,
    /// Epochs done.
    pub epoch: usize,
    /// Where parts of a mini-batch are computed; the device alone unless there are several.
    pub replicas: Vec<Device>,
    /// The machines that share the run, when there are several.
    pub machines: Option<Arc<Machines>>,
    /// Of the loss, when convolutions multiply in f16.
    pub scaling: Option<Scaling>,
    pub(super) seed: u64,
    pub(super) device: Device,
}

impl Rdfc {
    /// A random start.
    pub fn new(experiment: &Experiment, inputs: usize, output: Output, seed: u64, device: &Device) -> Self {
        let (bottleneck, optimiser) = (&experiment.bottleneck, &experiment.optimiser);
        let mut random = Random::new(seed, "code means");
        let mean = || (random.normal() * INITIAL_MEAN_STD) as f32;
        let means = std::iter::repeat_with(mean).take(bottleneck.codes * bottleneck.dim).collect();
        Self {
            network: random_network(experiment, inputs, output, seed, device),
            codebook: Codebook::new(means, bottleneck.dim, bottleneck.covariance),
            network_optimiser: Optimiser::of(optimiser),
            means_optimiser: Optimiser::new(Rule::Adam, 0.0, None),
            started: false,
            epoch: 0,
            replicas: vec![device.clone()],
            machines: None,
            scaling: None,
            seed,
            device: device.clone(),
        }
    }

    /// Steps 1–4 on all `examples`.
    pub fn epoch(&mut self, experiment: &Experiment, examples: &Examples) -> Epoch {
        // Nobody stops it.
        self.epoch_watched(experiment, examples, &mut |_| ControlFlow::Continue(())).unwrap_or_default()
    }

    /// [`Rdfc::epoch`] that tells `watch` after each gradient step how many examples step 1 has seen. When `watch` breaks, the
    /// epoch ends there, unfinished, and gives nothing.
    pub fn epoch_watched(
        &mut self,
        experiment: &Experiment,
        examples: &Examples,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Option<Epoch> {
        let mut report = self.network_step(experiment, examples, watch)?;
        self.codebook_step(experiment, examples, &mut report);
        self.epoch += 1;
        report.number = self.epoch;
        report.usage.clone_from(&self.codebook.priors);
        Some(report)
    }

    /// The codebook as tensors for training.
    pub(super) fn tensors(&self) -> Codes {
        self.tensors_on(&self.device)
    }

    pub(super) fn tensors_on(&self, device: &Device) -> Codes {
        let expand = self.codebook.means.len() >= EXPAND_NUMBERS;
        Codes { expand, ..self.codebook.tensors(device, DType::F32) }
    }

    /// α of this epoch's assignments: rises to its value while the codes settle.
    pub(super) fn alpha(&self, experiment: &Experiment) -> f64 {
        let config = &experiment.codebook;
        let since = self.epoch.saturating_sub(config.warmup) as f64;
        let done = if config.anneal == 0 { 1.0 } else { (since / config.anneal as f64).min(1.0) };
        experiment.objective.alpha * (config.anneal_from + (1.0 - config.anneal_from) * done)
    }

    /// Weight of the distortion: αβ, or 0 while the network warms up for a data-driven start of the codes.
    pub(super) fn distortion_weight(&self, experiment: &Experiment) -> f64 {
        let waiting = experiment.codebook.start != Start::Normal && !self.started;
        if waiting { 0.0 } else { experiment.objective.alpha * experiment.objective.beta }
    }
}

/// Examples in the order of an epoch, in mini-batches.
pub(crate) fn batches(experiment: &Experiment, seed: u64, epoch: usize, count: usize) -> Vec<Vec<usize>> {
    let order = Random::new(seed, &format!("order {epoch}")).permutation(count);
    order.chunks(experiment.training.batch_of(count).max(1)).map(<[usize]>::to_vec).collect()
}

/// Random weights for an experiment on `inputs` numbers, on `device` with gradients.
fn random_network(
    experiment: &Experiment,
    inputs: usize,
    output: Output,
    seed: u64,
    device: &Device,
) -> Network {
    let device = &device.clone().autodiff();
    let how = experiment.backbone.initialiser;
    let bottleneck = &experiment.bottleneck;
    let mut random = Random::new(seed, "weights");
    let learnt = experiment.backbone.images.as_ref().filter(|images| !images.frozen);
    let images =
        learnt.map(|images| ResNet::new(images.network, InitialWeights::Random(&mut random), device));
    let inputs = learnt.map_or(inputs, |images| images.network.features());
    let backbone = Mlp::random(inputs, &experiment.backbone.layers, how, &mut random, device);
    let features = experiment.backbone.layers.last().map_or(inputs, |layer| layer.units);
    let head_outputs = bottleneck.covariance.outputs(bottleneck.dim);
    let mut dense = |inputs, outputs, bias| Dense::random(inputs, outputs, bias, how, &mut random, device);
    let head = dense(features, head_outputs, bottleneck.head_bias);
    let decoder = dense(bottleneck.dim, output.width(), true);
    let mut network = Network {
        images,
        backbone,
        activation: bottleneck.activation,
        head,
        decoder,
        log_variance: output.log_variance(device),
        dim: bottleneck.dim,
        covariance: bottleneck.covariance,
        output,
        smoothing: experiment.objective.label_smoothing,
    };
    network.map(|parameter| parameter.require_grad());
    network
}
