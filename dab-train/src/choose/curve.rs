//! The rate–distortion curve: what the chosen views reach in files of other sizes.

use anyhow::Result;

use super::{
    Candidate, Choice, Point, Wish,
    folds::Fold,
    judge::{auroc, surprises},
    plan::Rows,
    views,
};
use crate::{config::retrofit::ViewConfig, support::parallel::map_blocks};

/// Sizes of file on the rate–distortion curve.
const CURVE: [u64; 6] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];

/// Mean AUROC of all views together in a file of `flash` bytes; none when they do not fit into each fold.
pub(super) fn joined(
    folds: &[Fold],
    chosen: &[Candidate],
    flash: Option<u64>,
    seed: u64,
) -> Result<Option<f64>> {
    let views: Vec<_> = chosen.iter().map(|one| (one.norm, one.ridge, one.filling(), one.form)).collect();
    let found = map_blocks(folds.len(), 1, |job| {
        let seen = surprises(&folds[job.start], &views, flash, seed)?;
        seen.map(|seen| auroc(&seen.iter().collect::<Vec<_>>())).transpose()
    });
    let each = found.into_iter().collect::<Result<Option<Vec<f64>>>>()?;
    Ok(each.map(|each| each.iter().sum::<f64>() / each.len().max(1) as f64))
}

/// The chosen views in files of other sizes, and in this one.
pub(super) fn curve(
    folds: &[Fold],
    chosen: &[Candidate],
    rows: &Rows,
    wish: &Wish,
    choice: &Choice,
    auroc: Option<f64>,
) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    let point = |flash, views: &[ViewConfig], auroc, chosen| Point {
        flash,
        bytes: rows.bytes(views, wish.own_head),
        multiply_adds: rows.multiply_adds(views, wish.own_head),
        codes: views.iter().map(|view| rows.of(view).codes).sum(),
        auroc,
        chosen,
    };
    points.extend(auroc.map(|auroc| point(wish.flash, &choice.views, auroc, true)));
    for flash in CURVE {
        let Some(views) = views(chosen, rows, Some(flash)) else { continue };
        // A file that is no larger although it may be says nothing new.
        if points.iter().any(|point: &Point| point.bytes == rows.bytes(&views, wish.own_head)) {
            continue;
        }
        let found = joined(folds, chosen, Some(flash), wish.seed)?;
        points.extend(found.map(|auroc| point(Some(flash), &views, auroc, false)));
    }
    points.sort_by_key(|point| point.bytes);
    Ok(points)
}
