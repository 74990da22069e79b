//! Properties of the two channels and of views (method.md E14–E17), through the public types alone, and both channels
//! against float64.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::schema::{CovarianceKind, DecoderReads, Form, Task};
use dab_core::artifact::writer::{
    AmbiguitySpec, CalibrationSpec, ChannelsSpec, DecoderSpec, Normalization, Spec, SpecError, ViewSpec,
};
use dab_core::channels::{Tail, Tails, ViewScore};
use dab_core::{Assessment, Rates, RatesError, Verdict};
use dab_tests::specs::{Random, any, bare, tails, view, views};
use proptest::prelude::*;

/// f32 sums of a few hundred products against float64, in units of the largest term.
const RELATIVE: f64 = 2e-5;

fn assess(spec: &Spec, input: &[f32]) -> (Assessment, Vec<ViewScore>) {
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    let model = bytes.model().expect("a model");
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    let mut found = vec![ViewScore::default(); model.shape().views];
    (model.views_into(input, &mut found, &mut scratch).expect("an input"), found)
}

/// The channels in float64, straight from the equations.
mod exact {
    use super::*;

    pub fn softplus(x: f64) -> f64 {
        x.max(0.0) + (-x.abs()).exp().ln_1p()
    }

    pub fn surprise(tail: &Tail, t: f64) -> f64 {
        softplus((t - f64::from(tail.a)) / f64::from(tail.b))
    }

    pub fn affine(weight: &[f32], bias: Option<&[f32]>, x: &[f64]) -> Vec<f64> {
        let row = |(i, row): (usize, &[f32])| {
            row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>() + bias.map_or(0.0, |b| b[i].into())
        };
        weight.chunks(x.len()).enumerate().map(row).collect()
    }

    fn prepared(input: &[f32], normalization: Option<&Normalization>, l2: bool) -> Vec<f64> {
        let mut x: Vec<f64> = input.iter().map(|&x| x.into()).collect();
        if let Some(n) = normalization {
            for (x, (m, s)) in x.iter_mut().zip(n.mean.iter().zip(&n.std)) {
                *x = (*x - f64::from(*m)) / f64::from(*s);
            }
        }
        let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        if l2 && norm > 0.0 {
            x.iter_mut().for_each(|x| *x /= norm);
        }
        x
    }

    /// u of constant covariances.
    fn distance(z: &[f64], means: &[f64], priors: &[f64], alpha: f32) -> f64 {
        let half = |m: &[f64]| 0.5 * z.iter().zip(m).map(|(z, m)| (z - m) * (z - m)).sum::<f64>();
        let d: Vec<f64> = means.chunks(z.len()).map(half).collect();
        let least = d.iter().copied().fold(f64::MAX, f64::min);
        let w: Vec<f64> =
            d.iter().zip(priors).map(|(d, p)| p * (-f64::from(alpha) * (d - least)).exp()).collect();
        w.iter().zip(&d).map(|(w, d)| w * d).sum::<f64>() / w.iter().sum::<f64>()
    }

    /// Energy and ambiguity.
    pub fn read(logits: &[f64]) -> (f64, f64) {
        let top = logits.iter().copied().fold(f64::MIN, f64::max);
        let class = logits.iter().position(|&l| l == top).expect("a logit");
        let sum = |skip: Option<usize>| {
            let terms = logits.iter().enumerate().filter(|&(i, _)| Some(i) != skip);
            terms.map(|(_, l)| (l - top).exp()).sum::<f64>().ln() + top
        };
        (-sum(None), sum(Some(class)) - top)
    }

    fn score(tails: &Tails, form: Form, u: f64, energy: Option<f64>) -> f64 {
        let g = |tail: &Tail, t| surprise(tail, t);
        match (form, energy) {
            (Form::Distance, _) | (_, None) => u,
            (Form::Energy, Some(e)) => e,
            (Form::Sum, Some(e)) => g(&tails.energy, e) + g(&tails.u, u),
            (Form::Joined, Some(e)) => g(&tails.energy, e) + (g(&tails.u, u) - 1.0).max(0.0),
        }
    }

    /// U, and A if there is one, of a model without hidden layers.
    pub fn channels(spec: &Spec, input: &[f32]) -> (f64, Option<f64>) {
        let channels = spec.channels.as_ref().expect("channels");
        let base = &channels.base;
        let x = prepared(input, spec.normalization.as_ref(), base.l2);
        let z = affine(&spec.head.weight, spec.head.bias.as_deref(), &x);
        let u = distance(&z, &spec.codes.means, &spec.codes.priors, spec.codes.alpha);
        let raw: Vec<f64> = input.iter().map(|&x| x.into()).collect();
        let read_by = if base.decoder_reads == DecoderReads::Input { &raw } else { &z };
        let classes = spec.decoder.as_ref().filter(|d| d.task == Task::Classification);
        let read_base = classes.map(|d| (d.outputs, read(&affine(&d.weight, d.bias.as_deref(), read_by))));
        let t = score(&base.tails, base.form, u, read_base.map(|(_, (e, _))| e));
        let mut sum = surprise(&base.tails.view, t);
        for v in &channels.views {
            let x = prepared(input, v.normalization.as_ref(), v.l2);
            let z = affine(&v.head_weight, Some(&v.head_bias), &x);
            let means: Vec<f64> = v.means.iter().map(|&m| m.into()).collect();
            let u = distance(&z, &means, &v.priors, v.alpha);
            let energy = v.decoder.as_ref().map(|d| read(&affine(&d.weight, d.bias.as_deref(), &z)).0);
            sum += surprise(&v.tails.view, score(&v.tails, v.form, u, energy));
        }
        let ambiguity = read_base.filter(|(outputs, _)| *outputs > 1).map(|(_, (_, a))| a);
        (sum / (1 + channels.views.len()) as f64, ambiguity)
    }
}

/// A random model with channels and no hidden layers. Temperatures are moderate: at 10¹⁰ a rounding decides between codes.
fn shallow(random: &mut Random) -> Spec {
    loop {
        let mut spec = any(random, CovarianceKind::Constant, 1.0);
        if !spec.layers.is_empty() {
            continue;
        }
        spec.head.activation = dab_core::Activation::Identity;
        spec.codes.alpha = spec.codes.alpha.min(5.0);
        for v in &mut spec.channels.as_mut().expect("channels").views {
            v.alpha = v.alpha.min(5.0);
        }
        return spec;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_channels_agree_with_float64(seed: u64) {
        let random = &mut Random(seed);
        let spec = shallow(random);
        let input = random.floats(spec.inputs, 3.0);
        let (found, _) = assess(&spec, &input);
        let (unfamiliarity, ambiguity) = exact::channels(&spec, &input);
        let close = |found: f32, expected: f64| {
            (f64::from(found) - expected).abs() <= RELATIVE * (10.0 + expected.abs())
        };
        prop_assert!(close(found.unfamiliarity.expect("channels"), unfamiliarity), "{found:?} {unfamiliarity}");
        prop_assert_eq!(found.ambiguity.is_some(), ambiguity.is_some());
        if let (Some(found), Some(expected)) = (found.ambiguity, ambiguity) {
            prop_assert!(close(found, expected), "{found} {expected}");
        }
    }

    /// The score of a view never falls when its distance or its energy rises, in any form.
    #[test]
    fn more_of_either_is_never_more_familiar(
        seed: u64, d in 0f32..50.0, e in -50f32..50.0, more in 0f32..20.0, which in 0usize..4,
    ) {
        let (tails, form) = (tails(&mut Random(seed)), Form::ALL[which]);
        let score = |d, e| tails.score(form, d, Some(e));
        prop_assert!(score(d, e) <= score(d + more, e) && score(d, e) <= score(d, e + more));
        let surprise = |t| tails.view.surprise(t);
        prop_assert!(surprise(score(d, e)) <= surprise(score(d + more, e + more)));
    }

    /// With one view of the form distance, U is a function of u alone: g of it.
    #[test]
    fn one_view_of_distances_is_its_surprise(seed: u64) {
        let random = &mut Random(seed);
        let mut spec = shallow(random);
        let channels = spec.channels.as_mut().expect("channels");
        channels.views.clear();
        channels.base.form = Form::Distance;
        let tail = channels.base.tails.view;
        let (found, views) = assess(&spec, &random.floats(spec.inputs, 3.0));
        prop_assert_eq!(views[0].score, found.uncertainty);
        prop_assert_eq!(found.unfamiliarity, Some(tail.surprise(found.uncertainty)));
        prop_assert_eq!(found.view, Some(0));
    }

    /// Where every norm is L2 and nothing is centred, the length of an input says nothing.
    #[test]
    fn the_length_of_an_input_does_not_matter_to_unit_norms(seed: u64, scale in 1e-3f32..1e3) {
        let random = &mut Random(seed);
        let mut spec = shallow(random);
        spec.normalization = None;
        let channels = spec.channels.as_mut().expect("channels");
        (channels.base.l2, channels.base.form) = (true, Form::Distance);
        for v in &mut channels.views {
            (v.l2, v.normalization) = (true, None);
        }
        let input = random.floats(spec.inputs, 3.0);
        let scaled: Vec<f32> = input.iter().map(|x| x * scale).collect();
        let (a, b) = (assess(&spec, &input).0, assess(&spec, &scaled).0);
        let (a, b) = (a.unfamiliarity.expect("channels"), b.unfamiliarity.expect("channels"));
        prop_assert!((a - b).abs() <= 1e-4 * (1.0 + a), "{a} {b}");
    }

    /// The order of the classes changes their names and nothing else.
    #[test]
    fn the_order_of_classes_does_not_matter(seed: u64, shift in 1usize..5) {
        let random = &mut Random(seed);
        let classes = 5;
        let mut spec = bare(random, CovarianceKind::Constant, 4, 3, 1.0);
        let weight = random.floats(classes * 4, 2.0);
        let bias = random.floats(classes, 1.0);
        let turned = |values: &[f32], width: usize| {
            let mut values = values.to_vec();
            values.rotate_right(shift * width);
            values
        };
        let decoder = |weight, bias| {
            Some(DecoderSpec { weight, bias: Some(bias), outputs: classes, task: Task::Classification })
        };
        let base = &mut spec.channels.as_mut().expect("channels").base;
        (base.form, base.tails) = (Form::Joined, tails(random));
        spec.decoder = decoder(weight.clone(), bias.clone());
        let input = random.floats(spec.inputs, 2.0);
        let (a, _) = assess(&spec, &input);
        spec.decoder = decoder(turned(&weight, 4), turned(&bias, 1));
        let (b, _) = assess(&spec, &input);
        let moved = |class: Option<usize>| class.map(|c| (c + shift) % classes);
        prop_assert_eq!((moved(a.class), moved(a.runner_up)), (b.class, b.runner_up));
        prop_assert!((a.ambiguity.unwrap() - b.ambiguity.unwrap()).abs() <= 1e-5 * (1.0 + a.ambiguity.unwrap().abs()));
        prop_assert!((a.score() - b.score()).abs() <= 1e-5 * (1.0 + a.score()));
    }

    /// A constant covariance is a diagonal one whose variances are all 1.
    #[test]
    fn constant_is_diagonal_with_unit_variances(seed: u64) {
        let random = &mut Random(seed);
        let (dim, k) = (1 + random.below(9), 1 + random.below(9));
        let constant = bare(random, CovarianceKind::Constant, dim, k, 1.0);
        let mut diagonal = bare(random, CovarianceKind::Diagonal, dim, k, 1.0);
        diagonal.codes = constant.codes.clone();
        diagonal.codes.covs = vec![1.0; k * dim];
        let mean = random.floats(dim, 3.0);
        // The raw output that becomes a standard deviation of 1.
        let one = ((1.0 - f64::from(dab_core::parts::STD_FLOOR)).exp_m1().ln()
            + f64::from(dab_core::parts::SOFTPLUS_SHIFT)) as f32;
        let raw = [&mean[..], &vec![one; dim]].concat();
        let (a, b) = (assess(&constant, &mean).0, assess(&diagonal, &raw).0);
        prop_assert!((a.uncertainty - b.uncertainty).abs() <= 1e-5 * (dim as f32 + a.uncertainty));
        prop_assert!((a.nearest_distance - b.nearest_distance).abs() <= 1e-5 * (dim as f32 + a.nearest_distance));
    }
}

#[test]
fn the_verdict_says_unfamiliar_before_ambiguous() {
    let mut spec = views();
    let (a, _) = assess(&spec, &[0.3, -0.2, 0.5, 0.1, -0.4]);
    let (score, ambiguity) = (a.score(), a.ambiguity.expect("classes"));
    // Held-out scores all above or all below the input's own: it is then familiar or unfamiliar, clear or ambiguous.
    let mut verdict = |far: bool, torn: bool| {
        let table = |value: f32, beyond: bool| vec![if beyond { value - 1.0 } else { value + 1.0 }; 200];
        let scores = table(score, far).iter().map(|s| s.max(0.0)).collect();
        spec.calibration = Some(CalibrationSpec { scores, rates: Rates::DEFAULT });
        let channels = spec.channels.as_mut().expect("channels");
        channels.ambiguity = Some(AmbiguitySpec { scores: table(ambiguity, torn), rate: 0.05 });
        assess(&spec, &[0.3, -0.2, 0.5, 0.1, -0.4]).0.verdict
    };
    assert!(score > 1.0, "the tables need room below: {score}");
    assert_eq!(verdict(false, false), Some(Verdict::Familiar));
    assert_eq!(verdict(false, true), Some(Verdict::Ambiguous));
    assert_eq!(verdict(true, false), Some(Verdict::Unfamiliar));
    assert_eq!(verdict(true, true), Some(Verdict::Unfamiliar));
}

#[test]
fn a_tail_without_a_scale_is_refused_by_the_number_of_its_view() {
    for view in 0..3 {
        for (index, value) in [(1, 0.0), (3, -1.0), (5, 0.0)] {
            let mut spec = views();
            let channels = spec.channels.as_mut().expect("channels");
            let beside = channels.views.iter_mut().map(|view| &mut view.tails);
            let tails = [&mut channels.base.tails].into_iter().chain(beside).nth(view).expect("three views");
            match index {
                1 => tails.u.b = value as f32,
                3 => tails.energy.b = value as f32,
                _ => tails.view.b = value as f32,
            }
            let part = format!("tails.{view}");
            assert_eq!(spec.to_bytes(), Err(SpecError::OutOfRange { part, index, value }));
        }
    }
}

#[test]
fn rates_that_the_table_cannot_reach_are_refused_with_the_number_that_they_need() {
    let mut spec = bare(&mut Random(5), CovarianceKind::Diagonal, 2, 2, 1.0);
    let table = |n: usize, rates| Some(CalibrationSpec { scores: (0..n).map(|i| i as f32).collect(), rates });
    for (n, needed) in [(98, 99), (5, 99)] {
        spec.calibration = table(n, Rates::DEFAULT);
        let unreachable = RatesError::Unreachable { rate: 0.01, held_out: n as u32, needed };
        assert_eq!(spec.to_bytes(), Err(SpecError::Rates(unreachable)));
        assert!(unreachable.to_string().contains("needs 99 held-out inputs"), "{unreachable}");
        spec.calibration = table(n, Rates::for_held_out(n as u32));
        assert!(spec.to_bytes().is_ok(), "{n} inputs reach the rates that are made for them");
    }
    spec.calibration = table(99, Rates::DEFAULT);
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("just enough"));
    let mut model = bytes.model().expect("a model");
    let before = model.rates();
    let refused = model.set_rates(Rates::new(0.05, 1e-9).expect("rates")).expect_err("too small");
    assert!(matches!(refused, RatesError::Unreachable { held_out: 99, needed, .. } if needed > 900_000_000));
    assert_eq!(model.rates(), before, "nothing changed");
    assert_eq!(model.set_rates(Rates::new(0.2, 0.1).expect("rates")), Ok(()));
    spec.calibration = None;
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    let found = bytes.model().expect("a model").set_rates(Rates::DEFAULT);
    assert_eq!(found, Err(RatesError::NotCalibrated));
    // The rate of ambiguous, too.
    let mut spec = views();
    let ambiguity = spec.channels.as_mut().expect("channels").ambiguity.as_mut().expect("a table");
    ambiguity.scores.truncate(8);
    assert!(matches!(
        spec.to_bytes(),
        Err(SpecError::Rates(RatesError::Unreachable { held_out: 8, needed: 9, .. }))
    ));
}

#[test]
fn multiply_adds_and_scratch_count_every_view() {
    let random = &mut Random(8);
    let mut spec = bare(random, CovarianceKind::Constant, 4, 3, 1.0);
    let of = |spec: &Spec| {
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let model = bytes.model().expect("a model");
        (model.multiply_adds(), model.scratch_len())
    };
    // 4 inputs → 4 dimensions, 3 codes; scratch: 4 raw, 4 inputs, 3 distances, 4 scores of the view.
    assert_eq!(of(&spec), (4 * 4 + 3 * 4, 4 + 4 + 3 + 4));
    let mut second = view(random, 4, 5, Form::Sum, 1.0);
    (second.dim, second.l2) = (2, true);
    second.head_weight = random.floats(8, 1.0);
    second.head_bias = random.floats(2, 1.0);
    second.means = random.floats(2 * 6, 1.0);
    second.priors = vec![1.0 / 6.0; 6];
    second.decoder.as_mut().expect("a decoder").weight = random.floats(10, 1.0);
    spec.channels = Some(ChannelsSpec { views: vec![second], ..ChannelsSpec::default() });
    // The second view: length 2 · 4, head 4 · 2, codes 6 · 2, logits 2 · 5. It needs 6 distances and 5 logits.
    assert_eq!(of(&spec), (28 + 8 + 8 + 12 + 10, 4 + 4 + 6 + 5 + 2 * 4));
}

#[test]
fn a_view_has_an_energy_where_it_has_classes() {
    let (spec, input) = (views(), [0.3, -0.2, 0.5, 0.1, -0.4]);
    let (_, found) = assess(&spec, &input);
    let [base, second, third] = found[..] else { panic!("three views") };
    assert!(second.energy.is_some_and(|e| e.abs() < 100.0), "{second:?}");
    assert_eq!(third.energy, None, "it has no decoder");
    // The base's decoder reads the input.
    let decoder = spec.decoder.as_ref().expect("a decoder");
    let logits = exact::affine(&decoder.weight, decoder.bias.as_deref(), &input.map(f64::from));
    let (energy, expected) = (f64::from(base.energy.expect("classes")), exact::read(&logits).0);
    assert!((energy - expected).abs() < RELATIVE * (1.0 + expected.abs()), "{energy} {expected}");
}

/// The base of a model without layers and classes as a view beside it.
fn base_again(spec: &Spec) -> ViewSpec {
    ViewSpec {
        normalization: spec.normalization.clone(),
        l2: false,
        head_weight: spec.head.weight.clone(),
        head_bias: vec![0.0; spec.head.dim],
        dim: spec.head.dim,
        alpha: spec.codes.alpha,
        means: spec.codes.means.iter().map(|&m| m as f32).collect(),
        priors: spec.codes.priors.clone(),
        decoder: None,
        form: Form::Distance,
        tails: Tails::UNIT,
    }
}

#[test]
fn of_equally_surprised_views_the_first_is_named() {
    let mut spec = bare(&mut Random(9), CovarianceKind::Constant, 3, 2, 1.0);
    let view = base_again(&spec);
    spec.channels = Some(ChannelsSpec { views: vec![view.clone(), view], ..ChannelsSpec::default() });
    let named = |spec: &Spec, equal: &[usize]| {
        let (found, views) = assess(spec, &[2.0, -3.0, 4.0]);
        assert!(equal.iter().all(|&view| views[view].surprise == views[equal[0]].surprise), "{views:?}");
        found.view
    };
    assert_eq!(named(&spec, &[0, 1, 2]), Some(0));
    // The two views beside a base that is less surprised.
    spec.channels.as_mut().expect("channels").base.tails.view.a = 5.0;
    assert_eq!(named(&spec, &[1, 2]), Some(1));
}

#[test]
fn columns_are_scaled_where_a_deviation_is_not_1() {
    let plain = bare(&mut Random(10), CovarianceKind::Constant, 3, 2, 1.0);
    let scaled = |base: Option<f32>, beside: Option<f32>| {
        let normalization = |std| Some(Normalization { mean: vec![0.5; 3], std: vec![std; 3] });
        let mut spec = plain.clone();
        let mut view = base_again(&spec);
        view.normalization = beside.and_then(normalization);
        spec.normalization = base.and_then(normalization);
        spec.channels = Some(ChannelsSpec { views: vec![view], ..ChannelsSpec::default() });
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let model = bytes.model().expect("a model");
        [0, 1, 2, usize::MAX].map(|view| model.scales_columns(view))
    };
    // A view beyond the last scales nothing, and neither does one that only centres.
    for none in [None, Some(1.0)] {
        assert_eq!(scaled(none, none), [false; 4]);
        assert_eq!(scaled(Some(2.0), none), [true, false, false, false]);
        assert_eq!(scaled(none, Some(0.25)), [false, true, false, false]);
    }
}
