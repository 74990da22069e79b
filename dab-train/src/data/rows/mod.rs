//! Rows of numbers, one at a time: CSV or NumPy, from a file or standard input, compressed or not, in constant memory
//! (an array of an npz archive is read whole). With the feature `parquet` also from Parquet files.
//!
//! The format is told from the first bytes, not from the file's name. A row that cannot be read is a
//! [`BadRow`] and the next one may be fine; everything else ends the stream.

pub(crate) mod csv;
pub(crate) mod npy;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod unpack;

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use self::{
    csv::CsvRows,
    npy::NpyRows,
    unpack::{Unpacked, unpack},
};
use super::files::{FilePart, Npz};
use crate::support::limits;

/// Bytes per read of a file.
const BUFFER: usize = 1 << 18;

/// Where rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// Standard input, written `-`.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl RowSource {
    /// `-` is standard input.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path.into()) }
    }
}

impl fmt::Display for RowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => write!(f, "standard input"),
            Self::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

/// Whether the first row of a CSV file holds names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// If it has text and no numbers.
    #[default]
    Auto,
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// How CSV files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextFormat {
    /// Whether they begin with names.
    pub header: Header,
    /// What separates their fields.
    pub delimiter: u8,
}

impl Default for TextFormat {
    fn default() -> Self {
        Self { header: Header::Auto, delimiter: b',' }
    }
}

/// How rows are to be read.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Values per row that the model takes.
    pub inputs: usize,
    /// Their names; a CSV header then chooses and orders the columns.
    pub names: Option<Vec<String>>,
    /// How a CSV file is written.
    pub text: TextFormat,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// A field is empty.
    Missing,
    /// A field is not a number.
    Text(String),
    /// A field is NaN, infinite, or beyond f32.
    NonFinite(String),
    /// The row has more or fewer values than it should.
    Width {
        /// Values that there should be.
        expected: usize,
        /// Values that there are.
        found: usize,
        /// A character that looks as if it separated the fields.
        delimiter: Option<char>,
    },
}

/// A row that cannot be read, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRow {
    /// Which row of data, counting from 1.
    pub row: u64,
    /// Which line of a text file, counting from 1.
    pub line: Option<u64>,
    /// Which column, counting from 1.
    pub column: Option<usize>,
    /// Its name.
    pub name: Option<String>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        if let Some(line) = self.line.filter(|&line| line != self.row) {
            write!(f, " (line {line})")?;
        }
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        match &self.fault {
            Fault::Missing => write!(f, ": the value is missing"),
            Fault::Text(text) => write!(f, ": `{text}` is not a number"),
            Fault::NonFinite(text) => write!(f, ": {text} is not a finite 32-bit number"),
            Fault::Width { expected, found, delimiter } => {
                write!(f, ": {found} values, expected {expected}")?;
                match delimiter {
                    Some('\t') => write!(f, " (are the fields separated by tabs? --delimiter tab)"),
                    Some(c) => write!(f, " (are the fields separated by `{c}`? --delimiter '{c}')"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for BadRow {}

/// Why there is no next row.
#[derive(Debug)]
pub enum RowError {
    /// This one is bad; the next one may be read.
    Bad(BadRow),
    /// The stream cannot go on.
    End(anyhow::Error),
}

/// How far a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadProgress {
    /// Bytes or rows read.
    pub done: u64,
    /// Of how many, if that is known.
    pub total: Option<u64>,
    /// Whether it is bytes that are counted.
    pub bytes: bool,
}

/// Whether a file is an archive of arrays, by its name: an archive cannot be read as a stream.
fn is_npz(path: &Path) -> bool {
    path.to_string_lossy().to_lowercase().ends_with(".npz")
}

/// What a build without the feature says to a Parquet file.
#[cfg(not(feature = "parquet"))]
pub const WITHOUT_PARQUET: &str = "this dab was built without Parquet: install it with \
    `cargo install --locked --path dab-train --features parquet`";
/// First and last bytes of every Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Whether a file is a Parquet file, by its first bytes.
#[must_use]
pub fn is_parquet(path: &Path) -> bool {
    let mut start = Vec::new();
    // A pipe is not looked into: what is read from it is gone.
    path.metadata().is_ok_and(|found| found.is_file())
        && File::open(path).and_then(|file| file.take(PARQUET.len() as u64).read_to_end(&mut start)).is_ok()
        && start == PARQUET
}

/// A stream of rows.
pub struct RowReader(Format);

enum Format {
    Csv(Box<CsvRows>),
    Npy(Box<NpyRows>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetRows>),
}

impl RowReader {
    /// Opens a source and finds out what it is.
    ///
    /// # Errors
    /// When it cannot be read, or its shape or names do not fit.
    pub fn open(source: &RowSource, layout: &Layout) -> Result<Self> {
        Self::from_source(source, layout).with_context(|| source.to_string())
    }

    #[cfg(feature = "parquet")]
    fn from_parquet(path: &Path, layout: &Layout) -> Result<Self> {
        Ok(Self(Format::Parquet(Box::new(parquet::ParquetRows::new(path, layout)?))))
    }

    #[cfg(not(feature = "parquet"))]
    fn from_parquet(_: &Path, _: &Layout) -> Result<Self> {
        bail!("{WITHOUT_PARQUET}")
    }

    fn from_source(source: &RowSource, layout: &Layout) -> Result<Self> {
        if let RowSource::File(path) = source
            && is_parquet(path)
        {
            return Self::from_parquet(path, layout);
        }
        let (reader, total): (Box<dyn Read>, _) = match source {
            RowSource::Stdin => (Box::new(io::stdin().lock()), None),
            RowSource::File(path) => match FilePart::parse(&path.to_string_lossy()) {
                FilePart { path, part, .. } if is_npz(&path) => {
                    (Box::new(Cursor::new(Npz::open(&path)?.file(part.as_deref())?)), None)
                }
                _ => {
                    let file = File::open(path)?;
                    let metadata = file.metadata()?;
                    if metadata.is_dir() {
                        bail!("this is a folder: name a CSV, NumPy or Parquet file in it");
                    }
                    (Box::new(file), Some(metadata.len()).filter(|_| metadata.is_file()))
                }
            },
        };
        let Unpacked { reader, npy, parquet, compressed } = unpack(reader)?;
        if parquet {
            bail!(
                "Parquet cannot be read from a pipe or a packed file, because it is read from its end: name a file"
            );
        }
        let total = total.filter(|_| !compressed);
        let whole = io::BufReader::with_capacity(BUFFER, reader);
        if npy {
            let file = match source {
                RowSource::File(path) if total.is_some() => Some(path),
                _ => None,
            };
            let rows = NpyRows::new(Box::new(whole), file.map(PathBuf::as_path), layout)?;
            Ok(Self(Format::Npy(Box::new(rows))))
        } else {
            let lines = Box::new(limits::lines(whole));
            Ok(Self(Format::Csv(Box::new(CsvRows::new(lines, total, layout)?))))
        }
    }

    /// Reads the next row into `row`, which has as many values as the layout says. Returns whether there
    /// was one.
    ///
    /// # Errors
    /// When the row is bad, or the stream ends in the middle of it.
    pub fn next_into(&mut self, row: &mut [f32]) -> Result<bool, RowError> {
        match &mut self.0 {
            Format::Csv(rows) => rows.next_into(row),
            Format::Npy(rows) => rows.next_into(row),
            #[cfg(feature = "parquet")]
            Format::Parquet(rows) => rows.next_into(row),
        }
    }

    /// How far the stream has come.
    #[must_use]
    pub fn progress(&self) -> ReadProgress {
        match &self.0 {
            Format::Csv(rows) => rows.progress(),
            Format::Npy(rows) => rows.progress(),
            #[cfg(feature = "parquet")]
            Format::Parquet(rows) => rows.progress(),
        }
    }
}
