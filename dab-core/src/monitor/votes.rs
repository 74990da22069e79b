//! Votes of the last inputs, in constant memory and time, for windows of one input to half an hour at 1 kHz.
//!
//! The window is cut into at most 32 buckets that only count. A new input goes into the youngest bucket; when that is
//! full, the oldest one is emptied and becomes the youngest. Up to 32 inputs a bucket has one input and the window is
//! exact. A longer one has b = ⌈window / 32⌉ inputs in each of ⌈window / b⌉ buckets, of which the youngest fills up: it covers
//! fewer than b inputs less, or more, than `window`. Of 33, for instance, 33 and 34 in turn.

/// Buckets of a window.
pub(super) const BUCKETS: usize = 32;
/// Most inputs in a bucket.
const LARGEST_BUCKET: u32 = u16::MAX as u32;
/// Most inputs that vote.
pub const MAX_WINDOW: u32 = BUCKETS as u32 * LARGEST_BUCKET;

/// What inputs said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts<T> {
    /// Above `enter`.
    pub(super) high: T,
    /// At or below `exit`.
    pub(super) calm: T,
    /// Not an input at all.
    pub(super) rejected: T,
}

/// One input's votes.
pub(super) type Vote = Counts<bool>;

/// The votes of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Votes {
    pub(super) buckets: [Counts<u16>; BUCKETS],
    /// Of all buckets.
    sums: Counts<u32>,
    /// Inputs that a bucket takes, and buckets in use.
    bucket: u16,
    used: u8,
    /// The youngest bucket, and inputs in it.
    pub(super) youngest: u8,
    pub(super) filled: u16,
}

impl Votes {
    /// No votes yet; `window` was checked to be 1 to [`MAX_WINDOW`].
    pub(super) fn new(window: u32) -> Self {
        let bucket = window.div_ceil(BUCKETS as u32);
        // A division that cannot be by zero, which the compiler sees.
        let used = window.div_ceil(if bucket == 0 { 1 } else { bucket });
        Self {
            buckets: [Counts { high: 0, calm: 0, rejected: 0 }; BUCKETS],
            sums: Counts { high: 0, calm: 0, rejected: 0 },
            bucket: bucket as u16,
            used: used as u8,
            youngest: 0,
            filled: 0,
        }
    }

    /// Forgets all votes.
    pub(super) fn clear(&mut self) {
        self.buckets = [Counts { high: 0, calm: 0, rejected: 0 }; BUCKETS];
        self.sums = Counts { high: 0, calm: 0, rejected: 0 };
        (self.youngest, self.filled) = (0, 0);
    }

    /// The sums of the window.
    pub(super) const fn sums(&self) -> Counts<u32> {
        self.sums
    }

    /// Takes in one input's votes.
    pub(super) fn push(&mut self, vote: Vote) {
        if self.filled >= self.bucket {
            let next = self.youngest.wrapping_add(1);
            self.youngest = if next >= self.used { 0 } else { next };
            self.filled = 0;
            if let Some(oldest) = self.buckets.get_mut(usize::from(self.youngest)) {
                self.sums.high = self.sums.high.wrapping_sub(oldest.high.into());
                self.sums.calm = self.sums.calm.wrapping_sub(oldest.calm.into());
                self.sums.rejected = self.sums.rejected.wrapping_sub(oldest.rejected.into());
                *oldest = Counts { high: 0, calm: 0, rejected: 0 };
            }
        }
        self.filled = self.filled.wrapping_add(1);
        if let Some(bucket) = self.buckets.get_mut(usize::from(self.youngest)) {
            // A bucket takes at most 65,535 inputs: neither these nor the sums overflow.
            bucket.high = bucket.high.wrapping_add(vote.high.into());
            bucket.calm = bucket.calm.wrapping_add(vote.calm.into());
            bucket.rejected = bucket.rejected.wrapping_add(vote.rejected.into());
            self.sums.high = self.sums.high.wrapping_add(vote.high.into());
            self.sums.calm = self.sums.calm.wrapping_add(vote.calm.into());
            self.sums.rejected = self.sums.rejected.wrapping_add(vote.rejected.into());
        }
    }

    /// These votes with other buckets, as they were saved; `None` if no inputs give such buckets.
    pub(super) fn restored(self, buckets: [Counts<u16>; BUCKETS], youngest: u8, filled: u16) -> Option<Self> {
        let mut sums = Counts { high: 0u32, calm: 0, rejected: 0 };
        let mut sound = youngest < self.used && filled <= self.bucket;
        for (place, bucket) in buckets.iter().enumerate() {
            let most = if place == usize::from(youngest) {
                filled
            } else if place < usize::from(self.used) {
                self.bucket
            } else {
                0
            };
            sound &= bucket.high <= most && bucket.calm <= most && bucket.rejected <= most;
            sums.high = sums.high.wrapping_add(bucket.high.into());
            sums.calm = sums.calm.wrapping_add(bucket.calm.into());
            sums.rejected = sums.rejected.wrapping_add(bucket.rejected.into());
        }
        sound.then_some(Self { buckets, sums, youngest, filled, ..self })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_covers_its_full_buckets_and_what_is_in_the_youngest() {
        for window in (1u32..200).chain([1000, 3333]) {
            let bucket = window.div_ceil(32);
            let (mut votes, full) = (Votes::new(window), (window.div_ceil(bucket) - 1) * bucket);
            for inputs in 1..3 * window + 100 {
                votes.push(Vote { high: true, calm: false, rejected: false });
                let covered = full + (inputs - 1) % bucket + 1;
                assert_eq!(votes.sums().high, covered.min(inputs), "{inputs} inputs, window {window}");
                assert!(covered.abs_diff(window) < bucket);
            }
        }
    }

    proptest! {
        /// Up to 32 inputs exactly, beyond that within one bucket.
        #[test]
        fn the_sums_are_those_of_the_last_inputs(
            window in prop_oneof![1u32..=32, 33u32..3000], inputs in prop::collection::vec(any::<bool>(), 1..4000),
        ) {
            let mut votes = Votes::new(window);
            let mut seen = Vec::new();
            for high in inputs {
                votes.push(Vote { high, calm: !high, rejected: false });
                seen.push(high);
                let last = |n: u32| seen.iter().rev().take(n as usize).filter(|&&high| high).count() as u32;
                let bucket = window.div_ceil(32);
                prop_assert!(votes.sums().high <= last(window + bucket - 1));
                prop_assert!(votes.sums().high >= last(window.saturating_sub(bucket - 1).max(1)));
            }
        }
    }
}
