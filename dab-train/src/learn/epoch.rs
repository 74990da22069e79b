//! Rate-distortion finite-cardinality learning: one epoch of alternating minimisation (method.md E8–E13, paper §4).
//!
//! ```text
//! 1  θ by gradient on  NLL + λ₂‖W‖² + αβ · mean_x u(x)         codebook fixed, π_x held constant     E8, E9
//! 2  π_x(κ) ∝ π(κ) exp(−α D_κ(x))                              θ fixed from here on                  E5
//! 3  m_κ by gradient on mean_x u(x), Σ_κ in closed form                                              E10, E11
//! 4  π(κ) = mean_x π_x(κ)                                                                            E12
//! ```
//!
//! θ is fixed in 2–4, so each example is encoded once and the encodings serve all three. Steps 2–4 live in
//! [`codes`]; what is surprising there is how codes are kept alive.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{
    clock::{Clock, EpochPart},
    examples::Examples,
    loss_scaling::Scaling,
    machines::Machines,
    network_step::{self, Batch, Cut, Loss, Share},
    optimiser::{Optimiser, Rule},
};
use crate::{
    config::{Experiment, Start},
    model::{
        codebook::{Codebook, Codes, INITIAL_MEAN_STD},
        network::{Network, Output},
    },
    support::random::Random,
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
    /// Mini-batches that were skipped because their gradients, in f16, were not finite.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &usize) -> bool {
    *number == 0
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
    /// Where the time goes; off unless started.
    pub clock: Clock,
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
    #[must_use]
    pub fn new(experiment: &Experiment, inputs: usize, output: Output, seed: u64, device: &Device) -> Self {
        let (bottleneck, optimiser) = (&experiment.bottleneck, &experiment.optimiser);
        let mut random = Random::new(seed, "code means");
        let mean = || (random.normal() * INITIAL_MEAN_STD) as f32;
        let means = std::iter::repeat_with(mean).take(bottleneck.codes * bottleneck.dim).collect();
        Self {
            network: Network::random(experiment, inputs, output, seed, device),
            codebook: Codebook::new(means, bottleneck.dim, bottleneck.covariance),
            network_optimiser: Optimiser::of(optimiser),
            means_optimiser: Optimiser::new(Rule::Adam, 0.0, None),
            started: false,
            epoch: 0,
            clock: Clock::default(),
            replicas: vec![device.clone()],
            machines: None,
            scaling: None,
            seed,
            device: device.clone(),
        }
    }

    /// Steps 1–4 on all `examples`.
    pub fn epoch(&mut self, experiment: &Experiment, examples: &Examples) -> Epoch {
        self.epoch_watched(experiment, examples, &mut |_| ())
    }

    /// [`Rdfc::epoch`] that tells `watch` after each gradient step how many examples step 1 has seen.
    pub fn epoch_watched(
        &mut self,
        experiment: &Experiment,
        examples: &Examples,
        watch: &mut dyn FnMut(usize),
    ) -> Epoch {
        let mut report = self.network_step(experiment, examples, watch);
        self.codebook_step(experiment, examples, &mut report);
        self.epoch += 1;
        report.number = self.epoch;
        report.usage.clone_from(&self.codebook.priors);
        report
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

    /// Examples in the order of this epoch, in mini-batches.
    pub(super) fn batches(&self, experiment: &Experiment, count: usize) -> Vec<Vec<usize>> {
        let size = if experiment.training.batch == 0 { count } else { experiment.training.batch };
        let order = Random::new(self.seed, &format!("order {}", self.epoch)).permutation(count);
        order.chunks(size.max(1)).map(<[usize]>::to_vec).collect()
    }

    /// Step 1: θ by gradient on E8 (or E9), all mini-batches, codebook fixed.
    fn network_step(
        &mut self,
        experiment: &Experiment,
        examples: &Examples,
        watch: &mut dyn FnMut(usize),
    ) -> Epoch {
        let batches = self.batches(experiment, examples.len());
        let (alpha, weight) = (self.alpha(experiment), self.distortion_weight(experiment));
        let on = |device: &Device| {
            let codes = self.tensors_on(device).tracked();
            let calibrated = experiment.objective.calibrated;
            Loss { codes, started: self.started, alpha, weight, calibrated, scale: 1.0 }
        };
        let mut losses: Vec<_> = self.replicas.iter().map(|device| (device.clone(), on(device))).collect();
        let accumulate = experiment.training.accumulate;
        let rate_share = experiment.backbone.images.as_ref().map_or(1.0, |images| images.rate_share);
        let mut random = Random::new(self.seed, &format!("noise {}", self.epoch));
        let mut normals = |shape: [usize; 2]| {
            let values = (0..shape[0] * shape[1]).map(|_| random.normal() as f32).collect();
            Tensor::<2>::from_data(TensorData::new::<f32, _>(values, shape), &self.device)
        };
        let mut sums = Tensor::<1>::zeros([3], &self.device);
        let (mut seen, mut left_out) = (0, 0);
        let mut report = Epoch { examples: examples.len(), ..Epoch::default() };
        let share = Share::of(losses.len(), self.machines.as_deref());
        let here = |count| Cut::new(count, share, accumulate).rows_here().collect();
        let needed = self.machines.is_some().then(|| batches.iter().map(|rows| here(rows.len())).collect());
        let stream = batches.iter().zip(examples.stream(&batches, needed, self.epoch));
        for (step, (rows, (mut x, wanted))) in stream.enumerate() {
            let [batch, inputs] = x.dims();
            if let Some(factor) = &examples.noise {
                x = x + normals([batch, inputs]).matmul(factor.clone().transpose());
            }
            let scale = self.scaling.map_or(1.0, |scaling| scaling.factor);
            losses.iter_mut().for_each(|(_, loss)| loss.scale = scale);
            let batch = Batch { x, wanted, noise: normals([batch, self.network.dim]) };
            let found = match losses.as_slice() {
                [(_, loss)] if accumulate <= 1 && self.machines.is_none() => {
                    loss.step(&mut self.network, batch, &mut self.clock)
                }
                _ => network_step::step(&self.network, &losses, accumulate, &batch, self.machines.as_deref()),
            };
            self.clock.lap(EpochPart::Backward);
            seen += rows.len();
            watch(seen);
            if !self.scaling.as_mut().is_none_or(|scaling| scaling.accept(&found)) {
                report.skipped += 1;
                left_out += rows.len();
                continue;
            }
            let done = self.epoch as f64 + step as f64 / batches.len() as f64;
            let optimiser = &experiment.optimiser;
            report.learning_rate = optimiser.learning_rate
                * optimiser.schedule.factor_at(done, experiment.training.epochs as f64);
            let (slow, images) = (report.learning_rate * rate_share, self.network.image_parameters());
            let rate = |index: usize| if index < images { slow } else { report.learning_rate };
            let parameters = self.network.parameters_mut();
            self.network_optimiser.step_by(parameters, found.gradients, rate);
            self.network.absorb(found.statistics);
            self.clock.lap(EpochPart::Update);
            sums = sums + found.means.mul_scalar(rows.len() as f64 / examples.len() as f64);
        }
        // Means over the examples that counted; none, and the loss is no number.
        let count = if self.scaling.is_some_and(Scaling::is_lost) { 0 } else { seen - left_out };
        let share = seen as f64 / count as f64;
        let means: Vec<f64> = sums.into_data().iter::<f64>().map(|mean| mean * share).collect();
        (report.nll, report.distortion, report.hinge) = (means[0], means[1], means[2]);
        report
    }
}
