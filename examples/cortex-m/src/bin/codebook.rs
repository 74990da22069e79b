//! The smallest program with a diagonal codebook of fixed size and no loader: for its size.
#![no_std]
#![no_main]

use core::hint::black_box;
use cortex_m_rt::entry;
use dab_core::gaussian::Diagonal;
use dab_core::{Codebook, Gaussian};
use debugger::exit;

#[entry]
fn main() -> ! {
    let encode = |raw: &[f32]| Gaussian::<4, Diagonal>::from_raw(raw);
    let mut codebook = Codebook::<4, 4>::new(1.0).ok();
    for raw in black_box(&[[0.0f32; 8]; 4]) {
        if let (Some(codebook), Some(code)) = (codebook.as_mut(), encode(raw)) {
            let _ = codebook.push(&code, 0.25);
        }
    }
    let input = black_box([0.0; 8]);
    let uncertainty = codebook.zip(encode(&input)).map(|(codebook, p)| codebook.assess(&p).uncertainty);
    exit(black_box(uncertainty).is_some())
}
