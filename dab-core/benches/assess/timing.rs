//! Time of short calls, for benches that race them against each other.

use std::hint::black_box;
use std::time::Instant;

/// One turn of a race: long against the clock's resolution, short against a scheduler's slice.
pub const ROUND_NANOSECONDS: f64 = 3e5;

/// Nanoseconds of one of `repeats` calls.
pub fn nanoseconds(call: &mut dyn FnMut() -> f32, repeats: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(repeats)
}

/// The middle one of the values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
