//! The rules of dab.h as a model.
//!
//! A call is described before it is made: which memory it reads and writes, and every [`Rules::fault`] that dab.h names. It
//! must return one of these, or DAB_OK exactly if there is none; and only what it may write may have changed.

use dab::status::{
    DAB_ERR_MISALIGNED, DAB_ERR_NOT_INITIALIZED, DAB_ERR_NULL, DAB_ERR_OVERLAP, DAB_ERR_STRUCT_SIZE,
    DAB_ERR_TOO_LARGE, DAB_OK,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::world::{ELLIPSE, GROUND, MEMORY, STORAGE, Span, UNLAWFUL, World};

/// The end of the numeric domain: what is as large is not taught.
pub const END: f32 = (1u64 << 50) as f32;

/// A length: mostly the right one.
pub fn count(u: &mut Unstructured<'_>, right: usize) -> Result<usize> {
    Ok(match u.int_in_range(0..=15u8)? {
        0 => 0,
        1 => right + 1,
        2 => right.saturating_sub(1),
        3 => u.int_in_range(0..=64)?,
        4 => *u.choose(&[usize::MAX, usize::MAX / 4, isize::MAX as usize / 4 + 1, 1 << 62])?,
        _ => right,
    })
}

/// A set of errors: those of dab.h lie between -255 and -1.
#[derive(Clone, Copy, Default)]
pub struct Statuses([u64; 4]);

impl Statuses {
    fn place(status: i32) -> (usize, u64) {
        let at = status.unsigned_abs() as usize;
        assert!(status < 0 && at < 256, "{status} is no error");
        (at / 64, 1 << (at % 64))
    }

    pub fn insert(&mut self, status: i32) {
        let (word, bit) = Self::place(status);
        self.0[word] |= bit;
    }

    pub fn contains(&self, status: i32) -> bool {
        status < 0 && {
            let (word, bit) = Self::place(status);
            self.0[word] & bit != 0
        }
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
}

impl std::fmt::Debug for Statuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((-255..0).rev().filter(|status| self.contains(*status))).finish()
    }
}

/// One call before it is made.
#[derive(Default)]
pub struct Rules {
    pub faults: Statuses,
    /// Refusals that depend on more than these rules know.
    pub maybe: &'static [i32],
    /// Written on success.
    written: Vec<Span>,
    /// Scratch: its contents mean nothing.
    scratch: Option<Span>,
    /// Read, or kept by an object of the call.
    read: Vec<Span>,
    /// A valid dab_assessment, which trusts nothing after an error.
    result: Option<Span>,
    /// Objects that the call may change.
    changed: Vec<Span>,
    /// Scratch within them, which means nothing, and what counts refused calls: it may change on an error, too.
    within: Vec<Span>,
    /// What a refused call may change whatever lies over it.
    pub always: Vec<Span>,
    /// Results that say after an error that they are none: 0 behind so many bytes.
    emptied: Vec<(Span, usize)>,
}

impl Rules {
    pub fn fault(&mut self, status: i32, holds: bool) {
        if holds {
            self.faults.insert(status);
        }
    }

    /// Memory of `count` values of `size` bytes; `required` where NULL is a mistake even for none.
    fn memory(
        &mut self,
        world: &World,
        address: usize,
        count: usize,
        size: usize,
        align: usize,
        required: bool,
    ) -> Result<Span> {
        self.fault(DAB_ERR_NULL, address == 0 && (count > 0 || required));
        if count == 0 || address == 0 {
            return Ok(Span::NONE);
        }
        if !address.is_multiple_of(align) {
            // Nothing lies there that could be overlapped.
            self.fault(DAB_ERR_MISALIGNED, true);
            return Ok(Span::NONE);
        }
        let bytes = count.checked_mul(size).filter(|b| *b <= isize::MAX as usize);
        let Some(bytes) = bytes.filter(|b| address.checked_add(*b).is_some()) else {
            self.fault(DAB_ERR_TOO_LARGE, true);
            return Ok(Span::NONE);
        };
        let span = Span { start: address, bytes };
        // The caller promises that memory exists.
        if world.block_of(span).is_none() { Err(UNLAWFUL) } else { Ok(span) }
    }

    pub fn reads(&mut self, w: &World, address: usize, count: usize, required: bool) -> Result<Span> {
        let span = self.memory(w, address, count, 4, 4, required)?;
        self.read.push(span);
        Ok(span)
    }

    pub fn read_bytes(&mut self, w: &World, address: usize, count: usize, required: bool) -> Result<Span> {
        let span = self.memory(w, address, count, 1, 1, required)?;
        self.read.push(span);
        Ok(span)
    }

    pub fn writes(
        &mut self,
        w: &World,
        address: usize,
        count: usize,
        size: usize,
        align: usize,
    ) -> Result<Span> {
        let span = self.memory(w, address, count, size, align, false)?;
        self.written.push(span);
        Ok(span)
    }

    pub fn scratch(&mut self, w: &World, address: usize, bytes: usize) -> Result<Span> {
        let span = self.memory(w, address, bytes / 4, 4, 4, true)?;
        self.scratch = Some(span);
        Ok(span)
    }

    /// `rows` structs that say their size; most of them are given a valid one.
    pub fn structs(
        &mut self,
        w: &mut World,
        address: usize,
        rows: usize,
        own: usize,
        align: usize,
        u: &mut Unstructured<'_>,
    ) -> Result<Span> {
        self.fault(DAB_ERR_NULL, address == 0);
        if address == 0 {
            return Ok(Span::NONE);
        }
        if !address.is_multiple_of(align.max(4)) {
            self.fault(DAB_ERR_MISALIGNED, true);
            return Ok(Span::NONE);
        }
        let size = match u.int_in_range(0..=15u8)? {
            0 => u.int_in_range(0..=600)?,
            1 => own + 8,
            _ => own,
        };
        // Only where nothing else lies.
        if (Span { start: address, bytes: 4 }).within(w.span(GROUND)) {
            w.write(address, &(size as u32).to_le_bytes());
        }
        let size = w.word(address).ok_or(UNLAWFUL)? as usize;
        let newer = size > own && size <= 512 && size.is_multiple_of(align);
        if size != own && !newer {
            self.fault(DAB_ERR_STRUCT_SIZE, true);
            return Ok(Span::NONE);
        }
        self.memory(w, address, rows, size, align, false)
    }

    pub fn results(
        &mut self,
        w: &mut World,
        address: usize,
        rows: usize,
        own: usize,
        align: usize,
        u: &mut Unstructured<'_>,
    ) -> Result<Span> {
        let span = self.structs(w, address, rows, own, align, u)?;
        self.written.push(span);
        Ok(span)
    }

    pub fn assessments(
        &mut self,
        w: &mut World,
        address: usize,
        rows: usize,
        u: &mut Unstructured<'_>,
    ) -> Result<Span> {
        let span = self.results(w, address, rows, 56, 4, u)?;
        self.result = (span.bytes > 0).then_some(span);
        Ok(span)
    }

    /// The handle of an object in `block`: mostly the right one.
    pub fn object(
        &mut self,
        w: &World,
        block: usize,
        live: bool,
        changes: bool,
        u: &mut Unstructured<'_>,
    ) -> Result<usize> {
        let right = w.span(block).start;
        let (address, status) = match u.int_in_range(0..=31u8)? {
            0 => (0, DAB_ERR_NULL),
            1 => (right + u.int_in_range(1..=3)?, DAB_ERR_MISALIGNED),
            2 => (w.span(GROUND).start + 8 * u.int_in_range(0..=7)?, DAB_ERR_NOT_INITIALIZED),
            _ if !live => (right, DAB_ERR_NOT_INITIALIZED),
            _ => {
                let span = w.extent(block);
                if changes {
                    self.changed.push(span)
                } else {
                    self.read.push(span)
                }
                return Ok(right);
            }
        };
        // Memory that has a tag by accident.
        let word = w.word(address & !7).unwrap_or(0).to_le_bytes();
        if status == DAB_ERR_NOT_INITIALIZED && word.starts_with(b"dab") {
            return Err(UNLAWFUL);
        }
        self.fault(status, true);
        // Some calls look at overlaps first, also with what is no object.
        self.fault(DAB_ERR_OVERLAP, status == DAB_ERR_NOT_INITIALIZED);
        Ok(address)
    }

    /// Other memory that belongs to an object of the call.
    pub fn keeps(&mut self, span: Span) {
        self.read.push(span);
    }

    pub fn changes(&mut self, span: Span) {
        self.changed.push(span);
    }

    /// Memory that a refused call may change, too.
    pub fn counts(&mut self, span: Span) {
        self.within.push(span);
    }

    /// A result that is 0 after an error, but for its first `kept` bytes.
    pub fn empties(&mut self, span: Span, kept: usize) {
        self.emptied.push((span, kept));
    }

    /// The scratch that a memory has in it: the distances of `codes` codes, and one input of `dim` dimensions.
    pub fn memory_scratch(&mut self, w: &World, (codes, dim): (usize, usize)) {
        let floats = w.span(MEMORY).start + dab::memory::DAB_MEMORY_HEAD_BYTES;
        self.within.push(Span { start: floats + 8 * codes, bytes: 4 * codes });
        self.within.push(Span { start: floats + 4 * codes * (3 + 2 * dim), bytes: 8 * dim });
    }

    /// The scratch that an ellipse has in it: one vector of features.
    pub fn ellipse_scratch(&mut self, w: &World, dim: usize) {
        let floats = w.span(ELLIPSE).start + dab::ellipse::DAB_ELLIPSE_HEAD_BYTES;
        self.within.push(Span { start: floats + 2 * dim * (dim + 1), bytes: 4 * dim });
    }

    /// Makes the call and judges it.
    ///
    /// # Panics
    /// When a rule is broken.
    pub fn judge(
        mut self,
        world: &mut World,
        name: &str,
        call: impl FnOnce(&mut World) -> i32,
    ) -> Result<Option<()>> {
        let written = self.lawful(world)?;
        world.remember();
        let status = call(world);
        self.judged(world, name, status, written)
    }

    /// What the call may write, if the caller may make it.
    fn lawful(&mut self, world: &World) -> Result<Vec<Span>> {
        let mut written = self.written.clone();
        written.extend(self.scratch);
        written.extend(&self.changed);
        written.retain(|s| s.bytes > 0);
        for (i, a) in written.iter().enumerate() {
            let others = written[i + 1..].iter().chain(&self.read);
            if others.into_iter().any(|b| a.overlaps(*b)) {
                self.faults.insert(DAB_ERR_OVERLAP);
            }
        }
        // Writing over an object that the call does not know breaks the promise that it stays unchanged.
        let known = |span: Span| self.read.iter().chain(&self.changed).any(|s| span.overlaps(*s));
        for span in &written {
            if (STORAGE..world.blocks.len()).any(|b| span.overlaps(world.span(b))) && !known(*span) {
                return Err(UNLAWFUL);
            }
        }
        Ok(written)
    }

    /// Whether the call did what it may.
    fn judged(&self, world: &World, name: &str, status: i32, written: Vec<Span>) -> Result<Option<()>> {
        if self.faults.is_empty() {
            let sound = status == DAB_OK || self.maybe.contains(&status);
            assert!(sound, "{name} is refused without a reason: {status}");
        } else {
            assert!(self.faults.contains(status), "{name} returns {status}, not one of {:?}", self.faults);
        }
        let mut allowed: Vec<Span> = Vec::new();
        if status == DAB_OK {
            allowed = written;
            let whole = |s: &Span| (0..world.blocks.len()).map(|b| world.span(b)).find(|b| b.overlaps(*s));
            allowed.extend(self.changed.iter().filter_map(whole));
        } else {
            if !self.faults.contains(DAB_ERR_OVERLAP) {
                allowed.extend(self.scratch);
            }
            allowed.extend(self.distrusted(world, name));
            allowed.extend(self.none(world, name));
            // What lies over a model or its artifact is left alone.
            let kept = |s: &&Span| !self.read.iter().any(|r| r.overlaps(**s));
            allowed.extend(self.within.iter().filter(kept));
            allowed.extend(&self.always);
        }
        let changed = |(block, old): &(usize, &Box<[u64]>)| **old != world.blocks[*block];
        for (block, old) in world.before.iter().enumerate().filter(changed) {
            let start = world.span(block).start;
            let words = old.iter().zip(&world.blocks[block]).enumerate();
            for (i, (old, new)) in words.filter(|(_, (old, new))| old != new) {
                for byte in (0..8).filter(|b| (old ^ new) >> (8 * b) & 0xff != 0) {
                    let at = Span { start: start + 8 * i + byte, bytes: 1 };
                    let may = allowed.iter().any(|s| s.overlaps(at));
                    assert!(may, "{name} ({status}) writes byte {} of block {block}", 8 * i + byte);
                }
            }
        }
        Ok((status == DAB_OK).then_some(()))
    }

    /// After an error: results that are empty then, if they can be written.
    fn none(&self, world: &World, name: &str) -> Vec<Span> {
        let apart = |(i, (span, _)): &(usize, &(Span, usize))| {
            let others = self.emptied.iter().enumerate().filter(|(j, _)| j != i).map(|(_, (other, _))| other);
            span.bytes > 0 && !others.chain(&self.read).any(|other| other.overlaps(*span))
        };
        let found: Vec<_> = self.emptied.iter().enumerate().filter(apart).map(|(_, found)| *found).collect();
        for (span, kept) in &found {
            let bytes = world.bytes(*span).unwrap_or_default();
            assert!(bytes[*kept..].iter().all(|byte| *byte == 0), "{name} leaves a result after an error");
        }
        found.into_iter().map(|(span, _)| span).collect()
    }

    /// After an error: the results, if their place is right, trust nothing.
    fn distrusted(&self, world: &World, name: &str) -> Option<Span> {
        let result = self.result?;
        let kept = self.read.iter().chain(&self.changed);
        if kept.into_iter().any(|s| s.overlaps(result)) {
            return None;
        }
        let others = self.written.iter().filter(|s| **s != result).chain(&self.scratch);
        let clear = !others.into_iter().any(|s| s.overlaps(result));
        if clear && !self.faults.contains(DAB_ERR_TOO_LARGE) {
            let flags = world.word(result.start + 4);
            let [uncertainty, p_value] = [8, 12].map(|at| world.word(result.start + at).map(f32::from_bits));
            let verdict = world.word(result.start + 16);
            assert_eq!((flags, verdict), (Some(0), Some(0)), "{name}: something is trusted after an error");
            assert_eq!((uncertainty, p_value), (Some(f32::MAX), Some(-1.0)), "{name}");
        }
        Some(result)
    }
}
