//! Whether the device agrees with the trainer.
//!
//! The trainer's `TaskScores` + the `Assessments` of `model.dab` → `Twice` (every input scored by both) → `Parity`.
//!
//! ```text
//! |u_device − u_trainer| / max(u_trainer, 1 nat)        ≤ 1e-4 agrees        ≤ 1e-2 is told        above is refused
//! ```
//!
//! Metrics, calibration and `scores.csv` are computed from what is shipped, so a difference makes none of them wrong. It says
//! how well the trainer's arithmetic (a GPU's, f32 in another order) was that of the device.
//!
//! It runs at the end of every training, and as `dab verify` whenever somebody asks.

use anyhow::{Result, anyhow};
use dab_core::parts::LARGEST;
use serde::Serialize;

use super::{
    assessed::{Assessments, JudgedSet},
    evaluate::TaskScores,
    metrics::auroc,
};
use crate::{error::Error, model::snapshot::Scores};

/// Where the trainer's and the device's u may differ, relative to u or to one nat, whichever is more: a
/// distance below a nat is a small difference of terms of several nats in both.
pub const PARITY: f64 = 1e-4;
/// Above this the file is not the network. No arithmetic that we train in comes near it: f32 sums in another order stay below
/// 1e-4, factors cut to 10 bits (TF32) gave 2e-1, and a wrong weight gives more. And it is as much as a score may move without
/// a verdict noticing: calibration tables tell ranks of one in a hundred apart.
pub const REFUSED: f64 = 1e-2;

/// How well two sets of scores of the same inputs agree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parity {
    /// Inputs compared.
    pub inputs: usize,
    /// Largest |Δu|, nats.
    pub largest_difference: f64,
    /// Largest |Δu| / max(u, 1 nat).
    pub largest_relative: f64,
    /// Rank correlation (Spearman) of the two.
    pub rank_correlation: f64,
    /// Largest |ΔAUROC| of the test inputs against an OOD set, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auroc_difference: Option<f64>,
}

/// One set of inputs, scored by both.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The set.
    pub name: String,
    /// u of the trainer's network, nats.
    pub trainer: Vec<f32>,
    /// u of the artifact, nats.
    pub device: Vec<f32>,
}

/// Every set of a task, scored by both: held-out, test, and the OOD sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Twice(pub Vec<Pair>);

impl Parity {
    /// Compares the trainer's scores with the device's.
    ///
    /// # Errors
    /// When they are of different inputs.
    pub fn new(trainer: &[f32], device: &[f32]) -> Result<Self, Error> {
        if trainer.len() != device.len() {
            let fact = anyhow!("{} scores against {}", trainer.len(), device.len());
            return Err(Error::Measuring(fact.into()));
        }
        let (mut largest_difference, mut largest_relative) = (0.0f64, 0.0f64);
        // A device holds no number beyond this: both are then as far as can be.
        let held = |u: f32| if u > LARGEST { LARGEST } else { u };
        for (a, b) in trainer.iter().zip(device).map(|(&a, &b)| (held(a), held(b))) {
            let difference = (f64::from(a) - f64::from(b)).abs();
            // A score that is no number agrees with nothing.
            let difference = if difference.is_nan() { f64::INFINITY } else { difference };
            largest_difference = largest_difference.max(difference);
            largest_relative = largest_relative.max(difference / f64::from(a).max(1.0));
        }
        Ok(Self {
            inputs: trainer.len(),
            largest_difference,
            largest_relative,
            rank_correlation: rank_correlation(trainer, device),
            auroc_difference: None,
        })
    }

    /// Refuses what differs too much.
    ///
    /// # Errors
    /// When a score differs by more than [`REFUSED`].
    pub fn check(&self) -> Result<(), Error> {
        if self.largest_relative <= REFUSED {
            return Ok(());
        }
        let fact = anyhow!(
            "the device's scores differ from the trainer's by {:.1e} of u (allowed: {REFUSED:.0e}; rank correlation {:.4})",
            self.largest_relative,
            self.rank_correlation
        );
        Err(Error::Export(fact.into()))
    }

    /// What to tell about a difference above rounding.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        (self.largest_relative > PARITY).then(|| {
            format!(
                "the trainer's scores differ from the model's by up to {:.1e} of u, more than rounding explains ({PARITY:.0e}); \
                 metrics and calibration are the model's own",
                self.largest_relative
            )
        })
    }
}

impl Pair {
    fn new(trainer: &Scores, device: &JudgedSet) -> Self {
        let (name, trainer) = (device.name.clone(), trainer.uncertainty.clone());
        Self { name, trainer, device: device.each(|row| Some(row.said.uncertainty)) }
    }

    /// How well the two agree on this set.
    pub fn parity(&self) -> Result<Parity> {
        Ok(Parity::new(&self.trainer, &self.device)?)
    }
}

impl Twice {
    /// The trainer's scores of a task beside those of the file.
    pub fn new(trainer: &TaskScores, device: &Assessments) -> Self {
        let own = [(&trainer.held_out, &device.held_out), (&trainer.test, &device.test)];
        let ood = trainer.ood.iter().map(|(_, scores)| scores).zip(&device.ood);
        Self(own.into_iter().chain(ood).map(|(trainer, device)| Pair::new(trainer, device)).collect())
    }

    /// AUROC of test against each OOD set: by name, the trainer's and the device's.
    pub fn aurocs(&self) -> Result<Vec<(&str, [f64; 2])>> {
        let [_, test, ood @ ..] = self.0.as_slice() else { return Ok(Vec::new()) };
        let both = |ood: &Pair| -> Result<[f64; 2]> {
            Ok([auroc(&test.trainer, &ood.trainer)?, auroc(&test.device, &ood.device)?])
        };
        ood.iter().map(|ood| Ok((ood.name.as_str(), both(ood)?))).collect()
    }

    /// How well the two agree on all sets together.
    pub fn parity(&self) -> Result<Parity> {
        let all = |side: fn(&Pair) -> &[f32]| self.0.iter().flat_map(|pair| side(pair).to_vec()).collect();
        let (trainer, device): (Vec<f32>, Vec<f32>) = (all(|pair| &pair.trainer), all(|pair| &pair.device));
        let differences = self.aurocs()?.into_iter().map(|(_, [a, b])| (a - b).abs());
        Ok(Parity { auroc_difference: differences.reduce(f64::max), ..Parity::new(&trainer, &device)? })
    }
}

/// Spearman's correlation: Pearson's, of the ranks; ties share their mean rank.
fn rank_correlation(a: &[f32], b: &[f32]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let size = (product(&a, &a) * product(&b, &b)).sqrt();
    if size > 0.0 { product(&a, &b) / size } else { 1.0 }
}

fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = start as f64 + (tied.len() - 1) as f64 / 2.0;
        tied.iter().for_each(|&i| ranks[i] = rank);
        start += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, trainer: &[f32], device: &[f32]) -> Pair {
        Pair { name: name.into(), trainer: trainer.into(), device: device.into() }
    }

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]) - 1.0).abs() < 1e-12);
        assert!((rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_difference_is_refused() {
        let check = |a: &[f32], b: &[f32]| Parity::new(a, b).and_then(|parity| parity.check());
        let told = |b: f32| Parity::new(&[1.0, 2.0], &[1.0, b]).unwrap().warning();
        assert!(check(&[1.0, 2.0], &[1.0, 2.0001]).is_ok() && told(2.0001).is_none());
        assert!(check(&[1.0, 2.0], &[1.0, 2.002]).is_ok());
        assert!(told(2.002).unwrap().contains("1.0e-3 of u"), "{:?}", told(2.002));
        assert!(check(&[1.0, 2.0], &[1.0, 2.03]).is_err());
        assert!(check(&[1.0, f32::NAN], &[1.0, f32::NAN]).is_err());
        // What the device cannot hold is as far as can be for both; what it can is compared.
        assert!(check(&[1.0, 3e30], &[1.0, 1e30]).is_ok() && check(&[1.0, 3e30], &[1.0, 1e14]).is_err());
        assert!(check(&[1.0], &[1.0, 2.0]).is_err());
    }

    #[test]
    fn all_sets_count_and_so_does_each_auroc() {
        let twice = Twice(vec![
            pair("held-out", &[1.0], &[1.0]),
            pair("test", &[1.0, 2.0], &[1.0, 2.0]),
            pair("near", &[3.0, 1.5], &[3.0, 2.5]),
            pair("far", &[9.0], &[9.0]),
        ]);
        let parity = twice.parity().unwrap();
        assert_eq!((parity.inputs, parity.largest_difference), (6, 1.0));
        assert_eq!(parity.auroc_difference, Some(0.25));
        assert_eq!(twice.aurocs().unwrap()[1], ("far", [1.0, 1.0]));
    }
}
