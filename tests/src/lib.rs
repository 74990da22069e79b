//! What the cross-crate tests share: where data lies, how a test says that it was skipped, how bits are
//! kept.

pub mod attack;
pub mod bits;
pub mod c_cases;
pub mod c_replay;
pub mod face;
pub mod golden;
pub mod markdown;
pub mod network64;
pub mod patch;
pub mod specs;
#[path = "../../dab-train/tests/stored/mod.rs"]
pub mod stored;
pub mod total;

use std::path::Path;

pub use stored::shared;

/// The repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}
