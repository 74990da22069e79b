//! Files of any bytes, in every format that dab-train reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dab_fuzz::readers::check(data));
