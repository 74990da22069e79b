//! The command line: one file per subcommand, and here what they share.
//!
//! Exit codes: 0 success, 1 failure, 2 a command line that cannot be understood, 130 interrupted. Every error is one line
//! on standard error that begins with `dab:` and says what to do. A reader that goes away (`dab score … |
//! head`) is no error.

mod compare;
mod data;
mod doctor;
mod dry;
mod explain;
mod export;
mod features;
mod fit;
mod input;
mod inspect;
mod monitor;
mod pack;
mod pictures;
mod place;
mod progress;
mod quantise;
mod report;
mod score;
mod self_test;
mod sensors;
mod teach;
mod text;
mod train;
mod verify;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::support::interrupt;

/// Uncertainty for neural networks on microcontrollers.
///
/// A dab model is one file (.dab) that turns an input into an uncertainty in nats, a p-value and a verdict:
/// familiar, ambiguous, doubtful or unfamiliar. `dab fit` learns one from your features, `dab train` from an
/// experiment file, `dab pack` makes one from tensors trained anywhere; the other commands look into it and run
/// it here with the very bits of the device.
#[derive(Debug, Parser)]
#[command(name = "dab", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Start with `dab fit --help`, or `dab inspect model.dab` if you have a model.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(train::Args),
    Fit(Box<fit::Args>),
    Verify(verify::Args),
    Data(data::Args),
    Pack(pack::Args),
    Quantise(quantise::Args),
    Score(Box<score::Args>),
    Features(features::Args),
    Inspect(inspect::Args),
    SelfTest(self_test::Args),
    Explain(Box<explain::Args>),
    Teach(teach::Args),
    Report(report::Args),
    Compare(compare::Args),
    Export(export::Args),
    Monitor(monitor::Args),
    Doctor(doctor::Args),
}

/// Runs a command line, its first word being the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return misunderstood(&error),
    };
    let result = match cli.command {
        Command::Train(args) => args.run(),
        Command::Fit(args) => args.run(),
        Command::Verify(args) => verify::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Pack(args) => pack::run(&args),
        Command::Quantise(args) => quantise::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Features(args) => features::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::SelfTest(args) => self_test::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Teach(args) => teach::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Monitor(args) => monitor::run(&args),
        Command::Doctor(args) => doctor::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            if interrupt::wanted() { ExitCode::from(interrupt::INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}

/// Help and version go to standard output; a mistake becomes one line.
fn misunderstood(error: &clap::Error) -> ExitCode {
    /// Exit code of a command line that cannot be understood.
    const USAGE: u8 = 2;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed standard output is no reason to complain.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(USAGE)
        }
        _ => {
            let message = error.to_string();
            let fact = message.split("\n\nUsage:").next().unwrap_or_default();
            let fact = fact.split("\n\nFor more information").next().unwrap_or_default();
            let fact = fact.strip_prefix("error: ").unwrap_or(fact);
            complain(&format!("{}; `dab --help` and `dab <command> --help` explain", with_tips(fact)));
            ExitCode::from(USAGE)
        }
    }
}

/// A fact of clap and its tips as one sentence, without the tip that a mistyped flag could be a value.
fn with_tips(fact: &str) -> String {
    let mut parts = fact.split("\n\n  tip: ");
    let fact = parts.next().unwrap_or_default().to_owned();
    let tips = parts.flat_map(|tips| tips.split("\n  tip: ")).filter(|tip| !tip.starts_with("to pass "));
    tips.fold(fact, |said, tip| said + "; " + tip.trim())
}

/// One line on standard error, written at once: the messages of a launcher or of other processes come before or after it, never
/// within. It may quote names from files, so it is made printable.
fn complain(message: &str) {
    let words: Vec<&str> = message.split_whitespace().collect();
    // If standard error is closed there is nobody to tell.
    let _ = io::stderr().write_all(format!("dab: {}\n", text::printable(&words.join(" "))).as_bytes());
}

/// Whether whoever reads our output has gone away.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

/// Writes to standard output.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_flag_is_told_in_one_sentence() {
        let told = |args: &[&str]| {
            let error = Cli::try_parse_from(std::iter::once(&"dab").chain(args)).unwrap_err().to_string();
            let fact = error.split("\n\nUsage:").next().unwrap_or_default();
            with_tips(fact.strip_prefix("error: ").unwrap_or(fact))
        };
        assert_eq!(told(&["fit", "--zzz", "3"]), "unexpected argument '--zzz' found");
        let near = told(&["fit", "--featurs", "x.npy"]);
        assert!(
            near.starts_with(
                "unexpected argument '--featurs' found; a similar argument exists: '--features'"
            ),
            "{near}"
        );
        assert!(!near.contains("tip") && !near.contains('\n'), "{near}");
    }
}
