//! Detection tables: one overview of AUROC, then the details of every OOD set.
//!
//! per-seed `ScoreReport`s of each method → `MetricTable`s with mean ± sd.
//!
//! Prevalence stands in the column's head or the caption, beside the positive class: an AUPR cannot be
//! read without it.

use anyhow::{Context, Result, ensure};

use super::{Better, Column, MetricTable, Row};
use crate::measure::metrics::{Detection, Positive, ScoreReport, Summary};

/// Decimals of detection metrics.
const DIGITS: usize = 3;

/// One method over all seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Name for the tables.
    pub name: String,
    /// Whether it is the model of the report.
    pub own: bool,
    /// One report per seed, all on the same sets.
    pub seeds: Vec<ScoreReport>,
}

impl Method {
    /// Groups per-seed report lists (`runs[seed][method]`) into methods; none of them is `own`.
    #[must_use]
    pub fn from_runs(runs: &[Vec<ScoreReport>]) -> Vec<Self> {
        let methods = runs.iter().map(Vec::len).min().unwrap_or(0);
        (0..methods)
            .map(|m| Self {
                name: runs[0][m].name.clone(),
                own: false,
                seeds: runs.iter().map(|run| run[m].clone()).collect(),
            })
            .collect()
    }

    fn summary(&self, pick: impl Fn(&ScoreReport) -> Option<f64>) -> Option<Summary> {
        Summary::of(&self.seeds.iter().filter_map(pick).collect::<Vec<_>>())
    }

    fn row(&self, cells: Vec<Option<Summary>>) -> Row {
        Row { name: self.name.clone(), own: self.own, cells }
    }
}

/// The overview (AUROC of every set, misclassification last), then one table per set, then one of
/// misclassification where there are classes.
///
/// # Errors
/// No method, a method without seeds, or methods on different sets.
pub fn detection_tables(methods: &[Method]) -> Result<Vec<MetricTable>> {
    let first = methods.first().and_then(|m| m.seeds.first()).context("no method to tabulate")?;
    let names = |report: &ScoreReport| report.ood.iter().map(|o| o.0.clone()).collect::<Vec<_>>();
    for method in methods {
        ensure!(!method.seeds.is_empty(), "{}: no seed", method.name);
        let same = method.seeds.iter().all(|report| names(report) == names(first));
        ensure!(same, "{} was measured on other sets than {}", method.name, methods[0].name);
    }
    let mut tables = vec![overview(methods, first)];
    for (set, (name, detection)) in first.ood.iter().enumerate() {
        let pick = move |report: &ScoreReport| Some(report.ood[set].1.clone());
        tables.push(details(name, detection, methods, pick));
    }
    let found = methods.iter().flat_map(|m| &m.seeds).find_map(|r| r.misclassification.as_ref());
    if let Some(detection) = found {
        let name = "misclassified test inputs";
        let mut table = details(name, detection, methods, |r| r.misclassification.clone());
        // Each classifier misclassifies its own inputs, so the prevalence is the method's, not the set's.
        table.caption = format!("{name}. Positive: the {}", detection.positive.label());
        type Extra = (&'static str, &'static str, Better, fn(&ScoreReport) -> Option<f64>);
        const EXTRA: [Extra; 2] = [
            ("prevalence", "share wrong", Better::Neither, |r| {
                Some(r.misclassification.as_ref()?.prevalence)
            }),
            ("AURC", "mean risk", Better::Lower, |r| Some(r.selective.as_ref()?.aurc)),
        ];
        for (name, note, better, pick) in EXTRA {
            table.columns.push(Column { name: name.into(), note: note.into(), better });
            for (row, method) in table.rows.iter_mut().zip(methods) {
                row.cells.push(method.summary(pick));
            }
        }
        tables.push(table);
    }
    Ok(tables)
}

/// `prevalence 0.40`, or the range over methods and seeds where it differs.
fn prevalence_note(values: impl Iterator<Item = f64>) -> String {
    let all = Summary::of(&values.collect::<Vec<_>>());
    let [low, high] = [all.map_or(0.0, |s| s.min), all.map_or(0.0, |s| s.max)].map(|x| format!("{x:.2}"));
    if low == high { format!("prevalence {low}") } else { format!("prevalence {low}–{high}") }
}

fn overview(methods: &[Method], first: &ScoreReport) -> MetricTable {
    let reports = || methods.iter().flat_map(|m| &m.seeds);
    let column = |name: &str, note: String| Column { name: name.into(), note, better: Better::Higher };
    let set = |(i, (name, _)): (usize, &(String, Detection))| {
        column(name, prevalence_note(reports().map(|r| r.ood[i].1.prevalence)))
    };
    let mut columns: Vec<Column> = first.ood.iter().enumerate().map(set).collect();
    let wrong = reports().any(|r| r.misclassification.is_some());
    if wrong {
        let prevalences = reports().filter_map(|r| r.misclassification.as_ref().map(|d| d.prevalence));
        columns.push(column("misclassified", prevalence_note(prevalences)));
    }
    let row = |method: &Method| {
        let mut cells: Vec<Option<Summary>> =
            (0..first.ood.len()).map(|set| method.summary(|r| Some(r.ood[set].1.auroc))).collect();
        if wrong {
            cells.push(method.summary(|r| r.misclassification.as_ref().map(|d| d.auroc)));
        }
        method.row(cells)
    };
    let also = if wrong { "; last column: the misclassified input" } else { "" };
    MetricTable {
        caption: format!("AUROC. Positive: the {}{also}", Positive::OutOfDistribution.label()),
        columns,
        rows: methods.iter().map(row).collect(),
        digits: DIGITS,
    }
}

fn details(
    name: &str,
    detection: &Detection,
    methods: &[Method],
    pick: impl Fn(&ScoreReport) -> Option<Detection>,
) -> MetricTable {
    type Metric = (&'static str, &'static str, Better, fn(&Detection) -> f64);
    const METRICS: [Metric; 4] = [
        ("AUROC", "chance 0.5", Better::Higher, |d| d.auroc),
        ("AUPR out", "positives", Better::Higher, |d| d.aupr_out),
        ("AUPR in", "negatives", Better::Higher, |d| d.aupr_in),
        ("FPR95", "at 95 % TPR", Better::Lower, |d| d.fpr95),
    ];
    let row = |method: &Method| {
        method.row(METRICS.iter().map(|m| method.summary(|r| pick(r).map(|d| m.3(&d)))).collect())
    };
    MetricTable {
        caption: format!(
            "{name}. Positive: the {}; prevalence {:.3} ({} of {})",
            detection.positive.label(),
            detection.prevalence,
            detection.positives,
            detection.positives + detection.negatives
        ),
        columns: METRICS.iter().map(|m| Column { name: m.0.into(), note: m.1.into(), better: m.2 }).collect(),
        rows: methods.iter().map(row).collect(),
        digits: DIGITS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::metrics::Scored;

    fn method(name: &str, shift: f32, correct: Option<&[bool]>) -> Method {
        let scored = Scored {
            name: name.into(),
            test: vec![0.0, 1.0, 2.0],
            ood: vec![("far".into(), vec![shift, 3.0]), ("near".into(), vec![0.5])],
        };
        let report = scored.report(correct).unwrap();
        Method { name: name.into(), own: name == "DAB", seeds: vec![report.clone(), report] }
    }

    #[test]
    fn tables_state_positive_class_and_prevalence() {
        let correct = Some([true, true, false].as_slice());
        let tables = detection_tables(&[method("DAB", 4.0, correct), method("MSP", 1.5, correct)]).unwrap();
        assert_eq!(tables.len(), 4);
        assert!(tables[0].caption.contains("out-of-distribution input"));
        assert_eq!(tables[0].columns[0].note, "prevalence 0.40");
        assert!(tables[1].caption.contains("prevalence 0.400 (2 of 5)"), "{}", tables[1].caption);
        assert!(tables[3].caption.contains("the misclassified input"), "{}", tables[3].caption);
        assert_eq!(tables[3].rows[0].cells[4].unwrap().mean, 1.0 / 3.0);
        assert_eq!(tables[0].rows[0].cells.len(), 3);
        assert_eq!(tables[0].rows[0].cells[0].unwrap().show(3), "1.000 ± 0.000");
    }

    #[test]
    fn regression_has_no_misclassification() {
        let tables = detection_tables(&[method("DAB", 4.0, None)]).unwrap();
        assert_eq!((tables.len(), tables[0].columns.len()), (3, 2));
        assert!(detection_tables(&[]).is_err());
    }

    #[test]
    fn methods_on_other_sets_are_refused() {
        let mut other = method("MSP", 1.0, None);
        other.seeds[0].ood.pop();
        let message = detection_tables(&[method("DAB", 4.0, None), other]).unwrap_err().to_string();
        assert!(message.contains("MSP was measured on other sets"), "{message}");
    }

    #[test]
    fn runs_become_methods() {
        let run = vec![method("a", 1.0, None).seeds[0].clone(), method("b", 1.0, None).seeds[0].clone()];
        let methods = Method::from_runs(&[run.clone(), run]);
        assert_eq!((methods.len(), methods[1].seeds.len(), methods[1].name.as_str()), (2, 2, "b"));
        assert!(Method::from_runs(&[]).is_empty());
    }
}
