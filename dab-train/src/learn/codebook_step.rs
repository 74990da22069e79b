//! Steps 2–4 of an epoch: who belongs to which code, where codes lie, how wide and how likely they are.
//!
//! Encodings → assignments (E5) → means (E10) → covariances (E11) and priors (E12), as sums over the pass
//! (`exact`) or as the published moving averages (`reference`, E13).
//!
//! The published start loses codes for good. Three things keep them: codes start from the encodings (k-means++ or one
//! per class), priors have a floor, and a code that hardly anybody uses starts again at an example that
//! is far from all codes.

use burn::tensor::{DType, Device, Tensor};

use super::{
    epoch::{Epoch, Rdfc},
    examples::Examples,
    kmeans,
    machines::Machines,
    parts::{Share, threads},
};
use crate::{
    config::{Experiment, Mode, Start},
    model::{
        codebook::{Codes, moments, uncertainty},
        divergence,
        encoder::Encoding,
        network::{Network, Output},
        product::Product,
        tensors::constant,
    },
    support::random::Random,
};

/// Encodings are kept for the whole step when they need no more than this.
const CACHE_BYTES: usize = 1 << 30;

/// All examples' encodings in fixed mini-batches, kept or made anew on each visit.
struct Encodings<'a> {
    network: Network,
    examples: &'a Examples,
    rows: Vec<Vec<usize>>,
    kept: Vec<(Encoding, Tensor<2>)>,
    calibrated: bool,
}

impl<'a> Encodings<'a> {
    /// Kept encodings are made by all replicas on all machines, mini-batch by mini-batch: each comes from one device, so the
    /// sums of E11 and E12 are the same whatever their number.
    fn new(model: &Rdfc, experiment: &Experiment, examples: &'a Examples) -> Self {
        let network = &model.network;
        let count = examples.len();
        let rows: Vec<usize> = (0..count).collect();
        let rows = rows.chunks(experiment.training.batch_of(count).max(1)).map(<[usize]>::to_vec).collect();
        let calibrated = experiment.objective.calibrated.is_some();
        let mut all = Self { network: network.frozen(), examples, rows, kept: Vec::new(), calibrated };
        if all.bytes() <= CACHE_BYTES {
            all.kept = all.make_all(&model.replicas, model.machines.as_deref());
        }
        all
    }

    /// What keeping all of them takes: μ, root, ln|Σ| and share of each example.
    fn bytes(&self) -> usize {
        let Network { dim, covariance, .. } = self.network;
        self.examples.len() * (dim + covariance.entries(dim) + 2) * size_of::<f32>()
    }

    /// Mini-batch `batch` and each example's share in the codebook `[batch, 1]`: 1, or 0 for the misclassified under E9.
    fn make(&self, batch: usize) -> (Encoding, Tensor<2>) {
        self.make_with(&self.network, batch, &self.examples.device())
    }

    /// [`Encodings::make`] by a copy of the network on `device`.
    fn make_with(&self, network: &Network, batch: usize, device: &Device) -> (Encoding, Tensor<2>) {
        let home = self.examples.device();
        let (x, wanted) = self.examples.select(&self.rows[batch]);
        let encoding = network.encode(x.to_device(device));
        let share = match network.output {
            Output::Classes(_) if self.calibrated => {
                let outputs = network.decoder.forward(encoding.mean.clone());
                Network::correct(outputs, wanted.to_device(device)).to_device(&home)
            }
            _ => encoding.log_det.ones_like().to_device(&home),
        };
        (encoding.map(|tensor| tensor.to_device(&home), |root| root.to_device(&home)), share)
    }

    fn make_all(&self, replicas: &[Device], machines: Option<&Machines>) -> Vec<(Encoding, Tensor<2>)> {
        let batches = self.rows.len();
        let Share { first, here, all } = Share::of(replicas.len(), machines);
        if all <= 1 {
            return (0..batches).map(|batch| self.make(batch)).collect();
        }
        let own = |index: usize| {
            let device = &replicas[index];
            let network = self.network.on(device);
            let own = (first + index..batches).step_by(all);
            own.map(|batch| self.make_with(&network, batch, device)).collect::<Vec<_>>()
        };
        let made = in_turn(threads(here, own));
        let Some(machines) = machines else { return made };
        let sent =
            made.into_iter().flat_map(|(encoding, share)| encoding.into_list().into_iter().chain([share]));
        let sent: Vec<Tensor<2>> = sent.collect();
        let lists = machines.list(&sent, &self.examples.device());
        let back = |list: Vec<Tensor<2>>| {
            let each = list.chunks_exact(PARTS).map(|parts| {
                let [mean, root, log_det, share] = std::array::from_fn(|part| parts[part].clone());
                (Encoding::from_list([mean, root, log_det], self.network.covariance), share)
            });
            each.collect::<Vec<_>>()
        };
        // A machine's mini-batches are its replicas' in turn; so are the machines'.
        let by_machine = lists.into_iter().map(back);
        let by_replica = by_machine.flat_map(|made| {
            let mut each: Vec<Vec<_>> = (0..here).map(|_| Vec::new()).collect();
            made.into_iter().enumerate().for_each(|(at, one)| each[at % here].push(one));
            each
        });
        in_turn(by_replica.collect())
    }

    fn batch(&self, batch: usize) -> (Encoding, Tensor<2>) {
        self.kept.get(batch).cloned().unwrap_or_else(|| self.make(batch))
    }

    fn iter(&self) -> impl Iterator<Item = (Encoding, Tensor<2>)> {
        (0..self.rows.len()).map(|batch| self.batch(batch))
    }
}

/// Tensors of an encoded mini-batch on their way: μ, root, ln|Σ|, share.
const PARTS: usize = 4;

/// The first of each list, the second of each, and so on.
fn in_turn<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let longest = lists.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    (0..longest).flat_map(|_| lists.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
}

fn numbers(tensor: Tensor<2>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn add(sum: &mut [f64], values: &[f64], factor: f64) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// Sums over a pass.
struct Sums {
    /// Σ_i w_iκ of E11.
    weights: Vec<f64>,
    /// Σ_i w_iκ [Σ + (μ − m)(μ − m)ᵀ].
    covs: Vec<f64>,
    /// Σ_i π_{x_i}(κ).
    priors: Vec<f64>,
    /// u of every example.
    uncertainty: Vec<f64>,
    /// Σ_i Σ_κ π_x(κ) ln π_x(κ).
    negative_entropy: f64,
}

impl Rdfc {
    /// Steps 2–4.
    pub(super) fn codebook_step(&mut self, experiment: &Experiment, examples: &Examples, report: &mut Epoch) {
        let config = &experiment.codebook;
        if !self.started && config.start != Start::Normal && self.epoch + 1 < config.warmup {
            return;
        }
        let encodings = Encodings::new(self, experiment, examples);
        if !self.started && config.start != Start::Normal {
            self.start(experiment, &encodings);
            return;
        }
        let alpha = self.alpha(experiment);
        if config.mode == Mode::Exact && config.mean_learning_rate == 0.0 {
            self.centre_means(&encodings, alpha);
        } else {
            self.means_by_gradient(&encodings, alpha, config.mean_learning_rate);
        }
        let sums = match config.mode {
            Mode::Exact => self.exact_sums(&encodings, alpha, config.pseudo_count),
            Mode::Reference => self.moving_averages(&encodings, alpha, config.pseudo_count, config.momentum),
        };
        self.codebook.set_covs(&sums.covs, &sums.weights, config.shrinkage());
        self.codebook.set_priors(&sums.priors, config.prior_floor);
        self.started = true;
        let total: f64 = sums.priors.iter().sum();
        let cross: f64 = sums.priors.iter().filter(|&&p| p > 0.0).map(|p| p * (p / total).ln()).sum();
        report.rate = (sums.negative_entropy - cross) / total;
        if (self.epoch as f64) < config.reseed_until * experiment.training.epochs as f64 {
            report.reseeded = self.reseed(config.reseed_below, &encodings, sums.uncertainty);
        }
    }

    /// π_x `[batch, codes]` (E5, uniform before the first update) times each example's share, and u `[batch, 1]`.
    fn assigned(
        &self,
        encoding: &Encoding,
        share: Tensor<2>,
        codes: &Codes,
        alpha: f64,
    ) -> (Tensor<2>, Tensor<2>) {
        let distances = divergence::kl(encoding, codes);
        let assignment = codes.assign_from(self.started, &distances, alpha);
        let u = uncertainty(assignment.clone(), distances);
        (assignment * share, u)
    }

    /// E10: one Adam step on mean_x u(x) for each mini-batch.
    fn means_by_gradient(&mut self, encodings: &Encodings, alpha: f64, rate: f64) {
        let mut codes = self.tensors().tracked();
        codes.means = codes.means.require_grad();
        for (encoding, share) in encodings.iter() {
            let (encoding, share) = (encoding.tracked(), share.autodiff());
            let distances = divergence::kl(&encoding, &codes); // [batch, codes]        E4
            let assignment = codes.assign_from(self.started, &distances, alpha); //     E5, no gradient
            let loss = (uncertainty(assignment, distances) * share).mean();
            let mut gradients = loss.backward();
            self.means_optimiser.step(vec![&mut codes.means], &mut gradients, rate);
        }
        self.codebook.means = codes.means.into_data().iter::<f32>().collect();
    }

    /// E10's minimum for fixed π_x: m_κ = Σ_i π_x(κ) μ(x_i) / Σ_i π_x(κ).
    fn centre_means(&mut self, encodings: &Encodings, alpha: f64) {
        let codes = self.tensors();
        let mut weights = vec![0.0; self.codebook.len()];
        let mut sums = vec![0.0; self.codebook.means.len()];
        for (encoding, share) in encodings.iter() {
            let (assignment, _) = self.assigned(&encoding, share, &codes, alpha);
            add(&mut sums, &numbers(assignment.clone().transpose().product(encoding.mean)), 1.0);
            add(&mut weights, &numbers(assignment.sum_dim(0)), 1.0);
        }
        self.codebook.set_means(&sums, &weights);
    }

    /// E11 and E12 as sums over the whole pass.
    fn exact_sums(&mut self, encodings: &Encodings, alpha: f64, pseudo_count: f64) -> Sums {
        let mut sums = self.no_sums();
        self.visit(encodings, alpha, pseudo_count, &mut sums, |sums, weights, covs, priors| {
            add(&mut sums.weights, &weights, 1.0);
            add(&mut sums.covs, &covs, 1.0);
            add(&mut sums.priors, &priors, 1.0);
        });
        sums
    }

    /// E13 as published: averages over mini-batches with momentum γ, from 0 (Σ) and uniform (π), never bias-corrected.
    fn moving_averages(
        &mut self,
        encodings: &Encodings,
        alpha: f64,
        pseudo_count: f64,
        momentum: f64,
    ) -> Sums {
        let codes = self.codebook.len();
        let entries = self.codebook.covs.len() / codes;
        let mut sums = self.no_sums();
        sums.weights.fill(1.0);
        sums.priors.fill(1.0 / codes as f64);
        self.visit(encodings, alpha, pseudo_count, &mut sums, |sums, weights, covs, priors| {
            let total: f64 = priors.iter().sum();
            // Under E9, all of a mini-batch may be misclassified: it says nothing about codes.
            if total == 0.0 {
                return;
            }
            // A code that nobody in the mini-batch uses stays as it is.
            let used = |index: usize| weights[index / entries] > 0.0;
            for (index, cov) in sums.covs.iter_mut().enumerate().filter(|(index, _)| used(*index)) {
                *cov = momentum * *cov + (1.0 - momentum) * covs[index] / weights[index / entries];
            }
            for (prior, sum) in sums.priors.iter_mut().zip(&priors) {
                *prior = momentum * *prior + (1.0 - momentum) * sum / total;
            }
        });
        // As sums over examples again, which is what the rate is taken of.
        sums.priors.iter_mut().for_each(|prior| *prior *= encodings.examples.len() as f64);
        sums
    }

    fn no_sums(&self) -> Sums {
        let codes = self.codebook.len();
        Sums {
            weights: vec![0.0; codes],
            covs: vec![0.0; self.codebook.covs.len()],
            priors: vec![0.0; codes],
            uncertainty: Vec::new(),
            negative_entropy: 0.0,
        }
    }

    /// One pass: gives each mini-batch's Σw, Σw[…] and Σπ_x to `take`, and fills the rest of `sums`.
    fn visit(
        &mut self,
        encodings: &Encodings,
        alpha: f64,
        pseudo_count: f64,
        sums: &mut Sums,
        take: impl Fn(&mut Sums, Vec<f64>, Vec<f64>, Vec<f64>),
    ) {
        let codes = self.tensors();
        for (encoding, share) in encodings.iter() {
            let (assignment, u) = self.assigned(&encoding, share.clone(), &codes, alpha);
            let weights = assignment.clone() + share.mul_scalar(pseudo_count); // [batch, codes]
            let (weights, covs) = moments(&encoding, weights, codes.means.clone(), self.codebook.kind);
            let (weights, covs) = (numbers(weights), numbers(covs));
            let logs = assignment.clone().clamp_min(f64::from(f32::MIN_POSITIVE)).log();
            sums.negative_entropy += (assignment.clone() * logs).sum().into_scalar::<f64>();
            sums.uncertainty.extend(numbers(u));
            take(sums, weights, covs, numbers(assignment.sum_dim(0)));
        }
    }

    /// The codes' data-driven start: each takes the moments of its cluster or class.
    fn start(&mut self, experiment: &Experiment, encodings: &Encodings) {
        let codes = self.codebook.len();
        let means: Vec<f32> = encodings
            .iter()
            .flat_map(|(encoding, _)| encoding.mean.into_data().iter::<f32>().collect::<Vec<_>>())
            .collect();
        let member: Vec<usize> = match (experiment.codebook.start, &encodings.examples.labels) {
            (Start::Classes, Some(labels)) => labels.iter().map(|&label| label as usize).collect(),
            _ => kmeans::clusters(&means, self.codebook.dim, codes, &mut Random::new(self.seed, "clusters")),
        };
        let dim = self.codebook.dim;
        let mut counts = vec![0.0; codes];
        let mut sums = vec![0.0; codes * dim];
        for (point, &code) in means.chunks_exact(dim).zip(&member) {
            counts[code] += 1.0;
            point.iter().enumerate().for_each(|(i, &value)| sums[code * dim + i] += f64::from(value));
        }
        self.codebook.set_means(&sums, &counts);
        let means = self.tensors().means;
        let mut covs = vec![0.0; self.codebook.covs.len()];
        for (rows, (encoding, _)) in encodings.rows.iter().zip(encodings.iter()) {
            let mut hard = vec![0.0; rows.len() * codes];
            rows.iter().enumerate().for_each(|(i, &row)| hard[i * codes + member[row]] = 1.0);
            let hard = constant(hard, [rows.len(), codes], &self.device, DType::F32);
            add(&mut covs, &numbers(moments(&encoding, hard, means.clone(), self.codebook.kind).1), 1.0);
        }
        // An empty class keeps the identity: weight 1 of a zero sum would be no covariance.
        for (code, count) in counts.iter_mut().enumerate().filter(|(_, count)| **count == 0.0) {
            let entries = covs.len() / codes;
            let identity = self.codebook.covs[code * entries..(code + 1) * entries].iter();
            covs[code * entries..(code + 1) * entries]
                .iter_mut()
                .zip(identity)
                .for_each(|(c, &i)| *c = i.into());
            *count = 1.0;
        }
        self.codebook.set_covs(&covs, &counts, experiment.codebook.shrinkage());
        self.codebook.set_priors(&counts, experiment.codebook.prior_floor);
        self.started = true;
    }

    /// Codes with a prior below `share` of an equal one start again at an example drawn by its u, as wide as
    /// the codes are on average, with an equal prior. Returns how many.
    fn reseed(&mut self, share: f64, encodings: &Encodings, mut u: Vec<f64>) -> usize {
        let dead = self.codebook.dead(share);
        if dead.is_empty() || dead.len() == self.codebook.len() {
            return 0;
        }
        let (dim, codes) = (self.codebook.dim, self.codebook.len());
        let entries = self.codebook.covs.len() / codes;
        let mut average = vec![0.0_f32; entries];
        for code in (0..codes).filter(|code| !dead.contains(code)) {
            let cov = &self.codebook.covs[code * entries..(code + 1) * entries];
            average.iter_mut().zip(cov).for_each(|(sum, &value)| *sum += value / (codes - dead.len()) as f32);
        }
        let mut random = Random::new(self.seed, &format!("reseed {}", self.epoch));
        u.iter_mut().for_each(|u| *u = u.max(0.0));
        let mut weights: Vec<f64> = self.codebook.priors.iter().map(|&prior| f64::from(prior)).collect();
        for &code in &dead {
            let row = kmeans::weighted(&u, &mut random);
            u[row] = 0.0;
            let size = encodings.rows[0].len();
            let (encoding, _) = encodings.batch(row / size);
            let point: Vec<f32> =
                encoding.mean.into_data().iter::<f32>().skip(row % size * dim).take(dim).collect();
            self.codebook.means[code * dim..(code + 1) * dim].copy_from_slice(&point);
            self.codebook.covs[code * entries..(code + 1) * entries].copy_from_slice(&average);
            weights[code] = 1.0 / codes as f64;
        }
        self.codebook.set_priors(&weights, 0.0);
        dead.len()
    }
}

#[cfg(test)]
#[path = "codebook_step_tests.rs"]
mod tests;
