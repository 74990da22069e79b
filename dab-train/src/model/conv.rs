//! Convolution and batch normalisation, the two learnt parts of an image network.
//!
//! ```text
//! conv   y = W ∗ x                                                    no bias
//! norm   y = (x − mean) / √(variance + 1e-5) · scale + shift          per channel
//! ```
//!
//! Parameters are matrices, as everywhere in the trainer: a kernel is `[outputs, inputs · k · k]` and takes its four
//! dimensions in the forward pass. A norm uses the batch's statistics while it learns and hands them out, so that
//! replicas of a network can share them; it uses the running ones everywhere else.
//!
//! ```text
//! parts      n = Σ n_p     mean = r + Σ n_p (mean_p − r) / n     variance = Σ n_p (variance_p + (mean_p − r)²) / n − (mean − r)²
//! ```
//!
//! Sums alone go from part to part, so it does not matter who adds them; about r, the running mean, they lose no digits.

use burn::tensor::{DType, Device, Tensor, TensorData, module::conv2d, ops::ConvOptions};

use crate::support::random::Random;

/// Keeps the root positive: PyTorch's, and the published networks'.
const EPSILON: f64 = 1e-5;
/// How much of a running statistic one batch replaces.
const NEW_SHARE: f64 = 0.1;

/// Mean and unbiased variance `[1, channels]` of one norm's batch, and of how many numbers they are, `[1, 1]`.
pub type Statistics = [Tensor<2>; 3];

/// Statistics of a part of a batch as sums about `reference` `[1, channels]`, which those of other parts can be added to.
#[must_use]
pub fn sums([mean, variance, count]: Statistics, reference: &Tensor<2>) -> Statistics {
    let offset = mean - reference.clone();
    let fewer = count.clone().sub_scalar(1.0).clamp_min(1.0);
    let biased = variance * fewer / count.clone();
    [offset.clone() * count.clone(), (biased + offset.square()) * count.clone(), count]
}

/// Statistics of the batch whose parts' [`sums`] were added.
#[must_use]
pub fn from_sums([offset, square, count]: Statistics, reference: &Tensor<2>) -> Statistics {
    let offset = offset / count.clone();
    let biased = (square / count.clone() - offset.clone().square()).clamp_min(0.0);
    let fewer = count.clone().sub_scalar(1.0).clamp_min(1.0);
    [offset + reference.clone(), biased * count.clone() / fewer, count]
}

/// A convolution without bias.
#[derive(Clone, Debug)]
pub struct Conv {
    /// `[outputs, inputs · kernel²]`.
    pub weight: Tensor<2>,
    /// Input channels.
    pub inputs: usize,
    /// Side of the kernel, odd.
    pub kernel: usize,
    /// Step in both directions.
    pub stride: usize,
}

/// Batch normalisation.
#[derive(Clone, Debug)]
pub struct Norm {
    /// `[1, channels]`, learnt.
    pub scale: Tensor<2>,
    /// `[1, channels]`, learnt.
    pub shift: Tensor<2>,
    /// Running mean `[1, channels]`.
    pub mean: Tensor<2>,
    /// Running variance `[1, channels]`.
    pub variance: Tensor<2>,
}

/// Where kernels come from.
#[derive(Debug)]
pub enum InitialWeights<'a> {
    /// He normal with a variance of 2 / (inputs · k²), cut at two standard deviations (Keras' `he_normal`).
    Random(&'a mut Random),
    /// Zero: for counting, or to be overwritten by a file's numbers.
    Zero,
}

impl Conv {
    /// A convolution that keeps the size of an image, but for its stride.
    #[must_use]
    pub fn new(
        [inputs, outputs]: [usize; 2],
        kernel: usize,
        stride: usize,
        source: &mut InitialWeights,
        device: &Device,
    ) -> Self {
        let columns = inputs * kernel * kernel;
        let weight = match source {
            InitialWeights::Zero => Tensor::zeros([outputs, columns], device),
            InitialWeights::Random(random) => {
                let std = (2.0 / columns as f64).sqrt();
                let draw = |_| (std * random.cut_normal()) as f32;
                let values: Vec<f32> = (0..outputs * columns).map(draw).collect();
                Tensor::from_data(TensorData::new(values, [outputs, columns]), device)
            }
        };
        Self { weight, inputs, kernel, stride }
    }

    /// Output channels.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.weight.dims()[0]
    }

    /// `[batch, inputs, h, w]` → `[batch, outputs, ⌈h / stride⌉, ⌈w / stride⌉]`, multiplied in `precision` and
    /// returned as it came.
    #[must_use]
    pub fn forward(&self, x: Tensor<4>, precision: DType) -> Tensor<4> {
        let own = x.dtype();
        let weight = self.weight.clone().reshape([self.outputs(), self.inputs, self.kernel, self.kernel]);
        let options = ConvOptions::new([self.stride; 2], [self.kernel / 2; 2], [1; 2], 1);
        if own == precision {
            return conv2d(x, weight, None, options);
        }
        conv2d(x.cast(precision), weight.cast(precision), None, options).cast(own)
    }
}

impl Norm {
    /// The identity on inputs of mean 0 and variance 1.
    #[must_use]
    pub fn new(channels: usize, device: &Device) -> Self {
        let plain = device.clone().without_autodiff();
        Self {
            scale: Tensor::ones([1, channels], device),
            shift: Tensor::zeros([1, channels], device),
            mean: Tensor::zeros([1, channels], &plain),
            variance: Tensor::ones([1, channels], &plain),
        }
    }

    /// Normalises by the running statistics, or, with `taken`, by the batch's, which are added to it.
    #[must_use]
    pub fn forward(&self, x: Tensor<4>, taken: Option<&mut Vec<Statistics>>) -> Tensor<4> {
        let [batch, channels, height, width] = x.dims();
        let (mean, variance) = match taken {
            None => (self.mean.clone(), self.variance.clone()),
            Some(taken) => {
                let mean_of = |x: Tensor<4>| {
                    let by_channel = x.reshape([batch, channels, height * width]).mean_dim(2);
                    by_channel.reshape([batch, channels]).mean_dim(0)
                };
                let mean = mean_of(x.clone()); // [1, channels]
                let offset = x.clone() - mean.clone().reshape([1, channels, 1, 1]);
                let variance = mean_of(offset.square());
                let count = batch * height * width;
                let unbiased = variance.clone().mul_scalar(count as f64 / (count.max(2) - 1) as f64);
                let of = mean.clone().narrow(1, 0, 1).full_like(count as f64); // [1, 1]
                taken.push([mean.clone(), unbiased, of].map(Tensor::without_autodiff));
                (mean, variance)
            }
        };
        let factor = self.scale.clone() / variance.add_scalar(EPSILON).sqrt();
        let shift = self.shift.clone() - mean * factor.clone();
        x * factor.reshape([1, channels, 1, 1]) + shift.reshape([1, channels, 1, 1])
    }

    /// Moves the running statistics towards a batch's.
    pub fn absorb(&mut self, [mean, variance, _]: Statistics) {
        let blend = |old: &Tensor<2>, new: Tensor<2>| {
            old.clone().mul_scalar(1.0 - NEW_SHARE) + new.mul_scalar(NEW_SHARE)
        };
        self.mean = blend(&self.mean, mean);
        self.variance = blend(&self.variance, variance);
    }
}
