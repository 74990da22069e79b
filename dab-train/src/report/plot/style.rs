//! One look for every figure: colours, type sizes, axes, the legend column.
//!
//! `Frame` (title, axes, legend) + a closure that draws the data → SVG text.
//!
//! Colours are Okabe and Ito's eight, which stay apart under the common colour-vision deficiencies; a
//! second round of eight is told by dashes. Text widths are never measured, since the SVG back end of a
//! machine without fonts cannot: the legend has its own column instead of fitting itself to its text.

use std::ops::Range;

use anyhow::{Result, ensure};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Okabe–Ito in an order whose first entries differ most.
pub(super) const PALETTE: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0xF0, 0xE4, 0x42),
];
pub(super) const BLUE: RGBColor = PALETTE[0];
pub(super) const VERMILLION: RGBColor = PALETTE[1];
pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const MUTED: RGBColor = RGBColor(0x70, 0x70, 0x70);
const GRID: RGBColor = RGBColor(0xE4, 0xE4, 0xE4);

/// Drawing units per pixel. The back end rounds to whole units: without this a smooth curve staggers.
pub(super) const PX: i32 = 8;
/// Pixels of the whole figure.
const SIZE: (i32, i32) = (760, 440);
/// Units of the legend column, of the head with the title, and of a legend line.
const LEGEND: i32 = 220 * PX;
const HEAD: i32 = 44 * PX;
const LEGEND_LINE: i32 = 22 * PX;
/// Legend entries that fit, and characters per entry.
const LEGEND_ENTRIES: usize = 16;
const LEGEND_CHARACTERS: usize = 30;
/// The SVG back end divides sizes by 1.24: these come out as 16, 13 and 12 pixels.
const TITLE_SIZE: f64 = 20.0 * PX as f64;
const LABEL_SIZE: f64 = 16.0 * PX as f64;
pub(super) const TICK_SIZE: f64 = 15.0 * PX as f64;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// How a legend entry is drawn beside its name.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mark {
    Line,
    /// A line of one pixel.
    Thin,
    Dashed,
    /// A filled area of this opacity.
    Area(f64),
    Dot,
    Cross,
    /// Nothing: the line goes on with what the one above said.
    None,
}

/// One line of the legend.
pub(super) struct Entry {
    pub name: String,
    pub color: RGBColor,
    pub mark: Mark,
}

impl Entry {
    pub fn new(name: impl Into<String>, color: RGBColor, mark: Mark) -> Self {
        Self { name: name.into(), color, mark }
    }
}

/// One axis.
pub(super) struct Axis<'a> {
    pub label: &'a str,
    pub range: Range<f64>,
    pub ticks: usize,
    pub format: &'a dyn Fn(&f64) -> String,
}

impl<'a> Axis<'a> {
    /// An axis with plain numbers.
    pub fn new(label: &'a str, range: Range<f64>) -> Self {
        Self { label, range, ticks: 6, format: &number }
    }
}

/// Everything around the data.
pub(super) struct Frame<'a> {
    pub title: &'a str,
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    pub legend: Vec<Entry>,
    /// Grid lines in the data area; a heat map wants none.
    pub grid: bool,
}

/// A line of `width` pixels.
pub(super) fn stroke(color: impl Color, width: u32) -> ShapeStyle {
    color.stroke_width(width * PX as u32)
}

/// A dashed line, in pixels.
pub(super) fn dashed(
    points: Vec<(f64, f64)>,
    (on, off): (i32, i32),
    style: ShapeStyle,
) -> DashedLineSeries<std::vec::IntoIter<(f64, f64)>, i32> {
    DashedLineSeries::new(points, on * PX, off * PX, style)
}

/// The colour of series `i`, and whether it is dashed to tell it from series `i − 8`.
pub(super) fn series_color(i: usize) -> (RGBColor, bool) {
    (PALETTE[i % PALETTE.len()], i >= PALETTE.len())
}

/// A tick label: at most four significant digits, no trailing zeros.
pub(super) fn number(x: &f64) -> String {
    if x.abs() >= 1e5 || (*x != 0.0 && x.abs() < 1e-3) {
        return format!("{x:.0e}");
    }
    let text = format!("{x:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.replace('-', "−") }
}

pub(super) fn percent(x: &f64) -> String {
    format!("{} %", number(&(x * 100.0)))
}

pub(super) fn text(size: f64, color: RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().color(&color)
}

pub(super) fn anchored(size: f64, color: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    text(size, color).pos(Pos::new(h, v))
}

/// `low..high` widened a little, and never empty.
pub(super) fn padded(values: impl Iterator<Item = f64>, share: f64) -> Range<f64> {
    let (low, high) = values
        .filter(|x| x.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    if low > high {
        return 0.0..1.0;
    }
    let pad = if high > low { (high - low) * share } else { low.abs().max(1.0) * 0.5 };
    low - pad..high + pad
}

/// Drops points that lie within a 400th of the range of the last kept one: a screen shows no more.
pub(super) fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let x = padded(points.iter().map(|p| p.0), 0.0);
    let y = padded(points.iter().map(|p| p.1), 0.0);
    let (dx, dy) = ((x.end - x.start) / 400.0, (y.end - y.start) / 400.0);
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (i, &point) in points.iter().enumerate() {
        let far = kept.last().is_none_or(|l| (point.0 - l.0).abs() >= dx || (point.1 - l.1).abs() >= dy);
        if far || i + 1 == points.len() {
            kept.push(point);
        }
    }
    kept
}

/// Draws the frame, then the data, and returns the SVG.
pub(super) fn draw(frame: Frame, data: impl FnOnce(&mut Chart) -> Result<()>) -> Result<String> {
    for axis in [&frame.x, &frame.y] {
        let Range { start, end } = axis.range;
        ensure!(start.is_finite() && end.is_finite() && start < end, "{}: no range to draw", axis.label);
    }
    let mut svg = String::new();
    {
        let units = ((SIZE.0 * PX) as u32, (SIZE.1 * PX) as u32);
        let root = SVGBackend::with_string(&mut svg, units).into_drawing_area();
        root.fill(&WHITE)?;
        root.draw_text(frame.title, &text(TITLE_SIZE, INK).into_font_bold(), (16 * PX, 12 * PX))?;
        let column = if frame.legend.is_empty() { 8 * PX } else { LEGEND };
        let (body, side) =
            root.margin(HEAD, 6 * PX, 6 * PX, 0).split_horizontally((SIZE.0 - 6) * PX - column);
        draw_legend(&side, &frame.legend)?;
        let mut chart = ChartBuilder::on(&body)
            .margin_right(14 * PX)
            .margin_top(4 * PX)
            .x_label_area_size(52 * PX)
            .y_label_area_size(76 * PX)
            .build_cartesian_2d(frame.x.range.clone(), frame.y.range.clone())?;
        let mut mesh = chart.configure_mesh();
        mesh.axis_style(stroke(MUTED, 1))
            .bold_line_style(stroke(GRID, 1))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(5 * PX)
            .label_style(text(TICK_SIZE, INK))
            .axis_desc_style(text(LABEL_SIZE, INK))
            .x_desc(frame.x.label)
            .y_desc(frame.y.label)
            .x_labels(frame.x.ticks)
            .y_labels(frame.y.ticks)
            .x_label_formatter(frame.x.format)
            .y_label_formatter(frame.y.format);
        if !frame.grid {
            mesh.disable_mesh();
        }
        mesh.draw()?;
        data(&mut chart)?;
        root.present()?;
    }
    let units = format!("width=\"{}\" height=\"{}\"", SIZE.0 * PX, SIZE.1 * PX);
    Ok(svg.replacen(&units, &format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1), 1))
}

/// Bold is a property of the font, which a text style hides.
trait Bold {
    fn into_font_bold(self) -> TextStyle<'static>;
}

impl Bold for TextStyle<'static> {
    fn into_font_bold(mut self) -> TextStyle<'static> {
        self.font = self.font.style(FontStyle::Bold);
        self
    }
}

fn draw_legend(area: &DrawingArea<SVGBackend, plotters::coord::Shift>, entries: &[Entry]) -> Result<()> {
    for (i, entry) in entries.iter().take(LEGEND_ENTRIES).enumerate() {
        let y = 12 * PX + LEGEND_LINE * i as i32;
        let line = stroke(entry.color, 3);
        let path = |from: i32, to: i32| PathElement::new(vec![(from * PX, y), (to * PX, y)], line);
        match entry.mark {
            Mark::Line => area.draw(&path(4, 26))?,
            Mark::Thin => {
                area.draw(&PathElement::new(vec![(4 * PX, y), (26 * PX, y)], stroke(entry.color, 1)))?;
            }
            Mark::Dashed => {
                area.draw(&path(4, 12))?;
                area.draw(&path(18, 26))?;
            }
            Mark::Area(opacity) => {
                let corners = [(4 * PX, y - 7 * PX), (26 * PX, y + 7 * PX)];
                area.draw(&Rectangle::new(corners, entry.color.mix(opacity).filled()))?;
                area.draw(&Rectangle::new(corners, stroke(GRID, 1)))?;
            }
            Mark::Dot => area.draw(&Circle::new((15 * PX, y), 5 * PX, entry.color.filled()))?,
            Mark::Cross => area.draw(&Cross::new((15 * PX, y), 5 * PX, line))?,
            Mark::None => {}
        }
        let last = i + 1 == LEGEND_ENTRIES && entries.len() > LEGEND_ENTRIES;
        let name: String = if last {
            format!("and {} more", entries.len() - i)
        } else if entry.name.chars().count() > LEGEND_CHARACTERS {
            entry.name.chars().take(LEGEND_CHARACTERS - 1).chain(['…']).collect()
        } else {
            entry.name.clone()
        };
        area.draw_text(&name, &anchored(TICK_SIZE, INK, HPos::Left, VPos::Center), (34 * PX, y))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_read_like_numbers() {
        let shown: Vec<String> =
            [0.0, -0.0, 0.30000000000000004, -2.0, 1234.5, 2e6, 1e-5].iter().map(number).collect();
        assert_eq!(shown, ["0", "0", "0.3", "−2", "1234.5", "2e6", "1e-5"]);
        assert_eq!(percent(&0.125), "12.5 %");
    }

    #[test]
    fn thinning_keeps_ends_and_corners() {
        let line: Vec<(f64, f64)> = (0..=10_000).map(|i| (f64::from(i) / 1e4, f64::from(i / 5000))).collect();
        let kept = thinned(&line);
        assert!(kept.len() < 500);
        assert_eq!((kept[0], kept[kept.len() - 1]), ((0.0, 0.0), (1.0, 2.0)));
        assert!(kept.contains(&(0.5, 1.0)));
    }

    #[test]
    fn ranges_are_never_empty() {
        assert_eq!(padded([3.0, 3.0].into_iter(), 0.1), 1.5..4.5);
        assert_eq!(padded([f64::NAN].into_iter(), 0.1), 0.0..1.0);
    }
}
