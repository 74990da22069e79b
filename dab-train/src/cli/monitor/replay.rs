//! `dab monitor replay`: a recorded stream through a configured monitor.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::stream::{Scores, StreamArgs};
use crate::{
    cli::{
        complain,
        text::{grouped, plural},
    },
    measure::stream::{file::MonitorFile, replay::Replay, upper_mean},
    report::plot,
    support::files::save,
};

/// Confidence of the bound that is printed.
const CONFIDENCE: f64 = 0.95;
/// Alarms that are told one by one.
const TOLD: usize = 10;

/// Show what a monitor does on a recorded stream
///
/// STREAM is as for `dab monitor tune`: inputs of the model if --model is given, otherwise a CSV file with a column
/// `uncertainty`, one row a tick. Without --config the monitor is the one in the model's file (`dab monitor tune --into`). Rows stream, so a recording may be larger than memory. Several recordings are
/// replayed one after the other, each by a monitor that starts anew. Prints ticks, hours, alarms (one for each
/// episode), alarms an hour, and the ticks in each state.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab monitor replay day.csv --config monitor.toml
  dab monitor replay day.npy --model model.dab --config monitor.toml --json
  dab monitor replay day.npy --model model2.dab   # the monitor in the file
  dab monitor replay day.csv --config monitor.toml --plot timeline.html")]
pub struct Args {
    /// Recordings: CSV or NumPy files, or - for standard input
    #[arg(value_name = "STREAM", required = true)]
    streams: Vec<PathBuf>,

    /// The configuration, written by `dab monitor tune`; without it, the one in the file of --model
    #[arg(long, value_name = "MONITOR.toml")]
    config: Option<PathBuf>,

    #[command(flatten)]
    stream: StreamArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Draw the scores, thresholds, states and reasons over time: an .svg or .html file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let page = match args.plot.as_deref().map(|path| path.extension().and_then(|e| e.to_str())) {
        None | Some(Some("svg")) => false,
        Some(Some("html")) => true,
        Some(_) => bail!("--plot: name a file that ends in .svg or .html"),
    };
    let file = args.stream.model()?;
    let model = file.as_ref().map(|file| file.model()).transpose()?;
    let config = match (&args.config, &model) {
        (Some(path), _) => MonitorFile::open(path)?,
        (None, Some(model)) => MonitorFile::of_model(model).context(
            "the file of --model has no monitor: put one into it with `dab monitor tune --into`, or give --config",
        )?,
        (None, None) => bail!("which monitor? Give --config, or a --model whose file has one"),
    };
    if let Some(warning) = file.as_ref().and_then(|file| config.mismatch(file)) {
        complain(&warning);
    }
    let mut scores = Scores::new(&args.stream, file.as_ref(), model.as_ref());
    let mut replay = Replay::new(config.config)?;
    for (i, path) in args.streams.iter().enumerate() {
        if i > 0 {
            replay.next_stream();
        }
        scores.each(path, |score| replay.push(score))?;
    }
    if let Some(path) = &args.plot {
        draw(path, page, &replay, &config)?;
    }
    crate::cli::print(&if args.json { as_json(&replay, &config) } else { words(&replay, &config) })
}

fn hours(replay: &Replay, config: &MonitorFile) -> f64 {
    replay.ticks() as f64 * config.tick / 3600.0
}

fn as_json(replay: &Replay, config: &MonitorFile) -> String {
    let hours = hours(replay, config);
    let [nominal, fallback, stale] = replay.states;
    let [spike, drift, rejected] = replay.by_reason;
    let told: Vec<_> = replay
        .told
        .iter()
        .map(|alarm| json!({"tick": alarm.tick, "seconds": alarm.tick as f64 * config.tick, "why": alarm.why.to_string()}))
        .collect();
    let object = json!({
        "ticks": replay.ticks(),
        "hours": hours,
        "alarms": replay.alarms,
        "alarms_per_hour": replay.alarms as f64 / hours,
        "alarms_per_hour_at_most": upper_mean(replay.alarms, CONFIDENCE) / hours,
        "confidence": CONFIDENCE,
        "states": {"nominal": nominal, "fallback": fallback, "stale": stale},
        "reasons": {"spike": spike, "drift": drift, "rejected": rejected},
        "rejected_inputs": replay.rejected,
        "first_alarms": told,
    });
    format!("{object}\n")
}

fn words(replay: &Replay, config: &MonitorFile) -> String {
    let (hours, ticks) = (hours(replay, config), replay.ticks());
    let mut text = format!(
        "{} in {hours:.3} hours: {}, {:.3} an hour, at most {:.3} with 95 % confidence\n",
        plural(ticks, "tick"),
        plural(replay.alarms, "alarm"),
        replay.alarms as f64 / hours,
        upper_mean(replay.alarms, CONFIDENCE) / hours,
    );
    for (name, count) in ["nominal", "fallback", "stale"].iter().zip(replay.states) {
        let share = 100.0 * count as f64 / ticks as f64;
        let _ = writeln!(text, "{name:<9} {:>15} ticks  {share:7.3} %", grouped(count));
    }
    let [spike, drift, rejected] = replay.by_reason;
    let _ = writeln!(text, "reasons: {spike} spike, {drift} drift, {rejected} rejected inputs");
    if replay.rejected > 0 {
        let _ = writeln!(text, "{} rejected", plural(replay.rejected, "input"));
    }
    for alarm in replay.told.iter().take(TOLD) {
        let seconds = alarm.tick as f64 * config.tick;
        let _ = writeln!(text, "alarm at {seconds:.3} s (tick {}): {}", alarm.tick, alarm.why);
    }
    if replay.alarms as usize > TOLD {
        let _ = writeln!(text, "and {} more", replay.alarms as usize - TOLD);
    }
    text
}

fn draw(path: &Path, page: bool, replay: &Replay, config: &MonitorFile) -> Result<()> {
    let title = format!("{} in {:.2} hours", plural(replay.alarms, "alarm"), hours(replay, config));
    let drawing = plot::timeline(&title, &replay.timeline, &config.config, config.tick)?;
    let svg = drawing.file();
    let text = if page { crate::report::timeline_page(&title, &svg, &words(replay, config)) } else { svg };
    save(path, text)
}
