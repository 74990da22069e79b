//! What a build without the feature `parquet` says to a Parquet file.

use std::path::Path;

use anyhow::{Result, bail};

use super::{Blocks, Layout};

/// How to get a build that reads it.
pub const WITHOUT_PARQUET: &str = "this dab was built without Parquet: install it with \
    `cargo install --locked --path dab-train --features parquet`";

pub(super) fn blocks(_: &Path, _: &Layout) -> Result<Box<dyn Blocks>> {
    bail!("{WITHOUT_PARQUET}")
}

pub(crate) fn table(_: &Path, _: Option<&str>, _: &[&str]) -> Result<(Vec<f32>, Vec<String>, usize)> {
    bail!("{WITHOUT_PARQUET}")
}

pub(crate) fn columns(_: &Path) -> Result<Vec<String>> {
    bail!("{WITHOUT_PARQUET}")
}

pub(crate) fn words(_: &Path, _: Option<&str>) -> Result<Vec<String>> {
    bail!("{WITHOUT_PARQUET}")
}
