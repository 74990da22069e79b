//! `dab score`: rows in, one assessment each out, in constant memory.
//!
//! One thread reads and writes; a block of rows is scored by all, each its own share, and written in the rows' order.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, bail};
use dab_core::layers::softmax;
use dab_core::{Assessment, InputError, Model, Task};
use indicatif::{ProgressBar, ProgressStyle};

use super::{
    input::{InputArgs, RateArgs},
    text::{plural, shortest, verdict},
};
use crate::{
    data::rows::{BadRow, ReadProgress, RowError, RowReader},
    export::model_file::ModelFile,
    support::{files::AtomicFile, simd::Widest},
};

/// Rows of a block per thread: work for much longer than a thread takes to start.
const SHARE: usize = 512;
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
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab score model.dab inputs.csv                       # a table on standard output
  dab score model.dab inputs.npy -o scores.csv         # into a file, written whole or not at all
  producer | dab score model.dab - --json --flush      # a live stream of JSON lines
  dab score model.dab inputs.csv --unfamiliar 0.001    # fewer false alarms")]
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

    /// Write to this file instead of standard output, whole or not at all; - is standard output
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

    // A live stream is scored row by row.
    let threads = if args.flush { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    let limit = if args.flush { 1 } else { threads * SHARE };
    let mut scorers: Vec<Scorer<'_>> = (0..threads).map(|_| Scorer::new(&model, &classes, args)).collect();
    let mut block = Block::new(model.shape().inputs);
    let (mut count, mut bad, mut first_bad) = (0u64, 0u64, None);
    loop {
        let end = block.fill(&mut rows, limit, args.skip_bad);
        let lines = block.score(&mut scorers).with_context(|| args.input.source())?;
        for lines in lines {
            output.writer().write_all(lines).with_context(write_error)?;
        }
        if args.flush {
            output.writer().flush().with_context(write_error)?;
        }
        count += block.bad.len() as u64;
        for row in block.bad.drain(..).flatten() {
            bad += 1;
            first_bad.get_or_insert(row);
        }
        progress.set_position(rows.progress().done);
        match end {
            Ok(true) => {}
            Ok(false) => break,
            Err(RowError::Bad(row)) => {
                let advice = "correct it, or use --skip-bad to mark such rows and go on";
                return Err(anyhow::anyhow!("{}: {row}: {advice}", args.input.source()));
            }
            Err(RowError::End(error)) => return Err(error.context(args.input.source())),
        }
    }
    output.finish().with_context(write_error)?;
    progress.finish_and_clear();
    if let Some(first) = first_bad {
        super::complain(&format!(
            "marked {bad} of {} as invalid; the first is {first}",
            plural(count, "row")
        ));
    } else if count == 0 {
        super::complain(&format!("{} has no rows", args.input.source()));
    }
    Ok(())
}

/// Columns of every model.
const FIXED: [&str; 4] = ["uncertainty", "p_value", "verdict", "nearest"];
/// Columns of a model with channels, behind those.
const CHANNELS: [&str; 5] = ["unfamiliarity", "ambiguity", "ambiguity_p", "class", "runner_up"];

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

/// Rows that are scored together.
struct Block {
    width: usize,
    /// Good rows, one behind the other; a bad one has its place too.
    inputs: Vec<f32>,
    /// What is wrong with each row.
    bad: Vec<Option<BadRow>>,
}

impl Block {
    const fn new(width: usize) -> Self {
        Self { width, inputs: Vec::new(), bad: Vec::new() }
    }

    /// Reads up to `limit` rows; whether there may be more. What was read before an error is in the block.
    fn fill(&mut self, rows: &mut RowReader, limit: usize, skip_bad: bool) -> Result<bool, RowError> {
        self.bad.clear();
        self.inputs.resize(limit * self.width, 0.0);
        for input in self.inputs.chunks_exact_mut(self.width) {
            match rows.next_into(input) {
                Ok(true) => self.bad.push(None),
                Ok(false) => return Ok(false),
                Err(RowError::Bad(row)) if skip_bad => self.bad.push(Some(row)),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// The lines of all rows, in pieces that follow one another.
    fn score<'s>(&self, scorers: &'s mut [Scorer<'_>]) -> Result<impl Iterator<Item = &'s [u8]>, InputError> {
        let share = self.bad.len().div_ceil(scorers.len()).max(1);
        let shares = self.inputs.chunks(share * self.width).zip(self.bad.chunks(share));
        let used = self.bad.len().div_ceil(share);
        thread::scope(|scope| {
            let mut work = scorers.iter_mut().zip(shares);
            let first = work.next();
            let others: Vec<_> =
                work.map(|(scorer, (inputs, bad))| scope.spawn(move || scorer.score(inputs, bad))).collect();
            let first = first.map_or(Ok(()), |(scorer, (inputs, bad))| scorer.score(inputs, bad));
            others.into_iter().fold(first, |result, other| {
                result.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        })?;
        Ok(scorers.iter().take(used).map(|scorer| &*scorer.lines))
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
                "uncertainty": null, "p_value": null, "verdict": "invalid", "nearest": null,
                "outputs": [], "error": bad.to_string(),
            });
            for name in CHANNELS.iter().filter(|_| self.channels) {
                record[name] = serde_json::Value::Null;
            }
            self.lines.extend(format!("{record}\n").bytes());
        } else {
            self.lines.extend(b",,invalid,");
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
