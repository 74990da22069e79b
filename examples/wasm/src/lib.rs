//! dab-core in WebAssembly: the same bits as everywhere.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// The hash of `tests/same-bits`; 0 when there is none.
// SAFETY: nothing else in this module has that name.
#[unsafe(no_mangle)]
pub extern "C" fn hash() -> u64 {
    dab_same_bits::hash_of(dab_same_bits::INPUTS).unwrap_or(0)
}
