//! Digests of files, in hexadecimal.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, Result};
use sha2::digest::Digest;

pub fn of_file<D: Digest + Write>(path: &Path) -> Result<String> {
    of::<D, _>(path, |file| file)
}

/// The digest of what `unpack` makes of a file.
pub fn of<D: Digest + Write, R: Read>(path: &Path, unpack: impl Fn(File) -> R) -> Result<String> {
    let here = || format!("cannot read {}", path.display());
    let mut digest = D::new();
    std::io::copy(&mut unpack(File::open(path).with_context(here)?), &mut digest).with_context(here)?;
    Ok(hex(digest))
}

/// What a digest has come to.
pub fn hex(digest: impl Digest) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
