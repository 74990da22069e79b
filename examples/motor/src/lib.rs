//! A motor watched by its own current: what the firmware does once the board is up.
//!
//! ```text
//! boot: model in flash → checks → self-test      each window: ADC counts → inputs → speed, u → guard → alarm
//! ```
//!
//! The model (`model.dab`, backbone included) and a recorded stream (`stream.bin`: healthy, a winding opens, mended)
//! lie in flash; a product would read its ADC instead. README.md says how both were made. Prints without
//! formatting: `core::fmt` would be the largest part of the program, and the only one that can panic.
#![no_std]
#![forbid(unsafe_code)]

pub mod taught;

use dab_core::monitor::{Config, Drift, State};
use dab_core::{Guard, Model, aligned_artifact};

/// Samples of the current in a window; one of the voltage follows.
pub const WINDOW: usize = 24;
/// Inputs of the model: the samples' differences from their mean, the mean, the voltage.
pub const INPUTS: usize = WINDOW + 2;
/// Floats of scratch, as `dab inspect` says.
pub const SCRATCH: usize = 68;

/// The model, aligned so that its numbers can be read in place.
pub static MODEL: &[u8] = aligned_artifact!("../model.dab");
/// Windows of `WINDOW + 1` little-endian 16-bit counts.
pub static STREAM: &[u8] = include_bytes!("../stream.bin");

/// The windows of the stream, as inputs of the model.
pub fn windows() -> impl Iterator<Item = [f32; INPUTS]> {
    windows_of(STREAM)
}

/// The windows of a recording.
fn windows_of(stream: &[u8]) -> impl Iterator<Item = [f32; INPUTS]> {
    let (windows, _) = stream.as_chunks::<{ 2 * (WINDOW + 1) }>();
    windows.iter().map(|window| {
        let (counts, _) = window.as_chunks::<2>();
        let counts = || counts.iter().map(|&c| i32::from(u16::from_le_bytes(c)));
        let mean = counts().take(WINDOW).sum::<i32>() / WINDOW as i32;
        let voltage = counts().skip(WINDOW);
        let values = counts().take(WINDOW).map(|c| c - mean).chain([mean]).chain(voltage);
        let mut inputs = [0.0; INPUTS];
        for (input, value) in inputs.iter_mut().zip(values) {
            *input = value as f32;
        }
        inputs
    })
}

/// A guard that trusts what one in a hundred healthy windows exceeds at most; `None` without a calibration table.
fn guard<'m, 'a>(model: &'m Model<'a>) -> Option<Guard<'m, 'a>> {
    let table = model.calibration()?;
    let config = Config {
        enter: table.threshold(0.01)?,
        exit: table.threshold(0.05)?,
        enter_votes: 4,
        exit_votes: 8,
        window: 8,
        reject_votes: 2,
        min_dwell: 10,
        timeout: 3,
        drift: Drift::OFF,
    };
    Guard::new(model, config).ok()
}

/// The model, if it may be used.
fn start(print: fn(&str), scratch: &mut [f32; SCRATCH]) -> Option<Model<'static>> {
    let Ok(model) = Model::from_bytes(MODEL) else {
        print("the model is damaged\n");
        return None;
    };
    if model.self_test(scratch).is_err() {
        print("self-test failed: do not trust this build\n");
        return None;
    }
    print("self-test passed\n");
    Some(model)
}

/// Boots, watches the stream and prints each change. Whether the model could be used at all.
pub fn run(print: fn(&str)) -> bool {
    let mut scratch = [0.0; SCRATCH];
    let Some(model) = start(print, &mut scratch) else { return false };
    let Some(mut guard) = guard(&model) else { return false };
    let mut before = guard.monitor().state();
    for (now, window) in (0..).zip(windows()) {
        let mut speed = [0.0];
        let decision = guard.predict(now, &window, &mut speed, &mut scratch);
        let state = decision.state;
        if state != before {
            print("window ");
            print_number(print, now, 0);
            print(match state {
                State::Nominal => ": trusted, speed ",
                State::Fallback => ": fallback, speed ",
                State::Stale => ": no data, speed ",
            });
            print_number(print, speed[0] as u32, 0);
            print(" rad/s, u ");
            let nats = decision.assessment.map_or(f32::MAX, |found| found.uncertainty);
            print_number(print, (nats * 100.0) as u32, 2);
            print(" nats\n");
            before = state;
        }
    }
    let statistics = guard.monitor().statistics();
    print_number(print, statistics.inputs as u32, 0);
    print(" windows, ");
    print_number(print, statistics.alarms as u32, 0);
    print(" alarms\n");
    true
}

/// Prints `number / 10^decimals`. By subtraction: a division is a panic that must be proved away.
fn print_number(print: fn(&str), mut number: u32, decimals: u32) {
    let mut started = false;
    for left in (0..10).rev() {
        let place = 10u32.wrapping_pow(left);
        let mut digits = "0123456789";
        while number >= place {
            number -= place;
            digits = digits.get(1..).unwrap_or("");
        }
        started |= !digits.starts_with('0') || left <= decimals;
        if started {
            print(digits.get(..1).unwrap_or(""));
        }
        if left == decimals && decimals > 0 {
            print(".");
        }
    }
}
