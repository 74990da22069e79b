//! Every argument has an answer: finite inputs of any magnitude give finite results, wrong arguments give
//! errors with facts, and neither scratch contents nor the choice of types changes a bit.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::{Spec, SpecError};
use dab_core::codebook::{CodeCovariance, CodebookView, Layout, PrecisionLayout, PushError};
use dab_core::gaussian::{Diagonal, Full, Gaussian};
use dab_core::parts::{LARGEST, SMALLEST};
use dab_core::{Codebook, CovarianceKind, InputError, Model};
use dab_tests::specs::{self, Random, any, bare};
use dab_tests::total::answers;
use nalgebra::{SMatrix, SVector};
use proptest::prelude::*;

fn aligned(spec: &Spec) -> AlignedBytes {
    AlignedBytes::from(&*spec.to_bytes().expect("a model"))
}

/// Any finite float: bit patterns, so that every exponent is as likely as any other.
fn finite(random: &mut Random) -> f32 {
    let special =
        [0.0, -0.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1), LARGEST, SMALLEST, 1.0];
    let x = f32::from_bits(random.bits() as u32);
    if random.below(3) == 0 || !x.is_finite() { random.pick(&special) } else { x }
}

/// Distances and score of the owned types and of the model, which hold the same numbers, in bits.
fn same_bits<const D: usize, const K: usize, S: CodeCovariance<D>>(
    model: &Model<'_>,
    raw: &[f32],
    p: &Gaussian<D, S>,
    codes: [Gaussian<D, S>; K],
) -> Result<(), TestCaseError> {
    let mut codebook = Codebook::<K, D, S>::new(model.codebook().alpha).expect("a temperature");
    for (code, &prior) in codes.iter().zip(model.codebook().priors) {
        codebook.push(code, prior).expect("a code");
    }
    let (mut d, mut a, mut shares) = ([0.0; K], [0.0; K], [0.0; D]);
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    let found = model.explain_into(raw, &mut d, &mut a, &mut shares, &mut scratch).expect("an input");
    let mean = model.encode(raw, &mut scratch).expect("an input").mean;
    prop_assert_eq!(mean, p.mean().as_slice());
    prop_assert_eq!(codebook.distances(p).map(f32::to_bits), d.map(f32::to_bits));
    let owned = codebook.assess(p);
    prop_assert_eq!(owned.uncertainty.to_bits(), found.uncertainty.to_bits());
    prop_assert_eq!((owned.nearest, owned.nearest_distance), (found.nearest, found.nearest_distance));
    let mut again = ([0.0; K], [0.0; D]);
    codebook.view().assignment_into(&d, &mut again.0);
    codebook.view().per_dimension_into(&p.view(), &again.0, &mut again.1);
    prop_assert_eq!(again.0.map(f32::to_bits), a.map(f32::to_bits));
    prop_assert_eq!(again.1.map(f32::to_bits), shares.map(f32::to_bits));
    Ok(())
}

/// A model of the given kind whose codes have unit covariance: there float32 and float64 derive the same
/// precisions and log-determinants.
fn unit_codes(random: &mut Random, kind: CovarianceKind, dim: usize, k: usize) -> Spec {
    let mut spec = bare(random, kind, dim, k, 1.5);
    let size = spec.codes.covs.len() / k;
    spec.codes.covs = (0..k * size)
        .map(|at| if size == dim || (at % size).is_multiple_of(dim + 1) { 1.0 } else { 0.0 })
        .collect();
    spec
}

fn faces_agree<const D: usize>(random: &mut Random) -> Result<(), TestCaseError> {
    const K: usize = 9;
    for kind in CovarianceKind::ALL {
        let spec = unit_codes(random, kind, D, K);
        let bytes = aligned(&spec);
        let model = bytes.model().expect("a model");
        let raw = random.floats(spec.inputs, 8.0);
        let means: [SVector<f32, D>; K] =
            std::array::from_fn(|k| SVector::from_column_slice(&model.codebook().means[k * D..(k + 1) * D]));
        let full = means.map(|m| Gaussian::<D, Full>::new(m, SMatrix::identity()).expect("a Gaussian"));
        match kind {
            CovarianceKind::Diagonal => {
                let p = Gaussian::<D, Diagonal>::from_raw(&raw).expect("raw outputs");
                let ones = SVector::repeat(1.0);
                let codes = means.map(|m| Gaussian::<D, Diagonal>::new(m, ones).expect("a Gaussian"));
                same_bits(&model, &raw, &p, codes)?;
            }
            CovarianceKind::Spectral => {
                let p = specs::spectral::<D>(&raw);
                same_bits(&model, &raw, &p, full)?;
            }
            CovarianceKind::Cholesky => {
                let p = Gaussian::<D, Full>::from_cholesky_raw(&raw).expect("raw outputs");
                same_bits(&model, &raw, &p, full)?;
            }
            // Only artifacts have it: there is no owned type.
            CovarianceKind::Constant => continue,
        }
        packed_and_square_agree(random, kind, D)?;
    }
    Ok(())
}

/// A packed triangle (the artifact's) and a square one (the owned types') give the same bits.
fn packed_and_square_agree(
    random: &mut Random,
    kind: CovarianceKind,
    dim: usize,
) -> Result<(), TestCaseError> {
    if kind == CovarianceKind::Diagonal {
        return Ok(());
    }
    let (k, spec) = (5, bare(random, kind, dim, 5, 1.0));
    let bytes = aligned(&spec);
    let model = bytes.model().expect("a model");
    let mut square = vec![f32::NAN; k * dim * dim];
    let mut packed = model.codebook().precisions.iter();
    for code in 0..k {
        for i in 0..dim {
            for j in 0..=i {
                square[(code * dim + i) * dim + j] = *packed.next().expect("a triangle");
            }
        }
    }
    let layout = PrecisionLayout::Full(Layout::Square);
    let view = CodebookView { precisions: &square, layout, ..*model.codebook() };
    let raw = random.floats(spec.inputs, 8.0);
    let mut scratch = vec![0.0; model.scratch_len()];
    let (mut packed, mut square) = (vec![0.0; k], vec![0.0; k]);
    let p = model.encode(&raw, &mut scratch).expect("an input");
    model.codebook().distances_into(&p, &mut packed);
    view.distances_into(&p, &mut square);
    prop_assert_eq!(packed, square);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finite_inputs_give_finite_answers(seed: u64, scale in prop::sample::select(vec![1e-14, 1.0, 30.0, 1e7, 6e14])) {
        let random = &mut Random(seed);
        for kind in CovarianceKind::ALL {
            let spec = any(random, kind, scale);
            let bytes = aligned(&spec);
            let model = bytes.model().expect("a model");
            for _ in 0..8 {
                let input: Vec<f32> = (0..spec.inputs).map(|_| finite(random)).collect();
                // Scratch full of NaN, and full of zeros: the same answers.
                let first = answers(&model, &input, f32::NAN);
                prop_assert_eq!(first, answers(&model, &input, 0.0));
            }
        }
    }

    #[test]
    fn wrong_arguments_are_named(seed: u64, wrong in prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY])) {
        let random = &mut Random(seed);
        let kind = random.pick(&CovarianceKind::ALL);
        let spec = any(random, kind, 1.0);
        let bytes = aligned(&spec);
        let model = bytes.model().expect("a model");
        let shape = model.shape();
        let needed = model.scratch_len();
        let mut scratch = vec![0.0; needed];

        let mut input = random.floats(shape.inputs, 1.0);
        let index = random.below(shape.inputs);
        input[index..].fill(wrong);
        prop_assert_eq!(model.assess(&input, &mut scratch).err(), Some(InputError::NonFinite { index }));

        let found = random.pick(&[0, shape.inputs - 1, shape.inputs + 1, 3 * shape.inputs]);
        let expected = shape.inputs;
        prop_assert_eq!(
            model.assess(&vec![0.0; found], &mut scratch).err(),
            Some(InputError::Length { expected, found })
        );

        let input = random.floats(shape.inputs, 1.0);
        let found = random.below(needed);
        prop_assert_eq!(
            model.assess(&input, &mut scratch[..found]).err(),
            Some(InputError::Scratch { needed, found })
        );

        let mut outputs = vec![7.0; shape.outputs + 1];
        let wrong = Some(InputError::OutputLength { expected: shape.outputs, found: shape.outputs + 1 });
        prop_assert_eq!(model.predict_into(&input, &mut outputs, &mut scratch).err(), wrong);
        prop_assert!(outputs.iter().all(|&y| y == 7.0), "nothing is written on an error");
        let (k, d) = (shape.codes, shape.dim);
        for sizes in [[k + 1, k, d], [k, k - 1, d], [k, k, d + 1]] {
            let [mut distances, mut assignment, mut shares] = sizes.map(|n| vec![0.0; n]);
            let found =
                model.explain_into(&input, &mut distances, &mut assignment, &mut shares, &mut scratch).err();
            let at = sizes.iter().zip([k, k, d]).find(|(a, b)| **a != *b).map(|(a, b)| (b, *a));
            prop_assert_eq!(found, at.map(|(expected, found)| InputError::OutputLength { expected, found }));
        }
    }

    #[test]
    fn owned_types_and_models_give_the_same_bits(seed: u64) {
        let random = &mut Random(seed);
        faces_agree::<1>(random)?;
        faces_agree::<3>(random)?;
        faces_agree::<8>(random)?;
        faces_agree::<9>(random)?;
    }

    #[test]
    fn owned_types_are_total(seed: u64) {
        let random = &mut Random(seed);
        let mut raw = || -> Vec<f32> { (0..9).map(|_| finite(random)).collect() };
        let (a, b) = (raw(), raw());
        let mut full = Codebook::<2, 3, Full>::new(1.0).expect("a temperature");
        let mut diagonal = Codebook::<2, 3, Diagonal>::new(1.0).expect("a temperature");
        let code = Gaussian::<3, Full>::from_cholesky_raw(&b).expect("raw outputs");
        let _ = full.push(&code, 0.5);
        let _ = full.push(&specs::spectral::<3>(&b), 0.5);
        let _ = diagonal.push(&Gaussian::<3, Diagonal>::from_raw(&b[..6]).expect("raw outputs"), 1.0);
        let scores = [
            full.assess(&Gaussian::<3, Full>::from_cholesky_raw(&a).expect("raw outputs")),
            full.assess(&specs::spectral::<3>(&a)),
            diagonal.assess(&Gaussian::<3, Diagonal>::from_raw(&a[..6]).expect("raw outputs")),
        ];
        for score in scores {
            prop_assert!(score.uncertainty.is_finite() && score.uncertainty >= 0.0);
        }
    }
}

#[test]
fn a_codebook_without_live_codes_is_far_from_everything() {
    let mut codebook = Codebook::<2, 1>::new(1.0).expect("a temperature");
    let here = Gaussian::<1, Diagonal>::new(SVector::repeat(0.0), SVector::repeat(1.0)).expect("a Gaussian");
    assert_eq!(codebook.assess(&here).uncertainty, f32::MAX, "empty");
    codebook.push(&here, 0.0).expect("a code");
    assert_eq!(codebook.assess(&here).uncertainty, f32::MAX, "all priors 0");
    let mut assignment = [f32::NAN];
    codebook.view().assignment_into(&[0.0], &mut assignment);
    assert_eq!(assignment, [0.0]);
}

#[test]
fn a_codebook_refuses_what_a_file_may_not_hold() {
    for alpha in [-1.0, f32::NAN, f32::INFINITY, 2.0 * LARGEST, 0.5 * SMALLEST] {
        let error = Codebook::<1, 1>::new(alpha).expect_err("no temperature");
        let words = format!("alpha is {alpha}, allowed are 0 and numbers from 2^-50 to 2^50");
        assert_eq!(error.to_string(), words);
    }
    let mut codebook = Codebook::<1, 1>::new(0.0).expect("a temperature");
    let gaussian = |std| Gaussian::<1, Diagonal>::new(SVector::repeat(0.0), SVector::repeat(std));
    for std in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert!(gaussian(std).is_none(), "{std}");
    }
    let (good, narrow) = (gaussian(1.0).expect("a Gaussian"), gaussian(SMALLEST).expect("a Gaussian"));
    for prior in [-0.5, 1.5, f32::NAN, 0.5 * SMALLEST] {
        assert_eq!(codebook.push(&good, prior), Err(PushError::Prior), "{prior}");
    }
    assert_eq!(codebook.push(&narrow, 1.0), Err(PushError::Precision));
    assert_eq!(codebook.push(&good, SMALLEST), Ok(()));
    assert_eq!(codebook.push(&good, 1.0), Err(PushError::Full));
    let words = [PushError::Full, PushError::Prior, PushError::Precision].map(|error| error.to_string());
    assert_eq!(words[0], "the codebook is full");
    assert_eq!(words[1], "the prior is not 0 or a number from 2^-50 to 1");
    assert_eq!(words[2], "the code is too narrow or too wide: its precision must stay within 2^-50 and 2^50");
    assert_eq!(codebook.assess(&good).uncertainty, 0.0, "the smallest prior is a prior");
}

#[test]
fn rounding_noise_off_the_diagonal_is_no_reason_to_refuse() {
    for noise in [0.0, 1e-17, -1e-30, f32::from_bits(1)] {
        let cov = SMatrix::<f32, 2, 2>::new(1.0, noise, noise, 1.0);
        let gaussian = Gaussian::<2, Full>::new(SVector::repeat(0.0), cov).expect("a covariance");
        let mut codebook = Codebook::<1, 2, Full>::new(1.0).expect("a temperature");
        assert_eq!(codebook.push(&gaussian, 1.0), Ok(()), "{noise}");
        assert_eq!(codebook.assess(&gaussian).uncertainty, 0.0);
    }
}

#[test]
fn impossible_specs_are_errors() {
    let spec = |change: fn(&mut Spec)| {
        let mut spec = bare(&mut Random(3), CovarianceKind::Spectral, 2, 2, 1.0);
        change(&mut spec);
        spec.to_bytes().expect_err("an impossible model")
    };
    spec(|s| s.head.dim = 0);
    spec(|s| s.inputs = 0);
    spec(|s| s.codes.alpha = -1.0);
    spec(|s| s.codes.alpha = f32::NAN);
    spec(|s| s.codes.priors = vec![]);
    spec(|s| s.codes.means[1] = f64::NAN);
    spec(|s| s.self_test = vec![vec![0.0; 5]; 9]);
    assert!(matches!(spec(|s| s.codes.priors = vec![0.5, 0.6]), SpecError::PriorSum { .. }));
    assert_eq!(spec(|s| s.codes.covs[1] += 1.0), SpecError::NotSymmetric { code: 0 });
    assert_eq!(spec(|s| s.codes.covs[4] = -1.0), SpecError::NotPositiveDefinite { code: 1 });
    let zero = |s: &mut Spec| {
        *s = bare(&mut Random(3), CovarianceKind::Spectral, 0, 1, 1.0);
    };
    spec(zero);
}
