//! A trained model as plain numbers, and its scores.
//!
//! ```text
//! x → (x − shift) / scale → layers → head → N(μ, Σ) → distances → u, π_x        y = decoder(μ)
//! ```
//!
//! Everything an artifact stores is here as `f32`, row-major; nothing here knows how it was learned. Scoring runs
//! the same tensor code as training, without gradients and with z = μ.

use anyhow::anyhow;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{
    activation::Activation,
    codebook::{Codebook, uncertainty},
    dense::{Dense, Layer, Mlp},
    divergence,
    encoder::Covariance,
    network::{Network, Output, OutputVariance},
};
use crate::{
    data::{Scale, Table},
    error::Error,
};

/// Numbers of one tensor that a scoring step may hold (examples × codes × dim).
const CHUNK_NUMBERS: usize = 1 << 22;
/// Examples in one scoring step, at most.
const CHUNK_ROWS: usize = 4096;

/// An affine map as plain numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// How many numbers go in.
    pub inputs: usize,
    /// How many come out.
    pub outputs: usize,
    /// `inputs × outputs`, row-major: output j is Σ_i x_i weight[i · outputs + j].
    pub weight: Vec<f32>,
    /// One per output.
    pub bias: Option<Vec<f32>>,
}

/// A backbone layer as plain numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotLayer {
    /// The affine map.
    pub affine: Affine,
    /// What follows it.
    pub activation: Activation,
    /// Which earlier output is added afterwards (0 is the normalised input).
    pub residual: Option<usize>,
}

/// A trained model.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What is done to raw inputs first.
    pub input_scale: Scale,
    /// Inputs → features.
    pub layers: Vec<SnapshotLayer>,
    /// Applied to the features before the head.
    pub activation: Activation,
    /// Features → (μ, covariance numbers).
    pub head: Affine,
    /// Latent dimensions, d.
    pub dim: usize,
    /// How head outputs become a covariance.
    pub covariance: Covariance,
    /// Means m, covariances Σ and priors π of the codes.
    pub codebook: Codebook,
    /// Temperature of the assignment, α.
    pub alpha: f32,
    /// μ → outputs, in the units of the standardised targets.
    pub decoder: Affine,
    /// What the outputs mean.
    pub output: Output,
    /// ln σ² of each target in standardised units, when one number was learned for all inputs.
    pub log_variance: Option<Vec<f32>>,
    /// Regression: standardised output · std + mean is the prediction.
    pub target_scale: Option<Scale>,
}

/// Scores of a table's rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// u(x), nats, one per row.
    pub uncertainty: Vec<f32>,
    /// The code of the largest π_x (of a device, the nearest), one per row.
    pub code: Vec<u32>,
    /// π_x, `rows × codes`; empty when a device scored.
    pub assignment: Table,
    /// D_κ(x), `rows × codes`; empty when a device scored.
    pub distances: Table,
    /// μ(x), `rows × dim`; empty when a device scored.
    pub latent: Table,
    /// Logits, or predictions in the targets' own units (of a learned variance: then the trainer's ln σ² too, standardised).
    pub outputs: Table,
}

/// Distances of finite inputs: rounding below 0 becomes 0, overflow (∞, or ∞ − ∞) the largest finite number.
fn saturated(distances: Tensor<2>) -> Tensor<2> {
    let overflow = distances.clone().is_nan();
    distances.mask_fill(overflow, f32::MAX).clamp(0.0, f64::from(f32::MAX))
}

impl Affine {
    fn read(dense: &Dense) -> Self {
        let [inputs, outputs] = dense.weight.dims();
        let values = |tensor: &Tensor<2>| tensor.to_data().iter::<f32>().collect();
        Self { inputs, outputs, weight: values(&dense.weight), bias: dense.bias.as_ref().map(values) }
    }

    fn dense(&self, device: &Device) -> Dense {
        Dense::from_values(self.weight.clone(), self.bias.clone(), [self.inputs, self.outputs], device)
    }
}

impl Snapshot {
    /// Reads a network (from an image network's features on) and its codebook into plain numbers, nothing scaled.
    #[must_use]
    pub fn new(network: &Network, codebook: &Codebook, alpha: f64) -> Self {
        let first = network.backbone.layers.first().map_or(&network.head, |layer| &layer.dense);
        let inputs = first.weight.dims()[0];
        let layers = network.backbone.layers.iter().map(|layer| SnapshotLayer {
            affine: Affine::read(&layer.dense),
            activation: layer.activation,
            residual: layer.residual,
        });
        Self {
            input_scale: Scale { mean: vec![0.0; inputs], std: vec![1.0; inputs] },
            layers: layers.collect(),
            activation: network.activation,
            head: Affine::read(&network.head),
            dim: network.dim,
            covariance: network.covariance,
            codebook: codebook.clone(),
            alpha: alpha as f32,
            decoder: Affine::read(&network.decoder),
            output: network.output,
            log_variance: network.log_variance.as_ref().map(|v| v.to_data().iter::<f32>().collect()),
            target_scale: None,
        }
    }

    fn network(&self, device: &Device) -> Network {
        let layers = self.layers.iter().map(|layer| Layer {
            dense: layer.affine.dense(device),
            activation: layer.activation,
            residual: layer.residual,
        });
        Network {
            images: None,
            backbone: Mlp { layers: layers.collect() },
            activation: self.activation,
            head: self.head.dense(device),
            decoder: self.decoder.dense(device),
            log_variance: None,
            dim: self.dim,
            covariance: self.covariance,
            output: self.output,
            smoothing: 0.0,
        }
    }

    /// Scores raw inputs, in steps that fit in memory.
    ///
    /// # Errors
    /// When the table has another number of columns than the model has inputs.
    pub fn score(&self, table: &Table, device: &Device) -> Result<Scores, Error> {
        let (inputs, found) = (self.input_scale.mean.len(), table.cols);
        if inputs != found {
            let fact = anyhow!("the model takes {inputs} numbers, the table has {found} columns");
            return Err(Error::Measuring(fact.into()));
        }
        let network = self.network(device);
        let codes = self.codebook.tensors(device, DType::F32);
        let count = self.codebook.len();
        let step = (CHUNK_NUMBERS / (count * self.dim)).clamp(1, CHUNK_ROWS);
        let mut columns: [Vec<f32>; 5] = Default::default();
        for start in (0..table.rows).step_by(step) {
            let rows = step.min(table.rows - start);
            let part = Table { rows, cols: inputs, values: table.block(start..start + rows).to_vec() };
            let x = TensorData::new(self.input_scale.apply(&part).values, [rows, inputs]);
            let encoding = network.encode(Tensor::from_data(x, device));
            let distances = saturated(divergence::kl(&encoding, &codes)); // [rows, codes]       E4
            let assignment = codes.assign(&distances, f64::from(self.alpha)); // [rows, codes]   E5
            let u = saturated(uncertainty(assignment.clone(), distances.clone())); // [rows, 1]  E6
            let outputs = network.decoder.forward(encoding.mean.clone()); // z = μ                E7
            for (column, tensor) in columns.iter_mut().zip([u, assignment, distances, encoding.mean, outputs])
            {
                column.extend(tensor.into_data().iter::<f32>());
            }
        }
        let [uncertainty, assignment, distances, latent, outputs] = columns;
        let shaped = |values, cols| Table { rows: table.rows, cols, values };
        let assignment = shaped(assignment, count);
        Ok(Scores {
            uncertainty,
            code: assignment.largest(),
            assignment,
            distances: shaped(distances, count),
            latent: shaped(latent, self.dim),
            outputs: self.unscaled(shaped(outputs, self.output.width())),
        })
    }

    /// Decoder outputs in the targets' own units.
    fn unscaled(&self, mut outputs: Table) -> Table {
        if let (Output::Regression(count, _), Some(scale)) = (self.output, &self.target_scale) {
            for row in outputs.values.chunks_exact_mut(outputs.cols) {
                for (value, (mean, std)) in row[..count].iter_mut().zip(scale.mean.iter().zip(&scale.std)) {
                    *value = *value * std + mean;
                }
            }
        }
        outputs
    }

    /// Standard deviation of the noise in the targets' own units, for each row of decoder outputs; 1 in standardised
    /// units where no variance was learned.
    #[must_use]
    pub fn noise(&self, scores: &Scores) -> Table {
        let Output::Regression(count, variance) = self.output else {
            return Table { rows: scores.outputs.rows, cols: 0, values: Vec::new() };
        };
        let rows = scores.outputs.values.chunks_exact(scores.outputs.cols);
        let values = rows.flat_map(|row| {
            (0..count).map(move |target| {
                let log_variance = match variance {
                    OutputVariance::Learned => row[count + target],
                    _ => self.log_variance.as_ref().map_or(0.0, |v| v[target]),
                };
                (0.5 * log_variance).exp() * self.target_scale.as_ref().map_or(1.0, |scale| scale.std[target])
            })
        });
        Table { rows: scores.outputs.rows, cols: count, values: values.collect() }
    }
}
