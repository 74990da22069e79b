//! The codes: k Gaussians q_κ with priors π(κ), and who belongs to which (method.md E5, E6, E11, E12).
//!
//! `Codebook` is the state (plain numbers); `Codes` is the same as tensors, with precisions and
//! log-determinants, remade after each update.
//!
//! ```text
//! π_x(κ) ∝ π(κ) exp(−α D_κ(x))        u(x) = Σ_κ π_x(κ) D_κ(x)
//! Σ_κ = Σ_i w_iκ [Σ(x_i) + (μ(x_i) − m_κ)(μ(x_i) − m_κ)ᵀ] / Σ_i w_iκ,   w_iκ = π_{x_i}(κ) + c
//! ```
//!
//! E5 multiplies by the prior, so a code at prior zero can never come back: priors have a floor.

use burn::tensor::{DType, Device, Tensor, activation::softmax};
use nalgebra::DMatrix;

use super::{
    cpu,
    encoder::{Covariance, Encoding},
    product::Product,
    tensors::{Matrices, constant, on_host},
};

/// Code means start as N(0, 0.1²).
pub const INITIAL_MEAN_STD: f64 = 0.1;
/// The least ridge, on the scale of the smallest encoder variance (1e-5 squared).
pub const LEAST_RIDGE: f64 = 1e-10;

/// How E11's covariances are drawn together, as in regularised discriminant analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shrinkage {
    /// ρ: Σ_κ ← (1 − ρ) Σ_κ + ρ Σ_κ' π(κ') Σ_κ'. Codes with few examples borrow from all.
    pub pooled: f64,
    /// Added to each variance, relative to the covariance's mean variance: a code that holds one example keeps a
    /// volume, and a device can still factorise it in f32. Large values make codes rounder.
    pub ridge: f64,
}

/// The codebook's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Codebook {
    /// Latent dimension.
    pub dim: usize,
    /// Whether covariances are diagonals or matrices.
    pub kind: Covariance,
    /// m_κ, `codes × dim`.
    pub means: Vec<f32>,
    /// Σ_κ, `codes × kind.entries(dim)`.
    pub covs: Vec<f32>,
    /// π(κ), sums to 1.
    pub priors: Vec<f32>,
}

/// The codebook as tensors.
#[derive(Clone, Debug)]
pub struct Codes {
    /// m_κ `[codes, dim]`.
    pub means: Tensor<2>,
    /// P_κ = Σ_κ⁻¹.
    pub precision: Matrices,
    /// ln|Σ_κ| `[1, codes]`.
    pub log_det: Tensor<2>,
    /// ln π(κ) `[1, codes]`.
    pub log_prior: Tensor<2>,
    /// Whether diagonal distances may be expanded into matrix products: many times faster with many codes, but an
    /// absolute error of about 1e-7 · Σ (μ − centre)² / variance. For training, not for scores.
    pub expand: bool,
}

impl Codes {
    /// The same codes as constants among tracked tensors.
    pub fn tracked(self) -> Self {
        Self {
            means: self.means.autodiff(),
            precision: self.precision.map(Tensor::autodiff, Tensor::autodiff),
            log_det: self.log_det.autodiff(),
            log_prior: self.log_prior.autodiff(),
            expand: self.expand,
        }
    }

    /// E5: π_x `[batch, codes]` from distances `[batch, codes]`. No gradient passes.
    pub fn assign(&self, distances: &Tensor<2>, alpha: f64) -> Tensor<2> {
        if cpu::is_ours(distances) {
            return cpu::bottleneck::assign(distances.clone(), self.log_prior.clone(), alpha);
        }
        let distances = distances.clone().detach();
        // Distances to the nearest code: the same softmax, and finite when a far input saturates them all.
        let farther = distances.clone() - distances.min_dim(1);
        softmax(self.log_prior.clone() - farther.mul_scalar(alpha), 1)
    }

    /// [`Codes::assign`] from the first update of the codes on (`started`); before it, equal shares.
    pub fn assign_from(&self, started: bool, distances: &Tensor<2>, alpha: f64) -> Tensor<2> {
        match started {
            true => self.assign(distances, alpha),
            false => distances.clone().detach().full_like(1.0 / distances.dims()[1] as f64),
        }
    }
}

/// E6: u(x) `[batch, 1]`.
pub fn uncertainty(assignment: Tensor<2>, distances: Tensor<2>) -> Tensor<2> {
    (assignment * distances).sum_dim(1)
}

impl Codebook {
    /// Identity covariances, equal priors, means as given (`codes × dim`).
    pub fn new(means: Vec<f32>, dim: usize, kind: Covariance) -> Self {
        let codes = means.len() / dim.max(1);
        let one = |entry: usize| kind == Covariance::Diagonal || entry / dim == entry % dim;
        let cov = (0..kind.entries(dim)).map(|entry| f32::from(u8::from(one(entry))));
        let covs = cov.collect::<Vec<_>>().repeat(codes);
        Self { dim, kind, means, covs, priors: vec![1.0 / codes as f32; codes] }
    }

    pub fn len(&self) -> usize {
        self.priors.len()
    }

    /// Precision (row-major) and ln|Σ| of code `code`, in `f64`. NaN when Σ is not positive definite.
    pub fn precision(&self, code: usize) -> (Vec<f64>, f64) {
        let (dim, entries) = (self.dim, self.kind.entries(self.dim));
        let cov = self.covs[code * entries..(code + 1) * entries].iter().map(|&v| f64::from(v));
        if self.kind == Covariance::Diagonal {
            let log_det = cov.clone().map(f64::ln).sum();
            return (cov.map(f64::recip).collect(), log_det);
        }
        match DMatrix::from_row_iterator(dim, dim, cov).cholesky() {
            Some(factor) => {
                let log_det = 2.0 * factor.l_dirty().diagonal().iter().map(|l| l.ln()).sum::<f64>();
                (factor.inverse().transpose().as_slice().to_vec(), log_det)
            }
            None => (vec![f64::NAN; entries], f64::NAN),
        }
    }

    /// The codebook as tensors of `dtype`.
    pub fn tensors(&self, device: &Device, dtype: DType) -> Codes {
        let (codes, dim) = (self.len(), self.dim);
        let (precisions, log_dets): (Vec<_>, Vec<_>) = (0..codes).map(|code| self.precision(code)).unzip();
        let precisions = precisions.concat();
        let means = self.means.iter().map(|&m| f64::from(m)).collect();
        let log_priors = self.priors.iter().map(|&p| f64::from(p).ln()).collect();
        Codes {
            means: constant(means, [codes, dim], device, dtype),
            precision: match self.kind {
                Covariance::Diagonal => Matrices::Diagonal(constant(precisions, [codes, dim], device, dtype)),
                _ => Matrices::Full(constant(precisions, [codes, dim, dim], device, dtype)),
            },
            log_det: constant(log_dets, [1, codes], device, dtype),
            log_prior: constant(log_priors, [1, codes], device, dtype),
            expand: false,
        }
    }

    /// Codes whose prior is below `share` of an equal one.
    pub fn dead(&self, share: f64) -> Vec<usize> {
        let least = share / self.len() as f64;
        (0..self.len()).filter(|&code| f64::from(self.priors[code]) < least).collect()
    }

    /// Sets priors to `weights`, each at least `floor` of an equal share, summing to 1.
    pub fn set_priors(&mut self, weights: &[f64], floor: f64) {
        let total: f64 = weights.iter().sum();
        let least = floor / weights.len() as f64;
        let raised: Vec<f64> = weights.iter().map(|w| (w / total).max(least)).collect();
        let total: f64 = raised.iter().sum();
        self.priors = raised.iter().map(|w| (w / total) as f32).collect();
    }

    /// Sets means to `sums` (`codes × dim`) divided by `weights`. A code of weight 0 stays where it is.
    pub fn set_means(&mut self, sums: &[f64], weights: &[f64]) {
        for (index, mean) in self.means.iter_mut().enumerate() {
            let weight = weights[index / self.dim];
            if weight > 0.0 {
                *mean = (sums[index] / weight) as f32;
            }
        }
    }

    /// Sets covariances from `sums` (`codes × entries`) divided by `weights`, drawn together by `shrinkage`. A code of weight
    /// 0, which nobody uses at all, keeps its own.
    pub fn set_covs(&mut self, sums: &[f64], weights: &[f64], shrinkage: Shrinkage) {
        let (dim, entries) = (self.dim, self.kind.entries(self.dim));
        let diagonal = |entry: usize| entries == dim || entry / dim == entry % dim;
        let total: f64 = weights.iter().sum();
        let pooled: Vec<f64> =
            (0..entries).map(|entry| sums.iter().skip(entry).step_by(entries).sum::<f64>() / total).collect();
        for (code, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let sums = &sums[code * entries..(code + 1) * entries];
            let mixed: Vec<f64> = (sums.iter().zip(&pooled))
                .map(|(sum, pooled)| (1.0 - shrinkage.pooled) * sum / weight + shrinkage.pooled * pooled)
                .collect();
            let trace: f64 = (0..entries).filter(|&entry| diagonal(entry)).map(|entry| mixed[entry]).sum();
            let ridge = LEAST_RIDGE + shrinkage.ridge * trace / dim as f64;
            let cov = &mut self.covs[code * entries..(code + 1) * entries];
            for (entry, value) in cov.iter_mut().enumerate() {
                let mirror = if entries == dim { entry } else { entry % dim * dim + entry / dim };
                let middle = 0.5 * (mixed[entry] + mixed[mirror]); // symmetric to the last bit
                *value = (middle + if diagonal(entry) { ridge } else { 0.0 }) as f32;
            }
        }
    }
}

/// One batch's part of E11 and E12: Σ_i w_iκ `[codes]` and Σ_i w_iκ [Σ(x_i) + …] `[codes, entries]`.
pub fn moments(
    encoding: &Encoding,
    weights: Tensor<2>,
    means: Tensor<2>,
    kind: Covariance,
) -> (Tensor<2>, Tensor<2>) {
    let [codes, dim] = means.dims();
    let batch = encoding.len();
    let inner = weights.clone().transpose().product(encoding.cov()); // [codes, entries]
    // [codes, batch, d]
    let offset = |mean: Tensor<2>, means: Tensor<2>| mean.unsqueeze_dim::<3>(0) - means.unsqueeze_dim::<3>(1);
    let column = || weights.clone().transpose().reshape([codes, batch, 1]);
    let outer = match kind {
        Covariance::Diagonal if on_host(&means.device()) => {
            squares(encoding.mean.clone(), weights.clone(), means)
        }
        Covariance::Diagonal => {
            (offset(encoding.mean.clone(), means).square() * column()).sum_dim(1).reshape([codes, dim])
        }
        _ => {
            let offset = offset(encoding.mean.clone(), means);
            (offset.clone() * column()).transpose().product(offset).reshape([codes, dim * dim])
        }
    };
    (weights.sum_dim(0), inner + outer)
}

/// Σ_i w_iκ (μ_i − m_κ)² = Σ w μ² − m (2 Σ w μ − m Σ w) `[codes, d]`: matrix products instead of a `[codes, batch, d]`
/// tensor, and in `f64`, because in `f32` a tight code far from zero would lose its digits.
fn squares(mean: Tensor<2>, weights: Tensor<2>, means: Tensor<2>) -> Tensor<2> {
    let dtype = means.dtype();
    let [mean, weights, means] = [mean, weights, means].map(|tensor| tensor.cast(DType::F64));
    let total = weights.clone().sum_dim(0).transpose(); // [codes, 1]
    let weights = weights.transpose();
    let first = weights.clone().product(mean.clone());
    let second = weights.product(mean.square());
    (second - means.clone() * (first.mul_scalar(2.0) - means * total)).cast(dtype)
}

#[cfg(test)]
#[path = "codebook_tests.rs"]
mod tests;
