//! The `dab` command: one file per subcommand, each a thin layer over the library.

pub mod figures;
pub mod page;
pub mod progress;
pub mod rivals;
pub mod train;

use clap::{Parser, Subcommand};

/// Uncertainty that fits in a controller: train, measure and draw Distance Aware Bottleneck models.
#[derive(Debug, Parser)]
#[command(name = "dab", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment file: train, measure, draw.
    Train(train::Args),
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// Whatever the user has to know, in one chain of sentences.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Train(args) => args.run(),
        }
    }
}
