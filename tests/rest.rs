//! What a view of few axes leaves out is its last axis: the formula, what it sees, and what is refused.

use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::artifact::schema::{CHANNELS, CovarianceKind, Form, REST};
use dab_core::artifact::writer::{ChannelsSpec, Codes, Head, RestSpec, Spec, SpecError, ViewSpec};
use dab_core::artifact::{AlignedBytes, ArtifactError, Part};
use dab_core::channels::{Tails, ViewScore};
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

/// Three views of six inputs, each a [`plane`] about ½ with gains 2, 1 and 3; those whose bit is in `mask` have a rest.
fn planes(mask: u32) -> Spec {
    let mut spec = plane(&[0.5; 6], 2.0);
    let view = ViewSpec {
        normalization: None,
        l2: false,
        head_weight: spec.head.weight.clone(),
        head_bias: spec.head.bias.clone().expect("a bias"),
        dim: 3,
        alpha: 1.0,
        means: vec![0.0; 3],
        priors: vec![1.0],
        decoder: None,
        form: Form::Distance,
        tails: Tails::UNIT,
    };
    let channels = spec.channels.as_mut().expect("channels");
    channels.views = vec![view.clone(), view];
    let first = channels.rests.remove(0);
    let rests = [2.0, 1.0, 3.0].into_iter().enumerate().filter(|(view, _)| mask >> view & 1 == 1);
    channels.rests =
        rests.map(|(view, gain)| RestSpec { view, gain, scales: first.scales.clone() }).collect();
    spec
}

#[test]
fn each_view_has_a_rest_of_its_own_or_none() {
    // From the centre: 1, 2, −1, 3, 0, 0. That is 2 and 3 along the axes, and 15 − 1 − ½ is left of the square.
    let input = [1.5, 2.5, -0.5, 3.5, 0.5, 0.5];
    let outside = 15.0 - 1.0 - 0.5;
    // Without a rest the last axis is c·x − ½‖c‖².
    let last = 0.5 * 8.0 - 0.75;
    for mask in 0..8 {
        let file = AlignedBytes::from(&*planes(mask).to_bytes().expect("a model"));
        let model = file.model().expect("a model");
        let mut views = [ViewScore::default(); 3];
        let mut scratch = vec![f32::NAN; model.scratch_len()];
        let found = model.views_into(&input, &mut views, &mut scratch).expect("an input");
        for (view, gain) in [2.0, 1.0, 3.0].into_iter().enumerate() {
            let has_rest = mask >> view & 1 == 1;
            assert_eq!(model.has_rest(view), has_rest, "views {mask:b}, view {view}");
            let square: f64 = if has_rest { gain * gain * outside } else { last * last };
            let (expected, distance) = (0.5 * (4.0 + 9.0 + square), f64::from(views[view].distance));
            assert!(
                (distance - expected).abs() <= RELATIVE * expected,
                "{mask:b} {view} {distance} {expected}"
            );
        }
        assert_eq!(found.uncertainty, views[0].distance);
        for view in [3, 4, 31, 32, 64, usize::MAX] {
            assert!(!model.has_rest(view), "there is no view {view}");
        }
        // A head of 6 · 3 and one code of 3 in each view; with a rest the length of 6 inputs, and twice its 3 values.
        let rests = u64::from(mask.count_ones());
        assert_eq!(model.multiply_adds(), 3 * (6 * 3 + 3) + rests * (6 + 2 * 3), "{mask:b}");
    }
}

#[test]
fn teaching_lowers_what_lies_along_the_axes_and_leaves_the_rest() {
    let mut input = [0.5; 6];
    (input[0], input[5]) = (9.5, 5.5);
    for mask in 0..8 {
        let bytes = planes(mask).to_bytes().expect("a model");
        let file = AlignedBytes::from(&*bytes);
        let model = file.model().expect("a model");
        let mean = model.encode(&input, &mut vec![0.0; model.scratch_len()]).expect("an input").mean.to_vec();
        let taught = dab_tests::taught(&bytes, &mean);
        let (before, after) = (assess(&bytes, &input), assess(&taught, &input));
        let last = 0.5 * mean[2] * mean[2];
        assert!(before.uncertainty > 150.0 && last > 20.0, "{before:?} {last}");
        if mask & 1 == 1 {
            assert_eq!(after.uncertainty, last, "{mask:b}");
        } else {
            assert!(after.uncertainty < 3.0, "an axis that is no rest can be taught: {mask:b} {after:?}");
        }
        let tail = model.tails().next().expect("the base").u;
        assert_eq!(after.unfamiliarity, Some(tail.surprise(after.uncertainty)), "{mask:b}");
        assert!(after.unfamiliarity < before.unfamiliarity, "{mask:b}");
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
        let taught = dab_tests::taught(file, &mean);
        assert_eq!(taught[10], 3);
        assert!(assess(file, &near).uncertainty > 100.0 && assess(&taught, &near).uncertainty < 3.0);
        let taught = dab_tests::taught(file, &outside);
        assert_eq!(assess(&taught, &moved).uncertainty, stays);
    }
}

/// `count` rows of `inputs` at right angles, of length 1.
fn right_angles(random: &mut Random, count: usize, inputs: usize) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    while rows.len() < count {
        let mut row: Vec<f64> = random.floats(inputs, 1.0).into_iter().map(f64::from).collect();
        for other in &rows {
            let along: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
            row.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
        }
        let length = row.iter().map(|a| a * a).sum::<f64>().sqrt();
        rows.push(row.iter().map(|a| a / length).collect());
    }
    rows
}

/// dab-train's `least_share` is twice that. The scales stay those of the floats, as `artifact::quantise` explains.
#[test]
fn weights_of_one_byte_move_the_square_of_the_rest_by_less_than_a_200th_of_the_inputs() {
    const GAIN: f32 = 2.0;
    let mut random = Random(31);
    for (inputs, axes) in [(16, 4), (64, 16), (64, 40), (300, 60)] {
        let rows = right_angles(&mut random, inputs, inputs);
        // Rows of the head have the lengths of a whitening; the centre is 0.
        let size = |row: usize| (-3.0 * row as f64 / inputs as f64).exp();
        let mut spec = plane(&vec![0.0; inputs], GAIN);
        let weights = (0..axes).flat_map(|at| rows[at].iter().map(move |a| (a / size(at)) as f32));
        let dim = axes + 1;
        spec.head.weight = weights.chain(vec![0.0; inputs]).collect();
        (spec.head.bias, spec.head.dim, spec.codes.means) = (None, dim, vec![0.0; dim]);
        spec.channels.as_mut().expect("channels").rests[0].scales =
            (0..axes).map(|at| size(at) as f32).collect();
        let bytes = quantise(&spec.to_bytes().expect("a model"), &HeldOut::default()).expect("bytes");
        let file = AlignedBytes::from(&*bytes);
        let model = file.model().expect("a model");
        let mut scratch = vec![0.0; model.scratch_len()];
        let mut worst = 0f64;
        let mut ask = |parts: &[f64]| {
            let input: Vec<f32> = (0..inputs)
                .map(|i| parts.iter().zip(&rows).map(|(p, row)| p * row[i]).sum::<f64>() as f32)
                .collect();
            let mean = model.encode(&input, &mut scratch).expect("an input").mean;
            let found = f64::from(mean[axes] / GAIN).powi(2);
            let [whole, rest] = [0, axes].map(|from| parts[from..].iter().map(|p| p * p).sum::<f64>());
            worst = worst.max((found - rest).abs() / whole);
        };
        for _ in 0..200 {
            // As familiar rows vary, and alike along all axes.
            ask(&(0..inputs).map(|at| random.unit() * size(at)).collect::<Vec<_>>());
            ask(&(0..inputs).map(|_| random.unit()).collect::<Vec<_>>());
        }
        for at in 0..inputs {
            ask(&(0..inputs).map(|i| f64::from(u8::from(i == at))).collect::<Vec<_>>());
        }
        println!(
            "{axes} of {inputs} axes: the square of the rest is off by {worst:.1e} of that of the inputs"
        );
        assert!(worst < 0.005, "{worst}");
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
    // A writer wants each view once, in their order, and no other.
    let written = |views: &[usize]| {
        let mut spec = planes(0b111);
        let rests = &mut spec.channels.as_mut().expect("channels").rests;
        *rests = views.iter().map(|&view| RestSpec { view, ..rests[0].clone() }).collect();
        spec.to_bytes().err()
    };
    for sound in [&[0][..], &[2], &[0, 2], &[0, 1, 2]] {
        assert_eq!(written(sound), None, "{sound:?}");
    }
    for (views, wrong) in [
        (&[3][..], 3),
        (&[0, 0], 0),
        (&[1, 1], 1),
        (&[0, 1, 1], 1),
        (&[1, 0], 0),
        (&[usize::MAX], usize::MAX),
    ] {
        let error = SpecError::OutOfRange { part: format!("rest.{wrong}"), index: 0, value: wrong as f64 };
        assert_eq!(written(views), Some(error), "{views:?}");
    }
}
