//! A memory as bytes, the same on every machine.
//!
//! ```text
//! "dbm1", checksum, dim, used, pinned, horizon, alpha, spawn, widen, keep, then n, m and 1/v of the used codes
//! ```
//!
//! All numbers are little-endian and 4 bytes long. The checksum (CRC-32C) is of everything behind it. The number of
//! places is not saved: a memory may be restored into a larger one.

use super::{Config, Head, MemoryError, MemoryView};
use crate::linalg::dot::sum;
use crate::saved::{Reader, RestoreError, Saved, seal};
use crate::scalar::{in_domain, ln};

/// What is saved here.
const WHAT: Saved = Saved::Memory;

/// Bytes before the codes.
const HEAD_BYTES: usize = 40;

/// Bytes of a saved memory with `used` codes of dimension `dim`.
#[must_use]
pub const fn saved_len(used: usize, dim: usize) -> usize {
    HEAD_BYTES + 4 * used * (1 + 2 * dim)
}

impl MemoryView<'_> {
    /// Bytes that [`MemoryView::save`] writes now.
    #[must_use]
    pub const fn saved_len(&self) -> usize {
        saved_len(self.head.used, self.dim)
    }

    /// Writes the memory into the first bytes of `out`, and says how many they are.
    ///
    /// # Errors
    /// When there is not enough room; nothing is written then. The numbers of the error are floats, as everywhere.
    pub fn save(&self, out: &mut [u8]) -> Result<usize, MemoryError> {
        let (needed, found) = (self.saved_len(), out.len());
        let Some(out) = out.get_mut(..needed) else {
            return Err(MemoryError::Storage { needed: needed.div_ceil(4), found: found / 4 });
        };
        let Head { config, used, pinned } = *self.head;
        let Config { alpha, spawn, widen, keep, horizon } = config;
        let sizes = [0, 0, self.dim as u32, used as u32, pinned as u32, horizon];
        let settings = [alpha, spawn, widen, keep];
        let codes = self.codes();
        let floats = settings.iter().chain(codes.priors).chain(codes.means).chain(codes.precisions);
        let words = sizes.into_iter().chain(floats.map(|x| x.to_bits()));
        for (to, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        seal(out, WHAT.tag());
        Ok(needed)
    }

    /// Continues with a saved memory and its settings. Bytes behind it are ignored.
    ///
    /// # Errors
    /// When the bytes are damaged, are not a memory, or do not fit into this one. Nothing changes then.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), RestoreError> {
        let words = bytes.as_chunks::<4>().0;
        let not_saved = RestoreError::NotSaved { what: WHAT };
        let Some([tag, _, dim, used, pinned, horizon, alpha, spawn, widen, keep]) = words.first_chunk::<10>()
        else {
            return Err(not_saved);
        };
        if *tag != WHAT.tag() {
            return Err(not_saved);
        }
        let [dim, used, pinned] = [dim, used, pinned].map(|word| u32::from_le_bytes(*word) as usize);
        if dim != self.dim {
            return Err(RestoreError::Dimension { expected: self.dim, found: dim });
        }
        let places = self.counts.len();
        if used > places {
            return Err(RestoreError::Places { places, codes: used });
        }
        let bytes = bytes.get(..saved_len(used, dim)).ok_or(not_saved)?;
        Reader::new(bytes, WHAT)?;
        let [alpha, spawn, widen, keep] = [alpha, spawn, widen, keep].map(|word| f32::from_le_bytes(*word));
        let config = Config { alpha, spawn, widen, keep, horizon: u32::from_le_bytes(*horizon) };
        config.check().map_err(|_| RestoreError::Impossible { what: WHAT })?;
        let (head, codes) = bytes.split_at_checked(HEAD_BYTES).ok_or(not_saved)?;
        let codes = codes.as_chunks::<4>().0;
        let (counts, rest) = codes.split_at_checked(used).ok_or(not_saved)?;
        let (means, precisions) = rest.split_at_checked(used * dim).ok_or(not_saved)?;
        let all = |words: &[[u8; 4]], sound: fn(f32, f32) -> bool, limit: f32| {
            words.iter().all(|word| sound(f32::from_le_bytes(*word), limit))
        };
        let sound = head.len() == HEAD_BYTES
            && pinned <= used
            && all(counts, |n, limit| in_domain(n) && n >= 0.0 && n <= limit, config.horizon as f32)
            && all(counts.get(..pinned).unwrap_or_default(), |n, _| n >= 1.0, 0.0)
            && all(means, |m, _| in_domain(m), 0.0)
            && all(precisions, |p, _| in_domain(p) && p > 0.0, 0.0);
        if !sound {
            return Err(RestoreError::Impossible { what: WHAT });
        }
        *self.head = Head { config, used, pinned };
        for (to, from) in
            [(&mut *self.counts, counts), (&mut *self.means, means), (&mut *self.precisions, precisions)]
        {
            for (to, word) in to.iter_mut().zip(from) {
                *to = f32::from_le_bytes(*word);
            }
        }
        // Not `chunks_exact`: a width that is not a constant keeps its panic.
        for (k, to) in self.log_dets.iter_mut().enumerate().take(used) {
            *to = -sum(self.precisions.get(k * dim..(k + 1) * dim).unwrap_or_default(), ln);
        }
        Ok(())
    }
}
