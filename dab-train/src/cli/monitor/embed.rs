//! `dab monitor embed`, and `--into` of `dab monitor tune`: a monitor in the file of its model.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use dab_core::artifact::monitor::set_monitor;

use crate::{
    cli::{complain, input::check_apart, place::Place},
    export::model_file::ModelFile,
    measure::stream::file::MonitorFile,
    support::files::save,
};

/// Key of the info section that says where the monitor of a file comes from.
const KEY: &str = "monitor";

/// Put a monitor into the file of its model
///
/// The configuration, and how long its ticks are, then travel with the model: dab_model_monitor in C, Guard::tuned in
/// Rust, Guard(model) in Python and `dab monitor replay --model` take them from there. The model's answers keep every bit.
/// `dab monitor tune --into` does the same for inputs of a model; this is for a monitor that was tuned on recorded scores.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  dab monitor embed model.dab --config monitor.toml -o model2.dab")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    /// The configuration, written by `dab monitor tune` from scores of this model
    #[arg(long, value_name = "MONITOR.toml")]
    config: PathBuf,

    /// The new model file
    #[arg(short, long, value_name = "MODEL2.dab")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    check_apart(&args.output, [&place.model, &args.config])?;
    let monitor = MonitorFile::open(&args.config)?;
    let model = ModelFile::open(&place.model)?;
    if let Some(warning) = monitor.mismatch(&model) {
        complain(&warning);
    }
    let how = format!("of {}", args.config.display());
    let size = write(&model, &monitor, how, &args.output)?;
    crate::cli::print(&format!("wrote {}: the model and its monitor, {size} bytes\n", args.output.display()))
}

/// Writes the model with the monitor in it; `how` is told in its info. Gives the bytes of the file.
pub fn write(model: &ModelFile, monitor: &MonitorFile, how: String, path: &Path) -> Result<usize> {
    let tick = monitor.tick as f32;
    ensure!(tick > 0.0, "a tick of {} s is too short for a file", monitor.tick);
    let mut info: Vec<_> = model.info.iter().filter(|(key, _)| key != KEY).cloned().collect();
    info.push((KEY.into(), format!("{how}, by dab {}", env!("CARGO_PKG_VERSION"))));
    let bytes = set_monitor(model.bytes(), &monitor.config, tick, &info)
        .context("this monitor cannot be stored in a model file")?;
    save(path, &bytes)?;
    Ok(bytes.len())
}
