//! A memory as bytes, for a checkpoint or for flash.

use core::ffi::c_void;

use crate::memory::{Memory, of, opened};
use crate::ptr::{self, span};
use crate::status::{self, DAB_ERR_NULL, DAB_ERR_SAVED_STATE, DAB_ERR_TOO_SMALL, Result, Status};

/// Saves codes and settings (not `std`) into dab_memory_statistics.saved_bytes bytes, the same on every machine.
/// Returns DAB_OK, DAB_ERR_TOO_SMALL, or -1 to -6 for bad pointers. DAB_MEMORY_SAVED_BYTES(codes, dim) are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_save(
    memory: *mut Memory,
    bytes: *mut c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: `save` checks both pointers; the caller promises a memory without another user, and writable bytes.
    status::of(unsafe { save(memory, bytes.cast(), byte_count) })
}

/// # Safety
/// As [`dab_memory_save`].
unsafe fn save(memory: *mut Memory, bytes: *mut u8, count: usize) -> Result<()> {
    // SAFETY: the caller promises a memory without another user.
    let (view, _, place) = unsafe { opened(memory)? };
    let needed = view.saved_len();
    ptr::disjoint(&[span(bytes, needed)?], &[place])?;
    if count < needed {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: `span` checked the pointer, and `count` is large enough; the caller promises writable bytes.
    let bytes = unsafe { ptr::slice_mut(bytes, needed) };
    view.save(bytes).map(|_| ()).map_err(|e| of(&e))
}

/// Continues with a saved memory and its settings. It may have fewer codes than this one has places. byte_count may be
/// more than was saved, such as a whole page of flash.
/// Returns DAB_OK, DAB_ERR_SAVED_STATE if the bytes are damaged or do not fit, or -1 to -6 for bad pointers; on an error, the
/// memory stays as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_restore(
    memory: *mut Memory,
    bytes: *const c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: `restore` checks both pointers; the caller promises a memory without another user, and readable bytes.
    status::of(unsafe { restore(memory, bytes.cast(), byte_count) })
}

/// # Safety
/// As [`dab_memory_restore`].
unsafe fn restore(memory: *mut Memory, bytes: *const u8, count: usize) -> Result<()> {
    // SAFETY: the caller promises a memory without another user.
    let (mut view, _, place) = unsafe { opened(memory)? };
    if bytes.is_null() {
        return Err(DAB_ERR_NULL);
    }
    ptr::disjoint(&[place], &[span(bytes, count)?])?;
    // SAFETY: `span` checked pointer and length; the caller promises readable bytes that nobody writes.
    let bytes = unsafe { ptr::slice(bytes, count) };
    view.restore(bytes).map_err(|_| DAB_ERR_SAVED_STATE)
}
