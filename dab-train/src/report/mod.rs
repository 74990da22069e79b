//! The one-page report: settings, tables, figures, in one file that needs nothing else.
//!
//! `Report` → [`Report::html`] → report.html. Styles and SVGs are inside the page: it opens from a
//! mail attachment as well as from a server, in light and in dark.
//!
//! In a table the best value of each column is bold and the model's own rows are tinted; "best" knows
//! whether a metric wants to be large or small.

mod detection;
pub mod figures;
pub mod folder;
mod html;
pub mod numbers;
pub mod plot;
pub mod training;

pub use detection::{Method, detection_tables};

use crate::measure::metrics::Summary;

/// Everything on the page, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Headline.
    pub title: String,
    /// One or two sentences under it: what was measured on what, over how many seeds.
    pub summary: String,
    /// Name and value of each setting.
    pub settings: Vec<(String, String)>,
    /// The page's body.
    pub sections: Vec<Section>,
}

/// A headed part of the page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Its contents.
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A table.
    Table(MetricTable),
    /// A table behind a click.
    Folded(MetricTable),
    /// A figure.
    Figure(Figure),
}

/// An SVG with its caption.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What to see in it.
    pub caption: String,
    /// The drawing, as the functions of `plot` return it.
    pub svg: String,
}

/// Which end of a column is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Large values are good.
    Higher,
    /// Small values are good.
    Lower,
    /// Neither: nothing is marked.
    Neither,
}

/// A column's head.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The metric.
    pub name: String,
    /// Small print under it: unit, prevalence; may be empty.
    pub note: String,
    /// Which end is good.
    pub better: Better,
}

/// One method's values.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The method.
    pub name: String,
    /// Whether it is the model of this report, not a baseline.
    pub own: bool,
    /// One value per column; `None` where there is none.
    pub cells: Vec<Option<Summary>>,
}

/// Methods by metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricTable {
    /// What is in it; states the positive class where there is one.
    pub caption: String,
    /// Heads.
    pub columns: Vec<Column>,
    /// Methods.
    pub rows: Vec<Row>,
    /// Decimals shown.
    pub digits: usize,
}

impl MetricTable {
    /// Index of the best row per column; `None` when nothing is to be marked.
    fn best(&self) -> Vec<Option<f64>> {
        (0..self.columns.len())
            .map(|c| {
                let values =
                    self.rows.iter().filter_map(|r| r.cells.get(c).copied().flatten()).map(|s| s.mean);
                match self.columns[c].better {
                    Better::Neither => None,
                    _ if self.rows.len() < 2 => None,
                    Better::Higher => values.reduce(f64::max),
                    Better::Lower => values.reduce(f64::min),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> MetricTable {
        let one = |x: f64| Summary::of(&[x]);
        MetricTable {
            caption: "svhn <OOD>".into(),
            columns: vec![
                Column { name: "AUROC".into(), note: "prevalence 0.50".into(), better: Better::Higher },
                Column { name: "FPR95".into(), note: String::new(), better: Better::Lower },
            ],
            rows: vec![
                Row { name: "DAB".into(), own: true, cells: vec![Summary::of(&[0.9, 0.92]), one(0.4)] },
                Row { name: "MSP & co".into(), own: false, cells: vec![one(0.8), None] },
            ],
            digits: 3,
        }
    }

    #[test]
    fn the_best_of_a_column_is_marked() {
        assert_eq!(table().best(), [Some(0.91), Some(0.4)]);
        let mut single = table();
        single.rows.truncate(1);
        assert_eq!(single.best(), [None, None], "one row has no rival");
    }

    #[test]
    fn the_page_is_whole_and_escaped() {
        let report = Report {
            title: "a < b".into(),
            summary: "ten seeds".into(),
            settings: vec![("alpha".into(), "1 & 2".into())],
            sections: vec![Section {
                title: "Detection".into(),
                blocks: vec![
                    Block::Table(table()),
                    Block::Folded(table()),
                    Block::Text("Positive class: the OOD input.".into()),
                    Block::Figure(Figure { caption: "ROC".into(), svg: "<svg></svg>".into() }),
                ],
            }],
        };
        let page = report.html();
        for part in [
            "<!doctype html>",
            "a &lt; b",
            "1 &amp; 2",
            "0.910 ± 0.014",
            "MSP &amp; co",
            "<svg></svg>",
            "<details>",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("http://") && !page.contains("https://"), "no external resource");
        assert_eq!(page, report.html());
    }
}
