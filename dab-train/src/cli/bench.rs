//! `dab bench`: how fast training is here, where its time goes, and how PyTorch does on the same threads.

use std::{
    fmt::Write,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::text;
use crate::{
    learn::clock::EpochPart,
    measure::bench::{BenchShape, Measured, PYTORCH, Work, measure},
    support::device::{self, DeviceChoice},
};

/// Where a Python with PyTorch is looked for.
const PYTHONS: [&str; 2] = ["python3", "python"];

/// Measure how fast training is on this machine.
///
/// Trains two models on made-up data, one epoch of all four steps (network, assignment, codes, priors) at a time: a
/// small one of 691 × 8 examples, where overhead counts, and the published ImageNet bottleneck on four batches of 256,
/// where arithmetic counts. On a GPU also the published CIFAR-10 model, WRN-28-10 on two batches of 128 images, and beside it
/// what its bottleneck costs by itself. Each part of an epoch is shown at its fastest over all epochs and several processes;
/// with --pytorch the same loop in PyTorch on the CPU takes turns with them, on as many threads.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab bench
  dab bench --device cuda
  dab bench --shape wrn16-1
  dab bench --shape small --threads 1 --pytorch
  dab bench --pytorch=venv/bin/python --json")]
pub struct Args {
    /// auto, cpu, cuda[:N], wgpu or ndarray
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
    /// Which model [default: small and large, on a GPU also wrn28-10]
    #[arg(long)]
    shape: Option<BenchShape>,
    /// Threads for each program [default: all cores]
    #[arg(long)]
    threads: Option<usize>,
    /// Compare with PyTorch, of this Python or of the first on the path that has it
    #[arg(long, value_name = "PYTHON", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pytorch: Option<String>,
    /// Processes for each program and model
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of measured epochs in each process
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Measure here and now, and print one line of JSON.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let threads = match args.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    ensure!(threads > 0 && args.rounds > 0, "--threads and --rounds start at 1");
    ensure!(args.seconds >= 0.0 && args.seconds.is_finite(), "--seconds must not be negative");
    let device = args.device.open()?;
    let shapes = match args.shape {
        Some(shape) => vec![shape],
        None if device::is_gpu(&device) => vec![BenchShape::Small, BenchShape::Large, BenchShape::Wrn28],
        None => vec![BenchShape::Small, BenchShape::Large],
    };
    if args.inside {
        let work = shapes[0].work(args.seconds, threads)?;
        return super::print(&format!("{}\n", serde_json::to_string(&measure(&work, &device)?)?));
    }
    let python = args.pytorch.as_deref().map(find_pytorch).transpose()?;
    let mut all = Vec::new();
    for shape in shapes {
        let work = shape.work(args.seconds, threads)?;
        // PyTorch's side of the bench has no image network.
        let python = python.as_ref().filter(|_| work.experiment.backbone.images.is_none());
        let once =
            || anyhow::Ok((inside(args, shape, threads)?, python.map(|p| pytorch(p, &work)).transpose()?));
        let (mut own, mut other) = once()?;
        for _ in 1..args.rounds {
            let (next, next_other) = once()?;
            own = own.fastest(next);
            other = other.zip(next_other).map(|(a, b)| a.fastest(b));
        }
        if args.json {
            all.push(to_json(shape, &work, &own, other.as_ref()));
        } else {
            super::print(&table(shape, &work, args.device, &own, other.as_ref()))?;
        }
    }
    if args.json {
        super::print(&format!("{}\n", serde_json::to_string_pretty(&all)?))?;
    }
    Ok(())
}

/// A measurement in a process of its own.
fn inside(args: &Args, shape: BenchShape, threads: usize) -> Result<Measured> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "--inside", "--shape", shape.name()]);
    command.args(["--device", &args.device.to_string(), "--seconds", &args.seconds.to_string()]);
    command.args(["--threads", &threads.to_string()]).env("RAYON_NUM_THREADS", threads.to_string());
    answer(command)
}

/// The same by PyTorch.
fn pytorch(python: &str, work: &Work) -> Result<Measured> {
    let mut command = Command::new(python);
    command.args(["-c", PYTORCH, &serde_json::to_string(work)?]);
    command.env("OMP_NUM_THREADS", work.threads.to_string());
    answer(command)
}

fn answer(mut command: Command) -> Result<Measured> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::piped()).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{program} failed: {}", error.lines().last().unwrap_or("without a word"));
    }
    let measured: Measured =
        serde_json::from_slice(&output.stdout).with_context(|| format!("{program} gave no measurement"))?;
    ensure!(measured.parts.len() == EpochPart::ALL.len(), "{program} measured other parts");
    Ok(measured)
}

/// A Python with PyTorch: `named`, or the first that has it.
fn find_pytorch(named: &str) -> Result<String> {
    let candidates = if named.is_empty() { PYTHONS.to_vec() } else { vec![named] };
    let has = |python: &&str| {
        let mut command = Command::new(python);
        let quiet = command.args(["-c", "import torch"]).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    match candidates.iter().copied().find(has) {
        Some(python) => Ok(python.to_owned()),
        None => bail!(
            "no PyTorch in {}: `python3 -m venv venv && venv/bin/pip install torch numpy`, then --pytorch=venv/bin/python",
            candidates.join(", ")
        ),
    }
}

fn describe(shape: BenchShape, work: &Work) -> String {
    let Work { experiment, rows, inputs, .. } = work;
    let bottleneck = &experiment.bottleneck;
    let mut layers = vec![inputs.to_string()];
    layers.extend(experiment.backbone.images.iter().map(|images| images.network.features().to_string()));
    layers.extend(experiment.backbone.layers.iter().map(|layer| layer.units.to_string()));
    format!(
        "{}: {rows} × {} → d {}, k {}, {}; batch {}",
        shape.name(),
        layers.join(" → "),
        bottleneck.dim,
        bottleneck.codes,
        format!("{:?}", bottleneck.covariance).to_lowercase(),
        experiment.training.batch
    )
}

fn table(
    shape: BenchShape,
    work: &Work,
    device: DeviceChoice,
    own: &Measured,
    other: Option<&Measured>,
) -> String {
    const NAMES: [&str; 4] = ["network", "assignment", "codes", "priors"];
    let mut out = format!(
        "{}, device {device}, {}\n",
        describe(shape, work),
        text::plural(own.threads as u64, "thread")
    );
    let apart = own.apart();
    let mut line = |name: &str, pick: &dyn Fn(&Measured) -> f64| {
        let cells =
            |m: &Measured, all: f64| format!("{:>11.3} {:>6.1} %", 1e3 * pick(m), 100.0 * pick(m) / all);
        let compared = match (other, &apart) {
            (Some(other), _) => {
                format!("{} {:>8.2}", cells(other, other.seconds()), pick(own) / pick(other))
            }
            (None, Some(apart)) => {
                format!("{:>11.3} {:>7.3} %", 1e3 * pick(apart), 100.0 * pick(apart) / pick(own))
            }
            (None, None) => String::new(),
        };
        // Writing to memory cannot fail.
        let _ = writeln!(out, "{name:<16}{}{compared}", cells(own, own.seconds()));
    };
    for (index, name) in NAMES.iter().enumerate() {
        line(&format!("{} {name}", index + 1), &|m| m.step(index + 1));
        let parts = EpochPart::ALL.iter().enumerate().filter(|(_, part)| part.step() == index + 1);
        let parts: Vec<_> = parts.collect();
        for (at, part) in parts.iter().filter(|_| parts.len() > 1) {
            line(&format!("    {}", part.name()), &|m| m.parts[*at]);
        }
    }
    line("epoch", &Measured::seconds);
    line("one step of 1", &|m| m.step(1) / work.steps() as f64);
    let heading = match (other, &apart) {
        (Some(_), _) => "  PyTorch ms    share    ratio",
        (None, Some(_)) => "  bottleneck     of it",
        (None, None) => "",
    };
    let (first, rest) = out.split_once('\n').unwrap_or_default();
    let mut out = format!("{first}\n{:<16}{:>11}    share{heading}\n{rest}", "step", "dab ms");
    let mut both = |name: &str, unit: f64, pick: &dyn Fn(&Measured) -> Option<f64>| {
        let cell = |m: &Measured| pick(m).map_or_else(|| "?".to_owned(), |x| format!("{:.1}", x / unit));
        let ratio = other.and_then(|other| Some(format!("{:>18.2}", pick(own)? / pick(other)?)));
        let compared = other
            .map_or_else(String::new, |other| format!("{:>20}{}", cell(other), ratio.unwrap_or_default()));
        let _ = writeln!(out, "{name:<16}{:>11}{compared}", cell(own));
    };
    both("processor ms", 1e-3, &|m| m.cpu_seconds);
    both("samples/s", 1.0, &|m| Some(work.rows as f64 / m.seconds()));
    both("peak MiB", f64::from(1 << 20), &|m| m.peak_bytes.map(|bytes| bytes as f64));
    if own.device_bytes.is_some() {
        both("on the device", f64::from(1 << 20), &|m| m.device_bytes.map(|bytes| bytes as f64));
    }
    if work.experiment.backbone.images.is_some() {
        let cost = work.cost();
        let _ = writeln!(
            out,
            "multiply-adds of a forward pass: image network {}, bottleneck {}, {:.4} % of all",
            cost.images,
            cost.bottleneck,
            100.0 * cost.share()
        );
    }
    out.push('\n');
    out
}

fn to_json(shape: BenchShape, work: &Work, own: &Measured, other: Option<&Measured>) -> serde_json::Value {
    let program = |m: &Measured| {
        let parts: serde_json::Map<_, _> = EpochPart::ALL
            .iter()
            .zip(&m.parts)
            .map(|(part, seconds)| (part.name().to_owned(), json!(seconds)))
            .collect();
        json!({
            "seconds": m.seconds(),
            "steps": [m.step(1), m.step(2), m.step(3), m.step(4)],
            "parts": parts,
            "samples_per_second": work.rows as f64 / m.seconds(),
            "cpu_seconds": m.cpu_seconds,
            "peak_bytes": m.peak_bytes,
            "device_bytes": m.device_bytes,
            "bottleneck": m.apart().map(|apart| apart.seconds()),
            "nll": m.nll,
        })
    };
    json!({
        "shape": shape.name(),
        "description": describe(shape, work),
        "threads": own.threads,
        "dab": program(own),
        "pytorch": other.map(program),
        "ratio": other.map(|other| own.seconds() / other.seconds()),
    })
}
