//! `dab train`: an experiment file in, a folder of results out.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    dry,
    progress::{TrainingProgress, choosing_bar},
    text::grouped,
};
use crate::{
    choose::Choice,
    config::{Experiment, LEARNING, Weights},
    data::Loaded,
    experiment::{self, Found, Listener},
    learn::{machines::Machines, mpi, run::Observer},
    measure::alarms::words,
    report::{
        folder::{self, CHECKPOINT, Left},
        numbers::{headline, summarise},
    },
    run::Run,
    support::{device::DeviceChoice, files::check_writable, interrupt, lock::FolderLock},
};

/// Train a model as an experiment file says
///
/// Learns the network and its codebook, measures both on held-out, test and OOD inputs beside simple
/// baselines, and compares the model file with the trainer's network. Into the output folder go
///
///   model.dab               the model, calibrated
///   report.html             one page: tables and plots (also as .svg files)
///   metrics.json            every number, and the history of the training
///   scores.csv              every held-out, test and OOD input by name: score, p-value, verdict
///   experiment.toml         the experiment, every default spelt out
///   checkpoint.safetensors  the trained network, for `dab verify` and --resume
///   backbone.safetensors    the image network, if it learnt too: for `dab score FOLDER cat.png`
///
/// Results of an earlier run are not replaced unless --force says so, and one process at a time writes
/// into a folder. In scores.csv, the name of an input is its file, or its file and row, from 1.
///
/// The same seed gives the same bytes on the same device. For your own features, `dab fit` writes the
/// experiment file. Data sets that an experiment names are looked for in the folder that DAB_DATA names,
/// else in data/ of the current folder; `dab data` tells how to get them.
///
/// Ctrl-C ends a run with a checkpoint of its last whole epoch, and code 130; with --mpi, the launcher ends
/// all processes at once. A run that ended too early goes on with --resume from its last checkpoint and
/// gives the same bytes; training.checkpoint_every says how many epochs lie between two. Training images
/// are changed at random by data.augment: pad, flip, and RandAugment, as in
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
    /// Where results go [default: `runs/NAME`]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Change one value of the experiment, as in --set objective.beta=0.01; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// How model.dab stores weights of layers and heads: float32, or int8 with one scale a row [default: the experiment's;
    /// dab fit: int8 where --flash would otherwise leave axes out]
    #[arg(long, value_enum, value_name = "KIND")]
    weights: Option<Weights>,
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
    /// Replace the results and checkpoints of an earlier run in the same folder
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// Print shapes, parameters, memory and steps, and train nothing
    #[arg(long)]
    dry_run: bool,
    /// Share the run among the processes that mpirun or srun started; the first one alone writes
    #[arg(long)]
    mpi: bool,
}

impl Args {
    /// Trains, measures and writes.
    pub fn run(&self) -> Result<()> {
        self.options.together(|machines| {
            let path = &self.experiment;
            if self.options.changes.is_empty() {
                return self.options.run(&Experiment::read(path)?, None, None, machines, Found::default());
            }
            let text = crate::support::limits::read_text(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
            self.options.run(&self.options.changed(table)?, None, None, machines, Found::default())
        })
    }
}

/// The folder of results, which is ours until this is dropped.
#[derive(Debug)]
pub struct Taken {
    out: PathBuf,
    _lock: FolderLock,
}

/// Whether this process writes the results.
fn leads(machines: Option<&Arc<Machines>>) -> bool {
    machines.is_none_or(|machines| machines.place.index == 0)
}

impl Options {
    /// The seed of the first run of an experiment that has `own`.
    pub fn first_seed(&self, own: u64) -> u64 {
        self.seed.unwrap_or(own)
    }

    /// Does `work`, with the other processes of the job if `--mpi` asks for them: they are met first, so that whatever goes wrong
    /// in this process ends all of them.
    pub fn together(&self, work: impl FnOnce(Option<Arc<Machines>>) -> Result<()>) -> Result<()> {
        if self.dry_run {
            return work(None);
        }
        if !self.mpi {
            mpi::refuse_uninvited()?;
            return work(None);
        }
        let machines = mpi::join()?.map(Arc::new);
        let index = machines.as_ref().map_or(0, |machines| machines.place.index);
        work(machines).inspect_err(|error| {
            super::complain(&format!("process {index}: {error:#}"));
            mpi::abort();
        })?;
        mpi::finish();
        Ok(())
    }

    /// Where the results of an experiment of this name go.
    fn out(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| Path::new("runs").join(name))
    }

    /// Takes the folder of results for this process, and refuses one that holds results already. Whoever does something that
    /// takes long before [`Options::run`] takes it first.
    fn take(&self, name: &str) -> Result<Taken> {
        let out = self.out(name);
        check_writable(&out)?;
        let lock = FolderLock::take(&out)?;
        self.check_left(&out)?;
        Ok(Taken { out, _lock: lock })
    }

    /// [`Options::take`] where this process will write results: not for `--dry-run`, and of several processes the first alone.
    pub fn take_early(&self, name: &str, machines: Option<&Arc<Machines>>) -> Result<Option<Taken>> {
        let writes = !self.dry_run && leads(machines);
        writes.then(|| self.take(name)).transpose()
    }

    /// Trains, measures and writes. `first` is the data of the first seed, if somebody has read it already; `taken` the folder, if
    /// somebody has taken it; `found` says why the experiment is as it is.
    pub fn run(
        &self,
        experiment: &Experiment,
        first: Option<Loaded>,
        taken: Option<Taken>,
        machines: Option<Arc<Machines>>,
        found: Found,
    ) -> Result<()> {
        ensure!(self.seeds > 0, "--seeds starts at 1");
        let weights = self.weights.or(experiment.weights);
        let experiment = &Experiment { weights, ..experiment.clone() };
        if self.dry_run {
            return super::print(&dry::plan(experiment)?);
        }
        let local = machines.as_ref().and_then(|_| mpi::local_index());
        let device = self.device.of_process(local)?.open()?;
        let writes = leads(machines.as_ref());
        // `--set name=…` may have changed the name of the folder since it was taken.
        let taken = taken.filter(|taken| taken.out == self.out(&experiment.name));
        let _taken = match (writes, taken) {
            (true, None) => Some(self.take(&experiment.name)?),
            (_, taken) => taken,
        };
        let out = self.out(&experiment.name);
        if writes && self.force {
            folder::forget(&out)?;
        }
        if machines.is_none() {
            interrupt::install();
        }
        let seed = self.first_seed(experiment.seed);
        let options = experiment::Options {
            seeds: seed..seed + self.seeds,
            device,
            out: Some(out.clone()),
            resume: self.resume,
            baselines: !self.no_baselines,
            found,
            machines,
        };
        let runs =
            experiment::run(experiment, first, &options, &mut Teller { options: self, tells: writes })?;
        if runs.len() > 1 {
            for (name, summary) in &summarise(&runs) {
                let (shown, min, max) = (summary.show(4), summary.min, summary.max);
                self.say(&format!("{name:32} {shown}  [{min:.4}, {max:.4}]"));
            }
        }
        if writes {
            self.say(&format!("results in {}", out.display()));
        }
        Ok(())
    }

    /// Refuses to overwrite what an earlier run left, unless the user asks for it.
    fn check_left(&self, out: &Path) -> Result<()> {
        let (folder, left) = (out.display(), folder::left(out));
        if self.resume {
            if left.is_none() {
                super::complain(&format!(
                    "--resume: there is no checkpoint in {folder} ({CHECKPOINT}), so this run starts at the first epoch"
                ));
            }
            return Ok(());
        }
        if self.force {
            return Ok(());
        }
        match left {
            Some(Left::Results) => bail!(
                "{folder} holds the results of an earlier run: give another folder with --out, or replace them with --force"
            ),
            Some(Left::Checkpoint) => bail!(
                "{folder} holds the checkpoint of a run that did not end: go on with --resume, start anew with --force, or \
                 give another folder with --out"
            ),
            None => Ok(()),
        }
    }

    /// Whether `--set` changes how a network learns.
    pub fn changes_learning(&self) -> bool {
        self.changes.iter().any(|change| LEARNING.iter().any(|part| change.starts_with(&format!("{part}."))))
    }

    /// The experiment with the changes of `--set` and `--weights`.
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
        let parsed =
            if self.changes.is_empty() { parsed? } else { parsed.context("with the changes of --set")? };
        Ok(Experiment { weights: self.weights.or(parsed.weights), ..parsed })
    }

    /// Lines for people who want to know why.
    pub fn tell(&self, lines: &[String]) {
        if !self.quiet {
            lines.iter().for_each(|line| self.say(line));
        }
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
}

/// The choice of views in words, and the rate–distortion curve as a table.
fn chosen(choice: &Choice) -> String {
    let mut lines = Vec::new();
    for (index, view) in choice.views.iter().enumerate() {
        lines.push(format!("view {index}: {}", view.words(choice.hidden == "classes")));
    }
    lines.extend(choice.reasons.iter().map(|reason| format!("  {reason}")));
    if !choice.curve.is_empty() {
        lines.push(format!(
            " max bytes  multiply-adds   codes  AUROC of hidden {} and mixed rows",
            choice.hidden
        ));
    }
    for point in &choice.curve {
        let mark = if point.chosen { "  chosen" } else { "" };
        let (bytes, work, codes) =
            (grouped(point.bytes), grouped(point.multiply_adds), grouped(point.codes as u64));
        lines.push(format!("{bytes:>10}  {work:>13}  {codes:>6}  {:.4}{mark}", point.auroc));
    }
    lines.join("\n")
}

/// Tells the user how far the runs are.
struct Teller<'a> {
    options: &'a Options,
    /// Of several processes the first one alone tells.
    tells: bool,
}

impl Listener for Teller<'_> {
    fn warning(&mut self, text: &str) {
        if self.tells {
            super::complain(text);
        }
    }

    fn begin(&mut self, seed: u64) -> Box<dyn Observer> {
        match (self.options.quiet || !self.tells, self.options.json_lines) {
            (true, _) => Box::new(()),
            (_, true) => Box::new(TrainingProgress::json_lines(seed)),
            _ => Box::new(TrainingProgress::bar(seed)),
        }
    }

    fn choosing(&mut self) -> Box<dyn Fn(usize, usize) + Sync> {
        if self.options.quiet || self.options.json_lines || !self.tells {
            return Box::new(|_, _| ());
        }
        choosing_bar()
    }

    fn chosen(&mut self, choice: &Choice) {
        if !self.options.quiet && self.tells {
            self.options.say(&chosen(choice));
        }
    }

    fn end(&mut self, run: &Run) {
        self.options.say(&format!("seed {}: {}", run.seed, headline(&run.evaluation)));
        let alarms = &run.evaluation.alarms;
        if let Some(first) = alarms.first() {
            self.options.say(&format!("false alarms among {} test rows: {}", first.test, words(alarms)));
        }
    }
}
