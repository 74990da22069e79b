//! One experiment, from data to report: the corridor that passes every room.
//!
//! ```text
//! load → learn or choose and fit → export → open → measure → report    once a seed; the report is of all of them
//! ```
//!
//! Until the model's bytes are final, nothing here has a test or an OOD row: they are sealed (`data::sealed`), and the
//! measuring step opens them.
//!
//! `Experiment` + [`Options`] → [`run`] → one [`Run`] a seed. With a folder in the options, results are written as they come;
//! without one, nothing is written.

mod without_gradients;

pub(crate) use without_gradients::twice;

use std::{ops::Range, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, anyhow, bail};
use burn::tensor::Device;
use dab_core::artifact::AlignedBytes;

use crate::{
    choose::Choice,
    config::{Experiment, OutputVariance, Weights, retrofit::Beside},
    data::{self, DataConfig, Description, Loaded, Seen, Table, Targets, Task, sources::clusters},
    error::Error,
    export::{artifact, backbone, band, int8, retrofit},
    learn::{
        learn,
        machines::Machines,
        retrofit::Retrofitted,
        run::{Learnt, Observer, Setting},
    },
    measure::{
        alarms,
        assessed::{Assessments, assess},
        comparison::{Comparison, compare},
        cost,
        evaluate::{TaskScores, evaluate, truth_coverage},
        parity::{Parity, Twice},
        worth::{Classifier, useless},
    },
    model::{codebook::Codebook, network::Output},
    report::folder::{self, CHECKPOINT},
    run::Run,
};

/// How an experiment is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds of data, weights, order and noise: one run each.
    pub seeds: Range<u64>,
    /// Where tensors live.
    pub device: Device,
    /// Where results and checkpoints go; nothing is written without.
    pub out: Option<PathBuf>,
    /// Whether to go on from the checkpoints of an interrupted run.
    pub resume: bool,
    /// Whether the baselines are measured too.
    pub baselines: bool,
    /// What was found out when the experiment was made.
    pub found: Found,
    /// The processes that share the run, when there are several; process 0 alone measures and writes.
    pub machines: Option<Arc<Machines>>,
}

/// What was found out when an experiment was made of somebody's rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Why the experiment is as it is, in sentences: they stand in metrics.json and on the page.
    pub reasons: Vec<String>,
    /// How long that took: so much less is left for choosing the views of the first seed.
    pub spent: Duration,
}

impl Options {
    /// One seed on the CPU, with baselines; nothing is written.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seeds: seed..seed + 1,
            device: Device::flex(),
            out: None,
            resume: false,
            baselines: true,
            found: Found::default(),
            machines: None,
        }
    }

    /// Where one seed's results go.
    fn folder(&self, seed: u64) -> Option<PathBuf> {
        let one = self.seeds.end - self.seeds.start == 1;
        self.out.as_ref().map(|out| if one { out.clone() } else { out.join(format!("seed-{seed}")) })
    }

    /// Where features of frozen image networks are kept: beside the results, so that all seeds and experiments share them.
    fn features(&self) -> PathBuf {
        let beside = self.out.as_ref().map(|out| out.parent().unwrap_or(out).to_owned());
        beside.unwrap_or_else(std::env::temp_dir).join("features")
    }
}

/// Told how far an experiment is.
pub trait Listener {
    /// The data of a run are odd.
    fn warning(&mut self, _: &str) {}

    /// A run begins; what is returned is told of its epochs.
    fn begin(&mut self, _seed: u64) -> Box<dyn Observer> {
        Box::new(())
    }

    /// Views are being chosen; what is returned is told how far that is: fits done, of so many.
    fn choosing(&mut self) -> Box<dyn Fn(usize, usize) + Sync> {
        Box::new(|_, _| ())
    }

    /// Views were chosen, and why.
    fn chosen(&mut self, _: &Choice) {}

    /// A run ended; its files are written.
    fn end(&mut self, _: &Run) {}
}

/// Says nothing.
impl Listener for () {}

/// Runs an experiment, once a seed. `first` is the data of the first seed, if somebody has loaded them already.
///
/// A process other than process 0 learns with it and gives no runs.
///
/// # Errors
/// When the data, the experiment or the output folder cannot be used, or learning fails.
pub fn run(
    experiment: &Experiment,
    mut first: Option<Loaded>,
    options: &Options,
    listener: &mut dyn Listener,
) -> Result<Vec<Run>, Error> {
    let leads = options.machines.as_ref().is_none_or(|machines| machines.place.index == 0);
    let out = options.out.as_deref().filter(|_| leads);
    let mut runs = Vec::new();
    for seed in options.seeds.clone() {
        let mut experiment = Experiment { seed, ..experiment.clone() };
        let folder = options.folder(seed).filter(|_| leads);
        let setting = Setting {
            seed,
            device: options.device.clone(),
            checkpoint: folder.as_ref().map(|folder| folder.join(CHECKPOINT)),
            resume: options.resume,
            machines: options.machines.clone(),
        };
        let mut observer = listener.begin(seed);

        let loaded = match first.take() {
            Some(loaded) => loaded,
            None => experiment.data.load(seed, &data::data_root())?,
        };
        if let Some(machines) = &options.machines {
            let version = env!("CARGO_PKG_VERSION");
            let own = format!("{version}\n{}\n{seed}\n{}", experiment.resolved()?, loaded.digest());
            machines.agree(&own).map_err(Error::of(Error::Learning))?;
        }
        let description = description(&experiment, &loaded);
        description.warnings.iter().for_each(|warning| listener.warning(warning));
        let (seen, sealed, made) = if experiment.retrofit.is_some() {
            let (seen, sealed) = rows(loaded).map_err(Error::of(Error::Data))?.seal();
            let spent = if seed == options.seeds.start { options.found.spent } else { Duration::ZERO };
            let made = without_gradients::make(&mut experiment, &description, &seen, spent, listener);
            (seen, sealed, Made::Computed(Box::new(made.map_err(Error::of(Error::Learning))?)))
        } else {
            let (seen, sealed, learnt) =
                learn(&experiment, loaded, &setting, &options.features(), &mut *observer)
                    .map_err(Error::of(Error::Learning))?;
            (seen, sealed, Made::Learnt(Box::new(learnt)))
        };
        if !leads {
            continue;
        }
        let mut model = made.export(&experiment, &description, &seen).map_err(Error::of(Error::Export))?;
        let mut floats = None;
        if experiment.weights == Some(Weights::Int8) {
            let rows = calibration_rows(&experiment, &description, &seen);
            let bytes = int8::quantised(&model, Some(&rows)).map_err(Error::of(Error::Export))?;
            floats = Some(std::mem::replace(&mut model, bytes));
        }
        let model = band::with_bands(model, &seen.held_out).map_err(Error::of(Error::Export))?;

        let task = sealed.open(seen);
        // All that is told about the model comes from its file; the trainer's own scores are there for parity.
        let assessments = assess(&model, &task).map_err(Error::of(Error::Measuring))?;
        let trainer = made.scores(&task, &options.device).map_err(Error::of(Error::Measuring))?;
        // Weights in bytes differ from the trainer's on purpose: those that were rounded are compared with it.
        let rounded = floats.map(|floats| assess(&floats, &task)).transpose();
        let rounded = rounded.map_err(Error::of(Error::Measuring))?;
        let parity = agreement(&trainer, rounded.as_ref().unwrap_or(&assessments)).map_err(|error| {
            let names = &description.input_names;
            let cause = task.offsets(names).or_else(|| task.inexact(names));
            let error = cause.map_or(error, |cause| anyhow!("float32 cannot compute this model: {cause}"));
            Error::Export(error.into())
        })?;
        let (scores, codebook) = (assessments.scores(), made.codebook());
        let noise = made.noise(&task, &trainer).map_err(Error::of(Error::Measuring))?;
        let widths = widths(&model).map_err(Error::of(Error::Measuring))?;
        let mut evaluation = evaluate(&codebook.priors, noise.as_ref(), widths.as_deref(), &task, &scores)
            .map_err(Error::of(Error::Measuring))?;
        if let (DataConfig::RegressionClusters(_), Some(interval), Some(&[width])) =
            (&experiment.data, &mut evaluation.interval, widths.as_deref())
        {
            let truth = |x: &[f32]| clusters::truth(x[0]);
            interval.truth = Some(truth_coverage(&task, &scores, width, truth));
        }
        evaluation.scores = assessments.reports(&task).map_err(Error::of(Error::Measuring))?;
        // What a reader wants first: how well the score does that verdicts are about.
        evaluation.report.clone_from(&evaluation.scores[0]);
        evaluation.alarms.clone_from(&assessments.alarms);
        let comparison = match options.baselines {
            true => compare(&experiment, &task, &setting).map_err(Error::of(Error::Measuring))?,
            false => Comparison::default(),
        };
        let (mut warnings, rows) = (description.warnings, description.rows);
        let classifier = Classifier::of(experiment.retrofit.as_ref());
        for warning in useless(&task, &scores.test, classifier, alarms::elsewhere(&evaluation.alarms))
            .into_iter()
            .chain(alarms::warnings(&evaluation.alarms, description.calibration.is_some()))
            .chain(parity.warning())
        {
            listener.warning(&warning);
            warnings.push(warning);
        }
        let (learnt, choice) = match made {
            Made::Learnt(learnt) => (Some(*learnt), None),
            Made::Computed(made) => (None, Some(made.choice)),
        };
        let run = Run {
            seed,
            model,
            evaluation,
            comparison,
            scores,
            assessments,
            parity,
            task,
            rows,
            codebook,
            learnt,
            reasons: options.found.reasons.clone(),
            choice,
            warnings,
        };
        if let Some(folder) = folder {
            folder::write_run(&experiment, &run, &folder).map_err(Error::of(Error::Output))?;
        }
        listener.end(&run);
        runs.push(run);
    }
    if let Some(out) = out {
        folder::write_report(experiment, &runs, out).map_err(Error::of(Error::Output))?;
    }
    Ok(runs)
}

/// What is said to those whose network was trained on the rows, since they give others that calibrate, but none to test.
const TESTED_ON_SEEN: &str = "accuracy, strangers and alarms are measured on rows of the training file: if your network was trained on \
                              them, give rows that it has not seen (--test FILE --test-labels FILE)";

/// Names, scales and warnings of the data.
fn description(experiment: &Experiment, loaded: &Loaded) -> Description {
    match loaded {
        Loaded::Rows(task, description) => {
            let mut description = description.clone();
            let shaped = !experiment.beside.views.is_empty()
                || (experiment.retrofit.is_some() && description.calibration.is_some());
            let rows = description.calibration.as_ref().unwrap_or(&task.held_out.inputs);
            if shaped && rows.rows > 0 {
                let left = retrofit::Calibration::Unseen(rows).table().rows;
                let called = "rows that calibrate, beside a quarter that shapes the scores";
                description.calibrated_by(left, called, task);
            } else if let Some(rows) = description.calibration.as_ref().map(|rows| rows.rows) {
                description.calibrated_by(rows, "calibration rows", task);
            }
            if let DataConfig::Features(files) = &experiment.data
                && files.calibration.is_some()
                && files.test_features.is_none()
            {
                description.warnings.push(TESTED_ON_SEEN.to_owned());
            }
            description.warnings.extend(task.warnings_of(&description));
            description
        }
        Loaded::Images(task) => {
            let mut description = task.description.clone();
            description.warnings.extend(cost::odd_size(experiment, task.train.set.images.side()));
            description
        }
    }
}

/// The rows of a task that has no images.
fn rows(loaded: Loaded) -> Result<Task> {
    match loaded {
        Loaded::Rows(task, _) => Ok(*task),
        Loaded::Images(_) => bail!("[retrofit] takes rows, not images: give it an image network's features"),
    }
}

/// A model, however it was made.
enum Made {
    Learnt(Box<Learnt>),
    Computed(Box<without_gradients::Made>),
}

impl Made {
    /// The bytes of the model file, calibrated on held-out rows.
    fn export(&self, experiment: &Experiment, description: &Description, seen: &Seen) -> Result<Vec<u8>> {
        let learnt = match self {
            Self::Learnt(learnt) => learnt,
            Self::Computed(made) => return Ok(made.bytes.clone()),
        };
        let mut info = artifact::info(experiment, description)?;
        let (scale, train) = (&learnt.trained.input_scale, &seen.train.inputs);
        if scale.mean.iter().all(|&m| m == 0.0) && train.rows > 0 && train.cols == scale.mean.len() {
            info.push(artifact::means(train));
        }
        if let (Some(images), Some((digest, preprocessing))) = (&experiment.backbone.images, &learnt.backbone)
        {
            info.extend(backbone::info(images.network, digest, *preprocessing)?);
        }
        let calibration = description.calibration.as_ref().unwrap_or(&seen.held_out.inputs);
        let Beside { views, alone, form } = &experiment.beside;
        if views.is_empty() {
            return artifact::artifact(&learnt.trained, calibration, info);
        }
        let bytes = experiment.weights == Some(Weights::Int8);
        let views = Retrofitted::fit_for(views, &seen.train, None, bytes, experiment.seed)?;
        retrofit::beside(artifact::spec(&learnt.trained, info), &views, (*alone, *form), calibration)
    }

    /// The scores that parity compares with the file's: of the network that learned, or computed in float64.
    fn scores(&self, task: &Task, device: &Device) -> Result<TaskScores> {
        match self {
            Self::Learnt(learnt) => Ok(TaskScores::of(task, |inputs| learnt.trained.score(inputs, device))?),
            Self::Computed(made) => without_gradients::exact(&made.fitted, task),
        }
    }

    /// The variance of each prediction for test rows, where the network learned one. The file stores predictions alone, so the
    /// variance is the one number that comes from the trainer's scores.
    fn noise(&self, task: &Task, trainer: &TaskScores) -> Result<Option<Table>> {
        let (Self::Learnt(learnt), Targets::Regression(_)) = (self, &task.test.targets) else {
            return Ok(None);
        };
        match learnt.trained.output {
            Output::Classes(_) => bail!("a classifier cannot be measured on numbers"),
            Output::Regression(_, OutputVariance::Unit) => Ok(None),
            Output::Regression(..) => {
                let mut noise = learnt.trained.noise(&trainer.test);
                noise.values.iter_mut().for_each(|std| *std *= *std);
                Ok(Some(noise))
            }
        }
    }

    fn codebook(&self) -> Codebook {
        match self {
            Self::Learnt(learnt) => learnt.trained.codebook.clone(),
            Self::Computed(made) => made.fitted.codebook(),
        }
    }
}

/// The widths of the bands in a model's file.
fn widths(model: &[u8]) -> Result<Option<Vec<f32>>> {
    Ok(band::widths(&AlignedBytes::from(model).model()?))
}

/// How well the file's scores agree with the trainer's; a disagreement is an error.
fn agreement(trainer: &TaskScores, file: &Assessments) -> Result<Parity> {
    let parity = Twice::new(trainer, file).parity()?;
    parity.check()?;
    Ok(parity)
}

/// The rows that calibrate a file: where a computed model shaped its tails with some, the others.
fn calibration_rows(experiment: &Experiment, description: &Description, seen: &Seen) -> Table {
    let rows = description.calibration.as_ref().unwrap_or(&seen.held_out.inputs);
    let computed = experiment.retrofit.is_some() && description.calibration.is_some();
    match computed || !experiment.beside.views.is_empty() {
        true => retrofit::Calibration::Unseen(rows).table(),
        false => rows.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{
            defaults::{self, Wishes},
            retrofit::{Norm, Retrofit, ViewConfig},
        },
        data::{Split, Targets},
        support::random::Random,
    };

    /// Two classes around −2 and 2.
    fn split(rows: usize, stream: &str) -> Split {
        let mut random = Random::new(5, stream);
        let labels: Vec<u32> = (0..rows).map(|i| (i % 2) as u32).collect();
        let point =
            |&label: &u32| [4.0 * label as f32 - 2.0 + random.normal() as f32, random.normal() as f32];
        let rows: Vec<[f32; 2]> = labels.iter().map(point).collect();
        Split { inputs: Table::from_rows(&rows).unwrap(), targets: Targets::Classes { labels, count: 2 } }
    }

    fn run_on(learns: bool, beside: Beside, test: Split, ood: Vec<(String, Table)>) -> Run {
        let (train, held_out) = (split(200, "train"), split(50, "held-out"));
        let task = Task { name: "sealed".into(), train, held_out, test, ood };
        let wishes = Wishes { epochs: Some(3), ..Wishes::default() };
        let experiment = match learns {
            true => Experiment {
                beside,
                ..defaults::experiment("sealed", 0, DataConfig::Memory, &task.train, wishes)
            },
            false => Experiment::without_gradients("sealed", 0, DataConfig::Memory, Retrofit::default()),
        };
        let loaded = Loaded::Rows(Box::new(task), Description::default());
        run(&experiment, Some(loaded), &Options::new(0), &mut ()).unwrap().swap_remove(0)
    }

    #[test]
    fn test_and_ood_rows_do_not_change_the_model_file() {
        let mut strange = split(30, "test");
        strange.inputs.values.iter_mut().for_each(|x| *x *= -30.0);
        let far = Table::from_rows(&[[50.0_f32, 50.0], [-70.0, 9.0]]).unwrap();
        for learns in [false, true] {
            let first = run_on(learns, Beside::default(), split(40, "test"), Vec::new());
            let second =
                run_on(learns, Beside::default(), strange.clone(), vec![("far".to_owned(), far.clone())]);
            let median = |run: &Run| run.evaluation.median_uncertainty;
            assert!(median(&first) != median(&second), "both were measured on their own test rows");
            assert!(first.model == second.model, "a test or OOD row reached the model");
        }
    }

    #[test]
    fn the_band_in_the_file_is_made_of_held_out_rows_alone() {
        let numbers = |rows: usize, stream: &str, noise: f32| {
            let mut random = Random::new(6, stream);
            let inputs = Table::column((0..rows).map(|_| random.normal() as f32).collect());
            let targets = inputs.values.iter().map(|x| 3.0 * x + noise * random.normal() as f32).collect();
            Split { inputs, targets: Targets::Regression(Table::column(targets)) }
        };
        let run_on = |held_out: f32, test: f32| {
            let [train, held_out, test] =
                [(200, "train", 1.0), (60, "held-out", held_out), (60, "test", test)]
                    .map(|(rows, stream, noise)| numbers(rows, stream, noise));
            let task = Task { name: "banded".into(), train, held_out, test, ood: Vec::new() };
            let views = vec![ViewConfig { norm: Norm::Columns, codes: 3, ..ViewConfig::default() }];
            let retrofit = Retrofit { views, ..Retrofit::default() };
            let experiment = Experiment::without_gradients("banded", 0, DataConfig::Memory, retrofit);
            let loaded = Loaded::Rows(Box::new(task), Description::default());
            run(&experiment, Some(loaded), &Options::new(0), &mut ()).unwrap().swap_remove(0)
        };
        let [first, other_test, other_band] =
            [(1.0, 1.0), (1.0, 90.0), (9.0, 1.0)].map(|(a, b)| run_on(a, b));
        let interval = |run: &Run| run.evaluation.interval.clone().unwrap();
        assert!(interval(&first).coverage > 0.8 && interval(&other_test).coverage < 0.2);
        assert!(first.model == other_test.model, "a test row reached the band");
        let width = |run: &Run| widths(&run.model).unwrap().unwrap()[0];
        assert!(width(&other_band) > 5.0 * width(&first), "{} {}", width(&other_band), width(&first));
        assert_eq!(interval(&first).scales, [f64::from(width(&first)) / 2.0]);
    }

    #[test]
    fn a_view_beside_a_network_judges_with_it_or_alone() {
        let far = Table::from_rows(&[[0.0_f32, 30.0], [0.5, -30.0]]).unwrap();
        let view = ViewConfig { norm: Norm::Columns, codes: 5, ..ViewConfig::default() };
        let scores = [false, true].map(|alone| {
            let beside = Beside { views: vec![view.clone()], alone, ..Beside::default() };
            let run = run_on(true, beside, split(40, "test"), vec![("far".to_owned(), far.clone())]);
            assert_eq!(AlignedBytes::from(&*run.model).model().unwrap().shape().views, 2);
            let judged = &run.evaluation.report;
            assert_eq!((judged.name.as_str(), judged.ood[0].1.auroc), ("unfamiliarity", 1.0));
            run.assessments.test.each(|row| Some(row.said.score()))
        });
        assert!(scores[0] != scores[1], "whether the network judges too changes U");
    }
}
