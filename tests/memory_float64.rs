//! The memory and the ellipse that learn on the device (docs/exploration.md): how far f32 is from float64 after a million
//! observations.

use dab_core::divergence::Precision;
use dab_core::ellipse::Ellipse;
use dab_core::memory::{Config, Memory, Novelty, Width};
use dab_tests::specs::Random;

/// f32 against float64 after 10⁶ observations: means, in units of the input's deviation; variances, visits, relative.
const OF_MEANS: f64 = 2e-3;
const OF_VARIANCES: f64 = 2e-3;
const OF_VISITS: f64 = 2e-2;
/// The ellipse of dimension 32 in f32 after 10⁶ updates: relative error of b, in the median of 100 new vectors.
const OF_ELLIPSE: f64 = 0.02;
/// Along directions that were not seen, as `dab_core::ellipse` and dab_memory.h say.
const OF_NEW_DIRECTIONS: f64 = 0.01;

const K: usize = 6;
const D: usize = 3;

/// Float64 twin of a memory.
struct Exact {
    codes: Vec<(f64, [f64; D], [f64; D])>,
}

impl Exact {
    fn distance((_, m, v): &(f64, [f64; D], [f64; D]), x: &[f32; D], s: f64) -> f64 {
        (0..D).map(|i| 0.5 * ((s + (f64::from(x[i]) - m[i]).powi(2)) / v[i] - 1.0 + (v[i] / s).ln())).sum()
    }

    /// Visits before, then learning; `nearest` is the choice of the f32 memory, so that a tie is broken alike.
    fn observe(&mut self, x: &[f32; D], std: f32, found: &Novelty) -> f64 {
        let s = f64::from(std).powi(2);
        let visits = self.codes.iter().map(|code| code.0 * (-Self::distance(code, x, s)).exp()).sum();
        if found.spawned {
            self.codes.push((1.0, x.map(f64::from), [s; D]));
            return visits;
        }
        let (n, m, v) = &mut self.codes[found.nearest];
        *n += 1.0;
        let rate = 1.0 / *n;
        for i in 0..D {
            let offset = f64::from(x[i]) - m[i];
            m[i] += rate * offset;
            v[i] = ((1.0 - rate) * (v[i] + rate * offset * offset) + rate * s).min(4.0 * s);
        }
        visits
    }
}

/// What is printed here is what docs/exploration.md says.
#[test]
fn a_million_observations_stay_near_float64() {
    let mut memory = Memory::<K, D>::new(Config::DEFAULT).unwrap();
    let mut exact = Exact { codes: Vec::new() };
    let mut random = Random(5);
    let (std, mut worst) = (0.1f32, 0f64);
    for i in 0..1_000_000 {
        let center = [0.0, 1.0, 5.0][random.below(3)];
        let x: [f32; D] = std::array::from_fn(|_| (center + 0.15 * random.unit()) as f32);
        let found = memory.observe(&x, Width::EveryStd(std)).unwrap();
        let visits = exact.observe(&x, std, &found);
        if i > 1000 {
            worst = worst.max((f64::from(found.visits) - visits).abs() / (1.0 + visits));
        }
    }
    let view = memory.view();
    let (mut mean_error, mut variance_error) = (0f64, 0f64);
    for (k, (_, m, v)) in exact.codes.iter().enumerate() {
        let code = view.code(k).unwrap().0;
        let Precision::Diagonal(precision) = code.precision else { unreachable!() };
        for i in 0..D {
            mean_error = mean_error.max((f64::from(code.mean[i]) - m[i]).abs() / f64::from(std));
            variance_error = variance_error.max((1.0 / f64::from(precision[i]) / v[i] - 1.0).abs());
        }
    }
    println!(
        "after 10^6: means {mean_error:.1e} deviations, variances {variance_error:.1e}, visits {worst:.1e}"
    );
    assert!(mean_error <= OF_MEANS && variance_error <= OF_VARIANCES && worst <= OF_VISITS);
    assert_eq!(view.len(), exact.codes.len());
}

#[test]
fn ten_million_observations_stay_finite() {
    let mut memory = Memory::<2, 2>::new(Config { horizon: 1 << 23, ..Config::DEFAULT }).unwrap();
    let mut random = Random(6);
    for _ in 0..10_000_000 {
        let x = [random.unit() as f32, 1e3 * random.unit() as f32];
        let found = memory.observe(&x, Width::EveryStd(0.5)).unwrap();
        assert!(found.bonus > 0.0 && found.bonus <= 1.0 && found.visits.is_finite());
    }
    let view = memory.view();
    assert!(view.codes().means.iter().chain(view.codes().log_dets).all(|x| x.is_finite()));
}

#[test]
fn a_million_updates_of_an_ellipse_stay_near_float64() {
    const N: usize = 32;
    let mut random = Random(7);
    let mut ellipse = Ellipse::<N>::new(1.0).unwrap();
    let mut exact = nalgebra::DMatrix::<f64>::identity(N, N);
    // Correlated features of very different sizes, as a network's are.
    let mixing = random.floats(N * N, 1.0);
    let draw = |random: &mut Random| -> [f32; N] {
        let z = random.floats(8, 1.0);
        std::array::from_fn(|i| {
            let common: f32 = (0..8).map(|j| mixing[i * N + j] * z[j]).sum();
            common + 0.05 * random.unit() as f32
        })
    };
    for _ in 0..1_000_000 {
        let x = draw(&mut random);
        ellipse.observe(&x).unwrap();
        for i in 0..N {
            for j in 0..=i {
                exact[(i, j)] += f64::from(x[i]) * f64::from(x[j]);
            }
        }
    }
    for i in 0..N {
        for j in 0..i {
            exact[(j, i)] = exact[(i, j)];
        }
    }
    let solver = exact.cholesky().expect("positive definite");
    let mut errors: Vec<f64> = (0..100)
        .map(|_| {
            let x = draw(&mut random);
            let phi = nalgebra::DVector::from_iterator(N, x.iter().map(|&x| f64::from(x)));
            let expected = phi.dot(&solver.solve(&phi));
            (f64::from(ellipse.assess(&x).unwrap()) / expected - 1.0).abs()
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    println!("ellipse after 10^6: median {:.1e}, largest {:.1e}", errors[50], errors[99]);
    assert!(errors[50] <= OF_ELLIPSE, "{}", errors[50]);
}

/// Along a direction that was not seen L is √ridge, beside roundings of what was learned across it.
fn worst_along_a_new_direction<const N: usize>(random: &mut Random) -> f64 {
    let mut worst = 0f64;
    for (ridge, least) in [(1.0f32, 4), (0.001, -1), (1e6, 14)] {
        let most = 2f64.powi(16) * f64::from(ridge).sqrt();
        for size in (least..least + 15).map(|log| 2f64.powi(log)) {
            let mut ellipse = Ellipse::<N>::new(ridge).unwrap();
            let mut learned = 0.0;
            loop {
                let mut features: [f32; N] = random.floats(N, size).try_into().expect("as many");
                features[N - 1] = features[0];
                learned += features.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
                if learned > most {
                    break;
                }
                ellipse.observe(&features).unwrap();
            }
            // At right angles to everything.
            let mut new = [0.0; N];
            (new[0], new[N - 1]) = (1.0, -1.0);
            let exact = 2.0 / f64::from(ridge);
            worst = worst.max((f64::from(ellipse.assess(&new).unwrap()) / exact - 1.0).abs());
        }
    }
    println!("ellipse of dimension {N}, a direction that was not seen: {worst:.1e}");
    worst
}

#[test]
fn an_ellipse_knows_new_directions_while_the_lengths_add_up_to_2_to_16_roots_of_the_ridge() {
    let mut random = Random(8);
    for _ in 0..5 {
        let worst = [
            worst_along_a_new_direction::<2>(&mut random),
            worst_along_a_new_direction::<8>(&mut random),
            worst_along_a_new_direction::<32>(&mut random),
        ];
        assert!(worst.iter().all(|&worst| worst <= OF_NEW_DIRECTIONS), "{worst:?}");
    }
}
