//! The activations that dab-core has, on tensors.

use burn::tensor::{Tensor, activation};
pub use dab_core::Activation;

/// An activation on every number of `x`.
pub fn activate<const D: usize>(function: Activation, x: Tensor<D>) -> Tensor<D> {
    match function {
        Activation::Identity => x,
        Activation::Relu => activation::relu(x),
        // Both halves stay finite: a mask over exp(x) would give ∞ · 0 = NaN as the gradient of x > 88.
        Activation::Elu => activation::relu(x.clone()) + x.clamp_max(0.0).exp().sub_scalar(1.0),
        Activation::Gelu => activation::gelu(x),
        Activation::Silu => activation::silu(x),
        Activation::Tanh => x.tanh(),
    }
}
