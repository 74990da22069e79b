//! A stack of dense layers (method.md "Published settings": every post-hoc and regression backbone).
//!
//! Weights are `[inputs, outputs]` and biases `[1, outputs]`, so that all parameters are matrices and one
//! optimiser loop serves them.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{
    activation::{Activation, activate},
    product::Product,
};
use crate::support::random::Random;

/// How weights start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initialiser {
    /// Uniform, ±√(6 / (inputs + outputs)).
    #[default]
    GlorotUniform,
    /// Normal, variance 2 / inputs, cut at two standard deviations (Keras' `he_normal`).
    HeNormal,
}

/// W x + b.
#[derive(Clone, Debug)]
pub struct Dense {
    /// `[inputs, outputs]`.
    pub weight: Tensor<2>,
    /// `[1, outputs]`.
    pub bias: Option<Tensor<2>>,
}

/// One layer of an experiment file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerConfig {
    /// Outputs.
    pub units: usize,
    /// What follows the affine map.
    #[serde(default = "relu")]
    pub activation: Activation,
    /// Adds the output of this layer (counted from 1, 0 is the input) after the activation.
    pub residual: Option<usize>,
}

fn relu() -> Activation {
    Activation::Relu
}

/// A dense layer, its activation and its residual.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The affine map.
    pub dense: Dense,
    /// What follows it.
    pub activation: Activation,
    /// Which earlier output is added (0 is the input).
    pub residual: Option<usize>,
}

/// Layers, one after the other.
#[derive(Clone, Debug)]
pub struct Mlp {
    /// In the order of evaluation.
    pub layers: Vec<Layer>,
}

impl Dense {
    /// A layer with random weights and, if asked for, a zero bias.
    pub fn random(
        inputs: usize,
        outputs: usize,
        bias: bool,
        how: Initialiser,
        random: &mut Random,
        device: &Device,
    ) -> Self {
        let bound = (6.0 / (inputs + outputs) as f64).sqrt();
        let std = (2.0 / inputs as f64).sqrt();
        let mut draw = || match how {
            Initialiser::GlorotUniform => (2.0 * random.uniform() - 1.0) * bound,
            Initialiser::HeNormal => random.cut_normal() * std,
        };
        let values = (0..inputs * outputs).map(|_| draw() as f32).collect();
        Self::from_values(values, bias.then(|| vec![0.0; outputs]), [inputs, outputs], device)
    }

    /// A layer with these numbers.
    pub fn from_values(weight: Vec<f32>, bias: Option<Vec<f32>>, shape: [usize; 2], device: &Device) -> Self {
        let tensor =
            |values, shape: [usize; 2]| Tensor::from_data(TensorData::new::<f32, _>(values, shape), device);
        Self { weight: tensor(weight, shape), bias: bias.map(|bias| tensor(bias, [1, shape[1]])) }
    }

    /// `[batch, inputs]` → `[batch, outputs]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let product = x.product(self.weight.clone());
        match &self.bias {
            Some(bias) => product + bias.clone(),
            None => product,
        }
    }

    /// The weight, then the bias.
    pub fn parameters_mut(&mut self) -> impl Iterator<Item = &mut Tensor<2>> {
        core::iter::once(&mut self.weight).chain(&mut self.bias)
    }
}

impl Mlp {
    /// Random layers on `inputs` numbers.
    pub fn random(
        inputs: usize,
        layers: &[LayerConfig],
        how: Initialiser,
        random: &mut Random,
        device: &Device,
    ) -> Self {
        let mut width = inputs;
        let layers = layers.iter().map(|layer| {
            let dense = Dense::random(width, layer.units, true, how, random, device);
            width = layer.units;
            Layer { dense, activation: layer.activation, residual: layer.residual }
        });
        Self { layers: layers.collect() }
    }

    /// `[batch, inputs]` → features `[batch, width of the last layer]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let mut outputs = vec![x];
        for layer in &self.layers {
            let mut output =
                activate(layer.activation, layer.dense.forward(outputs[outputs.len() - 1].clone()));
            if let Some(earlier) = layer.residual {
                output = output + outputs[earlier].clone();
            }
            outputs.push(output);
        }
        outputs.swap_remove(outputs.len() - 1)
    }
}
