//! Several runs beside each other: one lane per measure, one dot per run.

use anyhow::{Result, ensure};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::style::{self, Axis, Drawing, Entry, Frame, INK, MUTED, Mark, PX};

/// Height of the text above the dots of a lane, as a share of the lane.
const ABOVE: f64 = 0.42;
/// Pixels that a lane needs for its name and its dots, and pixels of the axis below all of them.
const LANE: i32 = 46;
const AXIS: i32 = 62;
/// Characters of a run's name in the legend.
const NAME: usize = 32;

/// A share between 0 and 1 that every run may have: its mean and its spread over seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// What is measured.
    pub name: String,
    /// One per run, in the runs' order; `None` where a run has no such number.
    pub values: Vec<Option<(f64, f64)>>,
}

pub fn compare(title: &str, runs: &[String], lanes: &[Lane]) -> Result<Drawing> {
    let shown = lanes.iter().flat_map(|lane| lane.values.iter().flatten());
    ensure!(shown.clone().next().is_some(), "the runs have no accuracy and no AUROC to draw");
    let ends = shown.flat_map(|&(mean, sd)| [mean - sd, mean + sd]);
    let x = style::padded(ends, 0.08);
    let x = x.start.max(-0.02)..x.end.min(1.02);
    let legend = runs.iter().enumerate().map(|(run, name)| {
        let (color, second) = style::series_color(run);
        Entry::new(ending(name), color, if second { Mark::Cross } else { Mark::Dot })
    });
    let none = |_: &f64| String::new();
    let axis = Axis { format: &none, ticks: 0, ..Axis::new("", -(lanes.len() as f64)..0.0) };
    let frame = Frame::new(title, Axis::new("better is to the right", x.clone()), axis, legend.collect());
    let height = LANE * i32::try_from(lanes.len())? + AXIS;
    style::draw_as_high_as(height, frame, |chart| {
        for (at, lane) in lanes.iter().enumerate() {
            let top = -(at as f64);
            let (edge, level) = (vec![(x.start, top), (x.end, top)], top - ABOVE - 0.5 * (1.0 - ABOVE));
            chart.draw_series(LineSeries::new(edge, style::stroke(MUTED.mix(0.4), 1)))?;
            let label = style::anchored(INK, HPos::Left, VPos::Center);
            let place = (x.start + 0.01 * (x.end - x.start), top - 0.5 * ABOVE);
            chart.draw_series(std::iter::once(Text::new(lane.name.clone(), place, label)))?;
            for (run, value) in lane.values.iter().enumerate() {
                let Some((mean, sd)) = *value else { continue };
                let (color, second) = style::series_color(run);
                // Dots that would hide each other stand one below the other.
                let y = level + (0.5 - (run as f64 + 0.5) / runs.len() as f64) * 0.5 * (1.0 - ABOVE);
                chart.draw_series(LineSeries::new(
                    vec![(mean - sd, y), (mean + sd, y)],
                    style::stroke(color, 1),
                ))?;
                match second {
                    true => chart.draw_series([Cross::new((mean, y), 4 * PX, style::stroke(color, 2))])?,
                    false => chart.draw_series([Circle::new((mean, y), 4 * PX, color.filled())])?,
                };
            }
        }
        Ok(())
    })
}

/// A name that is too long, without its beginning: folders of runs differ at the end.
fn ending(name: &str) -> String {
    match name.chars().count().checked_sub(NAME) {
        Some(over @ 1..) => std::iter::once('…').chain(name.chars().skip(over + 1)).collect(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_dot_in_every_lane_that_it_has_a_number_for() {
        let lane = |name: &str, values: &[Option<(f64, f64)>]| Lane {
            name: name.to_owned(),
            values: values.to_vec(),
        };
        let runs = ["one".to_owned(), "two".to_owned()];
        let lanes = [
            lane("accuracy", &[Some((0.9, 0.0)), Some((0.92, 0.01))]),
            lane("AUROC far", &[None, Some((0.99, 0.0))]),
        ];
        let svg = compare("Runs", &runs, &lanes).unwrap().file();
        assert_eq!(svg.matches("<circle").count(), 3 + runs.len(), "{svg}");
        assert!(svg.contains("AUROC far") && svg.contains(">one<") && svg.contains("better is to the right"));
        assert!(compare("Runs", &runs, &[lane("accuracy", &[None, None])]).is_err());
    }

    #[test]
    fn many_lanes_make_the_plot_higher_and_long_names_keep_their_ends() {
        let lane = |i: usize| Lane { name: format!("AUROC {i}"), values: vec![Some((0.9, 0.0)); 2] };
        let lanes: Vec<Lane> = (0..12).map(lane).collect();
        let runs = [1, 2].map(|i| format!("results/of/a/contest/with/many/parts/run-{i}"));
        let drawing = compare("Runs", &runs, &lanes).unwrap();
        assert_eq!(drawing.height, 12 * LANE + AXIS);
        assert!(drawing.file().contains(&format!("height=\"{}\"", drawing.height)));
        assert!(compare("Runs", &runs, &lanes[..2]).unwrap().height < drawing.height);
        let names: Vec<&str> = drawing.legend.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["…a/contest/with/many/parts/run-1", "…a/contest/with/many/parts/run-2"]);
    }
}
