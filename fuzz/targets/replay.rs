//! Runs inputs once each, without libFuzzer.   replay TARGET FILE_OR_FOLDER...

use std::path::{Path, PathBuf};

use dab_fuzz::{artifact, calls, float64, lies, states};

/// The files in a folder, or the file itself.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.into()];
    }
    let entries = std::fs::read_dir(path).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, target, paths @ ..] = &arguments[..] else { panic!("usage: replay TARGET FILE_OR_FOLDER...") };
    let check = match &**target {
        "artifact" => artifact::check,
        "calls" => calls::check,
        "float64" => float64::check,
        "lies" => lies::check,
        #[cfg(feature = "readers")]
        "readers" => dab_fuzz::readers::check,
        "states" => states::check,
        _ => panic!("no such target: {target}"),
    };
    let inputs: Vec<PathBuf> = paths.iter().flat_map(|path| files(Path::new(path))).collect();
    for input in &inputs {
        check(&std::fs::read(input).expect("a file"));
    }
    println!("{target}: {} inputs", inputs.len());
}
