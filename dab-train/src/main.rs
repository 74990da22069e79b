//! The `dab` command; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    dab_train::command(std::env::args_os())
}
