//! A foreign library may have switched the processor to flush subnormal numbers to zero, for the whole
//! process. The answers must not change by a bit.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;
use std::hint::black_box;

use dab_core::CovarianceKind;
use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::Spec;
use dab_tests::specs::{Random, any, bare};
use dab_tests::total::answers;

/// Flush-to-zero (bit 15) and denormals-are-zero (bit 6) of MXCSR.
const FLUSH: u32 = 1 << 15 | 1 << 6;

fn mxcsr() -> u32 {
    let mut value = 0u32;
    // SAFETY: `stmxcsr` writes four bytes to the address of a live `u32`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
    value
}

fn set_mxcsr(value: u32) {
    // SAFETY: `ldmxcsr` reads four bytes from the address of a live `u32`. Only the two flush bits ever
    // change, in this thread, and they are put back before anything but the kernels under test runs.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
}

fn flushed<R>(f: impl FnOnce() -> R) -> R {
    let before = mxcsr();
    set_mxcsr(before | FLUSH);
    let result = black_box(f());
    set_mxcsr(before);
    result
}

#[test]
fn the_mode_is_really_switched() {
    let tiny = black_box(f32::MIN_POSITIVE);
    assert_eq!(flushed(|| black_box(tiny) * black_box(0.5)), 0.0);
    assert!(black_box(tiny) * black_box(0.5) > 0.0);
}

/// Whether the model gives the same bits in both modes.
fn compare(spec: &Spec, inputs: &[Vec<f32>]) {
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    let model = bytes.model().expect("a model");
    for input in inputs {
        let (usual, other) =
            (answers(&model, input, 0.0), flushed(|| black_box(answers(&model, input, 0.0))));
        assert_eq!(usual, other, "{:?} alpha {} input {input:?}", spec.head.covariance, spec.codes.alpha);
    }
}

#[test]
fn networks_keep_their_bits() {
    let random = &mut Random(50);
    for case in 0..600 {
        let scale = random.pick(&[1e-14, 1e-7, 1.0, 30.0, 1e7, 6e14]);
        let spec = any(random, CovarianceKind::ALL[case % 4], scale);
        let input = |_| {
            let reach = (60.0 * random.unit()).exp2();
            let mut input = random.floats(spec.inputs, reach);
            let at = random.below(spec.inputs);
            input[at] = random.pick(&[0.0, f32::from_bits(7), f32::MAX, input[at]]);
            input
        };
        let inputs: Vec<_> = (0..10).map(input).collect();
        compare(&spec, &inputs);
    }
}

#[test]
fn raw_outputs_of_every_magnitude_keep_their_bits() {
    let random = &mut Random(51);
    for case in 0..300 {
        let (dim, codes) = (1 + random.below(9), 1 + random.below(9));
        let spec = bare(random, CovarianceKind::ALL[case % 4], dim, codes, 1.0);
        let (whole, zeros) = (random.pick(&[0.0, 20.0]), random.below(5));
        let input = |_| {
            let value = |_| {
                let zero = random.below(5) < zeros;
                let magnitude = (whole + 60.0 * random.unit()).exp2() * random.unit().signum();
                if zero { 0.0 } else { magnitude as f32 }
            };
            (0..spec.inputs).map(value).collect()
        };
        let inputs: Vec<_> = (0..40).map(input).collect();
        compare(&spec, &inputs);
    }
}
