//! Head outputs → the encoder's Gaussian p(z|x) = N(μ, Σ) (method.md E1–E3, paper §4.1).
//!
//! ```text
//! diagonal   o = (μ, r)   std_i = softplus(r_i − 5) + 1e-5                    S = diag(std)
//! spectral   o = (μ, a)   A = U diag(λ) Uᵀ, l_i = softplus(|λ_i| − 5) + 1e-5  S = U diag(l) Uᵀ
//! cholesky   o = (μ, a)   S = lower triangle, its diagonal like std           Σ = S Sᵀ in all three
//! ```
//!
//! A Gaussian is carried by a root S of its covariance: a sample needs S, the distance needs S Sᵀ, and the
//! log-determinant comes from the numbers that S is made of, so no covariance is ever factorised.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use super::{
    cpu,
    product::Product,
    spectral,
    tensors::{Matrices, constant, indices, on_host},
};

/// Standard deviations start near softplus(−5) ≈ 0.0067: large ones at the start drown the mean's signal.
pub const STD_SHIFT: f64 = 5.0;
/// The smallest standard deviation: keeps ln|Σ| finite.
pub const STD_FLOOR: f64 = 1e-5;

/// Denominators of the series of ln(1 + t): what follows is below 1e-8 of the sum.
const SERIES: [f64; 8] = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0];

/// How the head's numbers become a covariance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Covariance {
    /// E1: one standard deviation per latent dimension.
    Diagonal,
    /// E2: full, from an eigen-decomposition; the published models'.
    Spectral,
    /// E3: full, from a triangular factor; the cheapest full covariance on a microcontroller.
    #[default]
    Cholesky,
}

impl Covariance {
    /// How many numbers the head gives for latent dimension `dim`.
    pub fn outputs(self, dim: usize) -> usize {
        match self {
            Self::Diagonal => 2 * dim,
            Self::Spectral | Self::Cholesky => dim + dim * (dim + 1) / 2,
        }
    }

    /// How many numbers one covariance has: its diagonal, or the whole matrix.
    pub fn entries(self, dim: usize) -> usize {
        if self == Self::Diagonal { dim } else { dim * dim }
    }
}

/// A batch of encoder Gaussians.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// μ `[batch, dim]`.
    pub mean: Tensor<2>,
    /// A root S of Σ, S Sᵀ = Σ: of a diagonal one the standard deviations.
    pub root: Matrices,
    /// ln|Σ| `[batch, 1]`.
    pub log_det: Tensor<2>,
}

/// Standard deviation of an unconstrained head output, or of the size of an eigenvalue.
pub(super) fn std(raw: Tensor<2>) -> Tensor<2> {
    softplus(raw.sub_scalar(STD_SHIFT)).add_scalar(STD_FLOOR)
}

/// ln(1 + eˣ). Shading languages have no ln(1 + t): theirs of the sum is off by 2⁻²¹ near 1, 7e-5 of a standard deviation at
/// its start. So away from the CPU it is a series.
///
/// ```text
/// max(x, 0) + 2 s (1 + s²/3 + s⁴/5 + …)    s = t / (2 + t) ≤ ⅓,  t = exp(−|x|)
/// ```
fn softplus(x: Tensor<2>) -> Tensor<2> {
    if on_host(&x.device()) {
        return activation::softplus(x, 1.0);
    }
    let t = x.clone().abs().neg().exp();
    let s = t.clone() / t.add_scalar(2.0);
    let square = s.clone().square();
    let last = s.full_like(1.0 / SERIES[SERIES.len() - 1]);
    let sum = SERIES.iter().rev().skip(1).fold(last, |sum, odd| (sum * square.clone()).add_scalar(1.0 / odd));
    x.clamp_min(0.0) + s.mul_scalar(2.0) * sum
}

impl Encoding {
    /// The Gaussians of head outputs `[batch, kind.outputs(dim)]`.
    pub fn new(outputs: Tensor<2>, dim: usize, kind: Covariance) -> Self {
        let [batch, width] = outputs.dims();
        let mean = outputs.clone().slice([0..batch, 0..dim]); // [batch, dim]
        let raw = outputs.slice([0..batch, dim..width]); // [batch, dim] or [batch, dim (dim + 1) / 2]
        let (root, log_det) = match kind {
            Covariance::Diagonal => {
                let std = std(raw);
                (Matrices::Diagonal(std.clone()), std.log().sum_dim(1).mul_scalar(2.0))
            }
            Covariance::Spectral if cpu::is_ours(&raw) => {
                let (root, log_det) = cpu::bottleneck::root(raw, dim);
                (Matrices::Full(root), log_det)
            }
            Covariance::Spectral => {
                let (root, log_det) = spectral::root(symmetric(raw, dim));
                (Matrices::Full(root), log_det)
            }
            Covariance::Cholesky => {
                let (root, log_det) = triangular(raw, dim);
                (Matrices::Full(root), log_det)
            }
        };
        Self { mean, root, log_det }
    }

    pub fn len(&self) -> usize {
        self.mean.dims()[0]
    }

    /// Σ, flattened: `[batch, dim]` (its diagonal) or `[batch, dim²]`.
    pub fn cov(&self) -> Tensor<2> {
        match &self.root {
            Matrices::Diagonal(std) => std.clone().square(),
            Matrices::Full(root) => {
                let [batch, dim, _] = root.dims();
                root.clone().product(root.clone().transpose()).reshape([batch, dim * dim])
            }
        }
    }

    /// z = μ + S ε, one sample for each row of `noise` `[batch, dim]`.
    pub fn sample(&self, noise: Tensor<2>) -> Tensor<2> {
        let step = match &self.root {
            Matrices::Diagonal(std) => std.clone() * noise,
            // [batch, dim, dim] × [batch, 1, dim], summed over the last: cheaper than a batched matmul by a column.
            Matrices::Full(root) => {
                let [batch, dim] = noise.dims();
                (root.clone() * noise.unsqueeze_dim::<3>(1)).sum_dim(2).reshape([batch, dim])
            }
        };
        self.mean.clone() + step
    }

    /// μ, the root as a matrix, ln|Σ|.
    pub(crate) fn into_list(self) -> [Tensor<2>; 3] {
        let root = match self.root {
            Matrices::Diagonal(std) => std,
            Matrices::Full(root) => {
                let [batch, dim, _] = root.dims();
                root.reshape([batch, dim * dim])
            }
        };
        [self.mean, root, self.log_det]
    }

    /// Back from [`Encoding::into_list`].
    pub(crate) fn from_list([mean, root, log_det]: [Tensor<2>; 3], kind: Covariance) -> Self {
        let [batch, dim] = mean.dims();
        let root = match kind {
            Covariance::Diagonal => Matrices::Diagonal(root),
            Covariance::Spectral | Covariance::Cholesky => Matrices::Full(root.reshape([batch, dim, dim])),
        };
        Self { mean, root, log_det }
    }

    /// The same encoding as a constant among tracked tensors.
    pub(crate) fn tracked(self) -> Self {
        self.map(Tensor::autodiff, Tensor::autodiff)
    }

    pub(crate) fn map(
        self,
        matrix: impl Fn(Tensor<2>) -> Tensor<2>,
        full: impl Fn(Tensor<3>) -> Tensor<3>,
    ) -> Self {
        Self { mean: matrix(self.mean), root: self.root.map(&matrix, full), log_det: matrix(self.log_det) }
    }
}

/// Where entry (i, j), j ≤ i, of a triangle filled row by row lies.
pub(super) fn triangle(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

/// A = ½(T + Tᵀ), T the lower triangle filled row by row: `[batch, dim (dim + 1) / 2]` → `[batch, dim, dim]`.
fn symmetric(raw: Tensor<2>, dim: usize) -> Tensor<3> {
    filled(raw, dim, |i, j| if i == j { 1.0 } else { 0.5 })
}

/// The triangle on both sides of the diagonal, each cell times its `weight`.
fn filled(raw: Tensor<2>, dim: usize, weight: impl Fn(usize, usize) -> f64) -> Tensor<3> {
    let (batch, device, dtype) = (raw.dims()[0], raw.device(), raw.dtype());
    let cells = (0..dim * dim).map(|cell| (cell / dim, cell % dim));
    let from = indices(cells.clone().map(|(i, j)| triangle(i.max(j), i.min(j))), &device);
    let weights = constant(cells.map(|(i, j)| weight(i, j)).collect(), [1, dim * dim], &device, dtype);
    (raw.select(1, from) * weights).reshape([batch, dim, dim])
}

/// The triangular root and its log-determinant, `[batch, dim, dim]` and `[batch, 1]`.
fn triangular(raw: Tensor<2>, dim: usize) -> (Tensor<3>, Tensor<2>) {
    let (device, dtype) = (raw.device(), raw.dtype());
    let diagonal = (0..dim * dim).map(|cell| f64::from(u8::from(cell / dim == cell % dim))).collect();
    let std = std(raw.clone().select(1, indices((0..dim).map(|i| triangle(i, i)), &device))); // [batch, dim]
    let spread = std.clone().unsqueeze_dim::<3>(2) * constant(diagonal, [1, dim, dim], &device, dtype);
    let strict = filled(raw, dim, |i, j| f64::from(u8::from(j < i)));
    (strict + spread, std.log().sum_dim(1).mul_scalar(2.0))
}
