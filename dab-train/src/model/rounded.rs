//! Convolutions whose factors are rounded to TF32, for those who ask for it (`training.precision = "tf32"`).
//!
//! ```text
//! f32    1 sign   8 exponent   23 mantissa        TF32   1   8   10        sums stay f32
//! ```
//!
//! NVIDIA's GPUs since sm_80 have matrix units for it, which are several times as fast as the f32 units. A convolution is then one
//! large product (implicit GEMM), forward and backward. Where the library has no such kernel (a gradient with respect to the
//! input of a convolution with a stride, channels that do not fit), that one runs on the f32 units. On all other devices these
//! are ordinary convolutions.

#[cfg(not(feature = "cuda"))]
use burn::tensor::module::conv2d;
use burn::tensor::{Device, Tensor, ops::ConvOptions};

/// The convolution of `x` `[batch, inputs, h, w]` with `weight` `[outputs, inputs, k, k]`, without bias.
#[cfg(not(feature = "cuda"))]
pub(super) fn convolve(x: Tensor<4>, weight: Tensor<4>, options: ConvOptions<2>) -> Tensor<4> {
    conv2d(x, weight, None, options)
}

/// Whether a device has units for it.
#[cfg(not(feature = "cuda"))]
pub(crate) fn is_rounded_on(_: &Device) -> bool {
    false
}

/// The convolution of `x` `[batch, inputs, h, w]` with `weight` `[outputs, inputs, k, k]`, without bias.
#[cfg(feature = "cuda")]
pub(super) fn convolve(x: Tensor<4>, weight: Tensor<4>, options: ConvOptions<2>) -> Tensor<4> {
    use burn::backend::Dispatch;
    let found =
        <Dispatch as cuda::RoundedConv>::rounded_conv(x.into_dispatch(), weight.into_dispatch(), options);
    Tensor::from_dispatch(found)
}

/// Whether a device has units for it.
#[cfg(feature = "cuda")]
pub(crate) fn is_rounded_on(device: &Device) -> bool {
    use burn::backend::Dispatch;
    <Dispatch as cuda::RoundedConv>::is_rounded(Tensor::<1>::zeros([1], device).into_dispatch())
}

#[cfg(feature = "cuda")]
mod cuda {
    use burn::backend::{
        Backend, Flex, TensorMetadata,
        autodiff::{
            Autodiff, NodeId,
            checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
        backend_extension,
        ops::ModuleOps,
        tensor::FloatTensor,
    };
    use burn::tensor::ops::ConvOptions;
    use burn_cubecl::{
        CubeBackend,
        cubecl::{prelude::Scalar, tf32},
        kernel::conv::{ConvStrategy, conv_data_backward, conv_forward, conv_weight_backward},
    };

    /// Convolutions that a backend may round.
    #[backend_extension(Autodiff, Cube, Flex, NdArray: cfg(feature = "ndarray"))]
    pub trait RoundedConv: Backend {
        /// Whether the device of `x` rounds.
        fn is_rounded(x: FloatTensor<Self>) -> bool {
            drop(x);
            false
        }

        /// As `conv2d`.
        fn rounded_conv(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            Self::conv2d(x, weight, None, options)
        }

        /// The gradient with respect to `x`.
        fn rounded_conv_x(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            Self::conv2d_x_backward(x, weight, grad, options)
        }

        /// The gradient with respect to `weight`.
        fn rounded_conv_weight(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            Self::conv2d_weight_backward(x, weight, grad, options)
        }
    }

    impl RoundedConv for Flex {}

    #[cfg(feature = "ndarray")]
    impl RoundedConv for burn::backend::NdArray {}

    impl RoundedConv for CubeBackend {
        fn is_rounded(x: FloatTensor<Self>) -> bool {
            x.client.properties().supports_type(tf32::elem_type_native())
        }

        fn rounded_conv(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            let product = ConvStrategy::ImplicitGemm;
            conv_forward(x.clone(), weight.clone(), None, options.clone(), product)
                .unwrap_or_else(|_| Self::conv2d(x, weight, None, options))
        }

        fn rounded_conv_x(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            let product = ConvStrategy::ImplicitGemm;
            conv_data_backward(grad.clone(), weight.clone(), x.shape(), options.clone(), product)
                .unwrap_or_else(|_| Self::conv2d_x_backward(x, weight, grad, options))
        }

        fn rounded_conv_weight(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            let product = ConvStrategy::ImplicitGemm;
            conv_weight_backward(x.clone(), grad.clone(), weight.shape(), options.clone(), product)
                .unwrap_or_else(|_| Self::conv2d_weight_backward(x, weight, grad, options))
        }
    }

    /// The gradients of a convolution are convolutions.
    #[derive(Debug)]
    struct ConvRule;

    impl<B: RoundedConv> Backward<B, 2> for ConvRule {
        type State = (NodeId, NodeId, ConvOptions<2>);

        fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
            let [x_node, weight_node] = ops.parents;
            let grad = grads.consume::<B>(&ops.node);
            let (x, weight, options) = ops.state;
            let x = checkpointer.retrieve_node_output::<FloatTensor<B>>(x);
            let weight = checkpointer.retrieve_node_output::<FloatTensor<B>>(weight);
            if let Some(node) = x_node {
                let found = B::rounded_conv_x(x.clone(), weight.clone(), grad.clone(), options.clone());
                grads.register::<B>(node.id, found);
            }
            if let Some(node) = weight_node {
                grads.register::<B>(node.id, B::rounded_conv_weight(x, weight, grad, options));
            }
        }
    }

    impl<B: RoundedConv, C: CheckpointStrategy> RoundedConv for Autodiff<B, C> {
        fn is_rounded(x: FloatTensor<Self>) -> bool {
            B::is_rounded(x.into_primitive())
        }

        fn rounded_conv(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self> {
            match ConvRule.prepare::<C>([x.node(), weight.node()]).compute_bound().stateful() {
                OpsKind::Tracked(mut prepared) => {
                    let state = (prepared.checkpoint(&x), prepared.checkpoint(&weight), options.clone());
                    let found = B::rounded_conv(x.into_primitive(), weight.into_primitive(), options);
                    prepared.finish(state, found)
                }
                OpsKind::UnTracked(prepared) => {
                    prepared.finish(B::rounded_conv(x.into_primitive(), weight.into_primitive(), options))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::module::conv2d;

    use super::*;
    use crate::model::tests::{traced, whole};

    type Convolution = fn(Tensor<4>, Tensor<4>, ConvOptions<2>) -> Tensor<4>;

    /// Values, and gradients of the sum of their squares, of a convolution with this stride on the CPU.
    fn both(convolution: Convolution, stride: usize) -> Vec<Vec<f64>> {
        let options = ConvOptions::new([stride; 2], [1; 2], [1; 2], 1);
        let layer = |[x, weight]: [Tensor<4>; 2]| convolution(x, weight, options.clone());
        traced([whole(5, [2, 3, 6, 6]), whole(7, [4, 3, 3, 3])], layer, |y| y.square())
    }

    #[test]
    fn the_cpu_rounds_nothing() {
        for stride in [1, 2] {
            let plain = both(|x, weight, options| conv2d(x, weight, None, options), stride);
            assert_eq!(both(convolve, stride), plain);
        }
        assert!(!is_rounded_on(&Device::flex()));
    }
}
