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

use super::ranking;

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
}

impl Detection {
    /// Measures `score`: larger must mean positive. O(n log n).
    pub fn new(positive: Positive, negatives: &[f32], positives: &[f32]) -> Result<Self> {
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
        })
    }
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
    Detection::new(Positive::Misclassified, &right, &wrong).map(Some)
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
    fn bad_scores_are_refused() {
        let nan = Detection::new(Positive::OutOfDistribution, &[0.0], &[f32::NAN]).unwrap_err();
        assert!(nan.to_string().contains("1 of 1 scores of the positive"));
        assert!(roc(&[], &[1.0]).is_err());
        assert!(misclassification(&[1.0, 2.0], &[true, true]).unwrap().is_none());
        assert_eq!(misclassification(&[1.0, 2.0], &[true, false]).unwrap().unwrap().auroc, 1.0);
    }
}
