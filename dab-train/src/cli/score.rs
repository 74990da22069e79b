//! `dab score`: rows in, one assessment each out, in constant memory.
//!
//! ```text
//! one thread                   reads bytes, cuts them where a row ends        writes lines, in the rows' order
//! as many as there are cores                bytes → numbers → model → lines
//! ```
//!
//! Parquet is written by `parquet`, row group by row group.

mod blocks;
#[cfg(feature = "parquet")]
mod columns;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod pictures;

use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dab_core::Task;
use indicatif::ProgressBar;

#[cfg(feature = "parquet")]
use self::lines::{CHANNELS, FIXED, INVALID};
use self::{
    blocks::{Block, End},
    lines::{Scorer, write_names},
};
use super::{
    input::{InputArgs, RateArgs, check_apart},
    pictures::{NetworkArgs, Place, are_pictures},
    progress::styled,
    text::plural,
};
use crate::{
    data::rows::{BadRow, ReadProgress},
    export::model_file::ModelFile,
    support::{files::AtomicFile, parallel::in_order},
};

/// Bytes of a block, a hundred rows or more: work for much longer than handing it to a thread takes, in little memory.
const SHARE: usize = 1 << 15;
/// Blocks that are being read, scored, or wait, for each thread that scores.
const DEPTH: usize = 2;
/// Bytes per write.
const BUFFER: usize = 1 << 16;

/// Score rows of inputs, or pictures: how far is each from the training data?
///
/// Writes one row per input: uncertainty (nats), p_value (share of familiar inputs that are at least this
/// strange), verdict (familiar, ambiguous, doubtful, unfamiliar) and nearest (the closest code). A model of `dab
/// fit` adds unfamiliarity (what p_value and verdict judge: all views of the input together), ambiguity (log odds
/// against the likeliest class), ambiguity_p (share of familiar inputs that are at least this ambiguous), class and
/// runner_up. Then come the model's outputs: means for a regression, logits for a classification. Behind those of a regression
/// that was fitted with held-out targets come their bands, NAME_band for the output NAME: the target lies within NAME ± NAME_band
/// for 95 % of familiar inputs, on average; in JSON, `bands` beside `outputs`. p_value and
/// verdict are empty when the model has no calibration. Rows stream, so a file may be larger than memory; results
/// have the very bits of the device.
///
/// A verdict compares the p_value with the model's rates: unfamiliar at 0.01 or less, doubtful at 0.05 or less. An
/// input that is neither is ambiguous where its ambiguity_p is 0.05 or less. A model of fewer than 99 held-out rows
/// cannot reach 0.01: it was given the smallest rate that it reaches, 1 in n + 1 for n rows (`dab inspect` shows the
/// rates). --doubtful and --unfamiliar set others.
///
/// A CSV file may begin with column names. If the model knows its inputs by name (`dab inspect` shows
/// input_names), columns are found by name, in any order and among others. A NumPy array is [rows, inputs], of
/// floats or integers.
///
/// Into a file named .parquet, the scores of a Parquet file are written behind its own columns. A folder of Parquet files
/// is scored into another folder, file by file; run the same command again after an interruption, and it goes on with
/// the files that are left. Parquet needs a dab that was built with it (`cargo install … --features parquet`).
///
/// Pictures (.jpg, .jpeg, .png), folders of them and arrays of images (x.npz:images, bytes) go through the image
/// network first. Give the folder of the run that `dab train` left instead of a model file: it knows the network
/// and what happens to a picture before it, which is also in the model's info (`dab inspect`). Elsewhere, name
/// the network's numbers with --backbone. The first column is then the file's name, and `class` the likeliest class.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab score model.dab inputs.csv                       # a table on standard output
  dab score model.dab inputs.npy -o scores.csv         # into a file, written whole or not at all
  producer | dab score model.dab - --json --flush      # a live stream of JSON lines
  dab score model.dab inputs.csv --unfamiliar 0.001    # fewer false alarms
  dab score model.dab fleet.parquet -o scored.parquet  # all its columns, and the scores
  dab score model.dab fleet/ -o scored/                # every Parquet file of a folder
  dab score runs/insects cat.png more/*.jpg folder/    # pictures, by a run that was trained on images
  dab score model.dab cat.png --backbone backbone.safetensors")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    rates: RateArgs,

    #[command(flatten)]
    network: NetworkArgs,

    /// Write JSON lines instead of CSV
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output, whole or not at all; - is standard output, and a name that ends in
    /// .parquet or .pq makes it Parquet
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write every row at once instead of in blocks: for live streams
    #[arg(long)]
    flush: bool,

    /// Give class probabilities instead of logits
    #[arg(long)]
    probabilities: bool,

    /// Mark rows that cannot be read (verdict `invalid`) and go on, instead of stopping at the first
    #[arg(long)]
    skip_bad: bool,

    /// Put this before the names of the new columns of a Parquet file
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
}

impl Args {
    fn write_error(&self) -> String {
        match &self.output {
            Some(path) => format!("cannot write `{}`", path.display()),
            None => "cannot write to standard output".into(),
        }
    }

    /// Where Parquet is to be written, if it is.
    fn parquet(&self) -> Result<Option<&Path>> {
        let folder = self.input.path().is_dir();
        let output = self.output.as_ref().filter(|path| folder || is_named_parquet(path));
        match (output, &self.prefix) {
            (None, Some(_)) => bail!("--prefix is for Parquet: give -o a name that ends in .parquet"),
            (Some(_), _) if self.json || self.flush => {
                bail!("Parquet is neither --json nor written row by row")
            }
            (output, _) => Ok(output.map(PathBuf::as_path)),
        }
    }
}

/// Whether a file's name says that it is Parquet.
pub fn is_named_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet") || end.eq_ignore_ascii_case("pq"))
}

/// What is wrong with a row, and what to do about it.
fn refuse(row: &BadRow) -> anyhow::Error {
    anyhow::anyhow!("{row}: correct it, or use --skip-bad to mark such rows and go on")
}

/// How many rows there were, and which of them could not be read.
#[derive(Debug, Default)]
struct Count {
    rows: u64,
    bad: u64,
    /// The first bad one, and where it is.
    first: Option<String>,
}

impl Count {
    fn bad(&mut self, what: &impl ToString) {
        self.bad += 1;
        self.first.get_or_insert_with(|| what.to_string());
    }

    /// What to tell the user in the end: `what` was counted.
    fn tell(&self, source: &str, what: &str) {
        if let Some(first) = &self.first {
            let all = plural(self.rows, what);
            super::complain(&format!("marked {} of {all} as invalid; the first is {first}", self.bad));
        } else if self.rows == 0 {
            super::complain(&format!("{source} has no rows"));
        }
    }
}

enum Output {
    Stdout(BufWriter<StdoutLock<'static>>),
    File(AtomicFile),
}

impl Output {
    fn open(args: &Args) -> Result<Self> {
        let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
        Ok(match file {
            Some(path) => Self::File(AtomicFile::create(path).with_context(|| args.write_error())?),
            None => Self::Stdout(BufWriter::with_capacity(BUFFER, io::stdout().lock())),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(out) => out,
            Self::File(file) => file,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::File(file) => file.commit(),
        }
    }
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    if let Some(output) = &args.output {
        check_apart(output, args.input.inputs.iter().chain([&place.model]))?;
    }
    let artifact = args.rates.apply(ModelFile::open(&place.model)?)?;
    let model = artifact.model()?;
    if args.probabilities && model.shape().task != Some(Task::Classification) {
        bail!("--probabilities needs a classification model, `{}` is none", args.model.display());
    }
    if are_pictures(&args.input.inputs)? {
        let eye = args
            .network
            .open(Some(&artifact.info), Some(&place.folder))
            .with_context(|| format!("`{}`", place.model.display()))?;
        return pictures::run(args, &eye, &artifact, &model);
    }
    #[cfg(feature = "parquet")]
    if let Some(output) = args.parquet()? {
        return parquet::run(args, &artifact, &model, output);
    }
    #[cfg(not(feature = "parquet"))]
    if args.parquet()?.is_some() {
        bail!("{}", crate::data::rows::parquet::WITHOUT_PARQUET);
    }
    let mut rows = args.input.open(&artifact, &model)?;
    let write_error = || args.write_error();
    let mut output = Output::open(args)?;
    let classes = artifact.class_names(model.shape().outputs);
    let scorer = || Scorer::new(&model, &classes, args.json, args.probabilities);
    if !args.json {
        write_names(&scorer().columns(&artifact), output.writer()).with_context(write_error)?;
    }
    let progress = progress_bar(matches!(output, Output::File(_)), rows.progress());

    // A live stream is scored as its rows come.
    let (least, ahead) = if args.flush { (1, 1) } else { (SHARE, DEPTH * rayon::current_num_threads()) };
    let (parser, mut marker, mut count) = (rows.parser(), scorer(), Count::default());
    // Blocks that were written, whose memory serves again; and why there is no next one.
    let (free, mut end) = (RefCell::new(Vec::<Block>::new()), Ok(false));
    let cut = std::iter::from_fn(|| {
        let mut block = free.borrow_mut().pop().unwrap_or_default();
        end = rows.cut(&mut block.raw, least);
        progress.set_position(rows.progress().done);
        matches!(end, Ok(true)).then_some(block)
    });
    let score = |mut block: Block| {
        block.score(&*parser, &mut scorer(), args.skip_bad);
        block
    };
    in_order(cut, ahead, score, |mut block| {
        let mut written = 0;
        for (before, row) in &mut block.bad {
            row.row += count.rows;
            output.writer().write_all(&block.lines[written..*before]).with_context(write_error)?;
            written = *before;
            if args.skip_bad {
                count.bad(row);
                marker.lines.clear();
                marker.mark(row);
                output.writer().write_all(&marker.lines).with_context(write_error)?;
            }
        }
        output.writer().write_all(&block.lines[written..]).with_context(write_error)?;
        match (block.end.take(), block.bad.last()) {
            (Some(End::Input(error)), _) => return Err(error).with_context(|| args.input.source()),
            (Some(End::Bad), Some((_, row))) => return Err(refuse(row).context(args.input.source())),
            _ => {}
        }
        if args.flush {
            output.writer().flush().with_context(write_error)?;
        }
        count.rows += block.count as u64;
        free.borrow_mut().push(block);
        Ok(())
    })?;
    end.with_context(|| args.input.source())?;
    output.finish().with_context(write_error)?;
    progress.finish_and_clear();
    count.tell(&args.input.source().to_string(), "row");
    Ok(())
}

/// Only for eyes: on a terminal, and not between the lines of a table on the same terminal.
fn progress_bar(to_file: bool, start: ReadProgress) -> ProgressBar {
    if !io::stderr().is_terminal() || (!to_file && io::stdout().is_terminal()) {
        return ProgressBar::hidden();
    }
    let template = match (start.total, start.bytes) {
        (Some(_), true) => "{wide_bar} {bytes}/{total_bytes} {eta}",
        (Some(_), false) => "{wide_bar} {human_pos}/{human_len} rows {eta}",
        (None, _) => "{spinner} {bytes}",
    };
    styled(start.total.map_or_else(ProgressBar::new_spinner, ProgressBar::new), template)
}
