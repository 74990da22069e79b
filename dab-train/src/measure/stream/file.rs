//! A monitor's configuration as a file: TOML for `dab monitor replay` and Python, a header for C, a constant for Rust.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use dab_core::Model;
use dab_core::monitor::{Config, Drift, LEVELS, Monitor};
use serde::Deserialize;

use super::tune::Tuned;
use crate::export::model_file::ModelFile;

/// `monitor.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorFile {
    /// The configuration.
    pub config: Config,
    /// Seconds of a tick.
    pub tick: f64,
    /// Identity of the model whose scores it was tuned on; `None` if nobody knows: recorded scores, or an older file.
    pub model: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    stream: Stream,
    monitor: Values,
    #[serde(default)]
    tuned: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    tick_seconds: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Values {
    enter: f32,
    exit: f32,
    window: u32,
    enter_votes: u32,
    exit_votes: u32,
    #[serde(default)]
    min_dwell: u32,
    #[serde(default)]
    timeout: u32,
    #[serde(default)]
    reject_votes: u32,
    #[serde(default)]
    drift_block: u32,
    #[serde(default)]
    drift_alarm: f32,
    #[serde(default)]
    drift_keeps: bool,
    #[serde(default)]
    drift_levels: [f32; LEVELS],
    #[serde(default = "ones")]
    drift_p: [f32; LEVELS],
}

const fn ones() -> [f32; LEVELS] {
    [1.0; LEVELS]
}

/// Numbers as `{:?}` writes them: the shortest digits that read back as the same f32, always with a point or an exponent, which
/// is what TOML, C and Rust take.
fn floats(xs: &[f32], suffix: &str) -> String {
    xs.iter().map(|x| format!("{x:?}{suffix}")).collect::<Vec<_>>().join(", ")
}

impl MonitorFile {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = || format!("`{}`", path.display());
        let text = std::fs::read_to_string(path).with_context(shown)?;
        Self::parse(&text).with_context(shown)
    }

    /// What the file of a model says; `None` if it has no monitor.
    pub fn of_model(model: &Model<'_>) -> Option<Self> {
        let (config, tick) = model.monitor_config().zip(model.monitor_tick())?;
        // The file has four bytes for it: a tick that was written as 0.01 is the number 0.01, not the nearest of these.
        let tick = tick.to_string().parse().unwrap_or_else(|_| tick.into());
        Some(Self { config, tick, model: None })
    }

    /// Why the thresholds may not fit `model`: they are scores of another one.
    pub fn mismatch(&self, model: &ModelFile) -> Option<String> {
        let (tuned, found) = (self.model?, model.identity());
        (tuned != found).then(|| {
            format!(
                "warning: the monitor was tuned on scores of model {tuned:08x}, and this is model {found:08x}: its thresholds and its \
                 false alarms an hour are those of the other one; tune it again with this model"
            )
        })
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self> {
        let Whole { stream, monitor: m, tuned } =
            toml::from_str(text).context("not a file of `dab monitor tune`")?;
        let model = tuned.get("model").map(|identity| {
            let read = identity.as_str().and_then(|digits| u32::from_str_radix(digits, 16).ok());
            read.with_context(|| {
                format!("model = {identity} is not the identity of a model, eight hexadecimal digits")
            })
        });
        let tick = stream.tick_seconds;
        ensure!(tick > 0.0 && tick.is_finite(), "tick_seconds is {tick}, it must be above 0");
        let config = Config {
            enter: m.enter,
            exit: m.exit,
            enter_votes: m.enter_votes,
            exit_votes: m.exit_votes,
            window: m.window,
            reject_votes: m.reject_votes,
            min_dwell: m.min_dwell,
            timeout: m.timeout,
            drift: Drift {
                block: m.drift_block,
                alarm: m.drift_alarm,
                levels: m.drift_levels,
                p_values: m.drift_p,
                restart: !m.drift_keeps,
            },
        };
        Monitor::new(config)?;
        Ok(Self { config, tick, model: model.transpose()? })
    }

    /// The names and numbers of the configuration, as TOML.
    pub fn settings(&self) -> String {
        let Config { drift, .. } = &self.config;
        let (c, mut text) = (&self.config, String::new());
        for (name, value, says) in [
            ("enter", format!("{:?}", c.enter), "a score above this votes for the alarm"),
            ("exit", format!("{:?}", c.exit), "a score at or below this votes for recovery"),
            ("window", c.window.to_string(), "inputs that vote"),
            ("enter_votes", c.enter_votes.to_string(), "votes that raise the alarm"),
            ("exit_votes", c.exit_votes.to_string(), "votes that end it"),
            ("min_dwell", c.min_dwell.to_string(), "ticks that an alarm lasts at least"),
            ("timeout", c.timeout.to_string(), "ticks without an input until the state is stale"),
            (
                "reject_votes",
                c.reject_votes.to_string(),
                "rejected inputs that raise the alarm; 0: a quarter",
            ),
            ("drift_block", drift.block.to_string(), "inputs in a block of the drift channel"),
            ("drift_alarm", format!("{:?}", drift.alarm), "ln of the capital that raises the drift alarm"),
            ("drift_keeps", (!drift.restart).to_string(), "false: bets start anew below their start"),
        ] {
            let _ = writeln!(text, "{:<38} # {says}", format!("{name} = {value}"));
        }
        let _ = writeln!(text, "drift_levels = [{}]", floats(&drift.levels, ""));
        let _ = writeln!(text, "drift_p = [{}]", floats(&drift.p_values, ""));
        text
    }

    /// The file, with what is known of the configuration.
    pub fn toml(&self, tuned: &Tuned, budget: f64, confidence: f64) -> String {
        format!(
            "# Written by `dab monitor tune`; read by `dab monitor replay` and by Monitor.load of the Python package.\n\
             # The same for C and Rust is in the .h and .rs beside this file.\n\n\
             [stream]\ntick_seconds = {:?}\n\n\
             [monitor]\n{}\n\
             [tuned]\n{}false_alarms_per_hour = {budget:?}\nconfidence = {confidence:?}\nhours = {:?}\n\
             alarms = {}\nalarms_per_hour_at_most = {:?}\nblocks = {}\nblock_correlation = {:?}\n",
            self.tick,
            self.settings(),
            self.model.map_or_else(String::new, |identity| format!("model = \"{identity:08x}\"\n")),
            tuned.hours,
            tuned.alarms,
            tuned.upper,
            tuned.blocks,
            tuned.correlation
        )
    }

    /// A header for C and C++.
    pub fn c(&self, stem: &str) -> String {
        let Config { window, enter_votes, exit_votes, min_dwell, timeout, reject_votes, enter, exit, drift } =
            self.config;
        let Drift { block, alarm, .. } = drift;
        let (tick, keeps) = (self.tick, u32::from(!drift.restart));
        let [levels, p] = [drift.levels, drift.p_values].map(|all| floats(&all, "f"));
        let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let guard: String = stem.chars().map(upper).collect();
        format!(
            "/* Written by `dab monitor tune`. Ticks are {tick:?} s. Use:\n\
             \x20*     static const dab_monitor_config config = DAB_MONITOR_CONFIG;\n\
             \x20*     if (dab_monitor_init(&monitor, &config) != DAB_OK) stop(); */\n\
             #ifndef DAB_TUNED_{guard}_H\n#define DAB_TUNED_{guard}_H\n\n#include <dab.h>\n\n\
             #define DAB_MONITOR_TICK_SECONDS {tick:?}\n\
             #define DAB_MONITOR_CONFIG \\\n    {{ sizeof(dab_monitor_config), {enter:?}f, {exit:?}f, {window}u, {enter_votes}u, \
             {exit_votes}u, {min_dwell}u, {timeout}u, {reject_votes}u, \\\n      {block}u, {alarm:?}f, {keeps}u, \\\n      \
             {{ {levels} }}, \\\n      {{ {p} }} }}\n\n#endif\n"
        )
    }

    /// A constant for Rust.
    pub fn rust(&self) -> String {
        let Config { window, enter_votes, exit_votes, min_dwell, timeout, reject_votes, enter, exit, drift } =
            self.config;
        let Drift { block, alarm, restart, .. } = drift;
        let tick = self.tick;
        let [levels, p] = [drift.levels, drift.p_values].map(|all| floats(&all, ""));
        format!(
            "// Written by `dab monitor tune`. Ticks are {tick:?} s. Use: Guard::new(&model, MONITOR)?\n\n\
             /// When to distrust, and when to trust again.\n\
             pub const MONITOR: dab_core::monitor::Config = dab_core::monitor::Config {{\n    \
             enter: {enter:?},\n    exit: {exit:?},\n    enter_votes: {enter_votes},\n    exit_votes: {exit_votes},\n    \
             window: {window},\n    reject_votes: {reject_votes},\n    min_dwell: {min_dwell},\n    timeout: {timeout},\n    \
             drift: dab_core::monitor::Drift {{\n        block: {block},\n        alarm: {alarm:?},\n        \
             levels: [{levels}],\n        p_values: [{p}],\n        restart: {restart},\n    }},\n}};\n"
        )
    }
}
