//! Mean, spread and range of a stream of numbers, one at a time (Welford).
//!
//! ```text
//! n ← n + 1,   δ = x − mean,   mean ← mean + δ/n,   m2 ← m2 + δ (x − mean)
//! ```
//!
//! Sums are float64: after 2²⁴ values an f32 mean would not move any more. Plain additions, products and
//! quotients, so the bits are the same on a target that does them in software.

use crate::scalar::{in_domain, sqrt, tame};

/// What is known of the numbers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Running {
    count: u64,
    mean: f64,
    m2: f64,
    min: f32,
    max: f32,
}

impl Running {
    /// No numbers yet.
    pub const EMPTY: Self = Self { count: 0, mean: 0.0, m2: 0.0, min: 0.0, max: 0.0 };

    /// Takes in `x`, saturated at ±2⁵⁰. A number that is not finite is ignored.
    pub fn push(&mut self, x: f32) {
        if !x.is_finite() {
            return;
        }
        let x = tame(x);
        if self.count == 0 {
            (self.min, self.max) = (x, x);
        }
        self.min = if x < self.min { x } else { self.min };
        self.max = if x > self.max { x } else { self.max };
        self.count = self.count.saturating_add(1);
        let delta = f64::from(x) - self.mean;
        self.mean += delta / self.count as f64;
        self.m2 += delta * (f64::from(x) - self.mean);
    }

    /// How many numbers.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 without numbers.
    #[must_use]
    pub const fn mean(&self) -> f32 {
        self.mean as f32
    }

    /// Their standard deviation (divisor n); 0 without numbers.
    #[must_use]
    pub fn std(&self) -> f32 {
        if self.count == 0 { 0.0 } else { sqrt((self.m2 / self.count as f64) as f32) }
    }

    /// The smallest; 0 without numbers.
    #[must_use]
    pub const fn min(&self) -> f32 {
        self.min
    }

    /// The largest; 0 without numbers.
    #[must_use]
    pub const fn max(&self) -> f32 {
        self.max
    }

    /// Everything, little-endian: count, mean, m2, min, max.
    #[must_use]
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let words = [self.count, self.mean.to_bits(), self.m2.to_bits(), range_bits(self.min, self.max)];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        bytes
    }

    /// What [`Running::to_bytes`] gave; `None` for numbers that no stream has.
    #[must_use]
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let mut words = [0u64; 4];
        for (word, from) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*from);
        }
        let [count, mean, m2, range] = words;
        let (mean, m2) = (f64::from_bits(mean), f64::from_bits(m2));
        let (min, max) = (f32::from_bits(range as u32), f32::from_bits((range >> 32) as u32));
        // The mean may be a rounding below the smallest number, never far from it; and no number is farther from the mean
        // than the range is wide.
        let slack = 1e-9 * (f64::from(min).abs() + f64::from(max).abs());
        let range = f64::from(max) - f64::from(min) + slack;
        let sound = in_domain(min)
            && in_domain(max)
            && m2 >= 0.0
            && m2 <= count as f64 * (range * range)
            && min <= max
            && mean >= f64::from(min) - slack
            && mean <= f64::from(max) + slack
            && (count > 0 || (mean == 0.0 && m2 == 0.0 && min == 0.0 && max == 0.0));
        sound.then_some(Self { count, mean, m2, min, max })
    }
}

const fn range_bits(min: f32, max: f32) -> u64 {
    (max.to_bits() as u64) << 32 | min.to_bits() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_run_does_not_freeze() {
        let mut running = Running::EMPTY;
        for i in 0..20_000_000u32 {
            running.push(if i < 10_000_000 { 1.0 } else { 3.0 });
        }
        assert!((running.mean() - 2.0).abs() < 1e-5 && (running.std() - 1.0).abs() < 1e-5, "{running:?}");
    }

    #[test]
    fn wild_numbers_are_ignored_or_saturated() {
        let mut running = Running::EMPTY;
        for x in [f32::NAN, f32::INFINITY, f32::MAX, -f32::MAX, f32::MAX] {
            running.push(x);
        }
        assert_eq!(running.count(), 3);
        assert!(running.mean().is_finite() && running.std().is_finite());
    }

    fn read(count: u64, mean: f64, m2: f64, min: f32, max: f32) -> Option<Running> {
        Running::from_bytes(&Running { count, mean, m2, min, max }.to_bytes())
    }

    #[test]
    fn a_saved_mean_is_within_the_range_and_a_billionth_of_it() {
        // From 1 to 2 the slack is 3e-9.
        for (mean, taken) in [
            (1.0, true),
            (2.0, true),
            (1.0 - 2.9e-9, true),
            (2.0 + 2.9e-9, true),
            (1.0 - 3.1e-9, false),
            (2.0 + 3.1e-9, false),
            (0.5, false),
            (2.5, false),
            (f64::NAN, false),
        ] {
            assert_eq!(read(3, mean, 0.0, 1.0, 2.0).is_some(), taken, "{mean}");
        }
        // Between numbers of either sign, too: from −1 to 2 it is the same.
        assert!(read(3, 2.0 + 2.9e-9, 0.0, -1.0, 2.0).is_some());
        assert!(read(3, 2.0 + 3.1e-9, 0.0, -1.0, 2.0).is_none());
    }

    #[test]
    fn saved_squares_are_those_of_numbers_within_the_range() {
        let square = |range: f64| 4.0 * range * range;
        for (m2, taken) in [
            (0.0, true),
            (square(1.0), true),
            (square(1.0 + 2.9e-9), true),
            (square(1.0 + 3.1e-9), false),
            (-1e-300, false),
        ] {
            assert_eq!(read(4, 1.5, m2, 1.0, 2.0).is_some(), taken, "{m2}");
        }
    }

    #[test]
    fn no_numbers_have_no_statistics() {
        assert_eq!(read(0, 0.0, 0.0, 0.0, 0.0), Some(Running::EMPTY));
        for (mean, m2, min, max) in
            [(3.0, 0.0, 3.0, 3.0), (0.0, 0.0, 0.0, 5.0), (0.0, 0.0, -5.0, 0.0), (0.0, 1.0, 0.0, 0.0)]
        {
            assert_eq!(read(0, mean, m2, min, max), None, "{mean} {m2} {min} {max}");
        }
    }

    proptest! {
        #[test]
        fn it_is_the_mean_and_the_deviation(xs in prop::collection::vec(-1e3f32..1e3, 1..200)) {
            let mut running = Running::EMPTY;
            xs.iter().for_each(|&x| running.push(x));
            let n = xs.len() as f64;
            let mean = xs.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let var = xs.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((f64::from(running.mean()) - mean).abs() < 1e-4);
            prop_assert!((f64::from(running.std()) - libm::sqrt(var)).abs() < 1e-3);
            prop_assert!(xs.contains(&running.min()) && xs.contains(&running.max()));
            prop_assert!(xs.iter().all(|x| (running.min()..=running.max()).contains(x)));
            prop_assert_eq!(Running::from_bytes(&running.to_bytes()), Some(running));
        }

        #[test]
        fn any_bytes_are_refused_or_sound(bytes: [u8; 32], x: f32) {
            if let Some(mut running) = Running::from_bytes(&bytes) {
                prop_assert!(running.std() >= 0.0);
                running.push(x);
            }
        }
    }
}
