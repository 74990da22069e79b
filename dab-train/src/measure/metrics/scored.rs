//! One score on all sets of a task, and everything that can be said about it.
//!
//! scores on test and OOD → [`Scored::report`] → `ScoreReport` → metrics.json, tables.
//!
//! ```text
//! test against each OOD set (positive: OOD); right against wrong test inputs (positive: wrong)
//! ```
//!
//! The model's u and every baseline go through this same door, so that they are measured alike.

use anyhow::Result;
use serde::{Serialize, Serializer};

use super::{Detection, Positive, Selective, detection::misclassification, selective::errors};

/// One score on the test inputs and on every OOD set.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Name for tables.
    pub name: String,
    /// One score per test input.
    pub test: Vec<f32>,
    /// One score per OOD input, by set.
    pub ood: Vec<(String, Vec<f32>)>,
}

/// What one score achieves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreReport {
    /// Name for tables.
    pub name: String,
    /// Test against each OOD set; positive is the OOD input. An object in JSON, in this order.
    #[serde(serialize_with = "as_object")]
    pub ood: Vec<(String, Detection)>,
    /// Right against wrong test predictions; positive is the wrong one. `None` for regression.
    pub misclassification: Option<Detection>,
    /// Risk against coverage on the test set. `None` for regression.
    pub selective: Option<Selective>,
}

fn as_object<S: Serializer>(sets: &[(String, Detection)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(sets.iter().map(|(name, detection)| (name, detection)))
}

impl Scored {
    /// Measures the score. `correct` says which test inputs the classifier gets right.
    pub fn report(&self, correct: Option<&[bool]>) -> Result<ScoreReport> {
        let against = |scores: &[f32]| Detection::new(Positive::OutOfDistribution, &self.test, scores);
        let ood = self.ood.iter().map(|(name, scores)| Ok((name.clone(), against(scores)?)));
        let ood = ood.collect::<Result<_>>()?;
        let misclassification = correct.map(|c| misclassification(&self.test, c)).transpose()?.flatten();
        let selective = correct.map(|c| Selective::new(&self.test, &errors(c))).transpose()?;
        Ok(ScoreReport { name: self.name.clone(), ood, misclassification, selective })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_covers_every_set() {
        let scored =
            Scored { name: "u".into(), test: vec![0.0, 1.0, 2.0], ood: vec![("far".into(), vec![3.0, 1.5])] };
        let report = scored.report(Some(&[true, true, false])).unwrap();
        assert_eq!(report.ood[0].0, "far");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["ood"]["far"]["positive"], "out-of-distribution");
        assert_eq!(json["ood"]["far"]["prevalence"], 0.4);
        assert_eq!(report.misclassification.unwrap().auroc, 1.0);
        assert_eq!(report.selective.unwrap().risk, 1.0 / 3.0);
        assert!(scored.report(None).unwrap().misclassification.is_none());
        assert!(scored.report(Some(&[true])).is_err());
    }
}
