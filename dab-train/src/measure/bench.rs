//! How fast the trainer is: whole epochs of [`Rdfc`] on made-up data, timed part by part.
//!
//! `BenchShape` → [`measure`] → `Measured`, in a process of its own, so that threads and peak memory are its own too. The
//! same loop in PyTorch (`bench/pytorch.py`) reads the same experiment and gives the same JSON.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::cost::Cost;
use crate::{
    config::Experiment,
    data::{Split, Table, Targets},
    learn::{clock::EpochPart, epoch::Rdfc, examples::Examples, run},
    model::{
        network::Output,
        resnet::{Architecture, CHANNELS},
    },
    support::random::Random,
};

/// The same loop in PyTorch.
pub const PYTORCH: &str = include_str!("../../bench/pytorch.py");
/// Epochs before the clock starts: buffers are allocated, threads started, π_x no longer uniform.
const WARM_UP: usize = 2;
/// Epochs that are measured at least.
const LEAST: u32 = 3;
/// Of a CIFAR image.
const SIDE: usize = 32;

/// A model and a number of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchShape {
    /// 691 × 8 → 50 → d 4, k 2, spectral: UCI Energy's.
    Small,
    /// 1024 × 2048 → 2048 × 3 → d 80, k 1000, diagonal: four batches of the published ImageNet bottleneck's.
    Large,
    /// Two batches of 128 images → Wide ResNet 16-1 → d 8, k 10, spectral: an image network that a CPU can bear.
    #[value(name = "wrn16-1")]
    Wrn16,
    /// The same behind Wide ResNet 28-10: the published CIFAR-10 model, for a GPU.
    #[value(name = "wrn28-10")]
    Wrn28,
}

/// What is measured, for either program: the experiment and the size of its data.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// Model, objective, optimiser, batch.
    pub experiment: Experiment,
    /// Examples an epoch.
    pub rows: usize,
    /// Numbers an example.
    pub inputs: usize,
    /// Classes; 0 for a regression of one number.
    pub classes: usize,
    /// Seconds to spend on measured epochs.
    pub seconds: f64,
    /// Threads to use.
    pub threads: usize,
}

impl BenchShape {
    /// Its name in experiment, table and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Wrn16 => "wrn16-1",
            Self::Wrn28 => "wrn28-10",
        }
    }

    /// What is to be done.
    ///
    /// # Errors
    /// Never, unless the experiment files of this build are broken.
    pub fn work(self, seconds: f64, threads: usize) -> Result<Work> {
        let (text, rows, inputs, classes) = match self {
            Self::Small => (include_str!("../../bench/small.toml"), 691, 8, 0),
            Self::Large => (include_str!("../../bench/large.toml"), 4 * 256, 2048, 1000),
            Self::Wrn16 | Self::Wrn28 => {
                (include_str!("../../bench/wrn.toml"), 2 * 128, CHANNELS * SIDE * SIDE, 10)
            }
        };
        let mut experiment = Experiment::parse(text)?;
        if let Some(images) = &mut experiment.backbone.images {
            let (depth, width) = if self == Self::Wrn16 { (16, 1) } else { (28, 10) };
            images.network = Architecture::WideResnet { depth, width };
            self.name().clone_into(&mut experiment.name);
        }
        Ok(Work { experiment, rows, inputs, classes, seconds, threads })
    }
}

impl Work {
    /// The same with the image network's features instead of images: what the bottleneck, its codebook and its decoder cost
    /// by themselves. `None` without an image network.
    #[must_use]
    pub fn bottleneck(&self) -> Option<Self> {
        let mut work = self.clone();
        work.inputs = work.experiment.backbone.images.take()?.network.features();
        Some(work)
    }

    /// Gradient steps an epoch.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.rows.div_ceil(self.experiment.training.batch)
    }

    /// What one example costs.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost::of(&self.experiment, self.inputs, self.output().width())
    }

    fn output(&self) -> Output {
        match self.classes {
            0 => Output::Regression(1, self.experiment.objective.variance),
            classes => Output::Classes(classes),
        }
    }
}

/// Each part of an epoch at its fastest: the machine's other work is not the trainer's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds of each part, in the order of [`EpochPart::ALL`].
    pub parts: Vec<f64>,
    /// Processor time of an epoch on average, all threads together, seconds; where the system tells. Other programs take
    /// none of it, waiting threads that spin do.
    pub cpu_seconds: Option<f64>,
    /// The most memory that the process ever held, bytes; where the system tells.
    pub peak_bytes: Option<u64>,
    /// What the device's allocator held at the end, bytes; where the device tells.
    #[serde(default)]
    pub device_bytes: Option<u64>,
    /// `parts` of [`Work::bottleneck`].
    #[serde(default)]
    pub bottleneck: Option<Vec<f64>>,
    /// Threads that it may use.
    pub threads: usize,
    /// Mean negative log-likelihood of the last epoch: a loop that learns nothing is not worth timing.
    pub nll: f64,
}

impl Measured {
    /// Seconds of the epoch.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// The faster of each part.
    #[must_use]
    pub fn fastest(self, other: Self) -> Self {
        let least = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a.min(*b)).collect::<Vec<_>>();
        let parts = least(&self.parts, &other.parts);
        let bottleneck = self.bottleneck.zip(other.bottleneck.as_ref()).map(|(a, b)| least(&a, b));
        let cpu_seconds = self.cpu_seconds.zip(other.cpu_seconds).map(|(a, b)| a.min(b));
        let peak_bytes = self.peak_bytes.max(other.peak_bytes);
        Self { parts, cpu_seconds, peak_bytes, bottleneck, ..other }
    }

    /// The bottleneck alone, as far as it was measured apart.
    #[must_use]
    pub fn apart(&self) -> Option<Self> {
        self.bottleneck.clone().map(|parts| Self { parts, bottleneck: None, ..self.clone() })
    }

    /// Seconds of one of the four steps.
    #[must_use]
    pub fn step(&self, step: usize) -> f64 {
        let parts = EpochPart::ALL.iter().zip(&self.parts);
        parts.filter(|(part, _)| part.step() == step).map(|(_, seconds)| seconds).sum()
    }
}

/// Standard normal inputs, and targets that have nothing to do with them.
fn examples(work: &Work, device: &Device) -> Examples {
    let mut random = Random::new(work.experiment.seed, "bench");
    let mut normals = |rows: usize, cols: usize| {
        let values = (0..rows * cols).map(|_| random.normal() as f32).collect();
        Table { rows, cols, values }
    };
    let inputs = normals(work.rows, work.inputs);
    let targets = match work.classes {
        0 => Targets::Regression(normals(work.rows, 1)),
        count => Targets::Classes { labels: (0..work.rows).map(|row| (row % count) as u32).collect(), count },
    };
    let scale = run::input_scale(work.experiment.backbone.standardise, &inputs);
    run::examples(&Split { inputs, targets }, &scale, None, device)
}

/// Trains for about `work.seconds` and returns each part of an epoch at its fastest; with an image network, twice: what
/// follows it is measured apart too.
///
/// # Errors
/// When the loss stops being finite.
pub fn measure(work: &Work, device: &Device) -> Result<Measured> {
    let whole = epochs(work, device)?;
    let apart = work.bottleneck().map(|work| epochs(&work, device)).transpose()?;
    Ok(Measured { bottleneck: apart.map(|apart| apart.parts), ..whole })
}

fn epochs(work: &Work, device: &Device) -> Result<Measured> {
    let examples = examples(work, device);
    let mut model = Rdfc::new(&work.experiment, work.inputs, work.output(), work.experiment.seed, device);
    for _ in 0..WARM_UP {
        model.epoch(&work.experiment, &examples);
    }
    let cpu = cpu_seconds();
    let (begun, budget) = (Instant::now(), Duration::from_secs_f64(work.seconds));
    let mut parts = vec![f64::INFINITY; EpochPart::ALL.len()];
    let (mut epochs, mut nll) = (0_u32, f64::NAN);
    while epochs < LEAST || begun.elapsed() < budget {
        model.clock.start(device);
        nll = model.epoch(&work.experiment, &examples).nll;
        epochs += 1;
        for (best, spent) in parts.iter_mut().zip(model.clock.stop()) {
            *best = best.min(spent.as_secs_f64());
        }
    }
    ensure!(nll.is_finite(), "the loss is not finite");
    Ok(Measured {
        parts,
        cpu_seconds: cpu_seconds().zip(cpu).map(|(end, start)| (end - start) / f64::from(epochs)),
        peak_bytes: peak_bytes(),
        device_bytes: device.memory_pool_usage().map(|usage| usage.bytes_reserved),
        bottleneck: None,
        threads: work.threads,
        nll,
    })
}

/// Processor time of all threads of this process, from Linux's /proc.
fn cpu_seconds() -> Option<f64> {
    /// schedstat counts in nanoseconds, time on a processor first.
    const NANO: f64 = 1e-9;
    let spent = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    tasks.map(|task| spent(task.ok()?)).sum::<Option<f64>>().map(|nanoseconds| nanoseconds * NANO)
}

/// The most memory that this process ever held, from Linux's /proc.
pub(crate) fn peak_bytes() -> Option<u64> {
    /// /proc counts in KiB.
    const KIB: u64 = 1024;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_measured_part_by_part() {
        let work = BenchShape::Small.work(0.0, 1).unwrap();
        let measured = measure(&work, &Device::flex()).unwrap();
        assert_eq!(measured.parts.len(), EpochPart::ALL.len());
        assert!(measured.parts.iter().all(|&seconds| seconds > 0.0), "{measured:?}");
        let steps: f64 = (1..=4).map(|step| measured.step(step)).sum();
        assert!((steps - measured.seconds()).abs() < 1e-9);
    }

    #[test]
    fn shapes_are_experiments() {
        for shape in [BenchShape::Small, BenchShape::Large, BenchShape::Wrn16, BenchShape::Wrn28] {
            assert_eq!(shape.work(1.0, 1).unwrap().experiment.name, shape.name());
        }
    }

    #[test]
    fn the_bottleneck_is_a_small_part_of_the_published_model() {
        let work = BenchShape::Wrn28.work(1.0, 1).unwrap();
        let cost = work.cost();
        // Per image: 5.24 G multiply-adds in the network; 640 · 44 + 10 · (64 + 8) + 10 · 8³ + 8 · 10 after it.
        assert_eq!((cost.images / 1_000_000, cost.bottleneck), (5243, 34_080));
        assert!(cost.share() < 1e-5);
        let apart = work.bottleneck().unwrap();
        assert_eq!((apart.inputs, apart.cost().bottleneck, apart.cost().images), (640, 34_080, 0));
        assert!(BenchShape::Small.work(1.0, 1).unwrap().bottleneck().is_none());
    }
}
