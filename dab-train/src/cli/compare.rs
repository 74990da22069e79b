//! `dab compare`: what several runs gave, beside each other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::text::{grouped, printable};
use crate::{
    export::model_file::ModelFile,
    report::{
        folder::{METRICS, MODEL},
        plot::{Lane, compare},
    },
    support::files::save,
};

/// Compare runs: a table, and a plot
///
/// A run is a folder that `dab train` or `dab fit` left: its metrics.json is read. Of several seeds, mean and standard
/// deviation are shown. Numbers are of test and OOD rows: accuracy, RMSE in the target's unit, AUROC of finding each OOD
/// set and of finding errors, the share of test rows that are called doubtful or worse, and the size of the model. Runs
/// on different data or splits can be put beside each other, but not ranked by these numbers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab compare runs/small runs/large
  dab compare runs/* -o all.svg --csv all.csv")]
pub struct Args {
    /// Folders of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Where to write the plot
    #[arg(short, long, default_value = "compare.svg", value_name = "FILE")]
    output: PathBuf,

    /// Write the table as CSV too, in full precision
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// A number and its spread over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    mean: f64,
    /// Of several seeds.
    sd: Option<f64>,
}

/// What a run gave, by name and in the order of the columns.
struct Found {
    name: String,
    cells: Vec<(String, Cell)>,
}

pub fn run(args: &Args) -> Result<()> {
    let found = args.runs.iter().map(|run| read(run)).collect::<Result<Vec<_>>>()?;
    let mut columns: Vec<String> = Vec::new();
    for name in found.iter().flat_map(|run| run.cells.iter().map(|(name, _)| name)) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    columns.sort_by_key(|name| rank(name));
    super::print(&table(&found, &columns))?;
    if let Some(path) = &args.csv {
        save(path, csv_table(&found, &columns)?)?;
    }
    let lanes: Vec<Lane> = columns
        .iter()
        .filter(|name| name.as_str() == "accuracy" || name.starts_with("AUROC"))
        .map(|name| Lane {
            name: name.clone(),
            values: found.iter().map(|run| run.cell(name).map(|c| (c.mean, c.sd.unwrap_or(0.0)))).collect(),
        })
        .collect();
    if lanes.is_empty() {
        return super::print("no plot: the runs have no accuracy and no AUROC\n");
    }
    let names: Vec<String> = found.iter().map(|run| run.name.clone()).collect();
    let drawing = compare("Runs on their test and OOD rows", &names, &lanes)?;
    save(&args.output, drawing.file())?;
    super::print(&format!("plot in {}\n", args.output.display()))
}

impl Found {
    fn cell(&self, name: &str) -> Option<Cell> {
        self.cells.iter().find(|(own, _)| own == name).map(|(_, cell)| *cell)
    }
}

/// The order of columns: what is predicted, what is found, what it costs.
fn rank(name: &str) -> usize {
    match name {
        "accuracy" | "RMSE" => 0,
        "AUROC misclassified" => 2,
        name if name.starts_with("AUROC") => 1,
        "alarms" => 3,
        _ => 4,
    }
}

fn read(folder: &Path) -> Result<Found> {
    let path = folder.join(METRICS);
    ensure!(
        path.is_file(),
        "{} has no {METRICS}: name the folder of a run that `dab train` or `dab fit` ended",
        folder.display()
    );
    let here = || format!("cannot read {}", path.display());
    let text = std::fs::read_to_string(&path).with_context(here)?;
    let metrics: Value = serde_json::from_str(&text).with_context(here)?;
    let name = printable(&folder.display().to_string());
    let mut cells = match metrics.get("dab") {
        Some(dab) => of_one(dab),
        None => of_seeds(&metrics),
    };
    ensure!(!cells.is_empty(), "{} holds no numbers of a run", path.display());
    let model =
        [folder.join(MODEL), folder.join("seed-0").join(MODEL)].into_iter().find(|path| path.is_file());
    if let Some(file) = model.and_then(|path| ModelFile::open(&path).ok()) {
        let adds = file.model()?.multiply_adds();
        cells.push(("bytes".to_owned(), Cell { mean: file.bytes().len() as f64, sd: None }));
        cells.push(("multiply-adds".to_owned(), Cell { mean: adds as f64, sd: None }));
    }
    Ok(Found { name, cells })
}

/// Of one seed: docs/metrics.md has the names.
fn of_one(dab: &Value) -> Vec<(String, Cell)> {
    let mut cells = Vec::new();
    let mut push = |name: &str, value: Option<&Value>| {
        let mean = value.and_then(Value::as_f64);
        cells.extend(mean.map(|mean| (name.to_owned(), Cell { mean, sd: None })));
    };
    push("accuracy", dab.pointer("/classification/accuracy"));
    push("RMSE", dab.pointer("/regression/rmse"));
    // Each channel for its job; a model without channels has u for both.
    let scores = dab["scores"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |name: &str| scores.iter().find(|report| report["name"] == name);
    let strangers = of("unfamiliarity").unwrap_or(&dab["report"]);
    let errors = of("unfamiliarity").and(of("ambiguity")).unwrap_or(&dab["report"]);
    for (set, detection) in strangers["ood"].as_object().into_iter().flatten() {
        push(&format!("AUROC {set}"), detection.get("auroc"));
    }
    push("AUROC misclassified", errors.pointer("/misclassification/auroc"));
    let alarms = dab["alarms"].as_array().into_iter().flatten().find(|alarm| alarm["verdict"] == "doubtful");
    push("alarms", alarms.and_then(|alarm| alarm.get("actual")));
    cells
}

/// Of several seeds, which are summarised already.
fn of_seeds(metrics: &Value) -> Vec<(String, Cell)> {
    let shown = |name: &str| ["accuracy", "RMSE"].contains(&name) || name.starts_with("AUROC");
    let summary = |(name, value): (&String, &Value)| {
        let mean = value.get("mean").and_then(Value::as_f64).filter(|_| shown(name))?;
        Some((name.clone(), Cell { mean, sd: value.get("sd").and_then(Value::as_f64) }))
    };
    metrics.as_object().into_iter().flatten().filter_map(summary).collect()
}

/// A number as people read it.
fn shown(name: &str, cell: Option<Cell>) -> String {
    let Some(Cell { mean, sd }) = cell else { return "-".to_owned() };
    match (name, sd) {
        ("bytes" | "multiply-adds", _) => grouped(mean as u64),
        ("alarms", _) => format!("{:.1} %", 100.0 * mean),
        (_, Some(sd)) => format!("{mean:.4} ± {sd:.4}"),
        (_, None) => format!("{mean:.4}"),
    }
}

fn table(found: &[Found], columns: &[String]) -> String {
    let mut lines =
        vec![std::iter::once("run").chain(columns.iter().map(String::as_str)).map(str::to_owned).collect()];
    for run in found {
        let cells = columns.iter().map(|name| shown(name, run.cell(name)));
        lines.push(std::iter::once(run.name.clone()).chain(cells).collect::<Vec<_>>());
    }
    let widths: Vec<usize> = (0..=columns.len())
        .map(|at| lines.iter().map(|line: &Vec<String>| line[at].chars().count()).max().unwrap_or(0))
        .collect();
    let row = |line: &Vec<String>| {
        let cell = |(at, text): (usize, &String)| {
            let gap = " ".repeat(widths[at] - text.chars().count());
            if at == 0 { format!("{text}{gap}") } else { format!("{gap}{text}") }
        };
        line.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(row).collect()
}

fn csv_table(found: &[Found], columns: &[String]) -> Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let names = columns.iter().flat_map(|name| [name.clone(), format!("{name} sd")]);
    csv.write_record(std::iter::once("run".to_owned()).chain(names))?;
    for run in found {
        let numbers = columns.iter().map(|name| run.cell(name));
        let numbers = numbers.flat_map(|cell| [cell.map(|cell| cell.mean), cell.and_then(|cell| cell.sd)]);
        let fields = numbers.map(|number| number.map_or_else(String::new, |number| number.to_string()));
        csv.write_record(std::iter::once(run.name.clone()).chain(fields))?;
    }
    Ok(csv.into_inner()?)
}
