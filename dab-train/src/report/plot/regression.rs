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

/// What the regression figure shows.
#[derive(Debug, Clone, Copy)]
pub struct RegressionFigure<'a> {
    pub title: &'a str,
    /// Names of x and y, with units.
    pub axes: (&'a str, &'a str),
    /// Along the curve, sorted by x: x, the prediction, and the half-width of the band there, in units of y.
    pub curve: &'a [(f32, f32, f32)],
    /// What the band is, for the legend: "±2u".
    pub band: &'a str,
    /// The noise-free function, where it is known.
    pub truth: Option<fn(f32) -> f32>,
    pub train: &'a [(f32, f32)],
}

pub fn regression(figure: &RegressionFigure) -> Result<Drawing> {
    ensure!(figure.curve.len() >= 2, "a curve needs two grid points");
    let points = |y: &dyn Fn(f32, f32) -> f32| -> Vec<(f64, f64)> {
        figure.curve.iter().map(|&(x, predicted, _)| (f64::from(x), f64::from(y(x, predicted)))).collect()
    };
    let prediction = points(&|_, predicted| predicted);
    let truth = figure.truth.map(|truth| points(&|x, _| truth(x)));
    let train = figure.train.iter().map(|&(x, y)| (f64::from(x), f64::from(y)));
    let lines = prediction.iter().copied().chain(truth.iter().flatten().copied()).chain(train.clone());
    let data = style::padded(lines.map(|p| p.1), 0.05);
    let reach = (data.end - data.start) * CUT;
    let widest = figure.curve.iter().fold(0.0, |widest, &(.., w)| {
        let w = f64::from(w).abs();
        if w.is_finite() { w.max(widest) } else { f64::INFINITY }
    });
    let band: Vec<(f64, f64)> = prediction
        .iter()
        .zip(figure.curve)
        .map(|(p, &(.., w))| {
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
        let cube = |x: f32| x * x * x;
        let drawn = |half_width: &dyn Fn(i32) -> f32, points: i32| {
            let x = |i: i32| i as f32 / 5.0 - 5.0;
            let curve: Vec<_> = (0..points).map(|i| (x(i), cube(x(i)), half_width(i))).collect();
            let (title, axes, band) = ("a < b & c", ("x", "y"), "±2u");
            let train = &[(0.0, 1.0)];
            let truth = Some(cube as fn(f32) -> f32);
            regression(&RegressionFigure { title, axes, curve: &curve, band, truth, train })
        };
        let svg = drawn(&|_| f32::INFINITY, 50).unwrap().file();
        for part in ["±2u", "training points", "truth", "&lt; b &amp;", "<polygon"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(svg.contains("cut off; it reaches ±∞"));
        assert!(!drawn(&|_| 1.0, 50).unwrap().file().contains("cut off"), "a band that fits is whole");
        let peaked = drawn(&|i| if i == 20 { 1234.4 } else { 1.0 }, 50);
        assert!(peaked.unwrap().file().contains("cut off; it reaches ±1234"));
        assert!(drawn(&|_| 1.0, 1).unwrap_err().to_string().contains("two grid points"));
    }
}
