//! `dab monitor`: recorded streams through the monitor of the device.

mod embed;
mod replay;
mod stream;
mod tune;

use anyhow::Result;

/// Choose and try a monitor on recorded streams: how many false alarms an hour?
///
/// The monitor of a control loop (dab_guard in C, Guard in Rust and Python) decides who drives: the learned
/// controller, or the fallback. How often it raises a false alarm cannot be computed from a false-alarm rate of
/// single inputs, because the inputs of a control loop are correlated. `dab monitor tune` measures it on hours of
/// recorded normal operation and writes a configuration that keeps a budget, also into the model's file; `dab monitor
/// replay` shows what a configuration does on a stream.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Tune(Box<tune::Args>),
    Replay(replay::Args),
    Embed(embed::Args),
}

pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Tune(args) => tune::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Embed(args) => embed::run(args),
    }
}
