//! The same bits everywhere, on this processor: prints the hash that `tests/same-bits/hash` holds.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use debugger::{exit, print};

#[entry]
fn main() -> ! {
    exit(dab_same_bits::print_hash_of(dab_same_bits::INPUTS, print))
}
