//! How fast training is on this machine: whole epochs on made-up data, and PyTorch on the same work if it is asked for.
//!
//! ```text
//! cargo bench --profile release -p dab-train --bench training -- --help
//! ```
//!
//! Each half of an epoch (step 1: the network; steps 2 to 4: the codebook) is shown at its fastest over all epochs, because
//! the machine's other work is not the trainer's.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use dab_train::{
    Epoch, Experiment, Moment, Observer,
    data::{Augment, DataConfig, Description, ImageTask, Preprocessing, Split, Table, Targets},
    internals::{
        data::{ImageSet, Labelled, Pixels},
        learn::{
            images,
            machines::Machines,
            mpi,
            run::{self, Setting},
        },
        measure::cost::Cost,
        model::{
            network::Output,
            resnet::{Architecture, CHANNELS},
        },
        support::{device::DeviceChoice, memory::peak_bytes, random::Random},
    },
};
use serde::{Deserialize, Serialize};

/// The same loop in PyTorch.
const PYTORCH: &str = include_str!("pytorch.py");
/// Epochs before the clock starts: buffers are allocated, threads started, π_x no longer uniform.
const WARM_UP: usize = 2;
/// Of a CIFAR image.
const SIDE: usize = 32;
const MIB: f64 = 1024.0 * 1024.0;

/// A model and a number of examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shape {
    /// 691 × 8 → 50 → d 4, k 2, spectral: UCI Energy's
    Small,
    /// 1024 × 2048 → 2048 × 3 → d 80, k 1000, diagonal: four batches of the published ImageNet bottleneck's
    Large,
    /// Two batches of 128 images → Wide ResNet 16-1 → d 8, k 10, spectral: an image network that a CPU can bear
    #[value(name = "wrn16-1")]
    Wrn16,
    /// The same behind Wide ResNet 28-10: the published CIFAR-10 model, for a GPU
    #[value(name = "wrn28-10")]
    Wrn28,
}

/// Measure how fast training is on this machine
///
/// RAYON_NUM_THREADS=1 in the environment lets it compute on one thread.
#[derive(Debug, Parser)]
struct Args {
    /// Which model
    #[arg(long, default_value = "small")]
    shape: Shape,
    /// auto, cpu, cuda[:N], wgpu or ndarray
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Epochs to measure [default: 300 of the small shape, 3 of the others]
    #[arg(long)]
    epochs: Option<usize>,
    /// Examples of a step [default: the shape's]
    #[arg(long)]
    batch: Option<usize>,
    /// Share every step among the processes that mpirun started, and print one row of a table (`tests/mpi --rates` does)
    #[arg(long, conflicts_with = "pytorch")]
    mpi: bool,
    /// Compare with PyTorch on the CPU, of this Python
    #[arg(long, value_name = "PYTHON", num_args = 0..=1, require_equals = true, default_missing_value = "python3")]
    pytorch: Option<String>,
    /// What cargo says to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is measured, for either program: the experiment and the size of its data.
#[derive(Clone, Debug, Serialize)]
struct Work {
    experiment: Experiment,
    /// Examples an epoch.
    rows: usize,
    /// Numbers an example.
    inputs: usize,
    /// Classes; 0 for a regression of one number.
    classes: usize,
    epochs: usize,
    threads: usize,
}

/// Seconds of each half of an epoch at its fastest.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Measured {
    network: f64,
    codebook: f64,
    /// Processor time of an epoch on average, all threads together; where the system tells. Other programs take none of it,
    /// waiting threads that spin do.
    cpu_seconds: Option<f64>,
    /// The most memory that the process ever held; where the system tells.
    peak_bytes: Option<u64>,
    /// Bytes that this process gave to the others while the network learnt, in one epoch.
    #[serde(default)]
    sent: u64,
}

impl Measured {
    fn epoch(self) -> f64 {
        self.network + self.codebook
    }
}

impl Work {
    fn new(args: &Args, threads: usize) -> Result<Self> {
        let (text, rows, inputs, classes, epochs) = match args.shape {
            Shape::Small => (include_str!("small.toml"), 691, 8, 0, 300),
            Shape::Large => (include_str!("large.toml"), 4 * 256, 2048, 1000, 3),
            Shape::Wrn16 | Shape::Wrn28 => {
                let batch = args.batch.unwrap_or(128);
                (include_str!("wrn.toml"), 2 * batch, CHANNELS * SIDE * SIDE, 10, 3)
            }
        };
        let mut experiment = Experiment::parse(text)?;
        if let Some(batch) = args.batch {
            ensure!(batch > 0, "--batch starts at 1");
            experiment.training.batch = batch;
        }
        if let Some(images) = &mut experiment.backbone.images {
            let (depth, width) = if args.shape == Shape::Wrn16 { (16, 1) } else { (28, 10) };
            images.network = Architecture::WideResnet { depth, width };
        }
        let epochs = args.epochs.unwrap_or(epochs);
        ensure!(epochs > 0, "--epochs starts at 1");
        experiment.training.epochs = WARM_UP + epochs;
        Ok(Self { experiment, rows, inputs, classes, epochs, threads })
    }

    /// The same with the image network's features instead of images: what the bottleneck, its codebook and its decoder cost
    /// by themselves. `None` without an image network.
    fn bottleneck(&self) -> Option<Self> {
        let mut work = self.clone();
        work.inputs = work.experiment.backbone.images.take()?.network.features();
        work.experiment.data = DataConfig::Memory;
        Some(work)
    }

    fn cost(&self) -> Cost {
        let output = match self.classes {
            0 => Output::Regression(1, self.experiment.objective.variance),
            classes => Output::Classes(classes),
        };
        Cost::of(&self.experiment, self.inputs, output.width())
    }

    fn labels(&self) -> Vec<u32> {
        (0..self.rows).map(|row| (row % self.classes) as u32).collect()
    }

    /// Gradient steps of an epoch.
    fn steps(&self) -> f64 {
        self.rows.div_ceil(self.experiment.training.batch) as f64
    }

    /// What process 0 says of all of them, as a row of Markdown: batch, processes, milliseconds of a step, examples a second,
    /// bytes that this process sent in a step.
    fn row(&self, own: Measured, machines: Option<&Machines>) -> Option<String> {
        let (index, count) = machines.map_or((0, 1), |machines| (machines.place.index, machines.place.count));
        let (steps, batch) = (self.steps(), self.experiment.training.batch);
        let step = own.network / steps;
        let sent = own.sent as f64 / steps;
        (index == 0).then(|| {
            format!("| {batch} | {count} | {:.0} | {:.2} | {sent:.0} |", 1e3 * step, batch as f64 / step)
        })
    }

    /// Standard normal inputs, and targets that have nothing to do with them.
    fn split(&self) -> Split {
        let mut random = Random::new(0, "bench");
        let mut normals = |rows: usize, cols: usize| {
            let values = (0..rows * cols).map(|_| random.normal() as f32).collect();
            Table { rows, cols, values }
        };
        let inputs = normals(self.rows, self.inputs);
        let targets = match self.classes {
            0 => Targets::Regression(normals(self.rows, 1)),
            count => Targets::Classes { labels: self.labels(), count },
        };
        Split { inputs, targets }
    }

    /// Images of random bytes.
    fn images(&self) -> ImageTask {
        let mut random = Random::new(0, "bench");
        let bytes = (0..self.rows * self.inputs).map(|_| random.below(256) as u8).collect();
        let set = ImageSet::all("bench", Arc::new(Pixels::planar(SIDE, bytes, Augment::default())));
        let train = Labelled { set, labels: self.labels() };
        let none = train.select(&[]);
        ImageTask {
            classes: self.classes,
            train,
            held_out: none.clone(),
            test: none,
            ood: Vec::new(),
            preprocessing: Preprocessing::default(),
            description: Description::default(),
        }
    }

    /// Trains, and times what can be seen from outside: gradient steps and ends of epochs.
    fn measure(&self, setting: &Setting) -> Result<Measured> {
        let mut watch = Watch { machines: setting.machines.clone(), ..Watch::default() };
        match self.experiment.backbone.images {
            Some(_) => images::train(&self.experiment, &self.images(), None, setting, &mut watch)?,
            None => run::train(&self.experiment, &self.split(), setting, &mut watch)?,
        };
        let cpu = cpu_seconds().zip(watch.cpu).map(|(end, start)| (end - start) / self.epochs as f64);
        let [network, codebook] = watch.fastest.map(|time| time.as_secs_f64());
        Ok(Measured { network, codebook, cpu_seconds: cpu, peak_bytes: peak_bytes(), sent: watch.spent })
    }
}

/// Times the halves of epochs.
struct Watch {
    epochs: usize,
    /// When the epoch began, and when its last gradient step ended.
    begun: Instant,
    stepped: Instant,
    fastest: [Duration; 2],
    /// Processor time before the first measured epoch.
    cpu: Option<f64>,
    machines: Option<Arc<Machines>>,
    /// Bytes sent when the epoch began and when its last gradient step ended, and between the two in the last whole epoch.
    sent: [u64; 2],
    spent: u64,
}

impl Watch {
    fn sent(&self) -> u64 {
        self.machines.as_ref().map_or(0, |machines| machines.sent())
    }
}

impl Default for Watch {
    fn default() -> Self {
        let now = Instant::now();
        let fastest = [Duration::MAX; 2];
        Self {
            epochs: 0,
            begun: now,
            stepped: now,
            fastest,
            cpu: None,
            machines: None,
            sent: [0; 2],
            spent: 0,
        }
    }
}

impl Observer for Watch {
    fn epoch(&mut self, _: &Epoch, _: usize, _: Duration) {
        let now = Instant::now();
        self.epochs += 1;
        if self.epochs == WARM_UP {
            self.cpu = cpu_seconds();
        } else if self.epochs > WARM_UP {
            let spent = [self.stepped - self.begun, now - self.stepped];
            self.fastest = [0, 1].map(|half| self.fastest[half].min(spent[half]));
        }
        self.begun = now;
        self.spent = self.sent[1] - self.sent[0];
        self.sent[0] = self.sent();
    }

    fn step(&mut self, _: &Moment) {
        self.stepped = Instant::now();
        self.sent[1] = self.sent();
    }
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

/// The same by PyTorch, on as many threads.
fn pytorch(python: &str, work: &Work) -> Result<Measured> {
    let mut command = Command::new(python);
    command.args(["-c", PYTORCH, &serde_json::to_string(work)?]).stderr(Stdio::piped());
    let output = command.env("OMP_NUM_THREADS", work.threads.to_string()).output();
    let output = output.with_context(|| format!("cannot run {python}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{python} failed ({}): `python3 -m venv venv && venv/bin/pip install torch numpy`, then --pytorch=venv/bin/python",
            error.lines().last().unwrap_or("without a word")
        );
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{python} gave no measurement"))
}

fn main() -> Result<()> {
    let args = Args::parse();
    let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let threads = named.map_or_else(|| std::thread::available_parallelism().map(usize::from), Ok)?;
    let work = Work::new(&args, threads)?;
    let machines = if args.mpi { mpi::join()?.map(Arc::new) } else { None };
    let device = args.device.open()?;
    let setting = Setting { seed: 0, device, checkpoint: None, resume: false, machines };
    let own = work.measure(&setting)?;
    if args.mpi {
        if let Some(row) = work.row(own, setting.machines.as_deref()) {
            println!("{row}");
        }
        mpi::finish();
        return Ok(());
    }
    // There is room for one column beside: PyTorch, or the bottleneck alone.
    let other = args.pytorch.as_ref().map(|python| pytorch(python, &work)).transpose()?;
    let apart = work.bottleneck().filter(|_| other.is_none());
    let apart = apart.map(|work| work.measure(&setting)).transpose()?;

    let (batch, steps) = (work.experiment.training.batch, work.steps());
    println!("{} rows of {} numbers, batches of {batch}, threads {threads}", work.rows, work.inputs);
    let heading = match (other, apart) {
        (Some(_), _) => "       PyTorch    ratio",
        (None, Some(_)) => "    bottleneck    share",
        (None, None) => "",
    };
    println!("{:<26}{:>12}{heading}", "", "dab");
    let line = |name: &str, unit: f64, pick: &dyn Fn(Measured) -> Option<f64>| {
        let Some(value) = pick(own) else { return };
        let ratio = other.and_then(pick).map(|other| format!("{:>14.3}{:>9.2}", other / unit, value / other));
        let share = || {
            let apart = apart.and_then(pick)?;
            Some(format!("{:>14.3}{:>7.2} %", apart / unit, 100.0 * apart / value))
        };
        println!("{name:<26}{:>12.3}{}", value / unit, ratio.or_else(share).unwrap_or_default());
    };
    line("1 network, ms", 1e-3, &|m| Some(m.network));
    line("2-4 codebook, ms", 1e-3, &|m| Some(m.codebook));
    line("epoch, ms", 1e-3, &|m| Some(m.epoch()));
    line("one gradient step, ms", 1e-3, &|m| Some(m.network / steps));
    println!("{:<26}{:>12.1}", "samples a second", work.rows as f64 / own.epoch());
    line("processor time, ms", 1e-3, &|m| m.cpu_seconds);
    line("peak memory, MiB", MIB, &|m| m.peak_bytes.map(|bytes| bytes as f64));
    if let Some(usage) = setting.device.memory_pool_usage() {
        println!("{:<26}{:>12.1}", "on the device, MiB", usage.bytes_reserved as f64 / MIB);
    }
    if apart.is_some() {
        let cost = work.cost();
        println!(
            "multiply-adds of a forward pass: image network {}, bottleneck {}, {:.4} % of all",
            cost.images,
            cost.bottleneck,
            100.0 * cost.share()
        );
    }
    Ok(())
}
