//! Roots of spectral covariances, and their gradients, in loops over a few rows at a time (method.md E2).
//!
//! ```text
//! A = U diag(λ) Uᵀ    S = U diag(f(λ)) Uᵀ    ln|Σ| = 2 Σ ln f(λ)    f(λ) = softplus(|λ| − 5) + 1e-5
//! dA = U (Φ ∘ (Uᵀ dS U) + diag(2 f′/f · dln|Σ|)) Uᵀ                  Φ as in spectral.rs
//! ```
//!
//! The same as `spectral.rs`, whose sixty operations on matrices of 4 × 4 cost more than what they compute. In f64 throughout.

use dab_core::isa::{Isa, Kernel};

use crate::{
    model::{
        encoder::{STD_FLOOR, STD_SHIFT, triangle},
        spectral::{CONVERGED, Jacobi, LANES, Lanes, TIE},
    },
    support::simd::Widest,
};

/// Matrices, decomposed; [`LANES`] of them side by side.
#[derive(Clone, Debug)]
pub struct Decomposed {
    dim: usize,
    rows: usize,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    /// λ.
    values: Vec<Lanes>,
    /// U, `dim × dim`, eigenvectors are columns.
    vectors: Vec<Lanes>,
    /// f(λ) and f′(λ).
    stds: Vec<Lanes>,
    slopes: Vec<Lanes>,
}

/// f and f′ of an eigenvalue.
fn std_and_slope(value: f64) -> [f64; 2] {
    let x = value.abs() - STD_SHIFT;
    let small = (-x.abs()).exp();
    let sigmoid = if x < 0.0 { small } else { 1.0 } / (1.0 + small);
    // 0 at the kink.
    let sign = if value == 0.0 { 0.0 } else { value.signum() };
    [x.max(0.0) + small.ln_1p() + STD_FLOOR, sign * sigmoid]
}

impl Decomposed {
    /// Of the symmetric matrices whose lower triangles are the rows of `raw`, off the diagonal twice.
    pub fn new(raw: &[f32], dim: usize) -> Self {
        let width = triangle(dim, 0);
        let (isa, cells) = (Widest::detect(), dim * dim);
        let block = |raw: &[f32]| {
            let mut matrix = vec![[0.0; LANES]; cells];
            let mut vectors = matrix.clone();
            for (lane, row) in raw.chunks_exact(width).enumerate() {
                for i in 0..dim {
                    for j in 0..i {
                        let half = 0.5 * f64::from(row[triangle(i, j)]);
                        matrix[i * dim + j][lane] = half;
                        matrix[j * dim + i][lane] = half;
                    }
                    matrix[i * dim + i][lane] = f64::from(row[triangle(i, i)]);
                }
            }
            isa.run(Jacobi { a: &mut matrix, v: &mut vectors, dim, tolerance: CONVERGED.0 });
            let values: Vec<Lanes> = (0..dim).map(|i| matrix[i * dim + i]).collect();
            let both = values.iter().map(|lanes| lanes.map(std_and_slope));
            let (stds, slopes) = both.map(|both| (both.map(|[std, _]| std), both.map(|[_, s]| s))).unzip();
            Block { values, vectors, stds, slopes }
        };
        Self { dim, rows: raw.len() / width, blocks: raw.chunks(LANES * width).map(block).collect() }
    }

    /// S and ln|Σ| behind it, `[rows, dim² + 1]`.
    pub fn result(&self) -> Vec<f32> {
        let (dim, width, isa) = (self.dim, self.dim * self.dim + 1, Widest::detect());
        let mut out = vec![0.0; self.rows * width];
        let mut root = vec![[0.0; LANES]; dim * dim];
        for (block, out) in self.blocks.iter().zip(out.chunks_mut(LANES * width)) {
            isa.run(Root { block, dim, root: &mut root });
            for (lane, out) in out.chunks_exact_mut(width).enumerate() {
                let log_det: f64 = block.stds.iter().map(|std| std[lane].ln()).sum();
                out.iter_mut().zip(&root).for_each(|(out, cell)| *out = cell[lane] as f32);
                out[width - 1] = (2.0 * log_det) as f32;
            }
        }
        out
    }

    /// The gradient of `raw` from that of [`Decomposed::result`].
    pub fn gradient(&self, dy: &[f32]) -> Vec<f32> {
        let (dim, isa) = (self.dim, Widest::detect());
        let (cells, width) = (dim * dim, triangle(dim, 0));
        let mut out = vec![0.0; self.rows * width];
        let mut work: [Vec<Lanes>; 2] = [vec![[0.0; LANES]; cells + 1], vec![[0.0; LANES]; cells]];
        let rows = dy.chunks(LANES * (cells + 1)).zip(out.chunks_mut(LANES * width));
        for (block, (dy, out)) in self.blocks.iter().zip(rows) {
            let [given, other] = &mut work;
            for (lane, dy) in dy.chunks_exact(cells + 1).enumerate() {
                given.iter_mut().zip(dy).for_each(|(cell, &dy)| cell[lane] = f64::from(dy));
            }
            isa.run(Gradient { block, dim, given, other });
            for (lane, out) in out.chunks_exact_mut(width).enumerate() {
                for i in 0..dim {
                    for j in 0..i {
                        let both = given[i * dim + j][lane] + given[j * dim + i][lane];
                        out[triangle(i, j)] = (0.5 * both) as f32;
                    }
                    out[triangle(i, i)] = given[i * dim + i][lane] as f32;
                }
            }
        }
        out
    }
}

#[inline(always)]
fn add(sum: &mut Lanes, a: &Lanes, b: &Lanes) {
    for lane in 0..LANES {
        sum[lane] += a[lane] * b[lane];
    }
}

/// S = U diag(f) Uᵀ.
struct Root<'a> {
    block: &'a Block,
    dim: usize,
    root: &'a mut [Lanes],
}

impl Kernel for Root<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { block: Block { vectors, stds, .. }, dim, root } = self;
        for i in 0..dim {
            for j in 0..=i {
                let mut sum = [0.0; LANES];
                for k in 0..dim {
                    let mut scaled = [0.0; LANES];
                    add(&mut scaled, &vectors[i * dim + k], &stds[k]);
                    add(&mut sum, &scaled, &vectors[j * dim + k]);
                }
                root[i * dim + j] = sum;
                root[j * dim + i] = sum;
            }
        }
    }
}

/// dA from dS and, behind its cells, dln|Σ|: in place.
struct Gradient<'a> {
    block: &'a Block,
    dim: usize,
    given: &'a mut [Lanes],
    other: &'a mut [Lanes],
}

impl Kernel for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { block: Block { values, vectors, stds, slopes }, dim, given, other } = self;
        let log_det = given[dim * dim];
        // Uᵀ dS U
        sums(dim, other, |i, k, l| (&given[i * dim + l], &vectors[l * dim + k]));
        sums(dim, given, |i, k, l| (&vectors[l * dim + i], &other[l * dim + k]));
        for i in 0..dim {
            for k in 0..dim {
                for lane in 0..LANES {
                    let (a, b) = (values[i][lane], values[k][lane]);
                    let run = a - b;
                    let tied = run.abs() <= TIE * (a.abs() + b.abs() + 1.0);
                    let quotient = match (i == k, tied) {
                        (true, _) => slopes[i][lane],
                        (_, true) => std_and_slope(0.5 * (a + b))[1],
                        _ => (stds[i][lane] - stds[k][lane]) / run,
                    };
                    given[i * dim + k][lane] *= quotient;
                }
            }
            for lane in 0..LANES {
                given[i * dim + i][lane] += 2.0 * slopes[i][lane] / stds[i][lane] * log_det[lane];
            }
        }
        // U … Uᵀ
        sums(dim, other, |i, k, l| (&vectors[i * dim + l], &given[l * dim + k]));
        sums(dim, given, |i, k, l| (&other[i * dim + l], &vectors[k * dim + l]));
    }
}

/// A product of matrices: cell (i, k) is the sum over l of the product of two cells.
#[inline(always)]
fn sums<'a>(dim: usize, out: &mut [Lanes], factors: impl Fn(usize, usize, usize) -> (&'a Lanes, &'a Lanes)) {
    for i in 0..dim {
        for k in 0..dim {
            let mut sum = [0.0; LANES];
            for l in 0..dim {
                let (a, b) = factors(i, k, l);
                add(&mut sum, a, b);
            }
            out[i * dim + k] = sum;
        }
    }
}
