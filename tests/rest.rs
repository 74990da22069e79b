//! What a view of few axes leaves out is its last axis: the formula, what it sees, and what is refused.

use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::artifact::schema::{CHANNELS, CovarianceKind, REST};
use dab_core::artifact::taught::add_taught;
use dab_core::artifact::writer::{ChannelsSpec, Codes, Head, RestSpec, Spec};
use dab_core::artifact::{AlignedBytes, ArtifactError, Part};
use dab_core::codebook::{CodebookView, PrecisionLayout};
use dab_core::{Activation, Assessment};
use dab_tests::patch::{Parts, seal, word};
use dab_tests::specs::{Random, add_rests, any};

/// Relative error of a square that is a difference of f32 sums of some hundred terms, against float64.
const RELATIVE: f64 = 2e-5;

fn assess(bytes: &[u8], input: &[f32]) -> Assessment {
    let file = AlignedBytes::from(bytes);
    let model = file.model().expect("a model");
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    model.assess(input, &mut scratch).expect("an input")
}

/// One code at 0 and two of `inputs` axes, e₀ and (e₁ + e₂) of other lengths; the rest is what is outside of them about `centre`.
fn plane(centre: &[f32], gain: f32) -> Spec {
    let inputs = centre.len();
    let mut weight = vec![0.0; 3 * inputs];
    weight[0] = 2.0;
    (weight[inputs + 1], weight[inputs + 2]) = (3.0, 3.0);
    weight[2 * inputs..].copy_from_slice(centre);
    let bias = |row: usize| -> f32 {
        -weight[row * inputs..(row + 1) * inputs].iter().zip(centre).map(|(w, c)| w * c).sum::<f32>()
    };
    let bias = vec![bias(0), bias(1), 0.5 * bias(2)];
    let head = Head {
        weight,
        bias: Some(bias),
        activation: Activation::Identity,
        covariance: CovarianceKind::Constant,
        dim: 3,
    };
    let codes = Codes { means: vec![0.0; 3], covs: Vec::new(), priors: vec![1.0], alpha: 1.0 };
    let rests = vec![RestSpec { view: 0, scales: vec![0.5, (18.0_f32).sqrt().recip()], gain }];
    Spec {
        channels: Some(ChannelsSpec { rests, ..ChannelsSpec::default() }),
        ..Spec::new(inputs, head, codes)
    }
}

#[test]
fn the_last_axis_is_the_length_of_what_the_others_leave_out() {
    let mut random = Random(5);
    for gain in [0.25, 1.0, 40.0] {
        let centre = random.floats(300, 0.5);
        let bytes = plane(&centre, gain).to_bytes().expect("a model");
        for _ in 0..50 {
            let input = random.floats(300, 3.0);
            let part: Vec<f64> =
                input.iter().zip(&centre).map(|(x, c)| f64::from(*x) - f64::from(*c)).collect();
            let (first, second) = (2.0 * part[0], 3.0 * (part[1] + part[2]));
            let whole: f64 = part.iter().map(|x| x * x).sum();
            let outside = whole - first * first / 4.0 - second * second / 18.0;
            let expected = 0.5 * (first * first + second * second + f64::from(gain).powi(2) * outside);
            let found = f64::from(assess(&bytes, &input).uncertainty);
            assert!((found - expected).abs() <= RELATIVE * expected, "{found} {expected}");
        }
        // At the centre, and anywhere in the plane, there is no rest; outside of it the view is not blind.
        assert!(assess(&bytes, &centre).uncertainty < 1e-2 * gain * gain);
        let mut moved = centre.clone();
        moved[200] += 5.0;
        let u = assess(&bytes, &moved).uncertainty;
        assert!((u / (12.5 * gain * gain) - 1.0).abs() < 1e-2, "{u}");
    }
}

#[test]
fn every_finite_input_of_a_model_with_rests_has_a_finite_answer_that_scratch_does_not_change() {
    let mut random = Random(6);
    let mut seen = 0;
    for _ in 0..150 {
        let kind = random.pick(&CovarianceKind::ALL);
        let mut spec = any(&mut random, kind, 1.0);
        let Some(_) = spec.channels else { continue };
        seen += 1;
        add_rests(&mut random, &mut spec);
        let bytes = spec.to_bytes().expect("a model");
        let file = AlignedBytes::from(&*bytes);
        let model = file.model().expect("a model");
        let mut scratch = vec![0.0; model.scratch_len()];
        assert_eq!(model.self_test(&mut scratch), Ok(()));
        for scale in [0.0, 1e-30, 1.0, 1e10, 3e38] {
            let input = random.floats(spec.inputs, scale);
            scratch.fill(f32::NAN);
            let found = model.assess(&input, &mut scratch).expect("an input");
            assert!(
                found.uncertainty.is_finite() && found.unfamiliarity.is_some_and(f32::is_finite),
                "{found:?}"
            );
            scratch.fill(7.0);
            assert_eq!(model.assess(&input, &mut scratch), Ok(found));
            // What each axis says adds up, the rest among them.
            let (k, dim) = (model.shape().codes, model.shape().dim);
            let (mut distances, mut assignment, mut axes) = (vec![0.0; k], vec![0.0; k], vec![0.0; dim]);
            let explained = model
                .explain_into(&input, &mut distances, &mut assignment, &mut axes, &mut scratch)
                .expect("room");
            assert_eq!(explained, found);
            let sum: f64 = axes.iter().map(|&x| f64::from(x)).sum();
            let u = f64::from(found.uncertainty);
            // Of tiny and huge numbers sums are limited on the way.
            assert!(scale != 1.0 || (sum - u).abs() <= 1e-3 * u.max(1.0), "{sum} {u}");
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn a_file_with_rests_says_so_and_keeps_them_with_bytes_and_codes_that_are_taught() {
    let bytes = plane(&[0.5; 40], 2.0).to_bytes().expect("a model");
    assert_eq!((&bytes[8..12], word(&bytes, 16)), (&[1, 0, 3, 0][..], CHANNELS | REST));
    let mut moved = [0.5; 40];
    moved[30] += 5.0;
    let before = assess(&bytes, &moved).uncertainty;
    let small = quantise(&bytes, &HeldOut::default()).expect("a model with weights of one byte");
    let after = assess(&small, &moved).uncertainty;
    assert!(small.len() < bytes.len() && (after / before - 1.0).abs() < 0.05, "{before} {after}");
    for file in [&bytes, &small] {
        let model = AlignedBytes::from(&**file);
        let model = model.model().expect("a model");
        let mut scratch = vec![0.0; model.scratch_len()];
        // What lies in the plane can be taught; what lies outside of it cannot, or one sensor would speak for all.
        let mut near = [0.5; 40];
        near[0] += 9.0;
        let mean = model.encode(&near, &mut scratch).expect("an input").mean.to_vec();
        let outside = model.encode(&moved, &mut scratch).expect("an input").mean.to_vec();
        let stays = 0.5 * outside[2] * outside[2];
        let codes = CodebookView {
            dim: 3,
            means: &mean,
            precisions: &[1.0; 3],
            layout: PrecisionLayout::Diagonal,
            log_dets: &[0.0],
            priors: &[1.0],
            alpha: 1.0,
        };
        let taught = add_taught(file, &codes, &[]).expect("a taught model");
        assert_eq!(taught[10], 3);
        assert!(assess(file, &near).uncertainty > 100.0 && assess(&taught, &near).uncertainty < 3.0);
        let codes = CodebookView { means: &outside, ..codes };
        let taught = add_taught(file, &codes, &[]).expect("a taught model");
        assert_eq!(assess(&taught, &moved).uncertainty, stays);
    }
}

#[test]
fn a_rest_that_cannot_be_is_refused() {
    let bytes = plane(&[0.5; 4], 2.0).to_bytes().expect("a model");
    let sound = Parts::of(&bytes);
    assert_eq!(sound.join().as_slice(), bytes);
    let refused = |change: &dyn Fn(&mut Parts)| {
        let mut parts = sound.clone();
        change(&mut parts);
        parts.join().model().err()
    };
    let views =
        |views: u32| refused(&|parts| *parts.params.last_mut().expect("a word") = f32::from_bits(views));
    for wrong in [0, 2, 3, u32::MAX] {
        assert_eq!(views(wrong), Some(ArtifactError::Limit { field: "rest.views", value: wrong, max: 1 }));
    }
    let value = |at: usize, x: f32| refused(&|parts| parts.part(Part::Rest)[at] = x);
    for at in 0..3 {
        let out = Some(ArtifactError::OutOfRange { part: Part::Rest, index: at });
        assert_eq!((value(at, -1.0), value(at, -0.0), value(at, 1e30)), (out, out, out));
        assert_eq!(value(at, f32::NAN), Some(ArtifactError::NonFinite { part: Part::Rest, index: at }));
        assert_eq!(value(at, 0.0), None);
    }
    let short = refused(&|parts| {
        parts.params.drain(..parts.params.len() - 3);
    });
    assert_eq!(short, Some(ArtifactError::ParamCount { expected: 4, found: 3 }));
    // The bit alone, in a file without channels.
    let mut plain = dab_tests::specs::real()[0].1.to_bytes().expect("a model");
    plain[16] |= REST as u8;
    seal(&mut plain);
    assert!(matches!(AlignedBytes::from(&*plain).model().err(), Some(ArtifactError::Schema { .. })));
    let mut parts = Parts::of(&dab_tests::specs::real()[0].1.to_bytes().expect("a model"));
    parts.rest = true;
    assert_eq!(parts.join().model().err(), Some(ArtifactError::Channels { field: "rest" }));
    // A writer refuses what its reader would.
    let mut spec = plane(&[0.5; 4], 2.0);
    spec.channels.as_mut().expect("channels").rests[0].view = 1;
    assert!(spec.to_bytes().is_err());
}
