//! θ: everything that learns by gradient except the code means (method.md E1–E3, E7).
//!
//! ```text
//! x → backbone → h → o = W act(h) (+ b) → N(μ, Σ) → z = μ + Σ^½ ε → y = V z + c
//! ```

use burn::tensor::{Device, Tensor, activation::log_softmax};
use serde::{Deserialize, Serialize};

use super::{
    activation::{Activation, activate},
    conv::Statistics,
    dense::{Dense, Mlp},
    encoder::{Covariance, Encoding},
    resnet::{CHANNELS, ResNet},
};
/// Learned log-variances stay within ± this: a variance of e⁻¹² of the targets' is a perfect fit already.
const LOG_VARIANCE_BOUND: f64 = 12.0;

/// The variance of a regression's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputVariance {
    /// 1, in units of the standardised target.
    #[default]
    Unit,
    /// One learned number.
    Homoscedastic,
    /// A second decoder output per target gives each input its own.
    Learned,
}

/// What the decoder's numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// This many real numbers, with this kind of variance.
    Regression(usize, OutputVariance),
    /// Logits of this many classes.
    Classes(usize),
}

impl Output {
    /// How many numbers the decoder gives.
    pub fn width(self) -> usize {
        match self {
            Self::Regression(count, OutputVariance::Learned) => 2 * count,
            Self::Regression(count, _) | Self::Classes(count) => count,
        }
    }

    /// ln σ² `[1, targets]` before learning, of a regression that has one for all inputs.
    pub fn log_variance(self, device: &Device) -> Option<Tensor<2>> {
        match self {
            Self::Regression(count, OutputVariance::Homoscedastic) => Some(Tensor::zeros([1, count], device)),
            _ => None,
        }
    }
}

/// Backbone, head and decoder.
#[derive(Clone, Debug)]
pub struct Network {
    /// Pixels → the backbone's inputs, when it learns from images.
    pub images: Option<ResNet>,
    /// Inputs → features.
    pub backbone: Mlp,
    /// Applied to the features.
    pub activation: Activation,
    /// Features → head outputs.
    pub head: Dense,
    /// z → outputs.
    pub decoder: Dense,
    /// ln σ² `[1, targets]` of a homoscedastic regression.
    pub log_variance: Option<Tensor<2>>,
    /// d.
    pub dim: usize,
    /// How head outputs become a covariance.
    pub covariance: Covariance,
    /// What the decoder's numbers mean.
    pub output: Output,
    /// ε of label smoothing.
    pub smoothing: f64,
}

impl Network {
    /// Every parameter, in a fixed order: image network, layers, head, decoder, log-variance.
    pub fn parameters_mut(&mut self) -> Vec<&mut Tensor<2>> {
        let layers = self.backbone.layers.iter_mut().map(|layer| &mut layer.dense);
        let dense = layers.chain([&mut self.head, &mut self.decoder]).flat_map(Dense::parameters_mut);
        let images = self.images.iter_mut().flat_map(ResNet::parameters_mut);
        images.chain(dense).chain(&mut self.log_variance).collect()
    }

    /// What a checkpoint keeps beside the parameters: the image network's running statistics.
    pub fn buffers_mut(&mut self) -> Vec<&mut Tensor<2>> {
        self.images.iter_mut().flat_map(ResNet::buffers_mut).collect()
    }

    /// How many numbers gradients move in the network; the code means come on top.
    pub fn parameter_count(&mut self) -> usize {
        self.parameters_mut().iter().map(|parameter| parameter.dims().iter().product::<usize>()).sum()
    }

    /// Replaces every parameter.
    pub fn map(&mut self, mut change: impl FnMut(Tensor<2>) -> Tensor<2>) {
        for parameter in self.parameters_mut() {
            *parameter = change(parameter.clone());
        }
    }

    /// The same network without gradients.
    pub fn frozen(&self) -> Self {
        let mut network = self.clone();
        network.map(Tensor::without_autodiff);
        network
    }

    /// The same network on `device`.
    pub fn on(&self, device: &Device) -> Self {
        let mut network = self.clone();
        network.map(|parameter| parameter.to_device(device));
        network.buffers_mut().into_iter().for_each(|buffer| *buffer = buffer.clone().to_device(device));
        network
    }

    /// `[batch, inputs]` → encoder Gaussians.
    pub fn encode(&self, x: Tensor<2>) -> Encoding {
        self.encode_taking(x, None)
    }

    /// [`Network::encode`] of a network that learns: with `taken`, norms use the batch's statistics and add them to it.
    pub fn encode_taking(&self, x: Tensor<2>, taken: Option<&mut Vec<Statistics>>) -> Encoding {
        let one = Self::encode_parts(std::slice::from_ref(self), vec![x], taken).pop();
        one.expect("one part gives one part")
    }

    /// [`Network::encode_taking`] of a batch in parts, each through its own copy of the network on its own device; norms use the
    /// statistics of the whole batch.
    pub fn encode_parts(
        parts: &[Self],
        xs: Vec<Tensor<2>>,
        taken: Option<&mut Vec<Statistics>>,
    ) -> Vec<Encoding> {
        let images: Option<Vec<&ResNet>> = parts.iter().map(|part| part.images.as_ref()).collect();
        let xs = match images {
            Some(images) => ResNet::forward_parts(&images, xs.into_iter().map(as_images).collect(), taken),
            None => xs,
        };
        let encode = |(part, x): (&Self, Tensor<2>)| {
            let features = part.backbone.forward(x); // [batch, F]
            let outputs = part.head.forward(activate(part.activation, features)); // [batch, d + …]
            Encoding::new(outputs, part.dim, part.covariance)
        };
        parts.iter().zip(xs).map(encode).collect()
    }

    /// The running mean of each norm of the image network.
    pub fn running_means(&self) -> Vec<Tensor<2>> {
        self.images.as_ref().map_or_else(Vec::new, ResNet::running_means)
    }

    /// Moves the image network's running statistics towards those that [`Network::encode_taking`] took.
    pub fn absorb(&mut self, taken: Vec<Statistics>) {
        if let Some(images) = &mut self.images {
            images.absorb(taken);
        }
    }

    /// Negative log-likelihood of each example `[batch, 1]` from decoder outputs `[batch, width]`: see [`nll`].
    pub fn nll(&self, outputs: Tensor<2>, wanted: &Tensor<2>) -> Tensor<2> {
        nll(self.output, self.smoothing, self.log_variance.as_ref(), outputs, wanted)
    }

    /// 1 for each example whose largest logit is its class's, 0 otherwise `[batch, 1]`; no gradient.
    pub fn correct(logits: Tensor<2>, one_hot: Tensor<2>) -> Tensor<2> {
        let logits = logits.detach();
        let own = (logits.clone() * one_hot).sum_dim(1);
        own.greater_equal(logits.max_dim(1)).float()
    }
}

/// Rows of square images, colour by colour: `[batch, 3 · side²]` → `[batch, 3, side, side]`.
pub fn as_images(x: Tensor<2>) -> Tensor<4> {
    let [batch, pixels] = x.dims();
    let side = (pixels / CHANNELS).isqrt();
    x.reshape([batch, CHANNELS, side, side])
}

/// Negative log-likelihood of each example `[batch, 1]` from outputs `[batch, output.width()]`. What is wanted are numbers
/// `[batch, targets]`, or one-hot rows `[batch, classes]`.
pub fn nll(
    output: Output,
    smoothing: f64,
    shared_log_variance: Option<&Tensor<2>>,
    outputs: Tensor<2>,
    wanted: &Tensor<2>,
) -> Tensor<2> {
    let batch = outputs.dims()[0];
    match output {
        Output::Regression(count, variance) => {
            let mean = outputs.clone().slice([0..batch, 0..count]);
            let square = (mean - wanted.clone()).square();
            let log_variance = match variance {
                OutputVariance::Unit => None,
                OutputVariance::Homoscedastic => shared_log_variance.cloned(),
                OutputVariance::Learned => Some(outputs.slice([0..batch, count..2 * count])),
            };
            // ½ [(y − m)² / σ² + ln σ²]; the constant ½ ln 2π is left out.
            match log_variance.map(|v| v.clamp(-LOG_VARIANCE_BOUND, LOG_VARIANCE_BOUND)) {
                None => square.sum_dim(1).mul_scalar(0.5),
                Some(log) => (square * log.clone().neg().exp() + log).sum_dim(1).mul_scalar(0.5),
            }
        }
        Output::Classes(count) => {
            // −Σ_c t_c ln p_c with t = (1 − ε) one-hot + ε / classes.
            let even = smoothing / count as f64;
            let wanted = wanted.clone().mul_scalar(1.0 - smoothing).add_scalar(even);
            (log_softmax(outputs, 1) * wanted).sum_dim(1).neg()
        }
    }
}
