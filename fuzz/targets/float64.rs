//! Random models and inputs: dab-core against float64, within an error bound that is computed along.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dab_fuzz::float64::check(data));
