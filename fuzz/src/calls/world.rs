//! The caller's memory.

use bytemuck::{cast_slice, cast_slice_mut};
use libfuzzer_sys::arbitrary::{Error, Result, Unstructured};

/// A call that would break a promise of the caller is not made.
pub const UNLAWFUL: Error = Error::IncorrectFormat;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub start: usize,
    pub bytes: usize,
}

impl Span {
    pub const NONE: Self = Self { start: 0, bytes: 0 };

    pub const fn end(self) -> usize {
        self.start + self.bytes
    }

    pub const fn overlaps(self, other: Self) -> bool {
        self.bytes > 0 && other.bytes > 0 && self.start < other.end() && other.start < self.end()
    }

    pub fn within(self, other: Self) -> bool {
        self.start >= other.start && self.end() <= other.end()
    }
}

/// Blocks of memory, each an allocation of its own, so that AddressSanitizer sees the ends of every one.
pub struct World {
    pub blocks: Vec<Box<[u64]>>,
    /// What they were before the call at hand.
    pub before: Vec<Box<[u64]>>,
    /// What they were when the model was just started.
    fresh: Vec<Box<[u64]>>,
    /// Bytes of each block that its object has.
    pub used: Vec<usize>,
}

/// Inputs, results, scratch and structs.
pub const GROUND: usize = 0;
/// Storage of the model.
pub const STORAGE: usize = 1;
/// Bytes of the artifact.
pub const ARTIFACT: usize = 2;
/// Storage of the memory.
pub const MEMORY: usize = 3;
/// The monitor.
pub const MONITOR: usize = 4;
/// The exploration bonus.
pub const EXPLORATION: usize = 5;
/// Storage of the ellipse.
pub const ELLIPSE: usize = 6;

/// Bytes between the places in [`GROUND`] that most pointers lead to.
const STRIDE: usize = 384;
const PLACES: usize = 10;

impl World {
    pub fn new(artifact: &[u8], sizes: [usize; 5]) -> Self {
        let [storage, memory, monitor, exploration, ellipse] = sizes;
        let bytes = [STRIDE * PLACES, storage, artifact.len(), memory, monitor, exploration, ellipse];
        let mut blocks: Vec<Box<[u64]>> =
            bytes.iter().map(|n| vec![0; n.div_ceil(8)].into_boxed_slice()).collect();
        for (i, word) in blocks[GROUND].iter_mut().enumerate() {
            // Two floats between −2 and 2.
            let float = |k: usize| u64::from(((k * 37 % 65) as f32 / 16.0 - 2.0).to_bits());
            *word = float(2 * i) | float(2 * i + 1) << 32;
        }
        let mut world = Self { before: blocks.clone(), fresh: Vec::new(), used: Vec::new(), blocks };
        world.write(world.span(ARTIFACT).start, artifact);
        world.reset(artifact.len());
        world
    }

    /// From now on [`World::reset`] leads back to what the memory holds now.
    pub fn keep(&mut self) {
        self.fresh = self.blocks.clone();
    }

    /// The memory as it was when [`World::keep`] was called, for another sequence of calls: making it anew would take longer
    /// than the calls.
    pub fn reset(&mut self, artifact: usize) {
        for (to, from) in self.blocks.iter_mut().zip(&self.fresh) {
            to.copy_from_slice(from);
        }
        self.used = self.blocks.iter().map(|block| 8 * block.len()).collect();
        (self.used[STORAGE], self.used[ARTIFACT]) = (256, artifact);
    }

    pub fn span(&self, block: usize) -> Span {
        Span { start: self.blocks[block].as_ptr().addr(), bytes: 8 * self.blocks[block].len() }
    }

    /// The part of a block that is certainly its object's: of a model's storage the library may leave the end unused.
    pub fn extent(&self, block: usize) -> Span {
        Span { bytes: self.used[block], ..self.span(block) }
    }

    /// The block that memory lies in, whole.
    pub fn block_of(&self, span: Span) -> Option<usize> {
        (0..self.blocks.len()).find(|&b| span.within(self.span(b)))
    }

    pub fn pointer<T>(&mut self, address: usize) -> *mut T {
        let at = Span { start: address, bytes: 0 };
        match self.block_of(at) {
            // With the provenance of the block.
            Some(b) => {
                let start = self.span(b).start;
                self.blocks[b].as_mut_ptr().cast::<u8>().wrapping_add(address - start).cast()
            }
            None => std::ptr::without_provenance_mut(address),
        }
    }

    pub fn bytes(&self, span: Span) -> Option<&[u8]> {
        let block = self.block_of(span)?;
        let offset = span.start - self.span(block).start;
        cast_slice::<u64, u8>(&self.blocks[block]).get(offset..offset + span.bytes)
    }

    pub fn write(&mut self, address: usize, bytes: &[u8]) {
        let span = Span { start: address, bytes: bytes.len() };
        let Some(block) = self.block_of(span) else { return };
        let offset = address - self.span(block).start;
        let own = cast_slice_mut::<u64, u8>(&mut self.blocks[block]);
        own[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub fn floats(&self, span: Span) -> Vec<f32> {
        let bytes = self.bytes(span).unwrap_or_default();
        bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    /// Whether a float in this memory is none.
    pub fn has_non_finite(&self, span: Span) -> bool {
        let bytes = self.bytes(span).unwrap_or_default();
        bytes.as_chunks::<4>().0.iter().any(|b| !f32::from_le_bytes(*b).is_finite())
    }

    pub fn word(&self, address: usize) -> Option<u32> {
        let bytes = self.bytes(Span { start: address, bytes: 4 })?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }

    pub fn remember(&mut self) {
        for (to, from) in self.before.iter_mut().zip(&self.blocks) {
            to.copy_from_slice(from);
        }
    }

    /// An address: mostly one of a few places that do not overlap, sometimes NULL, misaligned, or in other memory.
    pub fn address(&self, u: &mut Unstructured<'_>) -> Result<usize> {
        let ground = self.span(GROUND).start;
        Ok(match u.int_in_range(0..=31u8)? {
            0 => 0,
            1 => ground + u.choose_index(STRIDE * PLACES)?,
            2 => {
                let block = self.span(u.int_in_range(STORAGE..=self.blocks.len() - 1)?);
                block.start + u.choose_index(block.bytes)? / 4 * 4
            }
            _ => {
                ground
                    + STRIDE * u.choose_index(PLACES)?
                    + 4 * u.int_in_range(0..=2usize)? * u.int_in_range(0..=1)?
            }
        })
    }
}
