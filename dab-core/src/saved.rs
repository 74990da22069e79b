//! What saved states have in common: a tag, a checksum, and numbers one behind the other.
//!
//! ```text
//! tag (4 bytes), CRC-32C of everything behind it, little-endian numbers
//! ```
//!
//! A memory, a monitor and the normaliser of a bonus are saved like this, and so is a slot of flash around them
//! ([`slots`](crate::slots)).

use core::fmt;

use crate::artifact::crc::crc32c;

/// Bytes of tag and checksum.
const HEAD_BYTES: usize = 8;

/// What was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Saved {
    /// A [memory](crate::memory).
    Memory,
    /// A [monitor](crate::monitor).
    Monitor,
    /// The normaliser of an [exploration bonus](crate::explore).
    Normaliser,
}

impl Saved {
    /// First bytes of a saved state: a name and a version.
    pub(crate) const fn tag(self) -> [u8; 4] {
        match self {
            Self::Memory => *b"dbm1",
            Self::Monitor => *b"dbw1",
            Self::Normaliser => *b"dbx1",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Monitor => "monitor",
            Self::Normaliser => "normaliser",
        }
    }
}

/// Why bytes are not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum RestoreError {
    /// The bytes do not begin like such a saved state of this version, or end too early.
    NotSaved {
        /// What they should be.
        what: Saved,
    },
    /// The checksum does not fit the bytes.
    Checksum {
        /// What was saved.
        what: Saved,
        /// Checksum in the bytes.
        stored: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// The saved memory has another dimension.
    Dimension {
        /// The dimension of this memory.
        expected: usize,
        /// The dimension in the bytes.
        found: usize,
    },
    /// The saved memory has more codes than this one has places.
    Places {
        /// The places of this memory.
        places: usize,
        /// The codes in the bytes.
        codes: usize,
    },
    /// The monitor was saved with another configuration.
    OtherConfig,
    /// The checksum fits, but no inputs lead to such numbers.
    Impossible {
        /// What was saved.
        what: Saved,
    },
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotSaved { what } => write!(f, "these bytes are not a saved {}", what.name()),
            Self::Checksum { what, stored, computed } => {
                let what = what.name();
                write!(f, "the saved {what} is damaged (checksum {computed:08x}, stored {stored:08x})")
            }
            Self::Dimension { expected, found } => {
                write!(f, "the saved memory has dimension {found}, this one {expected}")
            }
            Self::Places { places, codes } => {
                write!(f, "the saved memory has {codes} codes, this one has room for {places}")
            }
            Self::OtherConfig => write!(f, "the monitor was saved with another configuration"),
            Self::Impossible { what: Saved::Memory } => {
                write!(f, "no memory has the numbers of this saved one")
            }
            Self::Impossible { what: Saved::Monitor } => {
                write!(f, "no inputs lead to the state of this saved monitor")
            }
            Self::Impossible { what: Saved::Normaliser } => {
                write!(f, "no uncertainties have the statistics of this saved normaliser")
            }
        }
    }
}

impl core::error::Error for RestoreError {}

/// Puts numbers one behind the other.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    /// Behind tag and checksum, which [`seal`] fills in.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { rest: bytes.get_mut(HEAD_BYTES..).unwrap_or_default() }
    }

    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some((place, rest)) = core::mem::take(&mut self.rest).split_first_chunk_mut::<N>() {
            *place = bytes;
            self.rest = rest;
        }
    }
}

/// Fills in the tag, and the checksum of everything behind it.
pub(crate) fn seal(bytes: &mut [u8], tag: [u8; 4]) {
    let sum = crc32c(bytes.get(HEAD_BYTES..).unwrap_or_default());
    let mut head = Writer { rest: bytes };
    head.put(tag);
    head.put(sum.to_le_bytes());
}

/// Takes numbers one behind the other.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// What lies behind tag and checksum, if both are right.
    pub fn new(bytes: &'a [u8], what: Saved) -> Result<Self, RestoreError> {
        let mut from = Self { rest: bytes };
        if from.take() != Some(what.tag()) {
            return Err(RestoreError::NotSaved { what });
        }
        let stored = from.u32().ok_or(RestoreError::NotSaved { what })?;
        let computed = crc32c(from.rest);
        if stored == computed { Ok(from) } else { Err(RestoreError::Checksum { what, stored, computed }) }
    }

    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*found)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn f32(&mut self) -> Option<f32> {
        self.take().map(f32::from_le_bytes)
    }

    pub fn bool(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_states_begin_with_their_own_tags() {
        // A device finds states that an older program saved by these bytes.
        let tags = [Saved::Memory, Saved::Monitor, Saved::Normaliser].map(Saved::tag);
        assert_eq!(tags, [*b"dbm1", *b"dbw1", *b"dbx1"]);
        for what in [Saved::Memory, Saved::Monitor, Saved::Normaliser] {
            let mut bytes = [7; 12];
            seal(&mut bytes, what.tag());
            for other in [Saved::Memory, Saved::Monitor, Saved::Normaliser] {
                assert_eq!(Reader::new(&bytes, other).is_ok(), what == other, "{what:?} {other:?}");
            }
        }
    }
}
