//! A stream over hours with the states of its monitor, and how delays move with the budget of false alarms.

use anyhow::Result;
use dab_core::monitor::{Config, Why};
use plotters::prelude::*;

use super::style::{self, Axis, BLUE, Drawing, Entry, Frame, MUTED, Mark, PALETTE, VERMILLION};
use crate::measure::stream::{
    replay::Timeline,
    tune::{BudgetPoint, FAULTS},
};

const REASONS: [(Why, &str, RGBColor); 5] = [
    (Why::SPIKE, "fallback: spike", VERMILLION),
    (Why::DRIFT, "fallback: drift", PALETTE[4]),
    (Why::REJECTED, "fallback: rejected inputs", PALETTE[3]),
    (Why::STALE, "stale", PALETTE[6]),
    (Why::STARTING, "fallback: not yet trusted", PALETTE[5]),
];

/// The scores of a stream, the thresholds of its monitor, and when and why the fallback drove.
pub fn timeline(title: &str, found: &Timeline, config: &Config, tick: f64) -> Result<Drawing> {
    let seconds = found.ticks as f64 * tick;
    let end = seconds * found.pieces.len() as f64;
    let (unit, divisor) = if end >= 7200.0 { ("hours", 3600.0) } else { ("seconds", 1.0) };
    let x = |i: usize| i as f64 * seconds / divisor;
    let drawn: Vec<_> = found.pieces.iter().enumerate().filter(|(_, p)| p.low <= p.high).collect();
    let values = drawn.iter().flat_map(|(_, p)| [f64::from(p.low), f64::from(p.high)]);
    let enter = f64::from(config.enter);
    // A broken sensor's score must not flatten all others: four times the threshold's height is enough.
    let lowest = drawn.iter().map(|(_, p)| f64::from(p.low)).fold(enter, f64::min);
    let top = lowest + 4.0 * (enter - lowest).max(1e-6);
    let y = style::padded(values.map(|v| v.min(top)).chain([enter, f64::from(config.exit)]), 0.05);
    let seen = found.pieces.iter().fold(0, |bits, piece| bits | piece.why);
    let active = REASONS.iter().filter(|(why, ..)| seen & why.bits() != 0);
    let mut legend = vec![
        Entry::new("score, least to largest", BLUE, Mark::Area(0.6)),
        Entry::new(format!("enter, {}", style::number(&enter)), VERMILLION, Mark::Dashed),
        Entry::new(format!("exit, {}", style::number(&f64::from(config.exit))), MUTED, Mark::Dashed),
    ];
    legend.extend(active.map(|&(_, name, color)| Entry::new(name, color, Mark::Area(0.35))));
    let label = format!("time, {unit}");
    let time = Axis::new(&label, 0.0..(end / divisor).max(1e-9));
    style::draw(Frame::new(title, time, Axis::new("score, nats", y.clone()), legend), |chart| {
        for (i, piece) in found.pieces.iter().enumerate().filter(|(_, piece)| piece.distrusted > 0) {
            let reason = REASONS.iter().find(|(why, ..)| piece.why & why.bits() != 0);
            let color = reason.map_or(MUTED, |&(.., color)| color);
            let place = [(x(i), y.start), (x(i + 1), y.end)];
            chart.draw_series([Rectangle::new(place, color.mix(0.35).filled())])?;
        }
        for &(i, piece) in &drawn {
            let high = f64::from(piece.high).min(top);
            let place = [(x(i), f64::from(piece.low).min(top)), (x(i + 1), high)];
            chart.draw_series([Rectangle::new(place, BLUE.mix(0.6).filled())])?;
        }
        for (value, color) in [(enter, VERMILLION), (f64::from(config.exit), MUTED)] {
            let line = vec![(0.0, value), (end / divisor, value)];
            chart.draw_series(style::dashed(line, (6, 4), style::stroke(color, 2)))?;
        }
        Ok(())
    })
}

/// Seconds until faults are found, for budgets of false alarms an hour.
pub fn budgets(title: &str, points: &[BudgetPoint]) -> Result<Drawing> {
    let log = |x: f64| x.max(1e-9).log10();
    let power = |x: &f64| style::number(&10f64.powf(*x));
    let delays = points.iter().flat_map(|p| p.seconds).map(log);
    let x = style::padded(points.iter().map(|p| log(p.budget)), 0.03);
    let name = |size: f32| format!("fault of {size} × the way to 99.9 %");
    let legend = FAULTS.iter().enumerate().map(|(i, &size)| Entry::series(i, name(size))).collect();
    let x = Axis { format: &power, ..Axis::new("false alarms an hour", x) };
    let y = Axis { format: &power, ..Axis::new("seconds until found", style::padded(delays, 0.08)) };
    style::draw(Frame::new(title, x, y, legend), |chart| {
        for i in 0..FAULTS.len() {
            let points: Vec<_> = points.iter().map(|p| (log(p.budget), log(p.seconds[i]))).collect();
            let color = style::series_color(i).0;
            chart.draw_series(LineSeries::new(points.clone(), style::stroke(color, 2)))?;
            chart.draw_series(points.into_iter().map(|p| Circle::new(p, 3 * style::PX, color.filled())))?;
        }
        Ok(())
    })
}
