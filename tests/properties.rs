//! Properties of the distance, the assignment, the score and the p-value (method.md E2–E6), through the
//! public types alone.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::CalibrationSpec;
use dab_core::codebook::{CodeCovariance, Expected};
use dab_core::gaussian::{Diagonal, Full, Gaussian};
use dab_core::parts::{LARGEST, SOFTPLUS_SHIFT, STD_FLOOR};
use dab_core::{Codebook, CovarianceKind, Rates};
use dab_tests::specs::{self, Random, bare, covariance};
use nalgebra::{DMatrix, SMatrix, SVector};
use proptest::prelude::*;

/// Error of a distance, in units of its largest term (trace, Mahalanobis term, d, log-determinants): f32
/// rounding of the inputs, times the condition of the covariances (below 100 here).
const OF_TERMS: f64 = 1e-5;
/// Error of a sum of k weights or shares: an ulp for each, and one for the division.
const OF_SUMS: f32 = 2e-6;

type Matrix<const D: usize> = SMatrix<f64, D, D>;
type Vector<const D: usize> = SVector<f64, D>;

/// A Gaussian in float64.
#[derive(Clone, Copy)]
struct Exact<const D: usize> {
    mean: Vector<D>,
    cov: Matrix<D>,
}

impl<const D: usize> Exact<D> {
    fn full(random: &mut Random) -> Self {
        let cov = covariance(random, D);
        Self { mean: Vector::from_fn(|_, _| 3.0 * random.unit()), cov: Matrix::from_row_slice(&cov) }
    }

    fn diagonal(random: &mut Random) -> Self {
        let std = Vector::<D>::from_fn(|_, _| 10f64.powf(random.unit()));
        let cov = Matrix::from_diagonal(&std.component_mul(&std));
        Self { mean: Vector::from_fn(|_, _| 3.0 * random.unit()), cov }
    }

    fn to_full(self) -> Gaussian<D, Full> {
        Gaussian::<D, Full>::new(self.mean.cast(), self.cov.cast()).expect("a covariance")
    }

    fn to_diagonal(self) -> Gaussian<D, Diagonal> {
        Gaussian::<D, Diagonal>::new(self.mean.cast(), self.cov.diagonal().map(f64::sqrt).cast())
            .expect("variances")
    }

    /// E4 in float64, and the size of its largest term.
    fn kl(&self, code: &Self) -> (f64, f64) {
        let precision = code.cov.try_inverse().expect("a covariance");
        let offset = self.mean - code.mean;
        let trace = (precision * self.cov).trace();
        let mahalanobis = offset.dot(&(precision * offset));
        let log_det =
            |m: &Matrix<D>| 2.0 * m.cholesky().expect("a covariance").l().diagonal().map(f64::ln).sum();
        let (log_code, log_own) = (log_det(&code.cov), log_det(&self.cov));
        let kl = 0.5 * (trace + mahalanobis - D as f64 + log_code - log_own);
        (kl, [trace, mahalanobis, D as f64, log_code.abs(), log_own.abs()].into_iter().fold(0.0, f64::max))
    }
}

fn distance<const D: usize, S: CodeCovariance<D>>(p: &Gaussian<D, S>, code: &Gaussian<D, S>) -> f64 {
    let mut codebook = Codebook::<1, D, S>::new(1.0).expect("a temperature");
    codebook.push(code, 1.0).expect("a code");
    codebook.distances(p)[0].into()
}

fn close(found: f64, expected: f64, terms: f64) -> Result<(), TestCaseError> {
    prop_assert!((found - expected).abs() <= OF_TERMS * terms, "{found} {expected} terms {terms}");
    Ok(())
}

/// KL against float64, at equality, and under a common rotation or permutation.
fn distances_are_divergences<const D: usize>(random: &mut Random) -> Result<(), TestCaseError> {
    let (p, q) = (Exact::<D>::full(random), Exact::<D>::full(random));
    let (expected, terms) = p.kl(&q);
    prop_assert!(expected >= 0.0);
    let found = distance(&p.to_full(), &q.to_full());
    prop_assert!(found >= 0.0);
    close(found, expected, terms)?;
    close(distance(&p.to_full(), &p.to_full()), 0.0, p.kl(&p).1)?;

    let turn = DMatrix::from_fn(D, D, |_, _| random.unit()).qr().q();
    let turn = Matrix::<D>::from_fn(|i, j| turn[(i, j)]);
    let turned = |g: &Exact<D>| Exact::<D> { mean: turn * g.mean, cov: turn * g.cov * turn.transpose() };
    close(distance(&turned(&p).to_full(), &turned(&q).to_full()), found, terms)?;

    let (p, q) = (Exact::<D>::diagonal(random), Exact::<D>::diagonal(random));
    let (expected, terms) = p.kl(&q);
    let found = distance(&p.to_diagonal(), &q.to_diagonal());
    prop_assert!(found >= 0.0);
    close(found, expected, terms)?;
    close(distance(&p.to_diagonal(), &p.to_diagonal()), 0.0, p.kl(&p).1)?;
    close(distance(&p.to_full(), &q.to_full()), found, terms)?;

    let shift = 1 + random.below(D);
    let moved = |g: &Exact<D>| Exact::<D> {
        mean: Vector::from_fn(|i, _| g.mean[(i + shift) % D]),
        cov: Matrix::from_fn(|i, j| g.cov[((i + shift) % D, (j + shift) % D)]),
    };
    close(distance(&moved(&p).to_diagonal(), &moved(&q).to_diagonal()), found, terms)
}

/// Two independent blocks: the divergence is the sum of theirs.
fn blocks<const A: usize, const B: usize, const D: usize>(random: &mut Random) -> Result<(), TestCaseError> {
    let join = |a: &Exact<A>, b: &Exact<B>| Exact::<D> {
        mean: Vector::from_fn(|i, _| if i < A { a.mean[i] } else { b.mean[i - A] }),
        cov: Matrix::from_fn(|i, j| match (i < A, j < A) {
            (true, true) => a.cov[(i, j)],
            (false, false) => b.cov[(i - A, j - A)],
            _ => 0.0,
        }),
    };
    let (p0, q0) = (Exact::<A>::full(random), Exact::<A>::full(random));
    let (p1, q1) = (Exact::<B>::full(random), Exact::<B>::full(random));
    let parts = distance(&p0.to_full(), &q0.to_full()) + distance(&p1.to_full(), &q1.to_full());
    let (p, q) = (join(&p0, &p1), join(&q0, &q1));
    close(distance(&p.to_full(), &q.to_full()), parts, p.kl(&q).1)?;

    let (p0, q0) = (Exact::<A>::diagonal(random), Exact::<A>::diagonal(random));
    let (p1, q1) = (Exact::<B>::diagonal(random), Exact::<B>::diagonal(random));
    let parts =
        distance(&p0.to_diagonal(), &q0.to_diagonal()) + distance(&p1.to_diagonal(), &q1.to_diagonal());
    let (p, q) = (join(&p0, &p1), join(&q0, &q1));
    close(distance(&p.to_diagonal(), &q.to_diagonal()), parts, p.kl(&q).1)
}

const DIM: usize = 3;
const CODES: usize = 12;

/// Codes with priors, some of them 0, at least one not.
fn random_codes(random: &mut Random) -> Vec<(Gaussian<DIM, Full>, f32)> {
    let live = random.below(CODES);
    let code = |k: usize| {
        let dead = k != live && random.below(3) == 0;
        (Exact::<DIM>::full(random).to_full(), if dead { 0.0 } else { (0.51 + 0.49 * random.unit()) as f32 })
    };
    (0..CODES).map(code).collect()
}

fn codebook(codes: &[(Gaussian<DIM, Full>, f32)], alpha: f32) -> Codebook<{ CODES + 1 }, DIM, Full> {
    let mut codebook = Codebook::new(alpha).expect("a temperature");
    for (code, prior) in codes {
        codebook.push(code, *prior).expect("a code");
    }
    codebook
}

fn assess(
    codes: &[(Gaussian<DIM, Full>, f32)],
    alpha: f32,
    p: &Gaussian<DIM, Full>,
) -> (Expected, Vec<f32>, Vec<f32>) {
    let codebook = codebook(codes, alpha);
    let distances = codebook.distances(p)[..codes.len()].to_vec();
    let mut assignment = vec![f32::NAN; codes.len()];
    codebook.view().assignment_into(&distances, &mut assignment);
    (codebook.assess(p), distances, assignment)
}

fn live<'a>(codes: &'a [(Gaussian<DIM, Full>, f32)], d: &'a [f32]) -> impl Iterator<Item = (f32, f32)> + 'a {
    codes.iter().zip(d).map(|((_, prior), &d)| (d, *prior)).filter(|(_, prior)| *prior > 0.0)
}

fn inverse_softplus(y: f64) -> f64 {
    y.exp_m1().ln()
}

/// Raw outputs of both full encoders for one Σ give one Gaussian.
fn encoders_agree<const D: usize>(random: &mut Random) -> Result<(), TestCaseError> {
    let code = Exact::<D>::full(random);
    let basis = DMatrix::from_fn(D, D, |_, _| random.unit()).qr().q();
    let basis = Matrix::<D>::from_fn(|i, j| basis[(i, j)]);
    // Above softplus(−5) + 1e-5: |λ| cannot describe anything smaller.
    let std = Vector::<D>::from_fn(|_, _| 0.3 + 0.25 * random.unit());
    let raw = |std: f64| inverse_softplus(std - f64::from(STD_FLOOR)) + f64::from(SOFTPLUS_SHIFT);
    let cov = basis * Matrix::from_diagonal(&std.component_mul(&std)) * basis.transpose();
    let exact = Exact::<D> { mean: Vector::from_fn(|_, _| random.unit()), cov };
    let a = basis * Matrix::from_diagonal(&std.map(raw)) * basis.transpose();
    let l = cov.cholesky().expect("a covariance").l();
    let (mut spectral, mut cholesky) = (vec![], vec![]);
    for i in 0..D {
        for j in 0..i {
            spectral.push(2.0 * a[(i, j)]);
            cholesky.push(l[(i, j)]);
        }
        spectral.push(a[(i, i)]);
        cholesky.push(raw(l[(i, i)]));
    }
    let with_mean = |spread: Vec<f64>| -> Vec<f32> {
        exact.mean.iter().copied().chain(spread).map(|x| x as f32).collect()
    };
    let spectral = specs::spectral::<D>(&with_mean(spectral));
    let cholesky = Gaussian::<D, Full>::from_cholesky_raw(&with_mean(cholesky)).expect("raw outputs");
    let (expected, terms) = exact.kl(&code);
    // |λ| is about 5: its rounding is that of a number ten times the standard deviation.
    for found in [&spectral, &cholesky] {
        close(distance(found, &code.to_full()), expected, 10.0 * terms)?;
        prop_assert!((found.cov().cast::<f64>() - exact.cov).amax() <= 10.0 * OF_TERMS);
    }
    Ok(())
}

/// (1 + #{sᵢ ≥ u}) / (n + 1), rounded to f32 once.
fn conformal(sorted: &[f32], u: f32) -> f32 {
    let at_least = sorted.len() - sorted.partition_point(|&s| s < u);
    ((1 + at_least) as f64 / (sorted.len() as f64 + 1.0)) as f32
}

fn next_up(x: f32) -> f32 {
    f32::from_bits(x.to_bits() + 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn distances_are_kl_divergences(seed: u64) {
        let random = &mut Random(seed);
        distances_are_divergences::<1>(random)?;
        distances_are_divergences::<2>(random)?;
        distances_are_divergences::<3>(random)?;
        distances_are_divergences::<8>(random)?;
        distances_are_divergences::<11>(random)?;
    }

    #[test]
    fn independent_blocks_add_up(seed: u64) {
        let random = &mut Random(seed);
        blocks::<1, 1, 2>(random)?;
        blocks::<2, 3, 5>(random)?;
        blocks::<8, 1, 9>(random)?;
    }

    #[test]
    fn cholesky_and_spectral_encoders_agree(seed: u64) {
        let random = &mut Random(seed);
        encoders_agree::<1>(random)?;
        encoders_agree::<2>(random)?;
        encoders_agree::<4>(random)?;
        encoders_agree::<8>(random)?;
    }

    #[test]
    fn scores_are_expectations(seed: u64, alpha in prop::sample::select(vec![0.0f32, 0.1, 1.0, 20.0])) {
        let random = &mut Random(seed);
        let codes = random_codes(random);
        let p = Exact::<DIM>::full(random).to_full();
        let (found, distances, assignment) = assess(&codes, alpha, &p);
        let u = found.uncertainty;

        prop_assert!((assignment.iter().sum::<f32>() - 1.0).abs() <= OF_SUMS);
        let mean: f32 = assignment.iter().zip(&distances).map(|(a, d)| a * d).sum();
        prop_assert!((mean - u).abs() <= OF_SUMS * u);
        let (smallest, largest) =
            live(&codes, &distances).fold((f32::MAX, 0f32), |(s, l), (d, _)| (s.min(d), l.max(d)));
        prop_assert!(smallest <= u && u <= largest * (1.0 + OF_SUMS));
        prop_assert_eq!(found.nearest_distance, smallest);
        prop_assert_eq!(distances[found.nearest], smallest);
        prop_assert!(codes[found.nearest].1 > 0.0);

        let mut moved = codes.clone();
        moved.rotate_left(1 + random.below(CODES - 1));
        prop_assert!((assess(&moved, alpha, &p).0.uncertainty - u).abs() <= OF_SUMS * u);
    }

    #[test]
    fn temperature_goes_from_the_prior_to_the_nearest_code(seed: u64) {
        let random = &mut Random(seed);
        let codes = random_codes(random);
        let p = Exact::<DIM>::full(random).to_full();
        let (_, distances, _) = assess(&codes, 1.0, &p);
        let (mean, total) = live(&codes, &distances).fold((0.0, 0.0), |(m, t), (d, w)| (m + w * d, t + w));
        for alpha in [0.0, 1.0 / LARGEST] {
            let (found, _, assignment) = assess(&codes, alpha, &p);
            prop_assert!((found.uncertainty - mean / total).abs() <= OF_SUMS * found.uncertainty);
            for (a, (_, prior)) in assignment.iter().zip(&codes) {
                prop_assert!((a - prior / total).abs() <= OF_SUMS);
            }
        }
        let (found, _, assignment) = assess(&codes, LARGEST, &p);
        prop_assert_eq!(found.uncertainty, found.nearest_distance);
        prop_assert_eq!(assignment[found.nearest], 1.0);
        // A colder codebook is never farther away.
        let scores = [0.0, 0.1, 1.0, 10.0, LARGEST].map(|alpha| assess(&codes, alpha, &p).0.uncertainty);
        prop_assert!(scores.windows(2).all(|w| w[1] <= w[0] * (1.0 + OF_SUMS)));
    }

    #[test]
    fn a_code_of_prior_zero_never_matters(seed: u64, alpha in prop::sample::select(vec![0.0f32, 1.0, 1e15])) {
        let random = &mut Random(seed);
        let codes = random_codes(random);
        let p = Exact::<DIM>::full(random);
        // The dead code is the input itself, or so far away that its distance saturates.
        let far = Exact { mean: Vector::from_element(1e15), cov: Matrix::identity() * 1e-20 };
        for dead in [p, far] {
            let mut more = codes.clone();
            more.push((dead.to_full(), 0.0));
            let (with, _, assignment) = assess(&more, alpha, &p.to_full());
            let (without, ..) = assess(&codes, alpha, &p.to_full());
            prop_assert_eq!(with.uncertainty.to_bits(), without.uncertainty.to_bits());
            prop_assert_eq!(with.nearest, without.nearest);
            prop_assert_eq!(assignment[CODES], 0.0);
        }
    }

    #[test]
    fn dimensions_explain_the_score(seed: u64) {
        let random = &mut Random(seed);
        for kind in CovarianceKind::ALL {
            let (dim, k) = (1 + random.below(9), 1 + random.below(5));
            let spec = bare(random, kind, dim, k, 1.0);
            let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
            let model = bytes.model().expect("a model");
            let (mut d, mut a, mut shares) = (vec![0.0; k], vec![0.0; k], vec![0.0; dim]);
            let input = random.floats(spec.inputs, 4.0);
            let mut scratch = vec![0.0; model.scratch_len()];
            let u = model.explain_into(&input, &mut d, &mut a, &mut shares, &mut scratch).expect("input").uncertainty;
            let (sum, size) = shares.iter().fold((0.0, 0.0), |(s, m), &x| (s + x, m + x.abs()));
            // The shares and u add the same terms, of size (log-determinants) 10 per dimension, in another order.
            let terms = size + 10.0 * dim as f32;
            prop_assert!((sum - u).abs() <= OF_SUMS * terms, "{kind:?} {sum} {u}");
            if kind != CovarianceKind::Spectral {
                prop_assert!(shares.iter().all(|&s| s >= -OF_SUMS * terms), "{kind:?} {shares:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn p_values_are_conformal(seed: u64, n in 1usize..5000, levels in prop::sample::select(vec![1, 3, 200, 300, 1 << 20])) {
        let random = &mut Random(seed);
        // Few levels make many ties.
        let mut scores: Vec<f32> = (0..n).map(|_| random.below(levels) as f32 / 7.0).collect();
        let mut spec = bare(random, CovarianceKind::Diagonal, 1, 1, 1.0);
        spec.calibration = Some(CalibrationSpec { scores: scores.clone(), rates: Rates::for_held_out(n as u32) });
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let model = bytes.model().expect("a model");
        let table = model.calibration().expect("a table");
        scores.sort_by(f32::total_cmp);
        let mut distinct = scores.clone();
        distinct.dedup();

        let mut last = 1.0;
        for (rank, &s) in distinct.iter().enumerate() {
            // At a score and just above it, where the count changes.
            for u in [s, next_up(s)] {
                let (p, exact) = (table.p_value(u), conformal(&scores, u));
                prop_assert!(p <= last && p > 0.0);
                prop_assert!(p >= exact);
                // Nothing is lost while there is room, and never among the 64 highest scores.
                if distinct.len() <= 256 || rank + 64 > distinct.len() {
                    prop_assert_eq!(p, exact);
                }
                last = p;
            }
        }
        prop_assert_eq!(table.p_value(f32::MAX), (1.0 / (n as f64 + 1.0)) as f32);
        prop_assert_eq!(table.p_value(0.0), 1.0);
    }
}
