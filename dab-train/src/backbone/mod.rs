//! What turns inputs into features: dense layers, the kinds that dab-core has.
//!
//! ```text
//! h_0 = x        h_i = act(W_i h_{i−1} + b_i) (+ h_j, the residual)
//! ```

pub mod mlp;

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

/// A function applied to each number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// x.
    #[default]
    Identity,
    /// max(x, 0).
    Relu,
    /// x for x > 0, eˣ − 1 otherwise.
    Elu,
    /// x Φ(x), with the exact normal distribution function.
    Gelu,
    /// x sigmoid(x).
    Silu,
    /// tanh x.
    Tanh,
}

impl Activation {
    /// The function, on every number of `x`.
    #[must_use]
    pub fn apply<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Identity => x,
            Self::Relu => activation::relu(x),
            // Both halves stay finite: a mask over exp(x) would give ∞ · 0 = NaN as the gradient of x > 88.
            Self::Elu => activation::relu(x.clone()) + x.clamp_max(0.0).exp().sub_scalar(1.0),
            Self::Gelu => activation::gelu(x),
            Self::Silu => activation::silu(x),
            Self::Tanh => x.tanh(),
        }
    }
}
