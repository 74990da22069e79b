//! Calls of the C interface in any order, against the rules of dab.h.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dab_fuzz::calls::check(data));
