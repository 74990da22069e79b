//! Distance from an encoder Gaussian to one code (method.md E4).
//!
//! `GaussianView` + `CodeView` → `kl` → one entry of `distances`. Nothing here inverts a matrix: a code
//! carries its precision as a factor R (P = Rᵀ R, lower-triangular), or as `1/v` when it is diagonal.
//!
//! ```text
//! D = ½ [ tr(P Σ) + (μ − m)ᵀ P (μ − m) − d + ln|Σ_κ| − ln|Σ| ]
//!   = ½ [ Σᵢ ( ‖(R V)ᵢ‖² + (R (μ − m))ᵢ² ) − d + ln|Σ_κ| − ln|Σ| ]
//! ```
//!
//! Row i of the second line is the KL chain rule. What row i adds is the divergence of
//! dimension i given the dimensions before it, so the same rows explain the distance
//! ([`per_dimension_into`]).

use crate::gaussian::{GaussianView, Spread};
use crate::linalg::dot::{IS_64_BIT, LANES, Lanes, accumulate_from, add_tail, fold};
pub use crate::linalg::triangle::Triangle;
use crate::scalar::{flush, ln, saturate};

/// The precision of a code.
#[derive(Clone, Copy, Debug)]
pub enum Precision<'a> {
    /// `1/v`, one per dimension.
    Diagonal(&'a [f32]),
    /// R of P = Rᵀ R, positive diagonal.
    Full(Triangle<'a>),
    /// The identity.
    Identity,
    /// Of the encoder and of all codes the identity, and what the square of the distance from this code is multiplied by (E14):
    /// more than 1 where training rows lie densely.
    Local(f32),
}

/// One code, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CodeView<'a> {
    /// Mean m, one value per latent dimension.
    pub mean: &'a [f32],
    /// Precision P = Σ_κ⁻¹.
    pub precision: Precision<'a>,
    /// ln|Σ_κ|, nats.
    pub log_det: f32,
}

/// Divergence of `p` from `code`, nats, in `[0, f32::MAX]`. Constant: `d` multiply-adds; diagonal: `2 d`; full:
/// `d²(d+1)/2 + d(d+1)/2 + d` (a third of that for a Cholesky factor on a small machine). No
/// transcendental call.
#[inline(always)]
#[must_use]
pub fn kl(p: &GaussianView<'_>, code: &CodeView<'_>) -> f32 {
    let energy = match (p.spread, code.precision) {
        (Spread::Diagonal(variance), Precision::Diagonal(precision)) => {
            diagonal_energy(p.mean, variance, code.mean, precision)
        }
        (Spread::Full { factor, lower }, Precision::Full(rows)) => {
            let mut acc = [0.0; LANES];
            for i in 0..p.mean.len() {
                let row = row_energy(p.mean, factor, lower, code.mean, rows.row(i));
                for (s, x) in acc.iter_mut().zip(row) {
                    *s += x;
                }
            }
            acc
        }
        // Traces, dimension and log-determinants cancel.
        (Spread::Identity, Precision::Identity) if cfg!(feature = "channels") => {
            return half_square(p.mean, code.mean);
        }
        (Spread::Identity, Precision::Local(precision)) if cfg!(feature = "channels") => {
            return local(half_square(p.mean, code.mean), precision);
        }
        // A codebook and an encoder of different kinds cannot be built: the reader and the types see to it.
        _ => [f32::MAX; LANES],
    };
    let constant = code.log_det - p.mean.len() as f32 - p.log_det;
    saturate(0.5 * (fold(energy) + constant))
}

/// Where the lanes of [`half_square`] begin, 2⁻¹⁰⁰. The square of a tiny difference is no normal number, and a process
/// may flush those to zero; beside this it cannot be seen in either case. All of it is taken off the sum.
const GRAIN: f32 = crate::scalar::SMALLEST * crate::scalar::SMALLEST;

/// `½ ‖μ − m‖²` (E14): the divergence of two Gaussians that both have the identity for a covariance. `d` multiply-adds.
/// Below 2⁻⁵⁰ it is 0.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[must_use]
pub(crate) fn half_square(mean: &[f32], code_mean: &[f32]) -> f32 {
    let lanes = accumulate_from(GRAIN, mean, code_mean, |m, c| (m - c) * (m - c));
    flush(saturate(0.5 * (fold(lanes) - LANES as f32 * GRAIN)))
}

/// A distance times the local precision of its code. Below 2⁻⁵⁰ it is 0.
#[inline(always)]
pub(crate) fn local(half_square: f32, precision: f32) -> f32 {
    flush(saturate(half_square * precision))
}

/// `½ Σᵢ (sᵢ² + (μᵢ − mᵢ)²) / vᵢ`, without the ½, in lanes.
#[inline(always)]
fn diagonal_energy(mean: &[f32], variance: &[f32], code_mean: &[f32], precision: &[f32]) -> Lanes {
    let ((m, m_tail), (v, v_tail)) = (mean.as_chunks::<LANES>(), variance.as_chunks::<LANES>());
    let ((c, c_tail), (p, p_tail)) = (code_mean.as_chunks::<LANES>(), precision.as_chunks::<LANES>());
    let mut acc = [0.0; LANES];
    for (((m, v), c), p) in m.iter().zip(v).zip(c).zip(p) {
        for ((((s, &m), &v), &c), &p) in acc.iter_mut().zip(m).zip(v).zip(c).zip(p) {
            *s += energy(m, v, c, p);
        }
    }
    let tails = m_tail.iter().zip(v_tail).zip(c_tail).zip(p_tail);
    add_tail(&mut acc, tails.map(|(((&m, &v), &c), &p)| energy(m, v, c, p)));
    acc
}

/// `(s² + (μ − m)²) / v` of one dimension.
#[inline(always)]
fn energy(mean: f32, variance: f32, code_mean: f32, precision: f32) -> f32 {
    let offset = mean - code_mean;
    (offset * offset + variance) * precision
}

/// `‖(R V)ᵢ‖² + (R (μ − m))ᵢ²` for the row `r` = Rᵢ, in lanes: columns of V go to lane `column mod 8`.
#[inline(always)]
fn row_energy(mean: &[f32], factor: &[f32], lower: bool, code_mean: &[f32], r: &[f32]) -> Lanes {
    let dim = mean.len();
    let mut acc = [0.0; LANES];
    for first in (0..dim).step_by(LANES) {
        let block = if dim - first >= LANES && (IS_64_BIT || !lower) {
            full_block(factor, dim, first, lower, r)
        } else {
            part_block(factor, dim, first, lower, r)
        };
        for (s, b) in acc.iter_mut().zip(block) {
            *s += b * b;
        }
    }
    let mut offset = 0.0;
    for ((r, m), c) in r.iter().zip(mean).zip(code_mean) {
        offset += r * (m - c);
    }
    let [lane, ..] = &mut acc;
    *lane += offset * offset;
    acc
}

/// Eight columns of (R V)ᵢ = Σⱼ Rᵢⱼ Vⱼ, from column `first` on. Above the diagonal a Cholesky factor is
/// zero; adding its zeros is faster than looking for them and changes no bit.
#[inline(always)]
fn full_block(factor: &[f32], dim: usize, first: usize, lower: bool, r: &[f32]) -> Lanes {
    let mut block = [0.0; LANES];
    for (j, &r_j) in r.iter().enumerate().skip(if lower { first } else { 0 }) {
        let Some(v) = factor.get(j * dim + first..).and_then(|f| f.first_chunk::<LANES>()) else { break };
        for (b, v) in block.iter_mut().zip(v) {
            *b += r_j * v;
        }
    }
    block
}

/// The same for fewer than eight columns, and for a small machine, which stops at the diagonal.
#[inline(always)]
fn part_block(factor: &[f32], dim: usize, first: usize, lower: bool, r: &[f32]) -> Lanes {
    let mut block = [0.0; LANES];
    for (j, &r_j) in r.iter().enumerate().skip(if lower { first } else { 0 }) {
        let columns = if lower { j + 1 - first } else { dim - first };
        let Some(v) = factor.get(j * dim + first..).and_then(|f| f.get(..columns)) else { break };
        for (b, v) in block.iter_mut().zip(v) {
            *b += r_j * v;
        }
    }
    block
}

/// Adds `weight ×` what each latent dimension contributes to the divergence from `code`.
///
/// The contributions sum to the divergence. Diagonal and Cholesky encoders: each is the divergence of
/// that dimension given the ones before it, hence not negative. Spectral encoder: ln|Σ| is shared out evenly.
#[inline(always)]
pub fn per_dimension_into(p: &GaussianView<'_>, code: &CodeView<'_>, weight: f32, out: &mut [f32]) {
    let dim = p.mean.len();
    // A large precision would show in the shares of a distance that is 0 because its square is below 2⁻⁵⁰.
    if cfg!(feature = "channels")
        && matches!(code.precision, Precision::Local(_))
        && half_square(p.mean, code.mean) == 0.0
    {
        return;
    }
    for (i, out) in out.iter_mut().enumerate() {
        let at = |values: &[f32]| values.get(i).copied().unwrap_or(0.0);
        let share =
            |energy: f32, log_det: f32, code_log_det: f32| 0.5 * (energy - 1.0 + code_log_det - log_det);
        let share = match (p.spread, code.precision) {
            (Spread::Diagonal(variance), Precision::Diagonal(precision)) => share(
                energy(at(p.mean), at(variance), at(code.mean), at(precision)),
                ln(at(variance)),
                -ln(at(precision)),
            ),
            (Spread::Full { factor, lower }, Precision::Full(rows)) => share(
                fold(row_energy(p.mean, factor, lower, code.mean, rows.row(i))),
                if lower {
                    2.0 * ln(factor.get(i * dim + i).copied().unwrap_or(1.0))
                } else {
                    p.log_det / dim as f32
                },
                -2.0 * ln(rows.diagonal(i)),
            ),
            (Spread::Identity, Precision::Identity) => {
                let offset = flush(at(p.mean) - at(code.mean));
                0.5 * (offset * offset)
            }
            (Spread::Identity, Precision::Local(precision)) => {
                let offset = flush(at(p.mean) - at(code.mean));
                local(0.5 * (offset * offset), precision)
            }
            _ => return,
        };
        // A saturated distance explains itself with saturated shares, never with NaN.
        let share = if share > f32::MAX { f32::MAX } else { share };
        *out += weight * share;
        if *out > f32::MAX {
            *out = f32::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::linalg::triangle::{Layout, packed_len};

    #[test]
    fn two_identities_are_half_a_square_apart() {
        let p = GaussianView { mean: &[3.0, 1.0], spread: Spread::Identity, log_det: 0.0 };
        let code = CodeView { mean: &[0.0, -3.0], precision: Precision::Identity, log_det: 0.0 };
        assert_eq!(kl(&p, &code), 0.5 * (9.0 + 16.0));
    }

    #[test]
    fn a_local_precision_multiplies_the_half_square_which_is_limited_and_flushed() {
        const SMALLEST: f32 = crate::scalar::SMALLEST;
        let distance = |offset: f32, precision: f32| {
            let p = GaussianView { mean: &[offset, 1.0], spread: Spread::Identity, log_det: 0.0 };
            let code = CodeView { mean: &[0.0, 1.0], precision: Precision::Local(precision), log_det: 0.0 };
            let mut shares = [0.0; 2];
            per_dimension_into(&p, &code, 1.0, &mut shares);
            assert_eq!(shares, [kl(&p, &code), 0.0], "{offset} {precision}");
            kl(&p, &code)
        };
        assert_eq!([distance(3.0, 0.25), distance(3.0, 8.0)], [1.125, 36.0]);
        // The ends of the domain: 2^149 is no f32; and what is below 2⁻⁵⁰ is 0, before and after the product.
        let end = crate::scalar::LARGEST;
        assert_eq!([distance(end, end), distance(end, SMALLEST)], [f32::MAX, 0.5 * end]);
        let offset = 0.5f32.powi(24);
        assert_eq!([distance(offset, 0.5), distance(offset, 0.49)], [SMALLEST, 0.0]);
        assert_eq!([distance(offset, end), distance(0.5 * offset, end)], [2.0, 0.0]);
    }

    #[test]
    fn a_code_at_the_mean_of_another_width_is_explained() {
        let mean = [2.0, -1.0];
        let p = GaussianView { mean: &mean, spread: Spread::Diagonal(&[2.0, 1.0]), log_det: ln(2.0) };
        let code = CodeView { mean: &mean, precision: Precision::Diagonal(&[1.0; 2]), log_det: 0.0 };
        let mut shares = [0.0; 2];
        per_dimension_into(&p, &code, 1.0, &mut shares);
        assert_eq!(shares, [0.5 * (1.0 - ln(2.0)), 0.0]);
        assert_eq!(kl(&p, &code), shares[0]);
    }

    /// Sums of some thousand f32 products against float64.
    const RELATIVE: f64 = 1e-5;

    #[test]
    fn factors_of_several_blocks_agree_with_float64() {
        // Two whole blocks of columns, and three columns.
        const D: usize = 2 * LANES + 3;
        let number = |n: usize| ((n * 37 + 11) % 29) as f32 / 14.0 - 1.0;
        let mean: Vec<f32> = (0..D).map(number).collect();
        let code_mean: Vec<f32> = (0..D).map(|i| number(i + 100)).collect();
        let r: Vec<f32> = (0..packed_len(D)).map(|n| number(n + 7)).collect();
        let rows = Triangle::new(&r, D, Layout::Packed);
        for lower in [false, true] {
            let entry = |n: usize| if lower && n % D > n / D { 0.0 } else { number(n + 3) };
            let factor: Vec<f32> = (0..D * D).map(entry).collect();
            let product = |i: usize, v: &dyn Fn(usize) -> f64| -> f64 {
                rows.row(i).iter().enumerate().map(|(j, &r)| f64::from(r) * v(j)).sum()
            };
            let mut exact = -(D as f64);
            for i in 0..D {
                for k in 0..D {
                    exact += product(i, &|j| f64::from(factor[j * D + k])).powi(2);
                }
                exact += product(i, &|j| f64::from(mean[j]) - f64::from(code_mean[j])).powi(2);
            }
            let p =
                GaussianView { mean: &mean, spread: Spread::Full { factor: &factor, lower }, log_det: 0.0 };
            let code = CodeView { mean: &code_mean, precision: Precision::Full(rows), log_det: 0.0 };
            let found = f64::from(kl(&p, &code));
            assert!((found / (0.5 * exact) - 1.0).abs() < RELATIVE, "{found} {exact}");
        }
    }

    #[test]
    fn shares_of_a_saturated_distance_are_saturated_before_they_are_weighted() {
        // The ends of the domain: 2^100 · 2^50 is no f32.
        let end = crate::scalar::LARGEST;
        let p = GaussianView { mean: &[end, 1.0], spread: Spread::Diagonal(&[1.0; 2]), log_det: 0.0 };
        let code = CodeView { mean: &[0.0; 2], precision: Precision::Diagonal(&[end, 1.0]), log_det: 0.0 };
        let mut out = [0.0; 2];
        per_dimension_into(&p, &code, 0.5, &mut out);
        assert_eq!(out, [0.5 * f32::MAX, 0.25]);
        // Two such codes of the whole weight: the sum is no more than the largest number.
        let mut out = [0.0; 2];
        per_dimension_into(&p, &code, 1.0, &mut out);
        per_dimension_into(&p, &code, 1.0, &mut out);
        assert_eq!(out, [f32::MAX, 1.0]);
    }
}
