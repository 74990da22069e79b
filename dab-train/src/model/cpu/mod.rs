//! What the processor computes in loops of our own, in f32. burn's convolutions and norms take three times as long as PyTorch's,
//! and a small model spends its time between hundreds of operations on tiny tensors.
//!
//! ```text
//! convolve      W ∗ x                                        taps.rs
//! normalise     norm by the batch, activation behind it      norm.rs
//! bottleneck    roots, distances, assignments                bottleneck.rs, root.rs, distances.rs
//! update        steps of the optimisers                      update.rs
//! ```
//!
//! All are operations of burn's `flex` backend and of its gradients. On other devices, and in other types, tensors are burn's.

pub mod bottleneck;
mod distances;
mod norm;
mod root;
mod taps;
pub mod update;

use burn::backend::{
    AutodiffBackend, Backend, Dispatch, Flex, TensorMetadata,
    autodiff::{
        Autodiff,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::{DType, Device, Tensor, TensorData};
use rayon::prelude::*;

use self::norm::{Map, Planes};
pub use self::taps::Geometry;

/// A tensor of the backend.
type Host = FloatTensor<Flex>;

/// Whether the layers here are made for this tensor.
pub fn is_ours<const D: usize>(x: &Tensor<D>) -> bool {
    x.dtype() == DType::F32 && x.device() == Device::flex()
}

/// The convolution of `x` `[batch, inputs, h, w]` with `weight` `[outputs, inputs · kernel²]`.
pub fn convolve(x: Tensor<4>, weight: Tensor<2>, of: Geometry) -> Tensor<4> {
    let found = <Dispatch as Layers>::taps(x.into_dispatch(), weight.into_dispatch(), of);
    Tensor::from_dispatch(found)
}

/// Mean and biased variance `[1, channels]` of the batch `x`, without gradients.
pub fn statistics(x: &Tensor<4>) -> [Tensor<2>; 2] {
    let found = <Dispatch as Layers>::moments(x.clone().without_autodiff().into_dispatch());
    let found = Tensor::<2>::from_dispatch(found);
    [found.clone().narrow(0, 0, 1), found.narrow(0, 1, 1)]
}

/// `x` normalised by [`statistics`], which are functions of `x` and have their gradients, then `relu` if it is wanted.
pub fn normalise(
    x: Tensor<4>,
    [scale, shift]: [Tensor<2>; 2],
    [mean, variance]: [Tensor<2>; 2],
    epsilon: f64,
    relu: bool,
) -> Tensor<4> {
    let [x, scale, shift] = [x.into_dispatch(), scale.into_dispatch(), shift.into_dispatch()];
    let [mean, variance] = [mean, variance].map(Tensor::into_dispatch);
    Tensor::from_dispatch(<Dispatch as Layers>::norm(x, scale, shift, mean, variance, epsilon, relu))
}

/// The layers as operations of a backend.
#[backend_extension(Autodiff, Flex)]
pub trait Layers: Backend {
    /// [`convolve`].
    fn taps(x: FloatTensor<Self>, weight: FloatTensor<Self>, of: Geometry) -> FloatTensor<Self>;
    /// Mean and biased variance `[2, channels]`.
    fn moments(x: FloatTensor<Self>) -> FloatTensor<Self>;
    /// [`normalise`].
    fn norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        epsilon: f64,
        relu: bool,
    ) -> FloatTensor<Self>;
}

fn tensor(values: Vec<f32>, shape: impl Into<Vec<usize>>) -> Host {
    Host::from_data(TensorData::new(values, shape.into()))
}

impl Layers for Flex {
    fn taps(x: Host, weight: Host, of: Geometry) -> Host {
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let batch = x.shape()[0];
        let [rows, cols] = of.result();
        let forward = taps::Forward::new(of, weight.storage());
        let (given, given_image) = (x.storage::<f32>(), of.inputs * of.size[0] * of.size[1]);
        let image = of.outputs * rows * cols;
        let mut y = vec![0.0; batch * image];
        let images = y.par_chunks_mut(image).zip(given.par_chunks(given_image));
        images.for_each_init(|| forward.work(), |work, (y, x)| forward.image(x, y, work));
        tensor(y, [batch, of.outputs, rows, cols])
    }

    fn moments(x: Host) -> Host {
        let x = x.to_contiguous();
        let planes = planes(&x);
        let found = planes.statistics(x.storage());
        let values = [0, 1].into_iter().flat_map(|which| found.iter().map(move |of| of[which])).collect();
        tensor(values, [2, planes.channels])
    }

    fn norm(x: Host, scale: Host, shift: Host, mean: Host, variance: Host, epsilon: f64, relu: bool) -> Host {
        Kept { x, scale, shift, mean, variance, epsilon, relu }.result()
    }
}

fn planes(x: &Host) -> Planes {
    let [_, channels, height, width] = x.shape().dims();
    Planes { channels, pixels: height * width }
}

/// The gradients of a convolution.
#[derive(Debug)]
struct TapsRule;

impl Backward<Flex, 2> for TapsRule {
    type State = (Host, Host, Geometry);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, weight_node] = ops.parents;
        let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (x, weight, of) = ops.state;
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let [rows, cols] = of.result();
        let (dy, image) = (dy.storage::<f32>(), of.outputs * rows * cols);
        let (x_values, x_image) = (x.storage::<f32>(), of.inputs * of.size[0] * of.size[1]);
        if let Some(node) = x_node {
            let backward = taps::Backward::new(of, weight.storage());
            let mut dx = vec![0.0; x_values.len()];
            let images = dx.par_chunks_mut(x_image).zip(dy.par_chunks(image));
            images.for_each_init(|| backward.work(), |work, (dx, dy)| backward.image(dy, dx, work));
            grads.register::<Flex>(node.id, tensor(dx, x.shape().to_vec()));
        }
        if let Some(node) = weight_node {
            let weights = taps::Weights::new(of);
            let some = weights.images();
            let parts = x_values.par_chunks(some * x_image).zip(dy.par_chunks(some * image));
            let parts: Vec<Vec<f32>> = parts.map(|(x, dy)| weights.images_sum(x, dy)).collect();
            let mut sum = vec![0.0; weight.shape().num_elements()];
            for part in parts {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            }
            grads.register::<Flex>(node.id, tensor(sum, weight.shape().to_vec()));
        }
    }
}

/// What a norm is made of, and what its gradients need.
#[derive(Clone, Debug)]
struct Kept {
    x: Host,
    scale: Host,
    shift: Host,
    mean: Host,
    variance: Host,
    epsilon: f64,
    relu: bool,
}

impl Kept {
    /// y.
    fn result(&self) -> Host {
        let x = self.x.to_contiguous();
        tensor(planes(&x).apply(x.storage(), &self.maps()), x.shape().to_vec())
    }

    /// One map a channel, of scale and shift given the mean and 1 / √(variance + ε).
    fn maps_of(&self, of: impl Fn(usize, f64, f64) -> [f64; 2]) -> Vec<Map> {
        let [mean, variance] = [&self.mean, &self.variance].map(Host::to_contiguous);
        let channels = mean.storage::<f32>().iter().zip(variance.storage::<f32>()).enumerate();
        let map = |(channel, (&mean, &variance)): (usize, (&f32, &f32))| {
            let inverse = 1.0 / (f64::from(variance) + self.epsilon).sqrt();
            let [factor, shift] = of(channel, f64::from(mean), inverse).map(|number| number as f32);
            Map { factor, shift, least: if self.relu { 0.0 } else { f32::NEG_INFINITY } }
        };
        channels.map(map).collect()
    }

    /// From x to y.
    fn maps(&self) -> Vec<Map> {
        let [scale, shift] = [&self.scale, &self.shift].map(Host::to_contiguous);
        let (scale, shift) = (scale.storage::<f32>(), shift.storage::<f32>());
        self.maps_of(|channel, mean, inverse| {
            let factor = f64::from(scale[channel]) * inverse;
            [factor, f64::from(shift[channel]) - mean * factor]
        })
    }

    /// From x to x̂.
    fn x_hats(&self) -> Vec<Map> {
        self.maps_of(|_, mean, inverse| [inverse, -mean * inverse])
    }
}

/// The gradients of a norm by the batch's statistics.
#[derive(Debug)]
struct NormRule;

impl Backward<Flex, 3> for NormRule {
    type State = Kept;

    fn backward(self, ops: Ops<Kept, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, scale_node, shift_node] = ops.parents;
        let (kept, dy) = (ops.state, grads.consume::<Flex>(&ops.node).to_contiguous());
        let x = kept.x.to_contiguous();
        let (dx, sums) = planes(&x).gradients(x.storage(), dy.storage(), &kept.maps(), &kept.x_hats());
        for (which, node) in [scale_node, shift_node].into_iter().enumerate() {
            if let Some(node) = node {
                let values = sums.iter().map(|of| of[which]).collect();
                grads.register::<Flex>(node.id, tensor(values, kept.scale.shape().to_vec()));
            }
        }
        if let Some(node) = x_node {
            grads.register::<Flex>(node.id, tensor(dx, x.shape().to_vec()));
        }
    }
}

impl<C: CheckpointStrategy> Layers for Autodiff<Flex, C> {
    fn taps(x: FloatTensor<Self>, weight: FloatTensor<Self>, of: Geometry) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let found = Flex::taps(x.clone(), weight.clone(), of);
        match TapsRule.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish((x, weight, of), found),
            OpsKind::UnTracked(prepared) => prepared.finish(found),
        }
    }

    fn moments(x: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::from_inner(Flex::moments(x.into_primitive()))
    }

    fn norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        epsilon: f64,
        relu: bool,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), scale.node(), shift.node()];
        let [x, scale, shift, mean, variance] =
            [x, scale, shift, mean, variance].map(|tensor| tensor.into_primitive());
        let kept = Kept { x, scale, shift, mean, variance, epsilon, relu };
        let found = kept.result();
        match NormRule.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(kept, found),
            OpsKind::UnTracked(prepared) => prepared.finish(found),
        }
    }
}

#[cfg(test)]
mod tests;
