//! Raw pointers: the only place where memory of the caller becomes a reference.
//!
//! Every call does the same, in this order: each pointer is checked by itself ([`span`]: NULL, alignment,
//! size), then those that are written against all others ([`disjoint`]), then references are made. What can be
//! seen from numbers is checked; that the memory exists is the caller's promise (dab.h, "Memory").

use core::mem::{align_of, size_of};

use crate::status::{
    DAB_ERR_MISALIGNED, DAB_ERR_NOT_INITIALIZED, DAB_ERR_NULL, DAB_ERR_OVERLAP, DAB_ERR_STRUCT_SIZE,
    DAB_ERR_TOO_LARGE, Result,
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
/// # Safety
/// `repr(C)`, a `u32` first, and every bit pattern of every member is a value.
pub unsafe trait Sized32: Copy {}

/// The size that the struct at `pointer` says it has, in bytes: at least that of `T`.
///
/// # Errors
/// When the pointer is bad, or the size smaller or no multiple of the alignment.
///
/// # Safety
/// If not NULL, `pointer` points to a readable `uint32_t`.
pub unsafe fn declared_size<T: Sized32>(pointer: *const T) -> Result<usize> {
    span(pointer, 1)?;
    // SAFETY: `span` checked NULL and alignment; a `Sized32` begins with a u32, which the caller of this
    // function promises to be readable.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    let sound = size >= size_of::<T>() && size.is_multiple_of(align_of::<T>());
    if sound { Ok(size) } else { Err(DAB_ERR_STRUCT_SIZE) }
}

/// A copy of a configuration.
///
/// # Errors
/// As [`declared_size`].
///
/// # Safety
/// If not NULL, `pointer` points to as many readable bytes as its first member says.
pub unsafe fn config<T: Sized32>(pointer: *const T) -> Result<T> {
    // SAFETY: handed on.
    unsafe { declared_size(pointer)? };
    // SAFETY: NULL and alignment were checked, the struct is at least as large as `T`, and a `Sized32` has a
    // value for every bit pattern.
    Ok(unsafe { pointer.read() })
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
    // SAFETY: handed on.
    unsafe { check_tag(pointer, tag)? };
    // SAFETY: NULL and alignment were checked; with the tag the caller promises a whole object.
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
    // SAFETY: handed on.
    unsafe { check_tag(pointer, tag)? };
    // SAFETY: NULL and alignment were checked; with the tag the caller promises a whole object, and that it is
    // nobody else's during the call.
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
