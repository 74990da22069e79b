//! How a memory changes: new codes, codes that move towards an input, places that become free.
//!
//! ```text
//! n_κ ← keep · n_κ
//! D_min > spawn and a place is free:   a new code, m = μ, v = s², n = 1
//! otherwise the nearest code:          n ← min(n + 1, horizon), η = 1/n, δ = μ − m, m ← m + ηδ
//!                                      v ← min((1 − η)(v + ηδ²) + ηs², widen · s²)
//! ```

use super::{Head, MemoryView, domain_variance};
use crate::codebook::Expected;
use crate::linalg::dot::sum;
use crate::scalar::{ln, tame};

/// A count below this, a thousandth of a visit, is forgotten: the place of the code is free again.
const FORGOTTEN: f32 = 1.0 / 1024.0;

impl MemoryView<'_> {
    /// Learns the input, of which `expected` is the score among all codes. Whether it became a new code.
    pub(super) fn learn(&mut self, expected: &Expected) -> bool {
        let Head { config, pinned, used } = *self.head;
        if config.keep < 1.0 {
            for n in self.counts.get_mut(pinned..used).unwrap_or_default() {
                let kept = config.keep * *n;
                *n = if kept < FORGOTTEN { 0.0 } else { kept };
            }
        }
        // Also for a memory without codes, where the distance is the largest number.
        let far = used == 0 || expected.nearest_distance > config.spawn;
        if far && let Some(place) = self.free_place() {
            self.place(place);
            if place >= used {
                self.head.used = place + 1;
            }
            return true;
        }
        if expected.nearest >= pinned {
            self.absorb(expected.nearest);
        } else if far && let Some(nearest) = self.nearest_observed() {
            // Taught codes stay as they are.
            self.absorb(nearest);
        }
        false
    }

    /// A place without a code: one whose code was forgotten, or the first behind all others.
    pub(super) fn free_place(&self) -> Option<usize> {
        let Head { used, pinned, .. } = *self.head;
        let observed = self.counts.get(pinned..used).unwrap_or_default();
        let forgotten = observed.iter().position(|&n| n == 0.0).map(|i| pinned + i);
        forgotten.or(if used < self.counts.len() { Some(used) } else { None })
    }

    /// The nearest code that was not taught, by the distances of the last score.
    fn nearest_observed(&self) -> Option<usize> {
        let Head { used, pinned, .. } = *self.head;
        let mut best = None;
        let mut least = f32::INFINITY;
        for (k, (&d, &n)) in self.distances.iter().zip(&*self.counts).enumerate().take(used).skip(pinned) {
            if n > 0.0 && d < least {
                (best, least) = (Some(k), d);
            }
        }
        best
    }

    /// Makes the input a code of count 1 at `place`.
    pub(super) fn place(&mut self, place: usize) {
        if let Some(n) = self.counts.get_mut(place) {
            *n = 0.0;
        }
        // With a count of 0 the first step of η = 1 forgets what was there.
        self.absorb(place);
    }

    /// Moves code `place` towards the input.
    pub(super) fn absorb(&mut self, place: usize) {
        let (dim, config) = (self.dim, self.head.config);
        let at = place * dim;
        let Some(n) = self.counts.get_mut(place) else { return };
        let horizon = config.horizon as f32;
        *n = if *n + 1.0 > horizon { horizon } else { *n + 1.0 };
        let rate = 1.0 / *n;
        let fresh = rate == 1.0;
        let means = self.means.get_mut(at..at + dim).unwrap_or_default();
        let precisions = self.precisions.get_mut(at..at + dim).unwrap_or_default();
        let [mean, variance] = &self.input;
        for (((m, p), &x), &s) in means.iter_mut().zip(precisions.iter_mut()).zip(&**mean).zip(&**variance) {
            let least = 1.0 / s;
            if fresh {
                (*m, *p) = (x, least);
                continue;
            }
            let offset = x - *m;
            *m = tame(*m + rate * offset);
            let spread = (1.0 - rate) * (1.0 / *p + rate * (offset * offset)) + rate * s;
            let widest = config.widen * s;
            let spread = if spread < widest { spread } else { widest };
            let narrowest = if *p > least { *p } else { least };
            let precision = 1.0 / domain_variance(spread);
            *p = if precision < narrowest { precision } else { narrowest };
        }
        let log_det = -sum(precisions, ln);
        if let Some(to) = self.log_dets.get_mut(place) {
            *to = log_det;
        }
    }

    /// Copies code `from` to the place `to`.
    pub(super) fn copy_code(&mut self, from: usize, to: usize) {
        let dim = self.dim;
        for values in [&mut *self.counts, &mut *self.log_dets] {
            copy_row(values, 1, from, to);
        }
        for values in [&mut *self.means, &mut *self.precisions] {
            copy_row(values, dim, from, to);
        }
    }
}

/// Copies row `from` to row `to`, rows of `width` values.
fn copy_row(values: &mut [f32], width: usize, from: usize, to: usize) {
    for i in 0..width {
        let value = values.get(from * width + i).copied();
        if let (Some(value), Some(place)) = (value, values.get_mut(to * width + i)) {
            *place = value;
        }
    }
}
