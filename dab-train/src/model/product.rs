//! Matrix products in f32 on every device: of everything that `model.dab` repeats.
//!
//! [`Product::product`] is burn's `matmul`, but for one device. Since 2020 NVIDIA's GPUs have matrix units for TF32: f32 with 10
//! bits of mantissa instead of 23. burn's CUDA backend gives every f32 product to them, without asking. Distances (E4) are
//! differences of large terms, so 10 bits leave errors of a tenth of u, and a model whose file and network disagree. Here
//! the same product runs on the ordinary f32 units, with f32 sums, forward and backward.
//!
//! Convolutions are not concerned: without burn's feature `autotune` they run on the f32 units, unless `rounded` is asked.

use burn::tensor::Tensor;

/// The product of the last two dimensions of `self` and `other`; those before are equal.
pub(crate) trait Product {
    /// `[…, n, k]` × `[…, k, m]` → `[…, n, m]`.
    fn product(self, other: Self) -> Self;
}

#[cfg(not(feature = "cuda"))]
impl<const D: usize> Product for Tensor<D> {
    fn product(self, other: Self) -> Self {
        self.matmul(other)
    }
}

#[cfg(feature = "cuda")]
impl<const D: usize> Product for Tensor<D> {
    fn product(self, other: Self) -> Self {
        use burn::backend::Dispatch;
        let product =
            <Dispatch as cuda::ExactProduct>::exact_product(self.into_dispatch(), other.into_dispatch());
        Self::from_dispatch(product)
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use burn::backend::{
        Backend, DType, Flex, TensorMetadata,
        autodiff::{
            Autodiff, NodeId,
            checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind, binary},
        },
        backend_extension,
        cubecl::dtype_to_storage_type,
        ops::FloatTensorOps,
        tensor::FloatTensor,
    };
    use burn_cubecl::{CubeBackend, kernel::matmul::init_matmul_output};
    use cubek::{
        matmul::{
            definition::{MatmulElems, MatmulGlobalElems},
            launch::launch_ref,
            multi_level::Strategy,
        },
        std::InputBinding,
    };

    /// A product that no backend may cut.
    #[backend_extension(Autodiff, Cube, Flex, NdArray: cfg(feature = "ndarray"))]
    pub trait ExactProduct: Backend {
        /// As `float_matmul`, in the tensors' own type.
        fn exact_product(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
            Self::float_matmul(lhs, rhs)
        }
    }

    impl ExactProduct for Flex {}

    #[cfg(feature = "ndarray")]
    impl ExactProduct for burn::backend::NdArray {}

    impl ExactProduct for CubeBackend {
        fn exact_product(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
            if lhs.dtype() != DType::F32 || lhs.shape().num_elements() * rhs.shape().num_elements() == 0 {
                return Self::float_matmul(lhs, rhs);
            }
            let out = init_matmul_output(&lhs, &rhs, DType::F32);
            let (client, elem) = (out.client.clone(), dtype_to_storage_type(DType::F32));
            let mut elems = MatmulElems::from_globals(&MatmulGlobalElems { lhs: elem, rhs: elem, out: elem });
            let [lhs, rhs] = [lhs, rhs].map(|tensor| InputBinding::new(tensor.binding(), elem));
            // What burn itself falls back to on a GPU without matrix units: it works for every shape.
            let strategy = Strategy::SimpleUnit(Default::default()).into();
            launch_ref(&strategy, &client, lhs, rhs, out.clone().binding(), &mut elems)
                .expect("a product without matrix units needs nothing that a GPU could lack");
            out
        }
    }

    /// d(AB) = dA B + A dB.
    #[derive(Debug)]
    struct ProductRule;

    impl<B: ExactProduct> Backward<B, 2> for ProductRule {
        type State = (Option<NodeId>, Option<NodeId>);

        fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
            let (lhs, rhs) = ops.state;
            let lhs = lhs.map(|node| checkpointer.retrieve_node_output(node));
            let rhs = rhs.map(|node| checkpointer.retrieve_node_output(node));
            let kept = "the other factor is kept for every factor that has a gradient";
            binary::<B, _, _>(
                ops.parents,
                ops.node,
                grads,
                |grad| B::exact_product(grad, B::float_transpose(rhs.expect(kept))),
                |grad| B::exact_product(B::float_transpose(lhs.expect(kept)), grad),
            );
        }
    }

    impl<B: ExactProduct, C: CheckpointStrategy> ExactProduct for Autodiff<B, C> {
        fn exact_product(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
            let (lhs_tracked, rhs_tracked) = (lhs.is_tracked(), rhs.is_tracked());
            match ProductRule.prepare::<C>([lhs.node(), rhs.node()]).compute_bound().stateful() {
                OpsKind::Tracked(mut prepared) => {
                    let state = (
                        rhs_tracked.then(|| prepared.checkpoint(&lhs)),
                        lhs_tracked.then(|| prepared.checkpoint(&rhs)),
                    );
                    prepared.finish(state, B::exact_product(lhs.into_primitive(), rhs.into_primitive()))
                }
                OpsKind::UnTracked(prepared) => {
                    prepared.finish(B::exact_product(lhs.into_primitive(), rhs.into_primitive()))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::tests::{traced, whole};

    #[test]
    fn a_product_and_its_gradients_are_burns() {
        let both = |product: fn(Tensor<3>, Tensor<3>) -> Tensor<3>| {
            traced([whole(5, [2, 3, 4]), whole(7, [2, 4, 5])], |[a, b]| product(a, b), |y| y.square())
        };
        assert_eq!(both(Product::product), both(Tensor::matmul));
    }

    /// burn's own product is TF32 on a GPU, so nothing of ours may call it.
    #[test]
    fn every_product_of_the_trainer_is_this_one() {
        fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => sources(&path, found),
                    false => found.push(path),
                }
            }
        }
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        assert!(files.len() > 50);
        let call = concat!(".mat", "mul(");
        for file in files
            .iter()
            .filter(|file| !file.ends_with("model/product.rs") && !file.ends_with("model/tests.rs"))
        {
            let text = std::fs::read_to_string(file).unwrap();
            assert!(!text.contains(call), "{} multiplies with burn's {call}…)", file.display());
        }
    }
}
