//! A model file with weights of one byte, and what that changes.
//!
//! ```text
//! file → weights in bytes → scores of held-out rows → table → file
//! rows → both files → Δu, changed verdicts, AUROC
//! ```

use anyhow::{Context, Result};
use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::{Assessment, Verdict};

use super::device;
use crate::data::Table;

/// `artifact`, whose weights are floats, in bytes; calibrated on `held_out` with these weights. Without rows the table stays.
pub fn quantised(artifact: &[u8], held_out: Option<&Table>) -> Result<Vec<u8>> {
    let bytes = quantise(artifact, &HeldOut::default()).context("the weights cannot be stored in bytes")?;
    let Some(rows) = held_out.filter(|rows| rows.rows > 0) else { return Ok(bytes) };
    let said = device::assessments(&bytes, rows)?;
    let scores = said.iter().map(Assessment::score).collect();
    let ambiguities = said.iter().filter_map(|said| said.ambiguity).collect();
    quantise(artifact, &HeldOut { scores, ambiguities }).context("the calibration table cannot be stored")
}

/// What weights of one byte change about rows.
#[derive(Clone, Debug)]
pub struct Change {
    /// |Δ score| of every row, ascending: of u, or of U in a model with channels.
    pub differences: Vec<f32>,
    /// The median score, with floats.
    pub median: f32,
    /// Rows that have another verdict; `None` without a calibration table.
    pub verdicts: Option<usize>,
    /// Rows that were familiar, and how many of them are no more.
    pub familiar: Option<(usize, usize)>,
    /// Scores of both files, in the rows' order.
    pub scores: [Vec<f32>; 2],
}

pub fn compare(floats: &[u8], bytes: &[u8], rows: &Table) -> Result<Change> {
    let [before, after] = [device::assessments(floats, rows)?, device::assessments(bytes, rows)?];
    let scores = [&before, &after].map(|said| said.iter().map(Assessment::score).collect::<Vec<f32>>());
    let mut differences: Vec<f32> = scores[0].iter().zip(&scores[1]).map(|(a, b)| (a - b).abs()).collect();
    differences.sort_by(f32::total_cmp);
    let mut sorted = scores[0].clone();
    sorted.sort_by(f32::total_cmp);
    let judged = before.iter().any(|said| said.verdict.is_some());
    let count = |wanted: fn(&Assessment, &Assessment) -> bool| {
        before.iter().zip(&after).filter(|(a, b)| wanted(a, b)).count()
    };
    let familiar = |said: &Assessment| said.verdict == Some(Verdict::Familiar);
    let were = before.iter().filter(|said| familiar(said)).count();
    let lost = count(|a, b| a.verdict == Some(Verdict::Familiar) && b.verdict != Some(Verdict::Familiar));
    Ok(Change {
        differences,
        median: sorted.get(sorted.len() / 2).copied().unwrap_or(0.0),
        verdicts: judged.then(|| count(|a, b| a.verdict != b.verdict)),
        familiar: judged.then_some((were, lost)),
        scores,
    })
}
