//! What turns inputs into features: dense layers, the kinds that dab-core has, and before them, for images, a residual
//! network that stays on the workstation.
//!
//! ```text
//! h_0 = x or resnet(pixels)        h_i = act(W_i h_{i−1} + b_i) (+ h_j, the residual)
//! ```

pub mod conv;
pub mod mlp;
pub mod resnet;
pub mod weights;

use burn::tensor::{Tensor, activation};
pub use dab_core::Activation;

/// An activation on every number of `x`.
#[must_use]
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
