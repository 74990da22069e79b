//! dab-core against the float64 reference vectors, and its own bits.

use dab_core::CovarianceKind;
use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::Spec;
use dab_tests::bits::assert_bits;
use dab_tests::golden::{Golden, TYPICAL};
use dab_tests::shared;
use dab_tests::specs::{Random, any};

/// Typical rows, diagonal: sums of 80 terms of one sign.
const DIAGONAL_TYPICAL: f64 = 1e-5;
/// Typical rows, full: the eigen-decomposition and the head's 640-term sums come on top.
const FULL_TYPICAL: f64 = 1e-4;
/// Extreme rows: raw outputs up to 6e4.
const EXTREME: f64 = 1e-3;
/// Assignments lie in [0, 1]; an error of ε D in a distance D of up to some hundred nats moves them by that.
const ASSIGNMENT: f64 = 1e-4;
/// Outputs against the sum of the magnitudes of their terms: up to three affine maps in f32.
const OUTPUT: f64 = 2e-6;

/// Largest relative errors of one pass over a set.
#[derive(Debug, Default)]
struct Errors {
    typical: f64,
    extreme: f64,
    distance: f64,
    assignment: f64,
    output: f64,
}

/// Keeps the largest error. One that is no number counts as infinite: `f64::max` would pass over it.
fn raise(largest: &mut f64, error: f64) {
    *largest = largest.max(if error.is_nan() { f64::INFINITY } else { error });
}

fn measure(golden: &Golden, spec: &Spec, inputs: &str, rows: usize, bits: &str) -> Errors {
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("the reference describes a model"));
    let model = bytes.model().expect("a readable artifact");
    let shape = model.shape();
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    model.self_test(&mut scratch).expect("the known answers");
    let (mut distances, mut assignment) = (vec![0.0; shape.codes], vec![0.0; shape.codes]);
    let (mut dimensions, mut outputs) = (vec![0.0; shape.dim], vec![0.0; shape.outputs]);
    let (mut errors, mut found) = (Errors::default(), Vec::new());
    for row in 0..rows {
        let input = golden.row_f32(inputs, row);
        let assessment = model.predict_into(&input, &mut outputs, &mut scratch).expect("a finite input");
        model
            .explain_into(&input, &mut distances, &mut assignment, &mut dimensions, &mut scratch)
            .expect("a finite input");
        let exact = golden.values("uncertainty")[row];
        let relative = |found: f32, exact: f64| (f64::from(found) - exact).abs() / exact;
        let error = if row < TYPICAL { &mut errors.typical } else { &mut errors.extreme };
        raise(error, relative(assessment.uncertainty, exact));
        for (&d, &kl) in distances.iter().zip(golden.row("kl", row)) {
            raise(&mut errors.distance, relative(d, kl));
        }
        if row < TYPICAL {
            for (&a, &pi) in assignment.iter().zip(golden.row("pi_x", row)) {
                raise(&mut errors.assignment, (f64::from(a) - pi).abs());
            }
        }
        for (j, (&y, &exact)) in outputs.iter().zip(golden.row("dec_out", row)).enumerate() {
            let terms = golden.row("z", row).iter().enumerate();
            let size: f64 = terms.map(|(i, z)| (z * golden.row("dec_W", i)[j]).abs()).sum();
            let size = size + golden.values("dec_b")[j].abs();
            raise(&mut errors.output, (f64::from(y) - exact).abs() / size);
        }
        found.push(assessment.uncertainty);
    }
    assert_bits(bits, &found);
    println!("{bits}: {errors:?}");
    errors
}

fn check(test: &str, set: &str, typical: f64) {
    let Some(path) = shared(test, &format!("golden/{set}.npz")) else { return };
    let golden = Golden::open(&path);
    let rows = golden.values("uncertainty").len();
    let errors = measure(&golden, &golden.head_level(), "head", rows, &format!("{set}-head"));
    let mut all = vec![errors];
    if let Some((spec, inputs)) = golden.whole() {
        all.push(measure(&golden, &spec, inputs, TYPICAL, &format!("{set}-whole")));
    }
    for errors in all {
        assert!(errors.typical <= typical, "{set}: typical rows, {errors:?}");
        assert!(errors.extreme <= EXTREME, "{set}: extreme rows, {errors:?}");
        assert!(errors.distance <= typical, "{set}: distances, {errors:?}");
        assert!(errors.assignment <= ASSIGNMENT, "{set}: assignments, {errors:?}");
        assert!(errors.output <= OUTPUT, "{set}: outputs, {errors:?}");
    }
}

/// Bits of every kind of model, on inputs that need no data: what every target has to reproduce.
#[test]
fn own_bits_of_all_kinds() {
    for kind in CovarianceKind::ALL {
        let mut random = Random(7);
        let mut found = Vec::new();
        for _ in 0..8 {
            let spec = any(&mut random, kind, 1.0);
            let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a sound model"));
            let model = bytes.model().expect("a readable artifact");
            let mut scratch = vec![0.0; model.scratch_len()];
            let mut outputs = vec![0.0; model.shape().outputs];
            for scale in [1e-3, 1.0, 3.0, 1e3] {
                for _ in 0..4 {
                    let input = random.floats(spec.inputs, scale);
                    let a = model.predict_into(&input, &mut outputs, &mut scratch).expect("a finite input");
                    found.extend([a.uncertainty, a.nearest_distance, a.p_value.unwrap_or(0.0)]);
                    found.extend(&outputs);
                }
            }
        }
        assert_bits(&format!("own-{}", kind.name()), &found);
    }
}

#[test]
fn full_640_to_8_with_10_codes() {
    check("full_640_to_8_with_10_codes", "a_full_d8_k10_in640", FULL_TYPICAL);
}

#[test]
fn diagonal_80_with_1000_codes() {
    check("diagonal_80_with_1000_codes", "b_diag_d80_k1000", DIAGONAL_TYPICAL);
}

#[test]
fn full_8_to_50_to_4_with_2_codes() {
    check("full_8_to_50_to_4_with_2_codes", "c_full_d4_k2_in50", FULL_TYPICAL);
}
