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
pub mod programs;
pub mod specs;
#[path = "../../dab-train/tests/stored/mod.rs"]
pub mod stored;
pub mod total;

use std::path::Path;

use dab_core::artifact::info::read_info;
use dab_core::artifact::taught::add_taught;
use dab_core::codebook::{CodebookView, PrecisionLayout};

pub use stored::shared;

/// The repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// `file`, a model of three axes, taught one code of unit variance at `mean`.
///
/// # Panics
/// When it is no such model.
#[must_use]
pub fn taught(file: &[u8], mean: &[f32]) -> Vec<u8> {
    let codes = CodebookView {
        dim: 3,
        means: mean,
        precisions: &[1.0; 3],
        layout: PrecisionLayout::Diagonal,
        log_dets: &[0.0],
        priors: &[1.0],
        alpha: 1.0,
    };
    add_taught(file, &codes, &read_info(file).expect("an info section")).expect("a taught model")
}
