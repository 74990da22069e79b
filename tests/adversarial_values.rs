//! Files with valid checksums and impossible numbers, and random mutations of everything: refused with the
//! error that names the fault, or finite answers. Nothing panics.

use dab_core::artifact::ArtifactError as E;
use dab_core::artifact::schema::{CalibrationMeta, CovarianceKind};
use dab_core::artifact::{AlignedBytes, Part};
use dab_core::parts::{LARGEST, SMALLEST};
use dab_tests::attack::{CHOLESKY, MLP, SPECTRAL, VIEWS, changed, parts, read};
use dab_tests::patch::{HEADER, Parts, seal, word};
use dab_tests::specs::Random;

#[test]
fn parameters() {
    for index in [MLP, SPECTRAL, CHOLESKY, VIEWS] {
        for (part, range) in parts(index).places() {
            for at in [0, range.len() / 2, range.len() - 1] {
                let with = |value| changed(index, |p| p.params[range.start + at] = value);
                for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
                    assert_eq!(with(value), Some(E::NonFinite { part, index: at }), "{part} {value}");
                }
                let out_of_range = Some(E::OutOfRange { part, index: at });
                let bounded = !matches!(
                    part,
                    Part::SelfTestInputs
                        | Part::SelfTestAnswers
                        | Part::CalibrationScores
                        | Part::CalibrationPValues
                        | Part::AmbiguityScores
                        | Part::AmbiguityPValues
                );
                let outside = [f32::from_bits(1), -1e-30, SMALLEST * 0.99, 2.0 * LARGEST, f32::MIN];
                for value in outside.into_iter().filter(|_| bounded) {
                    assert_eq!(with(value), out_of_range, "{part} {value}");
                }
                if matches!(
                    part,
                    Part::NormalizeInverseStd
                        | Part::CodePriors
                        | Part::CalibrationScores
                        | Part::CalibrationPValues
                        | Part::SelfTestAnswers
                        | Part::ViewNormalizeInverseStd
                        | Part::ViewCodePriors
                        | Part::AmbiguityPValues
                ) || (part == Part::Tails && at % 2 == 1)
                {
                    assert_eq!(with(-0.5), out_of_range, "{part} negative");
                }
                // Refused for another reason, or finite: `read` looks.
                for value in [0.0, -0.0, 1.0, -1.0, LARGEST, -LARGEST, SMALLEST, f32::MAX] {
                    let _ = with(value);
                }
            }
        }
    }
    assert_eq!(
        changed(MLP, |p| p.part(Part::NormalizeInverseStd)[1] = 0.0),
        Some(E::OutOfRange { part: Part::NormalizeInverseStd, index: 1 })
    );
}

#[test]
fn whole_parts_at_the_edges_of_the_domain() {
    for index in [MLP, SPECTRAL, CHOLESKY, VIEWS] {
        for (part, _) in parts(index).places() {
            for value in [LARGEST, -LARGEST, SMALLEST, -SMALLEST, 0.0] {
                let error = changed(index, |p| p.part(part).fill(value));
                let signed = matches!(
                    part,
                    Part::NormalizeMean
                        | Part::Layers
                        | Part::HeadWeight
                        | Part::HeadBias
                        | Part::CodeMeans
                        | Part::DecoderWeight
                        | Part::DecoderBias
                        | Part::SelfTestInputs
                        | Part::ViewNormalizeMean
                        | Part::ViewHeadWeight
                        | Part::ViewHeadBias
                        | Part::ViewCodeMeans
                        | Part::ViewDecoderWeight
                        | Part::ViewDecoderBias
                );
                assert!(!signed || error.is_none(), "{part} {value}: {error:?}");
            }
        }
        // Everything at once.
        for sign in [1.0, -1.0] {
            for magnitude in [LARGEST, SMALLEST] {
                let error = changed(index, |p| {
                    let base = [
                        Part::Layers,
                        Part::HeadWeight,
                        Part::HeadBias,
                        Part::CodeMeans,
                        Part::DecoderWeight,
                    ];
                    let view = [
                        Part::ViewHeadWeight,
                        Part::ViewHeadBias,
                        Part::ViewCodeMeans,
                        Part::ViewDecoderWeight,
                    ];
                    for part in base.into_iter().chain(view) {
                        p.part(part).fill(sign * magnitude);
                    }
                    p.part(Part::CodePrecisions).fill(magnitude);
                    // The log-determinant has to be that of the precisions: 1/v, or the diagonal of R twice.
                    let twice = if p.meta.head.covariance == CovarianceKind::Diagonal { 1.0 } else { 2.0 };
                    let log_det = -twice * p.meta.dim as f32 * magnitude.ln();
                    p.part(Part::CodeLogDets).fill(log_det);
                    p.meta.alpha = magnitude.to_le_bytes();
                });
                assert_eq!(error, None);
            }
        }
    }
}

#[test]
fn codes() {
    for wrong in [0.0, -1.0] {
        // Diagonal d = 3: entry 4 belongs to code 1. Packed triangle of d = 3: the diagonal is 0, 2, 5.
        let diagonal = changed(MLP, |p| p.part(Part::CodePrecisions)[4] = wrong);
        assert_eq!(diagonal, Some(E::NotPositiveDefinite { code: 1 }));
        for at in [0, 2, 5] {
            let full = changed(CHOLESKY, |p| p.part(Part::CodePrecisions)[6 + at] = wrong);
            assert_eq!(full, Some(E::NotPositiveDefinite { code: 1 }));
        }
        assert_eq!(changed(CHOLESKY, |p| p.part(Part::CodePrecisions)[1] = wrong), None, "off the diagonal");
    }
    let priors = |values: [f32; 5]| changed(MLP, |p| p.part(Part::CodePriors).copy_from_slice(&values));
    assert_eq!(priors([0.2; 5]), None);
    assert_eq!(priors([0.0, 0.5, 0.5, 0.0, 0.0]), None, "a prior of 0 is legal");
    assert_eq!(priors([0.0, 0.0, 0.0, 0.0, 1.0]), None);
    assert_eq!(priors([1.0, SMALLEST, SMALLEST, SMALLEST, SMALLEST]), None);
    assert_eq!(priors([0.2001; 5]), None, "within rounding");
    for values in [[0.0; 5], [0.21; 5], [0.19; 5], [1.0; 5], [SMALLEST; 5]] {
        assert_eq!(priors(values), Some(E::PriorSum), "{values:?}");
    }
    assert_eq!(priors([1.5, 0.0, 0.0, 0.0, 0.0]), Some(E::OutOfRange { part: Part::CodePriors, index: 0 }));
    for alpha in [-1.0, f32::NAN, f32::INFINITY, 2.0 * LARGEST, SMALLEST * 0.5, f32::from_bits(1)] {
        assert_eq!(changed(SPECTRAL, |p| p.meta.alpha = alpha.to_le_bytes()), Some(E::Alpha), "{alpha}");
    }
    for alpha in [0.0, SMALLEST, LARGEST] {
        assert_eq!(changed(SPECTRAL, |p| p.meta.alpha = alpha.to_le_bytes()), None, "{alpha}");
    }
}

#[test]
fn calibration() {
    let order = |index| Some(E::CalibrationOrder { index });
    let points = usize::from(parts(MLP).meta.calibration.expect("a table").points);
    assert_eq!(points, 30);
    assert_eq!(changed(MLP, |p| p.part(Part::CalibrationScores).swap(3, 4)), order(4));
    assert_eq!(changed(MLP, |p| p.part(Part::CalibrationPValues).swap(0, 1)), order(1));
    assert_eq!(
        changed(MLP, |p| {
            let scores = p.part(Part::CalibrationScores);
            scores[8] = scores[7];
        }),
        order(8)
    );
    assert_eq!(changed(MLP, |p| p.part(Part::CalibrationPValues)[29] *= 0.5), order(29));
    assert_eq!(
        changed(MLP, |p| p.part(Part::CalibrationPValues)[0] = 1.0),
        Some(E::OutOfRange { part: Part::CalibrationPValues, index: 0 })
    );
    let rates = |doubtful: f32, unfamiliar: f32| {
        changed(CHOLESKY, |p| {
            let c = p.meta.calibration.expect("a table");
            let (doubtful, unfamiliar) = (doubtful.to_le_bytes(), unfamiliar.to_le_bytes());
            p.meta.calibration = Some(CalibrationMeta { doubtful, unfamiliar, ..c });
        })
    };
    for (doubtful, unfamiliar) in [
        (0.01, 0.05),
        (0.05, 0.0),
        (1.0, 0.01),
        (0.05, -0.01),
        (f32::NAN, 0.01),
        (0.05, f32::NAN),
        (f32::INFINITY, 0.5),
    ] {
        assert_eq!(rates(doubtful, unfamiliar), Some(E::Rates), "{doubtful} {unfamiliar}");
    }
    assert_eq!(rates(0.5, 0.5), None);
    assert_eq!(rates(0.999, f32::from_bits(1)), None);
}

#[test]
fn the_last_p_of_a_calibration() {
    // The p of the last of 30 entries when the table says that it was made from `held_out` inputs.
    let with = |held_out: u32, last: f32| {
        changed(MLP, |p| {
            p.meta.calibration.as_mut().expect("a table").held_out = held_out;
            let p_values = p.part(Part::CalibrationPValues);
            for (i, p) in p_values.iter_mut().enumerate() {
                *p = 0.99 - 0.01 * i as f32;
            }
            p_values[29] = last;
        })
    };
    let near = |p: f32, steps: i32| f32::from_bits(p.to_bits().wrapping_add_signed(steps));
    let refused = Some(E::CalibrationOrder { index: 29 });
    let exact = |n: u32| (1.0 / (f64::from(n) + 1.0)) as f32;
    for n in [1, 2, 30, 1000, 0x00ab_cdef, (1 << 24) - 1] {
        assert_eq!(with(n, exact(n)), None, "{n}");
        for steps in [-1, 1] {
            assert_eq!(with(n, near(exact(n), steps)), refused, "{n}: {steps} from exact");
        }
    }
    let mut random = Random(24);
    let large = (0..200).map(|_| (1 << 24) + random.below((1 << 32) - (1 << 24)) as u32);
    for n in [1 << 24, (1 << 24) + 1, (1 << 25) + 3, u32::MAX].into_iter().chain(large) {
        assert_eq!(with(n, exact(n)), None, "what the writer computes, for {n}");
        for steps in -5..=5 {
            let expected = if (-3..=3).contains(&steps) { None } else { refused };
            assert_eq!(with(n, near(1.0 / (n as f32 + 1.0), steps)), expected, "{n}: {steps}");
        }
    }
}

#[test]
fn info_is_for_hosts() {
    use dab_core::artifact::info::read_info;
    let with = |info: &[u8]| Parts { info: info.to_vec(), ..parts(MLP) }.join();
    for info in [&[][..], &[1], &[0, 0], &[0x80, 0], &[1, 1, 0xff, 0], &[0xff, 0xff, 0xff, 0xff, 0x7f]] {
        let bytes = with(info);
        assert_eq!(read(&bytes), None, "a device does not read it: {info:?}");
        assert_eq!(read_info(bytes.as_slice()), Err(E::Info), "{info:?}");
    }
    assert_eq!(read_info(with(&[0]).as_slice()), Ok(vec![]));
    let entry = Ok(vec![("a".to_owned(), "bc".to_owned())]);
    assert_eq!(read_info(with(&[1, 1, b'a', 2, b'b', b'c']).as_slice()), entry);
}

#[test]
fn random_mutations_never_panic() {
    /// Mutated files; with the models small, a few seconds.
    const FILES: usize = 210_000;
    let random = &mut Random(2026);
    let sound = [MLP, SPECTRAL, CHOLESKY, VIEWS].map(|i| parts(i).join());
    let (mut accepted, mut refused) = (0, std::collections::BTreeMap::<String, usize>::new());
    let values = [0.0, -0.0, 1.0, -1.0, LARGEST, -LARGEST, SMALLEST, f32::MAX, f32::NAN, f32::from_bits(1)];
    for file in 0..FILES {
        let mut bytes = sound[file % 4].as_slice().to_vec();
        let params = word(&bytes, 32) as usize;
        for _ in 0..1 + random.below(4) {
            match random.below(8) {
                0 => {
                    let at = 8 + random.below(48);
                    bytes[at] = random.bits() as u8;
                }
                1 | 2 => {
                    let at = HEADER + random.below(params - HEADER);
                    bytes[at] = random.bits() as u8;
                }
                3 => {
                    let at = HEADER + random.below(bytes.len() - HEADER);
                    bytes[at] ^= 1 << random.below(8);
                }
                4 => {
                    let (at, len) = (HEADER + random.below(bytes.len() - HEADER - 8), 1 + random.below(8));
                    bytes[at..at + len].fill(random.bits() as u8);
                }
                _ => {
                    // A float in the domain, or one of the values above.
                    let at = params + 4 * random.below((bytes.len() - params) / 4);
                    let value = match random.below(4) {
                        0 => random.pick(&values),
                        _ => ((random.unit() * 50.0).exp2() * random.unit().signum()) as f32,
                    };
                    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        seal(&mut bytes);
        match read(&AlignedBytes::from(&*bytes)) {
            None => accepted += 1,
            Some(error) => {
                let name = format!("{error:?}");
                let name = name.split([' ', '{']).next().unwrap_or_default().to_owned();
                *refused.entry(name).or_default() += 1;
            }
        }
    }
    println!("{accepted} accepted, refused: {refused:?}");
    assert!(accepted > FILES / 20, "the mutations should leave some files alive: {accepted}");
    assert!(refused.len() > 12, "and reach most refusals: {refused:?}");
}
