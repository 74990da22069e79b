//! Convolution and batch normalisation, the two learnt parts of an image network.
//!
//! ```text
//! conv   y = W ∗ x                                                    no bias
//! norm   y = (x − mean) / √(variance + 1e-5) · scale + shift          per channel
//! ```
//!
//! Parameters are matrices, as everywhere in the trainer: a kernel is `[outputs, inputs · k · k]` and takes its four
//! dimensions in the forward pass. A norm uses the batch's statistics while it learns and hands them out; it uses the running
//! ones everywhere else. Replicas of a network that have a part of the batch each use the statistics of their part, and then add
//! them up for the running ones:
//!
//! ```text
//! n = Σ n_p     mean = r + Σ n_p (mean_p − r) / n     variance = Σ n_p (variance_p + (mean_p − r)²) / n − (mean − r)²
//! ```
//!
//! Sums alone go from part to part, so it does not matter who adds them; about r, the running mean, they lose no digits. Or all
//! parts go through a norm together (`training.synchronised_norms`), by the statistics of the whole batch.

use burn::tensor::{DType, Device, Tensor, TensorData, activation::relu, module::conv2d, ops::ConvOptions};

use super::{cpu, rounded};
use crate::support::random::Random;

/// Keeps the root positive: PyTorch's, and the published networks'.
const EPSILON: f64 = 1e-5;
/// How much of a running statistic one batch replaces.
const NEW_SHARE: f64 = 0.1;

/// Mean and unbiased variance `[1, channels]` of one norm's batch, and of how many numbers they are, `[1, 1]`.
pub type Statistics = [Tensor<2>; 3];

/// Statistics of a part of a batch as sums about `reference` `[1, channels]`, which those of other parts can be added to.
pub fn sums([mean, variance, count]: Statistics, reference: &Tensor<2>) -> Statistics {
    let offset = mean - reference.clone();
    let fewer = count.clone().sub_scalar(1.0).clamp_min(1.0);
    let biased = variance * fewer / count.clone();
    [offset.clone() * count.clone(), (biased + offset.square()) * count.clone(), count]
}

/// Statistics of the batch whose parts' [`sums`] were added.
pub fn from_sums([offset, square, count]: Statistics, reference: &Tensor<2>) -> Statistics {
    let offset = offset / count.clone();
    let biased = (square / count.clone() - offset.clone().square()).clamp_min(0.0);
    let fewer = count.clone().sub_scalar(1.0).clamp_min(1.0);
    [offset + reference.clone(), biased * count.clone() / fewer, count]
}

/// In which numbers convolutions multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Of this type.
    Type(DType),
    /// f32, rounded to 10 bits of mantissa by the matrix units of a GPU.
    Tf32,
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
    pub fn outputs(&self) -> usize {
        self.weight.dims()[0]
    }

    /// `[batch, inputs, h, w]` → `[batch, outputs, ⌈h / stride⌉, ⌈w / stride⌉]`, multiplied in `precision` and
    /// returned as it came.
    pub fn forward(&self, x: Tensor<4>, precision: Precision) -> Tensor<4> {
        let own = x.dtype();
        let [_, inputs, height, width] = x.dims();
        let (outputs, kernel, stride) = (self.outputs(), self.kernel, self.stride);
        let of = cpu::Geometry { inputs, outputs, kernel, stride, size: [height, width] };
        if precision == Precision::Type(own) && cpu::is_ours(&x) && of.fits() {
            return cpu::convolve(x, self.weight.clone(), of);
        }
        let weight = self.weight.clone().reshape([self.outputs(), self.inputs, self.kernel, self.kernel]);
        let options = ConvOptions::new([self.stride; 2], [self.kernel / 2; 2], [1; 2], 1);
        match precision {
            Precision::Tf32 => rounded::convolve(x, weight, options),
            Precision::Type(own_type) if own_type == own => conv2d(x, weight, None, options),
            Precision::Type(other) => conv2d(x.cast(other), weight.cast(other), None, options).cast(own),
        }
    }
}

impl Norm {
    /// The identity on inputs of mean 0 and variance 1.
    pub fn new(channels: usize, device: &Device) -> Self {
        let plain = device.clone().without_autodiff();
        Self {
            scale: Tensor::ones([1, channels], device),
            shift: Tensor::zeros([1, channels], device),
            mean: Tensor::zeros([1, channels], &plain),
            variance: Tensor::ones([1, channels], &plain),
        }
    }

    /// Normalises by the running statistics, or, with `taken`, by the batch's, which are added to it; then sets what is negative to
    /// zero, if so wanted. The batch may be in parts, each on its own device with its own copy of the norm; its statistics are those
    /// of all parts.
    pub fn forward(
        parts: &[&Self],
        xs: Vec<Tensor<4>>,
        taken: Option<&mut Vec<Statistics>>,
        positive: bool,
    ) -> Vec<Tensor<4>> {
        let parts = parts.iter().zip(xs);
        let Some(taken) = taken else {
            let by_running = |(norm, x): (&&Self, Tensor<4>)| {
                let statistics = [norm.mean.clone(), norm.variance.clone()];
                // One operation, unless somebody wants the gradients of a norm with fixed statistics.
                let learns = x.is_tracked() || norm.scale.is_tracked() || norm.shift.is_tracked();
                if cpu::is_ours(&x) && !learns {
                    return norm.on_cpu(x, statistics, positive);
                }
                norm.apply(x, statistics, positive)
            };
            return parts.map(by_running).collect();
        };
        let parts: Vec<(&&Self, Tensor<4>)> = parts.collect();
        let count_of = |x: &Tensor<4>| x.dims()[0] * x.dims()[2] * x.dims()[3];
        let count: usize = parts.iter().map(|(_, x)| count_of(x)).sum();
        let mut take = |mean: &Tensor<2>, variance: &Tensor<2>| {
            let unbiased = variance.clone().mul_scalar(count as f64 / (count.max(2) - 1) as f64);
            let of = mean.clone().narrow(1, 0, 1).full_like(count as f64); // [1, 1]
            taken.push([mean.clone(), unbiased, of].map(Tensor::without_autodiff));
        };
        if let [(norm, x)] = parts.as_slice()
            && cpu::is_ours(x)
        {
            let [mean, variance] = cpu::statistics(x);
            take(&mean, &variance);
            return vec![norm.on_cpu(x.clone(), [mean, variance], positive)];
        }
        // The mean over all parts, on the first one's device.
        let mean_of = |each: &dyn Fn(&Tensor<4>) -> Tensor<4>| {
            let mut means =
                parts.iter().map(|(_, x)| (pixel_mean(each(x)), count_of(x) as f64 / count as f64));
            let (first, share) = means.next().expect("a batch has parts");
            if parts.len() == 1 {
                return first;
            }
            let home = first.device();
            let add = |sum: Tensor<2>, (mean, share): (Tensor<2>, f64)| {
                sum + mean.to_device(&home).mul_scalar(share)
            };
            means.fold(first.mul_scalar(share), add)
        };
        let there = |of: &Tensor<2>, x: &Tensor<4>| {
            if parts.len() == 1 { of.clone() } else { of.clone().to_device(&x.device()) }
        };
        let mean = mean_of(&Tensor::clone); // [1, channels]
        let channels = mean.dims()[1];
        let variance = mean_of(&|x| (x.clone() - there(&mean, x).reshape([1, channels, 1, 1])).square());
        take(&mean, &variance);
        let by_batch = |(norm, x): &(&&Self, Tensor<4>)| {
            norm.apply(x.clone(), [there(&mean, x), there(&variance, x)], positive)
        };
        parts.iter().map(by_batch).collect()
    }

    fn apply(&self, x: Tensor<4>, [mean, variance]: [Tensor<2>; 2], positive: bool) -> Tensor<4> {
        let channels = mean.dims()[1];
        let factor = self.scale.clone() / variance.add_scalar(EPSILON).sqrt();
        let shift = self.shift.clone() - mean * factor.clone();
        let y = x * factor.reshape([1, channels, 1, 1]) + shift.reshape([1, channels, 1, 1]);
        if positive { relu(y) } else { y }
    }

    /// The same on the processor, where statistics have the gradients of the batch's.
    fn on_cpu(&self, x: Tensor<4>, statistics: [Tensor<2>; 2], positive: bool) -> Tensor<4> {
        let learnt = [self.scale.clone(), self.shift.clone()];
        cpu::normalise(x, learnt, statistics, EPSILON, positive)
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

/// The mean of each channel over images and pixels `[1, channels]`.
fn pixel_mean(x: Tensor<4>) -> Tensor<2> {
    let [batch, channels, height, width] = x.dims();
    let by_channel = x.reshape([batch, channels, height * width]).mean_dim(2);
    by_channel.reshape([batch, channels]).mean_dim(0)
}
