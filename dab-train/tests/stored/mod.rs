//! Where tests look for files that the repository does not hold, and what they say when these are missing.
//!
//! ```text
//! $DAB_SHARED, else ../shared beside the repository:   data/ (as `dab data` tells)   golden/ (float64 reference sets)
//! ```

use std::path::{Path, PathBuf};

/// A file of that folder; `None`, and a line that `tests/run` counts, when it is not there.
pub fn shared(test: &str, file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let path = std::env::var_os("DAB_SHARED").map_or_else(beside, PathBuf::from).join(file);
    if path.exists() {
        return Some(path);
    }
    println!("\nSKIPPED {test}: there is no {file} in $DAB_SHARED or in ../shared beside the repository");
    None
}

/// The data folder, where it holds `file`.
pub fn data(test: &str, file: &str) -> Option<PathBuf> {
    let found = shared(test, &format!("data/{file}"))?;
    found.ancestors().nth(Path::new(file).components().count()).map(Path::to_path_buf)
}
