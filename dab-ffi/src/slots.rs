//! Two slots of flash, written in turn, so that a power cut leaves the old or the new state.

use core::ffi::c_void;

use dab_core::slots::{self, Slot};

use crate::ptr::{self, span};
use crate::status::{self, DAB_ERR_SAVED_STATE, DAB_ERR_TOO_SMALL, Result, Status};

/// Bytes of a slot before its state.
pub const DAB_SLOT_HEAD_BYTES: usize = 16;

const _: () = assert!(DAB_SLOT_HEAD_BYTES == slots::HEAD_BYTES);

/// Makes a slot of `slot`, in RAM: a state of state_bytes bytes lies behind its first DAB_SLOT_HEAD_BYTES bytes, which are filled
/// in. sequence: the newest slot's sequence plus 1, after UINT32_MAX comes 0; any number for the first. Then write the
/// DAB_SLOT_HEAD_BYTES + state_bytes bytes to flash, over the slot that does not hold the newest state.
/// Returns DAB_OK, DAB_ERR_TOO_SMALL if the slot is shorter than that, or -1 or -5 for a bad pointer or size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_slot_seal(
    slot: *mut c_void,
    slot_bytes: usize,
    sequence: u32,
    state_bytes: usize,
) -> Status {
    // SAFETY: `seal` checks the pointer; the caller promises bytes that are writable and this call's alone.
    status::of(unsafe { seal(slot.cast(), slot_bytes, sequence, state_bytes) })
}

/// # Safety
/// As [`dab_slot_seal`].
unsafe fn seal(slot: *mut u8, bytes: usize, sequence: u32, length: usize) -> Result<()> {
    span(slot, bytes)?;
    // SAFETY: `span` checked pointer and length; the caller promises bytes that are writable and this call's alone.
    let slot = unsafe { ptr::slice_mut(slot, bytes) };
    slots::seal(slot, sequence, length).map(|_| ()).ok_or(DAB_ERR_TOO_SMALL)
}

/// Which of two slots of slot_bytes bytes each, as they lie in flash, has the newest whole state: 0 or 1. *sequence is its
/// number, and its *state_bytes bytes lie behind the first DAB_SLOT_HEAD_BYTES ones.
/// Returns 0, 1, or an error: DAB_ERR_SAVED_STATE if neither slot is whole, -1 to -5 for bad pointers and sizes. After an error
/// nothing is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_slot_newest(
    first: *const c_void,
    second: *const c_void,
    slot_bytes: usize,
    sequence: *mut u32,
    state_bytes: *mut usize,
) -> Status {
    // SAFETY: `newest` checks every pointer; the caller promises readable slots that nobody writes, and writable results.
    let found = unsafe { newest([first.cast(), second.cast()], slot_bytes, sequence, state_bytes) };
    match found {
        Ok(Slot::First) => 0,
        Ok(Slot::Second) => 1,
        Err(status) => status,
    }
}

/// # Safety
/// As [`dab_slot_newest`].
unsafe fn newest(
    [first, second]: [*const u8; 2],
    bytes: usize,
    sequence: *mut u32,
    length: *mut usize,
) -> Result<Slot> {
    let read = [span(first, bytes)?, span(second, bytes)?];
    ptr::disjoint(&[span(sequence, 1)?, span(length, 1)?], &read)?;
    // SAFETY: `span` checked pointer and length; the caller promises readable bytes that nobody writes.
    let [first, second] = unsafe { [ptr::slice(first, bytes), ptr::slice(second, bytes)] };
    let found = slots::newest(first, second).ok_or(DAB_ERR_SAVED_STATE)?;
    // SAFETY: `span` checked both pointers, `disjoint` that they lie apart from the slots; the caller promises that they
    // are writable.
    unsafe {
        ptr::put(sequence, found.sequence);
        ptr::put(length, found.state.len());
    }
    Ok(found.slot)
}
