//! Where a rule ends: the last value that is taken and the first that is refused, what the writer does to values that have two
//! encodings, and what the small functions say at their ends.

use dab_core::artifact::info::{INPUT_NAMES, OUTPUT_NAMES, read_info};
use dab_core::artifact::monitor::set_monitor;
use dab_core::artifact::schema::{Form, Task};
use dab_core::artifact::taught::add_taught;
use dab_core::artifact::writer::{CalibrationSpec, Normalization, Spec, SpecError, WeightKind};
use dab_core::artifact::{self, AlignedBytes, ArtifactError, Part};
use dab_core::codebook::{CodebookView, PrecisionLayout};
use dab_core::ellipse::{Ellipse, EllipseError, EllipseView};
use dab_core::explore::{self, Exploration, Schedule};
use dab_core::guard::Guard;
use dab_core::layers::softmax;
use dab_core::memory::{self, Head, MemoryView, Width};
use dab_core::monitor::{Config, Monitor, State};
use dab_core::{CovarianceKind, Model, Rates};
use dab_tests::attack::{CHOLESKY, MLP, SPECTRAL, VIEWS, changed, parts};
use dab_tests::patch::{HEADER, Parts, seal, word};
use dab_tests::specs::{self, Random, bare, norm, real};

/// The ends of the numeric domain.
const LARGEST: f32 = (1u64 << 50) as f32;
const SMALLEST: f32 = 1.0 / LARGEST;

fn mlp() -> Spec {
    real().into_iter().next().expect("a model").1
}

fn written(change: impl FnOnce(&mut Spec)) -> Result<Parts, SpecError> {
    let mut spec = mlp();
    change(&mut spec);
    spec.to_bytes().map(|bytes| Parts::of(&bytes))
}

#[test]
fn the_writer_takes_the_numeric_domain_and_rounds_what_is_smaller_to_0() {
    let bias = |value: f32| written(|spec| spec.head.bias.as_mut().expect("a bias")[2] = value);
    for value in [LARGEST, -LARGEST, SMALLEST, -SMALLEST, 0.0] {
        assert_eq!(bias(value).expect("a model").part(Part::HeadBias)[2].to_bits(), value.to_bits());
    }
    for value in [SMALLEST.next_down(), -SMALLEST.next_down(), -0.0] {
        assert_eq!(bias(value).expect("a model").part(Part::HeadBias)[2].to_bits(), 0);
    }
    for value in [LARGEST.next_up(), -LARGEST.next_up(), f32::MAX] {
        let error = SpecError::OutOfRange { part: "head.bias".into(), index: 2, value: value.into() };
        assert_eq!(bias(value).err(), Some(error));
    }
    for value in [f32::NAN, f32::INFINITY] {
        assert_eq!(bias(value).err(), Some(SpecError::NonFinite { part: "head.bias".into(), index: 2 }));
    }
    let short = written(|spec| spec.head.bias = Some(vec![0.0; 5]));
    assert_eq!(short.err(), Some(SpecError::Shape { part: "head.bias".into(), expected: 6, found: 5 }));
}

#[test]
fn the_writer_takes_sixteen_layers_and_eight_known_answers() {
    let layer = |spec: &Spec| spec.layers[1].clone();
    for count in [16, 17] {
        let found = written(|spec| {
            let same = layer(spec);
            spec.layers.truncate(1);
            spec.layers.resize(count, same);
        });
        let error = SpecError::TooMany { part: "layers".into(), max: 16, found: 17 };
        assert_eq!(found.err(), (count > 16).then_some(error));
    }
    for count in [8, 9] {
        let found = written(|spec| spec.self_test = vec![vec![0.5; 4]; count]);
        let error = SpecError::TooMany { part: "self-test vectors".into(), max: 8, found: 9 };
        assert_eq!(found.err(), (count > 8).then_some(error));
    }
}

#[test]
fn a_model_has_one_encoding_of_zero() {
    let zero = |x: f32| {
        move |spec: &mut Spec| {
            spec.self_test = vec![vec![x, 1.0, x, 2.0]];
            spec.codes.alpha = x;
            let scores = (1..30).map(|i| i as f32).chain([x]).collect();
            spec.calibration = Some(CalibrationSpec { scores, rates: Rates::for_held_out(30) });
        }
    };
    let [plain, negative] = [0.0, -0.0].map(|x| written(zero(x)).expect("a model").join());
    assert_eq!(plain.as_slice(), negative.as_slice());
    let view = |alpha: f32| {
        let mut spec = specs::views();
        spec.channels.as_mut().expect("channels").views[0].alpha = alpha;
        spec.to_bytes().expect("a model")
    };
    assert_eq!(view(0.0), view(-0.0));
}

#[test]
fn known_answers_that_nobody_chose_lie_within_two_deviations_and_differ() {
    let mut random = Random(3);
    let mut spec = bare(&mut random, CovarianceKind::Diagonal, 2, 3, 1.0);
    spec.normalization =
        Some(Normalization { mean: vec![10.0, -20.0, 0.0, 3.0], std: vec![1.0, 4.0, 0.5, 2.0] });
    let mut parts = Parts::of(&spec.to_bytes().expect("a model"));
    let inputs = parts.part(Part::SelfTestInputs).to_vec();
    // 0x9e3779 of 2^23, less 1: the first number of the golden sequence.
    let first = f32::from(0x9e_u8) * 65536.0 + f32::from(0x3779_u16);
    assert_eq!(inputs[0], 10.0 + 2.0 * (first / 8_388_608.0 - 1.0));
    let Normalization { mean, std } = spec.normalization.expect("just set");
    let units: Vec<f32> = inputs.iter().enumerate().map(|(i, x)| (x - mean[i % 4]) / std[i % 4]).collect();
    assert!(units.iter().all(|u| u.abs() <= 2.0), "{units:?}");
    assert!(units.iter().any(|u| *u > 1.0) && units.iter().any(|u| *u < -1.0), "{units:?}");
    for (i, unit) in units.iter().enumerate() {
        assert!(units[..i].iter().all(|other| (other - unit).abs() > 0.01), "{units:?}");
    }
}

#[test]
fn priors_are_rescaled_within_a_thousandth_of_1_and_not_negative() {
    let priors = |values: [f64; 5]| written(|spec| spec.codes.priors = values.into());
    for values in [[0.2, 0.2, 0.2, 0.2, 0.2009], [0.2, 0.2, 0.2, 0.2, 0.1991], [0.0, 0.0, 0.5, 0.5, 0.0]] {
        let mut parts = priors(values).expect("a model");
        let sum: f64 = parts.part(Part::CodePriors).iter().map(|&p| f64::from(p)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
    for values in [[0.2, 0.2, 0.2, 0.2, 0.2011], [0.2, 0.2, 0.2, 0.2, 0.1989]] {
        assert!(matches!(priors(values).err(), Some(SpecError::PriorSum { .. })));
    }
    let error = SpecError::OutOfRange { part: "codes.prior".into(), index: 1, value: -1e-9 };
    assert_eq!(priors([0.25, -1e-9, 0.25, 0.25, 0.25]).err(), Some(error));
}

#[test]
fn covariances_are_positive_and_symmetric_up_to_a_ten_thousandth_of_the_largest_entry() {
    let error = written(|spec| spec.codes.covs[4] = 0.0).err();
    assert_eq!(error, Some(SpecError::NotPositiveDefinite { code: 1 }));
    let full = |cov: [f64; 4]| {
        let mut spec = bare(&mut Random(1), CovarianceKind::Cholesky, 2, 1, 1.0);
        spec.codes.covs = cov.into();
        spec.to_bytes().err()
    };
    for scale in [1.0, 128.0, 1.0 / 128.0] {
        let tolerance = 1e-4 * scale;
        assert_eq!(full([scale, tolerance, 0.0, scale]), None);
        let beyond = full([scale, 1.01 * tolerance, 0.0, scale]);
        assert_eq!(beyond, Some(SpecError::NotSymmetric { code: 0 }));
    }
    assert_eq!(full([1.0, 1.0, 1.0, 1.0]), Some(SpecError::NotPositiveDefinite { code: 0 }));
}

#[test]
fn the_reader_wants_positive_precisions_and_their_determinant() {
    for (index, place) in [(MLP, 3), (SPECTRAL, 10), (CHOLESKY, 6)] {
        // The first number on the diagonal of the second code.
        let found = changed(index, |p| p.part(Part::CodePrecisions)[place] = 0.0);
        assert_eq!(found, Some(ArtifactError::NotPositiveDefinite { code: 1 }));
        let found = changed(index, |p| p.part(Part::CodePrecisions)[place] = -1.0);
        assert!(found.is_some());
        // 1e-4 of 1 and of the sizes of all terms.
        let shifted = |index: usize, share: f64| {
            changed(index, |p| {
                let dim = p.meta.dim as usize;
                let terms: Vec<f64> = if index == MLP {
                    p.part(Part::CodePrecisions)[dim..2 * dim].iter().map(|&x| f64::from(x).ln()).collect()
                } else {
                    let own = dim * (dim + 1) / 2;
                    let rows = &p.part(Part::CodePrecisions)[own..2 * own];
                    (0..dim).map(|i| 2.0 * f64::from(rows[i * (i + 3) / 2]).ln()).collect()
                };
                let (total, size) = terms.iter().fold((0.0, 0.0), |(t, s), x| (t + x, s + x.abs()));
                assert!(size > 0.5, "{size}");
                p.part(Part::CodeLogDets)[1] = (share * 1e-4 * (1.0 + size) - total) as f32;
            })
        };
        for share in [0.98, -0.98] {
            assert_eq!(shifted(index, share), None);
        }
        for share in [1.02, -1.02] {
            let error = ArtifactError::OutOfRange { part: Part::CodeLogDets, index: 1 };
            assert_eq!(shifted(index, share), Some(error));
        }
    }
}

#[test]
fn the_reader_wants_priors_that_sum_to_1() {
    let sum = |first: f32| {
        changed(MLP, |p| {
            let priors = p.part(Part::CodePriors);
            priors.fill(0.125);
            priors[0] = first;
        })
    };
    for first in [0.5, 0.4991, 0.5009] {
        assert_eq!(sum(first), None);
    }
    for first in [0.25, 0.4989, 0.5011, 1.0] {
        assert_eq!(sum(first), Some(ArtifactError::PriorSum));
    }
}

#[test]
fn the_reader_wants_rising_scores_and_falling_p_values() {
    let change = |part: Part, at: usize, from: usize| {
        changed(MLP, |p| {
            let values = p.part(part);
            values[at] = values[from];
        })
    };
    for part in [Part::CalibrationScores, Part::CalibrationPValues] {
        assert_eq!(change(part, 3, 2), Some(ArtifactError::CalibrationOrder { index: 3 }));
        assert_eq!(change(part, 1, 2), Some(ArtifactError::CalibrationOrder { index: 2 }));
    }
    // Fewer than 2^24 held-out inputs: the last p is 1 / (n + 1) to the bit; from there on three units may be missing.
    let last = |held_out: u32, units: u32| {
        changed(MLP, |p| {
            p.meta.calibration.as_mut().expect("a table").held_out = held_out;
            let p_values = p.part(Part::CalibrationPValues);
            let last = p_values.len() - 1;
            p_values[last] = f32::from_bits((1.0 / (held_out as f32 + 1.0)).to_bits() + units);
            // The rates of the model must be within reach.
            let rates = p.meta.calibration.as_mut().expect("a table");
            (rates.doubtful, rates.unfamiliar) = (0.5f32.to_le_bytes(), 0.4f32.to_le_bytes());
        })
    };
    for (held_out, units, taken) in [
        (100, 0, true),
        (100, 1, false),
        ((1 << 24) - 1, 0, true),
        ((1 << 24) - 1, 1, false),
        (1 << 24, 3, true),
        (1 << 24, 4, false),
        (u32::MAX, 3, true),
    ] {
        assert_eq!(last(held_out, units).is_none(), taken, "{held_out} held out, {units} units");
    }
}

#[test]
fn the_reader_names_the_wrong_scale_of_a_layer_where_it_lies() {
    let mut spec = mlp();
    spec.weights = WeightKind::Int8;
    let whole = Parts::of(&spec.to_bytes().expect("a model"));
    // A row of the first layer, and of the second behind its six scales and biases.
    for at in [0, 5, 12, 17] {
        let mut parts = whole.clone();
        parts.part(Part::Layers)[at] = -1.0;
        let error = ArtifactError::OutOfRange { part: Part::Layers, index: at };
        assert_eq!(parts.join().model().err(), Some(error));
        parts.part(Part::Layers)[at] = 0.0;
        assert!(parts.join().model().is_ok());
    }
    // The ε of a norm behind a dense layer.
    let mut spec = mlp();
    spec.layers.truncate(1);
    spec.layers.push(norm(&mut Random(2), 6, dab_core::Activation::Identity));
    let whole = Parts::of(&spec.to_bytes().expect("a model"));
    for (value, taken) in [(SMALLEST, true), (0.0, false), (-1.0, false)] {
        let mut parts = whole.clone();
        parts.part(Part::Layers)[4 * 6 + 6] = value;
        let error = ArtifactError::OutOfRange { part: Part::Layers, index: 30 };
        assert_eq!(parts.join().model().err(), (!taken).then_some(error));
    }
}

fn with_info(info: &[(&str, &str)]) -> AlignedBytes {
    let mut spec = mlp();
    spec.info = info.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    AlignedBytes::from(&*spec.to_bytes().expect("a model"))
}

#[test]
fn names_of_every_alphabet_are_read_from_their_escapes() {
    let text = r#"["a\u00e9\u07ff", "\u20ac\u0800\uffff", "\ud83d\ude00\udbff\udfff", "\ud83dx\u0000"]"#;
    let artifact = with_info(&[(INPUT_NAMES, text), (OUTPUT_NAMES, r#"["no", "yes"]"#), ("licence", "CC0")]);
    let model = artifact.model().expect("a model");
    let name =
        |i: usize| String::from_utf8(model.input_name(i).expect("a name").bytes().collect()).expect("UTF-8");
    assert_eq!(name(0), "a\u{e9}\u{7ff}");
    assert_eq!(name(1), "\u{20ac}\u{800}\u{ffff}");
    assert_eq!(name(2), "\u{1f600}\u{10ffff}");
    assert_eq!(name(3), "\u{fffd}x ");
    assert!(model.input_name(4).is_none());
    let output: Vec<u8> = model.output_name(1).expect("a name").bytes().collect();
    assert_eq!(output, b"yes");
    assert!(model.output_name(2).is_none());
    assert_eq!((model.info("licence"), model.info("Licence"), model.info("none")), (Some("CC0"), None, None));
}

#[test]
fn a_key_behind_long_strings_is_found_and_another_encoding_is_refused() {
    for length in [127, 128, 129, 16_384] {
        let long = "x".repeat(length);
        let artifact = with_info(&[("long", &long), ("licence", "CC0")]);
        let model = artifact.model().expect("a model");
        assert_eq!(model.info("licence"), Some("CC0"));
        assert_eq!(model.info("long"), Some(&*long));
    }
    // The number of strings in two bytes, and a byte behind the last.
    let plain = with_info(&[("k", "v")]);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut parts = Parts::of(plain.as_slice());
        change(&mut parts.info);
        read_info(parts.join().as_slice())
    };
    assert_eq!(changed(&|_| {}), Ok(vec![("k".into(), "v".into())]));
    assert_eq!(changed(&|info| info.push(0)), Err(ArtifactError::Info));
    assert_eq!(changed(&|info| drop(info.splice(0..1, [0x81, 0]))), Err(ArtifactError::Info));
}

#[test]
fn means_are_those_of_the_normalisation_where_no_text_has_them() {
    let artifact = with_info(&[]);
    let model = artifact.model().expect("a model");
    let mean = mlp().normalization.expect("a normalisation").mean;
    let means = model.means().expect("means");
    assert_eq!(
        (0..4).map(|i| means.get(i)).collect::<Vec<_>>(),
        mean.into_iter().map(Some).collect::<Vec<_>>()
    );
    let bare = bare(&mut Random(1), CovarianceKind::Diagonal, 2, 3, 1.0).to_bytes().expect("a model");
    assert!(AlignedBytes::from(&*bare).model().expect("a model").means().is_none());
}

#[test]
fn the_monitor_in_a_file_keeps_to_the_numeric_domain() {
    let bytes = mlp().to_bytes().expect("a model");
    let set = |enter: f32| {
        let config = Config { exit: 0.0, ..Config::plain(enter) };
        set_monitor(&bytes, &config, 0.5, &[])
    };
    for (enter, kept) in [(LARGEST, LARGEST), (SMALLEST, SMALLEST), (SMALLEST.next_down(), 0.0)] {
        let artifact = AlignedBytes::from(&*set(enter).expect("a monitor"));
        assert_eq!(artifact.model().expect("a model").monitor_config().map(|c| c.enter), Some(kept));
    }
    for enter in [LARGEST.next_up(), f32::NAN] {
        assert!(set(enter).is_err());
    }
}

/// A codebook of points: code i at `means[i]` with prior `priors[i]`.
fn points<'a>(means: &'a [f32], priors: &'a [f32]) -> CodebookView<'a> {
    CodebookView {
        dim: 1,
        alpha: 1.0,
        layout: PrecisionLayout::Identity,
        means,
        precisions: &[],
        log_dets: &[],
        priors,
    }
}

#[test]
fn of_equally_near_codes_the_first_is_named_and_a_code_of_prior_0_never() {
    let book = points(&[0.0; 4], &[0.0, 0.25, 0.5, 0.25]);
    assert_eq!(book.expected_distance(&[1.0, 2.0, 2.0, 3.0]).nearest, 1);
    assert_eq!(book.expected_distance(&[0.0, 3.0, 2.0, 2.0]).nearest, 2);
    // All saturated: the first that counts.
    assert_eq!(book.expected_distance(&[f32::MAX; 4]).nearest, 1);
    assert_eq!(points(&[0.0; 2], &[0.0, 0.0]).expected_distance(&[1.0, 2.0]).nearest, 0);
    assert!(!book.is_empty() && points(&[], &[]).is_empty());
    // Beyond 2^-100 a weight is none.
    let mut weights = [f32::NAN; 4];
    book.assignment_into(&[9.0, 0.0, 68.0, 69.0], &mut weights);
    assert!(weights[2] > 0.0 && weights[3] == 0.0 && weights[0] == 0.0, "{weights:?}");
    let visits = |near: f32| points(&[0.0], &[1.0]).expected_distance(&[near]).visits;
    assert!(visits(69.0) > 0.0 && visits(70.0) == 0.0);
    // Of points, a distance below the numeric domain is none.
    let rare = |prior: f32| points(&[0.0; 2], &[1.0, prior]).expected_distance(&[0.0, SMALLEST]).uncertainty;
    assert_eq!((rare(0.5), rare(SMALLEST)), (0.0, 0.0));
    let apart = points(&[0.0; 2], &[1.0, 1.0]).expected_distance(&[0.0, 4.0 * SMALLEST]).uncertainty;
    assert!((apart / SMALLEST - 2.0).abs() < 1e-5, "{apart}");
}

#[test]
fn an_ellipse_at_its_ends() {
    assert_eq!(EllipseView::information(0.0), 0.0);
    assert!((EllipseView::information(std::f32::consts::E.powi(2) - 1.0) - 1.0).abs() < 1e-6);
    for ridge in [0.0, -1.0, SMALLEST.next_down(), LARGEST.next_up(), f32::NAN] {
        assert!(matches!(Ellipse::<2>::new(ridge), Err(EllipseError::Ridge { .. })), "{ridge}");
    }
    for ridge in [SMALLEST, LARGEST] {
        assert!(Ellipse::<2>::new(ridge).is_ok());
    }
    let mut ellipse = Ellipse::<2>::new(1.0).expect("a ridge");
    assert_eq!(ellipse.view().dim(), 2);
    // Features beyond 2^30 count as 2^30, on both sides.
    let end = (1u64 << 30) as f32;
    for x in [end, 4.0 * end, -end, -4.0 * end] {
        assert_eq!(ellipse.assess(&[x, 0.0]).expect("finite"), end * end);
    }
    assert_eq!(ellipse.assess(&[0.5 * end, 0.0]).expect("finite"), 0.25 * end * end);
    let fresh = ellipse.assess(&[3.0, 1.0]).expect("finite");
    ellipse.observe(&[3.0, 1.0]).expect("finite");
    assert!(ellipse.assess(&[3.0, 1.0]).expect("finite") < 1.0);
    ellipse.clear();
    assert_eq!(ellipse.assess(&[3.0, 1.0]).expect("finite"), fresh);
    // What is saturated keeps its sign: the direction (−1, 1) was seen, (1, 1) was not.
    ellipse.observe(&[-4.0 * end, 4.0 * end]).expect("finite");
    let [seen, other] = [[-1.0, 1.0], [1.0, 1.0]].map(|x| ellipse.assess(&x).expect("finite"));
    assert!(seen < 1e-6 && other > 1.0, "{seen} {other}");
    // The diagonal stays at 2^60 or below, whatever lay in the storage.
    let most = (1u64 << 60) as f32;
    for (before, after) in [(0.5 * most, 0.5 * most), (most, most), (4.0 * most, most)] {
        let mut storage = [before, 0.0];
        let mut ellipse = EllipseView::new(1.0, 1, &mut storage).expect("storage");
        ellipse.observe(&[1.0]).expect("finite");
        assert_eq!(ellipse.factor().diagonal(0), after);
    }
}

#[test]
fn every_byte_between_the_sections_is_zero() {
    let sound = parts(VIEWS).join();
    let (meta_end, params) =
        (HEADER + word(sound.as_slice(), 28) as usize, word(sound.as_slice(), 32) as usize);
    for at in meta_end..params {
        let mut bytes = sound.as_slice().to_vec();
        bytes[at] = 1;
        seal(&mut bytes);
        let found = Model::from_bytes(AlignedBytes::from(&*bytes).as_slice()).err();
        assert_eq!(found, Some(ArtifactError::Padding { offset: at }));
    }
}

#[test]
fn a_bonus_is_measured_in_deviations_and_clipped_on_both_sides() {
    let config =
        explore::Config { schedule: Schedule::Constant { start: 1.0 }, clip: 2.0, centered: true, warmup: 2 };
    let mut bonus = Exploration::new(config).expect("a configuration");
    // f32::MAX is what a failed assessment has: it teaches nothing.
    for u in [0.0, f32::MAX, 8.0, f32::NAN, f32::INFINITY] {
        bonus.update(u);
    }
    // Mean 4, and a deviation of 4 or, of a sample, 4 √2.
    let one = bonus.compute(8.0, 0);
    assert!((0.7..=1.0).contains(&one), "{one}");
    assert!((bonus.compute(6.0, 0) - 0.5 * one).abs() < 1e-6);
    assert_eq!([1000.0, -1000.0].map(|u| bonus.compute(u, 0)), [2.0, -2.0]);
    // Equal uncertainties have no deviation: the bonus is in nats.
    let mut equal = Exploration::new(config).expect("a configuration");
    (0..4).for_each(|_| equal.update(3.0));
    assert_eq!(equal.compute(4.5, 0), 1.5);
    let falling = Schedule::Exponential { start: 1.0, end: 0.25, steps: 10 };
    assert!((falling.weight(10) - (0.25 + 0.75 * (-1f32).exp())).abs() < 1e-6);
}

#[test]
fn probabilities_of_classes_sum_to_1_with_equal_ones_for_equal_logits() {
    let mut logits = [3.0, 3.0, -1.0, 80.0, 80.0, 80.0, 80.0];
    softmax(&mut logits);
    assert!(logits[3..].iter().all(|p| (p - 0.25).abs() < 1e-6), "{logits:?}");
    assert!((logits.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn a_decision_is_nominal_when_its_state_is() {
    let artifact = AlignedBytes::from(&*mlp().to_bytes().expect("a model"));
    let model = artifact.model().expect("a model");
    let mut scratch = vec![0.0; model.scratch_len()];
    let mut seen = [false; 2];
    let mut guard = Guard::new(&model, Config::plain(1e9)).expect("a configuration");
    for now in 0..40 {
        let decision = guard.assess(now, if now < 30 { &[0.0; 4] } else { &[f32::NAN; 4] }, &mut scratch);
        assert_eq!(decision.is_nominal(), decision.state == State::Nominal);
        seen[usize::from(decision.is_nominal())] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn the_cost_of_a_call_is_counted_from_its_shape() {
    let count = |spec: &Spec| {
        let artifact = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        artifact.model().expect("a model").multiply_adds()
    };
    // Three dimensions, two codes, a square head: head + encoder + codes.
    let of_kind = |kind| count(&bare(&mut Random(5), kind, 3, 2, 1.0));
    assert_eq!(of_kind(CovarianceKind::Diagonal), 6 * 6 + 3 + 2 * 6);
    assert_eq!(of_kind(CovarianceKind::Cholesky), 9 * 9 + 2 * (10 + 6 + 3));
    // Five sweeps over three pairs, each of which turns twelve times three numbers.
    assert_eq!(of_kind(CovarianceKind::Spectral), 9 * 9 + 5 * 3 * 36 + 9 + 2 * (18 + 6 + 3));
    assert_eq!(of_kind(CovarianceKind::Constant), 3 * 3 + 2 * 3);
    // Three layers, head, encoder, five codes, decoder.
    let mut spec = mlp();
    assert_eq!(count(&spec), 4 * 6 + 36 + 36 + 36 + 3 + 5 * 6 + 3 * 2);
    spec.layers.truncate(1);
    spec.layers.push(norm(&mut Random(2), 6, dab_core::Activation::Identity));
    assert_eq!(count(&spec), 4 * 6 + 4 * 6 + 36 + 3 + 5 * 6 + 3 * 2);
    // Three taught codes: two multiply-adds a dimension.
    let mut head = Head::new(memory::Config::DEFAULT).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(3, 3)];
    let mut memory = MemoryView::new(&mut head, 3, 3, &mut floats).expect("memory");
    for x in [1.0, 50.0, 100.0] {
        memory.teach(&[x; 3], Width::Std(&[1.0; 3]), None).expect("room");
    }
    let bytes = mlp().to_bytes().expect("a model");
    let taught = AlignedBytes::from(&*add_taught(&bytes, &memory.codes(), &[]).expect("a model"));
    assert_eq!(taught.model().expect("a model").multiply_adds(), count(&mlp()) + 3 * 2 * 3);
}

#[test]
fn rates_of_ambiguity_and_known_answers_are_checked() {
    let artifact = parts(VIEWS).join();
    let mut model = artifact.model().expect("a model");
    assert!(model.set_ambiguity_rate(0.5).is_ok());
    for rate in [0.0, 1.0, -1.0, f32::NAN, 1e-9] {
        assert!(model.set_ambiguity_rate(rate).is_err(), "{rate}");
    }
    let mut plain = parts(MLP);
    let mut scratch = vec![0.0; 256];
    assert_eq!(plain.join().model().expect("a model").self_test(&mut scratch), Ok(()));
    plain.part(Part::SelfTestAnswers)[1] += 1.0;
    assert!(plain.join().model().expect("a model").self_test(&mut scratch).is_err());
    let mut none = parts(SPECTRAL).join();
    let mut model = none.model().expect("a model");
    assert!(model.set_ambiguity_rate(0.5).is_err() && model.set_rates(Rates::for_held_out(30)).is_err());
    none = parts(MLP).join();
    assert!(none.model().expect("a model").taught().is_none());
}

#[test]
fn views_and_ambiguity_keep_to_their_limits() {
    let views = |change: fn(&mut dab_core::artifact::schema::ChannelsMeta)| {
        changed(VIEWS, |p| change(p.channels.as_mut().expect("channels")))
    };
    let limit = |field, value, max| Some(ArtifactError::Limit { field, value, max });
    assert_eq!(views(|c| c.views[0].dim = 0), limit("views.dim", 0, 1024));
    assert_eq!(views(|c| c.views[1].codes = 65_537), limit("views.codes", 65_537, 65_536));
    assert_eq!(
        views(|c| c.ambiguity.as_mut().expect("a table").held_out = 0),
        limit("ambiguity.held_out", 0, u32::MAX)
    );
    assert_eq!(
        views(|c| c.ambiguity.as_mut().expect("a table").rate = 2f32.to_le_bytes()),
        Some(ArtifactError::Rates)
    );
    let order = changed(VIEWS, |p| p.part(Part::AmbiguityScores).reverse());
    assert_eq!(order, Some(ArtifactError::CalibrationOrder { index: 1 }));
    // Energies need classes.
    for form in Form::ALL {
        let found = changed(VIEWS, |p| {
            p.meta.decoder.as_mut().expect("a decoder").task = Task::Regression;
            let channels = p.channels.as_mut().expect("channels");
            channels.base.form = form;
            channels.ambiguity = None;
            let points = parts(VIEWS).channels.and_then(|c| c.ambiguity).map_or(0, |a| usize::from(a.points));
            p.params.truncate(p.params.len() - 2 * points);
        });
        let energy = form != Form::Distance;
        assert_eq!(
            found == Some(ArtifactError::Channels { field: "base.form" }),
            energy,
            "{form:?}: {found:?}"
        );
    }
}

#[test]
fn a_flipped_bit_is_found_without_loading_the_model() {
    let sound = parts(VIEWS).join();
    assert_eq!(artifact::check(sound.as_slice()), Ok(()));
    for at in [0, 9, 70, sound.as_slice().len() - 1] {
        let mut bytes = sound.as_slice().to_vec();
        bytes[at] ^= 4;
        assert!(artifact::check(AlignedBytes::from(&*bytes).as_slice()).is_err(), "byte {at}");
    }
}

#[test]
fn means_of_a_later_view_are_found() {
    let mut spec = specs::views();
    spec.normalization = None;
    let views = &mut spec.channels.as_mut().expect("channels").views;
    for view in &mut *views {
        view.normalization = None;
    }
    let inputs = spec.inputs;
    let mean: Vec<f32> = (0..inputs).map(|i| i as f32).collect();
    views[1].normalization = Some(Normalization { mean: mean.clone(), std: vec![1.0; inputs] });
    let artifact = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    let means = artifact.model().expect("a model").means().expect("means of the second view");
    assert_eq!(
        (0..inputs).map(|i| means.get(i)).collect::<Vec<_>>(),
        mean.into_iter().map(Some).collect::<Vec<_>>()
    );
}

#[test]
fn a_monitor_at_the_ends_of_its_clock_and_votes() {
    let config = Config { timeout: i32::MAX as u32, ..Config::plain(1.0) };
    assert!(Monitor::new(config).is_ok());
    assert!(Monitor::new(Config { timeout: 1 << 31, ..config }).is_err());
    // Half of the counter's range is the longest step forwards.
    let mut monitor = Monitor::new(Config { timeout: 0, ..config }).expect("a configuration");
    for now in 0..9 {
        let _ = monitor.observe(now, 0.0);
    }
    assert_eq!(monitor.observe(8 + i32::MAX as u32, 0.0), State::Nominal);
    assert_eq!(monitor.statistics().stales, 0);
    assert_ne!(monitor.poll(7), State::Nominal, "one tick more is a step back");
    // Votes: what is high, and what is rejected.
    let mut monitor = Monitor::new(Config::plain(1.0)).expect("a configuration");
    for (now, score) in [0.0, 5.0, f32::NAN, 0.5].into_iter().enumerate() {
        let _ = monitor.observe(now as u32, score);
    }
    let seen = monitor.statistics();
    assert_eq!((seen.inputs, seen.votes, seen.rejected), (4, 2, 1));
}
