//! The memory that learns on the device (docs/exploration.md), through the public types alone: what always holds. How far
//! it is from float64 after a million observations is in `memory_float64.rs`.

use dab_core::artifact::AlignedBytes;
use dab_core::divergence::Precision;
use dab_core::ellipse::{Ellipse, EllipseView};
use dab_core::memory::{Config, Head, Memory, MemoryError, MemoryView, Novelty, Width, storage_len};
use dab_core::random::RandomEncoder;
use dab_tests::specs::Random;
use proptest::prelude::*;

/// The free-energy identity in f32: relative to its largest term.
const OF_IDENTITY: f64 = 2e-5;

const K: usize = 6;
const D: usize = 3;

fn config(alpha: f32, spawn: f32, keep: f32) -> Config {
    Config { alpha, spawn, keep, ..Config::DEFAULT }
}

fn means(memory: &mut Memory<K, D>) -> Vec<f32> {
    memory.view().codes().means.to_vec()
}

/// Everything that a memory is, as bits.
fn bits(view: &MemoryView<'_>) -> Vec<u8> {
    let mut bytes = vec![0; view.saved_len()];
    view.save(&mut bytes).unwrap();
    bytes
}

prop_compose! {
    fn point()(x in prop::array::uniform3(-3f32..3.0), std in prop::array::uniform3(0.05f32..0.5)) -> ([f32; D], [f32; D]) {
        (x, std)
    }
}

prop_compose! {
    fn any_config()(alpha in 0.2f32..3.0, spawn in 0f32..6.0, widen in 1f32..6.0, keep in 0.9f32..1.0, horizon in 1u32..50)
        -> Config
    {
        Config { alpha, spawn, widen, keep, horizon }
    }
}

fn holds(novelty: &Novelty, memory: &mut Memory<K, D>, largest: &[f32; D]) -> Result<(), TestCaseError> {
    prop_assert!(novelty.bonus > 0.0 && novelty.bonus <= 1.0, "{novelty:?}");
    prop_assert!(novelty.visits >= 0.0 && novelty.visits.is_finite(), "{novelty:?}");
    prop_assert!(novelty.uncertainty >= novelty.nearest_distance * (1.0 - 1e-6), "{novelty:?}");
    let view = memory.view();
    let horizon = view.config().horizon as f32;
    prop_assert!(view.len() <= K && view.pinned() <= view.len());
    let codes = view.codes();
    for &n in codes.priors {
        prop_assert!((0.0..=horizon).contains(&n), "count {n}");
    }
    for code in codes.precisions.chunks(D) {
        for (p, most) in code.iter().zip(largest) {
            prop_assert!(*p > 0.0 && p <= most, "a variance below the smallest that was seen: {p} {most}");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_invariants_hold_after_every_observation(
        config in any_config(), points in prop::collection::vec(point(), 1..200), taught in prop::collection::vec(0usize..200, 0..4),
    ) {
        let mut memory = Memory::<K, D>::new(config).unwrap();
        let mut largest = [0f32; D];
        for (i, (x, std)) in points.iter().enumerate() {
            for (most, s) in largest.iter_mut().zip(std) {
                *most = most.max(1.0 / (s * s));
            }
            let novelty = if taught.contains(&i) {
                memory.teach(x, Width::Std(std), None)
            } else {
                memory.observe(x, Width::Std(std))
            };
            match novelty {
                Ok(novelty) => holds(&novelty, &mut memory, &largest)?,
                Err(error) => prop_assert_eq!(error, MemoryError::Full { places: K }),
            }
        }
    }

    /// Without forgetting, every observation is one count of one code.
    #[test]
    fn counts_add_up_to_the_observations(spawn in 0f32..9.0, points in prop::collection::vec(point(), 1..200)) {
        let mut memory = Memory::<K, D>::new(config(1.0, spawn, 1.0)).unwrap();
        for (x, std) in &points {
            memory.observe(x, Width::Std(std)).unwrap();
        }
        prop_assert_eq!(memory.view().codes().priors.iter().sum::<f32>(), points.len() as f32);
    }

    /// −ln(visits/Σn)/α = u + KL(π_x‖π)/α: rate and distortion.
    #[test]
    fn visits_are_a_free_energy(
        alpha in 0.2f32..2.0, spawn in 0f32..4.0, points in prop::collection::vec(point(), 1..60), new in point(),
    ) {
        let mut memory = Memory::<K, D>::new(config(alpha, spawn, 1.0)).unwrap();
        for (x, std) in &points {
            memory.observe(x, Width::Std(std)).unwrap();
        }
        let found = memory.assess(&new.0, Width::Std(&new.1)).unwrap();
        prop_assume!(found.visits > 1e-20);
        let view = memory.view();
        let (alpha, codes) = (f64::from(alpha), view.codes());
        let total: f64 = codes.priors.iter().map(|&n| f64::from(n)).sum();
        let mut weights = Vec::new();
        let mut largest = 1.0f64;
        for (k, &n) in codes.priors.iter().enumerate() {
            let code = view.code(k).unwrap().0;
            let Precision::Diagonal(precision) = code.precision else { unreachable!() };
            let distance: f64 = (0..D).map(|i| {
                let (v, s) = (1.0 / f64::from(precision[i]), f64::from(new.1[i]).powi(2));
                let offset = f64::from(new.0[i]) - f64::from(code.mean[i]);
                0.5 * ((s + offset * offset) / v - 1.0 + (v / s).ln())
            }).sum();
            weights.push((f64::from(n) * (-alpha * distance).exp(), f64::from(n) / total, distance));
        }
        let sum: f64 = weights.iter().map(|w| w.0).sum();
        let mut right = 0.0;
        for (w, prior, distance) in &weights {
            let share = w / sum;
            if share > 0.0 {
                right += share * (distance + (share / prior).ln() / alpha);
                largest = largest.max(share * distance);
            }
        }
        let left = -(f64::from(found.visits) / total).ln() / alpha;
        // A saturated exponent magnifies the rounding of a distance by its size.
        prop_assert!((left - right).abs() <= OF_IDENTITY * largest.max(left.abs()) * (1.0 + left.abs()), "{left} {right}");
    }

    #[test]
    fn the_order_of_two_observations_of_distinct_codes_does_not_matter(
        a in prop::array::uniform3(-0.05f32..0.05), b in prop::array::uniform3(-0.05f32..0.05), seen in 1usize..20,
    ) {
        let width = Width::EveryStd(0.2);
        let mut memory = Memory::<K, D>::new(Config::DEFAULT).unwrap();
        for _ in 0..seen {
            memory.observe(&[0.0; D], width).unwrap();
            memory.observe(&[5.0; D], width).unwrap();
        }
        let b = b.map(|x| 5.0 + x);
        let mut other = memory.clone();
        memory.observe(&a, width).unwrap();
        memory.observe(&b, width).unwrap();
        other.observe(&b, width).unwrap();
        other.observe(&a, width).unwrap();
        prop_assert_eq!(bits(&memory.view()), bits(&other.view()));
        prop_assert_ne!(means(&mut memory)[0], 0.0f32 + if a[0] == 0.0 { 1.0 } else { 0.0 });
    }

    #[test]
    fn a_saved_memory_continues_with_the_same_bits(
        config in any_config(), before in prop::collection::vec(point(), 0..60), after in prop::collection::vec(point(), 1..60),
        flip: usize,
    ) {
        let mut memory = Memory::<K, D>::new(config).unwrap();
        for (i, (x, std)) in before.iter().enumerate() {
            let width = Width::Std(std);
            let _ = if i % 17 == 3 { memory.teach(x, width, None) } else { memory.observe(x, width) };
        }
        let saved = bits(&memory.view());
        let mut larger = Memory::<9, D>::new(Config::DEFAULT).unwrap();
        let mut same = Memory::<K, D>::new(Config::DEFAULT).unwrap();
        larger.view().restore(&saved).unwrap();
        same.view().restore(&saved).unwrap();
        prop_assert_eq!(bits(&larger.view()), &saved[..]);
        for (x, std) in &after {
            let expected = memory.observe(x, Width::Std(std)).unwrap();
            prop_assert_eq!(same.observe(x, Width::Std(std)).unwrap(), expected);
        }
        prop_assert_eq!(bits(&same.view()), bits(&memory.view()));
        // A damaged one is refused, and changes nothing.
        let mut damaged = saved.clone();
        damaged[flip % saved.len()] ^= 1 << (flip % 8);
        let kept = bits(&same.view());
        prop_assert!(same.view().restore(&damaged).is_err());
        prop_assert!(same.view().restore(&saved[..saved.len() - 1]).is_err());
        prop_assert_eq!(bits(&same.view()), kept);
    }

    /// Numbers at the ends of what f32 has give finite answers, and the memory stays sound.
    #[test]
    fn wild_numbers_saturate(points in prop::collection::vec((prop::array::uniform3(any::<f32>()), prop::array::uniform3(any::<f32>())), 1..60)) {
        let mut memory = Memory::<K, D>::new(Config::DEFAULT).unwrap();
        for (x, std) in &points {
            match memory.observe(x, Width::Std(std)) {
                Ok(found) => {
                    prop_assert!(found.bonus > 0.0 && found.bonus <= 1.0 && found.visits.is_finite(), "{found:?}");
                    prop_assert!(found.uncertainty >= 0.0 && found.uncertainty <= f32::MAX, "{found:?}");
                }
                Err(MemoryError::NonFinite { .. } | MemoryError::Width { .. }) => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
            let view = memory.view();
            let codes = view.codes();
            prop_assert!(codes.means.iter().chain(codes.precisions).chain(codes.log_dets).all(|x| x.is_finite()));
        }
        let saved = bits(&memory.view());
        prop_assert_eq!(memory.view().restore(&saved), Ok(()));
    }

    /// Taught codes stay as they are whatever is observed, and teaching more can only bring an input nearer.
    #[test]
    fn taught_codes_stay(taught in prop::collection::vec(point(), 1..4), seen in prop::collection::vec(point(), 1..100)) {
        let mut memory = Memory::<K, D>::new(config(1.0, 0.5, 0.95)).unwrap();
        for (x, std) in &taught {
            memory.teach(x, Width::Std(std), None).unwrap();
        }
        let pinned = memory.view().pinned();
        let before = means(&mut memory);
        for (x, std) in &seen {
            memory.observe(x, Width::Std(std)).unwrap();
        }
        prop_assert_eq!(&means(&mut memory)[..pinned * D], &before[..]);
        memory.view().clear();
        prop_assert_eq!(means(&mut memory), before);
        memory.view().remove(0).unwrap();
        prop_assert_eq!(memory.view().pinned(), pinned - 1);
        prop_assert_eq!(memory.view().remove(pinned), Err(MemoryError::Index { index: pinned, pinned: pinned - 1 }));
    }

    /// L of the ellipse is a factor of the sum of squares, and its diagonal never falls.
    #[test]
    fn the_ellipse_is_the_sum_of_squares(points in prop::collection::vec(prop::array::uniform4(-3f32..3.0), 1..80), new in prop::array::uniform4(-3f32..3.0)) {
        let mut ellipse = Ellipse::<4>::new(0.5).unwrap();
        let mut exact = nalgebra::Matrix4::<f64>::identity() * 0.5;
        let mut before = [0f32; 4];
        for x in &points {
            let phi = nalgebra::Vector4::from(x.map(f64::from));
            let expected = phi.dot(&(exact.try_inverse().unwrap() * phi));
            let found = f64::from(ellipse.observe(x).unwrap());
            prop_assert!((found - expected).abs() <= 1e-3 * (1.0 + expected), "{found} {expected}");
            exact += phi * phi.transpose();
            let view = ellipse.view();
            let now = [0, 1, 2, 3].map(|i| view.factor().diagonal(i));
            prop_assert!(now.iter().zip(before).all(|(now, before)| *now >= before), "{now:?} {before:?}");
            before = now;
        }
        // Packed or square: the same bits.
        let mut storage = vec![f32::NAN; dab_core::ellipse::storage_len(4)];
        let mut packed = EllipseView::new(0.5, 4, &mut storage).unwrap();
        packed.clear();
        for x in &points {
            packed.observe(x).unwrap();
        }
        prop_assert_eq!(packed.assess(&new).unwrap().to_bits(), ellipse.assess(&new).unwrap().to_bits());
    }
}

/// A full memory absorbs: no code is thrown away, and what was seen stays seen.
#[test]
fn a_full_memory_absorbs_and_forgetting_frees_places() {
    let width = Width::EveryStd(0.1);
    let mut memory = Memory::<2, 1>::new(Config::DEFAULT).unwrap();
    for x in [0.0, 10.0, 11.0] {
        memory.observe(&[x], width).unwrap();
    }
    assert_eq!(memory.view().len(), 2);
    let known = memory.assess(&[0.0], width).unwrap();
    assert_eq!((known.nearest, known.visits), (0, 1.0));
    // A variance grows to `widen` times the input's, not to the distance.
    let view = memory.view();
    let Precision::Diagonal(precision) = view.code(1).unwrap().0.precision else { unreachable!() };
    assert!((precision[0] - 25.0).abs() < 1e-3, "{precision:?}");

    let mut memory = Memory::<2, 1>::new(Config { keep: 0.5, ..Config::DEFAULT }).unwrap();
    memory.observe(&[0.0], width).unwrap();
    for _ in 0..11 {
        memory.observe(&[10.0], width).unwrap();
    }
    assert!(memory.observe(&[20.0], width).unwrap().spawned, "the place of 0 is free");
    assert_eq!(memory.assess(&[0.0], width).unwrap().bonus, 1.0, "0 is forgotten");
}

#[test]
fn refusals_are_in_words() {
    let mut memory = Memory::<2, 2>::new(Config::DEFAULT).unwrap();
    let words = |error: MemoryError| error.to_string();
    let mut view = memory.view();
    let refused = |found: Result<Novelty, MemoryError>| words(found.unwrap_err());
    assert_eq!(
        refused(view.observe(&[1.0], Width::EveryStd(1.0))),
        "the memory has dimension 2, there are 1 values"
    );
    assert_eq!(
        refused(view.observe(&[1.0, f32::NAN], Width::EveryStd(1.0))),
        "value 1 of the input is not a finite number"
    );
    assert_eq!(
        refused(view.observe(&[1.0, 0.0], Width::Std(&[1.0, 0.0]))),
        "deviation 1 of the input is not above 0 and finite"
    );
    for x in [0.0, 9.0] {
        view.teach(&[x, x], Width::EveryStd(0.1), None).unwrap();
    }
    assert_eq!(
        refused(view.teach(&[20.0, 0.0], Width::EveryStd(0.1), None)),
        "all 2 places are taken: remove or clear codes first"
    );
    assert_eq!(words(view.remove(2).unwrap_err()), "there is no taught code 2, there are 2");
    let mut head = Head::new(Config::DEFAULT).unwrap();
    let error = MemoryView::new(&mut head, 4, 3, &mut [0.0; 10]).unwrap_err();
    assert_eq!(
        words(error),
        format!("the memory needs {} floats of storage, there are 10", storage_len(4, 3))
    );
    let error = MemoryView::new(&mut head, 0, 3, &mut []).unwrap_err();
    assert_eq!(words(error), "a memory has 1 to 65536 codes of dimension 1 to 1024, not 0 of 3");
    for (config, words) in [
        (Config { alpha: 0.0, ..Config::DEFAULT }, "alpha is 0, allowed are numbers from 2^-50 to 2^50"),
        (
            Config { spawn: -1.0, ..Config::DEFAULT },
            "spawn is -1 nats, allowed are 0 and numbers from 2^-50 to 2^50",
        ),
        (Config { widen: 0.5, ..Config::DEFAULT }, "widen is 0.5, allowed are numbers from 1 to 2^50"),
        (Config { keep: f32::NAN, ..Config::DEFAULT }, "keep is NaN, allowed are numbers above 0, up to 1"),
        (Config { horizon: 0, ..Config::DEFAULT }, "the horizon is 0, allowed are 1 to 8388608"),
    ] {
        assert_eq!(Memory::<2, 2>::new(config).unwrap_err().to_string(), words);
    }
}

/// The bits of a memory, an ellipse and a random encoder. Another number here is another result on every device.
#[test]
fn the_bits_are_these() {
    let mut random = Random(8);
    let mut memory = Memory::<12, 4>::new(config(0.7, 2.0, 0.999)).unwrap();
    let mut ellipse = Ellipse::<4>::new(0.1).unwrap();
    let encoder = RandomEncoder::new(9, 11, 2.0).unwrap();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for _ in 0..2000 {
        let mut features = [0.0; 4];
        encoder.encode_into(&random.floats(11, 1.5), &mut features).unwrap();
        let found = memory.observe(&features, Width::EveryStd(0.2)).unwrap();
        let b = ellipse.observe(&features).unwrap();
        for x in [found.bonus, found.visits, found.uncertainty, found.nearest_distance, b] {
            hash = (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01b3);
        }
    }
    assert_eq!(hash, 0xc378_27bf_9669_59da, "{hash:#x}");
}

#[test]
fn random_features_tell_places_apart() {
    let encoder = RandomEncoder::new(1, 20, 1.0).unwrap();
    let features = |x: &[f32]| {
        let mut features = [0.0; 16];
        encoder.encode_into(x, &mut features).unwrap();
        features
    };
    let distance =
        |a: [f32; 16], b: [f32; 16]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
    let mut random = Random(2);
    for _ in 0..100 {
        let x = random.floats(20, 1.0);
        let near: Vec<f32> = x.iter().map(|x| x + 0.001).collect();
        let far = random.floats(20, 1.0);
        assert!(distance(features(&x), features(&near)) < 0.02);
        assert!(distance(features(&x), features(&far)) > 0.3);
    }
    assert!(encoder.encode_into(&[0.0; 19], &mut [0.0; 2]).is_err());
    assert!(encoder.encode_into(&[f32::NAN; 20], &mut [0.0; 2]).is_err());
    assert!(RandomEncoder::new(1, 0, 1.0).is_none() && RandomEncoder::new(1, 4, 0.0).is_none());
}

/// A model and a memory beside it: what was taught becomes familiar, everything else stays at least as it was.
#[test]
fn teaching_lowers_what_was_taught_and_nothing_rises() {
    for (name, spec) in dab_tests::specs::real() {
        let bytes = AlignedBytes::from(&*spec.to_bytes().unwrap());
        let model = dab_core::Model::from_bytes(bytes.as_slice()).unwrap();
        let (inputs, dim) = (model.shape().inputs, model.shape().dim);
        let mut scratch = vec![0.0; model.scratch_len()];
        let mut head = Head::new(Config { spawn: 4.0, ..Config::DEFAULT }).unwrap();
        let mut storage = vec![0.0; storage_len(8, dim)];
        let mut memory = MemoryView::new(&mut head, 8, dim, &mut storage).unwrap();
        let mut random = Random(3);
        let far: Vec<f32> = random.floats(inputs, 1.0).iter().map(|x| 40.0 + x).collect();
        let before = model.assess(&far, &mut scratch).unwrap();
        assert_eq!(
            model.assess_taught(&mut memory, &far, &mut scratch),
            Ok(before),
            "{name}: nothing is taught"
        );
        for _ in 0..5 {
            model.teach(&mut memory, &far, &mut scratch).unwrap();
        }
        let after = model.assess_taught(&mut memory, &far, &mut scratch).unwrap();
        assert!(after.uncertainty < 0.2 * before.uncertainty, "{name}: {before:?} {after:?}");
        for _ in 0..200 {
            let x = random.floats(inputs, 3.0);
            let (plain, taught) = (
                model.assess(&x, &mut scratch).unwrap(),
                model.assess_taught(&mut memory, &x, &mut scratch).unwrap(),
            );
            assert!(taught.uncertainty <= plain.uncertainty && taught.p_value >= plain.p_value, "{name}");
        }
    }
}
