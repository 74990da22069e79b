//! Monitor, exploration bonus, memory, ellipse and slots: any sequence of calls, and restores of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dab_fuzz::states::check(data));
