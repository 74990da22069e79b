//! Scores of logits: what a classifier says about its own certainty.
//!
//! logits → one number per row; every score grows with strangeness. p are the softmax probabilities, largest first.
//!
//! ```text
//! MSP 1 − p₁    margin 1 − (p₁ − p₂)    entropy −Σ p ln p    energy −ln Σ exp(l)    GEN Σ_{j ≤ M} (p_j (1 − p_j))^γ
//! ```
//!
//! 1 − p₁ is summed from the other probabilities in f64: taken as a difference it is 0 for thousands of inputs, and
//! these tie. Ambiguity (format.md) is ln((1 − p₁) / p₁), so it ranks inputs as MSP of the same logits does.

use crate::{data::Table, measure::metrics::Scored};

/// γ and M of GEN, as its authors recommend (Liu, Lochman, Zach: GEN, CVPR 2023).
const GEN_GAMMA: f64 = 0.1;
const GEN_CLASSES: usize = 100;

/// A score of one row of logits.
type Score = fn(&[f32]) -> f64;

/// Every score of logits, by name.
pub const SCORES: [(&str, Score); 5] = [
    ("MSP", msp_of),
    ("margin", |row| {
        let p = Probabilities::new(row);
        p.rest + p.sorted.get(1).copied().unwrap_or(0.0)
    }),
    ("entropy", |row| {
        let p = Probabilities::new(row);
        let term = |&p: &f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        -(1.0 - p.rest) * (-p.rest).ln_1p() + p.sorted.iter().skip(1).map(term).sum::<f64>()
    }),
    ("energy", energy_of),
    ("GEN", |row| {
        let p = Probabilities::new(row);
        // 1 − p_j, without cancellation for the largest.
        let rest = |j: usize, p_j: f64| if j == 0 { p.rest } else { 1.0 - p_j };
        let term = |(j, &p_j): (usize, &f64)| (p_j * rest(j, p_j)).powf(GEN_GAMMA);
        p.sorted.iter().enumerate().take(GEN_CLASSES).map(term).sum()
    }),
];

/// All [`SCORES`] of given logits; `suffix` tells whose logits they are, as in `" (own)"`.
pub fn on_logits(suffix: &str, test: &Table, ood: &[(String, Table)]) -> Vec<Scored> {
    let scored = |(name, score): (&str, Score)| Scored {
        name: format!("{name}{suffix}"),
        test: each(test, score),
        ood: ood.iter().map(|(set, logits)| (set.clone(), each(logits, score))).collect(),
    };
    SCORES.into_iter().map(scored).collect()
}

/// 1 − the largest softmax probability, per row of logits.
pub fn msp(logits: &Table) -> Vec<f32> {
    each(logits, msp_of)
}

/// −ln Σ exp(logit), per row.
pub fn energy(logits: &Table) -> Vec<f32> {
    each(logits, energy_of)
}

/// A = ln Σ_{j ≠ ŷ} exp(l_j) − l_ŷ, per row: how near the other classes come to the first, in nats.
pub fn ambiguity(logits: &Table) -> Vec<f32> {
    each(logits, |row| {
        let sorted = descending(row);
        let [first, others @ ..] = sorted.as_slice() else { return 0.0 };
        log_sum_exp(others) - first
    })
}

/// Logits of which each row has the mean 0. A softmax regression knows them up to a number per row; energy and ViM need one.
pub fn centred(logits: &Table) -> Table {
    let centre = |row: &[f32]| {
        let mean = (row.iter().map(|&l| f64::from(l)).sum::<f64>() / row.len().max(1) as f64) as f32;
        row.iter().map(|l| l - mean).collect::<Vec<f32>>()
    };
    Table { values: logits.iter().flat_map(centre).collect(), ..*logits }
}

fn each(logits: &Table, score: Score) -> Vec<f32> {
    super::saturated(&logits.iter().map(score).collect::<Vec<_>>())
}

/// Softmax probabilities, largest first, and 1 − the largest.
struct Probabilities {
    sorted: Vec<f64>,
    rest: f64,
}

impl Probabilities {
    fn new(row: &[f32]) -> Self {
        let logits = descending(row);
        let first = logits.first().copied().unwrap_or(0.0);
        let powers: Vec<f64> = logits.iter().map(|l| (l - first).exp()).collect();
        // From the smallest up: the sum of the others keeps what the 1 of the largest would swallow.
        let others: f64 = powers.iter().skip(1).rev().sum();
        let sum = 1.0 + others;
        Self { sorted: powers.iter().map(|p| p / sum).collect(), rest: others / sum }
    }
}

fn descending(row: &[f32]) -> Vec<f64> {
    let mut sorted: Vec<f64> = row.iter().map(|&l| f64::from(l)).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    sorted
}

/// ln Σ exp of values of which the first is the largest.
fn log_sum_exp(sorted: &[f64]) -> f64 {
    let first = sorted.first().copied().unwrap_or(0.0);
    first + sorted.iter().map(|l| (l - first).exp()).sum::<f64>().ln()
}

fn msp_of(row: &[f32]) -> f64 {
    Probabilities::new(row).rest
}

fn energy_of(row: &[f32]) -> f64 {
    -log_sum_exp(&descending(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_do_not_tie_where_softmax_saturates() {
        let logits = Table::from_rows(&[[100.0, 0.0], [50.0, 0.0], [0.0, 0.0]]).unwrap();
        for (name, score) in SCORES {
            let s = each(&logits, score);
            assert!(s[0] < s[1] && s[1] < s[2], "{name}: {s:?}");
        }
        assert!(msp(&logits)[1] < 1e-20 && msp(&logits)[2] == 0.5);
        assert_eq!(energy(&logits)[..2], [-100.0, -50.0]);
        assert_eq!(ambiguity(&logits), [-100.0, -50.0, 0.0]);
    }

    #[test]
    fn ambiguity_ranks_as_msp_does() {
        let logits =
            Table::from_rows(&[[3.0, 1.0, -2.0], [0.1, 0.2, 0.3], [5.0, 5.0, -9.0], [-1.0, 4.0, 0.5]])
                .unwrap();
        for (a, p) in ambiguity(&logits).iter().zip(msp(&logits)) {
            assert!((f64::from(*a) - (f64::from(p) / (1.0 - f64::from(p))).ln()).abs() < 1e-5, "{a} {p}");
        }
    }
}
