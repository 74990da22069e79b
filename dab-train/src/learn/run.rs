//! The epochs of one run: data in, trained model out, with progress, early stopping and exact resume.
//!
//! `Task` + `Experiment` → [`train`] → `Learnt`, which [`restore`] brings back. Every random number comes from a stream
//! named by seed and epoch, so a run that was killed and resumed from its checkpoint gives the same bits as one that
//! was not.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::{DType, Device, Tensor, TensorData};
use nalgebra::DMatrix;

use super::{
    checkpoint::{self, Best, RunState},
    epoch::{Epoch, Rdfc},
    examples::{Examples, Inputs, one_hot},
    loss_scaling::Scaling,
    machines::Machines,
    start,
};
use crate::{
    config::{ConvPrecision, Experiment, Standardise, Start},
    data::{Preprocessing, Scale, Split, Table, Targets},
    model::{
        codebook::{Codebook, uncertainty},
        conv::Precision,
        divergence,
        network::{Network, Output},
        resnet::ResNet,
        rounded,
        snapshot::Snapshot,
    },
    support::{
        device,
        interrupt::{self, Patience},
        random::Random,
    },
};

/// Added to the diagonal of the input noise's covariance, relative to its mean variance: collinear inputs factorise.
const NOISE_RIDGE: f64 = 1e-6;

/// Told what happens.
pub trait Observer {
    /// An epoch of `total` ended, `elapsed` after this process began the run.
    fn epoch(&mut self, epoch: &Epoch, total: usize, elapsed: Duration);

    /// A gradient step ended.
    fn step(&mut self, _: &Moment) {}
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Epochs done, in all processes that ran it; a part of one counts.
    pub epochs: f64,
    /// Of these many.
    pub total: usize,
    /// Examples an epoch.
    pub examples: usize,
    /// Since this process began.
    pub elapsed: Duration,
}

/// Says nothing.
impl Observer for () {
    fn epoch(&mut self, _: &Epoch, _: usize, _: Duration) {}
}

/// Where and how to run.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Seed of weights, order and noise.
    pub seed: u64,
    /// Where tensors live, without gradient tracking.
    pub device: Device,
    /// Where the run is kept: at its end, and before as often as the experiment asks.
    pub checkpoint: Option<PathBuf>,
    /// Whether to go on from the checkpoint, if there is one.
    pub resume: bool,
    /// The processes that share the run, when there are several; process 0 alone has a checkpoint.
    pub machines: Option<Arc<Machines>>,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// The model; after an image network, from its features on.
    pub trained: Snapshot,
    /// The image network that learnt with it.
    pub images: Option<ResNet>,
    /// Which image network comes before the model, by its [digest](super::images::digest), and what happens before it.
    pub backbone: Option<(String, Preprocessing)>,
    /// One entry an epoch.
    pub history: Vec<Epoch>,
    /// The epoch whose model was kept: the last, or the best under early stopping.
    pub kept_epoch: usize,
}

/// What inputs are scaled by before the first layer.
pub(crate) fn input_scale(how: Standardise, inputs: &Table) -> Scale {
    let columns = Scale::fit(inputs);
    match how {
        Standardise::Columns => columns,
        Standardise::None => Scale { mean: vec![0.0; inputs.cols], std: vec![1.0; inputs.cols] },
        Standardise::Shared => {
            let variance = columns.std.iter().map(|s| s * s).sum::<f32>() / inputs.cols as f32;
            Scale { mean: columns.mean, std: vec![variance.sqrt(); inputs.cols] }
        }
    }
}

fn tensor(table: &Table, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(table.values.clone(), [table.rows, table.cols]), device)
}

/// A split on the device: inputs and targets standardised.
pub(crate) fn examples(split: &Split, inputs: &Scale, targets: Option<&Scale>, device: &Device) -> Examples {
    let (wanted, labels) = match &split.targets {
        Targets::Regression(values) => {
            let values = targets.map_or_else(|| values.clone(), |scale| scale.apply(values));
            (tensor(&values, device), None)
        }
        Targets::Classes { labels, count } => (one_hot(labels, *count, device), Some(labels.clone())),
    };
    let inputs = Inputs::Table { inputs: tensor(&inputs.apply(&split.inputs), device), wanted };
    Examples { inputs, labels, noise: None }
}

/// Factor, `[inputs, sources]`, of `scale²` times the covariance that inputs have within their class (in all, without classes).
fn noise_factor(inputs: &Table, labels: Option<&[u32]>, scale: f64, device: &Device) -> Result<Tensor<2>> {
    let cols = inputs.cols;
    let class = |row: usize| labels.map_or(0, |labels| labels[row] as usize);
    let classes = labels.map_or(1, |labels| labels.iter().max().map_or(1, |&c| c as usize + 1));
    let mut means = vec![vec![0.0_f64; cols + 1]; classes];
    for (row, values) in inputs.iter().enumerate() {
        let mean = &mut means[class(row)];
        mean[cols] += 1.0;
        values.iter().enumerate().for_each(|(j, &v)| mean[j] += f64::from(v));
    }
    let centred = DMatrix::from_fn(inputs.rows, cols, |row, j| {
        let mean = &means[class(row)];
        f64::from(inputs.row(row)[j]) - mean[j] / mean[cols]
    });
    let constant = "the inputs have no variance: noise in their shape is impossible";
    let factor = if inputs.rows < cols {
        // The rows themselves are a factor, and a smaller one than the Cholesky factor would be.
        ensure!(centred.iter().any(|&x| x != 0.0), constant);
        centred.transpose() / (inputs.rows as f64).sqrt()
    } else {
        let mut cov = centred.tr_mul(&centred) / inputs.rows as f64;
        let ridge = NOISE_RIDGE * cov.trace() / cols as f64;
        (0..cols).for_each(|i| cov[(i, i)] += ridge);
        cov.cholesky().context(constant)?.l()
    };
    let shape = [cols, factor.ncols()];
    let values: Vec<f32> = factor.transpose().iter().map(|&v| (v * scale) as f32).collect();
    Ok(Tensor::from_data(TensorData::new(values, shape), device))
}

/// What an experiment's network gives for these targets, and their scale where they are numbers.
pub(crate) fn predicted(experiment: &Experiment, targets: &Targets) -> (Output, Option<Scale>) {
    match targets {
        Targets::Regression(values) => {
            (Output::Regression(values.cols, experiment.objective.variance), Some(Scale::fit(values)))
        }
        Targets::Classes { count, .. } => (Output::Classes(*count), None),
    }
}

/// A run of given features before its first epoch.
struct Ready {
    model: Rdfc,
    learn: Examples,
    watched: Option<Examples>,
    scale: Scale,
    target_scale: Option<Scale>,
}

impl Ready {
    fn new(experiment: &Experiment, train: &Split, setting: &Setting) -> Result<Self> {
        experiment.check()?;
        let (output, target_scale) = predicted(experiment, &train.targets);
        check_start(experiment, output)?;
        let (kept, aside) = set_aside(experiment, train.inputs.rows, setting.seed);
        let (split, watch) = (train.select(&kept), aside.map(|rows| train.select(&rows)));
        let scale = input_scale(experiment.backbone.standardise, &split.inputs);
        let on_device = |split: &Split| examples(split, &scale, target_scale.as_ref(), &setting.device);
        let mut learn = on_device(&split);
        if experiment.training.input_noise > 0.0 {
            let inputs = scale.apply(&split.inputs);
            let (labels, scale) = (learn.labels.as_deref(), experiment.training.input_noise);
            learn.noise = Some(noise_factor(&inputs, labels, scale, &setting.device)?);
        }
        let watched = watch.as_ref().map(on_device);
        let mut model = Rdfc::new(experiment, train.inputs.cols, output, setting.seed, &setting.device);
        if let (Start::Retrofit, Targets::Classes { labels, count }) =
            (experiment.codebook.start, &split.targets)
        {
            start::check(experiment, train.inputs.cols, *count)?;
            start::set(&mut model, &scale.apply(&split.inputs), labels, *count, &setting.device)?;
        }
        Ok(Self { model, learn, watched, scale, target_scale })
    }
}

/// Whether the codes can start as the experiment says.
pub(crate) fn check_start(experiment: &Experiment, output: Output) -> Result<()> {
    if experiment.codebook.start == Start::Retrofit {
        let rows = matches!(output, Output::Classes(_)) && experiment.backbone.images.is_none();
        ensure!(rows, "codebook.start = \"retrofit\" needs rows with classes");
    }
    if experiment.codebook.start == Start::Classes {
        let Output::Classes(count) = output else {
            anyhow::bail!("codebook.start = \"classes\" needs classes")
        };
        ensure!(
            experiment.bottleneck.codes == count,
            "codebook.start = \"classes\" needs {count} codes, not {}",
            experiment.bottleneck.codes
        );
    }
    Ok(())
}

/// Trains a model.
pub fn train(
    experiment: &Experiment,
    train: &Split,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<Learnt> {
    let Ready { model, learn, watched, scale, target_scale } = Ready::new(experiment, train, setting)?;
    let mut run = epochs(experiment, model, &learn, watched.as_ref(), setting, observer)?;
    (run.trained.input_scale, run.trained.target_scale) = (scale, target_scale);
    Ok(run)
}

/// A finished run, from the checkpoint that it left.
pub fn restore(experiment: &Experiment, train: &Split, setting: &Setting) -> Result<Learnt> {
    let Ready { model, scale, target_scale, .. } = Ready::new(experiment, train, setting)?;
    let mut run = restored(experiment, model, setting)?;
    (run.trained.input_scale, run.trained.target_scale) = (scale, target_scale);
    Ok(run)
}

/// The run of a fresh `model`, from its checkpoint.
pub(crate) fn restored(experiment: &Experiment, model: Rdfc, setting: &Setting) -> Result<Learnt> {
    let path = setting.checkpoint.as_deref().context("a run is restored from its checkpoint")?;
    ensure!(path.exists(), "there is no {}: the network that was trained is not kept here", path.display());
    let progress = begin(experiment, model, &Setting { resume: true, ..setting.clone() })?;
    ensure!(
        is_over(experiment, &progress),
        "{} stops after epoch {} of {}: end the run with `dab train … --resume`",
        path.display(),
        progress.model.epoch,
        experiment.training.epochs
    );
    Ok(finish(experiment, progress))
}

/// A fresh start, or what the checkpoint holds.
fn begin(experiment: &Experiment, mut model: Rdfc, setting: &Setting) -> Result<RunState> {
    model.replicas = device::replicas(&setting.device, experiment.training.replicas)?;
    if let Some(images) = &mut model.network.images {
        images.precision = precision(experiment.training.precision, &setting.device)?;
        model.scaling = (images.precision == Precision::Type(DType::F16)).then(Scaling::default);
    }
    ensure!(
        setting.machines.is_none() || !experiment.training.synchronised_norms,
        "training.synchronised_norms is for the devices of one process (training.replicas), not for --mpi"
    );
    model.machines.clone_from(&setting.machines);
    let mut progress = RunState { model, history: Vec::new(), best: None };
    let stored = setting.checkpoint.as_deref().filter(|path| setting.resume && path.exists());
    match &setting.machines {
        None => stored.map_or(Ok(()), |path| checkpoint::read(path, experiment, &mut progress))?,
        Some(machines) => {
            // Also a fresh start is process 0's: another machine's mathematics may round its random numbers the other way.
            let own = match stored {
                Some(path) => checkpoint::bytes(path)?,
                None => checkpoint::to_bytes(experiment, &progress)?,
            };
            checkpoint::resume(&machines.tell(&own), experiment, &mut progress)
                .context("cannot begin where process 0 begins")?;
        }
    }
    Ok(progress)
}

/// The epochs, from the checkpoint on if there is one. The model that results takes its inputs unscaled.
pub(crate) fn epochs(
    experiment: &Experiment,
    model: Rdfc,
    learn: &Examples,
    watched: Option<&Examples>,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<Learnt> {
    let mut progress = begin(experiment, model, setting)?;
    let (begun, every) = (Instant::now(), experiment.training.checkpoint_every);
    // Several processes must take the same steps: there, an interrupt ends the process as it always does.
    let _patience = setting.machines.is_none().then(Patience::begin);
    while !is_over(experiment, &progress) {
        let (before, examples) = (progress.model.epoch as f64, learn.len());
        // A run goes on from the end of an epoch only. Tensors are shared until a step replaces them, so this costs the
        // memory of parameters and optimisers once more, and no time.
        let last = setting.checkpoint.as_deref().map(|path| (path, progress.clone()));
        let epoch = progress.model.epoch_watched(experiment, learn, &mut |seen| {
            let epochs = before + seen as f64 / examples as f64;
            let total = experiment.training.epochs;
            observer.step(&Moment { epochs, total, examples, elapsed: begun.elapsed() });
            if setting.machines.is_none() && interrupt::wanted() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let Some(epoch) = epoch else {
            let (done, total) = (before, experiment.training.epochs);
            let Some((path, last)) = last else { bail!("interrupted after epoch {done} of {total}") };
            checkpoint::write(path, experiment, &last)?;
            bail!(
                "interrupted after epoch {done} of {total}; the same command with --resume goes on from {}",
                path.display()
            );
        };
        learn.sound()?;
        ensure!(
            epoch.nll.is_finite() && epoch.distortion.is_finite(),
            "epoch {}: the loss is not finite; a smaller learning rate or `clip` helps",
            epoch.number
        );
        observer.epoch(&epoch, experiment.training.epochs, begun.elapsed());
        progress.history.push(epoch);
        if let Some(watched) = watched {
            keep_best(experiment, watched, &mut progress);
        }
        let due = every > 0 && progress.model.epoch.is_multiple_of(every);
        if let Some(path) = setting.checkpoint.as_deref().filter(|_| due) {
            checkpoint::write(path, experiment, &progress)?;
        }
    }
    if let Some(path) = &setting.checkpoint {
        // No step follows: what the optimisers remember is no longer needed.
        progress.model.network_optimiser.memory.clear();
        progress.model.means_optimiser.memory.clear();
        checkpoint::write(path, experiment, &progress)?;
        // A finished run does not need the one before; if it stays, it costs space alone.
        let _ = std::fs::remove_file(checkpoint::before(path));
    }
    Ok(finish(experiment, progress))
}

fn is_over(experiment: &Experiment, progress: &RunState) -> bool {
    let epoch = progress.model.epoch;
    let watched = experiment.training.early_stopping.zip(progress.best.as_ref());
    epoch >= experiment.training.epochs
        || watched.is_some_and(|(stopping, best)| epoch >= best.epoch + stopping.patience)
}

fn finish(experiment: &Experiment, progress: RunState) -> Learnt {
    let RunState { model, history, best } = progress;
    let (network, codebook, kept_epoch) = match best {
        Some(best) => (best.network, best.codebook, best.epoch),
        None => (model.network, model.codebook, model.epoch),
    };
    let network = network.frozen();
    let trained = Snapshot::new(&network, &codebook, experiment.objective.alpha);
    Learnt { trained, images: network.images, backbone: None, history, kept_epoch }
}

/// What this precision is on a device.
fn precision(wanted: ConvPrecision, device: &Device) -> Result<Precision> {
    const OTHERS: &str = "choose another training.precision (f32, tf32, bf16 or f16)";
    let dtype = match wanted {
        ConvPrecision::F32 => DType::F32,
        ConvPrecision::Bf16 => DType::BF16,
        ConvPrecision::F16 => DType::F16,
        ConvPrecision::Tf32 => {
            ensure!(
                rounded::is_rounded_on(device),
                "this device has no units for TF32, which are in NVIDIA's GPUs from sm_80 (2020) on: {OTHERS}"
            );
            return Ok(Precision::Tf32);
        }
    };
    ensure!(device.supports_dtype(dtype), "this device does not compute in {dtype:?}: {OTHERS}");
    Ok(Precision::Type(dtype))
}

/// The examples to learn from, and those that early stopping watches.
pub(crate) fn set_aside(experiment: &Experiment, rows: usize, seed: u64) -> (Vec<usize>, Option<Vec<usize>>) {
    let Some(stopping) = experiment.training.early_stopping else { return ((0..rows).collect(), None) };
    let mut order = Random::new(seed, "early stopping").permutation(rows);
    let aside = ((rows as f64 * stopping.share).round() as usize).clamp(1, rows.saturating_sub(1).max(1));
    let kept = order.split_off(aside);
    (kept, Some(order))
}

/// Keeps the model with the smallest E8 on the examples set aside, from the codes' start on.
fn keep_best(experiment: &Experiment, watched: &Examples, progress: &mut RunState) {
    if !progress.model.started {
        return;
    }
    let loss = objective(experiment, &progress.model.network, &progress.model.codebook, watched);
    if let Some(epoch) = progress.history.last_mut() {
        epoch.watched = Some(loss);
    }
    if progress.best.as_ref().is_none_or(|best| loss < best.loss) {
        progress.best = Some(Best {
            loss,
            epoch: progress.model.epoch,
            network: progress.model.network.clone(),
            codebook: progress.model.codebook.clone(),
        });
    }
}

/// E8 without its weight decay, at z = μ.
fn objective(experiment: &Experiment, network: &Network, codebook: &Codebook, examples: &Examples) -> f64 {
    let network = network.frozen();
    let rows: Vec<usize> = (0..examples.len()).collect();
    let codes = codebook.tensors(&examples.device(), DType::F32);
    let weight = experiment.objective.alpha * experiment.objective.beta;
    let mut sum = 0.0;
    for rows in rows.chunks(experiment.training.batch_of(rows.len()).max(1)) {
        let (x, wanted) = examples.select(rows);
        let encoding = network.encode(x);
        let distances = divergence::kl(&encoding, &codes);
        let u = uncertainty(codes.assign(&distances, experiment.objective.alpha), distances);
        let nll = network.nll(network.decoder.forward(encoding.mean), &wanted);
        sum += (nll + u.mul_scalar(weight)).sum().into_scalar::<f64>();
    }
    sum / examples.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::product::Product;

    #[test]
    fn noise_of_few_wide_rows_has_the_covariance_of_many() {
        let (count, cols) = (7, 20);
        let value = |i: usize| ((i * 7919 % 1013) as f32 / 100.0) * (1 + i % 3) as f32;
        let few = Table::new(count, cols, (0..count * cols).map(value).collect()).unwrap();
        let labels: Vec<u32> = (0..count as u32).map(|i| i % 2).collect();
        // Each row four times: more rows than columns, and the same covariance but for the ridge.
        let again: Vec<usize> = (0..4 * count).map(|i| i % count).collect();
        let often: Vec<u32> = again.iter().map(|&i| labels[i]).collect();
        let covariance = |inputs: &Table, labels: &[u32]| {
            let factor = noise_factor(inputs, Some(labels), 0.5, &Device::flex()).unwrap();
            let sources = factor.dims()[1];
            let cov = factor.clone().product(factor.transpose());
            let cov: Vec<f32> = cov.into_data().iter::<f32>().collect();
            (sources, cov)
        };
        let (small, large) = (covariance(&few, &labels), covariance(&few.select(&again), &often));
        assert_eq!((small.0, large.0), (count, cols));
        let largest = large.1.iter().fold(0.0, |a: f32, x| a.max(x.abs()));
        assert!(largest > 1.0);
        for (a, b) in small.1.iter().zip(&large.1) {
            assert!((a - b).abs() < 1e-5 * largest, "{a} {b}");
        }
        let same = Table::new(2, 3, vec![1.0; 6]).unwrap();
        assert!(noise_factor(&same, None, 1.0, &Device::flex()).is_err());
    }
}
