//! The `dab` command; everything is in [`dab_train::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    dab_train::cli::run(std::env::args_os())
}
