//! The `dab` command.

use std::process::ExitCode;

use clap::Parser;
use dab_train::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
