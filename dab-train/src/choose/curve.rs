//! The rate–distortion curve: what the chosen views reach in files of other sizes.

use anyhow::Result;

use super::{
    Candidate, Choice, Point, Wish,
    folds::Fold,
    judge::{auroc, surprises},
    plan::Rows,
    views,
};
use crate::{
    config::retrofit::ViewConfig,
    support::{parallel::map_blocks, text::plural},
};

/// Sizes of file on the rate–distortion curve.
const CURVE: [u64; 6] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];

/// Mean AUROC of all views together in a file of `flash` bytes; none when they do not fit into each fold.
pub(super) fn joined(
    folds: &[Fold],
    chosen: &[Candidate],
    flash: Option<u64>,
    seed: u64,
) -> Result<Option<f64>> {
    let views: Vec<_> = chosen.iter().map(|one| (one.norm, one.ridge, one.filling, one.form)).collect();
    let found = map_blocks(folds.len(), 1, |job| {
        let seen = surprises(&folds[job.start], &views, flash, seed)?;
        seen.map(|seen| auroc(&seen.iter().collect::<Vec<_>>())).transpose()
    });
    let each = found.into_iter().collect::<Result<Option<Vec<f64>>>>()?;
    Ok(each.map(|each| each.iter().sum::<f64>() / each.len().max(1) as f64))
}

/// The chosen views in files of other sizes, and in this one; and what a reader of them should know. There are no more sizes once
/// it is `late`.
pub(super) fn curve(
    folds: &[Fold],
    chosen: &[Candidate],
    rows: &Rows,
    wish: &Wish,
    choice: &Choice,
    auroc: Option<f64>,
    late: &dyn Fn() -> bool,
) -> Result<(Vec<Point>, Vec<String>)> {
    let (mut points, mut notes) = (Vec::new(), Vec::new());
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
        if late() {
            notes.push("the curve of sizes has not every size (--time)".to_owned());
            break;
        }
        let found = joined(folds, chosen, Some(flash), wish.seed)?;
        points.extend(found.map(|auroc| point(Some(flash), &views, auroc, false)));
    }
    points.sort_by_key(|point| point.bytes);
    notes.extend(as_good(&points));
    Ok((points, notes))
}

/// Why the chosen file is larger than one that finds as much, where there is one.
fn as_good(points: &[Point]) -> Option<String> {
    /// AUROCs that print alike.
    const ALIKE: f64 = 5e-5;
    let chosen = points.iter().find(|point| point.chosen)?;
    let smaller =
        points.iter().find(|point| point.bytes < chosen.bytes && point.auroc > chosen.auroc - ALIKE)?;
    let flash = smaller.flash.map_or_else(String::new, |flash| {
        format!(" (--flash {}K makes one of that size, perhaps with other views)", flash >> 10)
    });
    Some(format!(
        "with a file of {} these views find as many of these strangers, AUROC {:.4}{flash}; the flash that is allowed is used all \
         the same, since strangers made of training rows cannot test everything that more axes and codes see",
        plural(smaller.bytes, "byte"),
        smaller.auroc
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_file_that_finds_as_much_is_named() {
        let point = |bytes, auroc, chosen| Point {
            flash: Some(16 << 10),
            bytes,
            multiply_adds: 1,
            codes: 1,
            auroc,
            chosen,
        };
        let said = as_good(&[point(9000, 0.9, false), point(16_000, 0.98, false), point(99_000, 0.98, true)])
            .unwrap();
        assert!(
            said.starts_with("with a file of 16,000 bytes these views find as many")
                && said.contains("--flash 16K makes one of that size, perhaps with other views"),
            "{said}"
        );
        assert_eq!(
            as_good(&[point(9000, 0.97, false), point(16_000, 0.98, true), point(99_000, 0.98, false)]),
            None
        );
    }
}
