//! Which sensor? What an input adds is the difference of two assessments, a derivative in the small, and finds the sensor that
//! is broken.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::info::{INPUT_MEANS, INPUT_NAMES, numbers_text};
use dab_core::artifact::schema::CovarianceKind;
use dab_core::artifact::writer::{Normalization, Spec};
use dab_core::attribute::{Groups, Means, NO_GROUP};
use dab_core::{InputError, Model, Verdict};
use dab_tests::repository;
use dab_tests::specs::{Random, any, bare};

fn with_model<T>(spec: &Spec, then: impl FnOnce(&Model<'_>) -> T) -> T {
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
    then(&bytes.model().expect("a model"))
}

#[test]
fn what_a_group_adds_is_the_difference_of_two_assessments_bit_for_bit() {
    let mut random = Random(15);
    for round in 0..200 {
        let kind = random.pick(&CovarianceKind::ALL);
        let spec = any(&mut random, kind, 1.0);
        let (input, means) = (random.floats(spec.inputs, 3.0), random.floats(spec.inputs, 3.0));
        let groups: Vec<u32> = (0..spec.inputs).map(|_| random.pick(&[0, 1, 2, NO_GROUP])).collect();
        with_model(&spec, |model| {
            let mut scratch = vec![f32::NAN; model.attribution_scratch_len()];
            let assess = |x: &[f32]| model.assess(x, &mut vec![0.0; model.scratch_len()]).expect("an input");
            let found = assess(&input);
            for (groups, count) in [(Groups::Each, spec.inputs), (Groups::Of(&groups), 3)] {
                let (mut u, mut score) = (vec![f32::NAN; count], vec![f32::NAN; count]);
                let of = Means::new(&means);
                let whole = model.attribute_into(&input, of, groups, &mut u, &mut score, &mut scratch);
                assert_eq!(whole, Ok(found), "round {round}");
                for group in 0..count {
                    let member = |i: usize| match groups {
                        Groups::Each => i == group,
                        Groups::Of(groups) => groups[i] as usize == group,
                    };
                    let changed: Vec<f32> =
                        (0..spec.inputs).map(|i| if member(i) { means[i] } else { input[i] }).collect();
                    let without = assess(&changed);
                    let alone = model.assess_without(&input, of, groups, group, &mut scratch);
                    assert_eq!(alone, Ok(without), "round {round}");
                    assert_eq!(u[group].to_bits(), (found.uncertainty - without.uncertainty).to_bits());
                    assert_eq!(score[group].to_bits(), (found.score() - without.score()).to_bits());
                }
            }
        });
    }
}

/// In the small, what an input adds over the change of the input is the derivative of the uncertainty, here in float64 from
/// the equations of a model with an affine encoder and constant covariances: with weights w of the assignment,
/// ∂u/∂μ = Σ_κ w_κ (1 − α (D_κ − u)) (μ − m_κ).
#[test]
fn a_small_change_gives_the_derivative() {
    /// The change of each input; f32 has u to a few units in 10⁷, and the second derivative is of order 1.
    const STEP: f32 = 1.0 / 128.0;
    const TOLERANCE: f64 = 2e-3;
    let mut random = Random(3);
    for _ in 0..50 {
        let (dim, codes) = (4, 5);
        let mut spec = bare(&mut random, CovarianceKind::Constant, dim, codes, 0.7);
        spec.inputs = 6;
        spec.head.weight = random.floats(dim * 6, 1.0);
        let x = random.floats(6, 1.0);
        let wide = |v: &[f32]| v.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        let (weight, alpha) = (wide(&spec.head.weight), f64::from(spec.codes.alpha));
        let mu: Vec<f64> =
            weight.chunks(6).map(|row| row.iter().zip(wide(&x)).map(|(w, x)| w * x).sum()).collect();
        let d: Vec<f64> = spec
            .codes
            .means
            .chunks(dim)
            .map(|m| 0.5 * mu.iter().zip(m).map(|(a, b)| (a - b) * (a - b)).sum::<f64>())
            .collect();
        let w: Vec<f64> = d.iter().zip(&spec.codes.priors).map(|(d, p)| p * (-alpha * d).exp()).collect();
        let total: f64 = w.iter().sum();
        let u: f64 = w.iter().zip(&d).map(|(w, d)| w * d).sum::<f64>() / total;
        let gradient = |i: usize| -> f64 {
            (0..codes)
                .map(|k| {
                    let slope: f64 =
                        (0..dim).map(|j| weight[j * 6 + i] * (mu[j] - spec.codes.means[k * dim + j])).sum();
                    w[k] / total * (1.0 - alpha * (d[k] - u)) * slope
                })
                .sum()
        };
        with_model(&spec, |model| {
            let mut scratch = vec![0.0; model.attribution_scratch_len()];
            let mut adds = |step: f32| {
                let means: Vec<f32> = x.iter().map(|x| x + step).collect();
                let mut u = vec![0.0; 6];
                let of = Means::new(&means);
                model.attribute_into(&x, of, Groups::Each, &mut u, &mut [], &mut scratch).expect("an input");
                u
            };
            let (below, above) = (adds(-STEP), adds(STEP));
            for i in 0..6 {
                let slope = f64::from(below[i] - above[i]) / f64::from(2.0 * STEP);
                assert!(
                    (slope - gradient(i)).abs() <= TOLERANCE * (1.0 + gradient(i).abs()),
                    "{slope} {}",
                    gradient(i)
                );
            }
        });
    }
}

/// Samples of the current in a window of the motor task; then their mean and the voltage.
const WINDOW: usize = 24;

/// The windows of examples/motor/stream.bin as inputs, made as the firmware makes them, while the motor is well.
fn healthy_windows() -> Vec<Vec<f32>> {
    let stream = std::fs::read(repository().join("examples/motor/stream.bin")).expect("the recorded stream");
    let window = |bytes: &[u8]| {
        let counts: Vec<i32> = bytes.chunks(2).map(|c| i32::from(u16::from_le_bytes([c[0], c[1]]))).collect();
        let mean = counts[..WINDOW].iter().sum::<i32>() / WINDOW as i32;
        let inputs = counts[..WINDOW].iter().map(|c| c - mean).chain([mean, counts[WINDOW]]);
        inputs.map(|x| x as f32).collect()
    };
    let windows: Vec<Vec<f32>> = stream.chunks(2 * (WINDOW + 1)).map(window).collect();
    // From 50 to 99 a winding is open.
    windows.iter().enumerate().filter(|(i, _)| !(50..100).contains(i)).map(|(_, w)| w.clone()).collect()
}

/// Single-sensor faults of the motor task: one value of a window is wrong, all others are as recorded.
#[test]
fn the_broken_sensor_ranks_first_in_95_of_100_faults_of_the_motor_task() {
    const SHARE: f64 = 0.95;
    let bytes = std::fs::read(repository().join("examples/motor/model.dab")).expect("the motor's model");
    let bytes = AlignedBytes::from(&*bytes);
    let model = bytes.model().expect("a model");
    let windows = healthy_windows();
    let inputs = WINDOW + 2;
    let std = |j: usize| {
        let mean = windows.iter().map(|w| f64::from(w[j])).sum::<f64>() / windows.len() as f64;
        let variance = windows.iter().map(|w| (f64::from(w[j]) - mean).powi(2)).sum::<f64>();
        (variance / windows.len() as f64).sqrt() as f32
    };
    let stds: Vec<f32> = (0..inputs).map(std).collect();
    // A value of the converter, as the input that the model sees of it.
    let counts = |w: &[f32], j: usize, count: f32| if j < WINDOW { count - w[WINDOW] } else { count };
    type Fault<'a> = (&'a str, Box<dyn Fn(&[f32], usize) -> f32 + 'a>);
    let faults: Vec<Fault<'_>> = vec![
        ("at the lower rail", Box::new(|w, j| counts(w, j, 0.0))),
        ("at the upper rail", Box::new(|w, j| counts(w, j, 4095.0))),
        ("5 standard deviations too high", Box::new(|w, j| w[j] + 5.0 * stds[j])),
        ("5 standard deviations too low", Box::new(|w, j| w[j] - 5.0 * stds[j])),
        ("10 standard deviations too high", Box::new(|w, j| w[j] + 10.0 * stds[j])),
        ("10 standard deviations too low", Box::new(|w, j| w[j] - 10.0 * stds[j])),
        ("twice as large", Box::new(|w, j| 2.0 * w[j])),
        ("of the wrong sign", Box::new(|w, j| -w[j])),
    ];
    let (mut scratch, mut score) = (vec![0.0; model.attribution_scratch_len()], vec![0.0; inputs]);
    let (mut first, mut alarms) = (0, 0);
    for (name, fault) in &faults {
        let (mut here, mut found) = (0, 0);
        for window in &windows {
            for j in 0..inputs {
                let mut broken = window.clone();
                broken[j] = fault(window, j);
                let means = model.means().expect("training means");
                let said = model
                    .attribute_into(&broken, means, Groups::Each, &mut [], &mut score, &mut scratch)
                    .expect("an input");
                // An operator asks which sensor when there is an alarm.
                if said.verdict == Some(Verdict::Unfamiliar) {
                    here += 1;
                    let largest = (0..inputs).max_by(|&a, &b| score[a].total_cmp(&score[b]));
                    found += usize::from(largest == Some(j));
                }
            }
        }
        println!("{name}: {here} of {} alarm, the broken one is first in {found}", windows.len() * inputs);
        (first, alarms) = (first + found, alarms + here);
    }
    let share = first as f64 / alarms as f64;
    println!("the broken sensor is first in {:.1} % of {alarms} alarms", 100.0 * share);
    assert!(alarms > 1000 && share >= SHARE, "{share}");
}

#[test]
fn means_come_from_the_file_and_bad_arguments_are_named() {
    let mut random = Random(8);
    let mut spec = bare(&mut random, CovarianceKind::Diagonal, 2, 2, 1.0);
    let own = vec![0.5, -1.0, 2.0, 0.25];
    let means = |spec: &Spec| {
        with_model(spec, |model| model.means().map(|m| (0..4).map(|i| m.get(i).unwrap()).collect::<Vec<_>>()))
    };
    assert_eq!(means(&spec), None, "no normalisation, no info");
    spec.normalization = Some(Normalization { mean: own.clone(), std: vec![1.0; 4] });
    assert_eq!(means(&spec), Some(own.clone()));
    let others = [4.0, 3.0, 2.0, 1.0];
    spec.info = vec![(INPUT_MEANS.into(), numbers_text(&others)), (INPUT_NAMES.into(), "a, b, c, d".into())];
    assert_eq!(means(&spec), Some(others.to_vec()), "what the info says outright counts");
    spec.info[0].1.push_str(" 00000000");
    assert_eq!(means(&spec), Some(own.clone()), "a list of another length is none");
    with_model(&spec, |model| {
        assert_eq!(model.input_name(2).unwrap().to_string(), "c");
        assert!(model.input_name(4).is_none() && model.output_name(0).is_none());
        let mut scratch = vec![0.0; model.attribution_scratch_len()];
        let (x, of) = ([0.0; 4], Means::new(&own));
        let ask = |x: &[f32], means, groups, room: &mut [f32], scratch: &mut [f32]| {
            model.attribute_into(x, means, groups, &mut [], room, scratch)
        };
        let wrong = |expected, found| Err(InputError::Length { expected, found });
        assert_eq!(ask(&x[1..], of, Groups::Each, &mut [0.0; 4], &mut scratch), wrong(4, 3));
        assert_eq!(ask(&x, Means::new(&x[2..]), Groups::Each, &mut [0.0; 4], &mut scratch), wrong(4, 2));
        assert_eq!(ask(&x, of, Groups::Of(&[0]), &mut [0.0; 1], &mut scratch), wrong(4, 1));
        let room = |expected, found| Err(InputError::OutputLength { expected, found });
        assert_eq!(ask(&x, of, Groups::Each, &mut [0.0; 3], &mut scratch), room(4, 3));
        assert_eq!(ask(&x, of, Groups::Of(&[0, 1, 7, 0]), &mut [0.0; 3], &mut scratch), room(8, 3));
        let (needed, mut untouched) = (model.attribution_scratch_len(), [7.0; 4]);
        let short = ask(&x, of, Groups::Each, &mut untouched, &mut scratch[..needed - 1]);
        assert_eq!(short, Err(InputError::Scratch { needed, found: needed - 1 }));
        assert_eq!(untouched, [7.0; 4], "nothing is written after a refusal");
        // A sensor that has failed does not keep the others from being judged.
        let dead = [0.0, f32::NAN, 0.0, 0.0];
        assert!(matches!(
            ask(&dead, of, Groups::Each, &mut [0.0; 4], &mut scratch),
            Err(InputError::NonFinite { index: 1 })
        ));
        assert!(model.assess_without(&dead, of, Groups::Each, 1, &mut scratch).is_ok());
        assert!(model.assess_without(&dead, of, Groups::Each, 0, &mut scratch).is_err());
    });
}
