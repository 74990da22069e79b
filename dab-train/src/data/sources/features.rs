//! The user's own files: features, labels or targets, and OOD sets from any framework.
//!
//! npy, npz or csv → `Task`. What is not given as a file is cut from the training file:
//!
//! ```text
//! features → test (20 %) ∪ rest;  rest → held out (10 %) ∪ train;  by class when there are classes
//! ```
//!
//! `labels = "table.csv:species"` beside `features = "table.csv"` takes the label column out of the
//! inputs: a model that sees its own answer is always certain.

use anyhow::{Context, Result, anyhow, bail, ensure};
use dab_core::Rates;
use serde::{Deserialize, Serialize};

use crate::{
    data::{
        Description, RowNames, Split, Table, Targets, Task, class_counts,
        columns::{did_you_mean, no_inputs, quoted, remedy},
        files::{self, FilePart, Labels},
        listed,
        rows::{Header, TextFormat},
    },
    support::{
        random::Random,
        settings::{is_default, tenth},
        text::counted,
    },
};

/// Settings for the user's own data. A file is `x.npy`, `x.npz:key`, `x.csv` or `x.csv:column`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeaturesConfig {
    /// Name of the task, for titles.
    #[serde(default = "default_name")]
    pub name: String,
    /// Training inputs, one row per example.
    pub features: String,
    /// Class labels of `features`. Give either these or `targets`.
    pub labels: Option<String>,
    /// Real-valued targets of `features`.
    pub targets: Option<String>,
    /// Test inputs; without them a share of `features` is tested.
    pub test_features: Option<String>,
    /// Labels or targets of `test_features`.
    pub test_labels: Option<String>,
    /// Inputs that the user's network has not seen: they calibrate in place of the held-out rows.
    pub calibration: Option<String>,
    /// Columns that are no inputs, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Inputs from elsewhere.
    #[serde(default)]
    pub ood: Vec<Ood>,
    /// Whether csv files begin with column names; auto: if their first row has text and no numbers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub header: Header,
    /// What separates the fields of csv files.
    #[serde(default = "default_delimiter", skip_serializing_if = "is_comma")]
    pub delimiter: char,
    /// Share tested when there are no test files.
    #[serde(default = "default_test")]
    pub test: f64,
    /// Share of the remaining rows kept aside for calibration.
    #[serde(default = "tenth")]
    pub held_out: f64,
}

/// One named OOD file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ood {
    /// What to call it.
    pub name: String,
    /// Its inputs.
    pub file: String,
}

fn default_name() -> String {
    "features".into()
}

fn default_delimiter() -> char {
    ','
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_comma(delimiter: &char) -> bool {
    *delimiter == default_delimiter()
}

fn default_test() -> f64 {
    0.2
}

/// Fewer held-out rows than this give no p-value of 0.01, the rate of `unfamiliar`.
pub(crate) const CALIBRATED: usize = 99;
/// The largest share of rows that anybody is told to hold out.
const MOST_HELD_OUT: f64 = 0.5;
/// A class with fewer training rows than this has a code that rests on little.
const FEW: usize = 5;

/// What stands beside the inputs.
pub(crate) enum Answers {
    /// Classes.
    Labels(Labels),
    /// Numbers to predict, and the names of their columns.
    Numbers(Table, Vec<String>),
}

/// Inputs and answers of the same rows, as read or given.
pub(crate) struct FileRows {
    /// One row per example.
    pub inputs: Table,
    /// Names of the columns, or none.
    pub names: Vec<String>,
    /// One per row.
    pub answers: Answers,
}

impl FeaturesConfig {
    /// The least a user gives: features and labels, everything else by default.
    #[must_use]
    pub fn new(features: &str, labels: &str) -> Self {
        Self {
            name: default_name(),
            features: features.into(),
            labels: Some(labels.into()),
            targets: None,
            test_features: None,
            test_labels: None,
            calibration: None,
            without: Vec::new(),
            ood: Vec::new(),
            header: Header::Auto,
            delimiter: default_delimiter(),
            test: default_test(),
            held_out: tenth(),
        }
    }

    pub(crate) fn load(&self, seed: u64) -> Result<(Task, Description)> {
        for (name, share) in [("test", self.test), ("held_out", self.held_out)] {
            ensure!((0.0..1.0).contains(&share), "{name} = {share}: a share from 0 to below 1");
        }
        let answers = match (&self.labels, &self.targets) {
            (Some(file), None) | (None, Some(file)) => file,
            _ => bail!("give either labels (classes) or targets (numbers)"),
        };
        let text = self.text()?;
        self.check_without(text)?;
        let mut warnings = Vec::new();
        let train = self.read(&self.features, answers, text)?;
        let input_names = train.names.clone();
        let test = match (&self.test_features, &self.test_labels) {
            (Some(features), Some(labels)) => {
                let mut test = self.read(features, labels, text)?;
                test.inputs = aligned(&input_names, test.inputs, &test.names, "test", &mut warnings)?;
                Some(test)
            }
            (None, None) => None,
            _ => bail!("test_features and test_labels go together"),
        };
        let called = (answers.as_str(), self.test_labels.as_deref());
        let shares = Shares { test: self.test, held_out: self.held_out };
        let (mut task, mut description) = cut_rows(&self.name, train, test, called, shares, seed)?;
        let mut other = |file: &str, what: &str| -> Result<Table> {
            // It may carry the same label column as the training file, which is dropped alike.
            let label = FilePart::parse(answers).part;
            let without = self.without(label.as_deref());
            let (table, names) = read_table(&FilePart::parse(file).written(text), Some(&without))?;
            aligned(&input_names, table, &names, what, &mut warnings)
        };
        for set in &self.ood {
            task.ood.push((set.name.clone(), other(&set.file, &format!("OOD set {}", set.name))?));
        }
        if let Some(file) = &self.calibration {
            description.calibrate(other(file, "the calibration file")?, &task)?;
        }
        warnings.append(&mut description.warnings);
        let tested = self.test_features.as_ref().unwrap_or(&self.features);
        for (file, names) in
            [(&self.features, &mut description.rows.held_out), (tested, &mut description.rows.test)]
        {
            names.iter_mut().for_each(|row| *row = format!("{file}:{row}"));
        }
        let of_ood = |(set, (_, table)): (&Ood, &(String, Table))| {
            (1..=table.rows).map(|row| format!("{}:{row}", set.file)).collect()
        };
        description.rows.ood = self.ood.iter().zip(&task.ood).map(of_ood).collect();
        Ok((task, Description { warnings, ..description }))
    }

    /// Refuses names of `without` that the training file does not have: a name with a mistake would leave its column in.
    fn check_without(&self, text: TextFormat) -> Result<()> {
        let Some(first) = self.without.first() else { return Ok(()) };
        let columns = files::columns(&FilePart::parse(&self.features).written(text))?;
        ensure!(!columns.is_empty(), "--without {first}: {} names no columns", self.features);
        if let Some(name) = self.without.iter().find(|name| !columns.contains(name)) {
            bail!(
                "--without {name}: {} has no such column; it has {}{}",
                self.features,
                listed(&columns),
                did_you_mean(name, &columns)
            );
        }
        Ok(())
    }

    /// The names of columns that are no inputs: those, and the one that holds the answers.
    fn without<'a>(&'a self, answers: Option<&'a str>) -> Vec<&'a str> {
        self.without.iter().map(String::as_str).chain(answers).collect()
    }

    /// How csv files are written.
    fn text(&self) -> Result<TextFormat> {
        let delimiter = u8::try_from(self.delimiter).ok().filter(u8::is_ascii);
        let delimiter = delimiter.with_context(|| {
            format!("delimiter = {:?}: fields are separated by an ASCII character", self.delimiter)
        })?;
        Ok(TextFormat { header: self.header, delimiter })
    }

    /// Inputs of `features` and what `answers` says about each.
    fn read(&self, features: &str, answers: &str, text: TextFormat) -> Result<FileRows> {
        let source = FilePart::parse(answers).written(text);
        let (found, read) = if self.labels.is_some() {
            let labels = files::labels(&source)?;
            (labels.len(), Answers::Labels(labels))
        } else {
            let (table, names) = read_table(&source, None)?;
            (table.rows, Answers::Numbers(table, names))
        };
        // Without the column that holds the answers.
        let inputs = FilePart::parse(features).written(text);
        let label = source.part.filter(|_| source.path == inputs.path);
        let (inputs, names) = read_table(&inputs, Some(&self.without(label.as_deref())))?;
        ensure!(
            found == inputs.rows,
            "{features} has {} but {answers} has {found}: every row needs its own label or target",
            counted(inputs.rows, "row")
        );
        Ok(FileRows { inputs, names, answers: read })
    }
}

/// The numbers of a file: of inputs, all columns but those of `without`; else of answers. What cannot be read comes with what
/// to do about it.
fn read_table(source: &FilePart, without: Option<&[&str]>) -> Result<(Table, Vec<String>)> {
    files::table(source, without.unwrap_or_default()).map_err(|error| {
        let input = without.is_some() && source.part.is_none();
        let remedy = error.downcast_ref().and_then(|bad| remedy(bad, input));
        remedy.map_or_else(|| anyhow!("{error:#}"), |remedy| anyhow!("{error:#}: {remedy}"))
    })
}

/// Which shares of the rows do not train.
#[derive(Clone, Copy)]
pub(crate) struct Shares {
    /// Tested, when no test rows are given.
    pub test: f64,
    /// Calibrate: a share of what is not tested.
    pub held_out: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { test: default_test(), held_out: tenth() }
    }
}

/// Cuts rows into train, held-out and test; `called` is how errors call their labels. There are no OOD sets yet.
pub(crate) fn cut_rows(
    name: &str,
    train: FileRows,
    test: Option<FileRows>,
    called: (&str, Option<&str>),
    shares: Shares,
    seed: u64,
) -> Result<(Task, Description)> {
    let (rows, input_names) = (train.inputs.rows, train.names.clone());
    let classes = matches!(&train.answers, Answers::Labels(_));
    let numbers = matches!(&train.answers, Answers::Labels(Labels::Numbers(_)));
    let (mut splits, output_names) = join(std::iter::once(train).chain(test).collect())?;
    let (mut described, mut warnings) = (output_names.clone(), Vec::new());
    if classes {
        check_classes(called.0, called.1, &splits, &output_names)?;
    }
    if numbers {
        warnings.extend(files::name_numbers(&mut described));
    }
    let given_test = if splits.len() == 2 { splits.pop() } else { None };
    let all = splits.pop().context("no training data")?;
    warnings.extend(no_inputs(&all.inputs, &input_names, &all.targets));
    let (rest, tested) = match &given_test {
        Some(test) => ((0..all.inputs.rows).collect(), (0..test.inputs.rows).collect()),
        None => all.targets.cut(shares.test, &mut Random::new(seed, "features/test")),
    };
    let test = given_test.unwrap_or_else(|| all.select(&tested));
    ensure!(
        test.inputs.rows > 0,
        "{}: too few to set some aside for a test; give more rows, or test files",
        counted(rows, "row")
    );
    let mut random = Random::new(seed, "features/held-out");
    let (kept, aside) = all.targets.select(&rest).cut(shares.held_out, &mut random);
    let of_file = |places: &[usize]| places.iter().map(|&place| rest[place]).collect::<Vec<_>>();
    let (kept, aside) = (of_file(&kept), of_file(&aside));
    let (train, held_out) = (all.select(&kept), all.select(&aside));
    warnings.extend(few(&train, &held_out, &output_names)?);
    let numbers = |rows: &[usize]| rows.iter().map(|row| (row + 1).to_string()).collect();
    let description = Description {
        input_names,
        output_names: described,
        warnings,
        rows: RowNames {
            train: kept.iter().map(|row| row + 1).collect(),
            held_out: numbers(&aside),
            test: numbers(&tested),
            ood: Vec::new(),
        },
        ..Description::default()
    };
    Ok((Task { name: name.to_owned(), train, held_out, test, ood: Vec::new() }, description))
}

impl Description {
    /// Takes rows that calibrate in place of the held-out ones.
    pub(crate) fn calibrate(&mut self, rows: Table, task: &Task) -> Result<()> {
        let cols = task.train.inputs.cols;
        ensure!(
            rows.cols == cols,
            "the calibration rows have {}, train has {cols}",
            counted(rows.cols, "column")
        );
        ensure!(rows.rows > 0, "there are no calibration rows");
        rows.check_finite("the calibration rows")?;
        self.warnings.retain(|warning| !warning.contains(HELD_OUT_ROWS));
        self.calibration = Some(rows);
        Ok(())
    }
}

/// `table` with its columns in the order of `wanted`, when both are named and all are there. Where some are not, as many columns
/// as there should be are taken as they come.
fn aligned(
    wanted: &[String],
    table: Table,
    names: &[String],
    what: &str,
    warnings: &mut Vec<String>,
) -> Result<Table> {
    if wanted.is_empty() || names.is_empty() || wanted == names {
        return Ok(table);
    }
    let missing: Vec<&String> = wanted.iter().filter(|name| !names.contains(name)).collect();
    let Some(first) = missing.first() else {
        let place = |name| names.iter().position(|other| other == name);
        return Ok(table.columns(&wanted.iter().filter_map(place).collect::<Vec<_>>()));
    };
    ensure!(
        table.cols == wanted.len(),
        "{what} has no column {}, which the training rows have; its columns are {}: rename them, or leave the file out",
        quoted(&missing),
        listed(names)
    );
    warnings.push(format!("{what} has no column {first}: its columns are taken as they come"));
    Ok(table)
}

/// Splits with targets of one kind, classes numbered over all of them; and the output names.
fn join(parts: Vec<FileRows>) -> Result<(Vec<Split>, Vec<String>)> {
    let labels: Vec<Labels> = parts
        .iter()
        .filter_map(|part| if let Answers::Labels(l) = &part.answers { Some(l.clone()) } else { None })
        .collect();
    let (numbered, classes) = files::number_classes(&labels)?;
    let mut numbered = numbered.into_iter();
    let mut names = classes.clone();
    let splits = parts
        .into_iter()
        .map(|FileRows { inputs, answers, .. }| {
            let targets = match answers {
                Answers::Labels(_) => {
                    Targets::Classes { labels: numbered.next().unwrap_or_default(), count: classes.len() }
                }
                Answers::Numbers(table, columns) => {
                    names = columns;
                    Targets::Regression(table)
                }
            };
            Split { inputs, targets }
        })
        .collect();
    Ok((splits, names))
}

/// Refuses labels that are no classes, and classes that are tested but not trained, by their names.
fn check_classes(train: &str, test: Option<&str>, splits: &[Split], names: &[String]) -> Result<()> {
    let (classes, rows) = (names.len(), splits[0].inputs.rows);
    ensure!(
        2 * classes <= rows || classes < 2,
        "{train}: {classes} different labels in {rows} rows are no classes; for numbers to predict give targets \
         (--targets)"
    );
    let trained = class_counts(&splits[0].targets)?.unwrap_or_default();
    let (Some(test), Some(split)) = (test, splits.get(1)) else { return Ok(()) };
    for (class, count) in class_counts(&split.targets)?.unwrap_or_default().into_iter().enumerate() {
        ensure!(
            count == 0 || trained[class] > 0,
            "class {} has {} in {test} but none in {train}: leave them out of the test, or give them as \
             an OOD set",
            names[class],
            counted(count, "row")
        );
    }
    Ok(())
}

/// What there is too little of.
fn few(train: &Split, held_out: &Split, names: &[String]) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let counts = class_counts(&train.targets)?.unwrap_or_default();
    if let Some((class, &count)) = counts.iter().enumerate().min_by_key(|(_, count)| **count)
        && count < FEW
    {
        let rows = counted(count, "training row");
        warnings.push(format!("class {} has only {rows}: its code rests on little", names[class]));
    }
    let rows = held_out.inputs.rows;
    if rows == 0 {
        warnings.push(format!("no {HELD_OUT_ROWS}: the model will have no p-values and verdicts"));
    } else {
        let more = hold_out_more(rows + train.inputs.rows, CALIBRATED);
        warnings.extend(few_to_calibrate(rows, HELD_OUT_ROWS, &more));
    }
    Ok(warnings)
}

/// What rows that calibrate are called in a warning.
const HELD_OUT_ROWS: &str = "held-out rows";

/// How so many rows, of which some train and some are held out, get to `wanted` held-out ones.
fn hold_out_more(rows: usize, wanted: usize) -> String {
    // In steps of a twentieth.
    let share = (20 * wanted).div_ceil(rows.max(1)) as f64 / 20.0;
    let files = "rows that calibrate (--calibration FILE)";
    match share <= MOST_HELD_OUT {
        true => format!("hold out more (--set data.held_out={share}) or give {files}"),
        false => format!("give more rows, or {files}"),
    }
}

/// A warning when `rows` give no p-value of 0.01: which rates the verdicts then have, and how there can be `more`.
pub(crate) fn few_to_calibrate(rows: usize, called: &str, more: &str) -> Option<String> {
    if rows >= CALIBRATED {
        return None;
    }
    let (usual, raised) = (Rates::DEFAULT, Rates::for_held_out(rows as u32));
    let shown = |rate: f32| format!("{rate:.3}").trim_end_matches('0').to_owned();
    let (rate, least) = (shown(raised.unfamiliar()), rows + 1);
    let (verdicts, usual) = match raised.doubtful() > usual.doubtful() {
        true => (
            "the verdicts `doubtful` and `unfamiliar` mean",
            format!("{} and {}", usual.doubtful(), usual.unfamiliar()),
        ),
        false => ("the verdict `unfamiliar` means", usual.unfamiliar().to_string()),
    };
    Some(format!(
        "only {rows} {called}: no p-value falls below 1/{least}, so {verdicts} p ≤ {rate} instead of {usual}, which needs \
         {CALIBRATED}; {more}"
    ))
}

impl Description {
    /// Warns of few rows that calibrate where they are not simply the held-out ones: `called` says which `rows` they are, and
    /// `needed` how many have to be given or held out for [`CALIBRATED`] of them.
    pub(crate) fn calibrated_by(&mut self, rows: usize, called: &str, needed: usize, task: &Task) {
        self.warnings.retain(|warning| !warning.contains(HELD_OUT_ROWS));
        if rows == 0 {
            self.warnings.push(format!("no {called}: the model will have no p-values and verdicts"));
            return;
        }
        let held_out = task.held_out.inputs.rows;
        let more = match &self.calibration {
            Some(given) => format!("give at least {needed}, not {}", given.rows),
            None => hold_out_more(held_out + task.train.inputs.rows, needed),
        };
        self.warnings.extend(few_to_calibrate(rows, called, &more));
    }
}

#[cfg(test)]
#[path = "features_tests.rs"]
mod tests;
