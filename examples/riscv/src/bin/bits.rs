//! The same bits everywhere, on this processor: prints the hash that `tests/proof/hash` holds.
#![no_std]
#![no_main]

use debugger::{exit, print};
use riscv_rt::entry;

#[entry]
fn main() -> ! {
    exit(dab_proof::print_all(print))
}
