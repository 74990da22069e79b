//! Rows of numbers, and the affine scale that standardises their columns.
//!
//! files → `Table` → `Scale::fit` → `Scale::apply` → the engine.
//!
//! ```text
//! z_ij = (x_ij − mean_j) / std_j,  std_j² = Σ_i (x_ij − mean_j)² / rows
//! ```
//!
//! A constant column has standard deviation 0; its scale keeps 1 instead, so that the column
//! becomes 0 and not NaN.

use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use dab_core::{artifact::writer::Normalization, parts::LARGEST};

use crate::{error::Error, support::text::counted};

/// A column whose spread is below this fraction of its magnitude is constant: f32 cannot tell more.
const CONSTANT_COLUMN: f64 = 1e-7;
/// So is one whose deviation is below this, 2⁻⁴⁰: a model holds numbers from 2⁻⁵⁰ on, and divides by deviations.
pub(crate) const LEAST_DEVIATION: f64 = 1.0 / (1u64 << 40) as f64;
/// One value that is this many times as far from its column's mean as all others are spread hides them: f32 has 7 digits.
pub const OUTLIER: f64 = 1e6;
/// Beyond this, 2²⁴, float32 does not have every whole number any more.
const WHOLE: f64 = 16_777_216.0;

/// Rows of numbers, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Number of rows (examples).
    pub rows: usize,
    /// Number of columns (features).
    pub cols: usize,
    /// `rows × cols` values; row `i` starts at `i * cols`.
    pub values: Vec<f32>,
}

/// What one column looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnStats {
    /// Arithmetic mean.
    pub mean: f64,
    /// Population standard deviation.
    pub std: f64,
    /// Smallest value.
    pub min: f32,
    /// Largest value.
    pub max: f32,
}

impl ColumnStats {
    /// Whether the column carries no information.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.std <= (CONSTANT_COLUMN * self.mean.abs()).max(LEAST_DEVIATION)
    }

    /// Whether it lies so far from 0 that float32 may have rounded away how it varies: beyond [`WHOLE`], and [`OUTLIER`]
    /// standard deviations.
    pub(crate) fn has_offset(&self) -> bool {
        self.mean.abs() >= WHOLE && self.mean.abs() > OUTLIER * self.std
    }
}

impl Table {
    /// A table of `rows × cols` from its values.
    ///
    /// # Errors
    /// When the number of values is not `rows × cols`.
    pub fn new(rows: usize, cols: usize, values: Vec<f32>) -> Result<Self, Error> {
        let found = values.len();
        match rows.checked_mul(cols) == Some(found) {
            true => Ok(Self { rows, cols, values }),
            false => {
                let [rows, cols, values] =
                    [(rows, "row"), (cols, "column"), (rows.saturating_mul(cols), "value")]
                        .map(|(count, thing)| counted(count, thing));
                Err(Error::Data(format!("{rows} of {cols} need {values}, found {found}").into()))
            }
        }
    }

    /// A table from equally long rows.
    ///
    /// # Errors
    /// When the rows differ in length.
    pub fn from_rows<R: AsRef<[f32]>>(rows: &[R]) -> Result<Self, Error> {
        let all = || rows.iter().map(AsRef::as_ref);
        let cols = all().next().map_or(0, <[f32]>::len);
        if let Some((i, row)) = all().enumerate().find(|(_, row)| row.len() != cols) {
            let fact = anyhow!("row {} has {}, row 1 has {cols}", i + 1, counted(row.len(), "value"));
            return Err(Error::Data(fact.into()));
        }
        Ok(Self { rows: rows.len(), cols, values: all().flatten().copied().collect() })
    }

    /// A table of one column.
    #[must_use]
    pub fn column(values: Vec<f32>) -> Self {
        Self { rows: values.len(), cols: 1, values }
    }

    /// Row `i`. Panics when there is no such row, as a slice does.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }

    /// The values of neighbouring rows, one behind the other.
    pub(crate) fn block(&self, rows: Range<usize>) -> &[f32] {
        &self.values[rows.start * self.cols..rows.end * self.cols]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// The rows `indices`, in that order, repeated when an index is.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut values = Vec::with_capacity(indices.len() * self.cols);
        for &i in indices {
            values.extend_from_slice(self.row(i));
        }
        Self { rows: indices.len(), cols: self.cols, values }
    }

    /// The columns `indices`, in that order.
    #[must_use]
    pub fn columns(&self, indices: &[usize]) -> Self {
        let values = self.iter().flat_map(|row| indices.iter().map(|&j| row[j])).collect();
        Self { rows: self.rows, cols: indices.len(), values }
    }

    /// The place of the largest value of each row, the first among equals.
    pub(crate) fn largest(&self) -> Vec<u32> {
        let best = |row: &[f32]| (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best });
        self.iter().map(|row| best(row) as u32).collect()
    }

    /// Mean, spread and range of every column, summed in f64.
    #[must_use]
    pub fn column_stats(&self) -> Vec<ColumnStats> {
        let n = self.rows.max(1) as f64;
        let mut stats =
            vec![ColumnStats { mean: 0.0, std: 0.0, min: f32::INFINITY, max: f32::NEG_INFINITY }; self.cols];
        for row in self.iter() {
            for (column, &x) in stats.iter_mut().zip(row) {
                column.mean += f64::from(x) / n;
                column.min = column.min.min(x);
                column.max = column.max.max(x);
            }
        }
        for row in self.iter() {
            for (column, &x) in stats.iter_mut().zip(row) {
                column.std += (f64::from(x) - column.mean).powi(2) / n;
            }
        }
        for column in &mut stats {
            column.std = column.std.sqrt();
        }
        stats
    }

    /// The place of the value that is [`OUTLIER`] times as far from its column's mean as all others are spread, if there is one.
    #[must_use]
    pub fn outlier(&self) -> Option<usize> {
        let n = self.rows as f64;
        self.column_stats().iter().enumerate().find_map(|(j, column)| {
            let far = |x: f32| (f64::from(x) - column.mean).abs();
            let extreme = if far(column.max) > far(column.min) { column.max } else { column.min };
            // Alone, it makes all of the column's variance: n σ² = d² n / (n − 1).
            let alone = far(extreme).powi(2) * n / (n - 1.0);
            if self.rows < 3 || alone < 0.999 * n * column.std.powi(2) {
                return None;
            }
            let row = self.iter().position(|row| row[j] == extreme)?;
            let others: Vec<f64> =
                self.iter().enumerate().filter(|(i, _)| *i != row).map(|(_, r)| f64::from(r[j])).collect();
            let mean = others.iter().sum::<f64>() / (n - 1.0);
            let spread = (others.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
            let hides = spread > 0.0 && (f64::from(extreme) - mean).abs() > OUTLIER * spread;
            hides.then_some(row * self.cols + j)
        })
    }

    /// Refuses NaN, infinities and numbers beyond the domain of a model (dab-core's `scalar.rs`); `what` names the table in the
    /// message, which says where the first such value is, row and column counted from 1.
    pub(crate) fn check_finite(&self, what: &str) -> Result<()> {
        let first = |wrong: fn(f32) -> bool| {
            let at = self.values.iter().position(|&x| wrong(x))?;
            Some((self.values[at], at / self.cols + 1, at % self.cols + 1))
        };
        if let Some((value, row, column)) = first(|x| !x.is_finite()) {
            let total = self.values.iter().filter(|x| !x.is_finite()).count();
            bail!(
                "{what}: {value} in row {row}, column {column} ({} in all); every value must be finite",
                counted(total, "such value")
            );
        }
        if let Some((value, row, column)) = first(|x| x.abs() > LARGEST) {
            bail!(
                "{what}: {value:e} in row {row}, column {column} is beyond ±{LARGEST:.1e}, the largest number that a model \
                 computes with; correct or remove this row, or give the column in another unit"
            );
        }
        Ok(())
    }
}

/// A column-wise affine map to mean 0 and standard deviation 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// What is subtracted, per column.
    pub mean: Vec<f32>,
    /// What divides, per column; 1 for a constant column.
    pub std: Vec<f32>,
}

impl Scale {
    /// The scale that standardises `table`.
    #[must_use]
    pub fn fit(table: &Table) -> Self {
        let stats = table.column_stats();
        Self {
            mean: stats.iter().map(|s| s.mean as f32).collect(),
            std: stats.iter().map(|s| if s.is_constant() { 1.0 } else { s.std as f32 }).collect(),
        }
    }

    /// `(x − mean) / std`. Panics when the column counts differ.
    #[must_use]
    pub fn apply(&self, table: &Table) -> Table {
        self.map(table, |x, mean, std| (x - mean) / std)
    }

    /// `x · std + mean`, the inverse of [`Scale::apply`].
    #[must_use]
    pub fn invert(&self, table: &Table) -> Table {
        self.map(table, |x, mean, std| x * std + mean)
    }

    /// As the writer of a model file takes it.
    pub(crate) fn to_normalization(&self) -> Normalization {
        Normalization { mean: self.mean.clone(), std: self.std.clone() }
    }

    fn map(&self, table: &Table, f: impl Fn(f32, f32, f32) -> f32) -> Table {
        assert_eq!(table.cols, self.mean.len(), "a scale fits tables of its own column count");
        let values = table
            .iter()
            .flat_map(|row| row.iter().zip(&self.mean).zip(&self.std).map(|((&x, &m), &s)| f(x, m, s)))
            .collect();
        Table { rows: table.rows, cols: table.cols, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_standardises_and_inverts() {
        let table = Table::from_rows(&[[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]]).unwrap();
        let scale = Scale::fit(&table);
        let scaled = scale.apply(&table);
        let stats = scaled.column_stats();
        assert!(stats[0].mean.abs() < 1e-6 && (stats[0].std - 1.0).abs() < 1e-6);
        assert_eq!((stats[1].mean, stats[1].std), (0.0, 0.0), "a constant column becomes 0, not NaN");
        for (a, b) in scale.invert(&scaled).values.iter().zip(&table.values) {
            assert!((a - b).abs() < 1e-5);
        }
    }

    #[test]
    fn selections_keep_order() {
        let table = Table::from_rows(&[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]).unwrap();
        assert_eq!(table.select(&[2, 0]).values, [4.0, 5.0, 0.0, 1.0]);
        assert_eq!(table.columns(&[1]).values, [1.0, 3.0, 5.0]);
    }

    #[test]
    fn bad_shapes_and_nan_say_where() {
        assert!(Table::new(2, 2, vec![0.0; 3]).unwrap_err().to_string().contains("found 3"));
        let ragged = Table::from_rows(&[vec![1.0], vec![1.0, 2.0]]).unwrap_err();
        assert!(ragged.to_string().contains("row 2 has 2 values, row 1 has 1"));
        let nan = Table::from_rows(&[[1.0, 2.0], [3.0, f32::NAN]]).unwrap();
        let message = nan.check_finite("features").unwrap_err().to_string();
        assert!(message.contains("row 2, column 2"), "{message}");
    }
}
