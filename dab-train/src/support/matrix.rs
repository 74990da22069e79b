//! Dense matrix kernels: products, Cholesky, forward substitution.
//!
//! features → covariance → `Cholesky` → whitened features; features · weightsᵀ → logits.
//!
//! ```text
//! Σ + r·I = L Lᵀ,   whiten(x) = L⁻¹ x,   ‖whiten(x)‖² = xᵀ Σ⁻¹ x
//! ```
//!
//! Covariances are f64: the collinear columns of UCI Energy leave eigenvalues of 1e-7 beside 4, which
//! an f32 factorisation loses.

use anyhow::{Result, bail};
use nalgebra::{DMatrix, Dyn, SymmetricEigen};

/// Eigenvalues and eigenvectors of a symmetric matrix.
///
/// nalgebra's rotations divide 0 by 0 where squares of entries underflow, below 1e-158 of the largest one: columns that hardly vary
/// can be so small. What is not a number is computed again with all eigenvalues moved away from 0. That moves them by some 1e-16 of
/// the largest one, which is how far they may be off in any case.
pub fn eigen(matrix: DMatrix<f64>) -> SymmetricEigen<f64, Dyn> {
    let found = SymmetricEigen::new(matrix.clone());
    let largest = matrix.camax();
    if !largest.is_finite() || found.eigenvectors.iter().all(|x| x.is_finite()) {
        return found;
    }
    let rows = matrix.nrows();
    let mut found = SymmetricEigen::new(matrix + DMatrix::identity(rows, rows) * largest);
    found.eigenvalues.add_scalar_mut(-largest);
    found
}

/// A matrix that `product` reads: values, and the distance between its rows and columns.
#[derive(Clone, Copy)]
pub struct View<'a> {
    values: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// Row-major `rows × cols`. Panics when there are more or fewer values.
    pub fn new(values: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(values.len(), rows * cols, "a view covers its values");
        Self { values, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The transpose, without moving a value.
    pub fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// `out = a · b`, row-major. Panics when the shapes do not fit.
pub fn product(a: View, b: View, out: &mut [f32]) {
    assert_eq!(a.cols, b.rows, "inner dimensions agree");
    assert_eq!(out.len(), a.rows * b.cols, "the result has its shape");
    // SAFETY: `View` is built only over `rows × cols` values (checked in `new`, kept by `t`), `out` was
    // checked above, and `out` is exclusively borrowed, so it overlaps neither operand.
    unsafe {
        matrixmultiply::sgemm(
            a.rows,
            a.cols,
            b.cols,
            1.0,
            a.values.as_ptr(),
            a.row_stride as isize,
            a.col_stride as isize,
            b.values.as_ptr(),
            b.row_stride as isize,
            b.col_stride as isize,
            0.0,
            out.as_mut_ptr(),
            b.cols as isize,
            1,
        );
    }
}

/// An orthonormal basis, `cols × rows`, of a space that holds all `rows` of `values`; they are fewer than their `cols`.
pub fn span(values: &[f32], rows: usize, cols: usize) -> DMatrix<f64> {
    DMatrix::from_iterator(cols, rows, values.iter().map(|&x| f64::from(x))).qr().q()
}

/// The lower Cholesky factor of a symmetric positive definite matrix.
pub struct Cholesky {
    dim: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factorises `matrix` (row-major, only the lower triangle is read). `dim³/3` multiply-adds.
    pub fn new(mut matrix: Vec<f64>, dim: usize) -> Result<Self> {
        for j in 0..dim {
            for i in j..dim {
                let (head, tail) = matrix.split_at(i * dim);
                let row_j = if i == j { &tail[..j] } else { &head[j * dim..j * dim + j] };
                let dot: f64 = tail[..j].iter().zip(row_j).map(|(a, b)| a * b).sum();
                let rest = matrix[i * dim + j] - dot;
                if i > j {
                    matrix[i * dim + j] = rest / matrix[j * dim + j];
                } else if rest > 0.0 && rest.is_finite() {
                    matrix[i * dim + j] = rest.sqrt();
                } else {
                    bail!("covariance is not positive definite at column {j} (pivot {rest:e})");
                }
            }
        }
        Ok(Self { dim, lower: matrix })
    }

    /// `L⁻¹ x` in place. `dim²/2` multiply-adds.
    pub fn whiten(&self, x: &mut [f64]) {
        for i in 0..self.dim {
            let row = &self.lower[i * self.dim..i * self.dim + i + 1];
            let dot: f64 = row[..i].iter().zip(x.iter()).map(|(a, b)| a * b).sum();
            x[i] = (x[i] - dot) / row[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_with_and_without_transposes() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, -1.0, 2.0, 1.0, 0.0]);
        let mut out = [0.0; 4];
        product(View::new(&a, 2, 3), View::new(&b, 2, 3).t(), &mut out);
        assert_eq!(out, [-2.0, 4.0, -2.0, 13.0]);
        let mut out = [0.0; 9];
        product(View::new(&a, 2, 3).t(), View::new(&b, 2, 3), &mut out);
        assert_eq!(out[..3], [9.0, 4.0, -1.0]);
    }

    #[test]
    fn entries_that_hardly_differ_from_zero_have_eigenvectors() {
        let mut random = crate::support::random::Random::new(5, "eigen");
        let mut without = 0;
        for size in [1.0, 1e-100, 1e-159, 1e-160, 1e-161, 1e-300, 0.0] {
            for _ in 0..100 {
                // One column that varies, five that hardly do.
                let part = DMatrix::from_fn(5, 5, |_, _| size * random.normal());
                let mut matrix = DMatrix::zeros(6, 6);
                matrix.view_mut((1, 1), (5, 5)).copy_from(&(&part + part.transpose()));
                matrix[(0, 0)] = 1.0;
                without +=
                    usize::from(SymmetricEigen::new(matrix.clone()).eigenvectors.iter().any(|x| x.is_nan()));
                let found = eigen(matrix.clone());
                assert!(
                    (found.recompose() - &matrix).camax() <= 1e-14 * matrix.camax(),
                    "{size:e}: {matrix}"
                );
            }
        }
        assert!(without > 0, "nalgebra needs no help any more: `eigen` can go");
    }

    #[test]
    fn whitening_gives_the_quadratic_form() {
        // Σ = [[4, 2], [2, 3]], Σ⁻¹ = [[3, −2], [−2, 4]] / 8; x = (1, 2) gives (3 − 8 + 16) / 8.
        let cholesky = Cholesky::new(vec![4.0, 2.0, 2.0, 3.0], 2).unwrap();
        let mut x = [1.0, 2.0];
        cholesky.whiten(&mut x);
        assert!((x[0] * x[0] + x[1] * x[1] - 11.0 / 8.0).abs() < 1e-12);
        assert!(Cholesky::new(vec![1.0, 1.0, 1.0, 1.0], 2).is_err());
    }
}
