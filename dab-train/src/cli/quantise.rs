//! `dab quantise`: a model with weights of one byte, and what that changes.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::{
    input::{self, TextArgs, check_apart},
    place::Place,
    text::{grouped, rounded},
};
use crate::{
    data::Table,
    export::{int8, model_file::ModelFile},
    measure::metrics::auroc,
    support::files::save,
};

/// Store a model's weights in one byte each, and see what that changes
///
/// The weights of dense layers and heads become whole numbers from -127 to 127, with one scale for each
/// row: a quarter of their flash. Biases, codes, the decoder and the calibration table keep four bytes. The
/// known answers are computed anew. The calibration table was made of the old scores: give held-out rows
/// (--calibration) to make it of the new ones.
///
/// --data are familiar rows: shown are how far their scores move (u, or U of a model with channels), and how
/// many verdicts change. --ood are strangers: how well they are found before and after. Columns of a CSV file
/// are found by name where the model knows its inputs by name. Without -o nothing is written. `dab pack`, `dab train` and `dab fit` write such files with --weights int8.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab quantise model.dab --data familiar.npy
  dab quantise model.dab --data familiar.npy --ood strangers=noise.npy -o small.dab
  dab quantise model.dab --data test.npy --calibration held_out.npy -o small.dab")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,
    /// Familiar rows: x.npy, x.npz:key or x.csv
    #[arg(long, value_name = "ROWS")]
    data: String,
    /// Rows from elsewhere; may be repeated
    #[arg(long, value_name = "NAME=ROWS")]
    ood: Vec<String>,
    /// Held-out rows that the calibration table is made of anew
    #[arg(long, value_name = "ROWS")]
    calibration: Option<String>,
    /// The model file to write
    #[arg(short, long, value_name = "SMALL.dab")]
    output: Option<PathBuf>,
    #[command(flatten)]
    text: TextArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    let file = ModelFile::open(&place.model)?;
    let name = args.model.display();
    let (inputs, int8) = (file.model()?.shape().inputs, file.model()?.meta().int8);
    ensure!(!int8, "`{name}` has weights of one byte already");
    let sets = super::fit::ood_sets(&args.ood)?;
    if let Some(output) = &args.output {
        check_apart(output, [&place.model])?;
        let rows = std::iter::once(&args.data).chain(&args.calibration);
        check_apart(output, rows.chain(sets.iter().map(|set| &set.file)))?;
    }
    let rows = |source: &str| input::table(&file, inputs, source, args.text.format());
    let data = rows(&args.data)?;
    let ood = sets.into_iter().map(|set| Ok((set.name, rows(&set.file)?))).collect::<Result<Vec<_>>>()?;
    let held_out = args.calibration.as_deref().map(rows).transpose()?;
    let quantised =
        |rows: Option<&Table>| int8::quantised(file.bytes(), rows).with_context(|| format!("`{name}`"));
    let bytes = quantised(None)?;
    let anew = held_out.as_ref().map(|rows| quantised(Some(rows))).transpose()?;
    let said = table(&file, &bytes, anew.as_deref(), &data, &ood)?;
    if let Some(output) = &args.output {
        save(output, anew.as_ref().unwrap_or(&bytes))?;
    }
    super::print(&said)
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// `bytes` has the old calibration table, `anew` the same weights and one of held-out rows.
fn table(
    file: &ModelFile,
    bytes: &[u8],
    anew: Option<&[u8]>,
    data: &Table,
    ood: &[(String, Table)],
) -> Result<String> {
    let mut t = String::new();
    let change = int8::compare(file.bytes(), bytes, data)?;
    let (before, after) = (file.bytes().len(), anew.unwrap_or(bytes).len());
    let percent = share(after, before);
    writeln!(
        t,
        "size            {} → {} bytes, {percent:.1} %",
        grouped(before as u64),
        grouped(after as u64)
    )?;
    let at = |q: f64| {
        let last = change.differences.len().saturating_sub(1);
        change.differences.get((q * last as f64) as usize).copied().unwrap_or(0.0)
    };
    let which = if file.model()?.channels_meta().is_some() { "|ΔU|" } else { "|Δu|" };
    writeln!(
        t,
        "{which:<15} median {}, 95 % {}, largest {}; the median score is {}",
        rounded(at(0.5)),
        rounded(at(0.95)),
        rounded(at(1.0)),
        rounded(change.median)
    )?;
    match verdicts(&change, data.rows) {
        Some(changed) => {
            let by = if anew.is_some() { "by the weights alone: " } else { "" };
            writeln!(t, "verdicts        {by}{changed}")?;
            match anew.map(|anew| int8::compare(bytes, anew, data)).transpose()? {
                Some(by_table) => {
                    let changed = verdicts(&by_table, data.rows).unwrap_or_default();
                    writeln!(t, "table           made anew of --calibration; by it alone: {changed}")?;
                }
                None => writeln!(t, "table           the old one: see --calibration")?,
            }
        }
        None => writeln!(t, "verdicts        the model has no calibration table")?,
    }
    if file.model()?.monitor_config().is_some() {
        writeln!(
            t,
            "monitor         the old one, tuned on other scores: `dab monitor tune --into` makes it anew"
        )?;
    }
    for (name, strangers) in ood {
        let far = int8::compare(file.bytes(), bytes, strangers)?;
        let [before, after] = [0, 1].map(|at| auroc(&change.scores[at], &far.scores[at]));
        let (before, after) = (before?, after?);
        writeln!(t, "AUROC {name:<9} {before:.4} → {after:.4}, {:+.4}", after - before)?;
    }
    Ok(t)
}

/// How many of so many rows have another verdict, in two lines; `None` without a calibration table.
fn verdicts(change: &int8::Change, rows: usize) -> Option<String> {
    let (changed, (were, lost)) = (change.verdicts?, change.familiar?);
    let [all, familiar] = [rows, were].map(|count| grouped(count as u64));
    Some(format!(
        "{} of {all} rows change, {:.2} %\n{:16}of {familiar} familiar ones {} are no more, {:.2} %",
        grouped(changed as u64),
        share(changed, rows),
        "",
        grouped(lost as u64),
        share(lost, were)
    ))
}
