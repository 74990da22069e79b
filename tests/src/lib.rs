//! What the cross-crate tests share: where data lies, how a test says that it was skipped, how bits are
//! kept.

pub mod attack;
pub mod bits;
pub mod c_cases;
pub mod c_replay;
pub mod golden;
pub mod page;
pub mod patch;
pub mod specs;
pub mod total;

use std::path::{Path, PathBuf};

/// The repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// A file or folder of the shared data: under `$DAB_SHARED`, or `../shared` beside the repository.
/// `None`, and a line that `tests/run` counts, when it is not there.
#[must_use]
pub fn shared(test: &str, path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DAB_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from);
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    println!("\nSKIPPED {test}: there is no {path} in $DAB_SHARED or in ../shared beside the repository");
    None
}
