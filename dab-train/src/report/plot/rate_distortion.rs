//! What a better score costs: every candidate's size against how well it finds classes that it has not seen.
//!
//! candidates of the selection → points, their best front as a line, the chosen one ringed → SVG.

use anyhow::{Result, ensure};
use plotters::prelude::*;

use super::style::{self, Axis, BLUE, Drawing, Entry, Frame, INK, MUTED, Mark, PX, VERMILLION};
use crate::choose::{Choice, Point};

/// AUROCs that differ by less than twice this look alike.
const FLAT: f64 = 0.01;

/// Draws the points of a choice on a logarithmic axis of what they `cost`, in the unit `label`; `budget` is the most allowed.
pub fn rate_distortion(
    title: &str,
    label: &str,
    choice: &Choice,
    cost: fn(&Point) -> u64,
    budget: Option<u64>,
) -> Result<Drawing> {
    ensure!(!choice.curve.is_empty(), "no candidate to draw");
    ensure!(choice.curve.iter().all(|p| cost(p) > 0), "a candidate costs nothing");
    let place = |p: &Point| ((cost(p) as f64).log10(), p.auroc);
    let mut points: Vec<(f64, f64)> = choice.curve.iter().map(place).collect();
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
    let budget = budget.filter(|&b| b > 0).map(|b| (b as f64).log10());
    let x = style::padded(points.iter().map(|p| p.0).chain(budget), 0.06);
    // A flat curve is drawn flat, not as noise over the whole height; and no AUROC is above 1.
    let middle = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let spread = [middle - FLAT, middle + FLAT].into_iter();
    let y = style::padded(points.iter().map(|p| p.1).chain(spread), 0.08);
    let y = y.start..y.end.min(1.0 + 0.2 * FLAT);
    front.push((x.end, best));
    let chosen: Vec<(f64, f64)> = choice.curve.iter().filter(|p| p.chosen).map(place).collect();
    let mut legend = vec![
        Entry::new("candidates", MUTED, Mark::Dot),
        Entry::new("the best at each size", BLUE, Mark::Line),
        Entry::new("chosen", VERMILLION, Mark::Dot),
    ];
    legend.extend(budget.map(|_| Entry::new("the budget", INK, Mark::Dashed)));
    // The words below the figure also name the mixed rows; here they would not fit on a phone.
    let (label, found) = (format!("{label}, logarithmic"), format!("AUROC on left-out {}", choice.hidden));
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
        let point = |&(bytes, auroc, chosen): &(u64, f64, bool)| Point {
            flash: None,
            bytes,
            multiply_adds: 0,
            codes: 1,
            auroc,
            chosen,
        };
        let drawn = |points: &[(u64, f64, bool)], budget| {
            let curve = points.iter().map(point).collect();
            let choice = Choice { curve, hidden: "classes", ..Choice::default() };
            rate_distortion("R", "bytes", &choice, |p| p.bytes, budget).map(|drawing| drawing.file())
        };
        let all = [(1200, 0.9, false), (64_000, 0.99, true), (9000, 0.97, false)];
        let svg = drawn(&all, Some(131_072)).unwrap();
        for part in ["bytes, logarithmic", "chosen", "the budget", "AUROC on left-out classes"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!drawn(&all, None).unwrap().contains("the budget"));
        assert!(drawn(&[], None).is_err());
    }

    #[test]
    fn sizes_read_like_sizes() {
        assert_eq!([1300.0, 131_072.0, 2.0e6, 96.0].map(engineering), ["1.3k", "131k", "2.0M", "96"]);
    }
}
