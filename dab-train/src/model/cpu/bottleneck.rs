//! The bottleneck of small models on the processor, in f32: a loop in place of many operations on small tensors.
//!
//! ```text
//! root          the head's triangle → S, ln|Σ|              root.rs         E2
//! distances     μ, S, ln|Σ| and codes → D                   distances.rs    E4
//! assign        D → π_x                                                     E5
//! ```

use burn::backend::{
    AutodiffBackend, Backend, Dispatch, Flex, TensorMetadata,
    autodiff::{
        Autodiff,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::Tensor;

pub use super::distances::fits;
use super::{Host, distances::Between, root::Decomposed, tensor};

/// S `[batch, dim, dim]` and ln|Σ| `[batch, 1]` of the head's triangles `raw` `[batch, dim (dim + 1) / 2]` (E2).
pub fn root(raw: Tensor<2>, dim: usize) -> (Tensor<3>, Tensor<2>) {
    let batch = raw.dims()[0];
    let both = Tensor::<2>::from_dispatch(<Dispatch as Bottleneck>::spectral(raw.into_dispatch(), dim));
    let root = both.clone().narrow(1, 0, dim * dim).reshape([batch, dim, dim]);
    (root, both.narrow(1, dim * dim, 1))
}

/// E4 `[batch, codes]`, of encodings with full covariances (μ, S, ln|Σ|) and codes (m, P, ln|Σ_κ|).
pub fn distances(
    [mean, log_det]: [Tensor<2>; 2],
    root: Tensor<3>,
    [means, code_log_det]: [Tensor<2>; 2],
    precision: Tensor<3>,
) -> Tensor<2> {
    let [mean, log_det, means, code_log_det] =
        [mean, log_det, means, code_log_det].map(Tensor::into_dispatch);
    let [root, precision] = [root, precision].map(Tensor::into_dispatch);
    let found = <Dispatch as Bottleneck>::divergence(mean, root, log_det, means, precision, code_log_det);
    Tensor::from_dispatch(found)
}

/// E5 `[batch, codes]`, without gradients.
pub fn assign(distances: Tensor<2>, log_prior: Tensor<2>, alpha: f64) -> Tensor<2> {
    let found = <Dispatch as Bottleneck>::shares(distances.into_dispatch(), log_prior.into_dispatch(), alpha);
    Tensor::from_dispatch(found)
}

/// The loops as operations of a backend.
#[backend_extension(Autodiff, Flex)]
pub trait Bottleneck: Backend {
    /// [`root`], in one matrix: `[batch, dim² + 1]`.
    fn spectral(raw: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
    /// [`distances`].
    fn divergence(
        mean: FloatTensor<Self>,
        root: FloatTensor<Self>,
        log_det: FloatTensor<Self>,
        means: FloatTensor<Self>,
        precision: FloatTensor<Self>,
        code_log_det: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
    /// [`assign`].
    fn shares(distances: FloatTensor<Self>, log_prior: FloatTensor<Self>, alpha: f64) -> FloatTensor<Self>;
}

impl Bottleneck for Flex {
    fn spectral(raw: Host, dim: usize) -> Host {
        decomposed(&raw, dim).1
    }

    fn divergence(
        mean: Host,
        root: Host,
        log_det: Host,
        means: Host,
        precision: Host,
        code_log_det: Host,
    ) -> Host {
        Kept::new([mean, root, log_det, means, precision, code_log_det]).result()
    }

    fn shares(distances: Host, log_prior: Host, alpha: f64) -> Host {
        let (distances, log_prior) = (distances.to_contiguous(), log_prior.to_contiguous());
        let (alpha, log_prior) = (alpha as f32, log_prior.storage::<f32>());
        let mut out = distances.storage::<f32>().to_vec();
        for row in out.chunks_exact_mut(log_prior.len().max(1)) {
            // Distances to the nearest code: finite when a far input saturates them all.
            let nearest = row.iter().copied().fold(f32::INFINITY, f32::min);
            let mut largest = f32::NEG_INFINITY;
            for (share, &log_prior) in row.iter_mut().zip(log_prior) {
                *share = log_prior - (*share - nearest) * alpha;
                largest = largest.max(*share);
            }
            let mut sum = 0.0;
            for share in row.iter_mut() {
                *share = (*share - largest).exp();
                sum += *share;
            }
            row.iter_mut().for_each(|share| *share /= sum);
        }
        tensor(out, distances.shape().to_vec())
    }
}

/// What the gradients of roots need, and S and ln|Σ|.
fn decomposed(raw: &Host, dim: usize) -> (Decomposed, Host) {
    let raw = raw.to_contiguous();
    let found = Decomposed::new(raw.storage(), dim);
    let both = tensor(found.result(), [raw.shape()[0], dim * dim + 1]);
    (found, both)
}

/// The gradient of roots.
#[derive(Debug)]
struct RootRule;

impl Backward<Flex, 1> for RootRule {
    type State = (Decomposed, Vec<usize>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [node] = ops.parents;
        let (found, shape) = ops.state;
        let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
        if let Some(node) = node {
            grads.register::<Flex>(node.id, tensor(found.gradient(dy.storage()), shape));
        }
    }
}

/// μ, S, ln|Σ|, m, P, ln|Σ_κ|, each in one piece.
#[derive(Clone, Debug)]
struct Kept([Host; 6]);

impl Kept {
    fn new(tensors: [Host; 6]) -> Self {
        Self(tensors.map(|tensor| tensor.to_contiguous()))
    }

    fn between(&self) -> Between<'_> {
        let [mean, root, log_det, means, precision, code_log_det] =
            self.0.each_ref().map(|tensor| tensor.storage::<f32>());
        let dim = self.0[0].shape()[1];
        Between { mean, root, log_det, means, precision, code_log_det, dim }
    }

    fn result(&self) -> Host {
        let [rows, codes] = [&self.0[0], &self.0[3]].map(|tensor| tensor.shape()[0]);
        tensor(self.between().distances(), [rows, codes])
    }
}

/// The gradients of distances.
#[derive(Debug)]
struct DistanceRule;

impl Backward<Flex, 4> for DistanceRule {
    type State = Kept;

    fn backward(self, ops: Ops<Kept, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
        let found = ops.state.between().gradients(dy.storage());
        let found = [found.mean, found.root, found.log_det, found.means];
        for ((node, values), like) in ops.parents.into_iter().zip(found).zip(&ops.state.0) {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, tensor(values, like.shape().to_vec()));
            }
        }
    }
}

impl<C: CheckpointStrategy> Bottleneck for Autodiff<Flex, C> {
    fn spectral(raw: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        let node = raw.node();
        let raw = raw.into_primitive();
        let (found, both) = decomposed(&raw, dim);
        match RootRule.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish((found, raw.shape().to_vec()), both),
            OpsKind::UnTracked(prepared) => prepared.finish(both),
        }
    }

    fn divergence(
        mean: FloatTensor<Self>,
        root: FloatTensor<Self>,
        log_det: FloatTensor<Self>,
        means: FloatTensor<Self>,
        precision: FloatTensor<Self>,
        code_log_det: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let nodes = [&mean, &root, &log_det, &means].map(|tensor| tensor.node());
        let all = [mean, root, log_det, means, precision, code_log_det];
        let kept = Kept::new(all.map(|tensor| tensor.into_primitive()));
        let found = kept.result();
        match DistanceRule.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(kept, found),
            OpsKind::UnTracked(prepared) => prepared.finish(found),
        }
    }

    fn shares(distances: FloatTensor<Self>, log_prior: FloatTensor<Self>, alpha: f64) -> FloatTensor<Self> {
        Self::from_inner(Flex::shares(distances.into_primitive(), log_prior.into_primitive(), alpha))
    }
}
