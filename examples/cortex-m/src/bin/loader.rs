//! The smallest program with the loader, every covariance kind and every activation: for its size.
#![no_std]
#![no_main]

use core::hint::black_box;
use cortex_m_rt::entry;
use dab_core::Model;
use debugger::exit;

#[entry]
fn main() -> ! {
    let (artifact, input) = (black_box(&[][..]), black_box(&[][..]));
    let mut scratch = [0.0; motor::SCRATCH];
    let Ok(model) = Model::from_bytes(artifact) else { exit(false) };
    exit(black_box(model.assess(input, &mut scratch)).is_ok())
}
