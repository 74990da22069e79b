//! Promised against actual false alarms.
//!
//! p-values of fresh familiar rows → share of p ≤ rate for every rate → steps beside the diagonal, in the band of chance.

use anyhow::Result;
use plotters::prelude::*;

use super::style::{self, Axis, Drawing, Entry, Frame, INK, MUTED, Mark};
use crate::measure::alarms::AlarmRate;

/// The largest rate that is drawn: nobody wants more alarms than that.
const WIDEST: f32 = 0.2;
/// Rates at which band and steps are computed.
const STEPS: u16 = 100;
const OPACITY: f64 = 0.25;

/// The p-values of one score.
#[derive(Debug, Clone)]
pub struct Channel<'a> {
    pub name: &'a str,
    /// One per fresh familiar row.
    pub p_values: Vec<f32>,
    /// Rows that made the table of p-values.
    pub held_out: usize,
}

/// Draws the channels, with the band of the first.
pub fn calibration(title: &str, channels: &[Channel]) -> Result<Drawing> {
    let rates: Vec<f32> = (0..=STEPS).map(|i| WIDEST * f32::from(i) / f32::from(STEPS)).collect();
    let at =
        |channel: &Channel, rate: f32| AlarmRate::new(("", ""), rate, &channel.p_values, channel.held_out, 1);
    let band: Vec<[f64; 2]> = channels
        .first()
        .map_or_else(Vec::new, |first| rates.iter().map(|&rate| at(first, rate).expected).collect());
    let lines: Vec<Vec<(f64, f64)>> = channels
        .iter()
        .map(|channel| rates.iter().map(|&rate| (f64::from(rate), at(channel, rate).actual)).collect())
        .collect();
    let widest = f64::from(WIDEST);
    let highest = lines.iter().flatten().map(|point| point.1).fold(widest, f64::max);
    let top = (highest * 1.05).min(1.0);
    let color = |i: usize| style::series_color(i).0;
    let mut legend: Vec<Entry> =
        channels.iter().enumerate().map(|(i, c)| Entry::new(c.name, color(i), Mark::Line)).collect();
    legend.push(Entry::new("as promised", INK, Mark::Dashed));
    legend.push(Entry::new("chance, 95 % of the time", MUTED, Mark::Area(OPACITY)));
    let x = Axis { ticks: 5, ..Axis::percent("promised false alarms", 0.0..widest) };
    let y = Axis { ticks: 5, ..Axis::percent("actual false alarms", 0.0..top) };
    style::draw(Frame::new(title, x, y, legend), |chart| {
        let upper = rates.iter().zip(&band).map(|(&rate, range)| (f64::from(rate), range[1].min(top)));
        let lower = rates.iter().zip(&band).rev().map(|(&rate, range)| (f64::from(rate), range[0]));
        chart.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), MUTED.mix(OPACITY))])?;
        let diagonal = vec![(0.0, 0.0), (widest, widest)];
        chart.draw_series(style::dashed(diagonal, (6, 4), style::stroke(INK, 1)))?;
        for (i, line) in lines.into_iter().enumerate().rev() {
            chart.draw_series(LineSeries::new(line, style::stroke(color(i), 2)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_alarms_are_still_on_the_picture() {
        let p_values: Vec<f32> = (1..=100).map(|i| if i < 60 { 0.001 } else { 0.5 }).collect();
        let svg = calibration("C", &[Channel { name: "U", p_values, held_out: 200 }]).unwrap().file();
        assert!(svg.contains("promised false alarms") && svg.contains("60 %"), "{svg}");
        assert!(calibration("C", &[Channel { name: "U", p_values: Vec::new(), held_out: 9 }]).is_ok());
    }
}
