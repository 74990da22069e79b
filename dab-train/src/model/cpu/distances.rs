//! Distances of full covariances to a few codes, and their gradients, in loops over sixteen rows at a time (method.md E4).
//!
//! ```text
//! D = ½ [ tr(P S Sᵀ) + oᵀ P o − d + ln|Σ_κ| − ln|Σ| ],    o = μ − m
//! dμ = Σ_κ dD P o        dm = −Σ_rows dD P o        dS = (Σ_κ dD P) S        dln|Σ| = −½ Σ_κ dD
//! ```
//!
//! The same as `divergence.rs`, whose operations cost more than what they compute while codes are few.

use dab_core::isa::{Isa, Kernel};

use crate::support::simd::Widest;

/// Rows side by side: two registers' worth of AVX2, one of AVX-512.
const LANES: usize = 16;
/// Multiply-adds of a row (codes · d²) from which on matrix products are faster.
const FEW: usize = 4096;
/// Dimensions from which on they are.
const NARROW: usize = 16;

/// One number of each of some rows.
type Lanes = [f32; LANES];

/// Whether the loops are made for so many codes in so many dimensions.
pub fn fits(codes: usize, dim: usize) -> bool {
    dim <= NARROW && codes * dim * dim <= FEW
}

/// Encodings, and codes.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// μ `[rows, d]`.
    pub mean: &'a [f32],
    /// S `[rows, d, d]`.
    pub root: &'a [f32],
    /// ln|Σ| `[rows]`.
    pub log_det: &'a [f32],
    /// m `[codes, d]`.
    pub means: &'a [f32],
    /// P `[codes, d, d]`, symmetric.
    pub precision: &'a [f32],
    /// ln|Σ_κ| `[codes]`.
    pub code_log_det: &'a [f32],
    /// d.
    pub dim: usize,
}

/// What [`Between::gradients`] finds, in the shapes of [`Between`].
#[derive(Debug)]
pub struct Gradients {
    pub mean: Vec<f32>,
    pub root: Vec<f32>,
    pub log_det: Vec<f32>,
    pub means: Vec<f32>,
}

/// Up to [`LANES`] rows, cell by cell.
#[derive(Debug)]
struct Rows {
    mean: Vec<Lanes>,
    root: Vec<Lanes>,
    /// Σ, or ½ dΣ.
    square: Vec<Lanes>,
    /// o and P o of one code.
    offset: Vec<Lanes>,
    pulled: Vec<Lanes>,
    /// The gradient of μ.
    pull: Vec<Lanes>,
}

/// Turns rows of `width` numbers into cells.
fn gather(rows: &[f32], width: usize, cells: &mut [Lanes]) {
    for (lane, row) in rows.chunks_exact(width).enumerate() {
        cells.iter_mut().zip(row).for_each(|(cell, &number)| cell[lane] = number);
    }
}

/// Turns cells into rows of `width` numbers.
fn scatter(cells: &[Lanes], width: usize, rows: &mut [f32]) {
    for (lane, row) in rows.chunks_exact_mut(width).enumerate() {
        row.iter_mut().zip(cells).for_each(|(number, cell)| *number = cell[lane]);
    }
}

#[inline(always)]
fn add(sum: &mut Lanes, a: &Lanes, b: &Lanes) {
    for lane in 0..LANES {
        sum[lane] += a[lane] * b[lane];
    }
}

impl Between<'_> {
    fn codes(&self) -> usize {
        self.code_log_det.len()
    }

    fn rows(&self) -> Rows {
        let zero = |cells| vec![[0.0; LANES]; cells];
        let (dim, cells) = (self.dim, self.dim * self.dim);
        Rows {
            mean: zero(dim),
            root: zero(cells),
            square: zero(cells),
            offset: zero(dim),
            pulled: zero(dim),
            pull: zero(dim),
        }
    }

    /// The encodings of [`LANES`] rows, or of those that are left.
    fn blocks(&self) -> impl Iterator<Item = (&[f32], &[f32], &[f32])> {
        let (dim, cells) = (self.dim, self.dim * self.dim);
        let given = self.mean.chunks(LANES * dim).zip(self.root.chunks(LANES * cells));
        given.zip(self.log_det.chunks(LANES)).map(|((mean, root), log_det)| (mean, root, log_det))
    }

    /// D `[rows, codes]`.
    pub fn distances(&self) -> Vec<f32> {
        let (dim, codes, isa) = (self.dim, self.codes(), Widest::detect());
        let mut out = vec![0.0; self.log_det.len() * codes];
        let (mut rows, mut found) = (self.rows(), vec![[0.0; LANES]; codes]);
        for ((mean, root, log_det), out) in self.blocks().zip(out.chunks_mut(LANES * codes)) {
            gather(mean, dim, &mut rows.mean);
            gather(root, dim * dim, &mut rows.root);
            let mut volume = [0.0; LANES];
            volume[..log_det.len()].copy_from_slice(log_det);
            isa.run(Forward { of: self, rows: &mut rows, volume, found: &mut found });
            scatter(&found, codes, out);
        }
        out
    }

    /// Of the sum of `dy · D`, `dy` `[rows, codes]`.
    pub fn gradients(&self, dy: &[f32]) -> Gradients {
        let (dim, codes, isa) = (self.dim, self.codes(), Widest::detect());
        let cells = dim * dim;
        let (mut mean, mut root) = (vec![0.0; self.mean.len()], vec![0.0; self.root.len()]);
        let mut log_det = vec![0.0; self.log_det.len()];
        let mut means = vec![0.0_f64; self.means.len()];
        let (mut rows, mut given) = (self.rows(), vec![[0.0; LANES]; codes]);
        let mut out = vec![[0.0; LANES]; cells];
        let found = mean.chunks_mut(LANES * dim).zip(root.chunks_mut(LANES * cells));
        let found = found.zip(log_det.chunks_mut(LANES)).zip(dy.chunks(LANES * codes));
        for ((own_mean, own_root, _), (((mean, root), log_det), dy)) in self.blocks().zip(found) {
            // Rows that are not there must not add to the codes' gradients.
            given.fill([0.0; LANES]);
            gather(dy, codes, &mut given);
            gather(own_mean, dim, &mut rows.mean);
            gather(own_root, cells, &mut rows.root);
            isa.run(Backward { of: self, rows: &mut rows, given: &given, means: &mut means, root: &mut out });
            scatter(&rows.pull, dim, mean);
            scatter(&out, cells, root);
            for (lane, log_det) in log_det.iter_mut().enumerate() {
                *log_det = -0.5 * given.iter().map(|dy| dy[lane]).sum::<f32>();
            }
        }
        Gradients { mean, root, log_det, means: means.into_iter().map(|sum| sum as f32).collect() }
    }

    /// o and P o of a code.
    #[inline(always)]
    fn offset(&self, code: usize, rows: &mut Rows) {
        let dim = self.dim;
        let own = &self.means[code * dim..(code + 1) * dim];
        for ((offset, mean), own) in rows.offset.iter_mut().zip(&rows.mean).zip(own) {
            for lane in 0..LANES {
                offset[lane] = mean[lane] - own;
            }
        }
        let precision = &self.precision[code * dim * dim..(code + 1) * dim * dim];
        for (pulled, precision) in rows.pulled.iter_mut().zip(precision.chunks_exact(dim)) {
            *pulled = [0.0; LANES];
            for (offset, &p) in rows.offset.iter().zip(precision) {
                for lane in 0..LANES {
                    pulled[lane] += p * offset[lane];
                }
            }
        }
    }
}

/// Distances of some rows.
struct Forward<'a, 'b> {
    of: &'a Between<'b>,
    rows: &'a mut Rows,
    volume: Lanes,
    found: &'a mut [Lanes],
}

impl Kernel for Forward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { of, rows, volume, found } = self;
        let dim = of.dim;
        for i in 0..dim {
            for j in 0..=i {
                let mut sum = [0.0; LANES];
                for k in 0..dim {
                    add(&mut sum, &rows.root[i * dim + k], &rows.root[j * dim + k]);
                }
                rows.square[i * dim + j] = sum;
                rows.square[j * dim + i] = sum;
            }
        }
        for (code, found) in found.iter_mut().enumerate() {
            of.offset(code, rows);
            let mut sum = [0.0; LANES];
            let precision = &of.precision[code * dim * dim..(code + 1) * dim * dim];
            for (square, &p) in rows.square.iter().zip(precision) {
                for lane in 0..LANES {
                    sum[lane] += p * square[lane];
                }
            }
            for (offset, pulled) in rows.offset.iter().zip(&rows.pulled) {
                add(&mut sum, offset, pulled);
            }
            let rest = of.code_log_det[code] - dim as f32;
            for lane in 0..LANES {
                found[lane] = 0.5 * (sum[lane] + (rest - volume[lane]));
            }
        }
    }
}

/// Gradients of some rows: of μ in `rows.pull`, of S in `root`, of the codes' means added to `means`.
struct Backward<'a, 'b> {
    of: &'a Between<'b>,
    rows: &'a mut Rows,
    given: &'a [Lanes],
    means: &'a mut [f64],
    root: &'a mut [Lanes],
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { of, rows, given, means, root } = self;
        let dim = of.dim;
        rows.pull.fill([0.0; LANES]);
        rows.square.fill([0.0; LANES]);
        for (code, given) in given.iter().enumerate() {
            of.offset(code, rows);
            let own = &mut means[code * dim..(code + 1) * dim];
            for ((pull, pulled), own) in rows.pull.iter_mut().zip(&rows.pulled).zip(own) {
                let mut back = [0.0; LANES];
                for lane in 0..LANES {
                    back[lane] = given[lane] * pulled[lane];
                    pull[lane] += back[lane];
                }
                *own -= f64::from(back.iter().sum::<f32>());
            }
            let precision = &of.precision[code * dim * dim..(code + 1) * dim * dim];
            for (square, &p) in rows.square.iter_mut().zip(precision) {
                for lane in 0..LANES {
                    square[lane] += p * given[lane];
                }
            }
        }
        for i in 0..dim {
            for j in 0..dim {
                let mut sum = [0.0; LANES];
                for k in 0..dim {
                    add(&mut sum, &rows.square[i * dim + k], &rows.root[k * dim + j]);
                }
                root[i * dim + j] = sum;
            }
        }
    }
}
