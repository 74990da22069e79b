//! `dab train`: an experiment file in, a folder of results out.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{dry, images, progress::TrainingProgress};
use crate::{
    config::Experiment,
    data::{self, Description, Table, Targets, Task},
    export::{artifact, names},
    learn::{
        machines::{Machines, Place},
        run::{self, Run, Setting},
    },
    measure::{
        comparison::{Comparison, compare},
        evaluate::{Evaluation, TaskScores, evaluate, score_task, truth_coverage},
        metrics::{Summary, classification},
        parity::{Parity, Twice},
    },
    model::{snapshot::Scores, weights},
    report::{figures::figures, training::training_report},
    support::{device::DeviceChoice, files::AtomicFile},
};

/// The experiment in a run's folder, every default spelt out.
pub const EXPERIMENT: &str = "experiment.toml";
/// The trained network in a run's folder.
pub const CHECKPOINT: &str = "checkpoint.safetensors";

/// Train a model as an experiment file says
///
/// Learns the network and its codebook, measures both on held-out, test and OOD inputs beside simple
/// baselines, and compares the model file with the trainer's network. Into the output folder go
///
///   model.dab               the model, calibrated
///   report.html             one page: tables and plots (also as .svg files)
///   metrics.json            every number, and the history of the training
///   scores.csv              uncertainty and code of every input
///   experiment.toml         the experiment, every default spelt out
///   checkpoint.safetensors  the trained network, for `dab verify` and --resume
///
/// The same seed gives the same bytes on the same device. For your own features, `dab fit` writes the
/// experiment file. Data sets that an experiment names are looked for in the folder that DAB_DATA names,
/// else in data/ of the current folder; `dab data` tells how to get them.
///
/// A run that was killed goes on with --resume from its last checkpoint and gives the same bytes;
/// training.checkpoint_every says how many epochs lie between two. Training images are changed at random
/// by data.augment: pad, flip, and RandAugment, as in
///
///   --set data.augment.rand.operations=2 --set data.augment.rand.magnitude=9
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  dab train dab-train/experiments/regression-two-clusters.toml
  dab train my.toml --seeds 10 --out runs/ten
  dab train my.toml --set objective.beta=0.01 --set training.epochs=50
  dab train my.toml --device cuda:1 --json-lines > log.jsonl"
)]
pub struct Args {
    /// The experiment, a TOML file
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// How an experiment is run: what `dab train` and `dab fit` share.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Seed of data, weights, order and noise; the first one with --seeds [default: the experiment's]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Run this many seeds, one after the other, and summarise them
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    seeds: u64,
    /// Where to compute: auto, cpu, cuda[:N], wgpu or ndarray
    #[arg(long, default_value = "auto")]
    pub(super) device: DeviceChoice,
    /// Where results go [default: runs/<name>]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Change one value of the experiment, as in --set objective.beta=0.01; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Print results only
    #[arg(long, conflicts_with = "json_lines")]
    quiet: bool,
    /// Print one JSON object an epoch
    #[arg(long)]
    json_lines: bool,
    /// Leave the baselines out
    #[arg(long)]
    no_baselines: bool,
    /// Go on from the checkpoints of an interrupted run
    #[arg(long)]
    resume: bool,
    /// Print shapes, parameters, memory and steps, and train nothing
    #[arg(long)]
    dry_run: bool,
    /// Share the run among N machines: this is machine I; start the same command on each with its own I
    #[arg(long, value_name = "I/N", requires = "hub")]
    machine: Option<Place>,
    /// Where machine 0 listens and the others find it, on a network that you trust; it alone writes
    #[arg(long, value_name = "HOST:PORT", requires = "machine")]
    hub: Option<String>,
}

/// Everything one seed gave.
pub struct Seeded {
    /// The seed.
    pub seed: u64,
    /// Its data.
    pub task: Task,
    /// Its model and history.
    pub run: Run,
    /// Its scores.
    pub scores: TaskScores,
    /// Its measures.
    pub evaluation: Evaluation,
    /// The baselines' measures on the same data.
    pub comparison: Comparison,
    /// `model.dab`.
    pub artifact: Vec<u8>,
    /// How its scores agree with the trainer's, over held-out, test and OOD inputs.
    pub parity: Parity,
}

impl Args {
    /// Trains, measures and writes.
    ///
    /// # Errors
    /// When the experiment, the data, the device or the output folder is not usable.
    pub fn run(&self) -> Result<()> {
        let path = &self.experiment;
        if self.options.changes.is_empty() {
            return self.options.run(&Experiment::read(path)?, None);
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
        self.options.run(&self.options.changed(table)?, None)
    }
}

impl Options {
    /// The seed of the first run of an experiment that has `own`.
    pub fn first_seed(&self, own: u64) -> u64 {
        self.seed.unwrap_or(own)
    }

    /// Trains, measures and writes. `first` is the data of the first seed, if somebody has read it already.
    ///
    /// # Errors
    /// When the data, the device or the output folder is not usable.
    pub fn run(&self, experiment: &Experiment, mut first: Option<(Task, Description)>) -> Result<()> {
        ensure!(self.seeds > 0, "--seeds starts at 1");
        if self.dry_run {
            return super::print(&dry::plan(experiment)?);
        }
        let device = self.device.open()?;
        let out = self.out.clone().unwrap_or_else(|| Path::new("runs").join(&experiment.name));
        let machines = match (self.machine, &self.hub) {
            (Some(place), Some(hub)) => Some(Arc::new(Machines::join(place, hub)?)),
            _ => None,
        };
        let writes = self.machine.is_none_or(|place| place.index == 0);
        if writes {
            check_writable(&out)?;
        }
        let first_seed = self.first_seed(experiment.seed);
        let mut all = Vec::new();
        for seed in first_seed..first_seed + self.seeds {
            let folder = if self.seeds == 1 { out.clone() } else { out.join(format!("seed-{seed}")) };
            let experiment = Experiment { seed, ..experiment.clone() };
            let setting = Setting {
                seed,
                device: device.clone(),
                checkpoint: writes.then(|| folder.join(CHECKPOINT)),
                resume: self.resume,
                machines: machines.clone(),
            };
            let learnt = self.learn(&experiment, first.take(), &out, &setting)?;
            if !writes {
                continue;
            }
            let seeded = self.measure(&experiment, learnt, &setting)?;
            write(&experiment, &seeded, &folder)?;
            self.say(&format!("seed {seed}: {}", headline(&seeded.evaluation)));
            all.push(seeded);
        }
        if !writes {
            return Ok(());
        }
        let summary = summarise(&all);
        if all.len() > 1 {
            for (name, summary) in &summary {
                let (shown, min, max) = (summary.show(4), summary.min, summary.max);
                self.say(&format!("{name:32} {shown}  [{min:.4}, {max:.4}]"));
            }
            let table: serde_json::Map<_, _> =
                summary.iter().map(|(name, summary)| (name.clone(), json!(summary))).collect();
            write_json(&out.join("metrics.json"), &json!(table))?;
        }
        let drawn = figures(&experiment.data, &all[0])?;
        for named in &drawn {
            save(&out.join(named.file).with_extension("svg"), named.figure.svg.as_bytes())?;
        }
        let baselines: Vec<_> = all.iter().map(|seeded| seeded.comparison.scores.clone()).collect();
        let html = training_report(experiment, &all, &baselines, &summary, drawn)?;
        save(&out.join("report.html"), html.as_bytes())?;
        self.say(&format!("results in {}", out.display()));
        Ok(())
    }

    /// The experiment with the changes of `--set`.
    ///
    /// # Errors
    /// When a change is not KEY=VALUE, or the changed experiment is none.
    pub fn changed(&self, mut table: toml::Table) -> Result<Experiment> {
        for change in &self.changes {
            let (keys, value) =
                change.split_once('=').with_context(|| format!("--set {change}: KEY=VALUE"))?;
            let value: toml::Table = match format!("value = {value}").parse() {
                Ok(value) => value,
                Err(_) => format!("value = {value:?}").parse()?,
            };
            let mut at = &mut table;
            let mut keys = keys.split('.').peekable();
            while let Some(key) = keys.next() {
                if keys.peek().is_none() {
                    at.insert(key.to_owned(), value["value"].clone());
                    break;
                }
                let inner = at.entry(key).or_insert_with(|| toml::Value::Table(toml::Table::new()));
                at = inner.as_table_mut().with_context(|| format!("--set {change}: {key} is not a table"))?;
            }
        }
        let parsed = Experiment::parse(&toml::to_string(&table)?);
        if self.changes.is_empty() { parsed } else { parsed.context("with the changes of --set") }
    }

    /// One line for people: on standard error when standard output carries JSON.
    fn say(&self, line: &str) {
        // A closed pipe is the reader's wish to stop listening, not a failure of the run.
        let _ = if self.json_lines {
            writeln!(std::io::stderr(), "{line}")
        } else {
            writeln!(std::io::stdout(), "{line}")
        };
    }

    /// Reads the data, unless somebody did, and learns.
    fn learn(
        &self,
        experiment: &Experiment,
        read: Option<(Task, Description)>,
        out: &Path,
        setting: &Setting,
    ) -> Result<(Task, Description, Run)> {
        let seed = setting.seed;
        let mut progress = match (self.quiet, self.json_lines) {
            (true, _) => TrainingProgress::quiet(),
            (_, true) => TrainingProgress::json_lines(seed),
            _ => TrainingProgress::bar(seed),
        };
        if let data::DataConfig::Images(config) = &experiment.data {
            // Beside the results, so that all seeds and experiments share it.
            let cache = out.parent().unwrap_or(out).join("features");
            let (task, run) = images::train(experiment, config, setting, &cache, &mut progress)?;
            return Ok((task, Description::default(), run));
        }
        let load = || data::load_described(&experiment.data, seed, &data::data_root());
        let (task, description) = read.map_or_else(load, Ok)?;
        for warning in description.warnings.iter().chain(&task.warnings()) {
            eprintln!("dab: {warning}");
        }
        let run = run::train(experiment, &task.train, setting, &mut progress)?;
        Ok((task, description, run))
    }

    fn measure(
        &self,
        experiment: &Experiment,
        (task, description, run): (Task, Description, Run),
        setting: &Setting,
    ) -> Result<Seeded> {
        let scores = score_task(&run.trained, &task, &setting.device)?;
        let mut evaluation = evaluate(&run.trained, &task, &scores)?;
        if let (data::DataConfig::RegressionClusters(_), Some(interval)) =
            (&experiment.data, &mut evaluation.interval)
        {
            let truth = |x: &[f32]| data::sources::clusters::truth(x[0]);
            interval.truth = Some(truth_coverage(&task, &scores, interval.scale, truth));
        }
        let comparison =
            if self.no_baselines { Comparison::default() } else { compare(experiment, &task, setting)? };
        let info = info(experiment, &description)?;
        let artifact = artifact::artifact(&run.trained, &task.held_out.inputs, info)?;
        let parity = Twice::new(&artifact, &task, &scores)?.parity()?;
        parity.check()?;
        Ok(Seeded { seed: setting.seed, task, run, scores, evaluation, comparison, artifact, parity })
    }
}

/// What the artifact says about itself.
fn info(experiment: &Experiment, data: &Description) -> Result<Vec<(String, String)>> {
    let mut info = vec![
        ("experiment".to_owned(), experiment.name.clone()),
        ("seed".to_owned(), experiment.seed.to_string()),
    ];
    // Inputs that were scaled before the model saw them are no longer the named columns.
    let inputs = if data.input_scale.is_none() { data.input_names.as_slice() } else { &[] };
    for (key, list) in [(names::INPUTS, inputs), (names::OUTPUTS, &data.output_names)] {
        if !list.is_empty() {
            info.push((key.to_owned(), names::join(list)?));
        }
    }
    Ok(info)
}

/// Refuses a folder that cannot be written into, without a trace: training may take long.
fn check_writable(folder: &Path) -> Result<()> {
    let here = Path::new(".");
    let above = |path: &&Path| path.exists() || path.as_os_str().is_empty();
    let existing = folder.ancestors().find(above).filter(|path| path.exists()).unwrap_or(here);
    AtomicFile::create(&existing.join("model.dab"))
        .map(drop)
        .with_context(|| format!("cannot write into {}", folder.display()))
}

/// The most important numbers, on one line.
fn headline(evaluation: &Evaluation) -> String {
    named(evaluation)
        .into_iter()
        .map(|(name, value)| format!("{name} {value:.4}"))
        .collect::<Vec<_>>()
        .join("  ")
}

/// Numbers that are summarised over seeds, by name.
fn named(evaluation: &Evaluation) -> Vec<(String, f64)> {
    let mut list = Vec::new();
    if let Some(classification) = &evaluation.classification {
        list.push(("accuracy".to_owned(), classification.accuracy));
    }
    if let Some(regression) = &evaluation.regression {
        list.push(("RMSE".to_owned(), regression.rmse));
    }
    if let Some(detection) = &evaluation.report.misclassification {
        list.push(("AUROC misclassified".to_owned(), detection.auroc));
    }
    for (name, detection) in &evaluation.report.ood {
        list.push((format!("AUROC {name}"), detection.auroc));
    }
    if let Some(interval) = &evaluation.interval {
        list.push(("nats to target unit".to_owned(), interval.scale));
        list.extend(interval.truth.map(|truth| ("truth inside ±2su".to_owned(), truth)));
        list.extend(evaluation.ratios.iter().map(|(name, ratio)| (format!("mean u {name} ÷ test"), *ratio)));
    }
    list.push(("median u".to_owned(), f64::from(evaluation.median_uncertainty)));
    let least = evaluation.usage.iter().copied().fold(f32::INFINITY, f32::min);
    list.push(("least prior".to_owned(), f64::from(least)));
    list
}

fn summarise(all: &[Seeded]) -> Vec<(String, Summary)> {
    let mut list = own_summary(all);
    let plain: Vec<f64> = all.iter().filter_map(|seeded| seeded.comparison.plain_rmse).collect();
    list.extend(Summary::of(&plain).map(|summary| ("RMSE of plain networks".to_owned(), summary)));
    list
}

fn own_summary(all: &[Seeded]) -> Vec<(String, Summary)> {
    let Some(first) = all.first() else { return Vec::new() };
    let names = named(&first.evaluation).into_iter().map(|(name, _)| name);
    names
        .enumerate()
        .filter_map(|(index, name)| {
            let values: Vec<f64> = all
                .iter()
                .filter_map(|seeded| named(&seeded.evaluation).get(index).map(|(_, v)| *v))
                .collect();
            Summary::of(&values).map(|summary| (name, summary))
        })
        .collect()
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<()> {
    save(path, (serde_json::to_string_pretty(value)? + "\n").as_bytes())
}

/// Writes a file, whole or not at all.
fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    AtomicFile::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes one seed's folder.
fn write(experiment: &Experiment, seeded: &Seeded, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    save(&folder.join(EXPERIMENT), experiment.resolved()?.as_bytes())?;
    let metrics = json!({
        "experiment": experiment.name,
        "seed": seeded.seed,
        "kept_epoch": seeded.run.kept_epoch,
        "dab": seeded.evaluation,
        "rivals": seeded.comparison,
        "parity": seeded.parity,
        "history": seeded.run.history,
    });
    write_json(&folder.join("metrics.json"), &metrics)?;
    save(&folder.join("model.dab"), &seeded.artifact)?;
    if let Some(network) = &seeded.run.images {
        save(&folder.join("backbone.safetensors"), &weights::to_safetensors(network)?)?;
    }
    write_scores(seeded, &folder.join("scores.csv"))
}

/// One line per example: split, row, u, code, and what was wanted and given.
fn write_scores(seeded: &Seeded, path: &Path) -> Result<()> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["split", "row", "uncertainty", "code", "target", "output"])?;
    let (task, scores) = (&seeded.task, &seeded.scores);
    let mut split = |name: &str, scores: &Scores, targets: Option<&Targets>| -> Result<()> {
        let codes = classification::predictions(&scores.assignment);
        let classes = matches!(task.train.targets, Targets::Classes { .. });
        let outputs = classification::predictions(&scores.outputs);
        for row in 0..scores.uncertainty.len() {
            let target = match targets {
                Some(Targets::Classes { labels, .. }) => labels[row].to_string(),
                Some(Targets::Regression(values)) => first(values, row),
                None => String::new(),
            };
            let output = if classes { outputs[row].to_string() } else { first(&scores.outputs, row) };
            let (u, code) = (scores.uncertainty[row].to_string(), codes[row].to_string());
            csv.write_record([name, &row.to_string(), &u, &code, &target, &output])?;
        }
        Ok(())
    };
    split("held_out", &scores.held_out, Some(&task.held_out.targets))?;
    split("test", &scores.test, Some(&task.test.targets))?;
    for (name, scores) in &scores.ood {
        split(name, scores, None)?;
    }
    save(path, &csv.into_inner()?)
}

fn first(table: &Table, row: usize) -> String {
    table.row(row).first().map_or_else(String::new, ToString::to_string)
}
