//! One look for every figure: colours, type sizes, axes.
//!
//! `Frame` (title, axes, legend) + a closure that draws the data → [`Drawing`]: the plot as SVG, and title and legend beside
//! it. The page sets these two as text, so that they wrap on a phone; [`Drawing::file`] puts them into one SVG.
//!
//! Colours are Okabe and Ito's eight, which stay apart under the common colour-vision deficiencies; a
//! second round of eight is told by dashes. Text widths are never measured, since the SVG back end of a
//! machine without fonts cannot. The page's style sheet finds ground, ink and grid by their colours and turns them dark.

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
/// Pixels of the plot: small, so that its text can be read on a phone, where it is shrunk to three quarters.
const SIZE: (i32, i32) = (480, 320);
/// Pixels that a file has beside the plot: the head with the title, the column of the legend, a line of it.
const HEAD: i32 = 44;
const LEGEND: i32 = 264;
const LEGEND_LINE: i32 = 22;
/// Legend entries that are shown, and characters per entry in a file.
const LEGEND_ENTRIES: usize = 14;
const LEGEND_CHARACTERS: usize = 32;
/// The SVG back end divides sizes by 1.24: this comes out as 15 pixels, 10 on a phone.
const TEXT_SIZE: f64 = 18.5 * PX as f64;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// How a legend entry is drawn beside its name.
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What the mark means.
    pub name: String,
    color: RGBColor,
    mark: Mark,
}

impl Entry {
    pub(super) fn new(name: impl Into<String>, color: RGBColor, mark: Mark) -> Self {
        Self { name: name.into(), color, mark }
    }

    /// The line of series `i`: solid, or dashed to tell it from series `i − 8`.
    pub(super) fn series(i: usize, name: impl Into<String>) -> Self {
        let (color, dashed) = series_color(i);
        Self::new(name, color, if dashed { Mark::Dashed } else { Mark::Line })
    }

    /// The mark as SVG elements in a box of 26 × 14.
    pub fn key(&self) -> String {
        let RGBColor(r, g, b) = self.color;
        let color = format!("#{r:02X}{g:02X}{b:02X}");
        let line = |width: u32, dashes: &str| {
            format!("<path d=\"M2 7H24\" stroke=\"{color}\" stroke-width=\"{width}\"{dashes}/>")
        };
        match self.mark {
            Mark::Line => line(3, ""),
            Mark::Thin => line(1, ""),
            Mark::Dashed => line(2, " stroke-dasharray=\"6 4\""),
            Mark::Area(opacity) => format!(
                "<rect x=\"2\" y=\"1\" width=\"22\" height=\"12\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>"
            ),
            Mark::Dot => format!("<circle cx=\"13\" cy=\"7\" r=\"5\" fill=\"{color}\"/>"),
            Mark::Cross => {
                format!("<path d=\"M8 2L18 12M18 2L8 12\" stroke=\"{color}\" stroke-width=\"2\"/>")
            }
            Mark::None => String::new(),
        }
    }
}

/// A figure: its plot, and what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub title: String,
    /// What the marks mean; empty where there is nothing to tell apart.
    pub legend: Vec<Entry>,
    /// The plot alone, as SVG.
    pub plot: String,
    /// Its height in pixels.
    pub height: i32,
}

impl Drawing {
    /// Everything in one SVG with a white ground, for a file.
    pub fn file(&self) -> String {
        let column = if self.legend.is_empty() { 0 } else { LEGEND };
        let (width, height) = (SIZE.0 + column, self.height + HEAD);
        let place = format!("<svg x=\"0\" y=\"{HEAD}\" ");
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" font-family=\"{FONT}\" font-size=\"13\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#FFFFFF\"/>\n\
             <text x=\"16\" y=\"28\" font-size=\"17\" font-weight=\"bold\" fill=\"#222222\">{}</text>\n{}\n",
            escaped(&self.title),
            self.plot.replacen("<svg ", &place, 1)
        );
        for (i, entry) in self.legend.iter().enumerate() {
            let short = entry.name.chars().count() <= LEGEND_CHARACTERS;
            let name = match short {
                true => entry.name.clone(),
                false => entry.name.chars().take(LEGEND_CHARACTERS - 1).chain(['…']).collect(),
            };
            let (x, y) = (SIZE.0 + 4, HEAD + 6 + LEGEND_LINE * i as i32);
            svg += &format!(
                "<g transform=\"translate({x} {y})\">{}<text x=\"34\" y=\"12\" fill=\"#222222\">{}</text></g>\n",
                entry.key(),
                escaped(&name)
            );
        }
        svg + "</svg>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

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

    /// An axis of shares.
    pub fn percent(label: &'a str, range: Range<f64>) -> Self {
        Self { format: &percent, ..Self::new(label, range) }
    }

    /// A tick's label. Ticks are sums of steps, which miss 0 by a rounding: that is a 0.
    fn label_at(&self, x: f64) -> String {
        let rounding = 1e-9 * (self.range.end - self.range.start);
        (self.format)(if x.abs() < rounding { &0.0 } else { &x })
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

impl<'a> Frame<'a> {
    /// A frame with grid lines.
    pub fn new(title: &'a str, x: Axis<'a>, y: Axis<'a>, legend: Vec<Entry>) -> Self {
        Self { title, x, y, legend, grid: true }
    }
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

/// A line, with dashes of these lengths if there are any.
pub(super) fn line(
    chart: &mut Chart,
    points: Vec<(f64, f64)>,
    dashes: Option<(i32, i32)>,
    style: ShapeStyle,
) -> Result<()> {
    match dashes {
        Some(dashes) => chart.draw_series(dashed(points, dashes, style))?,
        None => chart.draw_series(LineSeries::new(points, style))?,
    };
    Ok(())
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

fn percent(x: &f64) -> String {
    format!("{} %", number(&(x * 100.0)))
}

pub(super) fn text(color: RGBColor) -> TextStyle<'static> {
    (FONT, TEXT_SIZE).into_font().color(&color)
}

pub(super) fn anchored(color: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    text(color).pos(Pos::new(h, v))
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

pub(super) fn draw(frame: Frame, data: impl FnOnce(&mut Chart) -> Result<()>) -> Result<Drawing> {
    draw_as_high_as(SIZE.1, frame, data)
}

/// [`draw`] with a plot of at least the usual height, in pixels.
pub(super) fn draw_as_high_as(
    height: i32,
    frame: Frame,
    data: impl FnOnce(&mut Chart) -> Result<()>,
) -> Result<Drawing> {
    let height = height.max(SIZE.1);
    for axis in [&frame.x, &frame.y] {
        let Range { start, end } = axis.range;
        ensure!(start.is_finite() && end.is_finite() && start < end, "{}: no range to draw", axis.label);
    }
    let mut svg = String::new();
    {
        let units = ((SIZE.0 * PX) as u32, (height * PX) as u32);
        let root = SVGBackend::with_string(&mut svg, units).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin_left(4 * PX)
            .margin_right(24 * PX)
            .margin_top(12 * PX)
            .x_label_area_size(50 * PX)
            .y_label_area_size(78 * PX)
            .build_cartesian_2d(frame.x.range.clone(), frame.y.range.clone())?;
        let x_label = |x: &f64| frame.x.label_at(*x);
        let y_label = |y: &f64| frame.y.label_at(*y);
        let mut mesh = chart.configure_mesh();
        mesh.axis_style(stroke(MUTED, 1))
            .bold_line_style(stroke(GRID, 1))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(5 * PX)
            .label_style(text(INK))
            .axis_desc_style(text(INK))
            .x_desc(frame.x.label)
            .y_desc(frame.y.label)
            .x_labels(frame.x.ticks)
            .y_labels(frame.y.ticks)
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label);
        if !frame.grid {
            mesh.disable_mesh();
        }
        mesh.draw()?;
        data(&mut chart)?;
        root.present()?;
    }
    let units = format!("width=\"{}\" height=\"{}\"", SIZE.0 * PX, height * PX);
    let plot = svg.replacen(&units, &format!("width=\"{}\" height=\"{height}\"", SIZE.0), 1);
    let mut legend = frame.legend;
    if legend.len() > LEGEND_ENTRIES {
        let more = format!("and {} more", legend.len() + 1 - LEGEND_ENTRIES);
        legend.truncate(LEGEND_ENTRIES - 1);
        legend.push(Entry::new(more, MUTED, Mark::None));
    }
    Ok(Drawing { title: frame.title.to_owned(), legend, plot: plot.trim().to_owned(), height })
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
        let axis = Axis::new("x", -0.3..0.4);
        assert_eq!(axis.label_at(-6e-17), "0", "0.1 + 0.2 − 0.3 is no −6e-17");
        assert_eq!(Axis::new("x", -3e-16..4e-16).label_at(-6e-17), "-6e-17", "on such an axis it is");
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
