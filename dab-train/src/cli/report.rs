//! `dab report`: an existing model and rows in, the one-page report out.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use dab_core::Task;

use super::{
    fit,
    input::{self, RateArgs, TextArgs, check_apart},
    place::Place,
};
use crate::{
    data::{
        self, Split, Table, Targets, copies,
        files::{self, FilePart, Labels},
        rows::TextFormat,
    },
    export::{model_file::ModelFile, names},
    measure::{assessed::JudgedSet, comparison::on_features, metrics::ScoreReport},
    report::{Extras, Report, contest::Method, own, subject::Subject},
    support::{files::save, random::Random, text::counted},
};

/// Report how a model does on your rows, on one page.
///
/// The page opens with the answer in words: how many strangers it finds, whether its p-values can be trusted,
/// whether its predictions are right. Then come figures, rows to look at, and a map. It is one file without any
/// other, for the browser, a mail or a printer. `dab fit` and `dab train` write the same page, with a
/// comparison against simple methods; that needs the training rows, here --train and --train-labels.
///
/// Give rows that the model has not seen: on rows that it learned from, everything looks familiar. A file is
/// x.npy, x.npz:key, x.csv or x.csv:column (also .csv.gz).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab report model.dab --data test.npy --labels y.npy --ood noise=noise.npy
  dab report model.dab --data today.csv --labels today.csv:species -o today.html
  dab report model.dab --data test.npy --labels y.npy --ood noise=noise.npy --train x.npy --train-labels y_train.npy
  dab report model.dab --data test.npy --doubtful 0.02 --unfamiliar 0.005
  dab report model.dab --data test.csv --targets test.csv:strength")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,
    /// Fresh rows of the kind that the model knows
    #[arg(long, value_name = "FILE")]
    data: String,
    /// Their classes, if you know them
    #[arg(long, value_name = "FILE", conflicts_with = "targets")]
    labels: Option<String>,
    /// The numbers that a regression should have predicted for them, if you know them
    #[arg(long, value_name = "FILE")]
    targets: Option<String>,
    /// Rows from elsewhere, to see how well they are found; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    ood: Vec<String>,
    /// Rows that the model was fitted to: simple methods are fitted to them, and compared on the page
    #[arg(long, value_name = "FILE")]
    train: Option<String>,
    /// Their classes; needed where the model has classes
    #[arg(long, value_name = "FILE", requires = "train")]
    train_labels: Option<String>,
    #[command(flatten)]
    rates: RateArgs,
    #[command(flatten)]
    text: TextArgs,
    /// Where to write the page
    #[arg(short, long, default_value = "report.html", value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    let file = args.rates.apply(ModelFile::open(&place.model)?)?;
    let model = file.model()?;
    let shape = model.shape();
    let answers = args.labels.as_ref().or(args.targets.as_ref());
    check_apart(&args.output, [&place.model])?;
    check_apart(
        &args.output,
        std::iter::once(&args.data).chain(answers).chain(&args.train).chain(&args.train_labels),
    )?;
    let text = args.text.format();
    let inputs = |source: &str| input::table(&file, shape.inputs, source, text);
    let data = inputs(&args.data)?;
    let targets = match (&args.labels, &args.targets) {
        (Some(labels), _) => {
            ensure!(
                shape.task == Some(Task::Classification),
                "--labels needs a model of classes, `{}` has none: give the numbers that it should predict, with --targets",
                args.model.display()
            );
            Some(classes(&file, shape.outputs, labels, text)?)
        }
        (None, Some(targets)) => {
            ensure!(
                shape.task == Some(Task::Regression),
                "--targets needs a regression, `{}` is none: give classes, with --labels",
                args.model.display()
            );
            let (table, _) = files::table(&FilePart::parse(targets).written(text), &[])?;
            ensure!(
                table.cols == shape.outputs,
                "{targets} has {}, the model predicts {}",
                counted(table.cols, "column"),
                shape.outputs
            );
            Some(Targets::Regression(table))
        }
        (None, None) => None,
    };
    if let (Some(targets), Some(answers)) = (&targets, answers) {
        ensure!(
            targets.len() == data.rows,
            "{} has {} but {answers} has {}: every row needs its own label or target",
            args.data,
            counted(data.rows, "row"),
            targets.len()
        );
    }
    let ood = fit::ood_sets(&args.ood)?
        .into_iter()
        .map(|set| Ok((set.name, inputs(&set.file)?)))
        .collect::<Result<Vec<_>>>()?;
    let title = file.info.iter().find(|(key, _)| key == "experiment").map_or_else(
        || args.model.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        |(_, name)| name.clone(),
    );
    let mut notes = Vec::new();
    let compared = match &args.train {
        Some(train) => {
            let answers = match (&args.train_labels, shape.task) {
                (Some(labels), _) => Some(classes(&file, shape.outputs, labels, text)?),
                (None, Some(Task::Classification)) => {
                    bail!("--train needs --train-labels: the model has classes")
                }
                (None, _) => None,
            };
            let train = inputs(train)?;
            notes.extend(copies::many(&train, &[&data]).map(|(found, all)| {
                format!(
                    "{found} of {all} rows of --data are copies of rows of --train: everything looks familiar there; give rows that \
                     the model has not seen"
                )
            }));
            baselines(train, answers, &data, targets.clone(), &ood)?
        }
        None => Vec::new(),
    };
    let ood = ood.iter().map(|(name, inputs)| JudgedSet::new(name, &model, inputs));
    let (ood, test) = (ood.collect::<Result<Vec<_>>>()?, JudgedSet::new("test", &model, &data)?);
    let subject = Subject::new(file.clone(), test, targets, ood)?;
    let mut methods = Vec::new();
    if !compared.is_empty() {
        methods = own([&subject])?;
        methods.extend(Method::baselines(&[compared]));
    }
    notes.iter().for_each(|note| super::complain(note));
    let extras = Extras {
        methods,
        notes,
        settings: file.info.clone(),
        rows: "Rows are counted from 1, as in dab explain MODEL FILE --row N, which says more about one.",
        ..Extras::default()
    };
    let report = Report::new(&title, &subject, extras)?;
    save(&args.output, report.html())?;
    super::print(&format!("{}\nreport in {}\n", report.headline(), args.output.display()))
}

/// Simple methods, fitted to training rows and measured on the rows of the page.
fn baselines(
    inputs: Table,
    answers: Option<Targets>,
    data: &Table,
    targets: Option<Targets>,
    ood: &[(String, Table)],
) -> Result<Vec<ScoreReport>> {
    /// Share of the training rows that chooses the penalty of a logistic regression.
    const JUDGING: f64 = 0.1;
    let rows = inputs.rows;
    // What a regression should predict plays no part in any of these methods; and without labels of the test rows nobody knows
    // which of them are wrong.
    let unknown = |rows: usize| Targets::Regression(Table::column(vec![0.0; rows]));
    let all = Split { targets: answers.unwrap_or_else(|| unknown(rows)), inputs };
    let labels = all.targets.len();
    ensure!(labels == rows, "--train has {}, --train-labels {labels}", counted(rows, "row"));
    let (kept, aside) = all.targets.cut(JUDGING, &mut Random::new(0, "report"));
    let (train, held_out) = (all.select(&kept), all.select(&aside));
    let targets = targets.unwrap_or_else(|| unknown(data.rows));
    let test = Split { inputs: data.clone(), targets };
    on_features(&data::Task { name: String::new(), train, held_out, test, ood: ood.to_vec() })
}

/// Labels as the model numbers its classes.
fn classes(file: &ModelFile, count: usize, source: &str, text: TextFormat) -> Result<Targets> {
    let names = names::find(&file.info, names::OUTPUTS, count);
    let unknown = |label: &str| {
        let known = names.as_ref().map_or_else(|| format!("0 to {}", count - 1), |names| names.join(", "));
        anyhow::anyhow!(
            "{source}: the model has no class {label} (it has {known}); give such rows as strangers, with --ood"
        )
    };
    let labels = match files::labels(&FilePart::parse(source).written(text))? {
        Labels::Words(words) => words,
        // `dab fit` calls numbers that are no indices class_7.
        Labels::Numbers(numbers) if names.is_some() => numbers.iter().map(|n| format!("class_{n}")).collect(),
        Labels::Numbers(numbers) => numbers.iter().map(ToString::to_string).collect(),
    };
    let index = |label: &String| {
        let found = match &names {
            Some(names) => names.iter().position(|name| name == label),
            None => label.parse().ok().filter(|&class: &usize| class < count),
        };
        found.map(|class| class as u32).ok_or_else(|| unknown(label))
    };
    Ok(Targets::Classes { labels: labels.iter().map(index).collect::<Result<_>>()?, count })
}
