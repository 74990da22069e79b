//! Whole artifacts with valid checksums whose writer lies in some fields.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dab_fuzz::lies::check(data));
