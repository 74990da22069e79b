//! The bottleneck against the stored golden vectors (NumPy, float64) and against finite differences, in `f64`.

use burn::tensor::{DType, Device, Tensor};

use super::{
    codebook::{Codebook, Codes, Shrinkage, moments, uncertainty},
    divergence,
    encoder::{Covariance, Encoding},
    spectral,
    tensors::{Matrices, constant},
};
use crate::support::random::Random;

/// f64 sums of a few thousand terms against NumPy's, in another order.
const SAME: f64 = 1e-9;
/// Central differences of the golden gradients are accurate to about 1e-6 of their largest entry.
const DIFFERENCES: f64 = 2e-5;
/// A code matrix rounded to f32, as the codebook keeps it, moves a distance by this much.
const STORED_AS_F32: f64 = 1e-5;

/// One stored golden file; `None` where the shared folder is not at hand.
struct Golden(zip::ZipArchive<std::fs::File>);

impl Golden {
    fn open(test: &str, name: &str) -> Option<Self> {
        let path = crate::stored::shared(test, &format!("golden/{name}"))?;
        Some(Self(zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap()))
    }

    fn numbers(&mut self, name: &str) -> Vec<f64> {
        npyz::NpyFile::new(self.0.by_name(&format!("{name}.npy")).unwrap()).unwrap().into_vec().unwrap()
    }
}

fn device() -> Device {
    Device::flex()
}

fn wide<const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
    constant(values, shape, &device(), DType::F64)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// What `layer` gives, and the gradients of the sum of its `loss` with respect to each tensor that it takes.
pub(super) fn traced<const D: usize, const N: usize>(
    given: [Tensor<D>; N],
    layer: impl Fn([Tensor<D>; N]) -> Tensor<D>,
    loss: impl Fn(Tensor<D>) -> Tensor<D>,
) -> Vec<Vec<f64>> {
    let given = given.map(|tensor| tensor.detach().require_grad());
    let y = layer(given.clone());
    let gradients = loss(y.clone()).sum().backward();
    let of = |tensor: &Tensor<D>| values(tensor.grad(&gradients).unwrap());
    std::iter::once(values(y.without_autodiff())).chain(given.iter().map(of)).collect()
}

/// Small whole numbers on the CPU, tracked.
pub(super) fn whole<const D: usize>(factor: usize, shape: [usize; D]) -> Tensor<D> {
    let values = (0..shape.iter().product()).map(|i: usize| ((i * factor) % 17) as f64 - 8.0).collect();
    constant(values, shape, &device().autodiff(), DType::F32)
}

/// Largest |a − b| relative to the largest |b|.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs() / scale))
}

/// The same, each entry relative to itself (but not below 1).
fn entrywise(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs() / b.abs().max(1.0)))
}

/// The golden codes as f64 tensors, means tracked.
fn golden_codes(golden: &mut Golden, dim: usize, codes: usize, full: bool) -> Codes {
    let precision = if full {
        Matrices::Full(wide(golden.numbers("centroid_prec"), [codes, dim, dim]))
    } else {
        let variances = golden.numbers("centroid_var");
        Matrices::Diagonal(wide(variances.iter().map(|v| 1.0 / v).collect(), [codes, dim]))
    };
    let log_det = if full {
        golden.numbers("centroid_logdet")
    } else {
        golden.numbers("centroid_var").chunks(dim).map(|row| row.iter().map(|v| v.ln()).sum()).collect()
    };
    let means = wide(golden.numbers("centroid_means"), [codes, dim]);
    let log_prior = golden.numbers("pi").iter().map(|p| p.ln()).collect();
    let log_prior = wide(log_prior, [1, codes]);
    let codes = Codes { means, precision, log_det: wide(log_det, [1, codes]), log_prior, expand: false };
    let mut codes = codes.tracked();
    codes.means = codes.means.require_grad();
    codes
}

fn golden_forward_and_gradients(mut golden: Golden, dim: usize, codes: usize, kind: Covariance) {
    let full = kind != Covariance::Diagonal;
    let outputs = kind.outputs(dim);
    let head = wide(golden.numbers("head"), [64, outputs]).autodiff().require_grad();
    let alpha = if full { golden.numbers("alpha")[0] } else { 2.0 };
    let book = golden_codes(&mut golden, dim, codes, full);

    let encoding = Encoding::new(head.clone(), dim, kind);
    if full {
        assert!(entrywise(&values(encoding.cov()), &golden.numbers("Sigma")) < SAME);
        assert!(entrywise(&values(encoding.log_det.clone()), &golden.numbers("logdet_Sigma")) < SAME);
    }
    let distances = divergence::kl(&encoding, &book);
    assert!(entrywise(&values(distances.clone()), &golden.numbers("kl")) < SAME);
    let assignment = book.assign(&distances, alpha);
    assert!(difference(&values(assignment.clone()), &golden.numbers("pi_x")) < SAME);
    let u = uncertainty(assignment, distances);
    assert!(entrywise(&values(u.clone()), &golden.numbers("uncertainty")) < SAME);

    // d/d means of the mean over the 48 typical rows.
    let gradients = u.clone().slice([0..48, 0..1]).mean().backward();
    let means = values(book.means.grad(&gradients).unwrap());
    assert!(difference(&means, &golden.numbers("grad_means")) < SAME);
    // d/d head of each row's own uncertainty.
    if full {
        let own = values(head.grad(&gradients).unwrap());
        let own: Vec<f64> = own[..8 * outputs].iter().map(|g| g * 48.0).collect();
        let error = difference(&own, &golden.numbers("grad_head_fd"));
        assert!(error < DIFFERENCES, "{error:e}");
    }
}

#[test]
fn full_covariance_matches_the_golden_vectors() {
    let open = |name| Golden::open("full_covariance_matches_the_golden_vectors", name);
    let Some(a) = open("a_full_d8_k10_in640.npz") else { return };
    let Some(c) = open("c_full_d4_k2_in50.npz") else { return };
    golden_forward_and_gradients(a, 8, 10, Covariance::Spectral);
    golden_forward_and_gradients(c, 4, 2, Covariance::Spectral);
}

#[test]
fn diagonal_covariance_matches_the_golden_vectors() {
    let found = Golden::open("diagonal_covariance_matches_the_golden_vectors", "b_diag_d80_k1000.npz");
    let Some(golden) = found else { return };
    golden_forward_and_gradients(golden, 80, 1000, Covariance::Diagonal);
}

#[test]
fn codebook_updates_match_the_golden_vectors() {
    let Some(mut golden) = Golden::open("codebook_updates_match_the_golden_vectors", "c_full_d4_k2_in50.npz")
    else {
        return;
    };
    let head = wide(golden.numbers("head"), [64, 14]).slice([0..48, 0..14]);
    let encoding = Encoding::new(head, 4, Covariance::Spectral);
    let assignment = wide(golden.numbers("pi_x"), [64, 2]).slice([0..48, 0..2]);
    let means = wide(golden.numbers("centroid_means"), [2, 4]);
    for (count, name) in [(0.0, "upd_cov_paper"), (5.0, "upd_cov_code")] {
        let weights = assignment.clone().add_scalar(count);
        let (weights, sums) = moments(&encoding, weights, means.clone(), Covariance::Spectral);
        let mut book = Codebook::new(vec![0.0; 8], 4, Covariance::Spectral);
        book.set_covs(&values(sums), &values(weights), Shrinkage { pooled: 0.0, ridge: 0.0 });
        let covs: Vec<f64> = book.covs.iter().map(|&v| f64::from(v)).collect();
        let error = difference(&covs, &golden.numbers(name));
        assert!(error < 1e-6, "{name}: {error:e}");
    }
    let mut book = Codebook::new(vec![0.0; 8], 4, Covariance::Spectral);
    book.set_priors(&values(assignment.sum_dim(0)), 0.0);
    let priors: Vec<f64> = book.priors.iter().map(|&v| f64::from(v)).collect();
    assert!(difference(&priors, &golden.numbers("upd_pi")) < 1e-6);
}

#[test]
fn tight_codes_far_from_zero_keep_their_variance() {
    // Means near 100, spread 0.01: the squares of the means are 1e8 times the variances, more than f32 can tell apart.
    let (rows, dim, codes) = (40, 3, 2);
    let mut random = Random::new(2, "tight");
    let mut near = |at: f64, spread: f64| f64::from((at + spread * random.normal()) as f32);
    let mean: Vec<f64> = (0..rows * dim).map(|_| near(100.0, 0.01)).collect();
    let means: Vec<f64> = (0..codes * dim).map(|_| near(100.0, 0.01)).collect();
    let weights: Vec<f64> = (0..rows * codes).map(|_| near(0.5, 0.1)).collect();
    let mut expected = vec![0.0; codes * dim];
    for (point, weight) in mean.chunks(dim).zip(weights.chunks(codes)) {
        for (entry, sum) in expected.iter_mut().enumerate() {
            *sum += weight[entry / dim] * (point[entry % dim] - means[entry]).powi(2);
        }
    }
    let narrow = |values: Vec<f64>, shape: [usize; 2]| constant(values, shape, &device(), DType::F32);
    // Standard deviations of 1e-5, the least there are.
    let head = [narrow(mean, [rows, dim]), narrow(vec![-1e3; rows * dim], [rows, dim])];
    let encoding = Encoding::new(Tensor::cat(head.to_vec(), 1), dim, Covariance::Diagonal);
    let (weights, means) = (narrow(weights, [rows, codes]), narrow(means, [codes, dim]));
    let found = values(moments(&encoding, weights, means, Covariance::Diagonal).1);
    let error = difference(&found, &expected);
    assert!(error < STORED_AS_F32, "{error:e}");
}

/// u summed over rows for head outputs `head` `[rows, outputs]`, π_x as given.
fn total(
    head: Tensor<2>,
    dim: usize,
    kind: Covariance,
    codes: &Codes,
    assignment: &Tensor<2>,
    noise: &Tensor<2>,
) -> Tensor<1> {
    let encoding = Encoding::new(head, dim, kind);
    let u = uncertainty(assignment.clone(), divergence::kl(&encoding, codes)).sum();
    // A smooth function of the sample, so that the root's gradient is checked too.
    u + encoding.sample(noise.clone()).sin().sum()
}

/// Largest difference between autodiff and central differences, relative to the largest gradient.
fn gradient_error(head: &[f64], rows: usize, dim: usize, kind: Covariance) -> f64 {
    let outputs = kind.outputs(dim);
    let mut random = Random::new(5, "gradient");
    let mut normals = |count: usize| (0..count).map(|_| random.normal()).collect::<Vec<_>>();
    let mut book = Codebook::new(normals(2 * dim).iter().map(|&v| v as f32).collect(), dim, kind);
    book.priors = vec![0.3, 0.7];
    let codes = book.tensors(&device(), DType::F64);
    let assignment = wide(vec![0.4; rows * 2], [rows, 2]);
    let noise = wide(normals(rows * dim), [rows, dim]);
    let leaf = wide(head.to_vec(), [rows, outputs]).autodiff().require_grad();
    let (tracked, constants) =
        (codes.clone().tracked(), [assignment.clone().autodiff(), noise.clone().autodiff()]);
    let gradients = total(leaf.clone(), dim, kind, &tracked, &constants[0], &constants[1]).backward();
    let found = values(leaf.grad(&gradients).unwrap());
    assert!(found.iter().all(|g| g.is_finite()));
    let step = 1e-5;
    let expected: Vec<f64> = (0..head.len())
        .map(|i| {
            let at = |delta: f64| {
                let mut moved = head.to_vec();
                moved[i] += delta;
                total(wide(moved, [rows, outputs]), dim, kind, &codes, &assignment, &noise)
                    .into_scalar::<f64>()
            };
            (at(step) - at(-step)) / (2.0 * step)
        })
        .collect();
    difference(&found, &expected)
}

#[test]
fn gradients_match_finite_differences() {
    for (kind, dim) in [
        (Covariance::Diagonal, 3),
        (Covariance::Spectral, 3),
        (Covariance::Spectral, 4),
        (Covariance::Cholesky, 4),
    ] {
        let rows = 5;
        let mut random = Random::new(9, "head");
        let head: Vec<f64> = (0..rows * kind.outputs(dim)).map(|_| 2.0 * random.normal()).collect();
        let error = gradient_error(&head, rows, dim, kind);
        assert!(error < 1e-6, "{kind:?} {dim}: {error:e}");
    }
}

#[test]
fn repeated_eigenvalues_have_finite_and_right_gradients() {
    // A = 3I, A = −3I, and diag(4, 4, −4): off the kink at 0, where f is smooth.
    let dim = 3;
    let mut head = Vec::new();
    for diagonal in [[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0], [4.0, 4.0, -4.0]] {
        head.extend([0.1, -0.2, 0.3, diagonal[0], 0.0, diagonal[1], 0.0, 0.0, diagonal[2]]);
    }
    let error = gradient_error(&head, 3, dim, Covariance::Spectral);
    assert!(error < 1e-6, "{error:e}");
    // At the kink the derivative is one-sided, but never NaN.
    let zero = wide(vec![0.0; 9], [1, 9]).autodiff().require_grad();
    let encoding = Encoding::new(zero.clone(), dim, Covariance::Spectral);
    let gradients = (encoding.cov().sum() + encoding.log_det.sum()).backward();
    assert!(values(zero.grad(&gradients).unwrap()).iter().all(|g| g.is_finite()));
}

#[test]
fn eigen_decompositions_reconstruct_their_matrices() {
    for dim in [1, 2, 3, 5, 8] {
        let batch = 7;
        let mut random = Random::new(dim as u64, "matrices");
        let raw: Vec<f64> = (0..batch * dim * dim).map(|_| 3.0 * random.normal()).collect();
        let raw = wide(raw, [batch, dim, dim]);
        let a = raw.clone() + raw.transpose();
        let (values_, vectors) = spectral::eigen(a.clone());
        let scaled = vectors.clone() * values_.unsqueeze_dim::<3>(1);
        let again = scaled.matmul(vectors.clone().transpose());
        assert!(difference(&values(again), &values(a.clone())) < 1e-12, "dim {dim}");
        let gram = values(vectors.clone().transpose().matmul(vectors));
        let identity: Vec<f64> =
            (0..batch * dim * dim).map(|i| f64::from(u8::from(i / dim % dim == i % dim))).collect();
        assert!(difference(&gram, &identity) < 1e-12, "dim {dim}");
    }
}

#[test]
fn stored_codes_agree_with_golden_precisions() {
    let Some(mut golden) =
        Golden::open("stored_codes_agree_with_golden_precisions", "a_full_d8_k10_in640.npz")
    else {
        return;
    };
    let mut book = Codebook::new(
        golden.numbers("centroid_means").iter().map(|&v| v as f32).collect(),
        8,
        Covariance::Spectral,
    );
    book.covs = golden.numbers("centroid_cov").iter().map(|&v| v as f32).collect();
    let expected = (golden.numbers("centroid_prec"), golden.numbers("centroid_logdet"));
    for code in 0..10 {
        let (precision, log_det) = book.precision(code);
        assert!(difference(&precision, &expected.0[code * 64..(code + 1) * 64]) < STORED_AS_F32);
        assert!((log_det - expected.1[code]).abs() < STORED_AS_F32);
    }
}

#[test]
fn shrinkage_pools_and_rounds() {
    let mut book = Codebook::new(vec![0.0; 4], 2, Covariance::Cholesky);
    // Two codes with weights 1 and 3: Σ = [4 1; 1 2] and [0 0; 0 8]; pooled [1 ¼; ¼ 6½].
    let sums = [4.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 24.0];
    book.set_covs(&sums, &[1.0, 3.0], Shrinkage { pooled: 1.0, ridge: 0.0 });
    assert_eq!(book.covs[..4], book.covs[4..]);
    assert!((book.covs[0] - 1.0).abs() < 1e-6 && (book.covs[3] - 6.5).abs() < 1e-6, "{:?}", book.covs);
    book.set_covs(&sums, &[1.0, 3.0], Shrinkage { pooled: 0.0, ridge: 0.5 });
    assert!((book.covs[0] - 5.5).abs() < 1e-6 && (book.covs[1] - 1.0).abs() < 1e-6, "{:?}", book.covs);
    assert!(book.precision(1).1.is_finite(), "a flat code has a volume");
    let kept = book.covs[4..].to_vec();
    book.set_covs(
        &[4.0, 1.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0],
        &[1.0, 0.0],
        Shrinkage { pooled: 0.0, ridge: 0.0 },
    );
    assert_eq!(book.covs[4..], kept, "a code that nobody uses stays as it is");
}

#[test]
fn expanded_distances_are_the_same_distances() {
    let Some(mut golden) = Golden::open("expanded_distances_are_the_same_distances", "b_diag_d80_k1000.npz")
    else {
        return;
    };
    let head = wide(golden.numbers("head"), [64, 160]).slice([0..48, 0..160]);
    let mut codes = golden_codes(&mut golden, 80, 1000, false);
    codes.expand = true;
    let expected = &golden.numbers("kl")[..48 * 1000];
    let encoding = Encoding::new(head.clone().autodiff(), 80, Covariance::Diagonal);
    let distances = divergence::kl(&encoding, &codes);
    assert!(entrywise(&values(distances.clone()), expected) < SAME);
    let u = uncertainty(codes.assign(&distances, 2.0), distances);
    let gradients = u.mean().backward();
    let means = values(codes.means.grad(&gradients).unwrap());
    assert!(difference(&means, &golden.numbers("grad_means")) < SAME);
}

#[test]
fn a_prior_has_a_floor_and_saturated_distances_still_assign() {
    let mut book = Codebook::new(vec![0.0, 1.0], 1, Covariance::Diagonal);
    book.set_priors(&[1.0, 0.0], 0.01);
    assert!(book.priors[1] > 0.004 && (book.priors.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    assert_eq!(book.dead(0.02), [1]);
    let codes = book.tensors(&device(), DType::F32);
    let far = Tensor::<2>::from_data([[f32::MAX, f32::MAX], [0.0, f32::MAX]], &device());
    let assignment = values(codes.assign(&far, 5.0));
    assert!(assignment.iter().all(|p| p.is_finite()), "{assignment:?}");
    assert!((assignment[2] - 1.0).abs() < 1e-6);
}
