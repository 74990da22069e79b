//! Distance to the k-th nearest training example.
//!
//! training features → `Neighbours` → the k smallest Euclidean distances per input.
//!
//! ```text
//! ‖q − t‖² = ‖q‖² + ‖t‖² − 2 q·t, block by block; the winners' distances are recomputed directly
//! cosine: the same on rows of length 1, where ‖q − t‖² = 2 − 2 cos(q, t)
//! ```
//!
//! The expansion is one matrix product, fast, but it cancels when q is near t: it only chooses, and the
//! distance that is reported comes from the difference, in f64.

use anyhow::{Result, ensure};

use crate::{
    data::Table,
    support::{
        matrix::{View, product},
        parallel::map_blocks,
    },
};

/// Queries per unit of parallel work.
const QUERIES: usize = 128;
/// Training rows per matrix product: 128 × 1024 f32 results stay in the second-level cache.
const TRAINING: usize = 1024;

/// Training features, centred, with their squared lengths.
pub struct Neighbours {
    centre: Vec<f32>,
    train: Table,
    squares: Vec<f32>,
}

impl Neighbours {
    /// Keeps a centred copy of `train`: small numbers cancel less.
    pub fn fit(train: &Table) -> Result<Self> {
        ensure!(train.rows > 0, "no rows to compare with");
        let centre: Vec<f32> = train.column_stats().iter().map(|s| s.mean as f32).collect();
        let train = centred(train, &centre);
        let squares = train.iter().map(|row| row.iter().map(|x| x * x).sum()).collect();
        Ok(Self { centre, train, squares })
    }

    /// The `k` smallest distances of each row, ascending (`rows × k`); all of them when there are
    /// fewer than `k` training rows.
    pub fn distances(&self, inputs: &Table, k: usize) -> Table {
        let k = k.clamp(1, self.train.rows);
        let inputs = centred(inputs, &self.centre);
        let cols = inputs.cols;
        let blocks = map_blocks(inputs.rows, QUERIES, |rows| {
            let queries = View::new(&inputs.values[rows.start * cols..rows.end * cols], rows.len(), cols);
            let mut nearest = vec![vec![(f32::INFINITY, 0); k]; rows.len()];
            let mut products = vec![0.0; rows.len() * TRAINING];
            for start in (0..self.train.rows).step_by(TRAINING) {
                let count = TRAINING.min(self.train.rows - start);
                let train = &self.train.values[start * cols..(start + count) * cols];
                let products = &mut products[..rows.len() * count];
                product(queries, View::new(train, count, cols).t(), products);
                let squares = &self.squares[start..start + count];
                for (dots, best) in products.chunks_exact(count).zip(&mut nearest) {
                    let mut worst = best[k - 1].0;
                    for (j, (&dot, &square)) in dots.iter().zip(squares).enumerate() {
                        let part = square - 2.0 * dot;
                        if part < worst {
                            let at = best.partition_point(|b| b.0 <= part);
                            best[at..].rotate_right(1);
                            best[at] = (part, start + j);
                            worst = best[k - 1].0;
                        }
                    }
                }
            }
            let exact = |(i, best): (usize, &Vec<(f32, usize)>)| {
                let query = inputs.row(rows.start + i);
                let mut found: Vec<f32> = best.iter().map(|b| distance(query, self.train.row(b.1))).collect();
                found.sort_by(f32::total_cmp);
                found
            };
            nearest.iter().enumerate().flat_map(exact).collect::<Vec<f32>>()
        });
        Table { rows: inputs.rows, cols: k, values: blocks.concat() }
    }
}

/// The rows at length 1; a row of zeros stays: it has no direction, and lies at distance 1 from all that have one.
pub fn unit_rows(table: &Table) -> Table {
    let unit = |row: &[f32]| {
        let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let scale = if length > 0.0 { length.recip() } else { 0.0 };
        row.iter().map(|&x| (f64::from(x) * scale) as f32).collect::<Vec<f32>>()
    };
    Table { rows: table.rows, cols: table.cols, values: table.iter().flat_map(unit).collect() }
}

fn centred(table: &Table, centre: &[f32]) -> Table {
    let values = table.iter().flat_map(|row| row.iter().zip(centre).map(|(x, c)| x - c)).collect();
    Table { rows: table.rows, cols: table.cols, values }
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let square: f64 = a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
    square.sqrt().min(f64::from(f32::MAX)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn agrees_with_a_plain_search() {
        let mut random = Random::new(1, "knn");
        let mut draw = |rows| {
            Table::new(rows, 5, (0..rows * 5).map(|_| random.normal() as f32 + 100.0).collect()).unwrap()
        };
        let (train, queries) = (draw(2500), draw(300));
        let found = Neighbours::fit(&train).unwrap().distances(&queries, 10);
        for (i, query) in queries.iter().enumerate() {
            let mut all: Vec<f32> = train.iter().map(|t| distance(query, t)).collect();
            all.sort_by(f32::total_cmp);
            for (a, b) in found.row(i).iter().zip(&all) {
                // Centring rounds each coordinate to an ulp of 100 (8e-6).
                assert!((a - b).abs() < 3e-5, "query {i}: {a} instead of {b}");
            }
        }
    }

    #[test]
    fn a_training_point_is_at_distance_zero() {
        let train = Table::from_rows(&[[1e4, 0.0], [1e4, 1.0]]).unwrap();
        let found = Neighbours::fit(&train).unwrap().distances(&train, 5);
        assert_eq!((found.cols, found.values.as_slice()), (2, [0.0, 1.0, 0.0, 1.0].as_slice()));
    }
}
