//! The way out of the firmware of these examples: text and an exit status through the debugger (semihosting), and a
//! panic handler that proves itself useless.
#![no_std]

use semihosting::process;
use semihosting::sys::arm_compat::sys_writec;

unsafe extern "C" {
    /// Defined nowhere: if the firmware links, no panic is reachable.
    safe fn dab_a_panic_is_reachable() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    dab_a_panic_is_reachable()
}

/// Prints `text`.
pub fn print(text: &str) {
    for byte in text.bytes() {
        sys_writec(byte);
    }
}

/// Ends the program: QEMU's exit status is 0 when `well`.
pub fn exit(well: bool) -> ! {
    process::exit(i32::from(!well))
}
