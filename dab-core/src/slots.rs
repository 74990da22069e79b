//! State in flash that survives a power cut: two slots, written in turn.
//!
//! ```text
//! slot: "dbs1", checksum, sequence, length, the state
//! ```
//!
//! The state is written into the slot that does not hold the newest one, whole pages of it, in any order. A cut at any
//! byte leaves a slot whose checksum is wrong, and [`newest`] finds the other one: the old state or the new one, never a
//! mixture. All numbers are little-endian; the checksum (CRC-32C) is of everything behind it.

use crate::artifact::crc::crc32c;
use crate::saved::{self, Writer};

/// First bytes of a slot: a name and a version.
const TAG: [u8; 4] = *b"dbs1";
/// Bytes of a slot before the state.
pub const HEAD_BYTES: usize = 16;

/// Which of two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The first.
    First,
    /// The second.
    Second,
}

impl Slot {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// What two slots hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest<'a> {
    /// Where the newest state lies; the next one belongs into the other slot.
    pub slot: Slot,
    /// Its number; the next one has this plus 1, wrapping around.
    pub sequence: u32,
    /// The state.
    pub state: &'a [u8],
}

/// The newest whole state of two slots; `None` when neither has one.
#[must_use]
pub fn newest<'a>(first: &'a [u8], second: &'a [u8]) -> Option<Newest<'a>> {
    let first = read(first).map(|(sequence, state)| Newest { slot: Slot::First, sequence, state });
    let second = read(second).map(|(sequence, state)| Newest { slot: Slot::Second, sequence, state });
    match (first, second) {
        // The later of two numbers that may have wrapped around.
        (Some(a), Some(b)) if b.sequence.wrapping_sub(a.sequence) <= i32::MAX as u32 => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Makes a slot of `slot`, which holds a state of `length` bytes behind its first [`HEAD_BYTES`] bytes: fills those in.
/// Says how many bytes must be written to flash; `None` when the slot is too short.
#[must_use]
pub fn seal(slot: &mut [u8], sequence: u32, length: usize) -> Option<usize> {
    let bytes = HEAD_BYTES.checked_add(length)?;
    let slot = slot.get_mut(..bytes)?;
    let length = u32::try_from(length).ok()?;
    let mut to = Writer::new(slot);
    to.put(sequence.to_le_bytes());
    to.put(length.to_le_bytes());
    saved::seal(slot, TAG);
    Some(bytes)
}

/// Number and state of a slot that was written whole.
fn read(slot: &[u8]) -> Option<(u32, &[u8])> {
    let [tag, sum, sequence, length] = *slot.as_chunks::<4>().0.first_chunk::<4>()?;
    let length = u32::from_le_bytes(length) as usize;
    let state = slot.get(HEAD_BYTES..)?.get(..length)?;
    let covered = slot.get(8..HEAD_BYTES + length)?;
    let whole = tag == TAG && u32::from_le_bytes(sum) == crc32c(covered);
    whole.then(|| (u32::from_le_bytes(sequence), state))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn sealed(sequence: u32, state: &[u8]) -> Vec<u8> {
        let mut slot = vec![0xff; HEAD_BYTES + state.len()];
        slot[HEAD_BYTES..].copy_from_slice(state);
        assert_eq!(seal(&mut slot, sequence, state.len()), Some(slot.len()));
        slot
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_old_or_the_new_state() {
        let (old, new) = (sealed(7, b"the old state"), sealed(8, b"a newer state!"));
        // What is in the slot before: erased flash, or the state before the old one.
        for before in [vec![0xff; 64], sealed(6, b"much older, and of another length")] {
            for cut in 0..=new.len() {
                for backwards in [false, true] {
                    let mut slot = before.clone();
                    let written = if backwards { new.len() - cut..new.len() } else { 0..cut };
                    slot[written.clone()].copy_from_slice(&new[written]);
                    let found = newest(&old, &slot).unwrap();
                    // The name is the same in every slot, so the new state may be whole before it is written.
                    let whole = slot.starts_with(&new);
                    assert!(whole || cut < new.len());
                    let expected: &[u8] = if whole { b"a newer state!" } else { b"the old state" };
                    assert_eq!(found.state, expected, "cut at {cut}, backwards {backwards}");
                }
            }
        }
    }

    #[test]
    fn numbers_wrap_around_and_nothing_is_nothing() {
        let (last, first) = (sealed(u32::MAX, b"last"), sealed(0, b"first"));
        assert_eq!(newest(&last, &first).unwrap().state, b"first");
        assert_eq!(newest(&first, &last).unwrap().slot.other(), Slot::Second);
        assert_eq!(newest(&[], &[0xff; 99]), None);
        assert_eq!(seal(&mut [0; 20], 1, 5), None);
        assert_eq!(seal(&mut [0; 20], 1, usize::MAX), None);
    }
}
