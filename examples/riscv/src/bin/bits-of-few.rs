//! The same bits everywhere, on this processor: prints the hash that `tests/same-bits/hash-of-few` holds.
#![no_std]
#![no_main]

use debugger::{exit, print};
use riscv_rt::entry;

#[entry]
fn main() -> ! {
    exit(dab_same_bits::print_hash_of(dab_same_bits::FEW_INPUTS, print))
}
