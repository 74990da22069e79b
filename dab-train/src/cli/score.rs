//! `dab score`: rows in, one assessment each out, in constant memory.
//!
//! One thread reads and writes; blocks of rows are scored by as many threads as there are cores, and written in the rows' order.
//! Parquet is written by `parquet`, row group by row group.

mod blocks;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod parquet;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, bail};
use dab_core::layers::softmax;
use dab_core::{Assessment, InputError, Model, Task};
use indicatif::{ProgressBar, ProgressStyle};

use self::blocks::{Block, Worker};
use super::{
    input::{InputArgs, RateArgs},
    text::{plural, shortest, verdict},
};
use crate::{
    data::rows::{BadRow, ReadProgress, RowError},
    export::model_file::ModelFile,
    support::{files::AtomicFile, simd::Widest},
};

/// Rows of a block: work for much longer than handing it to a thread takes.
const SHARE: usize = 512;
/// Blocks that are being read, scored, or wait, for each thread that scores.
const DEPTH: usize = 2;
/// Bytes per write.
const BUFFER: usize = 1 << 16;

/// Score rows of inputs: how far is each from the training data?
///
/// Writes one row per input: uncertainty (nats), p_value (share of familiar inputs that are at least this
/// strange), verdict (familiar, ambiguous, doubtful, unfamiliar) and nearest (the closest code). A model of `dab
/// fit` adds unfamiliarity (what p_value and verdict judge: all views of the input together), ambiguity (log odds
/// against the likeliest class), ambiguity_p (share of familiar inputs that are at least this ambiguous), class and
/// runner_up. Then come the model's outputs: means for a regression, logits for a classification. p_value and
/// verdict are empty when the model has no calibration. Rows stream, so a file may be larger than memory; results
/// have the very bits of the device.
///
/// A CSV file may begin with column names. If the model knows its inputs by name (`dab inspect` shows
/// input_names), columns are found by name, in any order and among others. A NumPy array is [rows, inputs], of
/// floats or integers.
///
/// Into a file named .parquet, the scores of a Parquet file are written behind its own columns. A folder of Parquet files
/// is scored into another folder, file by file; run the same command again after an interruption, and it goes on with
/// the files that are left. Parquet needs a dab that was built with it (`cargo install … --features parquet`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab score model.dab inputs.csv                       # a table on standard output
  dab score model.dab inputs.npy -o scores.csv         # into a file, written whole or not at all
  producer | dab score model.dab - --json --flush      # a live stream of JSON lines
  dab score model.dab inputs.csv --unfamiliar 0.001    # fewer false alarms
  dab score model.dab fleet.parquet -o scored.parquet  # all its columns, and the scores
  dab score model.dab fleet/ -o scored/                # every Parquet file of a folder")]
pub struct Args {
    /// The model file
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    rates: RateArgs,

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
fn is_named_parquet(path: &Path) -> bool {
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
    /// Counts a bad row.
    fn bad(&mut self, row: &BadRow) {
        self.bad += 1;
        self.first.get_or_insert_with(|| row.to_string());
    }

    /// What to tell the user in the end.
    fn tell(&self, source: &str) {
        if let Some(first) = &self.first {
            let rows = plural(self.rows, "row");
            super::complain(&format!("marked {} of {rows} as invalid; the first is {first}", self.bad));
        } else if self.rows == 0 {
            super::complain(&format!("{source} has no rows"));
        }
    }
}

/// Where the results go.
enum Output {
    Stdout(BufWriter<StdoutLock<'static>>),
    File(AtomicFile),
}

impl Output {
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

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let artifact = args.rates.apply(ModelFile::open(&args.model)?)?;
    let model = artifact.model()?;
    if args.probabilities && model.shape().task != Some(Task::Classification) {
        bail!("--probabilities needs a classification model, `{}` is none", args.model.display());
    }
    if let Some(output) = args.parquet()? {
        return into_parquet(args, &artifact, &model, output);
    }
    let mut rows = args.input.open(&artifact, &model)?;
    let write_error = || match &args.output {
        Some(path) => format!("cannot write `{}`", path.display()),
        None => "cannot write to standard output".into(),
    };
    let file = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let mut output = match file {
        Some(path) => Output::File(AtomicFile::create(path).with_context(write_error)?),
        None => Output::Stdout(BufWriter::with_capacity(BUFFER, io::stdout().lock())),
    };
    let names = artifact.output_names(model.shape().outputs);
    let channels = model.channels_meta().is_some();
    if !args.json {
        write_names(channels, &names, output.writer()).with_context(write_error)?;
    }
    let classes = artifact.class_names(model.shape().outputs);
    let progress = progress_bar(file.is_some(), rows.progress());

    let mut count = Count::default();
    // A live stream is scored row by row.
    let threads = if args.flush { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let limit = if args.flush { 1 } else { SHARE };
    let blocks = if args.flush { 1 } else { DEPTH * threads };
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<Worker> =
            (0..threads).map(|_| Worker::start(scope, Scorer::new(&model, &classes, args))).collect();
        let mut free: Vec<Block> = (0..blocks).map(|_| Block::new(model.shape().inputs)).collect();
        let (mut asked, mut answered, mut end) = (0, 0, None);
        loop {
            if let (None, Some(mut block)) = (&end, free.pop()) {
                match block.fill(&mut rows, limit, args.skip_bad) {
                    Ok(true) => {}
                    Ok(false) => end = Some(Ok(())),
                    Err(error) => end = Some(Err(error)),
                }
                workers[asked % threads].ask(block)?;
                asked += 1;
                continue;
            }
            if answered == asked {
                break;
            }
            // Each thread answers in the order in which it was asked, so this is the order of the rows.
            let mut block = workers[answered % threads].answer()?;
            answered += 1;
            let scored = std::mem::replace(&mut block.scored, Ok(()));
            output.writer().write_all(&block.lines).with_context(write_error)?;
            scored.with_context(|| args.input.source())?;
            if args.flush {
                output.writer().flush().with_context(write_error)?;
            }
            count.rows += block.bad.len() as u64;
            block.bad.drain(..).flatten().for_each(|row| count.bad(&row));
            progress.set_position(rows.progress().done);
            free.push(block);
        }
        match end {
            Some(Err(RowError::Bad(row))) => Err(refuse(&row).context(args.input.source())),
            Some(Err(RowError::End(error))) => Err(error.context(args.input.source())),
            _ => Ok(()),
        }
    })?;
    output.finish().with_context(write_error)?;
    progress.finish_and_clear();
    count.tell(&args.input.source().to_string());
    Ok(())
}

#[cfg(feature = "parquet")]
fn into_parquet(args: &Args, artifact: &ModelFile, model: &Model<'_>, output: &Path) -> Result<()> {
    parquet::run(args, artifact, model, output)
}

#[cfg(not(feature = "parquet"))]
fn into_parquet(_: &Args, _: &ModelFile, _: &Model<'_>, _: &Path) -> Result<()> {
    bail!("{}", crate::data::rows::WITHOUT_PARQUET)
}

/// Columns of every model.
const FIXED: [&str; 4] = ["uncertainty", "p_value", "verdict", "nearest"];
/// Columns of a model with channels, behind those.
const CHANNELS: [&str; 5] = ["unfamiliarity", "ambiguity", "ambiguity_p", "class", "runner_up"];
/// What takes the place of a verdict in a row that cannot be read.
const INVALID: &str = "invalid";

fn write_names(channels: bool, names: &[String], out: &mut dyn Write) -> Result<()> {
    let more = if channels { &CHANNELS[..] } else { &[] };
    let mut writer = csv::Writer::from_writer(out);
    let fixed = FIXED.into_iter().chain(more.iter().copied());
    writer.write_record(fixed.chain(names.iter().map(String::as_str)))?;
    writer.flush()?;
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
    let bar = start.total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// One row after another through the model, into lines of text.
struct Scorer<'a> {
    model: &'a Model<'a>,
    /// Whether the model has two channels.
    channels: bool,
    classes: &'a [String],
    isa: Widest,
    json: bool,
    probabilities: bool,
    outputs: Vec<f32>,
    scratch: Vec<f32>,
    lines: Vec<u8>,
}

impl<'a> Scorer<'a> {
    fn new(model: &'a Model<'a>, classes: &'a [String], args: &Args) -> Self {
        let shape = model.shape();
        Self {
            model,
            channels: model.channels_meta().is_some(),
            classes,
            isa: Widest::detect(),
            json: args.json,
            probabilities: args.probabilities,
            outputs: vec![0.0; shape.outputs],
            scratch: vec![0.0; model.scratch_len()],
            lines: Vec::new(),
        }
    }

    /// Scores rows, one behind the other in `inputs`, into `lines`.
    fn score(&mut self, inputs: &[f32], bad: &[Option<BadRow>]) -> Result<(), InputError> {
        self.lines.clear();
        for (input, bad) in inputs.chunks_exact(self.model.shape().inputs).zip(bad) {
            if let Some(bad) = bad {
                self.mark(bad);
                continue;
            }
            let assessment = self.model.predict_on(self.isa, input, &mut self.outputs, &mut self.scratch)?;
            if self.probabilities {
                softmax(&mut self.outputs);
            }
            if self.json { self.json_line(&assessment) } else { self.csv_line(&assessment) }
        }
        Ok(())
    }

    fn csv_line(&mut self, assessment: &Assessment) {
        let line = &mut self.lines;
        shortest(assessment.uncertainty, line);
        line.push(b',');
        if let Some(p) = assessment.p_value {
            shortest(p, line);
        }
        line.push(b',');
        line.extend(assessment.verdict.map_or("", verdict).bytes());
        line.push(b',');
        line.extend(assessment.nearest.to_string().bytes());
        if self.channels {
            for number in [assessment.unfamiliarity, assessment.ambiguity, assessment.ambiguity_p] {
                line.push(b',');
                if let Some(number) = number {
                    shortest(number, line);
                }
            }
            for class in [assessment.class, assessment.runner_up] {
                line.push(b',');
                line.extend(quoted(class.and_then(|class| self.classes.get(class))).bytes());
            }
        }
        for &y in &self.outputs {
            line.push(b',');
            shortest(y, line);
        }
        line.push(b'\n');
    }

    fn json_line(&mut self, assessment: &Assessment) {
        let line = &mut self.lines;
        line.extend(br#"{"uncertainty":"#);
        shortest(assessment.uncertainty, line);
        line.extend(br#","p_value":"#);
        match assessment.p_value {
            Some(p) => shortest(p, line),
            None => line.extend(b"null"),
        }
        line.extend(br#","verdict":"#);
        match assessment.verdict {
            Some(v) => line.extend(format!("\"{}\"", verdict(v)).bytes()),
            None => line.extend(b"null"),
        }
        line.extend(format!(r#","nearest":{}"#, assessment.nearest).bytes());
        if self.channels {
            let numbers = [assessment.unfamiliarity, assessment.ambiguity, assessment.ambiguity_p];
            for (name, number) in CHANNELS.iter().zip(numbers) {
                line.extend(format!(r#","{name}":"#).bytes());
                match number {
                    Some(number) => shortest(number, line),
                    None => line.extend(b"null"),
                }
            }
            for (name, class) in [("class", assessment.class), ("runner_up", assessment.runner_up)] {
                let class = serde_json::json!(class.and_then(|class| self.classes.get(class)));
                line.extend(format!(r#","{name}":{class}"#).bytes());
            }
        }
        line.extend(br#","outputs":["#);
        for (i, &y) in self.outputs.iter().enumerate() {
            if i > 0 {
                line.push(b',');
            }
            shortest(y, line);
        }
        line.extend(b"]}\n");
    }

    /// The line of a row that could not be read.
    fn mark(&mut self, bad: &BadRow) {
        if self.json {
            let mut record = serde_json::json!({
                "uncertainty": null, "p_value": null, "verdict": INVALID, "nearest": null,
                "outputs": [], "error": bad.to_string(),
            });
            for name in CHANNELS.iter().filter(|_| self.channels) {
                record[name] = serde_json::Value::Null;
            }
            self.lines.extend(format!("{record}\n").bytes());
        } else {
            self.lines.extend(format!(",,{INVALID},").bytes());
            let more = if self.channels { CHANNELS.len() } else { 0 };
            self.lines.extend(std::iter::repeat_n(b',', more + self.outputs.len()));
            self.lines.push(b'\n');
        }
    }
}

/// A name as a field of CSV.
fn quoted(name: Option<&String>) -> String {
    match name {
        Some(name) if name.contains([',', '"', '\n', '\r']) => format!("\"{}\"", name.replace('"', "\"\"")),
        Some(name) => name.clone(),
        None => String::new(),
    }
}
