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

use super::style::{self, Axis, BLUE, Entry, Frame, Mark};

/// Bins of a histogram.
const BINS: usize = 48;
/// Quantiles that the axis spans.
const TAIL: f64 = 0.005;
/// Ratio of the upper to the lower axis end above which the axis is logarithmic.
const DECADES: f64 = 50.0;

/// Opacity of the in-distribution area.
const OPACITY: f64 = 0.35;

/// A named set of scores.
#[derive(Debug, Clone, Copy)]
pub struct Scores<'a> {
    /// Name for the legend.
    pub name: &'a str,
    /// The scores.
    pub values: &'a [f32],
}

/// Draws `inside` filled and each of `outside` as a line; `label` names the score with its unit.
///
/// # Errors
/// An empty set.
pub fn score_histogram(title: &str, label: &str, inside: Scores, outside: &[Scores]) -> Result<String> {
    let sets: Vec<Scores> = std::iter::once(inside).chain(outside.iter().copied()).collect();
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for set in &sets {
        let mut sorted: Vec<f64> =
            set.values.iter().filter(|v| v.is_finite()).map(|&v| f64::from(v)).collect();
        ensure!(!sorted.is_empty(), "{}: no finite score to draw", set.name);
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len() - 1;
        low = low.min(sorted[(last as f64 * TAIL) as usize]);
        high = high.max(sorted[(last as f64 * (1.0 - TAIL)).ceil() as usize]);
    }
    let logarithmic = low > 0.0 && high / low > DECADES;
    let place = |v: f64| if logarithmic { v.max(f64::MIN_POSITIVE).log10() } else { v };
    let range = style::padded([place(low), place(high)].into_iter(), 0.02);
    let width = (range.end - range.start) / BINS as f64;
    let outlines: Vec<Vec<(f64, f64)>> = sets
        .iter()
        .map(|set| {
            let mut shares = [0.0; BINS];
            for &v in set.values.iter().filter(|v| v.is_finite()) {
                let bin = ((place(f64::from(v)) - range.start) / width).clamp(0.0, BINS as f64 - 1.0);
                shares[bin as usize] += 1.0 / set.values.len() as f64;
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
    let legend = sets
        .iter()
        .enumerate()
        .map(|(i, set)| {
            let (color, dashed) = style::series_color(i);
            let mark = [Mark::Line, Mark::Dashed][usize::from(dashed)];
            Entry::new(set.name, color, if i == 0 { Mark::Area(OPACITY) } else { mark })
        })
        .collect();
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
    let frame = Frame {
        title,
        x,
        y: Axis {
            format: &style::percent,
            ..Axis::new("share of the set's examples per bin", 0.0..top * 1.08)
        },
        legend,
        grid: true,
    };
    style::draw(frame, |chart| {
        chart.draw_series([Polygon::new(outlines[0].clone(), BLUE.mix(OPACITY))])?;
        for (i, outline) in outlines.into_iter().enumerate() {
            let (color, dashed) = style::series_color(i);
            let stroke = style::stroke(color, 2);
            // A line along zero would hide the axis: only the occupied runs are drawn.
            for run in outline.chunk_by(|a, b| a.1 > 0.0 || b.1 > 0.0).filter(|run| run.len() > 1) {
                if dashed {
                    chart.draw_series(style::dashed(run.to_vec(), (8, 4), stroke))?;
                } else {
                    chart.draw_series(LineSeries::new(run.iter().copied(), stroke))?;
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_get_a_logarithmic_axis() {
        let inside: Vec<f32> = (1..100).map(|i| i as f32).collect();
        let outside: Vec<f32> = inside.iter().map(|x| x * 100.0).collect();
        let sets = |o| score_histogram("H", "u (nats)", Scores { name: "test", values: &inside }, o);
        let far = [Scores { name: "far", values: &outside }];
        let svg = sets(&far).unwrap();
        assert!(svg.contains("u (nats), logarithmic") && svg.contains("far"));
        let svg = sets(&[]).unwrap();
        assert!(svg.contains("logarithmic"), "1 to 99 is more than 50-fold");
        let narrow: Vec<f32> = (0..100).map(|i| 10.0 + i as f32).collect();
        let svg = score_histogram("H", "u", Scores { name: "t", values: &narrow }, &[]).unwrap();
        assert!(!svg.contains("logarithmic"));
    }

    #[test]
    fn equal_and_empty_scores() {
        assert!(score_histogram("H", "u", Scores { name: "t", values: &[2.0; 9] }, &[]).is_ok());
        assert!(score_histogram("H", "u", Scores { name: "t", values: &[] }, &[]).is_err());
    }
}
