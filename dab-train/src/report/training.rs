//! `report.html` of `dab train`: settings, tables beside the baselines, figures.

use anyhow::Result;

use super::{
    Better, Block, Column, Method, MetricTable, Report, Row, Section, detection_tables, figures::Named,
};
use crate::{
    config::Experiment,
    measure::{
        evaluate::PROTOCOL,
        metrics::{ScoreReport, Summary},
    },
    run::Run,
};

/// report.html of all seeds; figures are the first seed's.
///
/// # Errors
/// When seeds were measured on different sets.
pub fn training_report(
    experiment: &Experiment,
    all: &[Run],
    baselines: &[Vec<ScoreReport>],
    summary: &[(String, Summary)],
    figures: Vec<Named>,
) -> Result<String> {
    let own = Method {
        name: "DAB".to_owned(),
        own: true,
        seeds: all.iter().map(|run| run.evaluation.report.clone()).collect(),
    };
    let mut methods = vec![own];
    methods.extend(Method::from_runs(baselines));
    let columns = summary.iter().map(|(name, _)| Column {
        name: name.clone(),
        note: String::new(),
        better: Better::Neither,
    });
    let numbers = MetricTable {
        caption: "The model itself".to_owned(),
        columns: columns.collect(),
        rows: vec![Row {
            name: "DAB".to_owned(),
            own: true,
            cells: summary.iter().map(|(_, summary)| Some(*summary)).collect(),
        }],
        digits: 4,
    };
    let mut sections = vec![Section { title: "Summary".to_owned(), blocks: vec![Block::Table(numbers)] }];
    if all.iter().any(|run| !run.evaluation.report.ood.is_empty()) {
        let mut tables = detection_tables(&methods)?.into_iter();
        let overview = tables.next().map(Block::Table);
        let blocks = overview.into_iter().chain(tables.map(Block::Folded)).collect();
        sections.push(Section { title: "Detection".to_owned(), blocks });
    }
    let drawn = figures.into_iter().map(|named| Block::Figure(named.figure)).collect();
    let seed = all.first().map_or(0, |run| run.seed);
    sections.push(Section { title: format!("Figures (seed {seed})"), blocks: drawn });
    let settings = toml_pairs(&experiment.resolved()?);
    let seeds = all.len();
    let summary =
        format!("{seeds} seed{}; scores are u in nats. {PROTOCOL}", if seeds == 1 { "" } else { "s" });
    Ok(Report { title: experiment.name.clone(), summary, settings, sections }.html())
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
