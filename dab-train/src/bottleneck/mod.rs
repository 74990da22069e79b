//! The bottleneck as differentiable tensor code: features → Gaussian → distances → assignment.
//!
//! The batched twins of the device's formulas (method.md E1–E6). Every function keeps the dtype of what it is
//! given, so that the same code trains in `f32` and is gradient-checked in `f64`.

pub mod codebook;
pub mod divergence;
pub mod encoder;
pub mod kmeans;
pub mod spectral;
#[cfg(test)]
mod tests;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// Numbers as a tensor of `dtype` on `device`.
pub(crate) fn constant<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, dtype))
}

/// Indices as a tensor on `device`.
pub(crate) fn indices(values: impl IntoIterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.into_iter().map(|i| i as i64).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Whether tensors on `device` are plain memory of burn's own CPU backend: cheap to read, and good at `f64`.
pub(crate) fn on_host(device: &Device) -> bool {
    *device == Device::flex()
}
