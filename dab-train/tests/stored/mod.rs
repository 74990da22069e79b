//! Where tests look for stored files, and what they say when one is missing. The library's tests, those of the command and
//! those of `tests/` all compile this file.
//!
//! ```text
//! tests/ of the repository, then $DAB_SHARED (else ../shared beside the repository):   golden/   data/
//! ```

use std::path::{Path, PathBuf};

/// Prints the line that `tests/run` counts as a skipped test. The test returns after it.
pub fn skipped(test: &str, reason: &str) {
    println!("\nSKIPPED {test}: {reason}");
}

/// The stored file or folder `path`, such as `golden/NAME.npz`. `None`, and `test` is [`skipped`], when it is nowhere.
#[must_use]
pub fn shared(test: &str, path: &str) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let beside = || repository.join("../shared");
    let folders =
        [repository.join("tests"), std::env::var_os("DAB_SHARED").map_or_else(beside, PathBuf::from)];
    let found = folders.iter().map(|folder| folder.join(path)).find(|file| file.exists());
    if found.is_none() {
        skipped(
            test,
            &format!("there is no {path} in tests/, in $DAB_SHARED or in ../shared beside the repository"),
        );
    }
    found
}

/// The data folder, where it holds `file`.
#[must_use]
pub fn data(test: &str, file: &str) -> Option<PathBuf> {
    let found = shared(test, &format!("data/{file}"))?;
    found.ancestors().nth(Path::new(file).components().count()).map(Path::to_path_buf)
}
