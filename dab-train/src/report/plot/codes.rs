//! What the codebook does: which code takes which class, and how much each is used over time.
//!
//! assignments → counts (codes × classes) → heat map; priors per epoch → stacked shares.
//!
//! ```text
//! effective number of codes = exp(−Σ π ln π)
//! ```
//!
//! Above a dozen codes a stack of shares is a rainbow: the effective number is drawn instead, which
//! falls to 1 when the codebook collapses.

use anyhow::{Result, ensure};
use plotters::element::Text;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::style::{self, Axis, BLUE, Entry, Frame, INK, Mark, VERMILLION};

/// Up to this many codes the shares are stacked one by one.
const STACKED: usize = 12;
/// Up to this many rows and columns a cell shows its number.
const NUMBERED: usize = 16;
/// A code below this share of the data is dead.
const ALIVE: f64 = 1e-3;
/// Opacity of a stacked share.
const OPACITY: f64 = 0.6;
/// Light to dark, one hue, so that order survives every kind of colour vision and a grey printer.
const LIGHT: (f64, f64, f64) = (247.0, 250.0, 253.0);
const DARK: (f64, f64, f64) = (8.0, 48.0, 107.0);

fn shade(share: f64) -> RGBColor {
    // Below 1, the exponent spreads small shares, where the eye needs the contrast.
    let t = share.clamp(0.0, 1.0).powf(0.7);
    let mix = |a: f64, b: f64| (a + (b - a) * t).round() as u8;
    RGBColor(mix(LIGHT.0, DARK.0), mix(LIGHT.1, DARK.1), mix(LIGHT.2, DARK.2))
}

/// Counts of examples by code (row) and class (column); shade is the share of the class.
///
/// # Errors
/// Rows of different length, or none.
pub fn code_class_counts(title: &str, counts: &[Vec<usize>], classes: &[String]) -> Result<String> {
    let (rows, cols) = (counts.len(), counts.first().map_or(0, Vec::len));
    ensure!(rows > 0 && cols > 0, "no counts to draw");
    ensure!(counts.iter().all(|row| row.len() == cols), "rows of counts differ in length");
    let totals: Vec<usize> = (0..cols).map(|c| counts.iter().map(|row| row[c]).sum()).collect();
    let numbered = rows <= NUMBERED && cols <= NUMBERED;
    let class = |x: &f64| {
        let c = x.round() as usize;
        let whole = (x - x.round()).abs() < 1e-6 && c < cols;
        if !whole { String::new() } else { classes.get(c).cloned().unwrap_or_else(|| c.to_string()) }
    };
    let code = |y: &f64| if (y - y.round()).abs() < 1e-6 { style::number(y) } else { String::new() };
    let legend = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0]
        .iter()
        .map(|&s| Entry::new(format!("{:.0} % of the class", s * 100.0), shade(s), Mark::Area(1.0)))
        .collect();
    let named = cols <= NUMBERED;
    let frame = Frame {
        title,
        x: Axis {
            ticks: if named { cols + 1 } else { 10 },
            format: if named { &class } else { &code },
            ..Axis::new("class", -0.5..cols as f64 - 0.5)
        },
        y: Axis { ticks: rows.min(12) + 1, format: &code, ..Axis::new("code", -0.5..rows as f64 - 0.5) },
        legend,
        grid: false,
    };
    style::draw(frame, |chart| {
        for (r, row) in counts.iter().enumerate() {
            for (c, &count) in row.iter().enumerate() {
                let share = count as f64 / totals[c].max(1) as f64;
                if count == 0 && !numbered {
                    continue;
                }
                let (x, y) = (c as f64, r as f64);
                let cell = Rectangle::new([(x - 0.5, y - 0.5), (x + 0.5, y + 0.5)], shade(share).filled());
                chart.draw_series([cell])?;
                if numbered && count > 0 {
                    let ink = if share > 0.4 { WHITE } else { RGBColor(0x22, 0x22, 0x22) };
                    let text = style::anchored(style::TICK_SIZE, ink, HPos::Center, VPos::Center);
                    chart.draw_series([Text::new(count.to_string(), (x, y), text)])?;
                }
            }
        }
        Ok(())
    })
}

/// How the codes share the data over the epochs; `priors[e][k]` is π(k) after epoch `e`.
///
/// # Errors
/// No epoch, or epochs with different numbers of codes.
pub fn code_usage(title: &str, priors: &[Vec<f64>]) -> Result<String> {
    let codes = priors.first().map_or(0, Vec::len);
    ensure!(codes > 0, "no priors to draw");
    ensure!(priors.iter().all(|p| p.len() == codes), "epochs differ in the number of codes");
    let epochs = priors.len() as f64;
    let x = Axis::new("epoch", 1.0..epochs.max(1.5));
    // One epoch still draws as a strip.
    let at = |e: usize| if priors.len() == 1 { [1.0, 1.5][e.min(1)] } else { e as f64 + 1.0 };
    let steps: Vec<usize> = if priors.len() == 1 { vec![0, 0] } else { (0..priors.len()).collect() };
    if codes > STACKED {
        let effective = |p: &Vec<f64>| p.iter().filter(|&&x| x > 0.0).map(|x| -x * x.ln()).sum::<f64>().exp();
        let alive = |p: &Vec<f64>| p.iter().filter(|&&x| x * codes as f64 > ALIVE).count() as f64;
        let line = |f: &dyn Fn(&Vec<f64>) -> f64| -> Vec<(f64, f64)> {
            style::thinned(
                &steps.iter().enumerate().map(|(i, &e)| (at(i), f(&priors[e]))).collect::<Vec<_>>(),
            )
        };
        let frame = Frame {
            title,
            x,
            y: Axis::new("number of codes", 0.0..codes as f64 * 1.05),
            legend: vec![
                Entry::new("effective number of codes", BLUE, Mark::Line),
                Entry::new(format!("codes in use, of {codes}"), VERMILLION, Mark::Dashed),
            ],
            grid: true,
        };
        return style::draw(frame, |chart| {
            chart.draw_series(style::dashed(line(&alive), (7, 5), style::stroke(VERMILLION, 2)))?;
            chart.draw_series(LineSeries::new(line(&effective), style::stroke(BLUE, 3)))?;
            Ok(())
        });
    }
    let last = &priors[priors.len() - 1];
    // Top of the legend is the top of the stack.
    let legend = (0..codes)
        .rev()
        .map(|k| {
            Entry::new(
                format!("code {k}: {:.1} %", last[k] * 100.0),
                style::series_color(k).0,
                Mark::Area(OPACITY),
            )
        })
        .collect();
    let frame = Frame {
        title,
        x,
        y: Axis { format: &style::percent, ..Axis::new("share of the data, π", 0.0..1.0) },
        legend,
        grid: false,
    };
    style::draw(frame, |chart| {
        for k in 0..codes {
            let sum = |e: usize, upto: usize| priors[e][..upto].iter().sum::<f64>().min(1.0);
            let below: Vec<(f64, f64)> = steps.iter().enumerate().map(|(i, &e)| (at(i), sum(e, k))).collect();
            let above: Vec<(f64, f64)> =
                steps.iter().enumerate().map(|(i, &e)| (at(i), sum(e, k + 1))).collect();
            let (below, above) = (style::thinned(&below), style::thinned(&above));
            let outline: Vec<(f64, f64)> = above.iter().copied().chain(below.into_iter().rev()).collect();
            chart.draw_series([Polygon::new(outline, style::series_color(k).0.mix(OPACITY))])?;
            chart.draw_series(LineSeries::new(above, style::stroke(INK.mix(0.6), 1)))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_show_counts_until_there_are_too_many() {
        let names = vec!["cat".to_string(), "dog".to_string()];
        let svg = code_class_counts("C", &[vec![41, 0], vec![3, 57]], &names).unwrap();
        assert!(svg.contains("41") && svg.contains("dog"));
        let wide = vec![vec![1; 150]; 40];
        assert!(code_class_counts("C", &wide, &[]).unwrap().len() < 1_200_000);
        assert!(code_class_counts("C", &[vec![1], vec![1, 2]], &names).is_err());
    }

    #[test]
    fn usage_for_few_and_many_codes() {
        let few = vec![vec![0.5, 0.5], vec![0.9, 0.1]];
        assert!(code_usage("U", &few).unwrap().contains("code 1: 10.0 %"));
        assert!(code_usage("U", &few[..1]).is_ok());
        let many = vec![vec![0.01; 100]; 5];
        assert!(code_usage("U", &many).unwrap().contains("codes in use, of 100"));
        assert!(code_usage("U", &[]).is_err());
    }
}
