//! The figures of one run: which data goes into which drawing.

use anyhow::Result;

use super::{
    Figure,
    plot::{
        self, Curve, Group, Plane, RegressionFigure, Scores, accuracy_per_quantile, code_class_counts,
        code_usage, latent_scatter, risk_coverage, score_histogram,
    },
};
use crate::{
    data::{DataConfig, Table, Targets, sources::clusters},
    measure::{
        evaluate::INTERVAL_FACTOR,
        metrics::{Positive, classification, detection, selective},
    },
    run::Run,
};

/// Bands of the accuracy-per-uncertainty figure.
const BANDS: usize = 10;
/// Up to this many classes the latent space shows each in its own colour: there are so many.
const COLOURED: usize = 8;

/// A figure and the name of its file.
pub struct Named {
    /// File name without extension.
    pub file: &'static str,
    /// The drawing and its caption.
    pub figure: Figure,
}

/// All figures that fit the task.
///
/// # Errors
/// When a drawing has nothing to draw although the task says it should.
pub fn figures(data: &DataConfig, run: &Run) -> Result<Vec<Named>> {
    let mut list = Vec::new();
    let mut add = |file, caption: &str, svg: String| {
        list.push(Named { file, figure: Figure { caption: caption.to_owned(), svg } });
    };
    if matches!(run.task.train.targets, Targets::Regression(_)) && run.task.train.inputs.cols == 1 {
        add("regression", "Prediction, band, training points, truth.", curve(data, run)?);
    }
    let (test, ood) = (&run.scores.test, &run.scores.ood);
    if !ood.is_empty() {
        let inside = Scores { name: "test", values: &test.uncertainty };
        let outside: Vec<Scores> =
            ood.iter().map(|(name, scores)| Scores { name, values: &scores.uncertainty }).collect();
        let svg = score_histogram("Uncertainty of test and OOD inputs", "u (nats)", inside, &outside)?;
        add("histogram", "Scores of test inputs (filled) and of each OOD set.", svg);
        let curves = ood.iter().zip(&run.evaluation.report.ood).map(|((name, scores), (_, found))| {
            let points = detection::roc(&test.uncertainty, &scores.uncertainty)?;
            Ok(Curve { name: name.clone(), points, merit: found.auroc })
        });
        let curves = curves.collect::<Result<Vec<_>>>()?;
        let svg = plot::roc("OOD inputs found by u", Positive::OutOfDistribution, &curves)?;
        add("roc", "ROC of u, one curve per OOD set; AUROC in the legend.", svg);
    }
    if let Targets::Classes { labels, count } = &run.task.test.targets {
        let correct = classification::correct(&test.outputs, labels);
        let losses = selective::errors(&correct);
        let merit = selective::Selective::new(&test.uncertainty, &losses)?.aurc;
        let points = selective::risk_coverage(&test.uncertainty, &losses)?;
        let curve = Curve { name: "u".to_owned(), points, merit };
        let svg = risk_coverage("Answering only the most certain", "error rate", &[curve])?;
        add("risk-coverage", "Error rate among the inputs answered, most certain first.", svg);
        let right: Vec<f32> = correct.iter().map(|&c| f32::from(u8::from(c))).collect();
        let bands = selective::per_quantile(&test.uncertainty, &right, BANDS)?;
        let overall = right.iter().sum::<f32>() / right.len().max(1) as f32;
        let svg = accuracy_per_quantile("Accuracy by uncertainty", &bands, f64::from(overall))?;
        add("accuracy-bands", "Accuracy in ten equally large bands of u.", svg);
        let mut counts = vec![vec![0; *count]; run.codebook.len()];
        test.code.iter().zip(labels).for_each(|(&code, &label)| counts[code as usize][label as usize] += 1);
        add(
            "codes",
            "Test inputs by likeliest code and class.",
            code_class_counts("Codes and classes", &counts, &[])?,
        );
    }
    if let Some(learnt) = &run.learnt {
        let usage = |usage: &[f32]| usage.iter().map(|&p| f64::from(p)).collect();
        let usage: Vec<Vec<f64>> = learnt.history.iter().map(|epoch| usage(&epoch.usage)).collect();
        add("code-usage", "Prior of each code over the epochs.", code_usage("Use of the codes", &usage)?);
    }
    add("latent", "Latent means on their two leading axes, and the codes.", latent(run)?);
    Ok(list)
}

/// The paper's figure: the whole grid, inside and outside the training range.
fn curve(data: &DataConfig, run: &Run) -> Result<String> {
    let scale = run.evaluation.interval.as_ref().map_or(1.0, |interval| interval.scale);
    let parts = std::iter::once((&run.task.test.inputs, &run.scores.test))
        .chain(run.task.ood.iter().zip(&run.scores.ood).map(|((_, inputs), (_, scores))| (inputs, scores)));
    let mut rows: Vec<(f32, f32, f32)> = parts
        .flat_map(|(inputs, scores)| {
            (0..inputs.rows)
                .map(|row| (inputs.row(row)[0], scores.outputs.row(row)[0], scores.uncertainty[row]))
        })
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let grid: Vec<f32> = rows.iter().map(|row| row.0).collect();
    let prediction: Vec<f32> = rows.iter().map(|row| row.1).collect();
    let half_width: Vec<f32> = rows.iter().map(|row| INTERVAL_FACTOR * scale as f32 * row.2).collect();
    let truth: Vec<f32> = grid.iter().map(|&x| clusters::truth(x)).collect();
    let Targets::Regression(targets) = &run.task.train.targets else { anyhow::bail!("no targets to draw") };
    let points =
        |inputs: &Table| (0..inputs.rows).map(|i| (inputs.row(i)[0], targets.row(i)[0])).collect::<Vec<_>>();
    let title = match data {
        DataConfig::RegressionClusters(config) => format!("y = x³, learned from {} points", config.points),
        _ => run.task.name.clone(),
    };
    plot::regression(&RegressionFigure {
        title: &title,
        axes: ("x", "y"),
        grid: &grid,
        prediction: &prediction,
        half_width: &half_width,
        band: "prediction ± 2su",
        truth: matches!(data, DataConfig::RegressionClusters(_)).then_some(truth.as_slice()),
        train: &points(&run.task.train.inputs),
    })
}

/// Test inputs by class, the OOD sets and the codes, in the plane of the test inputs.
fn latent(run: &Run) -> Result<String> {
    let (test, codebook) = (&run.scores.test, &run.codebook);
    let plane = Plane::fit(&test.latent)?;
    let entries = codebook.kind.entries(codebook.dim);
    let codes = codebook
        .means
        .chunks_exact(codebook.dim)
        .zip(codebook.covs.chunks_exact(entries))
        .map(|(mean, cov)| plane.code(mean, cov))
        .collect::<Result<Vec<_>>>()?;
    let points = plane.points(&test.latent)?;
    let mut groups = match &run.task.test.targets {
        Targets::Classes { labels, count } if *count <= COLOURED => (0..*count)
            .map(|class| {
                let own = points.iter().zip(labels).filter(|(_, label)| **label as usize == class);
                let points = own.map(|(&point, _)| point).collect();
                Group { name: format!("test, class {class}"), points, ood: false }
            })
            .collect(),
        _ => vec![Group { name: "test".to_owned(), points, ood: false }],
    };
    for (name, scores) in &run.scores.ood {
        groups.push(Group {
            name: format!("{name} (OOD)"),
            points: plane.points(&scores.latent)?,
            ood: true,
        });
    }
    latent_scatter("Latent space: test inputs, OOD inputs, codes", &groups, &codes)
}
