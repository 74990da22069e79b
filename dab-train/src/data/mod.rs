//! Examples: where they come from and how they are cut into train, held-out, test and OOD.
//!
//! experiment file → `DataConfig` → [`load`] → `Task` → the engine, the baselines, the metrics.
//!
//! ```text
//! train: learns    held_out: calibrates, chooses    test, ood: are only measured
//! ```
//!
//! `test` never holds an OOD example, also in the generated demo, whose grid is cut at the edge of
//! the training range: in-against-out metrics need clean sides.

pub(crate) mod copies;
mod description;
pub(crate) mod files;
pub(crate) mod images;
pub(crate) mod rows;
pub(crate) mod sealed;
pub(crate) mod sets;
pub mod sources;
pub(crate) mod split;
pub(crate) mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::sources::{cifar10, clinc150, clusters, features, uci};
pub use description::{Description, RowNames};
pub use images::{Augment, ImageTask, ImagesConfig, Normalise, Preprocessing, RandAugment};
pub use rows::Header;
pub use sealed::{Sealed, Seen};
pub use split::HeldOutFrom;
pub(crate) use table::LEAST_DEVIATION;
pub use table::{ColumnStats, OUTLIER, Scale, Table};

use crate::{
    error::Error,
    support::{digest, text::counted},
};

/// Environment variable that names the data folder.
pub const DATA_VARIABLE: &str = "DAB_DATA";
/// The data folder where the variable is not set, in the current folder.
const DATA_FOLDER: &str = "data";
/// How many items a warning lists before it says "and so on".
const LISTED: usize = 8;
/// Share of targets that the band of a regression is to hold.
pub(crate) const INTERVAL_SHARE: f64 = 0.95;

/// What a model is to predict.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Real numbers, one row per example.
    Regression(Table),
    /// Classes.
    Classes {
        /// One class number per example, below `count`.
        labels: Vec<u32>,
        /// Number of classes.
        count: usize,
    },
}

impl Targets {
    /// Number of examples.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Regression(table) => table.rows,
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    /// Whether there are no examples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The targets of the examples `indices`.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::Regression(table) => Self::Regression(table.select(indices)),
            Self::Classes { labels, count } => {
                Self::Classes { labels: indices.iter().map(|&i| labels[i]).collect(), count: *count }
            }
        }
    }
}

/// Inputs and their targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// One row per example.
    pub inputs: Table,
    /// One target per row.
    pub targets: Targets,
}

impl Split {
    /// The examples `indices`.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        Self { inputs: self.inputs.select(indices), targets: self.targets.select(indices) }
    }
}

/// Everything one experiment needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Short name for titles and file names.
    pub name: String,
    /// What the model learns from.
    pub train: Split,
    /// What calibrates it: same law as `train`, never learnt from.
    pub held_out: Split,
    /// What it is measured on.
    pub test: Split,
    /// Named inputs from elsewhere.
    pub ood: Vec<(String, Table)>,
}

/// Which data an experiment uses: the `[data]` table of an experiment file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DataConfig {
    /// The paper's demo: y = x³ + noise on one or two intervals. Generated.
    RegressionClusters(clusters::ClustersConfig),
    /// One UCI regression set against others.
    Uci(uci::UciConfig),
    /// Sentence features of 150 intents against out-of-scope and far-away text.
    Clinc150(clinc150::Clinc150Config),
    /// Image features of a CIFAR-10 network against other image sets.
    Cifar10(cifar10::Cifar10Config),
    /// The user's own files.
    Features(features::FeaturesConfig),
    /// Images, for an image network (`backbone.images`).
    Images(images::ImagesConfig),
    /// Rows that a program gave (`Fit`): an experiment file cannot name them.
    #[serde(skip_deserializing)]
    Memory,
}

/// The task of an experiment on rows: [`DataConfig::load`] without images.
///
/// # Errors
/// Missing files (what, and where it was looked for), bad shapes, NaN, labels out of range.
pub fn load(config: &DataConfig, seed: u64, root: &Path) -> Result<Task, Error> {
    Ok(load_described(config, seed, root)?.0)
}

/// [`load`], together with scales and names.
pub(crate) fn load_described(
    config: &DataConfig,
    seed: u64,
    root: &Path,
) -> Result<(Task, Description), Error> {
    match config.load(seed, root)? {
        Loaded::Rows(task, description) => Ok((*task, description)),
        Loaded::Images(_) => Err(Error::Data("images need an image network: [backbone.images]".into())),
    }
}

/// The data of an experiment.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a run")]
pub enum Loaded {
    /// Rows that the model takes as they are.
    Rows(Box<Task>, Description),
    /// Images: an image network makes a [`Task`] of them, before learning (frozen) or after it.
    Images(Box<images::ImageTask>),
}

impl Loaded {
    /// Which examples are learnt from, as a digest: of rows all their numbers, of images where they come from and their labels.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let mut add = |words: &mut dyn Iterator<Item = [u8; 4]>| words.for_each(|word| digest.update(word));
        match self {
            Self::Rows(task, _) => {
                add(&mut task.train.inputs.values.iter().map(|value| value.to_le_bytes()));
                match &task.train.targets {
                    Targets::Regression(table) => {
                        add(&mut table.values.iter().map(|value| value.to_le_bytes()))
                    }
                    Targets::Classes { labels, .. } => {
                        add(&mut labels.iter().map(|label| label.to_le_bytes()))
                    }
                }
            }
            Self::Images(task) => {
                add(&mut task.train.set.rows.iter().map(|&row| (row as u32).to_le_bytes()));
                add(&mut task.train.labels.iter().map(|label| label.to_le_bytes()));
                digest.update(&task.train.set.source);
            }
        }
        digest::hex(digest)
    }
}

impl DataConfig {
    /// Loads, cuts and checks the data; stored files are in the data folder `root`. The same `seed` gives the same cut.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(&self, seed: u64, root: &Path) -> Result<Loaded, Error> {
        self.read(seed, root).map_err(Error::of(Error::Data))
    }

    fn read(&self, seed: u64, root: &Path) -> Result<Loaded> {
        let (task, description) = match self {
            Self::RegressionClusters(config) => config.load(seed)?,
            Self::Uci(config) => config.load(seed, root)?,
            Self::Clinc150(config) => config.load(root)?,
            Self::Cifar10(config) => config.load(seed, root)?,
            Self::Features(config) => config.load(seed)?,
            Self::Memory => bail!("a program gave these data: they are in no file"),
            Self::Images(config) => return Ok(Loaded::Images(Box::new(config.load(seed, root)?))),
        };
        task.check()?;
        Ok(Loaded::Rows(Box::new(task), description))
    }
}

/// The data folder: the one that `DAB_DATA` names, else `data` in the current folder.
#[must_use]
pub fn data_root() -> PathBuf {
    let named = std::env::var_os(DATA_VARIABLE).filter(|name| !name.is_empty());
    named.map_or_else(|| DATA_FOLDER.into(), PathBuf::from)
}

/// The path of a file or folder in the data folder `root`, or else in the current one; an absolute one stays as it is.
///
/// # Errors
/// When it is not there: what is missing, where it was looked for, and how to get it.
pub(crate) fn stored(root: &Path, relative: impl AsRef<Path>) -> Result<PathBuf> {
    let relative = relative.as_ref();
    let path = root.join(relative);
    if path.exists() {
        return Ok(path);
    }
    if relative.exists() {
        return Ok(relative.into());
    }
    let full = std::path::absolute(&path).unwrap_or(path);
    let how = sets::Known::of_path(relative)
        .map_or_else(String::new, |known| format!("; `dab data {}` tells how to get it", known.name));
    bail!(
        "missing data file {}: looked for {} ({DATA_VARIABLE} may name another folder than {DATA_FOLDER}/), and in the \
         current folder{how}",
        relative.display(),
        full.display()
    );
}

impl Task {
    /// What `f` makes of each OOD set, by name.
    pub(crate) fn each_ood<T, E>(&self, f: impl Fn(&Table) -> Result<T, E>) -> Result<Vec<(String, T)>, E> {
        self.ood.iter().map(|(name, inputs)| Ok((name.clone(), f(inputs)?))).collect()
    }

    /// Refuses what no model can learn from: differing column or row counts, empty train or test, non-finite values, labels out
    /// of range, fewer than two classes in training, a class that is tested but never trained.
    pub(crate) fn check(&self) -> Result<()> {
        let cols = self.train.inputs.cols;
        for (what, split) in [("train", &self.train), ("held-out", &self.held_out), ("test", &self.test)] {
            ensure!(
                split.inputs.cols == cols,
                "{what} has {}, train has {cols}",
                counted(split.inputs.cols, "column")
            );
            ensure!(
                split.inputs.rows == split.targets.len(),
                "{what} has {} but {}",
                counted(split.inputs.rows, "input"),
                counted(split.targets.len(), "target")
            );
            ensure!(what == "held-out" || split.inputs.rows > 0, "{what} is empty");
            split.inputs.check_finite(&format!("{what} inputs"))?;
            if let Targets::Regression(targets) = &split.targets {
                targets.check_finite(&format!("{what} targets"))?;
            }
        }
        if let Targets::Regression(targets) = &self.train.targets {
            let constant = targets.column_stats().iter().all(ColumnStats::is_constant);
            ensure!(
                !constant,
                "the target is {} in all of {}: there is nothing to predict; is it the right column?",
                targets.values.first().unwrap_or(&0.0),
                counted(targets.rows, "training row")
            );
        }
        ensure!(
            self.train.inputs.column_stats().iter().any(|column| !column.is_constant()),
            "every input column is constant over the training rows, or varies by less than {LEAST_DEVIATION:.0e}: there is nothing \
             to learn from; give very small numbers another unit"
        );
        for (name, inputs) in &self.ood {
            ensure!(
                inputs.cols == cols,
                "OOD set {name} has {}, train has {cols}",
                counted(inputs.cols, "column")
            );
            ensure!(inputs.rows > 0, "OOD set {name} is empty");
            inputs.check_finite(&format!("OOD set {name}"))?;
        }
        self.check_classes()
    }

    fn check_classes(&self) -> Result<()> {
        let Some(trained) = class_counts(&self.train.targets)? else { return Ok(()) };
        let present = trained.iter().filter(|&&n| n > 0).count();
        ensure!(
            present >= 2,
            "the training labels hold one class only: there is nothing to tell apart; add a second"
        );
        for (what, split) in [("held-out", &self.held_out), ("test", &self.test)] {
            let counts = class_counts(&split.targets)?.context("train has classes, another split has not")?;
            for (class, &n) in counts.iter().enumerate() {
                ensure!(
                    n == 0 || trained.get(class).is_some_and(|&t| t > 0),
                    "class {class} occurs in {what} ({n} examples) but not in training"
                );
            }
        }
        Ok(())
    }

    /// What is allowed but worth a line to the user: classes without a training example, constant
    /// input columns.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings_of(&Description::default())
    }

    /// [`Task::warnings`] in which rows and columns have their names, if there are any.
    pub(crate) fn warnings_of(&self, described: &Description) -> Vec<String> {
        let names = &described.input_names;
        let mut warnings = Vec::new();
        if let Ok(Some(counts)) = class_counts(&self.train.targets) {
            let absent: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] == 0).collect();
            if !absent.is_empty() {
                warnings.push(format!("no training example of class {}", listed(&absent)));
            }
        }
        if let Some((columns, one)) = constant_columns(&self.train.inputs, names) {
            let (s, carry) = if one { ("", "carries") } else { ("s", "carry") };
            warnings.push(format!("constant input column{s} {columns} {carry} no information"));
        }
        warnings.extend(self.offsets(names));
        if let Targets::Regression(targets) = &self.train.targets
            && let Some((columns, one)) = constant_columns(targets, &[])
        {
            let (s, are, them) = if one { ("", "is", "it") } else { ("s", "are", "them") };
            warnings
                .push(format!("target column{s} {columns} {are} constant: nothing is learnt from {them}"));
        }
        warnings.extend(copies::warnings(self, described.calibration.as_ref()));
        warnings.extend(self.uneven_targets());
        warnings.extend(self.short_band());
        warnings.extend(self.train.inputs.outlier().map(|at| {
            let (row, column) = (at / self.train.inputs.cols, at % self.train.inputs.cols);
            let place = match described.rows.train.get(row) {
                Some(row) => format!("row {row} of the training file"),
                None => format!("training row {}", row + 1),
            };
            format!(
                "{} in {place}, column {} is more than {OUTLIER:.0e} times as far out as all other rows are: beside it they look \
                 equal; is it a broken row?",
                self.train.inputs.values[at],
                columns_called(&[column], names)
            )
        }));
        warnings
    }

    /// Whether targets differ so much in size that one error cannot serve all.
    fn uneven_targets(&self) -> Option<String> {
        /// Deviations of targets that are of one size.
        const ALIKE: f64 = 10.0;
        let Targets::Regression(targets) = &self.train.targets else { return None };
        let stats = targets.column_stats();
        let varies = stats.iter().filter(|column| !column.is_constant()).map(|column| column.std);
        let (least, most) = varies.fold((f64::INFINITY, 0.0_f64), |(a, b), std| (a.min(std), b.max(std)));
        (most > ALIKE * least).then(|| {
            format!(
                "the {} targets share one RMSE, and one varies {:.0e} times as much as another: give them units in which they vary \
                 alike, or fit a model for each",
                targets.cols,
                most / least
            )
        })
    }

    /// Whether held-out rows are too few for a band that holds [`INTERVAL_SHARE`] of fresh targets: n of them reach n / (n + 1).
    fn short_band(&self) -> Option<String> {
        let (rows, held) = (self.held_out.inputs.rows, self.held_out.inputs.rows as f64);
        let share = held / (held + 1.0);
        let short =
            matches!(self.held_out.targets, Targets::Regression(_)) && rows > 0 && share < INTERVAL_SHARE;
        short.then(|| {
            format!(
                "only {} for the band of the predictions: it holds {:.0} % of fresh targets, on average, not {:.0} %",
                counted(rows, "held-out row"),
                100.0 * share,
                100.0 * INTERVAL_SHARE
            )
        })
    }

    /// Which input columns are so far from 0 that float32 rounds away how they vary, and what to do.
    pub(crate) fn offsets(&self, names: &[String]) -> Option<String> {
        self.far_from_zero(names, ColumnStats::has_offset)
    }

    /// Of a model that a device cannot compute as exactly as it should: the columns that are likely to be why, and what to do.
    pub(crate) fn inexact(&self, names: &[String]) -> Option<String> {
        /// Deviations from 0 at which sums of float32 lose the third digit of how rows differ.
        const FAR: f64 = 1e4;
        self.far_from_zero(names, |stats| !stats.is_constant() && stats.mean.abs() > FAR * stats.std)
    }

    fn far_from_zero(&self, names: &[String], far: impl Fn(&ColumnStats) -> bool) -> Option<String> {
        let stats = self.train.inputs.column_stats();
        let far: Vec<usize> = (0..stats.len()).filter(|&j| far(&stats[j])).collect();
        let (&first, one) = (far.first()?, far.len() == 1);
        let (s, are, it) = if one { ("", "is", "its") } else { ("s", "are", "their") };
        Some(format!(
            "input column{s} {} {are} about {:e}, so far from 0 that float32 rounds away how rows differ: subtract the offset \
             (for instance {it} first value) from every file",
            columns_called(&far, names),
            stats[first].mean as f32
        ))
    }
}

/// Columns as people count and name them, from the places that they have.
fn columns_called(columns: &[usize], names: &[String]) -> String {
    let called = |&j: &usize| match names.get(j) {
        Some(name) => format!("{} `{name}`", j + 1),
        None => (j + 1).to_string(),
    };
    listed(&columns.iter().map(called).collect::<Vec<_>>())
}

/// Examples per class; `None` for regression.
fn class_counts(targets: &Targets) -> Result<Option<Vec<usize>>> {
    let Targets::Classes { labels, count } = targets else { return Ok(None) };
    if let Some(row) = labels.iter().position(|&label| label as usize >= *count) {
        let (label, last) = (labels[row], count - 1);
        bail!("row {} has label {label}, but there are {count} classes (0 to {last})", row + 1);
    }
    Ok(Some(count_labels(labels, *count)))
}

/// How many examples each of `classes` classes has.
pub(crate) fn count_labels(labels: &[u32], classes: usize) -> Vec<usize> {
    let mut counts = vec![0; classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

/// The columns that never change, counted from 1 and by name, in words, and whether it is one; `None` where every one does.
fn constant_columns(table: &Table, names: &[String]) -> Option<(String, bool)> {
    let stats = table.column_stats();
    let constant: Vec<usize> =
        (0..stats.len()).filter(|&j| stats[j].is_constant() && !stats[j].has_offset()).collect();
    (!constant.is_empty()).then(|| (columns_called(&constant, names), constant.len() == 1))
}

/// The first of some items, and how many more there are.
pub(crate) fn listed(items: &[impl ToString]) -> String {
    let shown: Vec<String> = items.iter().take(LISTED).map(ToString::to_string).collect();
    let rest = items.len().saturating_sub(LISTED);
    shown.join(", ") + &if rest > 0 { format!(" and {rest} more") } else { String::new() }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
