//! Nothing but start-up and exit: what the sizes of the other programs are compared with.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use debugger::exit;

#[entry]
fn main() -> ! {
    exit(core::hint::black_box(true))
}
