//! The figures of a report: which numbers go into which drawing.

use anyhow::Result;
use dab_core::{Model, band::half_width, calibration::Calibration, divergence::Precision};

use super::{
    plot::{
        self, Channel, Curve, Drawing, Group, Plane, RegressionFigure, calibration, code_class_counts,
        latent_scatter, rate_distortion, risk_coverage, score_histogram,
    },
    subject::Subject,
    words::percent,
};
use crate::{
    choose::Choice,
    data::{DataConfig, Table, Targets, sources::clusters},
    measure::{
        assessed::{Judged, JudgedSet},
        evaluate::INTERVAL_FACTOR,
        metrics::{Positive, auroc, detection, selective},
    },
    run::Run,
};

/// Up to this many classes the latent space shows each in its own colour: there are so many.
const COLOURED: usize = 8;

/// A drawing, what to see in it, and the name of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// File name without extension.
    pub file: &'static str,
    pub caption: String,
    pub drawing: Drawing,
}

impl Figure {
    pub fn new(file: &'static str, caption: impl Into<String>, drawing: Drawing) -> Self {
        Self { file, caption: caption.into(), drawing }
    }
}

/// One score of a report: what it is called, and how to take it.
type Score<'a> = (&'a str, &'a dyn Fn(&Judged) -> Option<f32>);

/// Histograms of the score that is judged and, for a classifier, of the ambiguity, with their thresholds.
pub fn histograms(subject: &Subject, model: &Model<'_>) -> Result<Vec<Figure>> {
    let mut list = Vec::new();
    if subject.test.rows.is_empty() {
        return Ok(list);
    }
    let rates = [("doubtful", model.rates().doubtful()), ("unfamiliar", model.rates().unfamiliar())];
    let limits: Vec<(String, f32)> =
        rates.iter().filter_map(|(name, rate)| limit(name, *rate, model.calibration())).collect();
    let caption =
        "Familiar test rows filled, strangers as lines. What lies right of a threshold raises an alarm.";
    let label = if model.channels_meta().is_some() { "unfamiliarity U" } else { "uncertainty u (nats)" };
    let score: Score = (label, &|row| Some(row.said.score()));
    list.push(Figure::new("histogram", caption, histogram(subject, "How strange is it?", score, &limits)?));
    if subject.test.rows.iter().any(|row| row.said.ambiguity.is_some()) {
        let table = model.ambiguity_calibration();
        let limits: Vec<_> =
            table.and_then(|(table, rate)| limit("ambiguous", rate, Some(table))).into_iter().collect();
        let caption = match limits.is_empty() {
            true => "How near the second class comes to the first.",
            false => {
                "How near the second class comes to the first; right of the threshold the answer is ambiguous."
            }
        };
        let score: Score = ("ambiguity A (nats)", &|row| row.said.ambiguity);
        list.push(Figure::new(
            "ambiguity",
            caption,
            histogram(subject, "How undecided is it?", score, &limits)?,
        ));
    }
    Ok(list)
}

/// A threshold and its name, where the table reaches that rate.
fn limit(name: &str, rate: f32, table: Option<&Calibration<'_>>) -> Option<(String, f32)> {
    Some((format!("{name}: p ≤ {}", percent(f64::from(rate))), table?.threshold(rate)?))
}

fn histogram(
    subject: &Subject,
    title: &str,
    (label, pick): Score<'_>,
    thresholds: &[(String, f32)],
) -> Result<Drawing> {
    let mut sets = vec![("test rows", subject.test.each(pick))];
    sets.extend(subject.ood.iter().map(|set| (set.name.as_str(), set.each(pick))));
    sets.retain(|set| !set.1.is_empty());
    score_histogram(title, label, &sets, thresholds)
}

/// Promised against actual false alarms, where there are p-values and fresh rows.
pub fn promises(subject: &Subject, model: &Model<'_>) -> Result<Option<Figure>> {
    let Some(table) = model.calibration().filter(|_| !subject.test.rows.is_empty()) else { return Ok(None) };
    let p_values = subject.test.each(|row| row.said.p_value);
    let mut channels = vec![Channel { name: "unfamiliarity", p_values, held_out: table.held_out as usize }];
    if let Some((table, _)) = model.ambiguity_calibration() {
        let p_values = subject.test.each(|row| row.said.ambiguity_p);
        channels.push(Channel { name: "ambiguity", p_values, held_out: table.held_out as usize });
    }
    let caption =
        "Share of familiar test rows with a p-value at most this small. Inside the band the promise is kept.";
    Ok(Some(Figure::new("calibration", caption, calibration("Promised and actual false alarms", &channels)?)))
}

/// Size and work against quality.
pub fn sizes(choice: &Choice) -> Result<Vec<Figure>> {
    if choice.curve.is_empty() {
        return Ok(Vec::new());
    }
    let caption = format!(
        "The chosen views in files of other sizes, judged on training rows alone: {} that were left out and rows mixed of two \
         are the strangers.",
        choice.hidden
    );
    let (flash, adds) = ("bytes of flash", "multiply-adds per input");
    let bytes = rate_distortion("Flash against quality", flash, choice, |p| p.bytes, choice.flash)?;
    let work = rate_distortion("Work against quality", adds, choice, |p| p.multiply_adds, None)?;
    Ok(vec![
        Figure::new("rate-distortion", caption, bytes),
        Figure::new("work-distortion", "The same files by the work of one call.", work),
    ])
}

/// ROC, risk against coverage, and which code takes which class.
pub fn details(subject: &Subject, model: &Model<'_>) -> Result<Vec<Figure>> {
    let mut list = Vec::new();
    let test = subject.test.each(|row| Some(row.said.score()));
    if !subject.ood.is_empty() && !test.is_empty() {
        let curves = subject.ood.iter().map(|set| {
            let scores = set.each(|row| Some(row.said.score()));
            let points = detection::roc(&test, &scores)?;
            Ok(Curve { name: set.name.clone(), points, merit: auroc(&test, &scores)? })
        });
        let drawing =
            plot::roc("Strangers found", Positive::OutOfDistribution, &curves.collect::<Result<Vec<_>>>()?)?;
        list.push(Figure::new("roc", "One curve per set of strangers; AUROC in the legend.", drawing));
    }
    let Some(Targets::Classes { labels, count }) = &subject.targets else { return Ok(list) };
    let losses = selective::errors(&subject.correct().unwrap_or_default());
    let of = |name: &str, scores: &[f32]| -> Result<Curve> {
        let merit = selective::Selective::new(scores, &losses)?.aurc;
        Ok(Curve { name: name.to_owned(), points: selective::risk_coverage(scores, &losses)?, merit })
    };
    let mut curves = vec![of("unfamiliarity", &test)?];
    let ambiguity = subject.test.each(|row| row.said.ambiguity);
    if ambiguity.len() == test.len() {
        curves.insert(0, of("ambiguity", &ambiguity)?);
    }
    let drawing = risk_coverage("Answering only the most certain", "error rate", &curves)?;
    list.push(Figure::new("risk-coverage", "Errors among the answered rows; AURC in the legend.", drawing));
    let mut counts = vec![vec![0; *count]; model.shape().codes];
    for (row, &label) in subject.test.rows.iter().zip(labels) {
        counts[row.said.nearest][label as usize] += 1;
    }
    let drawing = code_class_counts("Codes and classes", &counts, &subject.classes)?;
    list.push(Figure::new("codes", "Test rows by nearest code and true class.", drawing));
    Ok(list)
}

/// The paper's figure of a regression with one input: the whole grid, inside and outside the training range.
pub fn curve(data: &DataConfig, run: &Run) -> Result<Drawing> {
    // One input, one target. A file without a band is drawn with ±2u.
    let interval = run.evaluation.interval.as_ref();
    let scale = interval.and_then(|interval| interval.scales.first()).map_or(1.0, |&scale| scale as f32);
    let half = |u: f32| half_width(INTERVAL_FACTOR * scale, u);
    let parts = std::iter::once((&run.task.test.inputs, &run.scores.test))
        .chain(run.task.ood.iter().zip(&run.scores.ood).map(|((_, inputs), (_, scores))| (inputs, scores)));
    let mut curve: Vec<(f32, f32, f32)> = parts
        .flat_map(|(inputs, scores)| {
            (0..inputs.rows)
                .map(|row| (inputs.row(row)[0], scores.outputs.row(row)[0], half(scores.uncertainty[row])))
        })
        .collect();
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Targets::Regression(targets) = &run.task.train.targets else { anyhow::bail!("no targets to draw") };
    let points =
        |inputs: &Table| (0..inputs.rows).map(|i| (inputs.row(i)[0], targets.row(i)[0])).collect::<Vec<_>>();
    let title = match data {
        DataConfig::RegressionClusters(config) => format!("y = x³, learned from {} points", config.points),
        _ => run.task.name.clone(),
    };
    let held = interval.and_then(|interval| interval.held_out);
    let band = held.map_or_else(
        || "prediction ± 2su".to_owned(),
        |held| format!("±2su: {:.0} % of held-out points", 100.0 * held),
    );
    plot::regression(&RegressionFigure {
        title: &title,
        axes: ("x", "y"),
        curve: &curve,
        band: &band,
        truth: matches!(data, DataConfig::RegressionClusters(_)).then_some(clusters::truth),
        train: &points(&run.task.train.inputs),
    })
}

/// Test rows by class, the strangers and the codes, in the plane of the test rows.
pub fn latent(subject: &Subject, model: &Model<'_>) -> Result<Figure> {
    let (test, codebook) = (&subject.test, model.codebook());
    let plane = Plane::fit(&test.latent)?;
    let codes = codebook
        .codes()
        .map(|code| plane.code(code.mean, &covariance(&code.precision, codebook.dim)))
        .collect::<Result<Vec<_>>>()?;
    let points = |set: &JudgedSet| plane.points(&set.latent);
    let mut groups = match &subject.targets {
        Some(Targets::Classes { labels, count }) if *count <= COLOURED => {
            let mut groups: Vec<Group> = subject.classes[..*count]
                .iter()
                .map(|class| Group { name: format!("class {class}"), points: Vec::new(), ood: false })
                .collect();
            for (point, &label) in points(test)?.into_iter().zip(labels.iter().step_by(test.stride)) {
                groups[label as usize].points.push(point);
            }
            groups
        }
        _ => vec![Group { name: "test rows".to_owned(), points: points(test)?, ood: false }],
    };
    for set in &subject.ood {
        groups.push(Group { name: format!("{} (strangers)", set.name), points: points(set)?, ood: true });
    }
    let caption = "Latent means on their two leading axes. What is far from all codes here is strange; what is near may \
                   still be far in the other dimensions.";
    Ok(Figure::new("latent", caption, latent_scatter("What the model sees", &groups, &codes)?))
}

/// The inverse of a precision: the diagonal, or the whole matrix.
fn covariance(precision: &Precision<'_>, dim: usize) -> Vec<f32> {
    match precision {
        Precision::Identity => vec![1.0; dim],
        Precision::Local(precision) => vec![1.0 / precision; dim],
        Precision::Diagonal(values) => values.iter().map(|p| 1.0 / p).collect(),
        Precision::Full(triangle) => {
            let root = nalgebra::DMatrix::from_fn(dim, dim, |i, j| {
                triangle.row(i).get(j).map_or(0.0, |&x| f64::from(x))
            });
            let inverse = root.try_inverse().unwrap_or_else(|| nalgebra::DMatrix::zeros(dim, dim));
            (&inverse * inverse.transpose()).iter().map(|&x| x as f32).collect()
        }
    }
}
