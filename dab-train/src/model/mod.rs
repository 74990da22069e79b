//! The network as differentiable tensor code: features → Gaussian → distances → assignment.
//!
//! ```text
//! h_0 = x or resnet(pixels)        h_i = act(W_i h_{i−1} + b_i) (+ h_j, the residual)
//! h → encoder head → N(μ, Σ) → distances to the codes → assignment, u        y = decoder(z)
//! ```
//!
//! What comes before the bottleneck is [`dense`] layers, the kinds that dab-core has, and before them, for images, a
//! [`resnet`] that stays on the workstation. [`encoder`], [`divergence`] and [`codebook`] are the batched twins of the
//! device's formulas (method.md E1–E6). Every function keeps the dtype of what it is given, so that the same code trains
//! in `f32` and is gradient-checked in `f64`. A [`snapshot`] is the trained network as plain numbers.

pub mod activation;
pub mod codebook;
pub mod conv;
pub(crate) mod cpu;
pub mod dense;
pub mod divergence;
pub mod encoder;
pub mod network;
pub(crate) mod product;
pub mod resnet;
pub(crate) mod rounded;
pub mod snapshot;
pub mod spectral;
pub(crate) mod tensors;
#[cfg(test)]
mod tests;
pub mod weights;
