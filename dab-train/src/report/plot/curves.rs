//! ROC and risk–coverage.
//!
//! curves of `metrics::detection::roc` and `metrics::selective::risk_coverage` → SVG.
//!
//! A curve's figure of merit stands in the legend, so that the reader need not integrate by eye; a ROC
//! draws the chance diagonal, a risk–coverage plot ends at the plain error rate.

use super::style::{self, Axis, Drawing, Entry, Frame, MUTED, Mark};
use crate::measure::metrics::Positive;
use anyhow::{Result, ensure};

/// One named curve with its figure of merit.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
    /// AUROC or AURC, for the legend.
    pub merit: f64,
}

fn legend(curves: &[Curve]) -> Vec<Entry> {
    let name = |curve: &Curve| format!("{:.3}  {}", curve.merit, curve.name);
    curves.iter().enumerate().map(|(i, curve)| Entry::series(i, name(curve))).collect()
}

fn draw_curves(chart: &mut style::Chart, curves: &[Curve]) -> Result<()> {
    // The first curve is the one of interest: it is drawn last, on top.
    for (i, curve) in curves.iter().enumerate().rev() {
        let (color, dashed) = style::series_color(i);
        let stroke = style::stroke(color, if i == 0 { 3 } else { 2 });
        style::line(chart, style::thinned(&curve.points), dashed.then_some((8, 4)), stroke)?;
    }
    Ok(())
}

/// ROC curves with AUROC in the legend.
pub fn roc(title: &str, positive: Positive, curves: &[Curve]) -> Result<Drawing> {
    ensure!(!curves.is_empty(), "no curve to draw");
    let label = match positive {
        Positive::OutOfDistribution => "share of strangers found",
        Positive::Misclassified => "share of errors found",
    };
    let mut entries = legend(curves);
    entries.push(Entry::new("0.500  chance", MUTED, Mark::Dashed));
    let x = Axis::percent("false alarms among test inputs", 0.0..1.0);
    style::draw(Frame::new(title, x, Axis::percent(label, 0.0..1.0), entries), |chart| {
        chart.draw_series(style::dashed(vec![(0.0, 0.0), (1.0, 1.0)], (5, 5), style::stroke(MUTED, 1)))?;
        draw_curves(chart, curves)
    })
}

/// Risk–coverage curves with AURC in the legend; `risk` names the loss, as in "error rate".
pub fn risk_coverage(title: &str, risk: &str, curves: &[Curve]) -> Result<Drawing> {
    let all = curves.iter().flat_map(|c| &c.points);
    // The first twentieth is a handful of examples: their noise must not set the scale.
    let top = all.filter(|p| p.0 >= 0.05).map(|p| p.1).fold(0.0, f64::max);
    ensure!(!curves.is_empty(), "no curve to draw");
    let top = if top > 0.0 { top * 1.08 } else { 1.0 };
    let label = format!("{risk} among the answered");
    let clipped: Vec<Curve> = curves
        .iter()
        .map(|c| Curve { points: c.points.iter().map(|p| (p.0, p.1.min(top))).collect(), ..c.clone() })
        .collect();
    let x = Axis::percent("coverage: share answered, most certain first", 0.0..1.0);
    let y = if top <= 1.0 { Axis::percent(&label, 0.0..top) } else { Axis::new(&label, 0.0..top) };
    style::draw(Frame::new(title, x, y, legend(curves)), |chart| draw_curves(chart, &clipped))
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
        let svg = roc("ROC", Positive::OutOfDistribution, &many).unwrap().file();
        assert!(svg.contains("0.900  set 0") && svg.contains("share of strangers found"));
        assert!(svg.contains("and 8 more"), "the legend says what it leaves out");
        assert!(roc("ROC", Positive::Misclassified, &[]).is_err());
        let svg = risk_coverage("Risk", "error rate", &[curve("u")]).unwrap().file();
        assert!(svg.contains("error rate among the answered") && svg.contains(" %"));
    }
}
