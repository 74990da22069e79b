//! Numbers and indices as tensors, and whether a device's tensors lie in this computer's memory.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// A covariance, its inverse or its root for each of many Gaussians.
#[derive(Clone, Debug)]
pub enum Matrices {
    /// Of diagonal ones what stands on the diagonal `[count, dim]`.
    Diagonal(Tensor<2>),
    /// `[count, dim, dim]`.
    Full(Tensor<3>),
}

impl Matrices {
    pub(crate) fn map(
        self,
        diagonal: impl Fn(Tensor<2>) -> Tensor<2>,
        full: impl Fn(Tensor<3>) -> Tensor<3>,
    ) -> Self {
        match self {
            Self::Diagonal(tensor) => Self::Diagonal(diagonal(tensor)),
            Self::Full(tensor) => Self::Full(full(tensor)),
        }
    }
}

/// Numbers as a tensor of `dtype` on `device`.
pub(crate) fn constant<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, dtype))
}

pub(crate) fn indices(values: impl IntoIterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.into_iter().map(|i| i as i64).collect();
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Whether tensors on `device` are plain memory of burn's own CPU backend: cheap to read, and good at `f64`.
pub(crate) fn on_host(device: &Device) -> bool {
    *device == Device::flex()
}
