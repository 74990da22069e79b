//! The info section: key–value strings of the host (docs/format.md). dab-core reads it with a heap, this without.
//!
//! ```text
//! count (key length, key, value length, value)*      counts and lengths in postcard's varint, shortest form
//! ```

/// Where the header says at which byte the info section begins.
const OFFSET: usize = 40;

/// The section of a sound artifact.
pub fn section(artifact: &[u8]) -> &[u8] {
    let offset = artifact.get(OFFSET..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u32::from_le_bytes(b));
    artifact.get(offset as usize..).unwrap_or_default()
}

/// The entries from the first to the last, then `None` once; `None` earlier when the section is not canonical.
pub struct Entries<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Entries<'a> {
    /// The entries of a section; `None` when it does not begin with their number.
    pub fn new(section: &'a [u8]) -> Option<Self> {
        let mut entries = Self { rest: section, left: 0 };
        entries.left = entries.length()?;
        Some(entries)
    }

    /// Whether the section ended with its last entry.
    pub const fn complete(&self) -> bool {
        self.left == 0 && self.rest.is_empty()
    }

    /// Seven bits a byte, the lowest first; the last byte is not 0, unless it is the only one.
    fn length(&mut self) -> Option<usize> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let shortest = byte > 0 || shift == 0;
                return usize::try_from(value).ok().filter(|_| shortest);
            }
            shift += 7;
            if shift > 28 {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<&'a str> {
        let length = self.length()?;
        let (string, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        core::str::from_utf8(string).ok()
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.left.checked_sub(1)?;
        let entry = (self.string()?, self.string()?);
        self.left = left;
        Some(entry)
    }
}

/// Whether the section is the one encoding of a list of strings.
pub fn sound(section: &[u8]) -> bool {
    Entries::new(section).is_some_and(|mut entries| {
        entries.by_ref().for_each(drop);
        entries.complete()
    })
}
