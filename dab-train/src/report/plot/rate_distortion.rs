//! What a better score costs: every candidate's size against how well it finds classes that it has not seen.
//!
//! candidates of the selection → points, their best front as a line, the chosen one ringed → SVG.

use anyhow::{Result, ensure};
use plotters::prelude::*;

use super::style::{self, Axis, BLUE, Drawing, Entry, Frame, INK, MUTED, Mark, PX, VERMILLION};

/// AUROCs that differ by less than twice this look alike.
const FLAT: f64 = 0.01;

/// One candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What it costs, in the axis's unit.
    pub cost: f64,
    /// AUROC on classes (or clusters) that were left out.
    pub auroc: f64,
    /// Whether it became the model.
    pub chosen: bool,
}

/// Draws candidates on a logarithmic axis of costs; `budget` is the largest cost allowed.
pub fn rate_distortion(
    title: &str,
    cost: &str,
    hidden: &str,
    candidates: &[Candidate],
    budget: Option<f64>,
) -> Result<Drawing> {
    ensure!(!candidates.is_empty(), "no candidate to draw");
    ensure!(candidates.iter().all(|c| c.cost > 0.0), "a candidate costs nothing");
    let mut points: Vec<(f64, f64)> = candidates.iter().map(|c| (c.cost.log10(), c.auroc)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut best = f64::NEG_INFINITY;
    let mut front: Vec<(f64, f64)> = Vec::new();
    for &(cost, auroc) in &points {
        if auroc > best {
            front.extend(front.last().map(|last| (cost, last.1)));
            front.push((cost, auroc));
            best = auroc;
        }
    }
    let budget = budget.filter(|&b| b > 0.0).map(f64::log10);
    let x = style::padded(points.iter().map(|p| p.0).chain(budget), 0.06);
    // A flat curve is drawn flat, not as noise over the whole height; and no AUROC is above 1.
    let middle = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let spread = [middle - FLAT, middle + FLAT].into_iter();
    let y = style::padded(points.iter().map(|p| p.1).chain(spread), 0.08);
    let y = y.start..y.end.min(1.0 + 0.2 * FLAT);
    front.push((x.end, best));
    let chosen: Vec<(f64, f64)> =
        candidates.iter().filter(|c| c.chosen).map(|c| (c.cost.log10(), c.auroc)).collect();
    let mut legend = vec![
        Entry::new("candidates", MUTED, Mark::Dot),
        Entry::new("the best at each size", BLUE, Mark::Line),
        Entry::new("chosen", VERMILLION, Mark::Dot),
    ];
    legend.extend(budget.map(|_| Entry::new("the budget", INK, Mark::Dashed)));
    // The words below the figure also name the mixed rows; here they would not fit on a phone.
    let (label, found) = (format!("{cost}, logarithmic"), format!("AUROC on left-out {hidden}"));
    let decade = |x: &f64| engineering(10f64.powf(*x));
    let costs = Axis { format: &decade, ticks: 5, ..Axis::new(&label, x) };
    style::draw(Frame::new(title, costs, Axis::new(&found, y.clone()), legend), |chart| {
        if let Some(budget) = budget {
            let line = vec![(budget, y.start), (budget, y.end)];
            chart.draw_series(style::dashed(line, (6, 4), style::stroke(INK, 1)))?;
        }
        chart.draw_series(LineSeries::new(front, style::stroke(BLUE, 2)))?;
        chart.draw_series(points.iter().map(|&p| Circle::new(p, 3 * PX, MUTED.mix(0.7).filled())))?;
        chart.draw_series(chosen.iter().map(|&p| Circle::new(p, 9 * PX, style::stroke(VERMILLION, 2))))?;
        chart.draw_series(chosen.iter().map(|&p| Circle::new(p, 5 * PX, VERMILLION.filled())))?;
        Ok(())
    })
}

/// Two digits with a unit prefix: `1.3k`, `120k`.
fn engineering(x: f64) -> String {
    let (scaled, unit) = match x {
        x if x >= 1e6 => (x / 1e6, "M"),
        x if x >= 1e3 => (x / 1e3, "k"),
        x => (x, ""),
    };
    if scaled < 9.95 { format!("{scaled:.1}{unit}") } else { format!("{scaled:.0}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_candidate_and_the_budget_are_marked() {
        let candidate = |cost, auroc, chosen| Candidate { cost, auroc, chosen };
        let all =
            [candidate(1200.0, 0.9, false), candidate(64_000.0, 0.99, true), candidate(9000.0, 0.97, false)];
        let svg = rate_distortion("R", "bytes", "classes", &all, Some(131_072.0)).unwrap().file();
        for part in ["bytes, logarithmic", "chosen", "the budget", "AUROC on left-out classes"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!rate_distortion("R", "bytes", "classes", &all, None).unwrap().file().contains("the budget"));
        assert!(rate_distortion("R", "bytes", "classes", &[], None).is_err());
    }

    #[test]
    fn sizes_read_like_sizes() {
        assert_eq!([1300.0, 131_072.0, 2.0e6, 96.0].map(engineering), ["1.3k", "131k", "2.0M", "96"]);
    }
}
