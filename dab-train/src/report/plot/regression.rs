//! The paper's regression figure: prediction, uncertainty band, training points, truth.
//!
//! grid predictions + half-widths + points → SVG. The band is `prediction ± half_width`; the caller
//! says in `band` what the half-width is, such as "±2u".
//!
//! Far from the data a band may be a thousand times wider than they are. It is cut off a little beyond
//! the data, so that the curve stays readable; the legend says so, and how wide it is where it is widest.

use anyhow::{Result, ensure};
use plotters::prelude::*;

use super::style::{self, Axis, BLUE, Drawing, Entry, Frame, INK, Mark, PALETTE, PX, VERMILLION};

/// The band is drawn no farther than this many data ranges beyond the data.
const CUT: f64 = 0.3;
/// Opacity of the band: grid lines and truth shine through.
const OPACITY: f64 = 0.35;

/// What the regression figure shows. All grid slices have the grid's length, sorted by x.
#[derive(Debug, Clone, Copy)]
pub struct RegressionFigure<'a> {
    pub title: &'a str,
    /// Names of x and y, with units.
    pub axes: (&'a str, &'a str),
    /// Inputs along which the curves run.
    pub grid: &'a [f32],
    pub prediction: &'a [f32],
    /// Half-width of the band at each grid point, in units of y.
    pub half_width: &'a [f32],
    /// What the band is, for the legend: "±2u".
    pub band: &'a str,
    /// The noise-free function at each grid point, where it is known.
    pub truth: Option<&'a [f32]>,
    pub train: &'a [(f32, f32)],
}

pub fn regression(figure: &RegressionFigure) -> Result<Drawing> {
    let n = figure.grid.len();
    ensure!(n >= 2, "a curve needs two grid points");
    for (what, length) in [
        ("predictions", figure.prediction.len()),
        ("half-widths", figure.half_width.len()),
        ("truths", figure.truth.map_or(n, <[f32]>::len)),
    ] {
        ensure!(length == n, "{n} grid points but {length} {what}");
    }
    let points = |ys: &[f32]| -> Vec<(f64, f64)> {
        figure.grid.iter().zip(ys).map(|(&x, &y)| (f64::from(x), f64::from(y))).collect()
    };
    let prediction = points(figure.prediction);
    let truth = figure.truth.map(points);
    let train = figure.train.iter().map(|&(x, y)| (f64::from(x), f64::from(y)));
    let lines = prediction.iter().copied().chain(truth.iter().flatten().copied()).chain(train.clone());
    let data = style::padded(lines.map(|p| p.1), 0.05);
    let reach = (data.end - data.start) * CUT;
    let widest = figure.half_width.iter().fold(0.0, |widest, &w| {
        let w = f64::from(w).abs();
        if w.is_finite() { w.max(widest) } else { f64::INFINITY }
    });
    let band: Vec<(f64, f64)> = prediction
        .iter()
        .zip(figure.half_width)
        .map(|(p, &w)| {
            let w = if w.is_finite() { f64::from(w).abs() } else { f64::MAX };
            ((p.1 - w).max(data.start - reach), (p.1 + w).min(data.end + reach))
        })
        .collect();
    let cut = band.iter().any(|b| b.0 <= data.start - reach || b.1 >= data.end + reach);
    // A band that is cut off ends at the frame.
    let y = style::padded(
        band.iter().flat_map(|b| [b.0, b.1]).chain([data.start, data.end]),
        if cut { 0.0 } else { 0.02 },
    );
    let x = style::padded(prediction.iter().map(|p| p.0).chain(train.clone().map(|p| p.0)), 0.02);
    let outline: Vec<(f64, f64)> = prediction
        .iter()
        .zip(&band)
        .map(|(p, b)| (p.0, b.1))
        .chain(prediction.iter().zip(&band).rev().map(|(p, b)| (p.0, b.0)))
        .collect();
    let mut legend = vec![
        Entry::new("prediction", BLUE, Mark::Line),
        Entry::new(figure.band, PALETTE[5], Mark::Area(OPACITY)),
    ];
    if cut {
        let reached = if widest.is_finite() { format!("{widest:.0}") } else { "∞".into() };
        legend.push(Entry::new(format!("(cut off; it reaches ±{reached})"), PALETTE[5], Mark::None));
    }
    legend.push(Entry::new("training points", VERMILLION, Mark::Dot));
    if truth.is_some() {
        legend.push(Entry::new("truth", INK, Mark::Dashed));
    }
    let (x, y) = (Axis::new(figure.axes.0, x), Axis::new(figure.axes.1, y));
    style::draw(Frame::new(figure.title, x, y, legend), |chart| {
        chart.draw_series([Polygon::new(outline, PALETTE[5].mix(OPACITY))])?;
        if let Some(truth) = truth {
            chart.draw_series(style::dashed(truth, (7, 5), style::stroke(INK, 2)))?;
        }
        chart.draw_series(LineSeries::new(prediction, style::stroke(BLUE, 3)))?;
        chart.draw_series(train.clone().map(|p| Circle::new(p, 5 * PX, WHITE.filled())))?;
        chart.draw_series(train.map(|p| Circle::new(p, 4 * PX, VERMILLION.filled())))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_parts() {
        let grid: Vec<f32> = (0..50).map(|i| i as f32 / 5.0 - 5.0).collect();
        let truth: Vec<f32> = grid.iter().map(|x| x * x * x).collect();
        let wide = vec![f32::INFINITY; 50];
        let mut figure = RegressionFigure {
            title: "a < b & c",
            axes: ("x", "y"),
            grid: &grid,
            prediction: &truth,
            half_width: &wide,
            band: "±2u",
            truth: Some(&truth),
            train: &[(0.0, 1.0)],
        };
        let svg = regression(&figure).unwrap().file();
        for part in ["±2u", "training points", "truth", "&lt; b &amp;", "<polygon"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("cut off; it reaches ±∞"));
        let narrow = vec![1.0; 50];
        figure.half_width = &narrow;
        assert!(!regression(&figure).unwrap().file().contains("cut off"), "a band that fits is whole");
        let peaked: Vec<f32> = (0..50).map(|i| if i == 20 { 1234.4 } else { 1.0 }).collect();
        figure.half_width = &peaked;
        assert!(regression(&figure).unwrap().file().contains("cut off; it reaches ±1234"));
        figure.half_width = &wide[..3];
        assert!(regression(&figure).unwrap_err().to_string().contains("3 half-widths"));
    }
}
