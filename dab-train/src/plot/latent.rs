//! The latent space from above: encoder means by group, and the code means.
//!
//! latent means → [`principal_plane`] → two coordinates → [`latent_scatter`] → SVG.
//!
//! ```text
//! plane = the two leading eigenvectors of the covariance, by orthogonal iteration
//! ```
//!
//! The plane is fitted to the points that are passed first (the training or test set); codes and OOD
//! points are projected with it, so a far set looks far instead of bending the plane to itself.

use anyhow::{Result, ensure};
use plotters::prelude::*;

use super::style::{self, Axis, Entry, Frame, INK, MUTED, Mark, PX};
use crate::data::Table;

/// Points drawn per group; more hide each other and swell the file.
const POINTS: usize = 1500;
/// Share of the points that the axes span; the rest sits on the edge.
const SPAN: f64 = 0.99;
/// Iterations of the eigenvector search: a ratio of 0.9 between eigenvalues leaves 1e-9.
const ITERATIONS: usize = 200;

/// A named group of points in the plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name for the legend.
    pub name: String,
    /// Coordinates, as [`principal_plane`] gives them.
    pub points: Vec<(f64, f64)>,
    /// Out of distribution: grey crosses instead of coloured dots.
    pub ood: bool,
}

/// Projects each of `tables` onto the two leading principal axes of the first.
///
/// # Errors
/// No table, an empty first one, or differing column counts.
pub fn principal_plane(tables: &[&Table]) -> Result<Vec<Vec<(f64, f64)>>> {
    let first = tables.first().ok_or_else(|| anyhow::anyhow!("no points to draw"))?;
    ensure!(first.rows > 0 && first.cols > 0, "no points to draw");
    ensure!(tables.iter().all(|t| t.cols == first.cols), "tables differ in their columns");
    let dim = first.cols;
    let centre: Vec<f64> = first.column_stats().iter().map(|s| s.mean).collect();
    let mut covariance = vec![0.0; dim * dim];
    for row in first.iter() {
        let r: Vec<f64> = row.iter().zip(&centre).map(|(&x, c)| f64::from(x) - c).collect();
        for (i, a) in r.iter().enumerate() {
            covariance[i * dim..(i + 1) * dim].iter_mut().zip(&r).for_each(|(c, b)| *c += a * b);
        }
    }
    let (mut u, mut v) = (vec![1.0; dim], (0..dim).map(|i| i as f64 + 0.5).collect::<Vec<f64>>());
    for _ in 0..ITERATIONS {
        u = unit(times(&covariance, &u), &[]);
        v = unit(times(&covariance, &v), &u);
    }
    let project = |row: &[f32], axis: &[f64]| {
        row.iter().zip(&centre).zip(axis).map(|((&x, c), a)| (f64::from(x) - c) * a).sum::<f64>()
    };
    Ok(tables.iter().map(|t| t.iter().map(|row| (project(row, &u), project(row, &v))).collect()).collect())
}

fn times(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

/// `x` without its part along `other`, at length 1; zero stays zero.
fn unit(mut x: Vec<f64>, other: &[f64]) -> Vec<f64> {
    let along: f64 = x.iter().zip(other).map(|(a, b)| a * b).sum();
    x.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
    let length = x.iter().map(|a| a * a).sum::<f64>().sqrt();
    if length > 0.0 {
        x.iter_mut().for_each(|a| *a /= length);
    }
    x
}

/// Groups as coloured dots, OOD groups as small grey crosses, code means as large black ones.
///
/// # Errors
/// No points.
pub fn latent_scatter(title: &str, groups: &[Group], codes: &[(f64, f64)]) -> Result<String> {
    ensure!(groups.iter().any(|g| !g.points.is_empty()), "no points to draw");
    let axis = |pick: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = groups.iter().flat_map(|g| g.points.iter().map(pick)).collect();
        all.retain(|x| x.is_finite());
        all.sort_by(f64::total_cmp);
        let cut = (all.len() as f64 * (1.0 - SPAN) / 2.0) as usize;
        let kept = all[cut..all.len() - cut].iter().copied();
        style::padded(kept.chain(codes.iter().map(pick)), 0.06)
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
    let frame = Frame {
        title,
        x: Axis::new("first principal axis of the latent means", x.clone()),
        y: Axis::new("second principal axis", y.clone()),
        legend,
        grid: true,
    };
    style::draw(frame, |chart| {
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
        chart.draw_series(codes.iter().map(|p| Cross::new(inside(p), 8 * PX, style::stroke(WHITE, 6))))?;
        chart.draw_series(codes.iter().map(|p| Cross::new(inside(p), 7 * PX, style::stroke(INK, 3))))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_plane_holds_the_spread() {
        let mut random = Random::new(2, "plane");
        let rows: Vec<[f32; 4]> =
            (0..500).map(|_| [1.0, 5.0, 0.1, 2.0].map(|s| (s * random.normal()) as f32)).collect();
        let plane = principal_plane(&[&Table::from_rows(&rows).unwrap()]).unwrap();
        let spread = |pick: fn(&(f64, f64)) -> f64| {
            (plane[0].iter().map(|p| pick(p).powi(2)).sum::<f64>() / 500.0).sqrt()
        };
        assert!((spread(|p| p.0) - 5.0).abs() < 0.5 && (spread(|p| p.1) - 2.0).abs() < 0.3);
    }

    #[test]
    fn one_dimension_is_a_line() {
        let plane = principal_plane(&[&Table::column(vec![1.0, 2.0, 4.0])]).unwrap();
        assert!(plane[0].iter().all(|p| p.1.abs() < 1e-9));
        let group = Group { name: "test".into(), points: plane[0].clone(), ood: false };
        assert!(latent_scatter("L", &[group], &[(0.0, 0.0)]).unwrap().contains("code means"));
        assert!(latent_scatter("L", &[], &[]).is_err());
    }
}
