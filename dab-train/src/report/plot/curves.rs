//! ROC, risk–coverage, and accuracy per band of uncertainty.
//!
//! curves of `metrics::detection::roc` and `metrics::selective::risk_coverage` → SVG.
//!
//! A curve's figure of merit stands in the legend, so that the reader need not integrate by eye; a ROC
//! draws the chance diagonal, a risk–coverage plot ends at the plain error rate.

use anyhow::{Result, ensure};
use plotters::element::Text;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::style::{self, Axis, BLUE, Entry, Frame, INK, MUTED, Mark};
use crate::measure::metrics::Positive;

/// Opacity of a bar.
const OPACITY: f64 = 0.75;

/// One named curve with its figure of merit.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name for the legend.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
    /// AUROC or AURC, for the legend.
    pub merit: f64,
}

fn legend(curves: &[Curve]) -> Vec<Entry> {
    let entry = |(i, curve): (usize, &Curve)| {
        let (color, dashed) = style::series_color(i);
        let mark = if dashed { Mark::Dashed } else { Mark::Line };
        Entry::new(format!("{:.3}  {}", curve.merit, curve.name), color, mark)
    };
    curves.iter().enumerate().map(entry).collect()
}

fn draw_curves(chart: &mut style::Chart, curves: &[Curve]) -> Result<()> {
    // The first curve is the one of interest: it is drawn last, on top.
    for (i, curve) in curves.iter().enumerate().rev() {
        let (color, dashed) = style::series_color(i);
        let stroke = style::stroke(color, if i == 0 { 3 } else { 2 });
        let points = style::thinned(&curve.points);
        if dashed {
            chart.draw_series(style::dashed(points, (8, 4), stroke))?;
        } else {
            chart.draw_series(LineSeries::new(points, stroke))?;
        }
    }
    Ok(())
}

/// ROC curves with AUROC in the legend.
///
/// # Errors
/// No curve to draw.
pub fn roc(title: &str, positive: Positive, curves: &[Curve]) -> Result<String> {
    ensure!(!curves.is_empty(), "no curve to draw");
    let label = format!("true-positive rate (positive: {})", positive.label());
    let mut entries = legend(curves);
    entries.push(Entry::new("0.500  chance", MUTED, Mark::Dashed));
    let frame = Frame {
        title,
        x: Axis::new("false-positive rate", 0.0..1.0),
        y: Axis::new(&label, 0.0..1.0),
        legend: entries,
        grid: true,
    };
    style::draw(frame, |chart| {
        chart.draw_series(style::dashed(vec![(0.0, 0.0), (1.0, 1.0)], (5, 5), style::stroke(MUTED, 1)))?;
        draw_curves(chart, curves)
    })
}

/// Risk–coverage curves with AURC in the legend; `risk` names the loss, as in "error rate".
///
/// # Errors
/// No curve to draw.
pub fn risk_coverage(title: &str, risk: &str, curves: &[Curve]) -> Result<String> {
    let all = curves.iter().flat_map(|c| &c.points);
    // The first twentieth is a handful of examples: their noise must not set the scale.
    let top = all.filter(|p| p.0 >= 0.05).map(|p| p.1).fold(0.0, f64::max);
    ensure!(!curves.is_empty(), "no curve to draw");
    let top = if top > 0.0 { top * 1.08 } else { 1.0 };
    let shares = top <= 1.0;
    let label = format!("{risk} among the answered");
    let clipped: Vec<Curve> = curves
        .iter()
        .map(|c| Curve { points: c.points.iter().map(|p| (p.0, p.1.min(top))).collect(), ..c.clone() })
        .collect();
    let frame = Frame {
        title,
        x: Axis {
            format: &style::percent,
            ..Axis::new("coverage: share answered, most certain first", 0.0..1.0)
        },
        y: Axis {
            format: if shares { &style::percent } else { &style::number },
            ..Axis::new(&label, 0.0..top)
        },
        legend: legend(curves),
        grid: true,
    };
    style::draw(frame, |chart| draw_curves(chart, &clipped))
}

/// Accuracy in equal-count bands of rising uncertainty, beside the overall accuracy.
///
/// # Errors
/// No band to draw.
pub fn accuracy_per_quantile(title: &str, accuracy: &[f64], overall: f64) -> Result<String> {
    ensure!(!accuracy.is_empty(), "no band to draw");
    let n = accuracy.len() as f64;
    let label = format!("uncertainty, in {} bands of equal count, low to high", accuracy.len());
    let frame = Frame {
        title,
        x: Axis {
            ticks: accuracy.len() + 1,
            format: &|x| if x.fract() == 0.0 && *x >= 1.0 { style::number(x) } else { String::new() },
            ..Axis::new(&label, 0.5..n + 0.5)
        },
        y: Axis { format: &style::percent, ..Axis::new("accuracy", 0.0..1.1) },
        legend: vec![
            Entry::new("accuracy in the band", BLUE, Mark::Area(OPACITY)),
            Entry::new(format!("overall: {:.1} %", overall * 100.0), INK, Mark::Dashed),
        ],
        grid: true,
    };
    style::draw(frame, |chart| {
        for (i, &value) in accuracy.iter().enumerate() {
            let x = i as f64 + 1.0;
            chart.draw_series([Rectangle::new(
                [(x - 0.4, 0.0), (x + 0.4, value)],
                BLUE.mix(OPACITY).filled(),
            )])?;
            let style = style::anchored(style::TICK_SIZE, INK, HPos::Center, VPos::Bottom);
            let shown = format!("{:.1}", value * 100.0);
            chart.draw_series([Text::new(shown, (x, value + 0.01), style)])?;
        }
        let line = vec![(0.5, overall), (n + 0.5, overall)];
        chart.draw_series(style::dashed(line, (7, 5), style::stroke(INK, 2)))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str) -> Curve {
        Curve { name: name.into(), points: vec![(0.0, 0.0), (0.2, 0.8), (1.0, 1.0)], merit: 0.9 }
    }

    #[test]
    fn merits_and_the_positive_class_are_written() {
        let many: Vec<Curve> = (0..20).map(|i| curve(&format!("set {i}"))).collect();
        let svg = roc("ROC", Positive::OutOfDistribution, &many).unwrap();
        assert!(svg.contains("0.900  set 0") && svg.contains("positive: out-of-distribution input"));
        assert!(svg.contains("and 6 more"), "the legend says what it leaves out");
        assert!(roc("ROC", Positive::Misclassified, &[]).is_err());
        let svg = risk_coverage("Risk", "error rate", &[curve("u")]).unwrap();
        assert!(svg.contains("error rate among the answered") && svg.contains(" %"));
    }

    #[test]
    fn bars_carry_their_values() {
        let svg = accuracy_per_quantile("A", &[0.99, 0.95, 0.5], 0.8133).unwrap();
        assert!(svg.contains("99.0") && svg.contains("overall: 81.3 %"));
    }
}
