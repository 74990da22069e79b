//! Score histograms: in-distribution against each OOD set.
//!
//! scores → shares per bin → SVG. Shares, not counts, since the sets differ in size.
//!
//! ```text
//! share_b = examples in bin b / examples in the set
//! ```
//!
//! Scores in nats span decades; when they do and all are positive, the axis is logarithmic. The end
//! bins also hold what lies beyond the 0.5 % and 99.5 % quantiles, so that one outlier cannot squeeze
//! everything else into one bin.

use anyhow::{Result, ensure};
use plotters::prelude::*;

use super::style::{self, Axis, BLUE, Drawing, Entry, Frame, INK, Mark};

const BINS: usize = 48;
/// Quantiles that the axis spans.
const TAIL: f64 = 0.005;
/// Ratio of the upper to the lower axis end above which the axis is logarithmic.
const DECADES: f64 = 50.0;

const OPACITY: f64 = 0.35;

/// Scores of named sets, the first filled and the others as lines. `label` is the score with its unit, `thresholds` are scores
/// above which the verdict changes, and what it is then.
pub fn score_histogram(
    title: &str,
    label: &str,
    sets: &[(&str, Vec<f32>)],
    thresholds: &[(String, f32)],
) -> Result<Drawing> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (name, scores) in sets {
        let mut sorted: Vec<f64> = scores.iter().filter(|v| v.is_finite()).map(|&v| f64::from(v)).collect();
        ensure!(!sorted.is_empty(), "{name}: no finite score to draw");
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        low = low.min(sorted[(last as f64 * TAIL) as usize]);
        high = high.max(sorted[(last as f64 * (1.0 - TAIL)).ceil() as usize]);
    }
    for (_, threshold) in thresholds {
        (low, high) = (low.min(f64::from(*threshold)), high.max(f64::from(*threshold)));
    }
    let logarithmic = low > 0.0 && high / low > DECADES;
    let place = |v: f64| if logarithmic { v.max(f64::MIN_POSITIVE).log10() } else { v };
    let range = style::padded([place(low), place(high)].into_iter(), 0.02);
    let width = (range.end - range.start) / BINS as f64;
    let outlines: Vec<Vec<(f64, f64)>> = sets
        .iter()
        .map(|(_, scores)| {
            let mut shares = [0.0; BINS];
            for &v in scores.iter().filter(|v| v.is_finite()) {
                let bin = ((place(f64::from(v)) - range.start) / width).clamp(0.0, BINS as f64 - 1.0);
                shares[bin as usize] += 1.0 / scores.len() as f64;
            }
            let corner = |(b, &s): (usize, &f64)| {
                let x = range.start + b as f64 * width;
                [(x, s), (x + width, s)]
            };
            let start = std::iter::once((range.start, 0.0));
            start.chain(shares.iter().enumerate().flat_map(corner)).chain([(range.end, 0.0)]).collect()
        })
        .collect();
    let top = outlines.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
    let mut legend: Vec<Entry> =
        sets.iter().enumerate().map(|(i, (name, _))| Entry::series(i, *name)).collect();
    legend[0] = Entry::new(sets[0].0, BLUE, Mark::Area(OPACITY));
    // The stricter threshold is drawn solid.
    let marks = || thresholds.iter().zip([Mark::Dashed, Mark::Thin]);
    legend.extend(marks().map(|((name, _), mark)| Entry::new(name.clone(), INK, mark)));
    let label = if logarithmic { format!("{label}, logarithmic") } else { label.to_string() };
    let decade = |x: &f64| {
        let near = (x - x.round()).abs() < 1e-6;
        if near { style::number(&10f64.powf(x.round())) } else { String::new() }
    };
    let decades = (range.end - range.start).ceil() as usize + 1;
    let x = if logarithmic {
        Axis { format: &decade, ticks: decades, ..Axis::new(&label, range) }
    } else {
        Axis::new(&label, range)
    };
    let y = Axis::percent("share of the set", 0.0..top * 1.08);
    style::draw(Frame::new(title, x, y, legend), |chart| {
        chart.draw_series([Polygon::new(outlines[0].clone(), BLUE.mix(OPACITY))])?;
        for (i, outline) in outlines.into_iter().enumerate() {
            let (color, dashed) = style::series_color(i);
            let stroke = style::stroke(color, 2);
            // A line along zero would hide the axis: only the occupied runs are drawn.
            for run in outline.chunk_by(|a, b| a.1 > 0.0 || b.1 > 0.0).filter(|run| run.len() > 1) {
                style::line(chart, run.to_vec(), dashed.then_some((8, 4)), stroke)?;
            }
        }
        for ((_, threshold), mark) in marks() {
            let x = place(f64::from(*threshold));
            let dashes = (mark == Mark::Dashed).then_some((6, 4));
            style::line(chart, vec![(x, 0.0), (x, top * 1.08)], dashes, style::stroke(INK, 1))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sets: &[&[f32]], thresholds: &[(String, f32)]) -> Result<String> {
        let sets: Vec<_> = ["test", "far"].into_iter().zip(sets.iter().map(|set| set.to_vec())).collect();
        score_histogram("H", "u (nats)", &sets, thresholds).map(|drawing| drawing.file())
    }

    #[test]
    fn decades_get_a_logarithmic_axis() {
        let inside: Vec<f32> = (1..100).map(|i| i as f32).collect();
        let outside: Vec<f32> = inside.iter().map(|x| x * 100.0).collect();
        let svg = drawn(&[&inside, &outside], &[]).unwrap();
        assert!(svg.contains("u (nats), logarithmic") && svg.contains("far"));
        assert!(drawn(&[&inside], &[]).unwrap().contains("logarithmic"), "1 to 99 is more than 50-fold");
        let narrow: Vec<f32> = (0..100).map(|i| 10.0 + i as f32).collect();
        assert!(!drawn(&[&narrow], &[]).unwrap().contains("logarithmic"));
    }

    #[test]
    fn thresholds_lie_on_the_axis() {
        let values: Vec<f32> = (0..100).map(|i| 10.0 + i as f32).collect();
        let svg = drawn(&[&values], &[("doubtful".into(), 120.0), ("unfamiliar".into(), 400.0)]).unwrap();
        assert!(svg.contains("unfamiliar") && svg.contains("\n400\n"), "{svg}");
    }

    #[test]
    fn equal_and_empty_scores() {
        assert!(drawn(&[&[2.0; 9]], &[]).is_ok());
        assert!(drawn(&[&[]], &[]).is_err());
    }
}
