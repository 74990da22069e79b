//! The motor watch that is taught, on a Cortex-M. All that it does is in the crate `motor`.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use debugger::{exit, print};

#[entry]
fn main() -> ! {
    exit(motor::taught::run(print))
}
