//! The folder of results: what of a run goes into which file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use dab_core::Verdict;
use serde_json::json;

use super::{
    Extras, Report,
    contest::Method,
    figures::{self, Figure},
    numbers::summarise,
    origin::Origin,
    own,
    subject::Subject,
    words::Band,
};
use crate::{
    config::Experiment,
    data::{Table, Targets},
    export::model_file::ModelFile,
    learn::checkpoint,
    measure::assessed::{Judged, JudgedSet},
    model::weights,
    run::Run,
    support::files::save,
};

/// The experiment in a run's folder, every default spelt out.
pub const EXPERIMENT: &str = "experiment.toml";
/// The trained network in a run's folder.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// The model in a run's folder.
pub const MODEL: &str = "model.dab";
/// The image network that learnt with it.
pub const BACKBONE: &str = "backbone.safetensors";
/// Every number of a run.
pub const METRICS: &str = "metrics.json";

/// What a run left in `folder`, or one of its seeds did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Results,
    /// A checkpoint and no results: the run did not end.
    Checkpoint,
}

pub fn left(folder: &Path) -> Option<Left> {
    let folders = with_seeds(folder);
    let any = |name: &str| folders.iter().any(|folder| folder.join(name).exists());
    match any(MODEL) || any(METRICS) {
        true => Some(Left::Results),
        false => any(CHECKPOINT).then_some(Left::Checkpoint),
    }
}

/// Removes the checkpoints of an earlier run, so that nobody goes on from them.
pub fn forget(folder: &Path) -> Result<()> {
    for folder in with_seeds(folder) {
        let path = folder.join(CHECKPOINT);
        for path in [checkpoint::before(&path), path] {
            if path.exists() {
                fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// A run's folder, and those of its seeds.
fn with_seeds(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let seeds = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seed-")) && path.is_dir()
    });
    std::iter::once(folder.to_owned()).chain(seeds).collect()
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<()> {
    save(path, serde_json::to_string_pretty(value)? + "\n")
}

/// Writes one run into its folder: experiment, metrics, model, scores, and the image network that learnt with it.
pub fn write_run(experiment: &Experiment, run: &Run, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    save(&folder.join(EXPERIMENT), experiment.resolved()?)?;
    let metrics = json!({
        "experiment": experiment.name,
        "seed": run.seed,
        "dab": run.evaluation,
        "reasons": run.reasons,
        "choice": run.choice,
        "baselines": run.comparison,
        "parity": run.parity,
        "kept_epoch": run.learnt.as_ref().map(|learnt| learnt.kept_epoch),
        "history": run.learnt.as_ref().map_or(&[][..], |learnt| &learnt.history),
    });
    write_json(&folder.join(METRICS), &metrics)?;
    save(&folder.join(MODEL), &run.model)?;
    match run.learnt.as_ref().and_then(|learnt| learnt.images.as_ref()) {
        Some(network) => save(&folder.join(BACKBONE), weights::to_safetensors(network)?)?,
        // One of an earlier run does not belong to this model.
        None => drop(fs::remove_file(folder.join(BACKBONE))),
    }
    write_scores(run, &folder.join("scores.csv"))
}

/// The columns of scores.csv.
const SCORES: &str = "split,row,name,uncertainty,unfamiliarity,p_value,verdict,code,target,output";

/// One line per example: split, row (counting from 1) and name, what the model says, and what was wanted and given.
fn write_scores(run: &Run, path: &Path) -> Result<()> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(SCORES.split(','))?;
    let (task, assessments) = (&run.task, &run.assessments);
    let classes = match &task.train.targets {
        Targets::Classes { count, .. } => Some(ModelFile::from_bytes(&run.model)?.class_names(*count)),
        Targets::Regression(_) => None,
    };
    let mut split = |name: &str, targets: Option<&Targets>, judged: &JudgedSet, names: &[String]| {
        let outputs = judged.outputs();
        let likeliest = outputs.largest();
        let class = |class: usize| classes.as_ref().and_then(|names| names.get(class)).cloned();
        let number = |number: Option<f32>| number.map_or_else(String::new, |number| number.to_string());
        for (row, Judged { said: own, .. }) in judged.rows.iter().enumerate() {
            let target = match targets {
                Some(Targets::Classes { labels, .. }) => class(labels[row] as usize).unwrap_or_default(),
                Some(Targets::Regression(values)) => first(values, row),
                None => String::new(),
            };
            let output = match &classes {
                Some(_) => class(likeliest[row] as usize).unwrap_or_default(),
                None => first(&outputs, row),
            };
            csv.write_record([
                name,
                &(row + 1).to_string(),
                names.get(row).map_or("", String::as_str),
                &own.uncertainty.to_string(),
                &number(Some(own.score()).filter(|_| assessments.channels)),
                &number(own.p_value),
                own.verdict.map_or("", Verdict::name),
                &own.nearest.to_string(),
                &target,
                &output,
            ])?;
        }
        anyhow::Ok(())
    };
    let rows = &run.rows;
    split("held_out", Some(&task.held_out.targets), &assessments.held_out, &rows.held_out)?;
    split("test", Some(&task.test.targets), &assessments.test, &rows.test)?;
    for (at, judged) in assessments.ood.iter().enumerate() {
        split(&judged.name, None, judged, rows.ood.get(at).map_or(&[], Vec::as_slice))?;
    }
    save(path, csv.into_inner()?)
}

fn first(table: &Table, row: usize) -> String {
    table.row(row).first().map_or_else(String::new, ToString::to_string)
}

/// Writes what all runs of an experiment gave together: figures, report.html, and of several runs a summary.
pub fn write_report(experiment: &Experiment, runs: &[Run], out: &Path) -> Result<()> {
    let Some(first) = runs.first() else { return Ok(()) };
    let summary = summarise(runs);
    if runs.len() > 1 {
        let table: serde_json::Map<_, _> =
            summary.iter().map(|(name, summary)| (name.clone(), json!(summary))).collect();
        write_json(&out.join(METRICS), &json!(table))?;
    }
    let report = training_report(experiment, runs, first)?;
    for figure in report.drawn() {
        save(&out.join(figure.file).with_extension("svg"), figure.drawing.file())?;
    }
    save(&out.join("report.html"), report.html())
}

/// The report of all seeds; its figures are the first one's.
fn training_report(experiment: &Experiment, runs: &[Run], first: &Run) -> Result<Report> {
    let judged = |run: &Run| {
        let targets = Some(run.task.test.targets.clone());
        let (test, ood) = (run.assessments.test.clone(), run.assessments.ood.clone());
        let subject = Subject::new(ModelFile::from_bytes(&run.model)?, test, targets, ood)?;
        Ok(Subject { names: run.rows.clone(), ..subject })
    };
    let subjects = runs.iter().map(judged).collect::<Result<Vec<_>>>()?;
    let mut methods = own(&subjects)?;
    methods
        .extend(Method::baselines(&runs.iter().map(|run| run.comparison.scores.clone()).collect::<Vec<_>>()));
    // A line needs two points.
    let drawn = first.task.train.inputs.cols == 1 && first.task.test.inputs.rows > 1;
    let curve = match &first.task.train.targets {
        Targets::Regression(_) if drawn => {
            let caption = "Prediction, band, training points and, where it is known, the truth.";
            Some(Figure::new("regression", caption, figures::curve(&experiment.data, first)?))
        }
        _ => None,
    };
    let seeds = runs.len();
    let extras = Extras {
        methods,
        first: curve,
        reasons: first.reasons.clone(),
        choice: first.choice.clone(),
        origin: Origin::of(experiment),
        band: first.evaluation.interval.as_ref().map(Band::of),
        notes: first.warnings.clone(),
        numbers: summarise(runs).into_iter().map(|(name, summary)| (name, summary.show(4))).collect(),
        settings: toml_pairs(&experiment.resolved()?),
        rows: "Rows are counted from 1 and named as in scores.csv.",
    };
    let title = match seeds {
        1 => experiment.name.clone(),
        _ => format!("{}, {seeds} seeds (figures: seed {})", experiment.name, first.seed),
    };
    Report::new(&title, &subjects[0], extras)
}

/// Flat `section.key`, `value` pairs of a resolved experiment.
fn toml_pairs(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut pairs = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim_start_matches('[').to_owned() + ".";
        } else if let Some((key, value)) = line.split_once(" = ") {
            pairs.push((format!("{section}{key}"), value.to_owned()));
        }
    }
    pairs
}
