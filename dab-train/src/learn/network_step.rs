//! Step 1 of an epoch: gradient steps of E8 (or E9), each whole or in parts: one after the other (gradient accumulation), on several devices
//! at once (replicas), on several machines.
//!
//! ```text
//! gradient of a mini-batch = Σ_parts (rows of the part / rows) · gradient of the part's mean loss
//! ```
//!
//! Noise is drawn for the whole mini-batch and then cut, so parts change the sums' order and nothing else. Two things are
//! means over a part, as in any data-parallel training: the statistics that norms divide by, and the two means of E9. The running
//! statistics of norms, which the finished network uses, are moved by those of the whole mini-batch.

use std::ops::{ControlFlow, Range};

use burn::tensor::{Device, Tensor, TensorData};

use super::{
    epoch::{Epoch, Rdfc},
    examples::Examples,
    loss_scaling::Scaling,
    machines::Machines,
};
use crate::{
    config::{Calibrated, Experiment},
    model::{
        codebook::{Codes, uncertainty},
        conv::{self, Statistics},
        divergence,
        network::{Network, Wanted},
        product::Product,
    },
    support::random::Random,
};

impl Rdfc {
    /// Step 1: θ by gradient on E8 (or E9), all mini-batches, codebook fixed.
    pub(super) fn network_step(
        &mut self,
        experiment: &Experiment,
        examples: &Examples,
        watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Option<Epoch> {
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
                x = x + normals([batch, inputs]).product(factor.clone().transpose());
            }
            let scale = self.scaling.map_or(1.0, |scaling| scaling.factor);
            losses.iter_mut().for_each(|(_, loss)| loss.scale = scale);
            let batch = Batch { x, wanted, noise: normals([batch, self.network.dim]) };
            let found = match losses.as_slice() {
                [(_, loss)] if accumulate <= 1 && self.machines.is_none() => {
                    loss.step(&mut self.network, batch)
                }
                _ => step_in_parts(&self.network, &losses, accumulate, &batch, self.machines.as_deref()),
            };
            seen += rows.len();
            if watch(seen).is_break() {
                return None;
            }
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
            sums = sums + found.means.mul_scalar(rows.len() as f64 / examples.len() as f64);
        }
        // Means over the examples whose step was taken. If no step was, the division by 0 gives NaN, and the run stops.
        let count = if self.scaling.is_some_and(Scaling::is_lost) { 0 } else { seen - left_out };
        let share = seen as f64 / count as f64;
        let means: Vec<f64> = sums.into_data().iter::<f64>().map(|mean| mean * share).collect();
        (report.nll, report.distortion, report.hinge) = (means[0], means[1], means[2]);
        Some(report)
    }
}

/// Inputs, targets and noise of a mini-batch, without gradients.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// `[batch, inputs]`.
    pub x: Tensor<2>,
    /// One target per row.
    pub wanted: Wanted,
    /// ε of the sample `[batch, d]`.
    pub noise: Tensor<2>,
}

impl Batch {
    fn len(&self) -> usize {
        self.x.dims()[0]
    }

    /// Some of the rows, on `device`.
    fn part(&self, rows: Range<usize>, device: &Device) -> Self {
        let cut = |tensor: &Tensor<2>| tensor.clone().narrow(0, rows.start, rows.len()).to_device(device);
        let wanted = match &self.wanted {
            Wanted::Values(values) => Wanted::Values(cut(values)),
            Wanted::Classes(one_hot) => Wanted::Classes(cut(one_hot)),
        };
        Self { x: cut(&self.x), wanted, noise: cut(&self.noise) }
    }
}

/// What a step (or a part of it) found.
#[derive(Debug)]
pub(super) struct Found {
    /// One per parameter.
    pub gradients: Vec<Option<Tensor<2>>>,
    /// Mean NLL, distortion and hinge.
    pub means: Tensor<1>,
    /// Of the norms; of a part, as sums.
    pub statistics: Vec<Statistics>,
}

impl Found {
    /// What can be added to other parts: gradients and means times `factor`, statistics as sums about `references`, on `device`.
    fn part(self, factor: f64, references: &[Tensor<2>], device: &Device) -> Self {
        let scale = |tensor: Tensor<2>| tensor.to_device(device).mul_scalar(factor);
        let statistics = self.statistics.into_iter().zip(references);
        Self {
            gradients: self.gradients.into_iter().map(|gradient| gradient.map(scale)).collect(),
            means: self.means.to_device(device).mul_scalar(factor),
            statistics: statistics
                .map(|(all, reference)| conv::sums(all.map(|tensor| tensor.to_device(device)), reference))
                .collect(),
        }
    }

    /// The step, when all its parts have been added.
    fn whole(self, references: &[Tensor<2>]) -> Self {
        let statistics = self.statistics.into_iter().zip(references);
        Self {
            statistics: statistics.map(|(sums, reference)| conv::from_sums(sums, reference)).collect(),
            ..self
        }
    }

    /// Everything, for the way to another machine.
    fn into_list(self) -> Vec<Option<Tensor<2>>> {
        let statistics = self.statistics.into_iter().flatten().map(Some);
        self.gradients.into_iter().chain([Some(self.means.unsqueeze_dim(0))]).chain(statistics).collect()
    }

    /// Back from [`Found::into_list`]; of an empty list, no gradient and no number.
    fn from_list(mut list: Vec<Option<Tensor<2>>>, parameters: usize, device: &Device) -> Self {
        let mut rest = list.split_off(parameters.min(list.len())).into_iter().flatten();
        let means = rest.next().map(|means| means.squeeze_dim(0));
        let rest: Vec<_> = rest.collect();
        Self {
            gradients: list,
            means: means.unwrap_or_else(|| Tensor::full([3], f32::NAN, device)),
            statistics: rest
                .chunks_exact(3)
                .map(|sums| [sums[0].clone(), sums[1].clone(), sums[2].clone()])
                .collect(),
        }
    }

    fn plus(self, other: Self) -> Self {
        let add = |(a, b): (Option<Tensor<2>>, Option<Tensor<2>>)| match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        let statistics = self.statistics.into_iter().zip(other.statistics);
        Self {
            gradients: self.gradients.into_iter().zip(other.gradients).map(add).collect(),
            means: self.means + other.means,
            statistics: statistics.map(|([m, v, c], [n, w, d])| [m + n, v + w, c + d]).collect(),
        }
    }
}

/// The loss of a step.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// Tracked, on the device of the step.
    pub codes: Codes,
    /// Whether π_x is E5's; uniform before the codes' first update.
    pub started: bool,
    /// α of E5.
    pub alpha: f64,
    /// αβ of E8.
    pub weight: f64,
    /// E9, from the codes' first update on.
    pub calibrated: Option<Calibrated>,
    /// s of loss scaling; 1 without.
    pub scale: f64,
}

impl Loss {
    /// Gradients of E8 (or E9) on a batch.
    pub fn step(&self, network: &mut Network, batch: Batch) -> Found {
        let (x, wanted) = (batch.x.autodiff(), batch.wanted.tracked());
        let mut statistics = Vec::new();
        let encoding = network.encode_taking(x, Some(&mut statistics));
        let z = encoding.sample(batch.noise.autodiff()); // [batch, d]
        let outputs = network.decoder.forward(z); // [batch, outputs]                          E7
        let distances = divergence::kl(&encoding, &self.codes); // [batch, codes]              E4
        let assignment = if self.started {
            self.codes.assign(&distances, self.alpha) // [batch, codes]                        E5, no gradient
        } else {
            let codes = distances.dims()[1];
            distances.clone().detach().full_like(1.0 / codes as f64)
        };
        let u = uncertainty(assignment, distances); // [batch, 1]                              E6
        let nll = network.nll(outputs.clone(), &wanted).mean();
        let (distortion, hinge) = match (self.calibrated, wanted) {
            (Some(calibrated), Wanted::Classes(one_hot)) if self.started => {
                split_distortion(u, Network::correct(outputs, one_hot), calibrated)
            }
            _ => (u.clone().mean(), u.zeros_like().mean()),
        };
        let hinge_weight = self.calibrated.map_or(0.0, |calibrated| calibrated.weight);
        let means = Tensor::cat(vec![nll.clone(), distortion.clone(), hinge.clone()], 0);
        let loss = nll + distortion.mul_scalar(self.weight) + hinge.mul_scalar(hinge_weight); // E8, E9
        let scaled = self.scale != 1.0;
        let mut gradients = if scaled { loss.mul_scalar(self.scale) } else { loss }.backward();
        let parameters = network.parameters_mut();
        let own = parameters.iter().map(|parameter| {
            let gradient = parameter.grad_remove(&mut gradients)?;
            Some(if scaled { gradient.div_scalar(self.scale) } else { gradient })
        });
        Found { gradients: own.collect(), means: means.without_autodiff(), statistics }
    }
}

/// Gradients on a batch in parts: `accumulate` for each loss of each machine; one thread per loss, each on its own device.
fn step_in_parts(
    network: &Network,
    losses: &[(Device, Loss)],
    accumulate: usize,
    batch: &Batch,
    machines: Option<&Machines>,
) -> Found {
    let (count, home) = (batch.len(), batch.x.device());
    let references = network.running_means();
    let share = Share::of(losses.len(), machines);
    let cut = Cut::new(count, share, accumulate);
    let replica = |index: usize| -> Option<Found> {
        let (device, loss) = &losses[index];
        let mut network = network.frozen().on(device);
        network.map(|parameter| parameter.autodiff().require_grad());
        let own = cut.parts_of(share.first + index).map(|rows| {
            let weight = rows.len() as f64 / count as f64;
            loss.step(&mut network, batch.part(rows, device)).part(weight, &references, &home)
        });
        own.reduce(Found::plus)
    };
    let own = threads(losses.len(), replica).into_iter().flatten().reduce(Found::plus);
    let all = match machines {
        None => own.expect("a mini-batch has rows"),
        Some(machines) => {
            let parameters = network.clone().parameters_mut().len();
            let own = own.map_or_else(Vec::new, Found::into_list);
            Found::from_list(machines.add(own, &home), parameters, &home)
        }
    };
    all.whole(&references)
}

/// Which of all replicas, on all machines, are here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The first.
    pub first: usize,
    /// How many are here.
    pub here: usize,
    /// How many there are everywhere.
    pub all: usize,
}

/// How a mini-batch is cut into parts, which all replicas take in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    count: usize,
    parts: usize,
    share: Share,
}

impl Cut {
    /// A mini-batch of `count` rows; `accumulate` parts for each replica, as far as there are rows.
    pub fn new(count: usize, share: Share, accumulate: usize) -> Self {
        Self { count, parts: (share.all * accumulate.max(1)).min(count.max(1)), share }
    }

    /// Rows of the parts that a replica takes: parts are as equal as possible.
    fn parts_of(self, replica: usize) -> impl Iterator<Item = Range<usize>> {
        let rows = move |part: usize| part * self.count / self.parts..(part + 1) * self.count / self.parts;
        (replica..self.parts).step_by(self.share.all).map(rows)
    }

    /// All rows that this machine computes.
    pub fn rows_here(self) -> impl Iterator<Item = usize> {
        let Share { first, here, .. } = self.share;
        (first..first + here).flat_map(move |replica| self.parts_of(replica)).flatten()
    }
}

impl Share {
    /// The share of a machine with `here` replicas; the others have as many.
    pub fn of(here: usize, machines: Option<&Machines>) -> Self {
        let (index, count) = machines.map_or((0, 1), |machines| (machines.place.index, machines.place.count));
        Self { first: index * here, here, all: count * here }
    }
}

/// `f(0)`, …, `f(count − 1)`, each in a thread of its own; one alone stays in this one.
pub(super) fn threads<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if count == 1 {
        return vec![f(0)];
    }
    let f = &f;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|index| scope.spawn(move || f(index))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a replica's panic is the step's")).collect()
    })
}

/// E9: the mean of u over correctly classified examples, and of max(0, U_lb − u) over the others.
fn split_distortion(u: Tensor<2>, correct: Tensor<2>, calibrated: Calibrated) -> (Tensor<1>, Tensor<1>) {
    let wrong = correct.clone().neg().add_scalar(1.0);
    let mean = |values: Tensor<2>, of: Tensor<2>| (values * of.clone()).sum() / of.sum().clamp_min(1.0);
    let short = u.clone().neg().add_scalar(calibrated.least).clamp_min(0.0);
    (mean(u, correct), mean(short, wrong))
}
