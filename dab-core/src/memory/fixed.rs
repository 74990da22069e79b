//! Memories of a size that the compiler knows, which own their numbers.

use super::{Config, ConfigError, Expected, Head, MemoryError, MemoryView, Novelty, Width};

/// A memory of up to `K` codes of dimension `D` that owns its numbers.
///
/// ```
/// use dab_core::memory::{Config, Memory, Width};
///
/// let mut memory = Memory::<16, 2>::new(Config::DEFAULT).unwrap();
/// let width = Width::EveryStd(0.1);
/// assert_eq!(memory.observe(&[0.3, 0.5], width).unwrap().bonus, 1.0);      // never seen
/// for _ in 0..99 {
///     memory.observe(&[0.3, 0.5], width).unwrap();
/// }
/// let known = memory.assess(&[0.3, 0.5], width).unwrap();
/// assert!(known.bonus < 0.11 && known.visits > 99.0);                      // seen a hundred times
/// assert!(memory.assess(&[0.9, 0.5], width).unwrap().bonus > 0.99);        // somewhere else
/// ```
#[derive(Clone, Debug)]
pub struct Memory<const K: usize, const D: usize> {
    head: Head,
    counts: [f32; K],
    log_dets: [f32; K],
    distances: [f32; K],
    means: [[f32; D]; K],
    precisions: [[f32; D]; K],
    input: [[f32; D]; 2],
}

impl<const K: usize, const D: usize> Memory<K, D> {
    /// A memory that has seen nothing.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        const { assert!(K >= 1 && K <= super::MAX_CODES && D >= 1 && D <= super::MAX_DIM) };
        Ok(Self {
            head: Head::new(config)?,
            counts: [0.0; K],
            log_dets: [0.0; K],
            distances: [0.0; K],
            means: [[0.0; D]; K],
            precisions: [[0.0; D]; K],
            input: [[0.0; D]; 2],
        })
    }

    /// The same memory as the kernels use it; everything else that a memory can do is there.
    #[must_use]
    pub const fn view(&mut self) -> MemoryView<'_> {
        let [mean, variance] = &mut self.input;
        MemoryView {
            head: &mut self.head,
            dim: D,
            counts: &mut self.counts,
            log_dets: &mut self.log_dets,
            distances: &mut self.distances,
            means: self.means.as_flattened_mut(),
            precisions: self.precisions.as_flattened_mut(),
            input: [mean, variance],
        }
    }

    /// [`MemoryView::assess`].
    ///
    /// # Errors
    /// When a value is not finite, or a deviation is not above 0.
    pub fn assess(&mut self, mean: &[f32; D], width: Width<'_>) -> Result<Novelty, MemoryError> {
        self.view().assess(mean, width)
    }

    /// [`MemoryView::observe`].
    ///
    /// # Errors
    /// As [`Memory::assess`].
    pub fn observe(&mut self, mean: &[f32; D], width: Width<'_>) -> Result<Novelty, MemoryError> {
        self.view().observe(mean, width)
    }

    /// [`MemoryView::teach`].
    ///
    /// # Errors
    /// As [`Memory::assess`], and when there is no place.
    pub fn teach(
        &mut self,
        mean: &[f32; D],
        width: Width<'_>,
        base: Option<&[f32]>,
    ) -> Result<Novelty, MemoryError> {
        self.view().teach(mean, width, base)
    }

    /// [`MemoryView::assess_taught`].
    ///
    /// # Errors
    /// As [`Memory::assess`].
    pub fn assess_taught(&mut self, mean: &[f32; D], width: Width<'_>) -> Result<Expected, MemoryError> {
        self.view().assess_taught(mean, width)
    }
}
