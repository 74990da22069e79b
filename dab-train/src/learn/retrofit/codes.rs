//! The codes of a view: k-means in each class, u of latent rows, and in which units distances count.
//!
//! ```text
//! D_κ = p_κ ½ ‖z − m_κ‖²   u = Σ_κ π_x(κ) D_κ       p_κ = (s_κ / Σ_j π(j) s_j)^−0.375, or 1 for all codes
//! s_κ = mean ‖z − m_κ‖² of the training rows next to m_κ
//! ```

use crate::{
    data::Table,
    learn::kmeans,
    support::{
        matrix::{View, product},
        parallel::map_blocks,
        random::Random,
    },
};

/// Rows of a unit of parallel work.
const BLOCK: usize = 256;

/// Rows that k-means looks at, at most.
const ROWS: usize = 20_000;

/// Rows around a code that say how densely rows lie there.
const NEIGHBOURS: usize = 20;
/// How much that counts: with 1, distances would be relative to it; with 0, it would not count.
const LOCAL: f64 = 0.375;
/// Squares of distances from neighbours that count, in units of the mean one, at most; and one over that at least.
const SPARSEST: f64 = 64.0;
/// Codes of a unit of parallel work.
const LOCAL_BLOCK: usize = 16;

/// Codes of all classes together.
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// m_κ, one row each.
    pub means: Table,
    /// π(κ): shares of the rows.
    pub priors: Vec<f64>,
    /// The class that each code came from.
    pub classes: Vec<u32>,
    /// p_κ: what the distances from each code are multiplied by; none where all count alike.
    pub precisions: Vec<f32>,
}

impl Codes {
    /// Up to `each` centres of the rows of every class; `stream` names the random numbers.
    pub fn fit(latent: &Table, labels: &[u32], classes: usize, each: usize, seed: u64, stream: &str) -> Self {
        Self::fit_by(latent, labels, classes, |_| each, seed, stream)
    }

    /// [`Codes::fit`] with `each` centres of so many rows.
    pub(super) fn fit_by(
        latent: &Table,
        labels: &[u32],
        classes: usize,
        each: impl Fn(usize) -> usize + Sync,
        seed: u64,
        stream: &str,
    ) -> Self {
        let parts = map_blocks(classes, 1, |class| {
            let class = class.start;
            let mut rows: Vec<usize> =
                (0..latent.rows).filter(|&row| labels[row] as usize == class).collect();
            let each = each(rows.len());
            let mut random = Random::new(seed, &format!("{stream}/{class}"));
            // More rows move centres by less than their own error.
            let most = (rows.len() * ROWS).div_ceil(latent.rows.max(1));
            if each > 1 && latent.rows > ROWS {
                rows = random.permutation(rows.len())[..most].iter().map(|&place| rows[place]).collect();
            }
            kmeans::centres(&latent.select(&rows), each, &mut random)
        });
        let counted: usize = parts.iter().flat_map(|(_, counts)| counts).sum();
        let (mut values, mut priors, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        for (class, (means, counts)) in parts.into_iter().enumerate() {
            values.extend(means.values);
            owners.extend(std::iter::repeat_n(class as u32, counts.len()));
            priors.extend(counts.iter().map(|&count| count as f64 / counted as f64));
        }
        let means = Table { rows: priors.len(), cols: latent.cols, values };
        Self { means, priors, classes: owners, precisions: Vec::new() }
    }

    /// Distances from each code count in units of how densely rows lie around it: the mean square of its distances from the
    /// `NEIGHBOURS` nearest rows, to the power of −`LOCAL`. Where rows lie densely, a small distance is strange; where they are
    /// sparse, a larger one is not. Nobody's unit is more than `SPARSEST` times the mean one, nor less than its inverse.
    pub fn count_locally(&mut self, latent: &Table) {
        let rows = match latent.rows > ROWS {
            true => latent.select(&(0..ROWS).map(|place| place * latent.rows / ROWS).collect::<Vec<_>>()),
            false => latent.clone(),
        };
        let (dim, neighbours) = (rows.cols, NEIGHBOURS.min(rows.rows));
        let squares: Vec<f32> = rows.iter().map(square).collect();
        let blocks = map_blocks(self.means.rows, LOCAL_BLOCK, |codes| {
            let part = &self.means.values[codes.start * dim..codes.end * dim];
            let mut dots = vec![0.0; codes.len() * rows.rows];
            product(
                View::new(part, codes.len(), dim),
                View::new(&rows.values, rows.rows, dim).t(),
                &mut dots,
            );
            let codes = part.chunks_exact(dim).zip(dots.chunks_exact_mut(rows.rows));
            codes
                .map(|(code, dots)| {
                    let own = square(code);
                    dots.iter_mut()
                        .zip(&squares)
                        .for_each(|(dot, square)| *dot = (own + square - 2.0 * *dot).max(0.0));
                    let (nearest, last, _) = dots.select_nth_unstable_by(neighbours - 1, f32::total_cmp);
                    // In one order, whatever the selection left.
                    nearest.sort_unstable_by(f32::total_cmp);
                    (nearest.iter().map(|&d| f64::from(d)).sum::<f64>() + f64::from(*last))
                        / neighbours as f64
                })
                .collect::<Vec<f64>>()
        });
        let spreads = blocks.concat();
        let mean = spreads.iter().zip(&self.priors).map(|(spread, prior)| spread * prior).sum::<f64>();
        let unit = |spread: &f64| (spread / mean).clamp(SPARSEST.recip(), SPARSEST).powf(-LOCAL) as f32;
        self.precisions = match mean > 0.0 && mean.is_finite() {
            true => spreads.iter().map(unit).collect(),
            false => vec![1.0; spreads.len()],
        };
    }

    /// u of every row of z (E4–E6). Where rows also lie outside of the axes of z, `outside` has half of the square of each; else it is
    /// empty.
    pub fn uncertainty(&self, latent: &Table, outside: &[f32], alpha: f64) -> Vec<f32> {
        let log_priors: Vec<f32> = self.priors.iter().map(|p| p.ln() as f32).collect();
        self.each_beside(latent, outside, |distances| expected(distances, &log_priors, alpha as f32))
    }

    /// The distance of every row of z from its nearest code.
    pub fn nearest(&self, latent: &Table) -> Vec<f32> {
        self.each(latent, |distances| distances.iter().copied().fold(f32::INFINITY, f32::min))
    }

    /// The code that is nearest to every row of z.
    pub fn members(&self, latent: &Table) -> Vec<u32> {
        self.each(latent, |distances| kmeans::least(distances.iter()) as u32)
    }

    /// Scales fitting, familiar and other latent rows, and the codes, by the familiar ones.
    pub fn temper(&mut self, latents: &mut [Table; 3]) {
        let scale = unit(&self.nearest(&latents[1]), latents[1].cols);
        let tables = latents.iter_mut().chain([&mut self.means]);
        tables.flat_map(|table| &mut table.values).for_each(|x| *x *= scale);
    }

    /// `f` of the distances from each row to all codes, which come of one matrix product a block.
    pub fn each<T: Send + Clone>(&self, latent: &Table, f: impl Fn(&[f32]) -> T + Sync) -> Vec<T> {
        self.each_beside(latent, &[], f)
    }

    fn each_beside<T: Send + Clone>(
        &self,
        latent: &Table,
        outside: &[f32],
        f: impl Fn(&[f32]) -> T + Sync,
    ) -> Vec<T> {
        let (dim, codes) = (latent.cols, self.means.rows);
        let squares: Vec<f32> = self.means.iter().map(square).collect();
        let blocks = map_blocks(latent.rows, BLOCK, |rows| {
            let part = &latent.values[rows.start * dim..rows.end * dim];
            let mut dots = vec![0.0; rows.len() * codes];
            product(
                View::new(part, rows.len(), dim),
                View::new(&self.means.values, codes, dim).t(),
                &mut dots,
            );
            let parts = part.chunks_exact(dim).zip(dots.chunks_exact_mut(codes));
            rows.zip(parts)
                .map(|(row, (z, dots))| {
                    let own = square(z) + 2.0 * outside.get(row).copied().unwrap_or(0.0);
                    for (dot, square) in dots.iter_mut().zip(&squares) {
                        *dot = (0.5 * (own + square) - *dot).max(0.0);
                    }
                    for (distance, precision) in dots.iter_mut().zip(&self.precisions) {
                        *distance *= precision;
                    }
                    f(dots)
                })
                .collect::<Vec<T>>()
        });
        blocks.concat()
    }
}

/// What z is to be multiplied by so that the nearest code of a familiar row is one standard deviation away in each of its axes, on
/// average: distances of views with different norms and numbers of codes are then alike, and α means the same in all. From the
/// distances of familiar rows from their nearest codes, of which none counts for more than a hundred times the median one: an outlier
/// would bring all other rows next to every code. Squares of normal numbers stay below that; above ten times the median are 3 % of them
/// where there is one axis. Beside an outlier that dwarfs them, all other rows differ by rounding alone, which must not be magnified.
pub fn unit(nearest: &[f32], axes: usize) -> f32 {
    const MOST: f64 = 100.0;
    /// Squares of a float's last digits.
    const ROUNDING: f64 = 1e-8;
    let mut sorted = nearest.to_vec();
    sorted.sort_by(f32::total_cmp);
    let median = sorted.get(sorted.len() / 2).map_or(0.0, |&d| f64::from(d));
    let largest = sorted.last().map_or(0.0, |&d| f64::from(d));
    let most = if median > ROUNDING * largest { MOST * median } else { f64::INFINITY };
    let mean = nearest.iter().map(|&d| f64::from(d).min(most)).sum::<f64>() / nearest.len().max(1) as f64;
    let variance = 2.0 * mean / axes.max(1) as f64;
    if variance.is_finite() && variance > 0.0 { variance.sqrt().recip() as f32 } else { 1.0 }
}

fn square(row: &[f32]) -> f32 {
    row.iter().map(|x| x * x).sum()
}

/// Σ π_x D with π_x ∝ π exp(−α D).
fn expected(distances: &[f32], log_priors: &[f32], alpha: f32) -> f32 {
    let score = |(distance, prior): (&f32, &f32)| prior - alpha * distance;
    let top = distances.iter().zip(log_priors).map(score).fold(f32::NEG_INFINITY, f32::max);
    let (mut sum, mut weighted) = (0.0_f32, 0.0_f32);
    for (distance, prior) in distances.iter().zip(log_priors) {
        // Codes of weight e^−20 change no digit.
        let exponent = score((distance, prior)) - top;
        if exponent > -20.0 {
            let weight = exponent.exp();
            sum += weight;
            weighted += weight * distance;
        }
    }
    weighted / sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_in_units_of_how_densely_rows_lie_around_a_code() {
        let codes = |rows: &Table, means: Vec<f32>| {
            let count = means.len();
            let mut codes = Codes {
                means: Table { rows: count, cols: 1, values: means },
                priors: vec![1.0 / count as f64; count],
                classes: vec![0; count],
                precisions: Vec::new(),
            };
            codes.count_locally(rows);
            codes.precisions
        };
        // 40 rows a unit apart around 0, 40 rows four units apart around 1000. Of each, the nearest 20 count.
        let spread = |at: f32, step: f32| (0..40).map(move |i| at + step * (i as f32 - 19.5));
        let rows = Table::column(spread(0.0, 1.0).chain(spread(1000.0, 4.0)).collect());
        let found = codes(&rows, vec![0.0, 1000.0]);
        let square = (0..10).map(|i| 2.0 * (f64::from(i) + 0.5).powi(2)).sum::<f64>() / 20.0;
        let mean = 0.5 * (square + 16.0 * square);
        for (found, square) in found.iter().zip([square, 16.0 * square]) {
            let expected = (square / mean).powf(-LOCAL);
            assert!((f64::from(*found) - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert!((f64::from(found[0] / found[1]) - 16_f64.powf(LOCAL)).abs() < 1e-4, "{found:?}");
        // A code in the middle of copies has no spread of its own, one far from all rows a huge one: both are limited.
        let copies = Table::column(vec![3.0; 25].into_iter().chain(spread(50.0, 1.0)).collect());
        let found = codes(&copies, vec![3.0, 50.0, 50.5, 49.5]);
        assert!((f64::from(found[0]) - SPARSEST.powf(LOCAL)).abs() < 1e-4, "{found:?}");
        let mut far = vec![50.0; 99];
        far.push(1e6);
        let found = codes(&copies, far);
        assert!((f64::from(found[99]) - SPARSEST.powf(-LOCAL)).abs() < 1e-4, "{}", found[99]);
        // Rows that are all alike, and fewer rows than neighbours.
        assert_eq!(codes(&Table::column(vec![7.0; 30]), vec![7.0, 7.0]), [1.0; 2]);
        assert!(codes(&Table::column(vec![7.0, 8.0]), vec![7.0]).iter().all(|p| (p - 1.0).abs() < 1e-6));
    }

    #[test]
    fn one_outlier_does_not_bring_all_rows_next_to_the_codes() {
        let usual: Vec<f32> = (0..99).map(|row| 1.5 + row as f32 / 99.0).collect();
        let with = |more: &[f32]| unit(&[&usual, more].concat(), 4);
        assert!((with(&[]) - 1.0).abs() < 0.01, "{}", with(&[]));
        // A hundredth of the rows counts for as much as all others.
        assert!((with(&[1e7]) / with(&[]) - 2_f32.sqrt().recip()).abs() < 0.01, "{}", with(&[1e7]));
        assert!(with(&[1e9]) < 1e-3, "beside 1e9 they differ by rounding");
        assert!(unit(&[], 4) == 1.0 && unit(&[0.0; 9], 4) == 1.0 && unit(&[0.0, 0.0, 8.0], 4) < 1.0);
    }
}
