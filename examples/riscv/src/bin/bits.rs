//! The same bits everywhere, on this processor: prints the hash that `tests/proof/hash` holds.
#![no_std]
#![no_main]

use riscv_rt::entry;
use debugger::{exit, print};

#[entry]
fn main() -> ! {
    let hash = dab_proof::all();
    if let Ok(hash) = hash {
        for digit in dab_proof::hexadecimal(hash) {
            print(digit);
        }
        print("\n");
    }
    exit(hash.is_ok())
}
