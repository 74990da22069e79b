//! Softmax regression: the decoder of a model that is not trained by gradients, and the classifier of the logit baselines.
//!
//! features + labels → standardised → L-BFGS over a path of penalties → `Logistic` → logits, or the layer itself.
//!
//! ```text
//! min_W  mean −ln softmax(W x + b)_y + (λ/2n) ‖W‖²,   λ from the path, chosen by held-out NLL
//! ```
//!
//! The problem is convex, so the start does not matter and no seed is needed: the same data gives the
//! same weights. The path goes from strong to weak penalty and each step starts where the last ended.

use anyhow::{Result, ensure};

use crate::{
    data::{Scale, Table},
    support::{
        matrix::{View, product},
        parallel::map_blocks,
    },
};

/// Penalties λ, strongest first; they act on weights of standardised features.
const PENALTIES: [f64; 5] = [1000.0, 100.0, 10.0, 1.0, 0.1];
/// Curvature pairs that L-BFGS remembers.
const MEMORY: usize = 10;
/// Iterations per penalty: 2–3 × what the stored sets need.
const ITERATIONS: usize = 100;
/// Stop when a step improves the objective by less than this fraction of it.
const TOLERANCE: f64 = 1e-6;
/// Armijo constant, and the most halvings of a step.
const SUFFICIENT: f64 = 1e-4;
const HALVINGS: usize = 20;
/// Standardised inputs are held within this, so that no sum over them overflows f32.
const LARGEST: f32 = 1e30;
/// Rows per unit of parallel work; fixes the order of the gradient's sum.
const BLOCK: usize = 1024;

/// A linear classifier on standardised features.
#[derive(Clone, Debug)]
pub struct Logistic {
    scale: Scale,
    classes: usize,
    /// `classes × (cols + 1)`, the bias last in each row.
    weights: Vec<f64>,
    /// The chosen penalty.
    pub penalty: f64,
}

struct Problem<'a> {
    inputs: &'a Table,
    labels: &'a [u32],
    classes: usize,
    penalty: f64,
}

impl Logistic {
    /// Fits `train` and chooses the penalty on `held_out` (on `train` when there is none).
    ///
    /// # Errors
    /// Differing lengths, no rows, or labels that have no class.
    pub fn fit(train: (&Table, &[u32]), held_out: (&Table, &[u32]), classes: usize) -> Result<Self> {
        Self::fit_scaled(train, held_out, classes, Scale::fit(train.0), &PENALTIES)
    }

    /// [`Logistic::fit`] with a scale of the caller's, on which the penalty acts, and penalties of his, strongest first.
    ///
    /// # Errors
    /// As [`Logistic::fit`].
    pub fn fit_scaled(
        train: (&Table, &[u32]),
        held_out: (&Table, &[u32]),
        classes: usize,
        scale: Scale,
        penalties: &[f64],
    ) -> Result<Self> {
        for (inputs, labels) in [train, held_out] {
            ensure!(inputs.rows == labels.len(), "{} rows but {} labels", inputs.rows, labels.len());
            ensure!(labels.iter().all(|&l| (l as usize) < classes), "a label is not below {classes}");
        }
        ensure!(train.0.rows > 0, "no rows to fit");
        let inputs = scale.apply(train.0);
        let judge = if held_out.0.rows > 0 { held_out } else { train };
        let mut weights = prior_logits(train.1, classes, inputs.cols);
        let mut best: Option<(f64, Self)> = None;
        for &penalty in penalties {
            let problem = Problem { inputs: &inputs, labels: train.1, classes, penalty };
            weights = minimise(weights, |w| problem.objective(w));
            let candidate = Self { scale: scale.clone(), classes, weights: weights.clone(), penalty };
            let nll = candidate.nll(judge.0, judge.1);
            if best.as_ref().is_some_and(|(least, _)| nll >= *least) {
                break;
            }
            best = Some((nll, candidate));
        }
        best.map(|(_, fitted)| fitted).ok_or_else(|| anyhow::anyhow!("no penalty to try"))
    }

    /// Mean negative log-likelihood of labels, nats.
    pub fn nll(&self, inputs: &Table, labels: &[u32]) -> f64 {
        let mut logits = self.logits(inputs);
        let rows = logits.values.chunks_exact_mut(self.classes.max(1)).zip(labels);
        rows.map(|(row, &label)| residual_of(row, label as usize)).sum::<f64>() / labels.len().max(1) as f64
    }

    /// The same classifier as one layer on inputs in their own units: weights, `classes × columns`, and biases.
    pub fn layer(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for row in self.weights.chunks_exact(self.scale.mean.len() + 1) {
            let scaled: Vec<f64> =
                row.iter().zip(&self.scale.std).map(|(w, &std)| w / f64::from(std)).collect();
            let shift: f64 = scaled.iter().zip(&self.scale.mean).map(|(w, &mean)| w * f64::from(mean)).sum();
            bias.push(row[scaled.len()] - shift);
            weight.extend(scaled);
        }
        (weight, bias)
    }

    /// Logits, `rows × classes`.
    pub fn logits(&self, inputs: &Table) -> Table {
        let mut inputs = self.scale.apply(inputs);
        inputs.values.iter_mut().for_each(|x| *x = x.clamp(-LARGEST, LARGEST));
        let weights: Vec<f32> = self.weights.iter().map(|&w| w as f32).collect();
        let blocks = map_blocks(inputs.rows, BLOCK, |rows| {
            forward(inputs.block(rows), inputs.cols, &weights, self.classes)
        });
        Table { rows: inputs.rows, cols: self.classes, values: blocks.concat() }
    }
}

/// No weights, and biases that give each class its share: where the strongest penalty ends.
fn prior_logits(labels: &[u32], classes: usize, cols: usize) -> Vec<f64> {
    let mut weights = vec![0.0; classes * (cols + 1)];
    labels.iter().for_each(|&label| weights[label as usize * (cols + 1) + cols] += 1.0);
    // Half an example for a class without any keeps its logarithm finite.
    for row in weights.chunks_exact_mut(cols + 1) {
        row[cols] = ((row[cols] + 0.5) / labels.len() as f64).ln();
    }
    weights
}

/// Logits of row-major `inputs`.
fn forward(inputs: &[f32], cols: usize, weights: &[f32], classes: usize) -> Vec<f32> {
    let rows = inputs.len() / cols;
    let matrix: Vec<f32> = weights.chunks_exact(cols + 1).flat_map(|row| &row[..cols]).copied().collect();
    let mut logits = vec![0.0; rows * classes];
    product(View::new(inputs, rows, cols), View::new(&matrix, classes, cols).t(), &mut logits);
    for row in logits.chunks_exact_mut(classes) {
        row.iter_mut().zip(weights.chunks_exact(cols + 1)).for_each(|(x, w)| *x += w[cols]);
    }
    logits
}

impl Problem<'_> {
    /// Objective and gradient.
    fn objective(&self, weights: &[f64]) -> (f64, Vec<f64>) {
        let (n, cols) = (self.inputs.rows as f64, self.inputs.cols);
        let small: Vec<f32> = weights.iter().map(|&w| w as f32).collect();
        let parts = map_blocks(self.inputs.rows, BLOCK, |rows| {
            let inputs = self.inputs.block(rows.clone());
            let mut residual = forward(inputs, cols, &small, self.classes);
            let mut loss = 0.0;
            for (row, &label) in residual.chunks_exact_mut(self.classes).zip(&self.labels[rows.clone()]) {
                loss += residual_of(row, label as usize);
            }
            let mut gradient = vec![0.0; self.classes * cols];
            let view = View::new(&residual, rows.len(), self.classes);
            product(view.t(), View::new(inputs, rows.len(), cols), &mut gradient);
            let mut bias = vec![0.0; self.classes];
            for row in residual.chunks_exact(self.classes) {
                bias.iter_mut().zip(row).for_each(|(b, r)| *b += f64::from(*r));
            }
            (loss, gradient, bias)
        });
        let (mut loss, mut gradient) = (0.0, vec![0.0; weights.len()]);
        for (part, matrix, bias) in parts {
            loss += part / n;
            for (class, row) in gradient.chunks_exact_mut(cols + 1).enumerate() {
                let columns = &matrix[class * cols..(class + 1) * cols];
                row.iter_mut().zip(columns).for_each(|(g, m)| *g += f64::from(*m) / n);
                row[cols] += bias[class] / n;
            }
        }
        for (row, w) in gradient.chunks_exact_mut(cols + 1).zip(weights.chunks_exact(cols + 1)) {
            for (g, w) in row[..cols].iter_mut().zip(w) {
                *g += self.penalty / n * w;
                loss += 0.5 * self.penalty / n * w * w;
            }
        }
        (loss, gradient)
    }
}

/// Turns logits into softmax − one-hot in place; returns the negative log-likelihood.
fn residual_of(row: &mut [f32], label: usize) -> f64 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let margin = f64::from(row[label] - largest);
    row.iter_mut().for_each(|x| *x = (*x - largest).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
    row[label] -= 1.0;
    f64::from(sum).ln() - margin
}

/// L-BFGS with backtracking, from `x`, for a convex objective.
fn minimise(mut x: Vec<f64>, objective: impl Fn(&[f64]) -> (f64, Vec<f64>)) -> Vec<f64> {
    let (mut value, mut gradient) = objective(&x);
    let mut pairs: Vec<(Vec<f64>, Vec<f64>, f64)> = Vec::new();
    for _ in 0..ITERATIONS {
        let direction = descent(&gradient, &pairs);
        let slope = dot(&direction, &gradient);
        if slope >= 0.0 {
            break;
        }
        let mut step = if pairs.is_empty() { 1.0 / dot(&gradient, &gradient).sqrt().max(1.0) } else { 1.0 };
        let mut accepted = None;
        for _ in 0..HALVINGS {
            let next: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
            let (next_value, next_gradient) = objective(&next);
            if next_value <= value + SUFFICIENT * step * slope {
                accepted = Some((next, next_value, next_gradient));
                break;
            }
            step *= 0.5;
        }
        let Some((next, next_value, next_gradient)) = accepted else { break };
        let s: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&s, &y);
        if curvature > 0.0 {
            if pairs.len() == MEMORY {
                pairs.remove(0);
            }
            pairs.push((s, y, curvature));
        }
        let gain = value - next_value;
        (x, value, gradient) = (next, next_value, next_gradient);
        if gain <= TOLERANCE * value.abs() {
            break;
        }
    }
    x
}

/// Two-loop recursion: minus the approximate inverse Hessian times the gradient.
fn descent(gradient: &[f64], pairs: &[(Vec<f64>, Vec<f64>, f64)]) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut alphas = Vec::with_capacity(pairs.len());
    for (s, y, curvature) in pairs.iter().rev() {
        let alpha = dot(s, &q) / curvature;
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= alpha * y);
        alphas.push(alpha);
    }
    if let Some((_, y, curvature)) = pairs.last() {
        let scale = curvature / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y, curvature), alpha) in pairs.iter().zip(alphas.iter().rev()) {
        let beta = dot(y, &q) / curvature;
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (alpha - beta) * s);
    }
    q
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    fn accuracy(logits: &Table, truth: &[u32]) -> f64 {
        let right = |(row, &label): (&[f32], &u32)| row.iter().all(|&x| x <= row[label as usize]);
        logits.iter().zip(truth).filter(|&pair| right(pair)).count() as f64 / truth.len() as f64
    }

    fn blobs(rows: usize, seed: u64) -> (Table, Vec<u32>) {
        let mut random = Random::new(seed, "blobs");
        let labels: Vec<u32> = (0..rows).map(|i| (i % 3) as u32).collect();
        let centre = [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]];
        let point = |&l: &u32| centre[l as usize].map(|c| (c + random.normal()) as f32);
        (Table::from_rows(&labels.iter().map(point).collect::<Vec<_>>()).unwrap(), labels)
    }

    #[test]
    fn separates_blobs_and_repeats() {
        let ((train, y), (test, truth)) = (blobs(900, 1), blobs(300, 2));
        let fit = || Logistic::fit((&train, &y), (&test, &truth), 3).unwrap();
        let fitted = fit();
        // Bayes error of these blobs is about 4 %; the linear rule is the Bayes rule.
        assert!(accuracy(&fitted.logits(&test), &truth) > 0.93);
        assert!(fitted.nll(&test, &truth) < 0.15, "{}", fitted.nll(&test, &truth));
        assert_eq!(fitted.weights, fit().weights);
    }

    #[test]
    fn the_layer_gives_the_same_logits() {
        let (inputs, labels) = blobs(90, 4);
        let fitted = Logistic::fit((&inputs, &labels), (&inputs, &labels), 3).unwrap();
        let ((weight, bias), logits) = (fitted.layer(), fitted.logits(&inputs));
        for (row, wanted) in inputs.iter().zip(logits.iter()) {
            for (class, wanted) in wanted.iter().enumerate() {
                let products = row.iter().zip(&weight[2 * class..]).map(|(&x, w)| f64::from(x) * w);
                let found = products.sum::<f64>() + bias[class];
                assert!((found - f64::from(*wanted)).abs() < 1e-4, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn the_gradient_is_the_slope() {
        let (inputs, labels) = blobs(60, 3);
        let problem = Problem { inputs: &inputs, labels: &labels, classes: 3, penalty: 5.0 };
        let at: Vec<f64> = (0..9).map(|i| 0.1 * f64::from(i) - 0.3).collect();
        let gradient = problem.objective(&at).1;
        for i in 0..9 {
            let value = |h: f64| {
                let mut x = at.clone();
                x[i] += h;
                problem.objective(&x).0
            };
            // f32 logits: differences of 1e-2 leave about 1e-5 of noise in the slope.
            let slope = (value(1e-2) - value(-1e-2)) / 2e-2;
            assert!((slope - gradient[i]).abs() < 3e-4, "{i}: {slope} {}", gradient[i]);
        }
    }

    #[test]
    fn bad_labels_are_refused() {
        let (inputs, labels) = blobs(30, 0);
        assert!(Logistic::fit((&inputs, &labels), (&inputs, &labels), 2).is_err());
    }
}
