//! The layers of the processor against burn's, which compute in f64 here.

use burn::tensor::{activation, module::conv2d, ops::ConvOptions};

use super::*;
use crate::{
    model::{
        codebook::{Codebook, Codes},
        divergence,
        encoder::{Covariance, Encoding},
        tests::traced,
    },
    support::random::Random,
};

/// Of the largest number: roundings of a sum of some thousand f32.
const RELATIVE: f64 = 2e-6;

fn noise<const D: usize>(seed: u64, shape: [usize; D], dtype: DType) -> Tensor<D> {
    let mut random = Random::new(seed, "noise");
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| random.normal() as f32).collect();
    let device = Device::flex().autodiff();
    Tensor::<D>::from_data(TensorData::new(values, shape), &device).cast(dtype)
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// A layer's values, and the gradients of their product with noise.
fn both<const N: usize>(
    dtype: DType,
    shapes: [Vec<usize>; N],
    layer: impl Fn([Tensor<4>; N]) -> Tensor<4>,
) -> Vec<Vec<f64>> {
    let mut seed = 0;
    let given = shapes.map(|shape| {
        seed += 1;
        noise(seed, <[usize; 4]>::try_from(shape).unwrap(), dtype)
    });
    traced(given, layer, |y| y.clone() * noise(9, y.dims(), dtype))
}

#[track_caller]
fn assert_close(found: &[Vec<f64>], wanted: &[Vec<f64>], of: &str) {
    assert_eq!(found.len(), wanted.len());
    for (which, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert_eq!(found.len(), wanted.len(), "{of}, {which}");
        let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.abs()));
        let far = found.iter().zip(wanted).find(|(a, b)| {
            let near = (*a - *b).abs() <= RELATIVE * size;
            !near
        });
        assert!(size > 0.0 && far.is_none(), "{of}, {which}: {far:?}, largest {size}");
    }
}

fn convolution(dtype: DType, of: Geometry, batch: usize, ours: bool) -> Vec<Vec<f64>> {
    let Geometry { inputs, outputs, kernel, stride, size: [height, width] } = of;
    let shapes = [vec![batch, inputs, height, width], vec![outputs, inputs, kernel, kernel]];
    both(dtype, shapes, |[x, weight]| match ours {
        true => convolve(x, weight.reshape([outputs, inputs * kernel * kernel]), of),
        false => conv2d(x, weight, None, ConvOptions::new([stride; 2], [kernel / 2; 2], [1; 2], 1)),
    })
}

#[test]
fn convolutions_and_their_gradients_are_burns() {
    let mut seen = 0;
    for (kernel, stride) in [(1, 1), (1, 2), (3, 1), (3, 2), (5, 2), (7, 2)] {
        for (inputs, outputs) in [(1, 1), (3, 16), (6, 5), (16, 9)] {
            for size in [[1, 1], [8, 8], [9, 6], [7, 33]] {
                let of = Geometry { inputs, outputs, kernel, stride, size };
                assert!(of.fits());
                // More images than are added up together.
                let batch = if size == [8, 8] { 70 } else { 3 };
                let wanted = convolution(DType::F64, of, batch, false);
                assert_close(&convolution(DType::F32, of, batch, true), &wanted, &format!("{of:?}"));
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 96);
}

#[test]
fn wide_kernels_and_large_strides_are_left_to_burn() {
    let of = Geometry { inputs: 16, outputs: 16, kernel: 3, stride: 1, size: [8, 8] };
    assert!(of.fits());
    assert!(!Geometry { stride: 3, ..of }.fits());
    assert!(!Geometry { kernel: 2, ..of }.fits());
    assert!(!Geometry { inputs: 640, outputs: 640, ..of }.fits());
}

#[test]
fn threads_do_not_change_a_bit() {
    let of = Geometry { inputs: 5, outputs: 6, kernel: 3, stride: 1, size: [8, 8] };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| convolution(DType::F32, of, 100, true))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn norms_and_their_gradients_are_those_of_the_formula() {
    /// As in PyTorch.
    const EPSILON: f64 = 1e-5;
    for (batch, channels, size, relu) in
        [(5, 3, [4, 6], false), (4, 2, [5, 5], true), (16, 4, [1, 1], true), (3, 1, [32, 32], false)]
    {
        let shapes =
            [vec![batch, channels, size[0], size[1]], vec![1, channels, 1, 1], vec![1, channels, 1, 1]];
        let offset = |x: Tensor<4>| x.mul_scalar(3.0).add_scalar(2.0);
        let wanted = both(DType::F64, shapes.clone(), |[x, scale, shift]| {
            let x = offset(x);
            let mean = |x: Tensor<4>| x.mean_dim(0).mean_dim(2).mean_dim(3);
            let centred = x.clone() - mean(x);
            let variance = mean(centred.clone().square());
            let y = centred / variance.add_scalar(EPSILON).sqrt() * scale + shift;
            if relu { activation::relu(y) } else { y }
        });
        let found = both(DType::F32, shapes, |[x, scale, shift]| {
            let x = offset(x);
            let flat = [scale, shift].map(|tensor| tensor.reshape([1, channels]));
            let statistics = statistics(&x);
            normalise(x, flat, statistics, EPSILON, relu)
        });
        assert_close(&found, &wanted, &format!("{batch} {channels} {size:?} {relu}"));
    }
}

#[test]
fn statistics_far_from_zero_lose_no_digits() {
    let x = noise(3, [6, 2, 16, 16], DType::F32).mul_scalar(0.01).add_scalar(1000.0);
    let exact = x.clone().cast(DType::F64).swap_dims(0, 1).reshape([2, 6 * 256]);
    let mean = exact.clone().mean_dim(1);
    let variance = (exact - mean.clone()).square().mean_dim(1);
    let [found_mean, found_variance] = statistics(&x).map(numbers);
    for (found, wanted) in found_mean.iter().zip(numbers(mean)) {
        assert!((found / wanted - 1.0).abs() < 1e-7, "{found} {wanted}");
    }
    for (found, wanted) in found_variance.iter().zip(numbers(variance)) {
        assert!((found / wanted - 1.0).abs() < 1e-5, "{found} {wanted}");
    }
}

/// Codes with full covariances that lie apart.
fn codes(count: usize, dim: usize, dtype: DType) -> Codes {
    let mut random = Random::new(4, "codes");
    let means = (0..count * dim).map(|_| random.normal() as f32).collect();
    let mut book = Codebook::new(means, dim, Covariance::Spectral);
    for (entry, value) in book.covs.iter_mut().enumerate() {
        let (row, column) = (entry / dim % dim, entry % dim);
        *value = if row == column { 0.5 + 0.1 * (entry % 7) as f32 } else { 0.1 / dim as f32 };
    }
    let priors: Vec<f64> = (1..=count).map(|code| code as f64).collect();
    book.set_priors(&priors, 0.0);
    book.tensors(&Device::flex(), dtype).tracked()
}

/// The head's numbers → root and ln|Σ| in one matrix, and the gradients of their product with noise.
fn spectral_root(rows: usize, dim: usize, spread: f64, dtype: DType) -> Vec<Vec<f64>> {
    let given = noise(7, [rows, Covariance::Spectral.outputs(dim)], dtype).mul_scalar(spread);
    let layer = |[head]: [Tensor<2>; 1]| {
        let [mean, root, log_det] = Encoding::new(head, dim, Covariance::Spectral).into_list();
        Tensor::cat(vec![mean, root, log_det], 1)
    };
    traced([given], layer, |y| y.clone() * noise(9, y.dims(), dtype))
}

#[test]
fn roots_and_their_gradients_are_those_of_the_tensors() {
    // Fewer rows than lanes, as many, and some blocks of them; eigenvalues near 0, around the kink of softplus, and far beyond.
    for (rows, dim) in [(1, 4), (8, 3), (27, 4), (11, 8), (5, 1)] {
        for spread in [0.1, 3.0, 20.0] {
            let wanted = spectral_root(rows, dim, spread, DType::F64);
            assert_close(
                &spectral_root(rows, dim, spread, DType::F32),
                &wanted,
                &format!("{rows} {dim} {spread}"),
            );
        }
    }
}

#[test]
fn repeated_eigenvalues_have_the_gradients_of_the_tensors() {
    let found = [DType::F32, DType::F64].map(|dtype| {
        // A = 3 I, 0, and one whose eigenvalues are tied but not equal.
        let rows = [[3.0, 0.0, 3.0], [0.0, 0.0, 0.0], [7.0, 1e-4, 7.0001]];
        let head = rows.map(|[a, b, c]| [0.1, -0.2, a, b, c]);
        let device = Device::flex().autodiff();
        let head = Tensor::<2>::from_data(head, &device).cast(dtype);
        let layer = |[head]: [Tensor<2>; 1]| {
            let [mean, root, log_det] = Encoding::new(head, 2, Covariance::Spectral).into_list();
            Tensor::cat(vec![mean, root, log_det], 1)
        };
        traced([head], layer, |y| y.clone() * noise(9, y.dims(), dtype))
    });
    assert_close(&found[0], &found[1], "tied");
}

#[test]
fn distances_and_their_gradients_are_those_of_the_tensors() {
    for (rows, dim, count) in [(1, 1, 1), (16, 4, 2), (37, 4, 3), (21, 8, 10)] {
        let both = [DType::F32, DType::F64].map(|dtype| {
            let head = noise(7, [rows, Covariance::Cholesky.outputs(dim)], dtype).mul_scalar(2.0);
            let Codes { means, .. } = codes(count, dim, dtype);
            let layer = |[head, means]: [Tensor<2>; 2]| {
                let encoding = Encoding::new(head, dim, Covariance::Cholesky);
                divergence::kl(&encoding, &Codes { means, ..codes(count, dim, dtype) })
            };
            traced([head, means], layer, |y| y.clone() * noise(9, y.dims(), dtype))
        });
        assert_close(&both[0], &both[1], &format!("{rows} {dim} {count}"));
    }
}

#[test]
fn many_codes_and_dimensions_are_left_to_matrix_products() {
    assert!(bottleneck::fits(2, 4) && bottleneck::fits(10, 8) && bottleneck::fits(16, 16));
    assert!(!bottleneck::fits(17, 16) && !bottleneck::fits(1, 17));
}

#[test]
fn assignments_are_those_of_the_tensors() {
    for (rows, count) in [(1, 1), (5, 2), (9, 37)] {
        let both = [DType::F32, DType::F64].map(|dtype| {
            let distances = noise(3, [rows, count], dtype).mul_scalar(10.0);
            numbers(codes(count, 2, dtype).assign(&distances, 1.5))
        });
        assert_close(&both[..1], &both[1..], &format!("{rows} {count}"));
    }
}
