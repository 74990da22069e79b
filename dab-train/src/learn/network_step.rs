//! Step 1 of an epoch: gradient steps of E8 (or E9), each whole or in parts: one after the other (gradient accumulation), on several devices
//! at once (replicas), on several machines.
//!
//! ```text
//! gradient of a mini-batch = Σ_parts (rows of the part / rows) · gradient of the part's mean loss
//! ```
//!
//! Noise is drawn for the whole mini-batch and then cut, and the two means of E9 are over the whole mini-batch, so parts change the
//! sums' order and nothing else, but for one thing: as in any data-parallel training, norms divide by the statistics of their
//! part. The running statistics of norms, which the finished network uses, are moved by those of the whole mini-batch.
//! `training.synchronised_norms` makes norms divide by those, too: all parts then go through the network together, layer by layer.

use std::ops::{ControlFlow, Range};

use burn::tensor::{Device, Gradients, Tensor, TensorData};

use super::{
    epoch::{Epoch, Rdfc, batches},
    examples::Examples,
    loss_scaling::Scaling,
    machines::Machines,
    parts::{Cut, Share, threads},
};
use crate::{
    config::{Calibrated, Experiment},
    model::{
        codebook::{Codes, uncertainty},
        conv::{self, Statistics},
        divergence,
        encoder::Encoding,
        network::{Network, Output},
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
        let batches = batches(experiment, self.seed, self.epoch, examples.len());
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
            let [batch, _] = x.dims();
            if let Some(factor) = &examples.noise {
                let [_, sources] = factor.dims();
                x = x + normals([batch, sources]).product(factor.clone().transpose());
            }
            let scale = self.scaling.map_or(1.0, |scaling| scaling.factor);
            losses.iter_mut().for_each(|(_, loss)| loss.scale = scale);
            let batch = Batch { x, wanted, noise: normals([batch, self.network.dim]) };
            let found = match losses.as_slice() {
                [(_, loss)] if accumulate <= 1 && self.machines.is_none() => {
                    loss.step(&mut self.network, batch, None)
                }
                _ if experiment.training.synchronised_norms => step_together(&self.network, &losses, &batch),
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
            report.learning_rate = experiment.rate_at(done);
            let images = self.network.images.as_mut().map_or(0, |images| images.parameters_mut().count());
            let slow = report.learning_rate * rate_share;
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
    /// One target per row: numbers, or one-hot.
    pub wanted: Tensor<2>,
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
        Self { x: cut(&self.x), wanted: cut(&self.wanted), noise: cut(&self.noise) }
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

/// What E9 must know about the mini-batch that a batch is a part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeBatch {
    /// Examples that are classified correctly, and others.
    correct: f64,
    wrong: f64,
    /// The part's share of the mini-batch.
    share: f64,
}

/// A batch that has gone through the network.
struct Judged {
    nll: Tensor<1>,
    /// `[batch, 1]`.
    u: Tensor<2>,
    /// 1 for an example that is classified correctly, if E9 asks `[batch, 1]`.
    correct: Option<Tensor<2>>,
}

impl Loss {
    /// Gradients of E8 (or E9) on a batch, or on a part of one.
    pub fn step(&self, network: &mut Network, batch: Batch, whole: Option<WholeBatch>) -> Found {
        let mut statistics = Vec::new();
        let encoding = network.encode_taking(batch.x.autodiff(), Some(&mut statistics));
        let judged = self.judge(network, &encoding, batch.noise.autodiff(), batch.wanted.autodiff());
        let (loss, means) = self.sum(judged, whole);
        let mut gradients = self.scaled(loss).backward();
        Found { gradients: self.collect(network, &mut gradients), means, statistics }
    }

    /// Whether E9 separates right from wrong answers of a network.
    fn splits(&self, network: &Network) -> bool {
        self.calibrated.is_some() && self.started && matches!(network.output, Output::Classes(_))
    }

    fn judge(&self, network: &Network, encoding: &Encoding, noise: Tensor<2>, wanted: Tensor<2>) -> Judged {
        let z = encoding.sample(noise); // [batch, d]
        let outputs = network.decoder.forward(z); // [batch, outputs]                          E7
        let distances = divergence::kl(encoding, &self.codes); // [batch, codes]               E4
        let assignment = self.codes.assign_from(self.started, &distances, self.alpha); //      E5, no gradient
        let u = uncertainty(assignment, distances); // [batch, 1]                              E6
        let nll = network.nll(outputs.clone(), &wanted).mean();
        let correct = self.splits(network).then(|| Network::correct(outputs, wanted));
        Judged { nll, u, correct }
    }

    /// E8 or E9, and mean NLL, distortion and hinge.
    fn sum(&self, Judged { nll, u, correct }: Judged, whole: Option<WholeBatch>) -> (Tensor<1>, Tensor<1>) {
        let (distortion, hinge) = match (self.calibrated, correct) {
            (Some(calibrated), Some(correct)) => split_distortion(u, correct, calibrated, whole),
            _ => (u.clone().mean(), u.zeros_like().mean()),
        };
        let hinge_weight = self.calibrated.map_or(0.0, |calibrated| calibrated.weight);
        let means = Tensor::cat(vec![nll.clone(), distortion.clone(), hinge.clone()], 0);
        let loss = nll + distortion.mul_scalar(self.weight) + hinge.mul_scalar(hinge_weight); // E8, E9
        (loss, means.without_autodiff())
    }

    fn scaled(&self, loss: Tensor<1>) -> Tensor<1> {
        if self.scale == 1.0 { loss } else { loss.mul_scalar(self.scale) }
    }

    /// One gradient per parameter, of a loss that was [`Loss::scaled`].
    fn collect(&self, network: &mut Network, gradients: &mut Gradients) -> Vec<Option<Tensor<2>>> {
        let parameters = network.parameters_mut();
        let own = parameters.iter().map(|parameter| {
            let gradient = parameter.grad_remove(gradients)?;
            Some(if self.scale == 1.0 { gradient } else { gradient.div_scalar(self.scale) })
        });
        own.collect()
    }
}

/// A copy of the network on a device, to be learnt from a part of a mini-batch.
fn replica_of(network: &Network, device: &Device) -> Network {
    let mut network = network.frozen().on(device);
    network.map(|parameter| parameter.autodiff().require_grad());
    network
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
    let correct = losses[0].1.splits(network).then(|| {
        let own = threads(losses.len(), |index| {
            let parts = cut.parts_of(share.first + index);
            correct_in(network, &losses[index].0, batch, parts).map(|correct| correct.to_device(&home))
        });
        let own = own.into_iter().flatten().reduce(|a, b| a + b);
        let all = match machines {
            None => own,
            Some(machines) => {
                let own = own.map_or_else(Vec::new, |correct| vec![Some(correct)]);
                machines.add(own, &home).into_iter().flatten().next()
            }
        };
        all.map_or(0.0, |correct| correct.into_scalar::<f64>())
    });
    let replica = |index: usize| -> Option<Found> {
        let (device, loss) = &losses[index];
        let mut network = replica_of(network, device);
        let own = cut.parts_of(share.first + index).map(|rows| {
            let share = rows.len() as f64 / count as f64;
            let whole = correct.map(|correct| WholeBatch { correct, wrong: count as f64 - correct, share });
            loss.step(&mut network, batch.part(rows, device), whole).part(share, &references, &home)
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

/// How many examples of some parts are classified correctly `[1, 1]`. One pass through the network more, without gradients: the parts
/// of a step need not be in memory together, and every one of them needs the sum.
fn correct_in(
    network: &Network,
    device: &Device,
    batch: &Batch,
    parts: impl Iterator<Item = Range<usize>>,
) -> Option<Tensor<2>> {
    let network = network.frozen().on(device);
    let count = |rows| {
        let Batch { x, wanted, noise } = batch.part(rows, device);
        let outputs = network.decoder.forward(network.encode_taking(x, Some(&mut Vec::new())).sample(noise));
        Network::correct(outputs, wanted).sum_dim(0)
    };
    parts.map(count).reduce(|a, b| a + b)
}

/// Gradients on a batch in parts, one for each loss on its own device, whose norms use the statistics of the whole batch. The parts
/// go through the network together, so that one backward pass goes through all of them.
fn step_together(network: &Network, losses: &[(Device, Loss)], batch: &Batch) -> Found {
    let (count, home) = (batch.len(), batch.x.device());
    let cut = Cut::new(count, Share::of(losses.len(), None), 1);
    let rows = (0..losses.len()).map(|replica| cut.parts_of(replica).next());
    // A mini-batch may have fewer rows than there are devices.
    let (rows, losses): (Vec<_>, Vec<_>) =
        rows.zip(losses).filter_map(|(rows, loss)| Some((rows?, loss))).unzip();
    let mut networks: Vec<Network> = losses.iter().map(|(device, _)| replica_of(network, device)).collect();
    let parts: Vec<Batch> =
        rows.iter().zip(&losses).map(|(rows, (device, _))| batch.part(rows.clone(), device)).collect();
    let mut statistics = Vec::new();
    let xs = parts.iter().map(|part| part.x.clone().autodiff()).collect();
    let encodings = Network::encode_parts(&networks, xs, Some(&mut statistics));
    let judged: Vec<Judged> = networks
        .iter()
        .zip(encodings)
        .zip(parts)
        .zip(&losses)
        .map(|(((network, encoding), part), (_, loss))| {
            loss.judge(network, &encoding, part.noise.autodiff(), part.wanted.autodiff())
        })
        .collect();
    let correct: f64 = judged
        .iter()
        .filter_map(|part| part.correct.as_ref())
        .map(|correct| correct.clone().sum().into_scalar::<f64>())
        .sum();
    let sums = judged.into_iter().zip(&losses).zip(rows).map(|((judged, (_, loss)), rows)| {
        let share = rows.len() as f64 / count as f64;
        let whole = WholeBatch { correct, wrong: count as f64 - correct, share };
        let (part, means) = loss.sum(judged, Some(whole));
        (part.mul_scalar(share), means.to_device(&home).mul_scalar(share))
    });
    let (loss, means) = sums
        .reduce(|(sum, others), (part, means)| {
            let there = sum.device();
            (sum + part.to_device(&there), others + means)
        })
        .expect("a mini-batch has rows");
    let mut gradients = losses[0].1.scaled(loss).backward();
    let all = networks.iter_mut().zip(&losses).map(|(network, (_, loss))| {
        let own = loss.collect(network, &mut gradients);
        let gradients = own.into_iter().map(|gradient| gradient.map(|gradient| gradient.to_device(&home)));
        Found { gradients: gradients.collect(), means: means.zeros_like(), statistics: Vec::new() }
    });
    let gradients = all.reduce(Found::plus).expect("a mini-batch has rows").gradients;
    let statistics = statistics.into_iter().map(|all| all.map(|tensor| tensor.to_device(&home))).collect();
    Found { gradients, means, statistics }
}

/// E9: the mean of u over correctly classified examples, and of max(0, U_lb − u) over the others; of a part, its share in the
/// means over the whole mini-batch, so that the sum of the parts' means times their shares is that mean.
fn split_distortion(
    u: Tensor<2>,
    correct: Tensor<2>,
    calibrated: Calibrated,
    whole: Option<WholeBatch>,
) -> (Tensor<1>, Tensor<1>) {
    let wrong = correct.clone().neg().add_scalar(1.0);
    let mean = |values: Tensor<2>, of: Tensor<2>, all: Option<f64>| {
        let sum = (values * of.clone()).sum();
        match (all, whole) {
            (Some(all), Some(whole)) => sum.div_scalar(all.max(1.0) * whole.share),
            _ => sum / of.sum().clamp_min(1.0),
        }
    };
    let short = u.clone().neg().add_scalar(calibrated.least).clamp_min(0.0);
    (mean(u, correct, whole.map(|whole| whole.correct)), mean(short, wrong, whole.map(|whole| whole.wrong)))
}
