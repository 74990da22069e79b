//! Digests of files, in hexadecimal.

use std::{fs::File, io::Write, path::Path};

use anyhow::{Context, Result};
use sha2::digest::Digest;

pub fn of_file<D: Digest + Write>(path: &Path) -> Result<String> {
    let here = || format!("cannot read {}", path.display());
    let mut digest = D::new();
    std::io::copy(&mut File::open(path).with_context(here)?, &mut digest).with_context(here)?;
    Ok(hex(digest))
}

/// What a digest has come to.
pub fn hex(digest: impl Digest) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
