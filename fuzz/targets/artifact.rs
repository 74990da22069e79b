//! Bytes of a file → `Model::from_bytes` → everything that a model can be asked.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|data: &[u8]| dab_fuzz::artifact::check(data));

// A checksum keeps random changes out: seven in eight are sealed again, so that they reach the checks behind it.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    dab_fuzz::artifact::repair(&mut data[..size], seed);
    size
});
