//! Lower-triangular matrices, read row by row from flash or from an owned square.
//!
//! A packed triangle stores rows one after another (`1 + 2 + … + d` values: the artifact's layout); a
//! square one stores row `i` at `i·d` and ignores what stands behind the diagonal (an owned matrix's layout).

/// How the rows of a triangle lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Row `i` starts at `i(i+1)/2`.
    Packed,
    /// Row `i` starts at `i·d`.
    Square,
}

/// A borrowed lower-triangular matrix.
#[derive(Clone, Copy, Debug)]
pub struct Triangle<'a> {
    values: &'a [f32],
    dim: usize,
    layout: Layout,
}

/// Values in a packed triangle of dimension `dim`.
#[inline(always)]
#[must_use]
pub const fn packed_len(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

impl<'a> Triangle<'a> {
    /// A view over `values`, which hold a triangle of dimension `dim`.
    #[inline(always)]
    #[must_use]
    pub const fn new(values: &'a [f32], dim: usize, layout: Layout) -> Self {
        Self { values, dim, layout }
    }

    /// Row `i`: `i + 1` values, the diagonal last. Empty beyond the matrix.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, i: usize) -> &'a [f32] {
        let start = match self.layout {
            Layout::Packed => packed_len(i),
            Layout::Square => i * self.dim,
        };
        self.values.get(start..start + i + 1).unwrap_or(&[])
    }

    /// Diagonal entry `i`; 0 beyond the matrix.
    #[inline(always)]
    #[must_use]
    pub fn diagonal(&self, i: usize) -> f32 {
        self.row(i).last().copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_give_the_same_rows() {
        let packed = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let square = [1.0, 9.0, 9.0, 2.0, 3.0, 9.0, 4.0, 5.0, 6.0];
        let a = Triangle::new(&packed, 3, Layout::Packed);
        let b = Triangle::new(&square, 3, Layout::Square);
        for i in 0..3 {
            assert_eq!(a.row(i), b.row(i));
            assert_eq!(a.row(i).len(), i + 1);
        }
        assert_eq!([0, 1, 2].map(|i| a.diagonal(i)), [1.0, 3.0, 6.0]);
        assert_eq!(a.row(3), &[] as &[f32]);
    }
}
