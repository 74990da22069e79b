//! The two channels of an answer: how unfamiliar an input is (U), and how ambiguous (A).
//!
//! Every view of an input gives a distance u (method.md E6) and, where it has a decoder of classes, an energy E (E15–E17):
//!
//! ```text
//! E = −ln Σⱼ e^lⱼ                    A = ln Σ_{j≠ŷ} e^lⱼ − l_ŷ            logits l, ŷ the largest
//! g(t; a, b) = ln(1 + e^((t − a)/b))                                     ≈ −ln p on familiar data
//! t = u | g_E(E) + max(0, g_u(u) − 1) | g_E(E) + g_u(u) | E              by the view's form
//! U = (1/V) Σᵥ g(tᵥ; tail of the view)
//! ```
//!
//! An input between two known classes is ambiguous, one far from all of them is unfamiliar: one number cannot say both.
//! The scores of different views have different units; g makes surprises of them, and those can be added. E costs
//! no exponential beyond those of A: E = −(l_ŷ + ln(1 + e^A)).

pub use crate::artifact::schema::{DecoderReads, Form};
use crate::linalg::dot;
use crate::scalar::{SMALLEST, ln, saturate, softplus};

/// The mean of −ln p on familiar data: below it, a distance is no surprise.
const EXPECTED_SURPRISE: f32 = 1.0;

/// Surprises below this, 2⁻¹⁰⁰, are zero: a quarter of them would be no normal number, and a process that flushes those
/// would get other bits.
const NEGLIGIBLE: f32 = SMALLEST * SMALLEST;

/// The upper tail of a score on familiar data: exponential beyond its 90 % quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Where the tail would begin if all of the data followed it.
    pub a: f32,
    /// Its scale, positive.
    pub b: f32,
}

impl Tail {
    /// g(t) = ln(1 + eᵗ): the tail of a score that is not used.
    pub const UNIT: Self = Self { a: 0.0, b: 1.0 };

    /// g(score) (E16): how surprising it is, about −ln p on familiar data. In `[0, f32::MAX]`, not decreasing in the score.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[must_use]
    pub fn surprise(&self, score: f32) -> f32 {
        let position = (score - self.a) / self.b;
        let position = if position > f32::MAX { f32::MAX } else { position };
        let surprise = saturate(softplus(position));
        if surprise < NEGLIGIBLE { 0.0 } else { surprise }
    }
}

/// The tails of one view: of its distance, of its energy, and of the score that its form makes of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tails {
    /// Of the distance u.
    pub u: Tail,
    /// Of the energy E; [`Tail::UNIT`] where the form does not use it.
    pub energy: Tail,
    /// Of the view's score t.
    pub view: Tail,
}

impl Tails {
    /// Tails that are not fitted yet.
    pub const UNIT: Self = Self { u: Tail::UNIT, energy: Tail::UNIT, view: Tail::UNIT };

    /// The score t of a view from its distance and its energy, by its form; without an energy it is the distance.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[must_use]
    pub fn score(&self, form: Form, distance: f32, energy: Option<f32>) -> f32 {
        let Some(energy) = energy else { return distance };
        match form {
            Form::Distance => distance,
            Form::Energy => energy,
            Form::Joined | Form::Sum => {
                let mut surprise = self.u.surprise(distance);
                if form == Form::Joined {
                    let beyond = surprise - EXPECTED_SURPRISE;
                    surprise = if beyond > 0.0 { beyond } else { 0.0 };
                }
                saturate(self.energy.surprise(energy) + surprise)
            }
        }
    }

    /// From the six values of a view in the part `tails`.
    pub(crate) fn from_values(values: &[f32]) -> Self {
        let mut rest = values.iter().copied();
        let mut tail = || Tail { a: rest.next().unwrap_or(0.0), b: rest.next().unwrap_or(1.0) };
        Self { u: tail(), energy: tail(), view: tail() }
    }

    /// The six values of a view in the part `tails`.
    #[cfg(feature = "alloc")]
    pub(crate) const fn values(&self) -> [f32; 6] {
        [self.u.a, self.u.b, self.energy.a, self.energy.b, self.view.a, self.view.b]
    }
}

/// What one view says of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ViewScore {
    /// Expected distance u from the view's codebook, nats.
    pub distance: f32,
    /// Energy E of the view's logits, nats; `None` without a decoder of classes.
    pub energy: Option<f32>,
    /// The score t that the view's form makes of both.
    pub score: f32,
    /// g(t): how surprising that is. The mean over the views is the unfamiliarity U.
    pub surprise: f32,
}

/// What the logits say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Logits {
    /// The largest, the first of equal ones.
    pub(crate) class: usize,
    /// The energy E.
    pub(crate) energy: f32,
    /// The second largest, and the ambiguity A; `None` with one logit.
    pub(crate) runner_up: Option<(usize, f32)>,
}

/// The largest of `logits`, the first of equal ones, and its place; `skip` is passed over.
#[inline(always)]
fn largest(logits: &[f32], skip: usize) -> Option<(usize, f32)> {
    let mut best: Option<(usize, f32)> = None;
    for (i, &l) in logits.iter().enumerate() {
        if i != skip && best.is_none_or(|(_, b)| l > b) {
            best = Some((i, l));
        }
    }
    best
}

/// Class, energy and ambiguity of logits in the numeric domain; `None` without a logit. One exponential per class.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub(crate) fn read_logits(logits: &mut [f32]) -> Option<Logits> {
    let (class, top) = largest(logits, usize::MAX)?;
    let Some((second, runner_up)) = largest(logits, class) else {
        return Some(Logits { class, energy: -top, runner_up: None });
    };
    // The class itself is left out of the sum: e to the power of this is 0.
    if let Some(l) = logits.get_mut(class) {
        *l = f32::MIN;
    }
    let others = dot::sum(logits, |l| crate::scalar::exp(l - runner_up));
    if let Some(l) = logits.get_mut(class) {
        *l = top;
    }
    let ambiguity = (runner_up + ln(others)) - top;
    Some(Logits { class, energy: -(top + softplus(ambiguity)), runner_up: Some((second, ambiguity)) })
}

/// Fitting of tails, on the host.
#[cfg(feature = "alloc")]
mod fit {
    use alloc::vec::Vec;

    use super::Tail;

    /// The quantile beyond which the tail is fitted.
    const QUANTILE: f64 = 0.9;
    /// A scale is at least this share of the scores' standard deviation: a table of equal scores has no tail, and a
    /// scale of 0 would make every later score infinitely surprising.
    const LEAST_SCALE: f64 = 1e-3;
    /// Least scale beside the size of the scores themselves, a few units of f32's last place.
    const LEAST_RELATIVE: f64 = 1e-6;
    /// An excess counts for so many times the median one at most. Of an exponential tail one in a thousand is larger; without a limit
    /// one outlier among the scores would make every stranger look familiar.
    const LARGEST_EXCESS: f64 = 10.0;

    impl Tail {
        /// The tail of held-out scores: beyond their 90 % quantile q (linear between neighbours) the mean excess is b, where none
        /// counts for more than ten times the median one, and a = q − b ln 9, so that g(q) = ln 10. `None` without scores, or if one
        /// is not finite.
        #[must_use]
        pub fn fit(scores: &[f32]) -> Option<Self> {
            let mut sorted: Vec<f64> = scores.iter().map(|&s| f64::from(s)).collect();
            if sorted.is_empty() || sorted.iter().any(|s| !s.is_finite()) {
                return None;
            }
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len() as f64;
            let place = QUANTILE * (n - 1.0);
            let below = libm::floor(place);
            let at = |i: f64| sorted.get(i as usize).or(sorted.last()).copied().unwrap_or(0.0);
            let q = at(below) + (place - below) * (at(below + 1.0) - at(below));
            let above = sorted.partition_point(|&s| s <= q);
            let count = sorted.len() - above;
            if let Some(median) = sorted.get(above + count / 2) {
                let most = q + LARGEST_EXCESS * (median - q);
                sorted.iter_mut().for_each(|s| *s = s.min(most));
            }
            let sum: f64 = sorted.iter().skip(above).map(|s| s - q).sum();
            let mean = sorted.iter().sum::<f64>() / n;
            let variance = sorted.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / n;
            let least = (LEAST_SCALE * libm::sqrt(variance)).max(LEAST_RELATIVE * q.abs().max(1.0));
            let b = (sum / count.max(1) as f64).max(least);
            Some(Self { a: (q - b * libm::log(9.0)) as f32, b: b as f32 })
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::scalar::LARGEST;
    use proptest::prelude::*;

    /// f32 sums and elementary functions of a few ulp against float64.
    const RELATIVE: f64 = 2e-6;

    fn exact(logits: &[f32]) -> (f64, f64) {
        let l: Vec<f64> = logits.iter().map(|&l| l.into()).collect();
        let top = l.iter().copied().fold(f64::MIN, f64::max);
        let class = l.iter().position(|&x| x == top).unwrap();
        let energy = -(top + libm::log(l.iter().map(|x| libm::exp(x - top)).sum()));
        let others = l.iter().enumerate().filter(|&(i, _)| i != class).map(|(_, &x)| x);
        let second = others.clone().fold(f64::MIN, f64::max);
        (energy, second + libm::log(others.map(|x| libm::exp(x - second)).sum()) - top)
    }

    proptest! {
        #[test]
        fn energy_and_ambiguity_agree_with_float64(logits in prop::collection::vec(-30f32..30.0, 2..40)) {
            let mut copy = logits.clone();
            let found = read_logits(&mut copy).unwrap();
            prop_assert_eq!(&copy, &logits, "the logits are left as they were");
            let (energy, ambiguity) = exact(&logits);
            let (_, a) = found.runner_up.unwrap();
            prop_assert!((f64::from(found.energy) - energy).abs() <= RELATIVE * (30.0 + energy.abs()));
            prop_assert!((f64::from(a) - ambiguity).abs() <= RELATIVE * (60.0 + ambiguity.abs()));
        }

        #[test]
        fn surprise_never_decreases_but_by_rounding_and_is_finite(
            a in -1e3f32..1e3, b in 1e-3f32..1e3, x in proptest::num::f32::NORMAL, y in proptest::num::f32::NORMAL,
        ) {
            let tail = Tail { a, b };
            let (low, high) = if x < y { (x, y) } else { (y, x) };
            // The exponential and the logarithm of two neighbours may be rounded apart.
            prop_assert!(tail.surprise(low) <= tail.surprise(high) * (1.0 + 4.0 * f32::EPSILON));
            prop_assert!(tail.surprise(high).is_finite() && tail.surprise(low) >= 0.0);
        }
    }

    #[test]
    fn extreme_logits_stay_finite() {
        for logits in [[LARGEST, -LARGEST, 0.0], [-LARGEST; 3], [LARGEST; 3], [0.0, LARGEST, LARGEST]] {
            let found = read_logits(&mut logits.clone()).unwrap();
            let (_, a) = found.runner_up.unwrap();
            assert!(found.energy.is_finite() && a.is_finite(), "{logits:?} {found:?}");
        }
        assert_eq!(read_logits(&mut [2.5]).map(|l| (l.energy, l.runner_up)), Some((-2.5, None)));
        assert_eq!(read_logits(&mut []), None);
        let tied = read_logits(&mut [1.0, 3.0, 3.0, 2.0]).unwrap();
        assert_eq!((tied.class, tied.runner_up.map(|r| r.0)), (1, Some(2)), "the first of equal ones");
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_fitted_tail_says_minus_ln_p() {
        // Exponential scores of scale 2: −ln p of t is t / 2 for all of them.
        let n = 10_000;
        let scores: Vec<f32> =
            (0..n).map(|i| (-2.0 * libm::log((f64::from(i) + 0.5) / f64::from(n))) as f32).collect();
        let tail = Tail::fit(&scores).unwrap();
        for (t, least, most) in [(4.605, 2.25, 2.35), (10.0, 4.8, 5.2), (20.0, 9.6, 10.4)] {
            let g = tail.surprise(t);
            assert!(least < g && g < most, "g({t}) = {g}, {tail:?}");
        }
        assert!(Tail::fit(&[3.0; 5]).unwrap().b > 0.0, "equal scores have a scale");
        assert!(Tail::fit(&[]).is_none() && Tail::fit(&[f32::NAN]).is_none());
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_tail_is_fitted_as_its_formula_says() {
        let ln_9 = libm::log(9.0);
        let holds = |scores: &[f32], q: f64, b: f64| {
            let tail = Tail::fit(scores).unwrap();
            assert!((f64::from(tail.b) - b).abs() <= RELATIVE * b, "{tail:?}, not b = {b}");
            assert!((f64::from(tail.a) - (q - b * ln_9)).abs() <= RELATIVE * 100.0, "{tail:?}, not q = {q}");
        };
        // The quantile lies 0.3 of the way from the seventh score to the eighth, which is 7 beyond it.
        holds(&[16.0, 0.0, 5.0, 2.0, 3.0, 4.0, 1.0, 6.0], 9.0, 7.0);
        // It is the tenth of eleven scores, which is not beyond itself.
        holds(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 20.0], 9.0, 11.0);
        // Nothing lies beyond it: a thousandth of the standard deviation, which is 5.
        let halves: Vec<f32> = (0..20).map(|i| if i < 10 { 0.0 } else { 10.0 }).collect();
        holds(&halves, 10.0, 5e-3);
        // Nor do the scores differ: a millionth of their size, which counts as 1 at least.
        holds(&[3.0; 5], 3.0, 3e-6);
        holds(&[0.25; 5], 0.25, 1e-6);
        // Of 31 scores three lie beyond 27, by 1, 2 and 900. The last counts for ten times the one between them.
        let mut far: Vec<f32> = (0..30u8).map(f32::from).collect();
        far.push(927.0);
        holds(&far, 27.0, (1.0 + 2.0 + 20.0) / 3.0);
        // The least scale does not hear of it either: twenty excesses of 1e-6, and one of 1e6.
        let mut near: Vec<f32> =
            (0..210).map(|i| if i < 189 { i as f32 / 188.0 } else { 1.0 + 2e-6 }).collect();
        near[209] = 1e6;
        assert!(Tail::fit(&near).unwrap().b < 1e-3, "{:?}", Tail::fit(&near));
    }

    #[test]
    fn a_score_far_below_its_tail_is_no_surprise_at_all() {
        assert_eq!(Tail::UNIT.surprise(-80.0), 0.0);
        assert!(Tail::UNIT.surprise(-40.0) > 0.0);
        assert_eq!(Tail { a: -f32::MAX, b: 0.5 }.surprise(f32::MAX), f32::MAX);
    }
}
