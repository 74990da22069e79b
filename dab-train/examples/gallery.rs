//! Draws every figure and a report from generated data, to look at.
//!
//! ```text
//! cargo run --release -p dab-train --example gallery -- target/gallery
//! ```
//!
//! The scores are those of simple stand-ins (nearest neighbours, softmax regression), not of a trained
//! model: this shows the drawing, not the method.

use std::path::Path;

use anyhow::{Context, Result};
use dab_train::{
    data::{DataConfig, Split, Table, Targets, Task, load, sources::clusters},
    measure::{
        baselines::{Baselines, knn::Neighbours, on_features},
        metrics::{
            Classification, Detection, Positive, Selective, Summary, classification, detection, selective,
            softmax,
        },
    },
    report::{
        Better, Block, Column, Figure, Method, MetricTable, Report, Row, Section, detection_tables,
        plot::{self, Curve, Group, Plane, RegressionFigure, Scores},
    },
    support::random::Random,
};

const CLASSES: [&str; 5] = ["ant", "bee", "cat", "dog", "eel"];
const DIM: usize = 6;

fn main() -> Result<()> {
    let out = std::env::args().nth(1).unwrap_or_else(|| "target/gallery".into());
    let out = Path::new(&out);
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut figures = Vec::new();
    for clusters in [1, 2] {
        figures.push((
            format!("regression-{clusters}"),
            "Band: distance to the nearest point.",
            band(clusters)?,
        ));
    }
    let runs = (0..3).map(run).collect::<Result<Vec<_>>>()?;
    let (task, baselines, correct) = &runs[0];
    figures.extend(detection_figures(task, baselines, correct)?);
    figures.extend(code_figures(task)?);
    for (name, _, svg) in &figures {
        std::fs::write(out.join(format!("{name}.svg")), svg)?;
    }
    std::fs::write(out.join("report.html"), report(&runs, figures)?.html())?;
    println!("{}", out.join("report.html").display());
    Ok(())
}

fn band(clusters: usize) -> Result<String> {
    let config = clusters::ClustersConfig { clusters, ..clusters::ClustersConfig::default() };
    let grid = clusters::grid(config.grid);
    let task = load(&DataConfig::RegressionClusters(config), 1, Path::new("unused"))?;
    let Targets::Regression(y) = &task.train.targets else { anyhow::bail!("the demo is a regression") };
    let train: Vec<(f32, f32)> =
        task.train.inputs.values.iter().copied().zip(y.values.iter().copied()).collect();
    let distance = Neighbours::fit(&task.train.inputs)?.distances(&grid, 3);
    let half_width: Vec<f32> = distance.iter().map(|row| 6.0 + 40.0 * row[2]).collect();
    let truth: Vec<f32> = grid.values.iter().map(|&x| clusters::truth(x)).collect();
    let prediction: Vec<f32> = truth.iter().zip(&grid.values).map(|(t, x)| t * 0.9 + 4.0 * x.sin()).collect();
    plot::regression(&RegressionFigure {
        title: ["", "Regression with one training cluster", "Regression with two training clusters"]
            [clusters],
        axes: ("input x", "output y"),
        grid: &grid.values,
        prediction: &prediction,
        half_width: &half_width,
        band: "±2u",
        truth: Some(&truth),
        train: &train,
    })
}

fn blobs(seed: u64) -> Result<Task> {
    let mut random = Random::new(seed, "gallery");
    let mut split = |rows: usize| -> Result<Split> {
        let labels: Vec<u32> = (0..rows).map(|i| (i % CLASSES.len()) as u32).collect();
        let centre = |l: u32, j: usize| if j == l as usize { 3.4 } else { 0.0 };
        let values = labels
            .iter()
            .flat_map(|&l| (0..DIM).map(move |j| centre(l, j)))
            .map(|c| (c + random.normal()) as f32)
            .collect();
        let inputs = Table::new(rows, DIM, values)?;
        Ok(Split { inputs, targets: Targets::Classes { labels, count: CLASSES.len() } })
    };
    let (train, held_out, test) = (split(2000)?, split(500)?, split(1500)?);
    let mut ood = |rows: usize, shift: f64| {
        Table::new(rows, DIM, (0..rows * DIM).map(|_| (random.normal() * 1.3 + shift) as f32).collect())
    };
    let ood = vec![("near".to_string(), ood(400, 1.0)?), ("far".to_string(), ood(900, -2.5)?)];
    Ok(Task { name: "blobs".into(), train, held_out, test, ood })
}

type Run = (Task, Baselines, Vec<bool>);

fn run(seed: u64) -> Result<Run> {
    let task = blobs(seed)?;
    let baselines = on_features(&task)?;
    let Targets::Classes { labels, .. } = &task.test.targets else { anyhow::bail!("blobs have classes") };
    let logits = baselines.test_logits.as_ref().context("classification has logits")?;
    let correct = classification::correct(logits, labels);
    Ok((task, baselines, correct))
}

type Drawn = (String, &'static str, String);

fn detection_figures(task: &Task, baselines: &Baselines, correct: &[bool]) -> Result<Vec<Drawn>> {
    let mut curves = Vec::new();
    let mut risks = Vec::new();
    for scored in &baselines.scored {
        let (_, far) = &scored.ood[0];
        let merit = Detection::new(Positive::OutOfDistribution, &scored.test, far)?.auroc;
        curves.push(Curve { name: scored.name.clone(), points: detection::roc(&scored.test, far)?, merit });
        let losses = selective::errors(correct);
        let points = selective::risk_coverage(&scored.test, &losses)?;
        let merit = Selective::new(&scored.test, &losses)?.aurc;
        risks.push(Curve { name: scored.name.clone(), points, merit });
    }
    let u = &baselines.scored[4];
    let outside: Vec<Scores> = u.ood.iter().map(|(name, values)| Scores { name, values }).collect();
    let inside = Scores { name: "test (in-distribution)", values: &u.test };
    let right: Vec<f32> = correct.iter().map(|&c| f32::from(u8::from(c))).collect();
    let bands = selective::per_quantile(&baselines.scored[0].test, &right, 10)?;
    let overall = right.iter().map(|&x| f64::from(x)).sum::<f64>() / right.len() as f64;
    let skewed: Vec<f32> = u.test.iter().map(|x| x.powi(4)).collect();
    let skewed_far: Vec<f32> = u.ood[1].1.iter().map(|x| x.powi(4)).collect();
    Ok(vec![
        (
            "roc".into(),
            "ROC curves, near set.",
            plot::roc("ROC: test against near", Positive::OutOfDistribution, &curves)?,
        ),
        (
            "histogram".into(),
            "Scores by set.",
            plot::score_histogram("Score by set", "distance to the nearest neighbour", inside, &outside)?,
        ),
        (
            "histogram-log".into(),
            "Scores that span decades.",
            plot::score_histogram(
                "Score by set",
                "uncertainty u (nats)",
                Scores { name: "test", values: &skewed },
                &[Scores { name: "far", values: &skewed_far }],
            )?,
        ),
        (
            "risk-coverage".into(),
            "Error rate among the answered.",
            plot::risk_coverage("Risk and coverage", "error rate", &risks)?,
        ),
        (
            "quantiles".into(),
            "Accuracy falls with uncertainty.",
            plot::accuracy_per_quantile("Accuracy per uncertainty band", &bands, overall)?,
        ),
        ("latent".into(), "Classes and codes.", latent(task)?),
    ])
}

fn latent(task: &Task) -> Result<String> {
    let Targets::Classes { labels, .. } = &task.test.targets else { anyhow::bail!("blobs have classes") };
    let means: Vec<[f32; DIM]> =
        (0..CLASSES.len()).map(|l| std::array::from_fn(|j| if j == l { 3.4 } else { 0.0 })).collect();
    let means = Table::from_rows(&means)?;
    let plane = Plane::fit(&task.test.inputs)?;
    let codes = means.iter().map(|mean| plane.code(mean, &[1.0; DIM])).collect::<Result<Vec<_>>>()?;
    let mut groups: Vec<Group> =
        CLASSES.iter().map(|name| Group { name: (*name).into(), points: Vec::new(), ood: false }).collect();
    for (point, &label) in plane.points(&task.test.inputs)?.into_iter().zip(labels) {
        groups[label as usize].points.push(point);
    }
    groups.push(Group { name: "far (OOD)".into(), points: plane.points(&task.ood[1].1)?, ood: true });
    plot::latent_scatter("Latent space", &groups, &codes)
}

fn code_figures(task: &Task) -> Result<Vec<Drawn>> {
    let mut random = Random::new(3, "codes");
    let Targets::Classes { labels, count } = &task.test.targets else { anyhow::bail!("blobs have classes") };
    let mut counts = vec![vec![0; *count]; CLASSES.len()];
    for &label in labels {
        let code = if random.uniform() < 0.8 { label as usize } else { random.below(CLASSES.len()) };
        counts[code][label as usize] += 1;
    }
    let many: Vec<Vec<usize>> = (0..100)
        .map(|k| {
            (0..150).map(|c| if c * 2 / 3 == k { 25 } else { usize::from(random.below(9) == 0) }).collect()
        })
        .collect();
    let names: Vec<String> = CLASSES.iter().map(ToString::to_string).collect();
    let mut usage = |codes: usize| -> Vec<Vec<f64>> {
        let mut logits = vec![0.0; codes];
        (0..120)
            .map(|_| {
                logits.iter_mut().for_each(|l| *l += 0.12 * random.normal());
                let sum: f64 = logits.iter().map(|l: &f64| l.exp()).sum();
                logits.iter().map(|l| l.exp() / sum).collect()
            })
            .collect()
    };
    Ok(vec![
        (
            "codes".into(),
            "Which code takes which class.",
            plot::code_class_counts("Examples by code and class", &counts, &names)?,
        ),
        (
            "codes-many".into(),
            "A large codebook.",
            plot::code_class_counts("Examples by code and class", &many, &[])?,
        ),
        ("usage".into(), "Priors over training.", plot::code_usage("Code usage", &usage(6))?),
        ("usage-many".into(), "Priors of many codes.", plot::code_usage("Code usage", &usage(100))?),
    ])
}

fn report(runs: &[Run], figures: Vec<Drawn>) -> Result<Report> {
    let mut reports = Vec::new();
    let mut quality = Vec::new();
    for (task, baselines, correct) in runs {
        reports.push(baselines.scored.iter().map(|s| s.report(Some(correct))).collect::<Result<Vec<_>>>()?);
        let Targets::Classes { labels, .. } = &task.test.targets else { anyhow::bail!("blobs have classes") };
        let logits = baselines.test_logits.as_ref().context("classification has logits")?;
        quality.push(Classification::new(&softmax(logits), labels)?);
    }
    let mut methods = Method::from_runs(&reports);
    methods[4].own = true;
    let mut tables = detection_tables(&methods)?.into_iter();
    let mut blocks: Vec<Block> = tables.next().map(Block::Table).into_iter().collect();
    blocks.extend(tables.map(Block::Folded));
    let column = |name: &str, better| Column { name: name.into(), note: String::new(), better };
    let over = |pick: fn(&Classification) -> f64| Summary::of(&quality.iter().map(pick).collect::<Vec<_>>());
    let classification = MetricTable {
        caption: "Softmax regression on the test set".into(),
        columns: vec![
            column("accuracy", Better::Higher),
            column("NLL (nats)", Better::Lower),
            column("Brier", Better::Lower),
            column("ECE", Better::Lower),
        ],
        rows: vec![Row {
            name: "softmax regression".into(),
            own: false,
            cells: vec![over(|q| q.accuracy), over(|q| q.nll), over(|q| q.brier), over(|q| q.ece)],
        }],
        digits: 3,
    };
    let drawn =
        figures.into_iter().map(|(_, caption, svg)| Block::Figure(Figure { caption: caption.into(), svg }));
    let setting = |name: &str, value: &str| (name.to_string(), value.to_string());
    Ok(Report {
        title: "Gallery".into(),
        summary: "Every figure and table, on generated data; mean ± standard deviation over 3 seeds.".into(),
        settings: vec![
            setting("classes", "5"),
            setting("input columns", "6"),
            setting("training examples", "2000"),
            setting("seeds", "0, 1, 2"),
        ],
        sections: vec![
            Section { title: "Detection".into(), blocks },
            Section { title: "Classification".into(), blocks: vec![Block::Table(classification)] },
            Section { title: "Figures".into(), blocks: drawn.collect() },
        ],
    })
}
