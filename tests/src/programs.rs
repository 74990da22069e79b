//! Programs that a test calls: compilers, valgrind, what they made.

use std::process::{Command, Output};

/// Whether a program is there; says so if not.
#[must_use]
pub fn has(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("\nSKIPPED {test}: {program} is not installed");
    }
    found
}

/// What a program said.
///
/// # Panics
/// When it cannot be started or fails.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}{err}");
    output
}

/// What a program printed.
///
/// # Panics
/// When that is not UTF-8.
#[must_use]
pub fn text(output: Output) -> String {
    String::from_utf8(output.stdout).expect("UTF-8")
}
