//! Examples grouped by equal score: what every rank metric here is computed from.
//!
//! negatives + positives → `Group`s, largest score first → ROC, precision–recall, AUROC.
//!
//! ```text
//! group = { negatives, positives } that share one score
//! ```
//!
//! Working on groups instead of examples is what makes ties harmless.

use anyhow::{Result, ensure};

/// How many examples of either side share one score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub negatives: usize,
    pub positives: usize,
}

/// Groups by descending score.
pub(super) fn groups(negatives: &[f32], positives: &[f32]) -> Result<Vec<Group>> {
    for (side, scores) in [("negative", negatives), ("positive", positives)] {
        ensure!(!scores.is_empty(), "no {side} examples: the metric is undefined");
        let bad = scores.iter().filter(|s| !s.is_finite()).count();
        ensure!(bad == 0, "{bad} of {} scores of the {side} examples are not finite", scores.len());
    }
    let mut all: Vec<(f32, bool)> =
        negatives.iter().map(|&s| (s, false)).chain(positives.iter().map(|&s| (s, true))).collect();
    all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    // −0 and +0 are one score, although total_cmp tells them apart.
    let tied = all.chunk_by(|a, b| a.0 == b.0);
    let count = |tied: &[(f32, bool)]| {
        let positives = tied.iter().filter(|(_, positive)| *positive).count();
        Group { negatives: tied.len() - positives, positives }
    };
    Ok(tied.map(count).collect())
}

/// Share of (negative, positive) pairs in the right order; a tie counts half (Mann–Whitney).
pub(super) fn auroc(groups: &[Group]) -> f64 {
    let (mut above, mut right, mut pairs) = (0.0, 0.0, (0.0, 0.0));
    for group in groups {
        let (n, p) = (group.negatives as f64, group.positives as f64);
        right += n * (above + 0.5 * p);
        above += p;
        pairs = (pairs.0 + n, pairs.1 + p);
    }
    right / (pairs.0 * pairs.1)
}

/// Average precision Σ (R_i − R_{i−1}) P_i over the distinct thresholds, without interpolation.
pub(super) fn average_precision(groups: &[Group]) -> f64 {
    let total: f64 = groups.iter().map(|g| g.positives as f64).sum();
    let (mut found, mut seen, mut sum) = (0.0, 0.0, 0.0);
    for group in groups {
        found += group.positives as f64;
        seen += (group.positives + group.negatives) as f64;
        sum += group.positives as f64 / total * (found / seen);
    }
    sum
}

/// The groups with sides swapped and order reversed: what negated scores would give.
pub(super) fn mirrored(groups: &[Group]) -> Vec<Group> {
    groups.iter().rev().map(|g| Group { negatives: g.positives, positives: g.negatives }).collect()
}
