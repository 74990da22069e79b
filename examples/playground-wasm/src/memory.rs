//! Memory that grows and is never given back: a page makes a new instance of the module for every model, and the
//! browser frees the old one whole.

/// Bytes of a page of WebAssembly memory; a page starts at a multiple of it.
const PAGE: usize = 1 << 16;

/// `len` zero bytes that nobody else has, at a multiple of 64 KiB; `None` when the browser has no more.
pub fn bytes(len: usize) -> Option<&'static mut [u8]> {
    if len == 0 {
        return Some(&mut []);
    }
    let before = core::arch::wasm32::memory_grow(0, len.div_ceil(PAGE));
    if before == usize::MAX {
        return None;
    }
    let start = core::ptr::with_exposed_provenance_mut(before * PAGE);
    // SAFETY: memory.grow succeeded (checked above), so at least `len` bytes from `start` on exist, are zero, and did not
    // exist before: no other reference covers them, and no heap of this module grows memory, too. Memory never shrinks,
    // so they live as long as the instance. The page writes to them between calls alone, while nothing here runs
    // (engine.js, at its top).
    Some(unsafe { core::slice::from_raw_parts_mut(start, len) })
}

/// `len` numbers 0 that nobody else has.
pub fn numbers<T: bytemuck::Pod>(len: usize) -> Option<&'static mut [T]> {
    if len == 0 {
        return Some(&mut []);
    }
    bytes(len.checked_mul(size_of::<T>())?).map(bytemuck::cast_slice_mut)
}
