//! The slow channel: is a stream drifting, although no input is strange by itself?
//!
//! ```text
//! block of b inputs → mean of min(u, enter) → p-value among recorded blocks → bet e(p) → capital × e → alarm
//! p(m) = (1 + #{mᵢ > level}) / (n + 1) of the highest level below m,   e = 1 / (√p + √p'),   p' of the next level
//! ```
//!
//! The bet is the average of ½ p^−½ between two p-values of the table, so that its expectation is at most 1 whenever a
//! p-value of at most a has a probability of at most a. For a block that is exchangeable with the n recorded ones that
//! holds for every n and every distribution: a finite table only rounds p-values up. Therefore the capital is a test
//! supermartingale from each start, and by Ville's inequality the chance that it ever reaches A is at most 1/A. With
//! `restart`, the capital begins again at 1 whenever it has fallen below it (CUSUM). There is at most one start for each
//! block, so at least A blocks lie between two false alarms on average, and the chance of one in N blocks is at most N/A.
//! Neighbouring blocks must be independent for this. Correlation inside a block does no harm, between blocks it does:
//! `dab monitor tune` makes blocks long enough, by the correlation of the recorded ones.

use crate::scalar::{ln, sqrt, tame};

/// Levels of a table of blocks.
pub const LEVELS: usize = 7;

/// Most inputs in a block.
pub const MAX_BLOCK: u32 = 1 << 30;

/// The capital never falls below this (nats). Only without `restart`, and after days.
const POOREST: f32 = -1e6;

/// The table of recorded blocks, and when their bets raise an alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Drift {
    /// Inputs in a block; 0: the channel is off, and the rest is not looked at.
    pub block: u32,
    /// ln of the capital that raises the alarm, above 0.
    pub alarm: f32,
    /// Means of recorded blocks, ascending.
    pub levels: [f32; LEVELS],
    /// The share of familiar blocks above each level at most: descending, above 0, at most 1.
    pub p_values: [f32; LEVELS],
    /// Whether bets start again when the capital has fallen below its start. Without it the chance of ever raising a
    /// false alarm is at most `exp(-alarm)`, but a drift that comes after a long time is found late.
    pub restart: bool,
}

impl Drift {
    /// No drift channel.
    pub const OFF: Self =
        Self { block: 0, alarm: 0.0, levels: [0.0; LEVELS], p_values: [1.0; LEVELS], restart: true };

    /// The table of recorded blocks, whose means are given in ascending order. The p-values of its levels go in equal
    /// factors from ½ to 1/(n + 1). `None` without blocks.
    #[must_use]
    pub fn from_blocks(block: u32, alarm: f32, ascending: &[f32]) -> Option<Self> {
        let count = ascending.len();
        let smallest = 1.0 / (count as f32 + 1.0);
        // (2 / (n + 1)) ^ (1/6) by logarithms: the table is made on hosts, but has the same bits everywhere.
        let step = crate::scalar::exp(ln(2.0 * smallest) / (LEVELS - 1) as f32);
        let mut drift = Self { block, alarm, ..Self::OFF };
        let mut p = 0.5;
        for (level, p_value) in drift.levels.iter_mut().zip(&mut drift.p_values) {
            let wanted = (p / smallest) as usize;
            let rank = if wanted < 1 { 1 } else { wanted };
            *level = tame(*ascending.get(count.checked_sub(rank)?)?);
            *p_value = rank as f32 * smallest;
            p *= step;
        }
        Some(drift)
    }

    pub(super) fn is_sound(&self) -> bool {
        let finite = self.levels.iter().all(|x| x.is_finite());
        let ascending = self.levels.is_sorted();
        let shares = self.p_values.iter().all(|&p| 1e-12 < p && p <= 1.0);
        let descending = self.p_values.is_sorted_by(|a, b| a >= b);
        let alarm = self.alarm > 0.0 && self.alarm <= 1e4;
        self.block == 0 || (self.block <= MAX_BLOCK && alarm && finite && ascending && shares && descending)
    }

    /// The p-value of a block mean, and ln of the factor by which it multiplies the capital.
    fn bet(&self, mean: f32) -> (f32, f32) {
        let (mut p, mut next) = (1.0, 0.0);
        for (&level, &p_value) in self.levels.iter().zip(&self.p_values) {
            if mean > level {
                p = p_value;
            } else {
                next = p_value;
                break;
            }
        }
        (p, -ln(sqrt(p) + sqrt(next)))
    }
}

/// The block that is being filled, and the capital so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bets {
    /// Sum of the scores in the block, and how many.
    pub(super) sum: f64,
    pub(super) filled: u32,
    /// ln of the capital.
    pub(super) capital: f32,
    /// p-value of the last complete block; 1 before the first.
    pub(super) p_value: f32,
    /// An alarm was raised, and no familiar block came since.
    pub(super) drifting: bool,
}

impl Bets {
    pub(super) const NONE: Self = Self { sum: 0.0, filled: 0, capital: 0.0, p_value: 1.0, drifting: false };

    /// Drops the block that is being filled: inputs before and after a silence are not one block.
    pub(super) fn interrupt(&mut self) {
        (self.sum, self.filled) = (0.0, 0);
    }

    /// Takes in a score, at most `most` of it: single strange inputs are the votes' business.
    pub(super) fn push(&mut self, drift: &Drift, score: f32, most: f32) {
        if drift.block == 0 {
            return;
        }
        self.sum += f64::from(tame(if score < most { score } else { most }));
        self.filled = self.filled.saturating_add(1);
        if self.filled < drift.block {
            return;
        }
        let mean = (self.sum / f64::from(self.filled)) as f32;
        self.interrupt();
        let (p_value, gain) = drift.bet(mean);
        self.p_value = p_value;
        if self.drifting {
            // A block on which the bet loses is familiar: the drift is over, and bets start anew.
            if gain <= 0.0 {
                (self.drifting, self.capital) = (false, 0.0);
            }
            return;
        }
        let start = if drift.restart && self.capital < 0.0 { 0.0 } else { self.capital };
        let capital = start + gain;
        self.capital = if capital > POOREST { capital } else { POOREST };
        self.drifting = self.capital >= drift.alarm;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn the_expectation_of_a_bet_is_at_most_one_for_every_size_of_the_table() {
        for n in [1usize, 2, 3, 7, 18, 100, 1801, 40_000] {
            let blocks: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let drift = Drift::from_blocks(1, 1.0, &blocks).unwrap();
            assert!(drift.is_sound(), "{n}: {drift:?}");
            // A new block is as likely to fall between any two recorded ones: n + 1 places.
            let mean: f64 =
                (0..=n).map(|i| f64::from(drift.bet(i as f32 - 0.5).1).exp()).sum::<f64>() / (n + 1) as f64;
            assert!(mean <= 1.0 + 1e-5 && mean > 0.6, "{n}: {mean}");
            assert_eq!(drift.p_values[LEVELS - 1], 1.0 / (n as f32 + 1.0));
        }
        assert_eq!(Drift::from_blocks(1, 1.0, &[]), None);
    }

    #[test]
    fn levels_and_bets_are_those_of_the_formulas() {
        for n in [1usize, 2, 10, 99, 1000] {
            let blocks: Vec<f32> = (0..n).map(|i| 10.0 + i as f32).collect();
            let drift = Drift::from_blocks(3, 2.0, &blocks).unwrap();
            let parts = n as f32 + 1.0;
            let mut wanted = 0.5f64;
            for (level, p) in drift.levels.into_iter().zip(drift.p_values) {
                let above = blocks.iter().filter(|&&block| block > level).count();
                assert_eq!(p, (1.0 + above as f32) * (1.0 / parts), "{n}");
                // Rounded down to a rank.
                let rank = (f64::from(p) * f64::from(parts)).round();
                let lost = wanted * f64::from(parts) - rank;
                assert!((-1e-3..1.0 + 1e-3).contains(&lost), "{n}: {p}");
                wanted *= (2.0 / f64::from(parts)).powf(1.0 / 6.0);
            }
            assert_eq!((drift.block, drift.alarm, drift.restart), (3, 2.0, true));
            // Below all levels, between the first two that differ, and above all.
            let e = |p: f32, next: f32| 1.0 / (f64::from(p).sqrt() + f64::from(next).sqrt());
            let [first, last] = [drift.p_values[0], drift.p_values[LEVELS - 1]];
            for (mean, p, next) in [(drift.levels[0], 1.0, first), (10.0 + n as f32, last, 0.0)] {
                let (found, gain) = drift.bet(mean);
                assert!(
                    found == p && (f64::from(gain).exp() / e(p, next) - 1.0).abs() < 1e-5,
                    "{n}: {found} {gain}"
                );
            }
            let second = drift.p_values.into_iter().find(|&p| p < first).unwrap_or(0.0);
            let (p, gain) = drift.bet(drift.levels[0] + 0.5);
            assert!(
                p == first && (f64::from(gain).exp() / e(first, second) - 1.0).abs() < 1e-5,
                "{n}: {p} {gain}"
            );
        }
    }

    #[test]
    fn a_table_that_cannot_be_is_not_sound() {
        let drift = Drift { p_values: [0.5; LEVELS], ..Drift::from_blocks(1, 1.0, &[1.0, 2.0]).unwrap() };
        let ending = |first: f32, last: f32| {
            let mut all = [first; LEVELS];
            all[LEVELS - 1] = last;
            all
        };
        for good in [
            drift,
            Drift { block: MAX_BLOCK, ..drift },
            Drift { alarm: 1e4, ..drift },
            Drift { alarm: f32::MIN_POSITIVE, ..drift },
            Drift { block: 0, alarm: -1.0, ..drift },
            Drift { p_values: [1.0; LEVELS], ..drift },
            Drift { p_values: [1e-12f32.next_up(); LEVELS], ..drift },
            Drift { levels: ending(1.0, 1.0), ..drift },
            Drift { levels: ending(1.0, 2.0), ..drift },
            Drift { p_values: ending(0.5, 0.4), ..drift },
        ] {
            assert!(good.is_sound(), "{good:?}");
        }
        for bad in [
            Drift { block: MAX_BLOCK + 1, ..drift },
            Drift { alarm: 1e4f32.next_up(), ..drift },
            Drift { alarm: 0.0, ..drift },
            Drift { p_values: [1f32.next_up(); LEVELS], ..drift },
            Drift { p_values: [1e-12; LEVELS], ..drift },
            Drift { levels: ending(1.0, 0.5), ..drift },
            Drift { levels: ending(1.0, f32::INFINITY), ..drift },
            Drift { p_values: ending(0.5, 0.6), ..drift },
        ] {
            assert!(!bad.is_sound(), "{bad:?}");
        }
    }

    #[test]
    fn the_capital_starts_again_only_if_asked_and_has_a_floor() {
        let drift = Drift::from_blocks(2, 1.0, &[1.0, 2.0]).unwrap();
        let patient = Drift { restart: false, ..drift };
        let pushed = |drift: &Drift, bets: Bets, scores: &[f32]| {
            let mut bets = bets;
            scores.iter().for_each(|&score| bets.push(drift, score, 9.0));
            bets
        };
        let (_, loss) = drift.bet(0.0);
        assert!(loss < 0.0);
        assert_eq!(pushed(&drift, Bets::NONE, &[0.0; 4]).capital, loss);
        assert_eq!(pushed(&patient, Bets::NONE, &[0.0; 4]).capital, 2.0 * loss);
        // The mean of a block counts, and no score counts for more than the threshold.
        let (p, gain) = drift.bet(1.5);
        let half = pushed(&drift, Bets::NONE, &[3.0]);
        assert_eq!((half.sum, half.filled, half.capital), (3.0, 1, 0.0));
        let whole = pushed(&drift, half, &[0.0]);
        assert_eq!((whole.sum, whole.filled, whole.capital, whole.p_value), (0.0, 0, gain, p));
        let mut limited = Bets::NONE;
        [9.0, 0.5].iter().for_each(|&score| limited.push(&drift, score, 1.0));
        assert_eq!(limited.p_value, 1.0);
        let poor = Bets { capital: POOREST, ..Bets::NONE };
        assert_eq!(pushed(&patient, poor, &[0.0; 2]).capital, POOREST);
        let (_, won) = drift.bet(5.0);
        assert_eq!(pushed(&patient, poor, &[5.0; 2]).capital, POOREST + won);
        // The alarm is raised where the capital meets it.
        let exact = Drift { alarm: gain, ..drift };
        assert!(pushed(&exact, half, &[0.0]).drifting);
        // A channel that is off takes nothing.
        assert_eq!(pushed(&Drift::OFF, Bets::NONE, &[5.0; 3]), Bets::NONE);
    }

    /// Ville's inequality on independent blocks: with `restart` at most one alarm in A blocks, without it at most 1/A
    /// of all runs ever alarm.
    #[test]
    fn false_drift_alarms_are_as_rare_as_ville_says() {
        let mut seed = 1u64;
        let mut uniform = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / (1u64 << 24) as f32
        };
        let (alarm, blocks) = (100f32, 400_000u32);
        let (mut alarms, mut ever) = (0, 0);
        for _ in 0..20 {
            let mut recorded: Vec<f32> = (0..500).map(|_| uniform()).collect();
            recorded.sort_by(f32::total_cmp);
            let drift = Drift::from_blocks(1, ln(alarm), &recorded).unwrap();
            let mut bets = Bets::NONE;
            for _ in 0..blocks / 20 {
                let before = bets.drifting;
                bets.push(&drift, uniform(), 2.0);
                alarms += u32::from(bets.drifting && !before);
            }
            for _ in 0..100 {
                let mut bets = Bets::NONE;
                let patient = Drift { restart: false, ..drift };
                let mut alarmed = false;
                for _ in 0..200 {
                    bets.push(&patient, uniform(), 2.0);
                    alarmed |= bets.drifting;
                }
                ever += u32::from(alarmed);
            }
        }
        assert!(
            f64::from(alarms) <= f64::from(blocks) / f64::from(alarm),
            "{alarms} alarms in {blocks} blocks"
        );
        assert!(alarms > 0, "the test can see alarms");
        assert!(ever <= 2000 / 100, "{ever} of 2000 runs");
    }

    #[test]
    fn a_shift_that_no_single_input_shows_is_found_and_its_end_too() {
        let recorded: Vec<f32> = (0..200).map(|i| 1.0 + i as f32 / 200.0).collect();
        let drift = Drift::from_blocks(10, ln(1000.0), &recorded).unwrap();
        let mut bets = Bets::NONE;
        let mut blocks = 0;
        while !bets.drifting {
            (0..10).for_each(|_| bets.push(&drift, 2.5, 3.0));
            blocks += 1;
        }
        assert!(blocks <= 4, "{blocks} blocks");
        (0..100).for_each(|_| bets.push(&drift, 2.5, 3.0));
        assert!(bets.drifting, "it lasts as long as the drift");
        (0..10).for_each(|_| bets.push(&drift, 1.2, 3.0));
        assert!(!bets.drifting && bets.capital == 0.0);
    }
}
