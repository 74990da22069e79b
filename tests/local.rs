//! Local precisions (format 1.4): p_κ multiplies the distance from a code. The formula against float64, what keeps the block, and
//! what is refused.

#[path = "local/three.rs"]
mod three;

use dab_core::Assessment;
use dab_core::artifact::monitor::set_monitor;
use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::artifact::schema::{
    CHANNELS, CovarianceKind, Form, INT8, LOCAL, MONITOR, MONITOR_WORDS, REST, TAUGHT,
};
use dab_core::artifact::writer::{ChannelsSpec, LocalSpec, Spec, SpecError, ViewSpec, WeightKind};
use dab_core::artifact::{AlignedBytes, ArtifactError, Part};
use dab_core::channels::ViewScore;
use dab_core::divergence::kl;
use dab_core::parts::{LARGEST, SMALLEST};
use dab_tests::patch::{Parts, word};
use dab_tests::specs::{Random, add_locals, add_rests, any, monitors, real, view};
use dab_tests::taught;
use dab_tests::total::answers;

use self::three::{INPUTS, SIZES, exact, three};

/// Relative error of a distance, a square of f32 sums of some ten terms that partly cancel, and of averages of such, against float64.
const RELATIVE: f64 = 2e-5;
#[test]
fn the_distance_from_a_code_is_half_of_the_square_times_its_precision() {
    let mut random = Random(15);
    for (locals, rests) in (0..64).map(|masks| (masks % 8, masks / 8)) {
        let spec = three(locals, rests);
        let file = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let model = file.model().expect("a model");
        let mut scratch = vec![f32::NAN; model.scratch_len()];
        for _ in 0..20 {
            let input = random.floats(INPUTS, 2.0);
            let (mut distances, mut assignment, mut axes) = ([0.0; 4], [0.0; 4], [0.0; 3]);
            let found = model
                .explain_into(&input, &mut distances, &mut assignment, &mut axes, &mut scratch)
                .expect("an input");
            let near = |found: f32, expected: f64| {
                assert!(
                    (f64::from(found) - expected).abs() <= RELATIVE * (1.0 + expected),
                    "{locals:b} {rests:b}: {found} {expected}"
                );
            };
            exact(&spec, 0, &input)
                .0
                .into_iter()
                .zip(distances)
                .for_each(|(exact, found)| near(found, exact));
            // Code by code, as a small machine computes it: the same bits.
            let gaussian = model.encode(&input, &mut scratch).expect("an input");
            let each: Vec<f32> = model.codebook().codes().map(|code| kl(&gaussian, &code)).collect();
            assert_eq!(each, distances);
            // What each axis adds is times the precision, too.
            near(axes.iter().sum(), found.uncertainty.into());
            let mut views = [ViewScore::default(); 3];
            model.views_into(&input, &mut views, &mut scratch).expect("an input");
            assert_eq!(found.uncertainty, views[0].distance);
            for (view, score) in views.iter().enumerate() {
                near(score.distance, exact(&spec, view, &input).1);
            }
        }
        for view in 0..3 {
            assert_eq!(model.is_local(view), locals >> view & 1 == 1, "{locals:b} {view}");
        }
        for view in [3, 4, 31, 32, 64, usize::MAX] {
            assert!(!model.is_local(view), "there is no view {view}");
        }
        // A head and codes of each view; one for each precision; with a rest the length of the input, and twice its axes.
        let of = |mask: u32, cost: fn([usize; 2]) -> usize| -> usize {
            SIZES
                .into_iter()
                .enumerate()
                .filter(|(view, _)| mask >> view & 1 == 1)
                .map(|(_, size)| cost(size))
                .sum()
        };
        let cost = of(7, |[dim, codes]| dim * (INPUTS + codes))
            + of(locals, |[_, codes]| codes)
            + of(rests, |[dim, _]| INPUTS + 2 * dim);
        assert_eq!(model.multiply_adds(), cost as u64, "{locals:b} {rests:b}");
    }
}

#[test]
fn the_header_says_it_and_precisions_of_1_are_those_of_a_file_without_them() {
    for (locals, rests) in (0..64).map(|masks| (masks % 8, masks / 8)) {
        let mut spec = three(locals, rests);
        let bytes = spec.to_bytes().expect("a model");
        let minor = if locals != 0 {
            4
        } else if rests != 0 {
            3
        } else {
            1
        };
        let features = if locals != 0 { LOCAL } else { 0 } | if rests != 0 { REST } else { 0 } | CHANNELS;
        assert_eq!((&bytes[8..12], word(&bytes, 16)), (&[1, 0, minor, 0][..], features));
        assert_eq!(
            Parts::of(&bytes).join().as_slice(),
            bytes,
            "the layout and the schema key of the tests are the core's"
        );
        let plain = three(0, rests).to_bytes().expect("a model");
        let values: usize = (0..3).filter(|view| locals >> view & 1 == 1).map(|view| SIZES[view][1]).sum();
        let block = if locals == 0 { 0 } else { 4 * (values + 1) };
        assert_eq!(word(&bytes, 36), word(&plain, 36) + block as u32);
        let locals = &mut spec.channels.as_mut().expect("channels").locals;
        locals.iter_mut().for_each(|local| local.precisions.fill(1.0));
        let ones = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let plain = AlignedBytes::from(&*plain);
        let (ones, plain) = (ones.model().expect("a model"), plain.model().expect("a model"));
        assert_eq!(
            ones.meta().self_test.digest,
            plain.meta().self_test.digest,
            "the known answers, bit by bit"
        );
        for input in &spec.self_test {
            assert_eq!(answers(&ones, input, f32::NAN), answers(&plain, input, f32::NAN));
        }
    }
}

#[test]
fn every_finite_input_of_a_model_with_local_precisions_has_a_finite_answer_that_scratch_does_not_change() {
    let mut random = Random(16);
    for round in 0..60 {
        let mut spec = any(&mut random, CovarianceKind::Constant, 1.0);
        if round % 2 == 0 {
            add_rests(&mut random, &mut spec);
        }
        add_locals(&mut random, &mut spec);
        let file = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let model = file.model().expect("a model");
        assert_eq!(model.self_test(&mut vec![f32::NAN; model.scratch_len()]), Ok(()));
        for scale in [0.0, 1e-30, 1.0, 1e10, 3e38] {
            let input = random.floats(spec.inputs, scale);
            assert_eq!(answers(&model, &input, f32::NAN), answers(&model, &input, 7.0));
            let (k, dim) = (model.shape().codes, model.shape().dim);
            let (mut distances, mut assignment, mut axes) = (vec![0.0; k], vec![0.0; k], vec![0.0; dim]);
            let mut scratch = vec![f32::NAN; model.scratch_len()];
            let found = model
                .explain_into(&input, &mut distances, &mut assignment, &mut axes, &mut scratch)
                .expect("an input");
            let (sum, u) = (axes.iter().map(|&x| f64::from(x)).sum::<f64>(), f64::from(found.uncertainty));
            // Of tiny and huge numbers sums are limited on the way.
            assert!(scale != 1.0 || (sum - u).abs() <= 1e-3 * u.max(1.0), "{sum} {u}");
        }
    }
}

/// The block of a model as a file has it: all precisions, and whose they are.
fn block(spec: &Spec) -> Vec<u32> {
    let locals = &spec.channels.as_ref().expect("channels").locals;
    let views = locals.iter().fold(0, |views, local| views | 1 << local.view);
    locals.iter().flat_map(|local| local.precisions.iter().map(|p| p.to_bits())).chain([views]).collect()
}

fn assess(bytes: &[u8], input: &[f32]) -> Assessment {
    let file = AlignedBytes::from(bytes);
    let model = file.model().expect("a model");
    model.assess(input, &mut vec![f32::NAN; model.scratch_len()]).expect("an input")
}

fn encoded(bytes: &[u8], input: &[f32]) -> Vec<f32> {
    let file = AlignedBytes::from(bytes);
    let model = file.model().expect("a model");
    model.encode(input, &mut vec![f32::NAN; model.scratch_len()]).expect("an input").mean.into()
}

/// What was taught one code of three axes: mean, precision, log-determinant, count, α, and how many there are.
const TAUGHT_WORDS: usize = 3 + 3 + 1 + 1 + 1 + 1;

#[test]
fn bytes_taught_codes_and_a_monitor_keep_the_block() {
    let [(_, monitor), _] = monitors();
    let input = [9.0, -8.0, 7.0, 9.0, -9.0, 8.0];
    for (locals, rests) in (0..64).map(|masks| (masks % 8, masks / 8)).filter(|masks| masks.0 != 0) {
        let mut spec = three(locals, rests);
        let floats = spec.to_bytes().expect("a model");
        let bytes = quantise(&floats, &HeldOut::default()).expect("a model with bytes");
        spec.weights = WeightKind::Int8;
        assert_eq!(spec.to_bytes().as_ref(), Ok(&bytes), "quantising a file is writing it with bytes");
        let (block, own) = (block(&spec), CHANNELS | LOCAL | if rests != 0 { REST } else { 0 });
        let has = |file: &[u8], features: u32, behind: usize| {
            assert_eq!((file[10], word(file, 16)), (4, features), "{locals:b} {rests:b}");
            let params = Parts::of(file).params;
            let found: Vec<u32> =
                params[..params.len() - behind].iter().rev().take(block.len()).map(|x| x.to_bits()).collect();
            assert!(found.iter().rev().eq(&block), "{locals:b} {rests:b}");
            let held = AlignedBytes::from(file);
            let model = held.model().expect("a model");
            for view in 0..3 {
                assert_eq!(
                    [model.is_local(view), model.has_rest(view)],
                    [locals, rests].map(|m| m >> view & 1 == 1)
                );
            }
            assert_eq!(model.self_test(&mut vec![f32::NAN; model.scratch_len()]), Ok(()));
        };
        for (file, features) in [(floats, own), (bytes, own | INT8)] {
            has(&file, features, 0);
            let taught = taught(&file, &encoded(&file, &input));
            has(&taught, features | TAUGHT, TAUGHT_WORDS);
            let tuned = set_monitor(&taught, &monitor, 0.01, &[]).expect("a monitor");
            has(&tuned, features | TAUGHT | MONITOR, TAUGHT_WORDS + MONITOR_WORDS);
            assert_eq!(assess(&tuned, &input), assess(&taught, &input));
            if features & INT8 == 0 {
                let small = quantise(&tuned, &HeldOut::default()).expect("a model with bytes");
                has(&small, features | INT8 | TAUGHT | MONITOR, TAUGHT_WORDS + MONITOR_WORDS);
            }
        }
    }
}

#[test]
fn what_lies_outside_of_the_axes_counts_as_in_the_nearest_distance_and_cannot_be_taught() {
    let mut random = Random(17);
    for _ in 0..100 {
        let input = random.floats(INPUTS, 9.0);
        for (locals, rests) in [(0, 1), (1, 0), (1, 1), (7, 7), (6, 7)] {
            let spec = three(locals, rests);
            let file = spec.to_bytes().expect("a model");
            let mean = encoded(&file, &input);
            let (before, after) = (assess(&file, &input), assess(&taught(&file, &mean), &input));
            let block = &spec.channels.as_ref().expect("channels").locals;
            let precision = block
                .first()
                .filter(|local| local.view == 0)
                .map_or(1.0, |local| local.precisions[before.nearest]);
            let outside = if rests & 1 == 1 { 0.5 * mean[2] * mean[2] * precision } else { 0.0 };
            assert!(outside <= before.nearest_distance * 1.000_01, "{outside} {before:?}");
            assert_eq!(after.uncertainty, outside.min(before.uncertainty), "{locals:b} {rests:b}");
        }
    }
}

fn refused(sound: &Parts, change: impl FnOnce(&mut Parts)) -> Option<ArtifactError> {
    let mut parts = sound.clone();
    change(&mut parts);
    parts.join().model().err()
}

fn limit(value: u32, max: u32) -> Option<ArtifactError> {
    Some(ArtifactError::Limit { field: "local.views", value, max })
}

/// Writes the word that says whose local precisions there are.
fn views(parts: &mut Parts, views: u32) {
    *parts.params.last_mut().expect("a word") = f32::from_bits(views);
}

#[test]
fn a_block_that_cannot_be_is_refused() {
    for rests in [0, 5] {
        let sound = Parts::of(&three(0b110, rests).to_bytes().expect("a model"));
        assert_eq!(refused(&sound, |_| ()), None);
        for wrong in [0, 8, 9, 1 << 31, u32::MAX] {
            assert_eq!(refused(&sound, |parts| views(parts, wrong)), limit(wrong, 7));
        }
        // Another view has other codes, so that something is missing or left.
        for other in [1, 2, 3, 4, 5, 7] {
            let error = refused(&sound, |parts| views(parts, other));
            let rest = matches!(error, Some(ArtifactError::Limit { field: "rest.views", .. })) && rests != 0;
            assert!(rest || matches!(error, Some(ArtifactError::ParamCount { .. })), "{other:b}: {error:?}");
        }
        for at in 0..7 {
            let value = |x: f32| refused(&sound, |parts| parts.part(Part::Local)[at] = x);
            for wrong in [0.0, -0.0, -1.0, 0.99 * SMALLEST, 1.01 * LARGEST, f32::MAX, f32::from_bits(1)] {
                assert_eq!(
                    value(wrong),
                    Some(ArtifactError::OutOfRange { part: Part::Local, index: at }),
                    "{wrong}"
                );
            }
            for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                assert_eq!(
                    value(wrong),
                    Some(ArtifactError::NonFinite { part: Part::Local, index: at }),
                    "{wrong}"
                );
            }
            for right in [SMALLEST, 1.0, LARGEST] {
                assert_eq!(value(right), None, "{right}");
            }
        }
        for left in 1..8 {
            let error = refused(&sound, |parts| drop(parts.params.drain(..parts.params.len() - left)));
            assert_eq!(error, Some(ArtifactError::ParamCount { expected: 8, found: left }));
        }
        assert_eq!(refused(&sound, |parts| parts.params.clear()), limit(0, 7));
    }
    let words = format!("{}", limit(9, 7).expect("an error"));
    assert!(words.contains("local.views is 9"), "{words}");
    let words = ArtifactError::OutOfRange { part: Part::Local, index: 4 }.to_string();
    assert!(words.contains("local") && words.contains('4'), "{words}");
}

#[test]
fn a_base_of_another_covariance_and_a_file_without_channels_have_no_local_precisions() {
    let random = &mut Random(18);
    for (_, mut spec) in real().into_iter().take(3) {
        let others: Vec<ViewSpec> =
            (0..2).map(|_| view(random, spec.inputs, 0, Form::Distance, 1.0)).collect();
        let locals: Vec<LocalSpec> = (1..3)
            .map(|view| LocalSpec { view, precisions: vec![2.0; others[view - 1].priors.len()] })
            .collect();
        let base = LocalSpec { view: 0, precisions: vec![2.0; spec.codes.priors.len()] };
        spec.channels = Some(ChannelsSpec { views: others, locals, ..ChannelsSpec::default() });
        let sound = Parts::of(&spec.to_bytes().expect("local precisions of further views"));
        for wrong in [0, 1, 3, 5, 7, 8] {
            assert_eq!(refused(&sound, |parts| views(parts, wrong)), limit(wrong, 6));
        }
        let channels = spec.channels.as_mut().expect("channels");
        channels.locals.insert(0, base);
        assert_eq!(spec.to_bytes().err(), limit(7, 6).map(SpecError::Refused));
        // Without a further view there is none that could have them.
        spec.channels = Some(ChannelsSpec::default());
        let alone = Parts::of(&spec.to_bytes().expect("a model"));
        let with = |parts: &mut Parts| {
            parts.local = true;
            parts.params.extend([1.0, f32::from_bits(1)]);
        };
        assert_eq!(refused(&alone, with), limit(1, 0));
        // Without channels both blocks are refused by name; the rest is the first.
        spec.channels = None;
        let bare = Parts::of(&spec.to_bytes().expect("a model"));
        let field = |rest| refused(&bare, |parts| (parts.local, parts.rest) = (true, rest));
        assert_eq!(field(false), Some(ArtifactError::Channels { field: "local" }));
        assert_eq!(field(true), Some(ArtifactError::Channels { field: "rest" }));
        let words = field(false).expect("an error").to_string();
        assert!(words.contains("local"), "{words}");
        let mut bytes = bare.join().as_slice().to_vec();
        bytes[16] |= LOCAL as u8;
        dab_tests::patch::seal(&mut bytes);
        assert!(matches!(AlignedBytes::from(&*bytes).model().err(), Some(ArtifactError::Schema { .. })));
    }
}

/// docs/format.md: blocks are found from the end of the section, their values are looked at in the order of the file.
#[test]
fn of_two_faults_in_the_blocks_the_page_says_which_is_named() {
    let [(_, monitor), _] = monitors();
    let small = quantise(&three(7, 7).to_bytes().expect("a model"), &HeldOut::default()).expect("bytes");
    let file = set_monitor(&taught(&small, &[1.0; 3]), &monitor, 0.01, &[]).expect("a monitor");
    let sound = Parts::of(&file);
    let end = sound.params.len() - MONITOR_WORDS;
    let local = end - TAUGHT_WORDS;
    let rest = local - (4 + 2 + 5 + 1);
    let weight = rest - (3 + 2 + 4 + 1) - 1;
    let nothing = f32::from_bits(0);
    // Each fault in the words from the end on, so that the first one may change how many there are.
    let faults = [(end - 1, nothing), (local - 1, nothing), (rest - 1, nothing), (usize::MAX, 0.0)];
    // −128 is the first of the last four weights.
    let minus_128 = f32::from_bits(sound.params[weight].to_bits() & !0xff | 0x80);
    let values = [0, rest - 2, local - 2, end - 2, end].map(|at| (at, f32::NAN));
    let (head, others) = values.split_first().expect("values");
    let faults: Vec<_> =
        faults.into_iter().chain([*head, (weight, minus_128)]).chain(others.iter().copied()).collect();
    let with = |faults: &[(usize, f32)]| {
        let mut parts = sound.clone();
        let mut more = false;
        for &(at, value) in faults {
            match parts.params.get_mut(at) {
                Some(to) => *to = value,
                None => more = true,
            }
        }
        if more {
            parts.params.insert(0, 0.0);
        }
        parts.join().model().err()
    };
    assert_eq!(with(&[]), None);
    let alone: Vec<_> = faults.iter().map(|&fault| with(&[fault]).expect("a fault")).collect();
    let named = |error: &ArtifactError| match *error {
        ArtifactError::Limit { field, .. } => field.to_owned(),
        ArtifactError::ParamCount { .. } => "ParamCount".into(),
        ArtifactError::NonFinite { part, .. } | ArtifactError::OutOfRange { part, .. } => part.to_string(),
        ref other => other.to_string(),
    };
    assert_eq!(
        alone.iter().map(named).collect::<Vec<_>>(),
        [
            "taught.codes",
            "local.views",
            "rest.views",
            "ParamCount",
            "head.weight",
            "weights",
            "rest",
            "local",
            "taught",
            "monitor"
        ]
    );
    for (i, first) in alone.iter().enumerate() {
        for &second in &faults[i + 1..] {
            assert_eq!(with(&[faults[i], second]).as_ref(), Some(first), "{second:?}");
        }
    }
}

#[test]
fn a_writer_wants_each_view_once_in_their_order_and_a_positive_number_for_each_code() {
    let written = |change: &dyn Fn(&mut Vec<LocalSpec>)| {
        let mut spec = three(7, 2);
        change(&mut spec.channels.as_mut().expect("channels").locals);
        spec.to_bytes().err()
    };
    let of = |wanted: &[usize]| {
        written(&|locals| {
            let own = |&view: &usize| LocalSpec { view, ..locals[view.min(2)].clone() };
            *locals = wanted.iter().map(own).collect();
        })
    };
    for right in [&[][..], &[0], &[2], &[0, 2], &[1, 2], &[0, 1, 2]] {
        assert_eq!(of(right), None, "{right:?}");
    }
    let unknown = usize::MAX;
    for (views, wrong) in [
        (&[3][..], 3),
        (&[0, 0], 0),
        (&[1, 1], 1),
        (&[0, 1, 1], 1),
        (&[1, 0], 0),
        (&[32], 32),
        (&[unknown], unknown),
    ] {
        let error = SpecError::OutOfRange { part: format!("local.{wrong}"), index: 0, value: wrong as f64 };
        assert_eq!(of(views), Some(error), "{views:?}");
    }
    for (view, [_, codes]) in SIZES.into_iter().enumerate() {
        for found in [0, codes - 1, codes + 1] {
            let error = written(&|locals| locals[view].precisions.resize(found, 1.0)).expect("an error");
            let words = error.to_string();
            assert!(words.contains(&format!("local.{view}")), "{words}");
            assert!(words.contains(&found.to_string()) && words.contains(&codes.to_string()), "{words}");
        }
        let before: usize = SIZES[..view].iter().map(|[_, codes]| codes).sum();
        let value = |x: f32| written(&|locals| locals[view].precisions[1] = x);
        let out = SpecError::Refused(ArtifactError::OutOfRange { part: Part::Local, index: before + 1 });
        // The last of them is below the domain, and becomes 0.
        for wrong in [0.0, -0.0, -1.0, 0.49 * SMALLEST] {
            assert_eq!(value(wrong), Some(out.clone()), "{wrong}");
        }
        for wrong in [f32::NAN, f32::INFINITY, 2.0 * LARGEST] {
            let words = value(wrong).expect("an error").to_string();
            assert!(words.contains(&format!("local.{view}")), "{words}");
        }
        for right in [SMALLEST, LARGEST] {
            assert_eq!(value(right), None, "{right}");
        }
    }
}
