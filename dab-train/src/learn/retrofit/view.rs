//! One view of an input: norm, whitening, codes, and perhaps a decoder; a special case of E1–E7 with a constant covariance.
//!
//! ```text
//! x → x̂ (columns, length) → z = W x̂ + b        D_κ = ½ ‖z − m_κ‖²   u = Σ_κ π_x(κ) D_κ       E = −ln Σ_j e^{l_j(z)}
//! ```
//!
//! What is computed here in f32 matrix products chooses among candidates; [`Fitted::exact`] is the same in f64, to compare
//! with the device.

use anyhow::Result;

use super::{
    codes::Codes,
    rest::{self, Rest},
    whitening::{Affine, Spread, WIDE},
};
use crate::{
    config::retrofit::{Norm, ViewConfig},
    data::{LEAST_DEVIATION, Scale, Table},
    support::parallel::map_blocks,
};

/// Rows of a unit of parallel work.
const BLOCK: usize = 256;

/// Unit of a column that was constant in training, as a share of its value.
const CONSTANT_UNIT: f64 = 0.1;

/// Rows of a cluster whose spread counts as local, on average at least: fewer would mostly measure their own mean.
const LOCAL_ROWS: usize = 4;
/// Ridge of the whitening in which these clusters are looked for.
const LOCAL_RIDGE: f64 = 1.0;

/// What happens to raw inputs first.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Column means and deviations, where the norm asks for them.
    pub columns: Option<Scale>,
    /// Whether rows are divided by their length.
    pub l2: bool,
}

impl Prepare {
    /// The statistics of `inputs` that `norm` needs.
    pub fn fit(norm: Norm, inputs: &Table) -> Self {
        let columns = norm.has_columns().then(|| Self::units(inputs));
        Self { columns, l2: norm.has_length() }
    }

    /// Means and deviations of columns. One that was constant in training has no deviation, but an input that moves it is strange:
    /// its unit is a share of its value, or what other columns have if that is 0.
    fn units(inputs: &Table) -> Scale {
        let (stats, mut scale) = (inputs.column_stats(), Scale::fit(inputs));
        let mut others: Vec<f64> = stats.iter().filter(|one| !one.is_constant()).map(|one| one.std).collect();
        others.sort_by(f64::total_cmp);
        let usual = others.get(others.len() / 2).copied().unwrap_or(1.0);
        for (std, column) in scale.std.iter_mut().zip(&stats).filter(|(_, column)| column.is_constant()) {
            let zero = column.mean.abs() < LEAST_DEVIATION;
            let unit = if zero { usual } else { CONSTANT_UNIT * column.mean.abs() };
            *std = unit as f32;
        }
        scale
    }

    /// The same about the mean of the columns where nothing else brings rows near 0: squares of large offsets would drown what
    /// lies outside of a view's axes.
    fn centred(self, inputs: &Table) -> Self {
        let mean = || inputs.column_stats().iter().map(|column| column.mean as f32).collect();
        let centred = || Scale { mean: mean(), std: vec![1.0; inputs.cols] };
        Self { columns: self.columns.or_else(|| (!self.l2).then(centred)), ..self }
    }

    /// x̂ of every row.
    pub fn apply(&self, inputs: &Table) -> Table {
        let mut table = self.columns.as_ref().map_or_else(|| inputs.clone(), |scale| scale.apply(inputs));
        if self.l2 {
            for row in table.values.chunks_exact_mut(inputs.cols.max(1)) {
                let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
                if length > 0.0 {
                    row.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
                }
            }
        }
        table
    }
}

/// −ln Σ e^l of every row of logits.
pub fn energy(logits: &Table) -> Vec<f32> {
    let of = |row: &[f32]| {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = row.iter().map(|&x| f64::from(x - top).exp()).sum();
        (-(f64::from(top) + sum.ln())) as f32
    };
    logits.iter().map(of).collect()
}

/// The covariance that a view of up to `each` codes a class whitens by. One code stands for a whole class, so what counts is how
/// rows vary within classes, which is `whole`. Many codes follow the shape of a class; then it is how rows vary around the code next
/// to them, in clusters of `LOCAL_ROWS` rows or more.
///
/// # Errors
/// As [`Spread::fit`].
pub fn spread_around(
    whole: Spread,
    prepared: &Table,
    (labels, classes): (&[u32], usize),
    each: usize,
    seed: u64,
) -> Result<Spread> {
    if each < 2 {
        return Ok(whole);
    }
    let latent = whole.whitening(LOCAL_RIDGE, None).apply(prepared);
    let clusters = |rows: usize| each.min(rows / LOCAL_ROWS).max(1);
    let codes = Codes::fit_by(&latent, labels, classes, clusters, seed, "fit/spread");
    Spread::fit(prepared, &codes.members(&latent), codes.means.rows)
}

/// Whether a view of so many axes, or of all without a number, leaves some of `columns` out: of wide inputs it always does.
pub fn leaves_axes_out(axes: Option<usize>, columns: usize) -> bool {
    axes.map_or(columns > WIDE, |axes| axes < columns)
}

/// One view, fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// How it was asked for.
    pub config: ViewConfig,
    /// What happens to raw inputs first.
    pub prepare: Prepare,
    /// x̂ → z.
    pub head: Affine,
    /// m, π.
    pub codes: Codes,
    /// α of E5.
    pub alpha: f64,
    /// z → outputs.
    pub decoder: Option<Affine>,
    /// c: the mean of x̂.
    pub centre: Vec<f64>,
    /// The last axis, if it is what the others leave out.
    pub rest: Option<Rest>,
}

impl Fitted {
    /// Fits norm, whitening and codes to labelled inputs; the decoder is another's business.
    ///
    /// # Errors
    /// No rows, or labels for other rows.
    pub fn fit(
        config: &ViewConfig,
        inputs: &Table,
        labels: &[u32],
        classes: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut prepare = Prepare::fit(config.norm, inputs);
        if leaves_axes_out(config.rank, inputs.cols) {
            prepare = prepare.centred(inputs);
        }
        let prepared = prepare.apply(inputs);
        let whole = Spread::fit(&prepared, labels, classes)?;
        let spread = spread_around(whole, &prepared, (labels, classes), config.codes, seed)?;
        let head = spread.whitening(config.ridge, config.rank);
        let latent = head.apply(&prepared);
        let stream = format!("fit/codes/{}/{}", config.norm.name(), config.codes);
        let mut codes = Codes::fit(&latent, labels, classes, config.codes, seed, &stream);
        if config.local {
            codes.count_locally(&latent);
        }
        let (config, centre, alpha) = (config.clone(), spread.mean().to_vec(), config.alpha);
        Ok(Self { config, prepare, head, codes, alpha, decoder: None, centre, rest: None })
    }

    /// ρ² and ‖x̂‖² of rows.
    pub fn rest_squares(&self, inputs: &Table) -> Vec<(f64, f64)> {
        rest::squares(&self.head, &self.centre, &self.prepare.apply(inputs))
    }

    /// Adds what the axes leave out as the last one. Codes are at 0 along it, and the decoder does not read it.
    pub fn add_rest(&mut self, gain: f32) {
        let rest = Rest::new(&self.head, gain);
        self.head.weight.extend(self.centre.iter().map(|&c| c as f32));
        self.head.bias.push((-0.5 * self.centre.iter().map(|c| c * c).sum::<f64>()) as f32);
        self.widen();
        self.rest = Some(rest);
    }

    /// Multiplies z and the codes: see [`unit`].
    pub fn rescale(&mut self, scale: f32) {
        let numbers = [&mut self.head.weight, &mut self.head.bias, &mut self.codes.means.values];
        numbers.into_iter().flatten().for_each(|x| *x *= scale);
    }

    /// Adds one axis along which every input is at `distance` from every code. All distances grow by the same number, so no
    /// two change their order, and none is 0.
    pub fn lift(&mut self, distance: f32) {
        let inputs = self.head.weight.len() / self.head.outputs().max(1);
        self.head.weight.extend(std::iter::repeat_n(0.0, inputs));
        self.head.bias.push(distance);
        self.widen();
    }

    /// One more axis of codes and decoder, at 0.
    fn widen(&mut self) {
        let dim = self.codes.means.cols;
        let wider = |values: &[f32]| -> Vec<f32> {
            values.chunks(dim.max(1)).flat_map(|row| row.iter().copied().chain([0.0])).collect()
        };
        let means = &self.codes.means;
        self.codes.means = Table { rows: means.rows, cols: dim + 1, values: wider(&means.values) };
        if let Some(decoder) = &mut self.decoder {
            decoder.weight = wider(&decoder.weight);
        }
    }

    /// z of raw inputs.
    pub fn latent(&self, inputs: &Table) -> Table {
        let prepared = self.prepare.apply(inputs);
        let mut latent = self.head.apply(&prepared);
        if let Some(rest) = &self.rest {
            rest.apply(&prepared, &mut latent);
        }
        latent
    }

    /// u of raw inputs in f64, from the numbers that the file holds.
    pub fn exact(&self, inputs: &Table) -> Vec<f32> {
        let prepared = self.prepare.apply(inputs);
        let (cols, dim) = (inputs.cols, self.head.outputs());
        let alpha = self.alpha;
        let log_priors: Vec<f64> = self.codes.priors.iter().map(|p| p.ln()).collect();
        let blocks = map_blocks(inputs.rows, BLOCK, |rows| {
            let score = |row: usize| {
                let x = prepared.row(row);
                let mut z: Vec<f64> = (0..dim)
                    .map(|i| {
                        let weights = &self.head.weight[i * cols..(i + 1) * cols];
                        let dot: f64 =
                            weights.iter().zip(x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
                        dot + f64::from(self.head.bias[i])
                    })
                    .collect();
                if let Some(rest) = &self.rest {
                    z[dim - 1] = f64::from(rest.gain) * rest.length(x, &z);
                }
                let distance = |(code, mean): (usize, &[f32])| {
                    let precision = self.codes.precisions.get(code).map_or(1.0, |&p| f64::from(p));
                    0.5 * precision
                        * mean.iter().zip(&z).map(|(&m, z)| (z - f64::from(m)).powi(2)).sum::<f64>()
                };
                let distances: Vec<f64> = self.codes.means.iter().enumerate().map(distance).collect();
                let least = distances
                    .iter()
                    .zip(&log_priors)
                    .map(|(d, p)| p - alpha * d)
                    .fold(f64::NEG_INFINITY, f64::max);
                let (sum, weighted) =
                    distances.iter().zip(&log_priors).fold((0.0, 0.0), |(sum, weighted), (d, p)| {
                        let weight = (p - alpha * d - least).exp();
                        (sum + weight, weighted + weight * d)
                    });
                (weighted / sum).min(f64::from(f32::MAX)) as f32
            };
            rows.map(score).collect::<Vec<f32>>()
        });
        blocks.concat()
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
