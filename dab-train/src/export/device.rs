//! Rows through a model file, as a device computes them: what tails, tables and measures are made of.

use anyhow::Result;
use dab_core::artifact::AlignedBytes;
use dab_core::channels::ViewScore;
use dab_core::gaussian::Spread;
use dab_core::{Assessment, Model};
use nalgebra::DMatrix;

use crate::{
    data::Table,
    support::{parallel::map_blocks, simd::Widest},
};

/// Rows of a unit of parallel work.
const BLOCK: usize = 256;

/// Applies `f` to every row, its number and scratch, by all cores; the results are in the rows' order.
pub fn each_row<T: Send>(
    model: &Model<'_>,
    inputs: &Table,
    f: impl Fn(usize, &[f32], &mut [f32]) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let blocks = map_blocks(inputs.rows, BLOCK, |rows| {
        let mut scratch = vec![0.0; model.scratch_len()];
        rows.map(|row| f(row, inputs.row(row), &mut scratch)).collect::<Result<Vec<T>>>()
    });
    Ok(blocks.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// What the model says of every row.
pub fn assessments(artifact: &[u8], inputs: &Table) -> Result<Vec<Assessment>> {
    let (bytes, isa) = (AlignedBytes::from(artifact), Widest::detect());
    let model = bytes.model()?;
    each_row(&model, inputs, |_, row, scratch| Ok(model.assess_on(isa, row, scratch)?))
}

/// What every view says of every row: one list a view, the base first.
pub fn views(artifact: &[u8], inputs: &Table) -> Result<Vec<Vec<ViewScore>>> {
    let bytes = AlignedBytes::from(artifact);
    let model = bytes.model()?;
    let found = each_row(&model, inputs, |_, row, scratch| {
        let mut views = vec![ViewScore::default(); model.shape().views];
        model.views_into(row, &mut views, scratch)?;
        Ok(views)
    })?;
    let count = found.first().map_or(0, Vec::len);
    Ok((0..count).map(|view| found.iter().map(|views| views[view]).collect()).collect())
}

/// What the encoder makes of a row.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub mean: Vec<f32>,
    /// The covariance Σ: variances of a diagonal covariance, all entries of a full one, nothing of a constant one.
    pub cov: Vec<f64>,
}

pub fn encoded(artifact: &[u8], inputs: &Table) -> Result<Vec<Encoded>> {
    let bytes = AlignedBytes::from(artifact);
    let model = bytes.model()?;
    each_row(&model, inputs, |_, row, scratch| {
        let gaussian = model.encode(row, scratch)?;
        let dim = gaussian.mean.len();
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let cov = match gaussian.spread {
            Spread::Diagonal(variances) => wide(variances),
            Spread::Full { factor, .. } => {
                let factor = DMatrix::from_row_slice(dim, dim, &wide(factor));
                (&factor * factor.transpose()).as_slice().to_vec()
            }
            Spread::Identity => Vec::new(),
        };
        Ok(Encoded { mean: gaussian.mean.to_vec(), cov })
    })
}
