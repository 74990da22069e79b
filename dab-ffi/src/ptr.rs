//! Raw pointers: the only place where memory of the caller becomes a reference.
//!
//! Every call does the same, in this order: each pointer is checked by itself ([`span`]: NULL, alignment,
//! size), then those that are written against all others ([`disjoint`]), then references are made. What can be
//! seen from numbers is checked; that the memory exists is the caller's promise (dab.h, "MEMORY").

use core::ffi::c_void;
use core::mem::{MaybeUninit, align_of, offset_of, size_of};

use crate::status::{
    DAB_ERR_MISALIGNED, DAB_ERR_NOT_INITIALIZED, DAB_ERR_NULL, DAB_ERR_OVERLAP, DAB_ERR_STRUCT_SIZE,
    DAB_ERR_TOO_LARGE, DAB_ERR_UNKNOWN_MEMBER, Result,
};

/// Where memory lies.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    start: usize,
    bytes: usize,
}

impl Span {
    /// No memory: overlaps nothing.
    pub const NONE: Self = Self { start: 0, bytes: 0 };

    /// Whether it is no memory.
    pub const fn is_none(self) -> bool {
        self.bytes == 0
    }

    fn overlaps(self, other: Self) -> bool {
        // Neither end wraps around: `span` checked it.
        self.start < other.start + other.bytes && other.start < self.start + self.bytes
    }
}

/// The memory of `count` values at `pointer`; NULL is allowed when there are none.
///
/// # Errors
/// When the pointer is NULL or misaligned, or the memory does not fit the address space.
pub fn span<T>(pointer: *const T, count: usize) -> Result<Span> {
    if count == 0 {
        return Ok(Span::NONE);
    }
    if pointer.is_null() {
        return Err(DAB_ERR_NULL);
    }
    let start = pointer.addr();
    if !start.is_multiple_of(align_of::<T>()) {
        return Err(DAB_ERR_MISALIGNED);
    }
    let bytes = count.checked_mul(size_of::<T>()).ok_or(DAB_ERR_TOO_LARGE)?;
    let fits = bytes <= isize::MAX as usize && start.checked_add(bytes).is_some();
    if fits { Ok(Span { start, bytes }) } else { Err(DAB_ERR_TOO_LARGE) }
}

/// The memory of `bytes` bytes of storage at a multiple of 8; the last word of 8 bytes may be half used.
///
/// # Errors
/// As [`span`].
pub fn room(storage: *const c_void, bytes: usize) -> Result<Span> {
    span(storage.cast::<u64>(), 1)?;
    span(storage.cast::<u8>(), bytes)
}

/// Checks that nothing of `written` overlaps another part of `written`, or `read`.
///
/// # Errors
/// When something does.
pub fn disjoint(written: &[Span], read: &[Span]) -> Result<()> {
    let mut rest = written;
    while let Some((span, after)) = rest.split_first() {
        rest = after;
        if after.iter().chain(read).any(|other| span.overlaps(*other)) {
            return Err(DAB_ERR_OVERLAP);
        }
    }
    Ok(())
}

/// The values at `pointer`.
///
/// # Safety
/// `span(pointer, count)` gave a span; the memory is readable, initialized and written by nobody during
/// the call.
pub unsafe fn slice<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: `span` checked that the pointer is not NULL, aligned, and that the size fits; the caller of this
    // function promises the rest.
    unsafe { core::slice::from_raw_parts(pointer, count) }
}

/// The values at `pointer`, to be written.
///
/// # Safety
/// As [`slice()`]; and the memory is writable, and `disjoint` found it apart from all other memory of the call.
pub unsafe fn slice_mut<'a, T>(pointer: *mut T, count: usize) -> &'a mut [T] {
    if count == 0 {
        return &mut [];
    }
    // SAFETY: `span` checked that the pointer is not NULL, aligned, and that the size fits; `disjoint` that no
    // other reference of this call points into it; the caller of this function promises the rest.
    unsafe { core::slice::from_raw_parts_mut(pointer, count) }
}

/// Puts `value` at `pointer`.
///
/// # Safety
/// `span(pointer, 1)` gave a span and the memory is writable.
pub unsafe fn put<T>(pointer: *mut T, value: T) {
    // SAFETY: `span` checked that the pointer is not NULL and aligned; the caller of this function promises
    // that the memory is writable.
    unsafe { pointer.write(value) }
}

/// A struct whose first member says how large its caller believes it to be.
///
/// A struct grows at its end. [`Sized32::LAYOUTS`] lists the sizes that it has had in this binary interface, so that
/// a program of each age is understood. A new member must fill its place: a layout that ended in padding could not be
/// told from the next one, which uses the padding.
///
/// # Safety
/// `repr(C)`, a `u32` first, no padding, and every bit pattern of every member is a value.
pub unsafe trait Sized32: Copy {
    /// Bytes of every released layout, the first one first, this library's own last.
    const LAYOUTS: &'static [usize];
}

/// Whether the layouts of `T` grow, end with its own size, and fit its alignment: a member that raised the alignment
/// would change where a compiler puts the structs of older programs.
pub const fn layouts_grow<T: Sized32>() -> bool {
    let mut rest = T::LAYOUTS;
    let mut before = size_of::<u32>();
    while let Some((bytes, after)) = rest.split_first() {
        if *bytes <= before || !bytes.is_multiple_of(align_of::<T>()) {
            return false;
        }
        before = *bytes;
        rest = after;
    }
    before == size_of::<T>() && before <= LARGEST_STRUCT
}

/// Larger sizes than this are refused: such a `size` was never set. A caller's struct can be larger than the library's
/// own, and the rest of a result is set to 0, so a random number must not pass for a size.
pub const LARGEST_STRUCT: usize = 512;

/// What a library with the feature `grown` writes into the member that each struct has more.
#[cfg(feature = "grown")]
pub const GROWN: u32 = 0x600d;

/// The size that the struct at `pointer` says it has: that of a released layout, or a larger one of a program that is
/// newer than this library.
///
/// # Errors
/// When the pointer is bad or the size is none of these.
///
/// # Safety
/// If not NULL, `pointer` points to a readable `uint32_t`.
unsafe fn declared_size<T: Sized32>(pointer: *const T) -> Result<usize> {
    // The first word, with the alignment of the whole.
    span(pointer.cast::<u32>(), 1)?;
    if !pointer.is_aligned() {
        return Err(DAB_ERR_MISALIGNED);
    }
    // SAFETY: `span` checked that the pointer is not NULL and aligned for a u32, with which a `Sized32` begins; the
    // caller of this function promises that the word is readable.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    let newer = size > size_of::<T>() && size <= LARGEST_STRUCT && size.is_multiple_of(align_of::<T>());
    if newer || T::LAYOUTS.contains(&size) { Ok(size) } else { Err(DAB_ERR_STRUCT_SIZE) }
}

/// A checked place for `rows` results that lie `size` bytes apart.
#[derive(Debug)]
pub struct Results<T> {
    pointer: *mut T,
    size: usize,
    span: Span,
}

impl<T: Sized32> Results<T> {
    /// The place of `rows` results. The first one says how large each of them is.
    ///
    /// # Errors
    /// When the pointer is bad, the size is not one of the struct, or the memory does not fit the address space.
    ///
    /// # Safety
    /// If not NULL, `pointer` points to a readable `uint32_t`, which is the size of each of `rows` writable structs.
    pub unsafe fn at(pointer: *mut T, rows: usize) -> Result<Self> {
        // SAFETY: the caller of this function promises a readable first word.
        let size = unsafe { declared_size(pointer)? };
        let bytes = size.checked_mul(rows).ok_or(DAB_ERR_TOO_LARGE)?;
        Ok(Self { pointer, size, span: span(pointer.cast::<u8>(), bytes)? })
    }

    /// Where all of them lie.
    pub const fn span(&self) -> Span {
        self.span
    }

    /// `size` as the caller set it: a result keeps it.
    pub const fn size(&self) -> u32 {
        self.size as u32
    }

    /// Puts `value` into the first place: as much of it as the caller's struct has room for, and zeros into members
    /// that the caller knows and this library does not. Moves on to the next place.
    ///
    /// # Safety
    /// At most as often as there are rows, and `disjoint` found the memory apart from all other memory of the call.
    pub unsafe fn put(&mut self, value: &T) {
        let known = if self.size < size_of::<T>() { self.size } else { size_of::<T>() };
        let place = self.pointer.cast::<u8>();
        // SAFETY: `at` checked pointer and size of all rows, whose memory its caller promised to be writable; `value`
        // is readable for `known` bytes, at most its own size, and is memory of this library, apart from the caller's.
        unsafe { core::ptr::copy_nonoverlapping(core::ptr::from_ref(value).cast(), place, known) };
        // SAFETY: the rest of the same struct, `self.size - known` bytes.
        unsafe { core::ptr::write_bytes(place.wrapping_add(known), 0, self.size - known) };
        self.pointer = self.pointer.wrapping_byte_add(self.size);
    }
}

/// A copy of a configuration, and where the caller has it. Members that the caller's struct does not have are 0, which
/// every later member takes for its default.
///
/// # Errors
/// When the pointer is bad, the size is not one of the struct, or a member is set that this library does not know.
///
/// # Safety
/// If not NULL, `pointer` points to as many readable bytes as its first member says, written by nobody during the call.
pub unsafe fn config<T: Sized32>(pointer: *const T) -> Result<(T, Span)> {
    // SAFETY: the caller of this function promises a readable first word.
    let size = unsafe { declared_size(pointer)? };
    let place = span(pointer.cast::<u8>(), size)?;
    let known = if size < size_of::<T>() { size } else { size_of::<T>() };
    // SAFETY: `span` checked the memory of all `size` bytes, which the caller of this function promises to be readable;
    // `known <= size`.
    let unknown = unsafe { slice(pointer.cast::<u8>().wrapping_add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(DAB_ERR_UNKNOWN_MEMBER);
    }
    let mut found = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` bytes are readable, as above, and not more than `found` has, which is memory of this library.
    unsafe { core::ptr::copy_nonoverlapping(pointer.cast::<u8>(), found.as_mut_ptr().cast(), known) };
    // SAFETY: every byte was set, to 0 or to the caller's, and a `Sized32` has a value for every bit pattern.
    Ok((unsafe { found.assume_init() }, place))
}

/// Where the caller has a configuration, also one that [`config`] refuses: as many bytes as it says, or as it has here.
///
/// # Safety
/// As [`config`].
pub unsafe fn config_place<T: Sized32>(pointer: *const T) -> Span {
    // SAFETY: the caller of this function promises a readable first word.
    let size = unsafe { declared_size(pointer) }.unwrap_or(size_of::<T>());
    span(pointer.cast::<u8>(), size).unwrap_or(Span::NONE)
}

/// An object in the caller's memory: a tag tells it from memory that was never initialized.
#[derive(Debug)]
#[repr(C)]
pub struct Tagged<T> {
    tag: u32,
    value: T,
}

impl<T> Tagged<T> {
    /// `value`, told by `tag`.
    pub const fn new(tag: u32, value: T) -> Self {
        Self { tag, value }
    }

    /// Where the tag and the value of an object at `pointer` lie, for a value that is written in parts: a large one would
    /// be put together on the stack first.
    pub const fn places(pointer: *mut Self) -> (*mut u32, *mut T) {
        let tag = pointer.wrapping_byte_add(offset_of!(Self, tag));
        (tag.cast(), pointer.wrapping_byte_add(offset_of!(Self, value)).cast())
    }
}

/// After an error of a call that makes an object: NULL at `out`, so that a program that overlooks the error does not go on with
/// an older handle. What lies over one of `others` is left alone.
///
/// # Safety
/// If not NULL and aligned, `out` is writable.
pub unsafe fn no_handle<T>(out: *mut *mut T, others: &[Span]) {
    if span(out, 1).is_ok_and(|handle| disjoint(&[handle], others).is_ok()) {
        // SAFETY: `span` checked that `out` is not NULL and aligned; the caller of this function promises that it is
        // writable.
        unsafe { put(out, core::ptr::null_mut()) };
    }
}

/// # Safety
/// If not NULL, `pointer` points to at least a readable `uint32_t`.
unsafe fn check_tag<T>(pointer: *const Tagged<T>, tag: u32) -> Result<()> {
    span(pointer, 1)?;
    // SAFETY: `span` checked NULL and alignment; `Tagged` is `repr(C)` and begins with its tag, which the caller
    // of this function promises to be readable.
    let found = unsafe { pointer.cast::<u32>().read() };
    if found == tag { Ok(()) } else { Err(DAB_ERR_NOT_INITIALIZED) }
}

/// The object at `pointer`.
///
/// # Errors
/// When the pointer is bad or the memory has another tag.
///
/// # Safety
/// If not NULL, the memory is readable, written by nobody during the call, and whatever has the tag was put
/// there by [`put`].
pub unsafe fn object<'a, T>(pointer: *const Tagged<T>, tag: u32) -> Result<&'a T> {
    // SAFETY: the caller of this function promises readable memory.
    unsafe { check_tag(pointer, tag)? };
    // SAFETY: `check_tag` found the pointer not NULL and aligned, and the tag; the caller promises that whatever has the
    // tag is a whole object, which nobody writes.
    Ok(unsafe { &(*pointer).value })
}

/// The object at `pointer`, to be changed.
///
/// # Errors
/// As [`object`].
///
/// # Safety
/// As [`object`], and nobody else reads or writes the memory during the call.
pub unsafe fn object_mut<'a, T>(pointer: *mut Tagged<T>, tag: u32) -> Result<&'a mut T> {
    // SAFETY: the caller of this function promises readable memory.
    unsafe { check_tag(pointer, tag)? };
    // SAFETY: `check_tag` found the pointer not NULL and aligned, and the tag; the caller promises that whatever has the
    // tag is a whole object, and that nobody else uses it during the call.
    Ok(unsafe { &mut (*pointer).value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_checked_from_their_numbers() {
        let values = [0u32; 4];
        let pointer = values.as_ptr();
        assert_eq!(span::<u32>(core::ptr::null(), 1).err(), Some(DAB_ERR_NULL));
        assert!(span::<u32>(core::ptr::null(), 0).is_ok());
        assert_eq!(span(pointer.wrapping_byte_add(1), 1).err(), Some(DAB_ERR_MISALIGNED));
        assert_eq!(span(pointer, usize::MAX).err(), Some(DAB_ERR_TOO_LARGE));
        assert_eq!(span(pointer, usize::MAX / 4).err(), Some(DAB_ERR_TOO_LARGE));
        assert_eq!(
            span(core::ptr::without_provenance::<u32>(usize::MAX - 3), 1).err(),
            Some(DAB_ERR_TOO_LARGE)
        );
    }

    #[test]
    fn structs_that_do_not_grow_at_their_end_are_found() {
        macro_rules! grows {
            ($layouts:expr, $member:ty) => {{
                #[derive(Clone, Copy)]
                #[repr(C)]
                struct Grown(u32, u32, $member);
                // SAFETY: repr(C), a u32 first, integers only.
                unsafe impl Sized32 for Grown {
                    const LAYOUTS: &'static [usize] = $layouts;
                }
                layouts_grow::<Grown>()
            }};
        }
        assert!(grows!(&[8, 12], u32) && grows!(&[12], u32) && grows!(&[8, 16], u64));
        assert!(!grows!(&[8], u32), "the last layout is forgotten");
        assert!(!grows!(&[12, 8], u32) && !grows!(&[12, 12], u32) && !grows!(&[], u32));
        assert!(!grows!(&[12, 16], u64), "the alignment rose");
    }

    #[test]
    fn touching_is_not_overlapping() {
        let values = [0u32; 4];
        let part = |from: usize, count| span(values[from..].as_ptr(), count).unwrap();
        assert!(disjoint(&[part(0, 2)], &[part(2, 2), Span::NONE]).is_ok());
        assert!(disjoint(&[part(0, 2), part(2, 1)], &[part(3, 1)]).is_ok());
        for (written, read) in [(part(0, 3), part(2, 2)), (part(2, 2), part(0, 3)), (part(1, 1), part(0, 4))]
        {
            assert_eq!(disjoint(&[written], &[read]), Err(DAB_ERR_OVERLAP));
            assert_eq!(disjoint(&[written, read], &[]), Err(DAB_ERR_OVERLAP));
            assert!(disjoint(&[], &[written, read]).is_ok(), "readers may share");
        }
    }
}
