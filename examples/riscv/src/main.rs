//! The motor watch on RISC-V. All that it does is in the crate `motor`.
#![no_std]
#![no_main]

use riscv_rt::entry;
use debugger::{exit, print};

#[entry]
fn main() -> ! {
    exit(motor::run(print))
}
