//! The `dab` command from outside: what it writes, what it refuses, and in which words.

mod band;
mod data;
mod devices;
mod dry;
mod export;
mod fit;
mod golden;
mod inputs;
mod interrupted;
mod light;
mod look;
mod machines;
mod messages;
mod monitor;
mod motor;
mod npy;
mod pack;
mod pack_fit;
#[cfg(feature = "parquet")]
mod parquet;
mod pictures;
mod report;
mod runs;
mod score;
#[cfg(feature = "cuda")]
mod stand_in;
#[path = "../stored/mod.rs"]
mod stored;
mod teach;
mod verify;
mod weights;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use weights::Weights;

/// An empty folder of this test's own.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli").join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `dab` in `folder`.
fn dab(folder: &Path, args: &[&str]) -> Output {
    dab_reading(folder, args, b"")
}

/// Runs `dab` in `folder` with something on its standard input.
fn dab_reading(folder: &Path, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // The command may end before it has read everything: a refusal does.
    let writer = std::thread::spawn(move || drop(input.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Standard output of a command that must succeed.
fn text(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one line that a command that must fail says.
fn refusal(output: &Output, code: i32) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.starts_with("dab: ") && stderr.ends_with('\n'), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

/// A folder with the tiny model in `model.dab`.
fn with_model(test: &str) -> PathBuf {
    let folder = folder(test);
    Weights::tiny().pack(&folder);
    folder
}

/// The rows of a CSV text, fields as they are.
fn table(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(Into::into).collect()).collect()
}

/// One column of a table with a header, as numbers.
fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = table(text);
    let at = rows[0].iter().position(|n| n == name).unwrap();
    rows[1..].iter().map(|row| row[at].parse().unwrap()).collect()
}

#[test]
fn help_teaches_and_version_answers() {
    let folder = folder("help");
    let commands = [
        "train",
        "fit",
        "verify",
        "data",
        "pack",
        "score",
        "features",
        "inspect",
        "self-test",
        "explain",
        "export",
        "compare",
    ];
    for command in commands {
        let help = text(dab(&folder, &[command, "--help"]));
        assert!(help.contains("Examples:") && help.contains(&format!("dab {command} ")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(text(dab(&folder, &[command, "--version"])).contains(env!("CARGO_PKG_VERSION")));
    }
    assert!(text(dab(&folder, &["--version"])).contains(env!("CARGO_PKG_VERSION")));
    assert!(text(dab(&folder, &["--help"])).contains("self-test"));
}

#[test]
fn a_misunderstood_command_line_is_one_line_and_code_2() {
    let folder = folder("usage");
    assert!(refusal(&dab(&folder, &["frobnicate"]), 2).contains("frobnicate"));
    assert!(refusal(&dab(&folder, &["score"]), 2).contains("MODEL.dab"));
    assert!(refusal(&dab(&folder, &["score", "m", "i", "--frob"]), 2).contains("--frob"));
    assert!(refusal(&dab(&folder, &["explain", "m", "i", "--row", "0"]), 2).contains("--row"));
    assert!(refusal(&dab(&folder, &["score", "m", "i", "--delimiter", "ab"]), 2).contains("tab"));
    assert_eq!(dab(&folder, &[]).status.code(), Some(2));
}

#[test]
fn missing_and_foreign_files_are_named() {
    let folder = with_model("files");
    std::fs::write(folder.join("in.csv"), "1,2\n").unwrap();
    for command in ["score", "explain"] {
        assert!(refusal(&dab(&folder, &[command, "no.dab", "in.csv"]), 1).contains("no.dab"));
        assert!(refusal(&dab(&folder, &[command, "model.dab", "no.csv"]), 1).contains("no.csv"));
        assert!(refusal(&dab(&folder, &[command, "model.dab", "."]), 1).contains("folder"));
    }
    for command in ["inspect", "self-test"] {
        assert!(refusal(&dab(&folder, &[command, "no.dab"]), 1).contains("no.dab"));
        assert!(refusal(&dab(&folder, &[command, "in.csv"]), 1).contains("not a dab artifact"));
    }
}
