//! The codebook's numbers beside their formulas, written out.

use super::*;
use crate::support::random::Random;

/// The codebook keeps f32: one rounding of each number.
const STORED: f64 = 1e-6;

#[track_caller]
fn close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((f64::from(*a) - b).abs() <= STORED * b.abs().max(1.0), "{found:?} instead of {expected:?}");
    }
}

#[test]
fn a_new_codebook_has_unit_covariances_and_equal_priors() {
    let means: Vec<f32> = (0..6).map(|x| x as f32).collect();
    let diagonal = Codebook::new(means.clone(), 3, Covariance::Diagonal);
    assert_eq!((diagonal.len(), &diagonal.covs[..], &diagonal.priors[..]), (2, &[1.0; 6][..], &[0.5; 2][..]));
    let full = Codebook::new(means, 3, Covariance::Cholesky);
    let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    assert_eq!((full.len(), full.covs), (2, [identity, identity].concat()));
}

#[test]
fn covariances_are_sums_over_weights_pooled_symmetric_and_ridged() {
    const DIM: usize = 3;
    let mut random = Random::new(1, "covariances");
    let weights = [2.0, 0.5, 0.0, 7.0];
    let shrinkage = Shrinkage { pooled: 0.3, ridge: 0.2 };
    for kind in [Covariance::Diagonal, Covariance::Spectral] {
        let entries = kind.entries(DIM);
        let sums: Vec<f64> = (0..weights.len() * entries).map(|_| 1.0 + random.uniform()).collect();
        let mut book = Codebook::new(vec![0.0; weights.len() * DIM], DIM, kind);
        book.covs.iter_mut().for_each(|value| *value += 0.25);
        let before = book.clone();
        book.set_covs(&sums, &weights, shrinkage);
        for (code, weight) in weights.into_iter().enumerate() {
            let own = code * entries..(code + 1) * entries;
            if weight == 0.0 {
                assert_eq!(book.covs[own.clone()], before.covs[own], "nobody uses it");
                continue;
            }
            let mixed = |row: usize, col: usize| {
                let at = if entries == DIM { row } else { row * DIM + col };
                let pooled: f64 =
                    (0..weights.len()).map(|other| sums[other * entries + at]).sum::<f64>() / 9.5;
                0.7 * sums[code * entries + at] / weight + 0.3 * pooled
            };
            let ridge = 0.2 * (mixed(0, 0) + mixed(1, 1) + mixed(2, 2)) / 3.0;
            let expected: Vec<f64> = match kind {
                Covariance::Diagonal => (0..DIM).map(|row| mixed(row, row) + ridge).collect(),
                _ => (0..entries)
                    .map(|at| (at / DIM, at % DIM))
                    .map(|(row, col)| {
                        0.5 * (mixed(row, col) + mixed(col, row)) + if row == col { ridge } else { 0.0 }
                    })
                    .collect(),
            };
            close(&book.covs[own], &expected);
        }
        // Without any ridge, a variance of 0 is 1e-10 all the same.
        book.set_covs(&vec![0.0; sums.len()], &[1.0; 4], Shrinkage { pooled: 0.0, ridge: 0.0 });
        assert_eq!((book.covs[0], book.covs[entries - 1]), (LEAST_RIDGE as f32, LEAST_RIDGE as f32));
    }
}

#[test]
fn means_priors_and_dead_codes_are_counted_by_weight() {
    let mut book = Codebook::new(vec![9.0; 6], 2, Covariance::Diagonal);
    book.set_means(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2.0, 0.0, 4.0]);
    assert_eq!(book.means, [0.5, 1.0, 9.0, 9.0, 1.25, 1.5]);
    book.set_priors(&[1.0, 3.0, 0.0], 0.3);
    // At least a tenth each, then scaled to 1.
    close(&book.priors, &[0.25 / 1.1, 0.75 / 1.1, 0.1 / 1.1]);
    book.priors = vec![0.25, 0.125, 0.625];
    assert_eq!(book.dead(0.375), [] as [usize; 0], "0.125 is not below 0.375 of a third");
    assert_eq!(book.dead(0.3751), [1]);
    assert_eq!(book.dead(0.76), [0, 1]);
}

#[test]
fn precisions_are_inverses_and_determinants_logarithms() {
    let mut diagonal = Codebook::new(vec![0.0; 4], 2, Covariance::Diagonal);
    diagonal.covs = vec![1.0, 1.0, 2.0, 4.0];
    let (precision, log_det) = diagonal.precision(1);
    assert_eq!(precision, [0.5, 0.25]);
    assert!((log_det - 8f64.ln()).abs() < 1e-12);
    let mut full = Codebook::new(vec![0.0; 4], 2, Covariance::Spectral);
    full.covs[4..].copy_from_slice(&[2.0, 1.0, 1.0, 3.0]);
    let (precision, log_det) = full.precision(1);
    for (a, b) in precision.into_iter().zip([0.6, -0.2, -0.2, 0.4]) {
        assert!((a - b).abs() < 1e-12);
    }
    assert!((log_det - 5f64.ln()).abs() < 1e-12);
    full.covs[4..].copy_from_slice(&[1.0, 2.0, 2.0, 1.0]);
    assert!(full.precision(1).1.is_nan() && full.precision(1).0.iter().all(|x| x.is_nan()));
}

#[test]
fn assignments_are_those_of_e5_and_equal_before_the_start() {
    let mut book = Codebook::new(vec![0.0, 1.0, 2.0], 1, Covariance::Diagonal);
    book.priors = vec![0.5, 0.2, 0.3];
    let distances = [[1.0, 3.0, 2.5], [40.0, 41.0, 39.0]];
    for dtype in [DType::F32, DType::F64] {
        let codes = book.tensors(&Device::flex(), dtype);
        let given = constant(distances.as_flattened().to_vec(), [2, 3], &Device::flex(), dtype);
        let found: Vec<f32> = codes.assign_from(true, &given, 0.7).into_data().iter::<f32>().collect();
        for (row, found) in distances.iter().zip(found.chunks(3)) {
            let likely: Vec<f64> =
                row.iter().zip(&book.priors).map(|(d, &p)| f64::from(p) * (-0.7 * d).exp()).collect();
            let total: f64 = likely.iter().sum();
            close(found, &likely.iter().map(|l| l / total).collect::<Vec<_>>());
        }
        let far = given.full_like(if dtype == DType::F32 { f32::MAX.into() } else { f64::MAX });
        let saturated: Vec<f32> = codes.assign_from(true, &far, 0.7).into_data().iter::<f32>().collect();
        close(&saturated[..3], &[0.5, 0.2, 0.3]);
        let before: Vec<f32> = codes.assign_from(false, &given, 0.7).into_data().iter::<f32>().collect();
        close(&before, &[1.0 / 3.0; 6]);
        let u: Vec<f32> = uncertainty(given.clone(), given.clone()).into_data().iter::<f32>().collect();
        close(&u, &[16.25, 4802.0]);
    }
}

#[test]
fn moments_are_sums_of_squares_for_both_kinds() {
    let (rows, dim, codes) = (4, 2, 3);
    let mut random = Random::new(3, "moments");
    let mut normals =
        |count: usize| -> Vec<f64> { (0..count).map(|_| f64::from(random.normal() as f32)).collect() };
    let (mean, means) = (normals(rows * dim), normals(codes * dim));
    let weights: Vec<f64> = normals(rows * codes).iter().map(|w| w.abs()).collect();
    for kind in [Covariance::Diagonal, Covariance::Cholesky] {
        let raw = normals(rows * (kind.outputs(dim) - dim));
        let tensor = |values: &[f64], cols: usize| {
            constant(values.to_vec(), [values.len() / cols, cols], &Device::flex(), DType::F64)
        };
        // Wide ones, so that their own covariances count.
        let raw = tensor(&raw.iter().map(|x| x + 5.0).collect::<Vec<_>>(), kind.outputs(dim) - dim);
        let encoding = Encoding::new(Tensor::cat(vec![tensor(&mean, dim), raw], 1), dim, kind);
        let own: Vec<f64> = encoding.cov().into_data().iter::<f64>().collect();
        let (total, found) = moments(&encoding, tensor(&weights, codes), tensor(&means, dim), kind);
        let entries = kind.entries(dim);
        let mut expected = vec![0.0; codes * entries];
        for row in 0..rows {
            for (at, sum) in expected.iter_mut().enumerate() {
                let (code, entry) = (at / entries, at % entries);
                let (i, j) = if entries == dim { (entry, entry) } else { (entry / dim, entry % dim) };
                let offset = |i: usize| mean[row * dim + i] - means[code * dim + i];
                *sum += weights[row * codes + code] * (own[row * entries + entry] + offset(i) * offset(j));
            }
        }
        close(&found.into_data().iter::<f32>().collect::<Vec<_>>(), &expected);
        let sums = (0..codes).map(|code| weights.iter().skip(code).step_by(codes).sum());
        close(&total.into_data().iter::<f32>().collect::<Vec<_>>(), &sums.collect::<Vec<f64>>());
    }
}
