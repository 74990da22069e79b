//! What one example costs, from an experiment's shapes alone: no data, no device.
//!
//! ```text
//! images   Σ_conv pixels · outputs · inputs · k²
//! layers   Σ inputs · outputs
//! own      F · head + k (entries + d) + 10 d³ (spectral) + d · outputs
//! ```
//!
//! Multiply-adds of a forward pass; a backward pass costs twice as much in every one of them.

use burn::tensor::Device;

use crate::{
    config::{Experiment, Rule},
    model::{
        conv::InitialWeights,
        encoder::Covariance,
        resnet::{CHANNELS, ResNet},
    },
};

/// An eigen-decomposition in d³: a few sweeps of Jacobi rotations.
const EIGEN: usize = 10;

/// What the memory pools of burn's GPU backend hold for every number that is kept: pages stay partly empty, and a backward pass
/// needs room for its own values. By the books of the CUDA stand-in (`tests/accelerators --images`) it is 1.34 for WRN-28-10 and
/// 1.14 for ResNet-50; this is the middle.
const POOLED: f64 = 1.25;

/// What one example costs in a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Multiply-adds of the image network, whether it learns or not.
    pub images: u64,
    /// Multiply-adds of the dense layers.
    pub layers: u64,
    /// Multiply-adds of the bottleneck: head, distances to every code, decoder.
    pub bottleneck: u64,
    /// Numbers that a step of what learns keeps for its backward pass.
    pub kept: u64,
}

/// What to tell when images are not of the size that the network was made for: they cost more, or show less.
pub fn odd_size(experiment: &Experiment, side: usize) -> Option<String> {
    let network = experiment.backbone.images.as_ref()?.network;
    let own = network.side();
    let adds = |side: usize| {
        ResNet::new(network, InitialWeights::Zero, &Device::flex()).cost(side, side).multiply_adds as f64
    };
    (side != own).then(|| {
        format!(
            "images are {side} × {side}, {network} was made for {own} × {own}: {:.2} G multiply-adds an image, {:.1} times as \
             many; unless this is meant, set data.side = {own}, or give images of that size",
            adds(side) / 1e9,
            adds(side) / adds(own)
        )
    })
}

impl Cost {
    /// An experiment's on `inputs` numbers (pixels, with an image network), with `outputs` numbers from the decoder.
    pub fn of(experiment: &Experiment, inputs: usize, outputs: usize) -> Self {
        let mut cost = Self { images: 0, layers: 0, bottleneck: 0, kept: 0 };
        let mut width = inputs;
        if let Some(images) = &experiment.backbone.images {
            let side = (inputs / CHANNELS).isqrt();
            let network = ResNet::new(images.network, InitialWeights::Zero, &Device::flex()).cost(side, side);
            cost.images = network.multiply_adds;
            cost.kept = if images.frozen { 0 } else { network.kept };
            width = images.network.features();
        }
        for layer in &experiment.backbone.layers {
            cost.layers += (width * layer.units) as u64;
            cost.kept += 2 * layer.units as u64;
            width = layer.units;
        }
        let bottleneck = &experiment.bottleneck;
        let (dim, codes, head) =
            (bottleneck.dim, bottleneck.codes, bottleneck.covariance.outputs(bottleneck.dim));
        let entries = bottleneck.covariance.entries(dim);
        let eigen = if bottleneck.covariance == Covariance::Spectral { EIGEN * dim * dim * dim } else { 0 };
        cost.bottleneck = (width * head + codes * (entries + dim) + eigen + dim * outputs) as u64;
        cost.kept += (2 * head + dim * dim + 4 * codes * dim.max(4)) as u64;
        cost
    }

    /// Bytes of a step on a GPU, an estimate: values, gradients and momentum of the parameters; inputs of so many examples and what
    /// is kept of them for the backward pass.
    pub fn memory(&self, rule: Rule, parameters: u64, inputs: usize, examples: usize) -> [u64; 2] {
        const NUMBER: u64 = size_of::<f32>() as u64;
        // Adam keeps a second moment.
        let copies = if rule == Rule::Sgd { 3 } else { 4 };
        let kept = POOLED * ((self.kept + inputs as u64) * examples as u64) as f64;
        [copies * parameters, kept as u64].map(|numbers| numbers * NUMBER)
    }

    /// The bottleneck's share of a forward pass through everything.
    pub fn share(&self) -> f64 {
        self.bottleneck as f64 / (self.bottleneck + self.layers + self.images) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottleneck_is_a_small_part_of_the_published_model() {
        let file = include_str!("../../experiments/cifar10-wrn28-10.toml");
        let mut experiment = Experiment::parse(file).unwrap();
        let cost = Cost::of(&experiment, CHANNELS * 32 * 32, 10);
        // Per image: 5.24 G multiply-adds in the network; 640 · 44 + 10 · (64 + 8) + 10 · 8³ + 8 · 10 after it.
        assert_eq!((cost.images / 1_000_000, cost.bottleneck), (5243, 34_080));
        assert!(cost.share() < 1e-5);
        experiment.backbone.images = None;
        let apart = Cost::of(&experiment, 640, 10);
        assert_eq!((apart.bottleneck, apart.images), (34_080, 0));
    }
}
