//! What the codebook does: which code takes which class.
//!
//! assignments → counts (codes × classes) → heat map.

use anyhow::{Result, ensure};
use plotters::element::Text;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::style::{self, Axis, Drawing, Entry, Frame, Mark};

/// Up to this many rows and columns a cell shows its number.
const NUMBERED: usize = 16;
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
pub fn code_class_counts(title: &str, counts: &[Vec<usize>], classes: &[String]) -> Result<Drawing> {
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
                    let text = style::anchored(ink, HPos::Center, VPos::Center);
                    chart.draw_series([Text::new(count.to_string(), (x, y), text)])?;
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
    fn cells_show_counts_until_there_are_too_many() {
        let names = vec!["cat".to_string(), "dog".to_string()];
        let svg = code_class_counts("C", &[vec![41, 0], vec![3, 57]], &names).unwrap().file();
        assert!(svg.contains("41") && svg.contains("dog"));
        let wide = vec![vec![1; 150]; 40];
        assert!(code_class_counts("C", &wide, &[]).unwrap().plot.len() < 1_200_000);
        assert!(code_class_counts("C", &[vec![1], vec![1, 2]], &names).is_err());
    }
}
