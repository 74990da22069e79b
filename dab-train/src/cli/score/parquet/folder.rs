//! A folder of Parquet files into another, file by file; what was scored before is left alone.
//!
//! A file of scores notes what it was made of ([`MADE_OF`]): the model, the settings, and a digest of the end of its input.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use parquet::file::metadata::ParquetMetaDataReader;
use sha2::{Digest, Sha256};

use super::super::{Count, is_named_parquet};
use super::Run;
use crate::cli::text::plural;
use crate::support::digest;

/// Where a file of scores says what it was made of.
pub const MADE_OF: &str = "dab.score";

/// The Parquet files of a folder and of those below it, in the order of their names, without what other programs hide.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            files(&path, found)?;
        } else if is_named_parquet(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// What is at the end of a Parquet file: places, sizes and extremes of all columns. It changes when they do.
fn footer_digest(path: &Path) -> Result<String> {
    /// Length of the footer, and the magic bytes.
    const TAIL: u64 = 8;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut tail = [0; TAIL as usize];
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    file.read_exact(&mut tail)?;
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL + footer)))?;
    let mut digest = Sha256::new();
    digest.update(length.to_le_bytes());
    std::io::copy(&mut file, &mut digest)?;
    Ok(digest::hex(digest))
}

/// What an earlier file of scores says it was made of; an error if it says nothing.
fn made_of(path: &Path) -> Result<String> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path)?)?;
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let found = pairs.filter(|pair| pair.key == MADE_OF).find_map(|pair| pair.value.clone());
    found.context("dab score did not write it")
}

impl Run<'_> {
    /// Scores every file of a folder that was not scored before.
    pub(super) fn folder(&self, from: &Path, to: &Path) -> Result<()> {
        ensure!(
            !to.is_file(),
            "`{}` is a folder and `{}` a file: give a folder",
            from.display(),
            to.display()
        );
        fs::create_dir_all(to).with_context(|| format!("cannot write `{}`", to.display()))?;
        let (inside, outside) = (to.canonicalize()?, from.canonicalize()?);
        ensure!(
            !inside.starts_with(&outside),
            "`{}` is inside `{}`: the next run would take scores for inputs",
            to.display(),
            from.display()
        );
        let mut inputs = Vec::new();
        files(from, &mut inputs).with_context(|| format!("cannot read `{}`", from.display()))?;
        ensure!(!inputs.is_empty(), "`{}` has no file named .parquet or .pq", from.display());
        let (mut total, mut before) = (Count::default(), 0);
        for input in &inputs {
            let output = to.join(input.strip_prefix(from).unwrap_or(input));
            if output.exists() {
                let advice = || format!("`{}`: move it away, or write into another folder", output.display());
                if made_of(&output).with_context(advice)? == self.made_of(input)? {
                    before += 1;
                    continue;
                }
            }
            if let Some(folder) = output.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot write `{}`", folder.display()))?;
            }
            total.add(self.file(input, &output)?, &format!("`{}`: ", input.display()));
        }
        let scored = inputs.len() - before;
        let (files, rows) = (plural(scored as u64, "file"), plural(total.rows, "row"));
        let before = if before == 0 { String::new() } else { format!("; {before} were scored before") };
        crate::cli::print(&format!("{files}, {rows} into {}{before}\n", to.display()))?;
        if total.bad > 0 {
            total.tell("", "row");
        }
        Ok(())
    }

    /// What a file of scores is made of.
    pub(super) fn made_of(&self, input: &Path) -> Result<String> {
        let digest = footer_digest(input).with_context(|| format!("cannot read `{}`", input.display()))?;
        Ok(format!("{{\"input\":\"{digest}\",\"settings\":{}}}", self.settings))
    }
}

impl Count {
    /// Rows that follow, of a place that is named.
    pub(super) fn add(&mut self, more: Self, place: &str) {
        self.rows += more.rows;
        self.bad += more.bad;
        let first = more.first.map(|first| format!("{place}{first}"));
        self.first = self.first.take().or(first);
    }
}
