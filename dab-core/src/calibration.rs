//! From nats to a probability and a verdict.
//!
//! `uncertainty` + the held-out scores in the artifact → `p_value` → [`Verdict`].
//!
//! ```text
//! p(u) = (1 + #{sᵢ ≥ u}) / (n + 1),   sᵢ the scores of n held-out inputs like the training data
//! ```
//!
//! For an input that is exchangeable with the held-out ones, p ≤ a happens with probability at most a:
//! a false-alarm rate that holds for every n and every distribution. The table keeps up to 256 of the n
//! scores; between two of them the count is rounded *up*, so compression only makes alarms rarer.

use core::fmt;

/// Should the input be trusted?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Verdict {
    /// Like the training data.
    Familiar,
    /// Like the training data, but between two classes. Only in a model with channels.
    Ambiguous,
    /// Rare among the training data: `p ≤ doubtful`.
    Doubtful,
    /// Unlike the training data: `p ≤ unfamiliar`.
    Unfamiliar,
}

impl Verdict {
    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Familiar => "familiar",
            Self::Ambiguous => "ambiguous",
            Self::Doubtful => "doubtful",
            Self::Unfamiliar => "unfamiliar",
        }
    }
}

/// False-alarm rates at which familiar inputs may be called doubtful and unfamiliar.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rates {
    doubtful: f32,
    unfamiliar: f32,
}

impl Rates {
    /// One familiar input in twenty may be called doubtful, one in a hundred unfamiliar.
    pub const DEFAULT: Self = Self { doubtful: 0.05, unfamiliar: 0.01 };

    /// Both rates.
    ///
    /// # Errors
    /// Unless `0 < unfamiliar ≤ doubtful < 1`.
    pub fn new(doubtful: f32, unfamiliar: f32) -> Result<Self, RatesError> {
        for rate in [doubtful, unfamiliar] {
            if !(0.0 < rate && rate < 1.0) {
                return Err(RatesError::Range { rate });
            }
        }
        if unfamiliar > doubtful {
            return Err(RatesError::Order { doubtful, unfamiliar });
        }
        Ok(Self { doubtful, unfamiliar })
    }

    /// [`Rates::DEFAULT`], raised where that few held-out inputs could never reach them: n inputs give no p-value below
    /// 1 / (n + 1).
    #[must_use]
    pub fn for_held_out(held_out: u32) -> Self {
        let smallest = smallest_p(if held_out == 0 { 1 } else { held_out });
        let raised = |rate: f32| if rate < smallest { smallest } else { rate };
        Self { doubtful: raised(Self::DEFAULT.doubtful), unfamiliar: raised(Self::DEFAULT.unfamiliar) }
    }

    /// The rate of doubtful or worse.
    #[must_use]
    pub const fn doubtful(&self) -> f32 {
        self.doubtful
    }

    /// The rate of unfamiliar.
    #[must_use]
    pub const fn unfamiliar(&self) -> f32 {
        self.unfamiliar
    }

    /// The verdict on an input of that p-value.
    #[must_use]
    pub fn verdict(&self, p_value: f32) -> Verdict {
        if p_value <= self.unfamiliar {
            Verdict::Unfamiliar
        } else if p_value <= self.doubtful {
            Verdict::Doubtful
        } else {
            Verdict::Familiar
        }
    }
}

/// The smallest p-value that so many held-out inputs give, 1 / (n + 1).
fn smallest_p(held_out: u32) -> f32 {
    1.0 / (held_out as f32 + 1.0)
}

/// The least number of held-out inputs that reach p-values of `rate`: about 1 / rate − 1.
fn needed_for(rate: f32) -> u32 {
    // Rounding may miss by one on either side.
    let near = ((1.0 / rate) as u32).saturating_sub(2);
    (0..4).map(|more| near.saturating_add(more)).find(|&n| smallest_p(n) <= rate).unwrap_or(u32::MAX)
}

/// Why two numbers are not [`Rates`], or not those of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RatesError {
    /// A rate is not above 0 and below 1.
    Range {
        /// The rate that was given.
        rate: f32,
    },
    /// More inputs would be unfamiliar than doubtful or worse.
    Order {
        /// The rate of doubtful or worse that was given.
        doubtful: f32,
        /// The rate of unfamiliar that was given.
        unfamiliar: f32,
    },
    /// The model has no calibration table, so that no rate means anything.
    NotCalibrated,
    /// The table has too few held-out inputs for this rate: nothing would ever be called so.
    Unreachable {
        /// The rate that was given.
        rate: f32,
        /// Held-out inputs behind the table.
        held_out: u32,
        /// Held-out inputs that the rate needs.
        needed: u32,
    },
}

impl fmt::Display for RatesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Range { rate } => write!(f, "a false-alarm rate is {rate}, it must be above 0 and below 1"),
            Self::Order { doubtful, unfamiliar } => {
                write!(f, "the rate of unfamiliar, {unfamiliar}, is above the rate of doubtful, {doubtful}")
            }
            Self::NotCalibrated => write!(f, "the model has no calibration table for this"),
            Self::Unreachable { rate, held_out, needed } => write!(
                f,
                "a false-alarm rate of {rate} needs {needed} held-out inputs, the model has {held_out}: \
                 nothing would ever be called so"
            ),
        }
    }
}

impl core::error::Error for RatesError {}

/// The calibration table of an artifact.
#[derive(Clone, Copy, Debug)]
pub struct Calibration<'a> {
    /// Chosen held-out scores, nats, strictly ascending, the largest of all last.
    pub scores: &'a [f32],
    /// `p_values[j]` is p just above `scores[j]`: `(1 + #{sᵢ > scores[j]}) / (n + 1)`, strictly descending.
    pub p_values: &'a [f32],
    /// How many held-out inputs the table was made from, n.
    pub held_out: u32,
}

impl Calibration<'_> {
    /// p of a score, in `(0, 1]`; not increasing in it, and never below the uncompressed formula.
    #[must_use]
    pub fn p_value(&self, score: f32) -> f32 {
        let below = self.scores.partition_point(|&s| s < score);
        match below.checked_sub(1) {
            Some(j) => self.p_values.get(j).copied().unwrap_or(1.0),
            None => 1.0,
        }
    }

    /// Whether some score has a p of at most `rate`: whether an alarm at that rate can happen at all.
    ///
    /// # Errors
    /// [`RatesError::Unreachable`], with the number of held-out inputs that the rate needs.
    pub fn check_reach(&self, rate: f32) -> Result<(), RatesError> {
        if self.threshold(rate).is_some() {
            return Ok(());
        }
        Err(RatesError::Unreachable { rate, held_out: self.held_out, needed: needed_for(rate) })
    }

    /// The largest score whose p is still above `rate`: everything beyond it is an alarm at that
    /// rate. `None` when the held-out inputs are too few for any alarm (fewer than `1/rate − 1`).
    #[must_use]
    pub fn threshold(&self, rate: f32) -> Option<f32> {
        let first = self.p_values.partition_point(|&p| p > rate);
        self.scores.get(first).copied()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_table_is_the_conformal_formula() {
        // Four held-out scores 1, 2, 2, 5.
        let table = Calibration { scores: &[1.0, 2.0, 5.0], p_values: &[0.8, 0.4, 0.2], held_out: 4 };
        for (u, at_least) in
            [(0.0, 4.0), (1.0, 4.0), (1.5, 3.0), (2.0, 3.0), (3.0, 1.0), (5.0, 1.0), (6.0, 0.0)]
        {
            assert_eq!(table.p_value(u), (1.0 + at_least) / 5.0, "u = {u}");
        }
    }

    #[test]
    fn alarms_begin_just_above_the_threshold() {
        let table = Calibration { scores: &[1.0, 2.0, 5.0], p_values: &[0.8, 0.4, 0.2], held_out: 4 };
        for rate in [0.2, 0.3, 0.4, 0.79, 0.8, 0.99] {
            let threshold = table.threshold(rate).unwrap();
            assert!(table.p_value(threshold) > rate && table.p_value(threshold.next_up()) <= rate);
        }
        assert_eq!(table.threshold(0.19), None);
    }

    #[test]
    fn rates_are_ordered_probabilities() {
        for (doubtful, unfamiliar, words) in [
            (0.01, 0.05, "the rate of unfamiliar, 0.05, is above the rate of doubtful, 0.01"),
            (0.05, 0.0, "a false-alarm rate is 0, it must be above 0 and below 1"),
            (1.0, 0.01, "a false-alarm rate is 1, it must be above 0 and below 1"),
            (f32::NAN, 0.01, "a false-alarm rate is NaN, it must be above 0 and below 1"),
            (0.05, f32::NAN, "a false-alarm rate is NaN, it must be above 0 and below 1"),
        ] {
            assert_eq!(Rates::new(doubtful, unfamiliar).unwrap_err().to_string(), words);
        }
        assert_eq!(Rates::DEFAULT.verdict(0.01), Verdict::Unfamiliar);
        assert_eq!(Rates::DEFAULT.verdict(0.05), Verdict::Doubtful);
        assert_eq!(Rates::DEFAULT.verdict(0.051), Verdict::Familiar);
    }

    #[test]
    fn few_held_out_inputs_raise_the_rates_to_what_they_can_reach() {
        for (held_out, doubtful, unfamiliar) in
            [(0, 0.5, 0.5), (1, 0.5, 0.5), (3, 0.25, 0.25), (31, 0.05, 0.031_25), (1000, 0.05, 0.01)]
        {
            let rates = Rates::for_held_out(held_out);
            assert_eq!((rates.doubtful(), rates.unfamiliar()), (doubtful, unfamiliar), "{held_out}");
        }
    }

    #[test]
    fn verdicts_have_the_names_of_the_reports() {
        let all = [Verdict::Familiar, Verdict::Ambiguous, Verdict::Doubtful, Verdict::Unfamiliar];
        assert_eq!(all.map(Verdict::name), ["familiar", "ambiguous", "doubtful", "unfamiliar"]);
    }
}
