//! The latent space from above: encoder means by group, and the codes.
//!
//! latent means → [`Plane`] → two coordinates → [`latent_scatter`] → SVG.
//!
//! ```text
//! plane = the two leading eigenvectors of the covariance, by orthogonal iteration
//! code  = its mean, and the ellipse {m + 2 L e : |e| = 1}, L Lᵀ = Aᵀ Σ A, A the two axes
//! ```
//!
//! The plane is fitted to one set of points (the training or test set); codes and OOD points are
//! projected with it, so a far set looks far instead of bending the plane to itself.

use std::ops::Range;

use anyhow::{Result, ensure};
use nalgebra::{DMatrix, DVector, Dyn};
use plotters::prelude::*;

use super::style::{self, Axis, Drawing, Entry, Frame, INK, MUTED, Mark, PX};
use crate::data::Table;

/// Points drawn per group; more hide each other and swell the file.
const POINTS: usize = 1500;
/// Share of the points that the axes span; the rest sits on the edge.
const SPAN: f64 = 0.99;
/// The axes grow by at most this share at each end to show ellipses whole.
const ROOM: f64 = 0.2;
/// Iterations of the eigenvector search: a ratio of 0.9 between eigenvalues leaves 1e-9.
const ITERATIONS: usize = 200;
/// Standard deviations that a code's ellipse spans, and the corners that it is drawn with.
const DEVIATIONS: f64 = 2.0;
const CORNERS: usize = 72;
/// Up to this many codes have an ellipse; more hide the points and swell the file.
const OUTLINED: usize = 64;

/// A named group of points in the plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub name: String,
    /// Coordinates, as [`Plane::points`] gives them.
    pub points: Vec<(f64, f64)>,
    /// Out of distribution: grey crosses instead of coloured dots.
    pub ood: bool,
}

/// A code as the plane shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaneCode {
    pub mean: (f64, f64),
    /// Variance of the first coordinate, covariance of both, variance of the second.
    pub cov: [f64; 3],
}

impl PlaneCode {
    /// The outline two standard deviations around the mean, closed.
    fn outline(&self) -> Vec<(f64, f64)> {
        let [xx, xy, yy] = self.cov;
        let a = xx.max(0.0).sqrt();
        let b = if a > 0.0 { xy / a } else { 0.0 };
        let c = (yy - b * b).max(0.0).sqrt();
        let corner = |i: usize| {
            let (sin, cos) = (i as f64 / CORNERS as f64 * std::f64::consts::TAU).sin_cos();
            (self.mean.0 + DEVIATIONS * a * cos, self.mean.1 + DEVIATIONS * (b * cos + c * sin))
        };
        (0..=CORNERS).map(corner).collect()
    }
}

/// The plane of the two leading principal axes of a set of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Plane {
    centre: DVector<f64>,
    axes: [DVector<f64>; 2],
}

impl Plane {
    /// The plane of `table`'s rows.
    pub fn fit(table: &Table) -> Result<Self> {
        ensure!(table.rows > 0 && table.cols > 0, "no points to draw");
        let dim = table.cols;
        let centre = DVector::from_iterator(dim, table.column_stats().iter().map(|s| s.mean));
        let centred = DMatrix::from_fn(table.rows, dim, |i, j| f64::from(table.row(i)[j]) - centre[j]);
        let covariance = centred.tr_mul(&centred);
        let (mut u, mut v) = (DVector::repeat(dim, 1.0), DVector::from_fn(dim, |i, _| i as f64 + 0.5));
        for _ in 0..ITERATIONS {
            u = unit(&covariance * u);
            v = &covariance * v;
            v = unit(&v - &u * u.dot(&v));
        }
        Ok(Self { centre, axes: [u, v] })
    }

    /// Coordinates of each row in the plane.
    pub fn points(&self, table: &Table) -> Result<Vec<(f64, f64)>> {
        ensure!(table.cols == self.centre.len(), "tables differ in their columns");
        Ok(table.iter().map(|row| self.point(row)).collect())
    }

    fn point(&self, row: &[f32]) -> (f64, f64) {
        let offset = wide(row) - &self.centre;
        (offset.dot(&self.axes[0]), offset.dot(&self.axes[1]))
    }

    /// The code with this mean and covariance, which is a diagonal or a whole matrix.
    pub fn code(&self, mean: &[f32], cov: &[f32]) -> Result<PlaneCode> {
        let dim = self.centre.len();
        ensure!(mean.len() == dim, "a code of {} dimensions in {dim}", mean.len());
        ensure!(cov.len() == dim || cov.len() == dim * dim, "a covariance of {} numbers", cov.len());
        let (diagonal, cov) = (cov.len() == dim, wide(cov));
        let turned = |axis: &DVector<f64>| match diagonal {
            true => cov.component_mul(axis),
            false => cov.clone().reshape_generic(Dyn(dim), Dyn(dim)) * axis,
        };
        let [u, v] = &self.axes;
        let (su, sv) = (turned(u), turned(v));
        Ok(PlaneCode { mean: self.point(mean), cov: [u.dot(&su), u.dot(&sv), v.dot(&sv)] })
    }
}

fn wide(values: &[f32]) -> DVector<f64> {
    DVector::from_iterator(values.len(), values.iter().map(|&x| f64::from(x)))
}

/// `x` at length 1; zero stays zero.
fn unit(x: DVector<f64>) -> DVector<f64> {
    x.try_normalize(0.0).unwrap_or(x)
}

/// The parts of an outline that lie within the axes; drawn as a whole, it would run along the edge of the plot.
fn visible<'a>(
    outline: &'a [(f64, f64)],
    x: &'a Range<f64>,
    y: &'a Range<f64>,
) -> impl Iterator<Item = &'a [(f64, f64)]> {
    let within = |v: f64, axis: &Range<f64>| axis.start <= v && v <= axis.end;
    outline.split(move |p| !(within(p.0, x) && within(p.1, y))).filter(|part| part.len() > 1)
}

/// Groups as coloured dots, OOD groups as small grey crosses, codes as large black ones with their ellipses.
pub fn latent_scatter(title: &str, groups: &[Group], codes: &[PlaneCode]) -> Result<Drawing> {
    ensure!(groups.iter().any(|g| !g.points.is_empty()), "no points to draw");
    let outlined = if codes.len() <= OUTLINED { codes } else { &[] };
    let outlines: Vec<Vec<(f64, f64)>> = outlined.iter().map(PlaneCode::outline).collect();
    let axis = |pick: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = groups.iter().flat_map(|g| g.points.iter().map(pick)).collect();
        all.retain(|x| x.is_finite());
        all.sort_by(f64::total_cmp);
        let cut = (all.len() as f64 * (1.0 - SPAN) / 2.0) as usize;
        let kept = all[cut..all.len() - cut].iter().copied();
        let centres = style::padded(kept.chain(codes.iter().map(|code| pick(&code.mean))), 0.06);
        let room = (centres.end - centres.start) * ROOM;
        let outlines = outlines.iter().flatten().map(pick).filter(|x| x.is_finite());
        let around = outlines.map(|x| x.clamp(centres.start - room, centres.end + room));
        style::padded(around.chain([centres.start, centres.end]), 0.0)
    };
    let (x, y) = (axis(|p| p.0), axis(|p| p.1));
    let inside = |p: &(f64, f64)| (p.0.clamp(x.start, x.end), p.1.clamp(y.start, y.end));
    let mut legend: Vec<Entry> = groups
        .iter()
        .enumerate()
        .map(|(i, g)| {
            let (color, mark) =
                if g.ood { (MUTED, Mark::Cross) } else { (style::series_color(i).0, Mark::Dot) };
            Entry::new(g.name.clone(), color, mark)
        })
        .collect();
    if !codes.is_empty() {
        legend.push(Entry::new("code means", INK, Mark::Cross));
    }
    if !outlines.is_empty() {
        legend.push(Entry::new("codes, 2 standard deviations", INK, Mark::Thin));
    }
    let first = Axis::new("first principal axis of the latent means", x.clone());
    let second = Axis::new("second principal axis", y.clone());
    style::draw(Frame::new(title, first, second, legend), |chart| {
        for (i, group) in groups.iter().enumerate() {
            let color = style::series_color(i).0.mix(0.55);
            let stride = group.points.len().div_ceil(POINTS).max(1);
            let kept = group.points.iter().step_by(stride).filter(|p| p.0.is_finite() && p.1.is_finite());
            if group.ood {
                let line = style::stroke(MUTED.mix(0.55), 1);
                chart.draw_series(kept.map(|p| Cross::new(inside(p), 3 * PX, line)))?;
            } else {
                chart.draw_series(kept.map(|p| Circle::new(inside(p), 3 * PX, color.filled())))?;
            }
        }
        for part in outlines.iter().flat_map(|outline| visible(outline, &x, &y)) {
            chart.draw_series(LineSeries::new(part.iter().copied(), style::stroke(INK, 1)))?;
        }
        let means = || codes.iter().map(|code| inside(&code.mean));
        chart.draw_series(means().map(|p| Cross::new(p, 8 * PX, style::stroke(WHITE, 6))))?;
        chart.draw_series(means().map(|p| Cross::new(p, 7 * PX, style::stroke(INK, 3))))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn the_plane_holds_the_spread() {
        let mut random = Random::new(2, "plane");
        let rows: Vec<[f32; 4]> =
            (0..500).map(|_| [1.0, 5.0, 0.1, 2.0].map(|s| (s * random.normal()) as f32)).collect();
        let table = Table::from_rows(&rows).unwrap();
        let plane = Plane::fit(&table).unwrap();
        let points = plane.points(&table).unwrap();
        let spread = |pick: fn(&(f64, f64)) -> f64| {
            (points.iter().map(|p| pick(p).powi(2)).sum::<f64>() / 500.0).sqrt()
        };
        assert!((spread(|p| p.0) - 5.0).abs() < 0.5 && (spread(|p| p.1) - 2.0).abs() < 0.3);
    }

    #[test]
    fn a_code_has_the_covariance_of_its_points() {
        // Points on the second and fourth column: the plane is spanned by them.
        let rows =
            [[0.0, 3.0, 0.0, 1.0], [0.0, -3.0, 0.0, -1.0], [0.0, 3.0, 0.0, 0.0], [0.0, -3.0, 0.0, 0.0]];
        let plane = Plane::fit(&Table::from_rows(&rows).unwrap()).unwrap();
        let diagonal = plane.code(&[0.0; 4], &[7.0, 4.0, 7.0, 1.0]).unwrap();
        let mut whole = [0.0; 16];
        [7.0, 4.0, 7.0, 1.0].iter().enumerate().for_each(|(i, &v)| whole[i * 5] = v);
        assert_eq!(plane.code(&[0.0; 4], &whole).unwrap(), diagonal);
        let [xx, xy, yy] = diagonal.cov;
        assert!((xx + yy - 5.0).abs() < 1e-9 && (xx * yy - xy * xy - 4.0).abs() < 1e-9, "{diagonal:?}");
        for (x, y) in diagonal.outline() {
            let squared = (yy * x * x - 2.0 * xy * x * y + xx * y * y) / (xx * yy - xy * xy);
            assert!((squared - 4.0).abs() < 1e-9, "two standard deviations, not {}", squared.sqrt());
        }
        assert!(plane.code(&[0.0; 3], &whole).is_err() && plane.code(&[0.0; 4], &whole[..5]).is_err());
    }

    #[test]
    fn an_outline_that_leaves_the_plot_is_not_drawn_along_its_edge() {
        let outline = PlaneCode { mean: (0.0, 0.0), cov: [1.0, 0.0, 1.0] }.outline();
        let all: Vec<_> = visible(&outline, &(-2.0..2.0), &(-2.0..2.0)).collect();
        assert!(all.len() == 1 && all[0].len() == outline.len(), "{}", all.len());
        // A quarter of the circle lies right of √2, around the point that it begins and ends with.
        let cut: Vec<_> = visible(&outline, &(-2.0..1.5), &(-2.0..2.0)).collect();
        assert!(cut.len() == 1 && cut[0].len() < outline.len() && cut[0].iter().all(|p| p.0 < 1.5));
        assert_eq!(visible(&outline, &(3.0..4.0), &(3.0..4.0)).count(), 0);
    }

    #[test]
    fn one_dimension_is_a_line() {
        let table = Table::column(vec![1.0, 2.0, 4.0]);
        let plane = Plane::fit(&table).unwrap();
        let points = plane.points(&table).unwrap();
        assert!(points.iter().all(|p| p.1.abs() < 1e-9));
        let code = plane.code(&[2.0], &[0.25]).unwrap();
        let group = Group { name: "test".into(), points, ood: false };
        let svg = latent_scatter("L", std::slice::from_ref(&group), &[code]).unwrap().file();
        assert!(svg.contains("code means") && svg.contains("2 standard deviations") && !svg.contains("NaN"));
        let svg = latent_scatter("L", &[group], &[code; OUTLINED + 1]).unwrap().file();
        assert!(svg.contains("code means") && !svg.contains("2 standard deviations"));
        assert!(latent_scatter("L", &[], &[]).is_err());
    }
}
