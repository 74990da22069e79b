//! The motor watch that is taught, on a RISC-V. All that it does is in the crate `motor`.
#![no_std]
#![no_main]

use debugger::{exit, print};
use riscv_rt::entry;

#[entry]
fn main() -> ! {
    exit(motor::taught::run(print))
}
