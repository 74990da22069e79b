//! `dab teach`: "this is normal now", as a new model file.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use dab_core::artifact::taught::add_taught;
use dab_core::memory::{Config, Head, MAX_CODES, MemoryError, MemoryView, storage_len};
use dab_core::teach::TeachError;
use dab_core::{Model, Verdict};
use sha2::{Digest, Sha256};

use super::{
    input::{InputArgs, check_apart, each_row},
    place::Place,
    text::{plural, rounded},
};
use crate::{
    export::model_file::ModelFile,
    support::{digest, files::save},
};

/// Teach a model that some inputs are normal now.
///
/// The rows that the model does not call familiar become codes beside its own: rows near each other share one. The new
/// file then takes the smaller of two uncertainties, that of the model and that of what was taught, as a device does that was
/// taught with dab_teach. So what was familiar stays familiar, p-values of other inputs can only rise, and an input that is far
/// from both is as unfamiliar as before. The file says what it was taught, from which model; it can be taught again.
///
/// Teach rows that you know to be normal: whatever is like them will not alarm any more, and that is more than the rows
/// themselves. Measure it: score strangers with both files. Where you have the training rows, fit again instead.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab teach model.dab pump.csv -o model2.dab
  dab score model2.dab faults.csv               # what must still alarm
  dab inspect model2.dab                        # what it was taught")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// The new model file
    #[arg(short, long, value_name = "MODEL2.dab")]
    output: PathBuf,

    /// Rows within so many nats of a taught code join it; without it: as far as familiar rows are from the model's own codes
    #[arg(long, value_name = "NATS")]
    spawn: Option<f32>,

    /// Most codes that the rows may take
    #[arg(long, default_value_t = 64, value_name = "N")]
    codes: usize,
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    check_apart(&args.output, args.input.inputs.iter().chain([&place.model]))?;
    let artifact = ModelFile::open(&place.model)?;
    let model = artifact.model()?;
    ensure!((1..=MAX_CODES).contains(&args.codes), "--codes {}: 1 to {MAX_CODES} are possible", args.codes);
    let dim = model.shape().dim;
    let alpha = model.codebook().alpha;
    let spawn = args.spawn.unwrap_or_else(|| reach(&model));
    let config = Config { spawn, alpha: if alpha > 0.0 { alpha } else { 1.0 }, ..Config::DEFAULT };
    let mut head = Head::new(config).with_context(|| format!("--spawn {spawn}"))?;
    let mut storage = vec![0.0; storage_len(args.codes, dim)];
    let mut memory = MemoryView::new(&mut head, args.codes, dim, &mut storage)?;
    let mut scratch = vec![0.0; model.scratch_len()];

    let mut seen = Sha256::new();
    // How many rows there are, and how many of them the model does not call familiar.
    let (mut all, mut strange) = (0, 0);
    let source = args.input.source();
    let inputs = model.shape().inputs;
    each_row(
        &mut args.input.open(&artifact, &model)?,
        &source,
        inputs,
        "; nothing was taught",
        |row, input| {
            all += 1;
            input.iter().for_each(|x| seen.update(x.to_le_bytes()));
            if is_familiar(&model, input, &mut scratch)? {
                return Ok(());
            }
            strange += 1;
            match model.teach(&mut memory, input, &mut scratch) {
                Ok(_) => Ok(()),
                Err(TeachError::Memory(MemoryError::Full { places })) => {
                    bail!(
                        "row {row} needs another code and all {places} are used: raise --codes, or --spawn above {}",
                        rounded(spawn)
                    )
                }
                Err(error) => Err(error).with_context(|| format!("{}, row {row}", args.input.source())),
            }
        },
    )?;
    ensure!(all > 0, "{source} has no rows");
    ensure!(
        strange > 0,
        "{source}: all {} are familiar already, there is nothing to teach",
        plural(all, "row")
    );

    let codes = plural(memory.len() as u64, "code");
    let rows = format!("{strange} of {}", plural(all, "row"));
    let mut info = artifact.info.clone();
    let times = info.iter().filter(|(key, _)| key == "taught" || key.starts_with("taught.")).count();
    let key = if times == 0 { "taught".to_owned() } else { format!("taught.{}", times + 1) };
    let sha = &digest::hex(seen)[..16];
    info.push((
        key,
        format!(
            "{rows} of {source} (SHA-256 of the values {sha}…), {codes} within {} nats, by dab {}; before: model {:08x}",
            rounded(spawn),
            env!("CARGO_PKG_VERSION"),
            artifact.identity()
        ),
    ));
    let bytes =
        add_taught(artifact.bytes(), &memory.codes(), &info).context("what was taught cannot be stored")?;
    let taught = ModelFile::from_bytes(&bytes)?;
    let after = taught.model()?;
    after.self_test(&mut vec![0.0; after.scratch_len()]).context("the new model")?;

    let mut scratch = vec![0.0; after.scratch_len()];
    let mut left = 0;
    // Standard input is gone by now: what was taught is then not counted again.
    if !args.input.is_stdin() {
        each_row(&mut args.input.open(&artifact, &model)?, &source, inputs, "", |_, input| {
            left += u64::from(!is_familiar(&after, input, &mut scratch)?);
            Ok(())
        })?;
    }
    let output = args.output.display();
    save(&args.output, &bytes)?;
    let more = bytes.len().saturating_sub(artifact.bytes().len());
    let mut said = format!("{output}: taught {rows} with {codes}, {more} bytes more\n");
    if !args.input.is_stdin() {
        said.push_str(&format!("not familiar: {strange} before, {left} now\n"));
        said.push_str(&still_strange(&after, left, all));
    }
    super::print(&said)
}

/// How many of the taught rows are not familiar even now, and why; empty where all are.
fn still_strange(model: &Model<'_>, left: u64, all: u64) -> String {
    if left == 0 {
        return String::new();
    }
    // Finer codes do not bring a row nearer that lies outside of the axes.
    let why = match model.has_rest(0) {
        true => "what lies outside of the axes of the first view cannot be taught;",
        false => "they are too far from the taught codes; try a smaller --spawn with more --codes, or",
    };
    let are = if left == 1 { "is" } else { "are" };
    format!(
        "{left} of {} {are} STILL NOT FAMILIAR: {why} fit again with these rows among the training rows\n",
        plural(all, "row")
    )
}

/// Whether the model calls an input familiar as far as its distance goes; never without a calibration table.
fn is_familiar(model: &Model<'_>, input: &[f32], scratch: &mut [f32]) -> Result<bool> {
    let verdict = model.assess(input, scratch)?.verdict;
    Ok(matches!(verdict, Some(Verdict::Familiar | Verdict::Ambiguous)))
}

/// How far familiar inputs are from the codes, nats: what nine of ten do not exceed with channels, else the threshold of
/// doubtful; of a model without either, its dimension.
fn reach(model: &Model<'_>) -> f32 {
    let tail = model.tails().next().map(|tails| tails.u.a + tails.u.b * 9f32.ln());
    let table = || model.calibration().and_then(|table| table.threshold(model.rates().doubtful()));
    tail.or_else(table).filter(|&nats| nats > 0.0).unwrap_or(model.shape().dim as f32)
}
