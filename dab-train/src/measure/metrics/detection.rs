//! Telling two kinds of input apart by a score (AUROC, AUPR, FPR at 95 % TPR).
//!
//! scores of negatives + scores of positives → `Detection`, and the ROC curve to draw.
//!
//! ```text
//! AUROC = P(s⁺ > s⁻) + ½ P(s⁺ = s⁻)        AUPR = Σ (R_i − R_{i−1}) P_i
//! ```
//!
//! AUPR depends on the prevalence: 0.99 is chance when 99 % of the examples are positive. That is why
//! the prevalence stands in every report, and why both AUPRs do.

use anyhow::Result;
use serde::Serialize;

use super::{Summary, ranking};

/// True-positive rate at which the false-positive rate is read.
pub const TPR: f64 = 0.95;

/// What "positive" means in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positive {
    /// The out-of-distribution input.
    OutOfDistribution,
    /// The input that the model misclassifies.
    Misclassified,
}

/// Detection quality of one score on one pair of sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detection {
    /// What is to be detected.
    pub positive: Positive,
    /// Share of positives among all examples.
    pub prevalence: f64,
    /// Number of positives.
    pub positives: usize,
    /// Number of negatives.
    pub negatives: usize,
    /// Area under the ROC curve; 0.5 is chance.
    pub auroc: f64,
    /// Average precision with the positives as above; `prevalence` is chance.
    pub aupr_out: f64,
    /// Average precision with the sides swapped and the score negated; `1 − prevalence` is chance.
    pub aupr_in: f64,
    /// Share of negatives flagged at the first threshold that catches 95 % of the positives.
    pub fpr95: f64,
    /// Of every example, in the order of the set, whether it is positive and how it stands to the other side: what another
    /// score on the same examples is compared by.
    #[serde(skip)]
    pub places: Vec<(bool, f64)>,
}

impl Detection {
    /// Measures a score: larger must mean positive. O(n log n).
    pub fn new(positive: Positive, negatives: &[f32], positives: &[f32]) -> Result<Self> {
        let negative = placements(negatives, positives).into_iter().map(|place| (false, 1.0 - place));
        let places = negative.chain(placements(positives, negatives).into_iter().map(|place| (true, place)));
        let places = places.collect();
        let groups = ranking::groups(negatives, positives)?;
        let total = (negatives.len() + positives.len()) as f64;
        Ok(Self {
            positive,
            prevalence: positives.len() as f64 / total,
            positives: positives.len(),
            negatives: negatives.len(),
            auroc: ranking::auroc(&groups),
            aupr_out: ranking::average_precision(&groups),
            aupr_in: ranking::average_precision(&ranking::mirrored(&groups)),
            fpr95: roc_points(&groups).into_iter().find(|&(_, tpr)| tpr >= TPR).map_or(1.0, |(fpr, _)| fpr),
            places,
        })
    }

    /// The standard error of the difference of two AUROCs on the same examples (DeLong, DeLong and Clarke-Pearson 1988); none
    /// where the examples are others, or too few of them.
    ///
    /// ```text
    /// dᵢ = placement of example i by one score − by the other;   s² = var(dᵢ of positives) / n⁺ + var(dᵢ of negatives) / n⁻
    /// ```
    pub fn paired_error(&self, other: &Self) -> Option<f64> {
        let same = self.places.len() == other.places.len()
            && self.places.iter().zip(&other.places).all(|(a, b)| a.0 == b.0);
        if !same {
            return None;
        }
        let variance = |side: bool| -> Option<f64> {
            let both = self.places.iter().zip(&other.places).filter(|(own, _)| own.0 == side);
            let differences: Vec<f64> = both.map(|(own, other)| own.1 - other.1).collect();
            let (count, sd) = Summary::of(&differences).map(|all| (all.count, all.sd))?;
            (count > 1).then(|| sd * sd / count as f64)
        };
        Some((variance(true)? + variance(false)?).sqrt())
    }
}

/// Of each score, the share of `others` that are below it; an equal one counts half.
fn placements(scores: &[f32], others: &[f32]) -> Vec<f64> {
    let mut sorted = others.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let place = |score: &f32| {
        let (below, up_to) = (sorted.partition_point(|x| x < score), sorted.partition_point(|x| x <= score));
        (below + up_to) as f64 / (2 * sorted.len().max(1)) as f64
    };
    scores.iter().map(place).collect()
}

/// How well a score tells strangers from familiar inputs: the area under the ROC curve.
pub fn auroc(familiar: &[f32], strangers: &[f32]) -> Result<f64> {
    Ok(ranking::auroc(&ranking::groups(familiar, strangers)?))
}

/// Calibration AUROC: how well the score finds the misclassified. `None` when all or none are right.
pub fn misclassification(scores: &[f32], correct: &[bool]) -> Result<Option<Detection>> {
    anyhow::ensure!(scores.len() == correct.len(), "{} scores but {} verdicts", scores.len(), correct.len());
    let side = |wanted: bool| -> Vec<f32> {
        scores.iter().zip(correct).filter(|&(_, &c)| c == wanted).map(|(&s, _)| s).collect()
    };
    let (right, wrong) = (side(true), side(false));
    if right.is_empty() || wrong.is_empty() {
        return Ok(None);
    }
    let mut found = Detection::new(Positive::Misclassified, &right, &wrong)?;
    // Back into the order of the rows: another classifier is wrong about others.
    let (right, wrong) = found.places.split_at(right.len());
    let (mut right, mut wrong) = (right.iter(), wrong.iter());
    let places = correct.iter().filter_map(|&correct| if correct { right.next() } else { wrong.next() });
    found.places = places.copied().collect();
    Ok(Some(found))
}

/// The ROC curve as (false-positive rate, true-positive rate), from (0, 0) to (1, 1).
pub fn roc(negatives: &[f32], positives: &[f32]) -> Result<Vec<(f64, f64)>> {
    Ok(roc_points(&ranking::groups(negatives, positives)?))
}

fn roc_points(groups: &[ranking::Group]) -> Vec<(f64, f64)> {
    let negatives: usize = groups.iter().map(|g| g.negatives).sum();
    let positives: usize = groups.iter().map(|g| g.positives).sum();
    let (mut fp, mut tp) = (0, 0);
    let mut points = vec![(0.0, 0.0)];
    for group in groups {
        fp += group.negatives;
        tp += group.positives;
        points.push((fp as f64 / negatives as f64, tp as f64 / positives as f64));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ood(negatives: &[f32], positives: &[f32]) -> Detection {
        Detection::new(Positive::OutOfDistribution, negatives, positives).unwrap()
    }

    #[test]
    fn the_easy_cases() {
        let perfect = ood(&[0.0, 1.0], &[2.0, 3.0]);
        assert_eq!((perfect.auroc, perfect.aupr_out, perfect.aupr_in, perfect.fpr95), (1.0, 1.0, 1.0, 0.0));
        let tied = ood(&[1.0; 30], &[1.0; 10]);
        assert_eq!((tied.auroc, tied.aupr_out, tied.aupr_in, tied.fpr95), (0.5, 0.25, 0.75, 1.0));
        assert_eq!(tied.prevalence, 0.25);
        assert_eq!(ood(&[-0.0], &[0.0]).auroc, 0.5, "zero has one value");
    }

    #[test]
    fn the_paired_error_is_delongs() {
        let negatives = [[0.0, 1.0, 2.0], [0.0, 2.0, 5.0]];
        let positives = [[3.0, 4.0, 1.5], [6.0, 1.0, 1.5]];
        let [a, b] = [0, 1].map(|score| ood(&negatives[score], &positives[score]));
        // The definition, pair by pair.
        let kernel = |p: f32, n: f32| {
            if p > n {
                1.0
            } else if p == n {
                0.5
            } else {
                0.0
            }
        };
        let gap = |i: usize, j: usize| {
            kernel(positives[0][i], negatives[0][j]) - kernel(positives[1][i], negatives[1][j])
        };
        let rows = [0, 1, 2].map(|i| (0..3).map(|j| gap(i, j)).sum::<f64>() / 3.0);
        let columns = [0, 1, 2].map(|j| (0..3).map(|i| gap(i, j)).sum::<f64>() / 3.0);
        let variance = |d: [f64; 3]| Summary::of(&d).unwrap().sd.powi(2) / 3.0;
        let error = (variance(rows) + variance(columns)).sqrt();
        assert!(error > 0.1 && (a.paired_error(&b).unwrap() - error).abs() < 1e-12, "{error}");
        assert_eq!(a.paired_error(&a), Some(0.0));
        assert_eq!(a.paired_error(&ood(&[0.0, 1.0], &[2.0, 3.0])), None, "other rows");
    }

    #[test]
    fn errors_are_paired_where_both_are_wrong_about_the_same_rows() {
        let scores = [0.1, 0.4, 0.2, 0.9, 0.3, 0.6];
        let of = |correct: &[bool]| misclassification(&scores, correct).unwrap().unwrap();
        let own = of(&[true, false, true, false, true, true]);
        assert_eq!(
            own.places.iter().map(|place| place.0).collect::<Vec<_>>(),
            [false, true, false, true, false, false]
        );
        assert_eq!(own.paired_error(&of(&[false, true, false, true, true, true])), None);
    }

    #[test]
    fn bad_scores_are_refused() {
        let nan = Detection::new(Positive::OutOfDistribution, &[0.0], &[f32::NAN]).unwrap_err();
        assert!(nan.to_string().contains("1 of 1 scores of the positive"));
        assert!(roc(&[], &[1.0]).is_err());
        assert!(misclassification(&[1.0, 2.0], &[true, true]).unwrap().is_none());
        assert_eq!(misclassification(&[1.0, 2.0], &[true, false]).unwrap().unwrap().auroc, 1.0);
    }
}
