//! Distances from encoder Gaussians to every code (method.md E4).
//!
//! `Encoding` + `Codes` → `kl` → `[batch, codes]`, nats. Codes carry their precision, so nothing is inverted.
//!
//! ```text
//! D_κ = ½ [ tr(P_κ Σ) + (μ − m_κ)ᵀ P_κ (μ − m_κ) − d + ln|Σ_κ| − ln|Σ| ]
//! ```
//!
//! The quadratic form is taken of the differences themselves: expanded into μᵀPμ − 2μᵀPm + mᵀPm it loses digits in
//! f32 when codes are tight and far apart. Training with many diagonal codes expands it nevertheless
//! ([`Codes::expand`]): a `[batch, codes, d]` tensor would cost more than the network.

use burn::tensor::Tensor;

use super::{codebook::Codes, cpu, encoder::Encoding, product::Product, tensors::Matrices};

/// KL(p(z|x) ‖ q_κ) `[batch, codes]`. Differentiable in the encoding and in the codes' means.
pub fn kl(encoding: &Encoding, codes: &Codes) -> Tensor<2> {
    let [batch, dim] = encoding.mean.dims();
    let count = codes.means.dims()[0];
    if let (Matrices::Full(root), Matrices::Full(precision)) = (&encoding.root, &codes.precision)
        && cpu::is_ours(root)
        && cpu::bottleneck::fits(count, dim)
    {
        let own = [encoding.mean.clone(), encoding.log_det.clone()];
        let theirs = [codes.means.clone(), codes.log_det.clone()];
        return cpu::bottleneck::distances(own, root.clone(), theirs, precision.clone());
    }
    let cov = encoding.cov(); // [batch, d] or [batch, d²]
    let (trace, square) = match &codes.precision {
        Matrices::Diagonal(precision) if codes.expand => {
            // About the codes' centre: Σ (μ² + s²) p − 2 Σ μ m p + Σ m² p, two products [batch, d] × [d, codes].
            let centre = codes.means.clone().detach().mean_dim(0); // [1, d]
            let (mean, own) = (encoding.mean.clone() - centre.clone(), codes.means.clone() - centre);
            let weighted = own.clone() * precision.clone(); // [codes, d]
            let cross = mean.clone().product(weighted.clone().transpose()).mul_scalar(-2.0);
            let trace = (cov + mean.square()).product(precision.clone().transpose());
            (trace, cross + (own * weighted).sum_dim(1).transpose())
        }
        Matrices::Diagonal(precision) => {
            let trace = cov.product(precision.clone().transpose()); // [batch, codes]
            let offset =
                encoding.mean.clone().unsqueeze_dim::<3>(1) - codes.means.clone().unsqueeze_dim::<3>(0);
            let square = (offset.square() * precision.clone().unsqueeze_dim::<3>(0)).sum_dim(2);
            (trace, square.reshape([batch, count]))
        }
        Matrices::Full(precision) => {
            let flat = precision.clone().reshape([count, dim * dim]);
            let trace = cov.product(flat.transpose());
            // [codes, batch, d] = [1, batch, d] − [codes, 1, d]
            let offset =
                encoding.mean.clone().unsqueeze_dim::<3>(0) - codes.means.clone().unsqueeze_dim::<3>(1);
            let square = (offset.clone().product(precision.clone()) * offset).sum_dim(2);
            (trace, square.reshape([count, batch]).transpose())
        }
    };
    let volumes = codes.log_det.clone() - encoding.log_det.clone(); // [1, codes] − [batch, 1]
    (trace + square + volumes).sub_scalar(dim as f64).mul_scalar(0.5)
}
