//! The covariance of inputs within classes, or around codes, and the affine maps that whiten by it.
//!
//! ```text
//! z = W (x − m),   WᵀW = (S_w + r v̄ I)⁻¹,   v̄ = tr S_w / F
//! ```
//!
//! S_w is decomposed once; every ridge r is then a scaling of the same axes. With a small r, distances count standard
//! deviations; with a large one they are Euclidean. Fewer axes than columns are those along which all inputs together vary
//! most after whitening: what lies between classes comes first.
//!
//! Of more than `WIDE` columns only the span of up to `SPAN` rows is looked at: a decomposition of all columns would take
//! minutes, and a view keeps few axes of so many columns anyway. With fewer rows than that the span holds all that varies.

use anyhow::{Result, ensure};
use nalgebra::{DMatrix, DVector};

use crate::{
    data::Table,
    support::{
        matrix::{View, eigen, product},
        parallel::map_blocks,
    },
};

/// Rows of a unit of parallel work; fixes the order of the covariance's sum.
const BLOCK: usize = 1024;
/// The least variance of an axis, relative to the mean one: what f32 inputs can tell from rounding.
const LEAST: f64 = 1e-9;
/// More columns than this are not decomposed.
pub(super) const WIDE: usize = 512;
/// Rows whose span stands for wide inputs, at most.
const SPAN: usize = 256;

/// The covariances of labelled inputs, on the axes of the one within classes: whitening for any ridge.
#[derive(Clone, Debug)]
pub struct Spread {
    /// m: the mean of all rows.
    mean: Vec<f64>,
    /// `columns × axes`: eigenvectors of S_w, all of them unless the inputs are wide.
    vectors: DMatrix<f64>,
    /// Variance of S_w along each.
    values: Vec<f64>,
    /// The covariance about m, on the same axes.
    total: DMatrix<f64>,
    /// v̄.
    mean_variance: f64,
}

/// `y = W x + b`.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// Row-major, `outputs × inputs`.
    pub weight: Vec<f32>,
    /// One per output.
    pub bias: Vec<f32>,
}

/// Weights and biases that were computed in f64.
impl From<(Vec<f64>, Vec<f64>)> for Affine {
    fn from((weight, bias): (Vec<f64>, Vec<f64>)) -> Self {
        let [weight, bias] = [weight, bias].map(|values| values.into_iter().map(|x| x as f32).collect());
        Self { weight, bias }
    }
}

impl Affine {
    /// How many numbers come out.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// The same map less the mean of its outputs. Logits so moved have the same softmax and one energy: a trained last layer may
    /// add any function of the input to all its logits, since no probability tells, and the energy would be mostly that.
    pub fn centred(mut self) -> Self {
        let (outputs, inputs) = (self.outputs(), self.weight.len() / self.outputs().max(1));
        let centre = |values: &mut Vec<f32>, width: usize| {
            for column in 0..width {
                let each = (0..outputs).map(|row| row * width + column);
                let mean = each.clone().map(|at| f64::from(values[at])).sum::<f64>() / outputs as f64;
                each.for_each(|at| values[at] = (f64::from(values[at]) - mean) as f32);
            }
        };
        centre(&mut self.weight, inputs);
        centre(&mut self.bias, 1);
        self
    }

    /// Applies the map to every row.
    pub fn apply(&self, inputs: &Table) -> Table {
        let (cols, outputs) = (inputs.cols, self.outputs());
        let blocks = map_blocks(inputs.rows, BLOCK, |rows| {
            let mut out = vec![0.0; rows.len() * outputs];
            let part = &inputs.values[rows.start * cols..rows.end * cols];
            product(View::new(part, rows.len(), cols), View::new(&self.weight, outputs, cols).t(), &mut out);
            for row in out.chunks_exact_mut(outputs.max(1)) {
                row.iter_mut().zip(&self.bias).for_each(|(y, b)| *y += b);
            }
            out
        });
        Table { rows: inputs.rows, cols: outputs, values: blocks.concat() }
    }
}

/// Σ_i (x_i − centre)(x_i − centre)ᵀ / rows, where `centre` depends on the row.
fn scatter<'a>(inputs: &Table, centre: impl Fn(usize) -> &'a [f64] + Sync) -> DMatrix<f64> {
    let cols = inputs.cols;
    let parts = map_blocks(inputs.rows, BLOCK, |rows| {
        let values = rows.clone().flat_map(|i| {
            let centre = centre(i);
            inputs.row(i).iter().zip(centre).map(|(&x, c)| f64::from(x) - c)
        });
        // One column of the matrix is one row of the table.
        let block = DMatrix::from_iterator(cols, rows.len(), values);
        &block * block.transpose()
    });
    let sum = parts.into_iter().fold(DMatrix::zeros(cols, cols), |sum, part| sum + part);
    sum / inputs.rows.max(1) as f64
}

/// Orthonormal columns that span up to `SPAN` rows about the mean: all that varies, where there are no more rows.
fn span(inputs: &Table, mean: &[f64]) -> DMatrix<f64> {
    let count = inputs.rows.min(SPAN);
    let row = |place: usize| inputs.row(place * inputs.rows / count);
    let values = (0..count).flat_map(|place| row(place).iter().zip(mean).map(|(&x, m)| f64::from(x) - m));
    let rows = DMatrix::from_iterator(inputs.cols, count, values);
    let found = eigen(rows.tr_mul(&rows));
    let least = LEAST * found.eigenvalues.max().max(f64::MIN_POSITIVE);
    let kept: Vec<usize> = (0..count).filter(|&axis| found.eigenvalues[axis] > least).collect();
    // Rows that are all alike span nothing; any one axis will do, and nothing varies along it.
    let Some(_) = kept.first() else { return DMatrix::identity(inputs.cols, 1) };
    let weights = DMatrix::from_fn(count, kept.len(), |row, axis| {
        found.eigenvectors[(row, kept[axis])] / found.eigenvalues[kept[axis]].sqrt()
    });
    rows * weights
}

impl Spread {
    /// Measures `inputs`, whose rows are of the classes `labels`, all below `classes`.
    ///
    /// # Errors
    /// No rows, or labels for other rows.
    pub fn fit(inputs: &Table, labels: &[u32], classes: usize) -> Result<Self> {
        ensure!(inputs.rows > 0, "no rows to fit");
        ensure!(labels.len() == inputs.rows, "{} rows but {} labels", inputs.rows, labels.len());
        ensure!(labels.iter().all(|&label| (label as usize) < classes), "a label is not below {classes}");
        Ok(Self::decomposed(inputs, labels, classes))
    }

    fn decomposed(inputs: &Table, labels: &[u32], classes: usize) -> Self {
        let cols = inputs.cols;
        let mut means = vec![vec![0.0; cols]; classes];
        let mut counts = vec![0.0_f64; classes];
        for (row, &label) in inputs.iter().zip(labels) {
            counts[label as usize] += 1.0;
            means[label as usize].iter_mut().zip(row).for_each(|(m, &x)| *m += f64::from(x));
        }
        let mut mean = vec![0.0; cols];
        for (class, &count) in means.iter_mut().zip(&counts) {
            mean.iter_mut().zip(&*class).for_each(|(m, sum)| *m += sum / inputs.rows as f64);
            class.iter_mut().for_each(|sum| *sum /= count.max(1.0));
        }
        if cols > WIDE {
            return Self::of_span(inputs, labels, classes, mean);
        }
        let within = scatter(inputs, |row| &means[labels[row] as usize]);
        let total = scatter(inputs, |_| &mean);
        let mean_variance = within.trace() / cols as f64;
        // Classes of one row each have no spread within: any positive scale will do.
        let mean_variance =
            if mean_variance > 0.0 { mean_variance } else { total.trace().max(1.0) / cols as f64 };
        let found = eigen(within);
        let total = found.eigenvectors.transpose() * total * &found.eigenvectors;
        let values = found.eigenvalues.iter().copied().collect();
        Self { mean, vectors: found.eigenvectors, values, total, mean_variance }
    }

    /// The same of wide inputs: measured inside the span of some of their rows.
    fn of_span(inputs: &Table, labels: &[u32], classes: usize, mean: Vec<f64>) -> Self {
        let basis = span(inputs, &mean);
        let shift = basis.tr_mul(&DVector::from_column_slice(&mean));
        let axes = Affine {
            weight: basis.iter().map(|&x| x as f32).collect(),
            bias: shift.iter().map(|&x| -x as f32).collect(),
        };
        let inside = Self::decomposed(&axes.apply(inputs), labels, classes);
        // The mean variance is one of all columns, as in narrow inputs.
        let mean_variance = inside.mean_variance * basis.ncols() as f64 / inputs.cols as f64;
        Self { mean, vectors: basis * inside.vectors, mean_variance, ..inside }
    }

    /// W and −W m for one ridge, with every axis or the `rank` leading ones; the rows of W are orthogonal.
    pub fn whitening(&self, ridge: f64, rank: Option<usize>) -> Affine {
        match rank.filter(|&rank| rank < self.values.len()) {
            Some(rank) => {
                let rows = self.leading(ridge, rank);
                // A rotation of z changes no distance.
                let turned = eigen(&rows * rows.transpose()).eigenvectors.transpose();
                self.affine(&(turned * rows))
            }
            None => self.affine(&self.rows(&self.scale(ridge))),
        }
    }

    /// m: the mean of all rows.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// [`Spread::whitening`] with axes in the order of the inputs' variance along them: its first rows are those of a
    /// smaller rank.
    pub fn rotated(&self, ridge: f64, rank: usize) -> Affine {
        self.affine(&self.leading(ridge, rank))
    }

    fn leading(&self, ridge: f64, rank: usize) -> DMatrix<f64> {
        let (axes, scale) = (self.values.len(), self.scale(ridge));
        let white = DMatrix::from_fn(axes, axes, |i, j| scale[i] * self.total[(i, j)] * scale[j]);
        let found = eigen(white);
        let mut order: Vec<usize> = (0..axes).collect();
        order.sort_by(|&a, &b| found.eigenvalues[b].total_cmp(&found.eigenvalues[a]).then(a.cmp(&b)));
        let leading = DMatrix::from_fn(rank.min(axes), axes, |i, j| found.eigenvectors[(j, order[i])]);
        leading * self.rows(&scale)
    }

    /// One over the standard deviation along each axis, the ridge included.
    fn scale(&self, ridge: f64) -> Vec<f64> {
        let variance = |value: &f64| value.max(LEAST * self.mean_variance) + ridge * self.mean_variance;
        self.values.iter().map(|value| variance(value).sqrt().recip()).collect()
    }

    /// The axes of S_w as rows, scaled.
    fn rows(&self, scale: &[f64]) -> DMatrix<f64> {
        DMatrix::from_fn(scale.len(), self.mean.len(), |i, j| scale[i] * self.vectors[(j, i)])
    }

    fn affine(&self, rows: &DMatrix<f64>) -> Affine {
        let shift =
            |row: nalgebra::RowDVector<f64>| -> f64 { row.iter().zip(&self.mean).map(|(w, m)| w * m).sum() };
        let bias = rows.row_iter().map(|row| -shift(row.into_owned()) as f32).collect();
        // Values of a matrix lie column by column: those of the transpose are the rows one behind the other.
        let weight = rows.transpose().iter().map(|&w| w as f32).collect();
        Affine { weight, bias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    /// Two classes, far apart in column 0, with spreads 1, 10 and 0.1.
    fn rows() -> (Table, Vec<u32>) {
        let mut random = Random::new(5, "whitening");
        let labels: Vec<u32> = (0..4000).map(|i| i % 2).collect();
        let row = |&label: &u32| {
            [
                100.0 * label as f32 + random.normal() as f32,
                10.0 * random.normal() as f32,
                0.1 * random.normal() as f32,
            ]
        };
        (Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap(), labels)
    }

    #[test]
    fn without_a_ridge_each_class_becomes_round() {
        let (inputs, labels) = rows();
        let spread = Spread::fit(&inputs, &labels, 2).unwrap();
        let white = spread.whitening(0.0, None).apply(&inputs);
        let again = Spread::fit(&white, &labels, 2).unwrap();
        assert!(again.values.iter().all(|v| (v - 1.0).abs() < 1e-3), "{:?}", again.values);
        assert!(again.mean.iter().all(|m| m.abs() < 1e-2), "{:?}", again.mean);
    }

    #[test]
    fn a_large_ridge_keeps_the_shape_of_the_inputs() {
        let (inputs, labels) = rows();
        let map = Spread::fit(&inputs, &labels, 2).unwrap().whitening(1e6, None);
        let white = map.apply(&inputs);
        let apart = |t: &Table, a: usize, b: usize| -> f64 {
            t.row(a).iter().zip(t.row(b)).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>().sqrt()
        };
        let ratio = |a, b| apart(&white, a, b) / apart(&inputs, a, b);
        assert!((ratio(0, 1) / ratio(2, 8) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn fewer_axes_keep_what_varies_most() {
        let (inputs, labels) = rows();
        let map = Spread::fit(&inputs, &labels, 2).unwrap().whitening(0.0, Some(1));
        assert_eq!(map.outputs(), 1);
        // The classes are 100 apart, at a spread of 1.
        let white = map.apply(&inputs);
        assert!((white.values[1] - white.values[0]).abs() > 50.0);
        assert!(Spread::fit(&inputs, &labels, 1).is_err() && Spread::fit(&inputs, &labels[1..], 2).is_err());
    }

    #[test]
    fn centred_logits_have_the_same_differences_and_sum_to_zero() {
        let layer = Affine { weight: vec![1.0, 2.0, 4.0, -1.0, 4.0, 5.0], bias: vec![3.0, 0.0, -6.0] };
        let rows = Table::from_rows(&[[1.0_f32, -2.0], [0.5, 7.0]]).unwrap();
        let (before, after) = (layer.apply(&rows), layer.centred().apply(&rows));
        for (before, after) in before.iter().zip(after.iter()) {
            assert!(after.iter().sum::<f32>().abs() < 1e-5, "{after:?}");
            for class in 1..3 {
                assert!((before[class] - before[0] - after[class] + after[0]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn wide_inputs_are_whitened_within_their_rows() {
        let mut random = Random::new(6, "wide");
        let labels: Vec<u32> = (0..90).map(|i| i % 3).collect();
        let row = |&label: &u32| -> Vec<f32> {
            let at = |column: usize| if column == label as usize { 20.0 } else { 0.0 };
            (0..2 * WIDE).map(|column| at(column) + random.normal() as f32).collect()
        };
        let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
        let spread = Spread::fit(&inputs, &labels, 3).unwrap();
        let white = spread.whitening(1.0, Some(2)).apply(&inputs);
        assert_eq!(white.cols, 2);
        // The classes are far apart on the two leading axes: every row is nearest to its own class.
        let mean = |class: u32| -> Vec<f32> {
            let own: Vec<usize> = (0..90).filter(|&i| labels[i] == class).collect();
            (0..2).map(|j| own.iter().map(|&i| white.row(i)[j]).sum::<f32>() / own.len() as f32).collect()
        };
        let means = [mean(0), mean(1), mean(2)];
        for (row, &label) in white.iter().zip(&labels) {
            let far = |class: usize| row.iter().zip(&means[class]).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
            assert!((0..3).all(|class| class == label as usize || far(class) > 4.0 * far(label as usize)));
        }
        // Every axis of the span, and no more.
        assert!(spread.whitening(1.0, None).outputs() < 90);
    }
}
