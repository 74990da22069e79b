//! A codebook that learns where it runs: how often was something like this seen before?
//!
//! `MemoryView` takes a Gaussian N(μ, diag s²), says how novel it is, and then remembers it. The codes are an
//! ordinary diagonal [`CodebookView`] with counts for priors, so distances, assignment and uncertainty are the
//! kernels of `codebook.rs` (method.md E4–E6).
//!
//! ```text
//! score    w_κ = n_κ e^{−α(D_κ − D_min)},   visits = e^{−α D_min} Σ w,   bonus = 1/√(1 + visits)
//! learn    n_κ ← keep · n_κ
//!          D_min > spawn and a place is free:   a new code, m = μ, v = s², n = 1
//!          otherwise the nearest code:          n ← min(n + 1, horizon), η = 1/n, δ = μ − m, m ← m + ηδ
//!                                               v ← min((1 − η)(v + ηδ²) + ηs², widen · s²)
//! ```
//!
//! Codes keep their precision `1/v` and not v: that is what a distance needs. It is never above the largest `1/s²`
//! that was seen, to the last bit. A full memory never throws a code away: what is far from all codes is absorbed
//! by the nearest one. Memory and time are fixed by the number of places and the dimension.
//!
//! Taught codes ([`MemoryView::teach`]) come first in the list, are *pinned* there, and neither fade nor move when
//! others are observed.

mod config;
mod fixed;
mod learn;
mod saved;

pub use config::{Config, ConfigError, LARGEST_HORIZON, MemoryError};
pub use fixed::Memory;
pub use saved::saved_len;

use crate::codebook::{CodebookView, Expected, PrecisionLayout};
use crate::divergence::{CodeView, Precision};
use crate::gaussian::{GaussianView, Spread};
use crate::linalg::dot::{sum, take};
pub use crate::saved::RestoreError;
use crate::scalar::{LARGEST, SMALLEST, ln, sqrt, tame};

/// What a memory says of one input.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Novelty {
    /// `1/√(1 + visits)`: 1 for what was never seen, towards 0 for what was seen often. Above 0, at most 1.
    pub bonus: f32,
    /// How often something like this was seen: soft counts, each weighted with `e^{−α D}`.
    pub visits: f32,
    /// Expected distance from the codes, nats; `f32::MAX` while the memory is empty.
    pub uncertainty: f32,
    /// The closest code; 0 while the memory is empty.
    pub nearest: usize,
    /// Its distance, nats; `f32::MAX` while the memory is empty.
    pub nearest_distance: f32,
    /// Whether this call made a new code of the input.
    pub spawned: bool,
}

/// The spread of an input.
#[derive(Clone, Copy, Debug)]
pub enum Width<'a> {
    /// One standard deviation per dimension.
    Std(&'a [f32]),
    /// The same standard deviation in every dimension.
    EveryStd(f32),
    /// As an encoder gives it. Of a full covariance only the variances count.
    Spread(Spread<'a>),
}

/// What a memory is besides its codes: the settings, and how many codes there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    config: Config,
    used: usize,
    pinned: usize,
}

impl Head {
    /// An empty memory with these settings.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config, used: 0, pinned: 0 })
    }
}

/// Most places of a memory.
pub const MAX_CODES: usize = 1 << 16;
/// Largest dimension of a memory.
pub const MAX_DIM: usize = 1 << 10;

/// Floats of storage for a memory of `codes` places and dimension `dim`: for each place a count, a log-determinant, a
/// distance, a mean and a precision; and one input.
#[must_use]
pub const fn storage_len(codes: usize, dim: usize) -> usize {
    codes * (3 + 2 * dim) + 2 * dim
}

/// A memory whose numbers lie in storage of the caller.
#[derive(Debug)]
pub struct MemoryView<'a> {
    head: &'a mut Head,
    dim: usize,
    counts: &'a mut [f32],
    log_dets: &'a mut [f32],
    distances: &'a mut [f32],
    means: &'a mut [f32],
    precisions: &'a mut [f32],
    /// The mean and the variances of the input at hand, in the numeric domain.
    input: [&'a mut [f32]; 2],
}

impl<'a> MemoryView<'a> {
    /// The memory that `head` and `storage` are. A new one begins with [`Head::new`] and storage of any contents; later
    /// calls must give the same two again.
    ///
    /// # Errors
    /// When there is no place or no dimension, more than [`MAX_CODES`] or [`MAX_DIM`], or the storage is shorter than
    /// [`storage_len`].
    pub fn new(
        head: &'a mut Head,
        codes: usize,
        dim: usize,
        storage: &'a mut [f32],
    ) -> Result<Self, MemoryError> {
        if !(1..=MAX_CODES).contains(&codes) || !(1..=MAX_DIM).contains(&dim) {
            return Err(MemoryError::Shape { codes, dim });
        }
        let short = MemoryError::Storage { needed: storage_len(codes, dim), found: storage.len() };
        let (counts, rest) = storage.split_at_mut_checked(codes).ok_or(short)?;
        let (log_dets, rest) = rest.split_at_mut_checked(codes).ok_or(short)?;
        let (distances, rest) = rest.split_at_mut_checked(codes).ok_or(short)?;
        let (means, rest) = rest.split_at_mut_checked(codes * dim).ok_or(short)?;
        let (precisions, rest) = rest.split_at_mut_checked(codes * dim).ok_or(short)?;
        let (mean, rest) = rest.split_at_mut_checked(dim).ok_or(short)?;
        let variance = rest.get_mut(..dim).ok_or(short)?;
        Ok(Self { head, dim, counts, log_dets, distances, means, precisions, input: [mean, variance] })
    }

    /// How many codes there can be.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.counts.len()
    }

    /// How many codes there are; places whose code was forgotten count until they are used again.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.head.used
    }

    /// Whether nothing was seen or taught.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head.used == 0
    }

    /// How many of the codes, the first ones, were taught.
    #[must_use]
    pub const fn pinned(&self) -> usize {
        self.head.pinned
    }

    /// The dimension.
    #[must_use]
    pub const fn dim(&self) -> usize {
        self.dim
    }

    /// The sum of all counts.
    #[must_use]
    pub fn total(&self) -> f32 {
        sum(take(self.counts, self.head.used).0, |n| n)
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.head.config
    }

    /// The codes, with counts for priors.
    #[must_use]
    pub fn codes(&self) -> CodebookView<'_> {
        let parts = [&*self.means, self.precisions, self.log_dets, self.counts];
        book(self.head.config.alpha, self.dim, parts, self.head.used)
    }

    /// Code `index` and its count.
    #[must_use]
    pub fn code(&self, index: usize) -> Option<(CodeView<'_>, f32)> {
        if index >= self.head.used {
            return None;
        }
        let at = index * self.dim;
        let mean = self.means.get(at..at + self.dim)?;
        let precision = Precision::Diagonal(self.precisions.get(at..at + self.dim)?);
        let code = CodeView { mean, precision, log_det: *self.log_dets.get(index)? };
        Some((code, *self.counts.get(index)?))
    }

    /// How novel the Gaussian is. Nothing is learned.
    ///
    /// # Errors
    /// When a length is not the memory's dimension, a value is not finite, or a deviation is not above 0.
    pub fn assess(&mut self, mean: &[f32], width: Width<'_>) -> Result<Novelty, MemoryError> {
        self.take_in(mean, width)?;
        Ok(novelty(&self.score(self.head.used), false))
    }

    /// How far the Gaussian is from what was taught, nats, and the nearest of those codes; `f32::MAX` where nothing was.
    ///
    /// # Errors
    /// As [`MemoryView::assess`].
    pub fn assess_taught(&mut self, mean: &[f32], width: Width<'_>) -> Result<Expected, MemoryError> {
        self.take_in(mean, width)?;
        Ok(self.score(self.head.pinned))
    }

    /// How novel the Gaussian is; then it is learned. The answer is of the memory before.
    ///
    /// # Errors
    /// As [`MemoryView::assess`]; nothing is learned then.
    pub fn observe(&mut self, mean: &[f32], width: Width<'_>) -> Result<Novelty, MemoryError> {
        self.take_in(mean, width)?;
        let expected = self.score(self.head.used);
        let spawned = self.learn(&expected);
        Ok(novelty(&expected, spawned))
    }

    /// "This is normal": makes a pinned code of the Gaussian, or of a taught code within `spawn` nats a better one.
    /// A code is nowhere narrower than `base`, the variances that codes of this space have (the mean of a model's), if
    /// it is given. The answer says how far it was from what was taught before.
    ///
    /// # Errors
    /// As [`MemoryView::assess`]; when a mean or a variance lies at the end of the numeric domain, ±2⁵⁰; and when a new code is needed
    /// and there is no place. Nothing changes then.
    pub fn teach(
        &mut self,
        mean: &[f32],
        width: Width<'_>,
        base: Option<&[f32]>,
    ) -> Result<Novelty, MemoryError> {
        if let Some(base) = base {
            check_len(self.dim, base)?;
            check_widths(base)?;
        }
        self.take_in(mean, width)?;
        if let Some(base) = base {
            for (v, &b) in self.input[1].iter_mut().zip(base) {
                let b = domain_variance(b);
                *v = if b > *v { b } else { *v };
            }
        }
        if self.input.iter().any(|values| values.iter().any(|x| x.abs() >= LARGEST)) {
            return Err(MemoryError::Saturated);
        }
        let expected = self.score(self.head.pinned);
        let known = self.head.pinned > 0 && expected.nearest_distance <= self.head.config.spawn;
        if known {
            self.absorb(expected.nearest);
        } else {
            // The pinned codes come first: the code that stands behind them makes room.
            let free = self.free_place().ok_or(MemoryError::Full { places: self.counts.len() })?;
            let place = self.head.pinned;
            self.copy_code(place, free);
            self.place(place);
            self.head.pinned += 1;
            if free >= self.head.used {
                self.head.used = free + 1;
            }
        }
        Ok(novelty(&expected, !known))
    }

    /// Forgets taught code `index`. The last taught code gets its number.
    ///
    /// # Errors
    /// When there is no taught code of that number.
    pub fn remove(&mut self, index: usize) -> Result<(), MemoryError> {
        let Head { used, pinned, .. } = *self.head;
        if index >= pinned {
            return Err(MemoryError::Index { index, pinned });
        }
        self.copy_code(pinned - 1, index);
        self.copy_code(used - 1, pinned - 1);
        (self.head.used, self.head.pinned) = (used - 1, pinned - 1);
        Ok(())
    }

    /// Forgets everything that was observed: the end of an episode. What was taught stays.
    pub const fn clear(&mut self) {
        self.head.used = self.head.pinned;
    }

    /// Checks an input and copies it into the numeric domain.
    fn take_in(&mut self, mean: &[f32], width: Width<'_>) -> Result<(), MemoryError> {
        check_len(self.dim, mean)?;
        match width {
            Width::Std(values) | Width::Spread(Spread::Diagonal(values)) => {
                check_len(self.dim, values)?;
                check_widths(values)?;
            }
            Width::EveryStd(std) => check_widths(&[std])?,
            Width::Spread(Spread::Full { factor, .. }) => check_len(self.dim * self.dim, factor)?,
            Width::Spread(Spread::Identity) => {}
        }
        if let Some(index) = mean.iter().position(|x| !x.is_finite()) {
            return Err(MemoryError::NonFinite { index });
        }
        let [to_mean, to_variance] = &mut self.input;
        for (to, &x) in to_mean.iter_mut().zip(mean) {
            *to = tame(x);
        }
        let squared = |std: f32| domain_variance(tame(std) * tame(std));
        match width {
            Width::Std(values) => {
                for (to, &std) in to_variance.iter_mut().zip(values) {
                    *to = squared(std);
                }
            }
            Width::EveryStd(std) => to_variance.fill(squared(std)),
            Width::Spread(spread) => variances_into(spread, to_variance),
        }
        Ok(())
    }

    /// E4–E6 of the input, among the first `count` codes.
    fn score(&mut self, count: usize) -> Expected {
        let [mean, variance] = &self.input;
        let parts = [&*self.means, self.precisions, self.log_dets, self.counts];
        let codes = book(self.head.config.alpha, self.dim, parts, count);
        expected(&codes, mean, variance, self.distances.get_mut(..count).unwrap_or_default())
    }
}

/// E4–E6 of N(mean, diag variance) among diagonal codes with counts for priors.
fn expected(codes: &CodebookView<'_>, mean: &[f32], variance: &[f32], distances: &mut [f32]) -> Expected {
    let p = GaussianView { mean, spread: Spread::Diagonal(variance), log_det: sum(variance, ln) };
    codes.distances_into(&p, distances);
    codes.expected_distance(distances)
}

/// How far an encoder's Gaussian is from taught codes: the bits of [`MemoryView::assess_taught`]. `variance` and `distances`
/// are scratch, of the dimension and of as many codes.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) fn expected_beside(
    codes: &CodebookView<'_>,
    gaussian: &GaussianView<'_>,
    variance: &mut [f32],
    distances: &mut [f32],
) -> Expected {
    variances_into(gaussian.spread, variance);
    expected(codes, gaussian.mean, variance, distances)
}

/// The first `count` codes as the kernels read them, from means, precisions, log-determinants and counts.
fn book<'b>(alpha: f32, dim: usize, parts: [&'b [f32]; 4], count: usize) -> CodebookView<'b> {
    let [means, precisions, log_dets, counts] = parts;
    CodebookView {
        dim,
        alpha,
        means: take(means, count * dim).0,
        precisions: take(precisions, count * dim).0,
        layout: PrecisionLayout::Diagonal,
        log_dets: take(log_dets, count).0,
        priors: take(counts, count).0,
    }
}

/// The standard deviation of a precision, both in the numeric domain.
#[must_use]
pub fn std_of(precision: f32) -> f32 {
    sqrt(1.0 / precision)
}

/// Writes the standard deviation of each dimension of a spread.
pub fn stds_into(spread: Spread<'_>, out: &mut [f32]) {
    variances_into(spread, out);
    for v in out {
        *v = sqrt(*v);
    }
}

/// Writes the variance of each dimension of a spread, limited to the numeric domain.
fn variances_into(spread: Spread<'_>, out: &mut [f32]) {
    match spread {
        Spread::Identity => out.fill(1.0),
        Spread::Diagonal(values) => {
            for (to, &v) in out.iter_mut().zip(values) {
                *to = domain_variance(v);
            }
        }
        Spread::Full { factor, .. } => {
            let dim = out.len();
            let mut rest = factor;
            for to in out {
                let (row, after) = take(rest, dim);
                rest = after;
                *to = domain_variance(sum(row, |x| x * x));
            }
        }
    }
}

fn novelty(expected: &Expected, spawned: bool) -> Novelty {
    Novelty {
        bonus: 1.0 / sqrt(1.0 + expected.visits),
        visits: expected.visits,
        uncertainty: expected.uncertainty,
        nearest: expected.nearest,
        nearest_distance: expected.nearest_distance,
        spawned,
    }
}

/// A variance limited to the numeric domain.
fn domain_variance(v: f32) -> f32 {
    let v = if v > LARGEST { LARGEST } else { v };
    if v < SMALLEST { SMALLEST } else { v }
}

fn check_len(expected: usize, values: &[f32]) -> Result<(), MemoryError> {
    if values.len() == expected { Ok(()) } else { Err(MemoryError::Length { expected, found: values.len() }) }
}

/// Standard deviations and variances are finite and above 0.
fn check_widths(values: &[f32]) -> Result<(), MemoryError> {
    match values.iter().position(|&x| !(x > 0.0 && x.is_finite())) {
        Some(index) => Err(MemoryError::Width { index }),
        None => Ok(()),
    }
}
