//! `dab monitor tune`: recorded streams → a configuration that keeps a budget of false alarms.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::embed;
use super::stream::{Scores, StreamArgs, duration, positive};
use crate::{
    cli::{
        input::check_apart,
        place::Place,
        text::{grouped, plural, rounded},
    },
    export::model_file::ModelFile,
    measure::stream::{
        delay::{FaultLog, Found},
        file::MonitorFile,
        tune::{FAULTS, Goal, Request, Tuned},
    },
    report::plot,
    support::files::save,
};

/// Choose a monitor that keeps a budget of false alarms an hour
///
/// STREAM is a recording of normal operation, one row a tick: inputs of the model if --model is given, otherwise a
/// CSV file with a column `uncertainty`. Several recordings are taken together. An empty cell or a NaN is a rejected
/// input. The budget is kept with the upper confidence bound of the alarms in the recording, so this needs hours: at
/// least 3 hours for one alarm an hour with 95 % confidence, and it says so if the recording is too short.
///
/// Writes FILE.toml, and beside it the same as C (.h), Rust (.rs) and a plot of how the delay moves with the budget
/// (.svg). Blocks of the drift channel are made so long that neighbours are not correlated; votes and thresholds are
/// those that find faults soonest within the budget. Faults are those of --faults; without them they are imagined:
/// the recorded scores raised by 1, 2 and 4 times the way from their median to their 99.9 % quantile.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab monitor tune normal.csv --tick 1ms -o monitor.toml
  dab monitor tune inputs.npy --model model.dab --faults winding.npy --tick 10ms --false-alarms-per-hour 0.5
  dab monitor tune inputs.npy --model model.dab --tick 1ms --into model2.dab    # model and monitor in one file")]
pub struct Args {
    /// Recordings of normal operation: CSV or NumPy files
    #[arg(value_name = "STREAM", required = true)]
    streams: Vec<PathBuf>,

    #[command(flatten)]
    stream: StreamArgs,

    /// A recorded fault, in the same form; a column `fault` that is 1 marks where it begins, else the first row.
    /// May be given several times
    #[arg(long, value_name = "FILE")]
    faults: Vec<PathBuf>,

    /// The budget
    #[arg(long, default_value = "1", value_parser = positive, value_name = "NUMBER")]
    false_alarms_per_hour: f64,

    /// Time between two rows, with its unit: 1ms, 0.1s
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    tick: f64,

    /// Confidence of the bound on alarms an hour
    #[arg(long, default_value = "0.95", value_parser = share, value_name = "SHARE")]
    confidence: f64,

    /// Ticks without an input until the state is stale; 0: never
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(..1 << 31), value_name = "TICKS")]
    timeout: u32,

    /// The file to write; .h, .rs and .svg go beside it
    #[arg(short, long, default_value = "monitor.toml", value_name = "FILE.toml")]
    output: PathBuf,

    /// Write the model of --model with the monitor in it, too: devices then read both from one file
    #[arg(long, value_name = "MODEL2.dab", requires = "model")]
    into: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if (0.5..1.0).contains(&x) => Ok(x),
        _ => Err("a number from 0.5 to below 1".into()),
    }
}

pub fn run(args: &Args) -> Result<()> {
    for ending in ["h", "rs", "svg"] {
        ensure!(
            args.output.extension().is_none_or(|found| found != ending),
            "-o names the .toml file: the .{ending} file goes beside it"
        );
    }
    if let Some(into) = &args.into {
        let model = args.stream.model.as_deref().map(Place::new).transpose()?.map(|place| place.model);
        check_apart(into, args.streams.iter().chain(&args.faults).chain(&model))?;
    }
    let file = args.stream.model()?;
    let model = file.as_ref().map(|file| file.model()).transpose()?;
    let mut scores = Scores::new(&args.stream, file.as_ref(), model.as_ref());
    let names: Vec<String> = args.streams.iter().map(|path| format!("`{}`", path.display())).collect();
    let goal = Goal { tick: args.tick, budget: args.false_alarms_per_hour, confidence: args.confidence };
    // To count rows is quick, to score them is not.
    if model.is_some() && args.streams.iter().all(|path| path.is_file()) {
        // One more than needed: hours are rounded.
        let (enough, mut rows) = (goal.rows().saturating_add(1), 0);
        for path in &args.streams {
            rows += scores.count(path, enough.saturating_sub(rows))?;
        }
        goal.check(rows).with_context(|| names.join(", "))?;
    }
    let logs: Vec<Vec<f32>> = args.streams.iter().map(|path| scores.all(path)).collect::<Result<_>>()?;
    let mut faults = Vec::new();
    for path in &args.faults {
        let (found, onset) = scores.fault(path)?;
        faults.push(FaultLog { name: path.display().to_string(), scores: found, onset });
    }
    let request = Request { logs: &logs, faults: &faults, goal, timeout: args.timeout };
    let tuned = request.tune().with_context(|| names.join(", "))?;
    let identity = file.as_ref().map(ModelFile::identity);
    let monitor = MonitorFile { config: tuned.config, tick: args.tick, model: identity };
    write(args, &tuned, &monitor)?;
    let mut said = words(args, &tuned);
    if let (Some(path), Some(file)) = (&args.into, &file) {
        let how = format!(
            "tuned on {:.2} hours of {} at a tick of {:?} s; false alarms an hour: budget {}, at most {:.3}",
            tuned.hours,
            names.join(", "),
            args.tick,
            args.false_alarms_per_hour,
            tuned.upper
        );
        let size = embed::write(file, &monitor, how, path)?;
        let _ = writeln!(said, "wrote {}: the model and its monitor, {size} bytes", path.display());
    }
    crate::cli::print(&said)
}

fn write(args: &Args, tuned: &Tuned, file: &MonitorFile) -> Result<()> {
    let stem = args.output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let title = "Delay and budget";
    let drawing = plot::budgets(title, &tuned.sweep)?.file();
    let toml = file.toml(tuned, args.false_alarms_per_hour, args.confidence);
    debug_assert_eq!(MonitorFile::parse(&toml).ok().as_ref(), Some(file));
    save(&args.output, toml)?;
    save(&args.output.with_extension("h"), file.c(&stem))?;
    save(&args.output.with_extension("rs"), file.rust())?;
    save(&args.output.with_extension("svg"), drawing)
}

/// What a person wants to know of the result.
fn words(args: &Args, tuned: &Tuned) -> String {
    let (c, tick) = (&tuned.config, args.tick);
    let percent = (args.confidence * 1e4).round() / 100.0;
    let mut text = format!(
        "{:.2} hours of normal operation: {}, {:.3} an hour, at most {:.3} with {percent} % confidence (budget {})\n",
        tuned.hours,
        plural(tuned.alarms, "alarm"),
        tuned.alarms as f64 / tuned.hours,
        tuned.upper,
        args.false_alarms_per_hour,
    );
    let _ = writeln!(
        text,
        "spike: {} of the last {} above {}; trust again when {} are at or below {}, after {} at least",
        c.enter_votes,
        plural(c.window.into(), "score"),
        rounded(c.enter),
        c.exit_votes,
        rounded(c.exit),
        time(c.min_dwell as usize, tick),
    );
    let _ = writeln!(
        text,
        "drift: {} blocks of {} ({} scores), alarm at a capital of e^{:.2}; neighbours correlate {:.2}",
        grouped(tuned.blocks as u64),
        time(c.drift.block as usize, tick),
        grouped(c.drift.block.into()),
        c.drift.alarm,
        tuned.correlation,
    );
    if tuned.correlated {
        text += "warning: even these blocks are correlated: the bound of the drift channel does not hold, only the count above; \
                 record for longer\n";
    }
    for (size, found) in FAULTS.iter().zip(&tuned.imagined) {
        let (median, high) = (rounded(tuned.quantiles[0]), rounded(tuned.quantiles[3]));
        let what = format!("imagined fault of {size} × the way from {median} to {high}");
        let _ = writeln!(text, "{what}: {}", told(Some(*found), tick, tuned.limit));
    }
    let what = "imagined drift within 10 minutes to 90 % of the way to the threshold";
    let _ = writeln!(text, "{what}: {}", told(Some(tuned.drift), tick, usize::MAX));
    for (name, found) in &tuned.faults {
        let _ = writeln!(text, "fault {name}: {}", told(*found, tick, usize::MAX));
    }
    let output = &args.output;
    let beside = ["h", "rs", "svg"].map(|e| output.with_extension(e).display().to_string());
    let _ = writeln!(text, "wrote {}, {}", output.display(), beside.join(", "));
    text
}

fn told(found: Option<Found>, tick: f64, limit: usize) -> String {
    match found {
        Some(found) if found.ticks < limit && !found.why.is_empty() => {
            format!("found after {} ({})", time(found.ticks, tick), found.why)
        }
        Some(found) => format!("not found within {}", time(found.ticks, tick)),
        None => "not found".into(),
    }
}

/// Ticks as time.
fn time(ticks: usize, tick: f64) -> String {
    let seconds = ticks as f64 * tick;
    match seconds {
        120.0.. => format!("{:.1} min", seconds / 60.0),
        1.0.. => format!("{} s", rounded(seconds as f32)),
        _ => format!("{} ms", rounded((seconds * 1e3) as f32)),
    }
}
