//! Format 1.2: LayerNorms, weights of one byte, and what a reader refuses about them.

use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::artifact::schema::{Form, INT8, NORMS, SCHEMA_KEYS};
use dab_core::artifact::writer::{Dense, Spec, ViewSpec, WeightKind};
use dab_core::artifact::{AlignedBytes, ArtifactError as E, Part};
use dab_core::channels::ViewScore;
use dab_core::{Activation, CovarianceKind};
use dab_tests::patch::{Parts, seal};
use dab_tests::specs::{Random, any, bare, bytes, norm, view, views};

fn refused(parts: &Parts) -> Option<E> {
    parts.join().model().err()
}

#[test]
fn the_header_says_what_is_new_and_an_old_reader_refuses_by_the_bit() {
    let file = bytes().to_bytes().expect("a model");
    assert_eq!(file[8..12], [1, 0, 2, 0]);
    let features = 1 | NORMS | INT8;
    assert_eq!(file[16..20], features.to_le_bytes());
    assert_eq!(file[48..56], SCHEMA_KEYS[features as usize].to_le_bytes());
    // A reader refuses the bits that it does not know, before it looks at anything behind them.
    let mut newer = file;
    newer[16] |= 128;
    seal(&mut newer);
    assert_eq!(
        AlignedBytes::from(&*newer).model().err(),
        Some(E::IncompatibleFeatures { bits: 128 }),
        "the words name the unknown bit"
    );
}

/// Runs a model on made-up inputs: uncertainty and outputs.
fn answers(spec: &Spec, inputs: &[Vec<f32>]) -> Vec<(f32, Vec<f32>)> {
    let file = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    let model = file.model().expect("a model");
    let mut scratch = vec![0.0; model.scratch_len()];
    assert_eq!(model.self_test(&mut scratch), Ok(()));
    let answer = |x: &Vec<f32>| {
        let mut outputs = vec![0.0; model.shape().outputs];
        let said = model.predict_into(x, &mut outputs, &mut scratch).expect("an input");
        (said.uncertainty, outputs)
    };
    inputs.iter().map(answer).collect()
}

#[test]
fn a_model_of_bytes_is_close_to_the_one_of_floats_and_smaller() {
    let random = &mut Random(3);
    for kind in [CovarianceKind::Diagonal, CovarianceKind::Cholesky, CovarianceKind::Spectral] {
        let mut spec = bare(random, kind, 4, 3, 1.0);
        spec.inputs = 40;
        let raw = kind.raw_len(4);
        spec.head.weight = random.floats(raw * 24, 0.3);
        spec.layers = vec![Dense {
            weight: random.floats(24 * 40, 0.25),
            bias: Some(random.floats(24, 0.1)),
            outputs: 24,
            activation: Activation::Elu,
            ..Dense::default()
        }];
        let inputs: Vec<Vec<f32>> = (0..50).map(|_| random.floats(40, 1.0)).collect();
        let floats = answers(&spec, &inputs);
        let size = spec.to_bytes().expect("a model").len();
        spec.weights = WeightKind::Int8;
        let bytes = answers(&spec, &inputs);
        for ((a, _), (b, _)) in floats.iter().zip(&bytes) {
            assert!((a - b).abs() <= 0.03 * a.max(1.0), "{kind:?}: {a} {b}");
        }
        let smaller = spec.to_bytes().expect("a model").len();
        assert!(4 * (size - smaller) >= 11 * raw * 24, "{size} {smaller}");
    }
}

#[test]
fn a_norm_is_that_of_float64() {
    let random = &mut Random(5);
    let mut spec = bare(random, CovarianceKind::Diagonal, 3, 2, 1.0);
    let gain = random.floats(6, 1.0);
    let layer = Dense { weight: gain.clone(), ..norm(random, 6, Activation::Identity) };
    let shift = layer.bias.clone().expect("a bias");
    spec.layers = vec![layer];
    let file = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    let model = file.model().expect("a model");
    let mut scratch = vec![0.0; model.scratch_len()];
    for _ in 0..100 {
        let x = random.floats(6, 3.0);
        let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let mean = wide.iter().sum::<f64>() / 6.0;
        let variance = wide.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 6.0;
        let found = model.encode(&x, &mut scratch).expect("an input");
        // The head is the identity: the first three features are the mean.
        for i in 0..3 {
            let unit = (wide[i] - mean) / (variance + 1e-5).sqrt();
            let expected = unit * f64::from(gain[i]) + f64::from(shift[i]);
            assert!((f64::from(found.mean[i]) - expected).abs() < 2e-6, "{} {expected}", found.mean[i]);
        }
    }
}

#[test]
fn quantising_a_file_is_writing_it_with_bytes() {
    let random = &mut Random(8);
    for kind in CovarianceKind::ALL {
        for _ in 0..6 {
            let mut spec = any(random, kind, 1.0);
            let floats = spec.to_bytes().expect("a model");
            spec.weights = WeightKind::Int8;
            let direct = spec.to_bytes().expect("a model");
            let again = quantise(&floats, &HeldOut::default()).expect("a model");
            assert_eq!(again, direct, "{kind:?}");
        }
    }
    // With views, and with norms among the layers.
    for mut spec in [bytes(), views()] {
        spec.weights = WeightKind::Float32;
        let floats = spec.to_bytes().expect("a model");
        spec.weights = WeightKind::Int8;
        assert_eq!(quantise(&floats, &HeldOut::default()), spec.to_bytes());
    }
    let floats = views().to_bytes().expect("a model");
    // New held-out scores make a new table.
    let scores: Vec<f32> = (0..99).map(|i| i as f32 / 10.0).collect();
    let held_out = HeldOut { scores, ambiguities: vec![-1.0, 0.0, 2.0, 3.0] };
    let file = AlignedBytes::from(&*quantise(&floats, &held_out).expect("a model"));
    let model = file.model().expect("a model");
    assert_eq!(model.calibration().expect("a table").held_out, 99);
    assert_eq!(model.ambiguity_calibration().expect("a table").0.held_out, 4);
}

#[test]
fn wrong_bytes_scales_and_norms_are_refused() {
    let sound = Parts::of(&bytes().to_bytes().expect("a model"));
    assert_eq!(refused(&sound), None);
    let counts = sound.meta.param_counts(sound.channels.as_ref()).expect("counts");
    let first = sound.params.len() - counts.weights.div_ceil(4);
    // −128, in the first byte of the weights.
    let mut parts = sound.clone();
    parts.params[first] = f32::from_bits(parts.params[first].to_bits() & !0xff | 0x80);
    assert_eq!(refused(&parts), Some(E::OutOfRange { part: Part::Weights, index: 0 }));
    let layers = 2 * counts.normalize;
    // ε of the first norm, and a scale of the dense layer behind its weight and bias.
    for (at, value) in [(0, 0.0), (0, -1.0), (11, -1.0)] {
        let mut parts = sound.clone();
        parts.params[layers + at] = value;
        assert_eq!(refused(&parts), Some(E::OutOfRange { part: Part::Layers, index: at }));
    }
    let mut parts = sound.clone();
    parts.params[layers + counts.layers] = -1.0;
    assert_eq!(refused(&parts), Some(E::OutOfRange { part: Part::HeadWeight, index: 0 }));
    for (norms, error) in [(0b1000, E::Norm { layer: 3 }), (0b1_0000_0000_0000, E::Norm { layer: 12 })] {
        let mut parts = sound.clone();
        parts.meta.norms = norms;
        assert_eq!(refused(&parts), Some(error));
    }
    // No norm at all: the bit has to be left out.
    let meta = sound.meta_bytes();
    let (last, rest) = meta.split_last().expect("bytes");
    assert_eq!(*last, 0b101);
    let file = sound.join_with(&[rest, &[0]].concat());
    let limit = E::Limit { field: "norms", value: 0, max: u16::MAX.into() };
    assert_eq!(file.model().err(), Some(limit));
    let mut wide = sound;
    wide.meta.layers[0].outputs = 6;
    assert_eq!(refused(&wide), Some(E::Norm { layer: 0 }));
}

#[test]
fn a_byte_behind_the_last_weight_is_refused_where_it_lies() {
    for weights in 5..9 {
        let mut spec = bare(&mut Random(9), CovarianceKind::Constant, 1, 2, 1.0);
        spec.inputs = weights;
        spec.head.weight = vec![1.0; weights];
        spec.weights = WeightKind::Int8;
        let sound = Parts::of(&spec.to_bytes().expect("a model"));
        let last = sound.params.len() - 1;
        assert_eq!(sound.params[last].to_bits().leading_zeros() as usize, 8 * (8 - weights) + 1);
        for index in weights..8 {
            let mut parts = sound.clone();
            parts.params[last] = f32::from_bits(parts.params[last].to_bits() | 1 << (8 * (index % 4)));
            assert_eq!(refused(&parts), Some(E::OutOfRange { part: Part::Weights, index }));
        }
    }
}

#[test]
fn each_view_of_a_file_with_bytes_has_weights_of_its_own() {
    fn others(spec: &mut Spec) -> &mut Vec<ViewSpec> {
        &mut spec.channels.as_mut().expect("channels").views
    }
    let random = &mut Random(11);
    for _ in 0..20 {
        let mut spec = views();
        spec.weights = WeightKind::Int8;
        *others(&mut spec) = (0..3).map(|_| view(random, 5, 2, Form::Joined, 1.0)).collect();
        let input = random.floats(5, 2.0);
        let said = |spec: &Spec| {
            let file = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
            let model = file.model().expect("a model");
            let mut found = [ViewScore::default(); 4];
            model.views_into(&input, &mut found, &mut vec![0.0; model.scratch_len()]).expect("an input");
            found
        };
        let before = said(&spec);
        // What a view says does not depend on where it stands in the file.
        others(&mut spec).reverse();
        let mut after = said(&spec);
        after[1..].reverse();
        assert_eq!(before, after);
    }
}

#[test]
fn zero_has_one_encoding_and_log_determinants_are_those_of_the_precisions() {
    for spec in [views(), bytes()] {
        let sound = Parts::of(&spec.to_bytes().expect("a model"));
        for (part, places) in sound.places() {
            for at in places {
                let mut parts = sound.clone();
                parts.params[at] = -0.0;
                assert!(
                    matches!(refused(&parts), Some(E::OutOfRange { part: found, .. }) if found == part),
                    "{part} at {at}: {:?}",
                    refused(&parts)
                );
            }
        }
    }
    let random = &mut Random(6);
    let mut spec = bare(random, CovarianceKind::Diagonal, 3, 2, 1.0);
    spec.codes.alpha = -0.0;
    spec.self_test = vec![vec![-0.0; 6]];
    let parts = Parts::of(&spec.to_bytes().expect("a writer makes 0 of -0"));
    assert_eq!(parts.meta.alpha, [0; 4]);
    let mut parts = parts;
    parts.meta.alpha = (-0.0f32).to_le_bytes();
    assert_eq!(refused(&parts), Some(E::Alpha));
    for kind in [CovarianceKind::Diagonal, CovarianceKind::Cholesky, CovarianceKind::Spectral] {
        let sound = Parts::of(&bare(random, kind, 5, 4, 1.0).to_bytes().expect("a model"));
        let (_, places) = sound
            .places()
            .into_iter()
            .find(|(part, _)| *part == Part::CodeLogDets)
            .expect("log-determinants");
        for (index, at) in places.enumerate() {
            for change in [0.01, -0.01] {
                let mut parts = sound.clone();
                parts.params[at] += change;
                assert_eq!(
                    refused(&parts),
                    Some(E::OutOfRange { part: Part::CodeLogDets, index }),
                    "{kind:?}"
                );
            }
        }
    }
}

#[test]
fn rounded_weights_are_whole_numbers_of_their_rows_scale() {
    // The largest weight of a row is 127 steps.
    let found = dab_core::artifact::quantise::rounded(&[127.0, -63.4, 0.0, 2.54, 0.013, -0.011], 3);
    assert_eq!(found[..3], [127.0, -63.0, 0.0]);
    for (found, expected) in found[3..].iter().zip([2.54, 0.02, -0.02]) {
        assert!((found - expected).abs() <= 1e-6, "{found}, not {expected}");
    }
}
