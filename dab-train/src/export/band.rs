//! The bands of a regression's predictions, in its file.
//!
//! ```text
//! file, held-out rows and targets → |y_j − ŷ_j| / u of each row → w_j, one for each target j → file with `output_bands`
//! ```
//!
//! w_j = 2 s_j is the 95 % quantile of |y_j − ŷ_j| / u, counted as for a p-value (docs/method.md, "From nats to a band"). ŷ and u
//! are what dab-core computes from the file, so the weights in it must be the final ones. Only held-out rows are used: a band
//! of training rows would be too narrow.

use anyhow::{Context, Result, ensure};
use dab_core::Model;
use dab_core::artifact::AlignedBytes;
use dab_core::artifact::info::{OUTPUT_BANDS, numbers_text, read_info, set_info};
use dab_core::parts::{LARGEST, SMALLEST};

use super::device;
use crate::{
    data::{INTERVAL_SHARE, Split, Table, Targets},
    support::simd::Widest,
};

/// Targets that a band can be made of: those of a regression's held-out rows, if there are any.
fn targets(held_out: &Split) -> Option<&Table> {
    match &held_out.targets {
        Targets::Regression(targets) if targets.rows > 0 => Some(targets),
        _ => None,
    }
}

/// What the bands take in a file, before they are known: their key, and a text of the right length.
pub fn room(held_out: &Split) -> Option<(String, String)> {
    targets(held_out).map(|targets| entry(&vec![0.0; targets.cols]))
}

fn entry(widths: &[f32]) -> (String, String) {
    (OUTPUT_BANDS.to_owned(), numbers_text(widths))
}

/// The file with the bands of its predictions; a classifier's, or one without held-out targets, as it is.
pub fn with_bands(artifact: Vec<u8>, held_out: &Split) -> Result<Vec<u8>> {
    let Some(targets) = targets(held_out) else { return Ok(artifact) };
    let bands = entry(&found(&artifact, &held_out.inputs, targets)?);
    let mut info = read_info(&artifact)?;
    match info.iter_mut().find(|(key, _)| key == OUTPUT_BANDS) {
        Some(place) => *place = bands,
        None => info.push(bands),
    }
    set_info(&artifact, &info).context("the bands cannot be stored")
}

/// w of each target.
fn found(artifact: &[u8], inputs: &Table, targets: &Table) -> Result<Vec<f32>> {
    let (bytes, isa) = (AlignedBytes::from(artifact), Widest::detect());
    let model = bytes.model()?;
    let outputs = model.shape().outputs;
    ensure!(
        outputs == targets.cols,
        "the model predicts {outputs} numbers, there are {} targets",
        targets.cols
    );
    let rows = device::each_row(&model, inputs, |row, input, scratch| {
        let mut predicted = vec![0.0; outputs];
        let said = model.predict_on(isa, input, &mut predicted, scratch)?;
        let pairs = predicted.iter().zip(targets.row(row));
        Ok(pairs.map(|(p, y)| needed((p - y).abs(), said.uncertainty)).collect::<Vec<_>>())
    })?;
    Ok((0..outputs).map(|target| quantile(rows.iter().map(|row| row[target]).collect())).collect())
}

/// The smallest width whose band holds an error: w u ≥ |y − ŷ| as a device computes it.
fn needed(error: f32, u: f32) -> f32 {
    let width = error / u.max(f32::MIN_POSITIVE);
    if width * u < error { width.next_up() } else { width }
}

/// The smallest width that is enough for [`INTERVAL_SHARE`] of rows, counted as for a p-value, as a number that a file may have.
fn quantile(mut needed: Vec<f32>) -> f32 {
    needed.sort_by(f32::total_cmp);
    let rank = (INTERVAL_SHARE * (needed.len() + 1) as f64).ceil() as usize;
    let width = needed[rank.min(needed.len()) - 1];
    if width > 0.0 { width.clamp(SMALLEST, LARGEST) } else { 0.0 }
}

/// The widths of a model's bands, one for each output; `None` where its file has none.
pub fn widths(model: &Model<'_>) -> Option<Vec<f32>> {
    let bands = model.bands()?;
    (0..model.shape().outputs).map(|output| bands.get(output)).collect()
}

/// The names of columns that have the half-width of the bands of these outputs.
pub fn columns(outputs: &[String]) -> Vec<String> {
    outputs.iter().map(|name| format!("{name}_band")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_band_holds_an_error_to_the_bit() {
        let mut narrower = 0;
        for i in 1..2000_u32 {
            let (error, u) = (0.37 * i as f32, 1.0 + (i * 7919 % 1000) as f32 / 77.0);
            let width = needed(error, u);
            assert!(width * u >= error, "{error} {u}");
            narrower += u32::from(width.next_down() * u >= error);
        }
        // Rounding may hold an error with one bit less; a band that is wider than that is not the smallest.
        assert!(narrower < 1000, "{narrower}");
        assert_eq!((needed(0.0, 0.0), needed(0.0, 3.0)), (0.0, 0.0));
        assert!(needed(1.0, 0.0) > 1e30);
    }

    #[test]
    fn ranks_are_those_of_a_p_value_and_widths_numbers_of_a_file() {
        let numbers = |n: usize| (1..=n).rev().map(|i| i as f32).collect::<Vec<f32>>();
        // 0.95 (n + 1), rounded up; of too few the largest.
        assert_eq!(
            [1, 10, 18, 19, 20, 39, 99].map(|n| quantile(numbers(n))),
            [1.0, 10.0, 18.0, 19.0, 20.0, 38.0, 95.0]
        );
        assert_eq!(quantile(vec![0.0; 30]), 0.0);
        assert_eq!([1e-30, 1e30].map(|width| quantile(vec![width; 30])), [SMALLEST, LARGEST]);
        assert_eq!(quantile(vec![f32::INFINITY; 30]), LARGEST);
    }
}
