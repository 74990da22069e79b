//! Rows of numbers, one at a time: CSV or NumPy, from a file or standard input, compressed or not, in constant memory
//! (an array of an npz archive is read whole). With the feature `parquet` also from Parquet files.
//!
//! The format is told from the first bytes, not from the file's name. A row that cannot be read is a
//! [`BadRow`] and the next one may be fine; everything else ends the stream.
//!
//! ```text
//! one thread     file → RowReader::cut → RawRows: the bytes of some rows
//! any thread     RawRows → Parse → ParsedRows: numbers, and what is wrong with bad rows
//! ```
//!
//! [`RowReader::next_into`] does both, for those who want one row after the other.

pub(crate) mod csv;
pub(crate) mod npy;
mod number;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "without_parquet.rs"]
pub(crate) mod parquet;
#[cfg(feature = "parquet")]
mod placed;
mod text;
pub(crate) mod unpack;

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use self::{
    csv::CsvRows,
    npy::NpyRows,
    unpack::{Unpacked, unpack},
};
use super::files::{FilePart, Npz};
use crate::support::{limits, text::counted};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// Standard input, written `-`.
    Stdin,
    File(PathBuf),
}

impl RowSource {
    /// `-` is standard input.
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
        expected: usize,
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
    pub name: Option<String>,
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
                write!(f, ": {}, expected {expected}", counted(*found, "value"))?;
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

/// First and last bytes of every Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Whether a file is a Parquet file, by its first bytes.
pub fn is_parquet(path: &Path) -> bool {
    let mut start = Vec::new();
    // A pipe is not looked into: what is read from it is gone.
    path.metadata().is_ok_and(|found| found.is_file())
        && File::open(path).and_then(|file| file.take(PARQUET.len() as u64).read_to_end(&mut start)).is_ok()
        && start == PARQUET
}

/// Some rows as they lie in a file.
#[derive(Debug, Default)]
pub struct RawRows {
    bytes: Vec<u8>,
    /// Lines of a text before them.
    lines: u64,
    #[cfg(feature = "parquet")]
    batch: Option<arrow_array::RecordBatch>,
}

/// Some rows as numbers.
#[derive(Debug, Default)]
pub struct ParsedRows {
    /// One row behind the other; a bad one has its place too.
    pub inputs: Vec<f32>,
    pub count: usize,
    /// Which of them are bad, in their order. Rows are counted from 1 in the block.
    pub bad: Vec<(usize, BadRow)>,
}

/// How a format turns bytes into numbers, on any thread.
pub trait Parse: Send + Sync {
    /// Adds the rows of a block to `rows`, which are empty.
    fn add(&self, raw: &RawRows, rows: &mut ParsedRows);

    /// Reads all rows of a block into `rows`, which are replaced.
    fn parse(&self, raw: &RawRows, rows: &mut ParsedRows) {
        (rows.count, rows.bad) = (0, Vec::new());
        rows.inputs.clear();
        self.add(raw, rows);
    }
}

/// How a format cuts a file into blocks of rows.
trait Blocks {
    fn parser(&self) -> Arc<dyn Parse>;
    /// As [`RowReader::cut`].
    fn cut(&mut self, raw: &mut RawRows, least: usize) -> Result<bool>;
    fn progress(&self) -> ReadProgress;
}

/// A stream of rows.
pub struct RowReader {
    blocks: Box<dyn Blocks>,
    parser: Arc<dyn Parse>,
    /// For [`RowReader::next_into`]: the block whose rows are handed out, how many rows came before it, and how many of its own
    /// are out.
    raw: RawRows,
    rows: ParsedRows,
    before: u64,
    at: usize,
}

impl RowReader {
    /// Opens a source and finds out what it is.
    pub fn open(source: &RowSource, layout: &Layout) -> Result<Self> {
        let blocks = blocks(source, layout).with_context(|| source.to_string())?;
        let parser = blocks.parser();
        let (raw, rows) = (RawRows::default(), ParsedRows::default());
        Ok(Self { blocks, parser, raw, rows, before: 0, at: 0 })
    }

    /// What turns the blocks of [`RowReader::cut`] into numbers.
    pub fn parser(&self) -> Arc<dyn Parse> {
        self.parser.clone()
    }

    /// Brings the next rows into `raw`, as soon as they have about `least` bytes. Returns whether there were any.
    /// When the stream cannot go on, the rows before were in the blocks before.
    pub fn cut(&mut self, raw: &mut RawRows, least: usize) -> Result<bool> {
        self.blocks.cut(raw, least)
    }

    /// Reads the next row into `row`, which has as many values as the layout says. Returns whether there
    /// was one.
    pub fn next_into(&mut self, row: &mut [f32]) -> Result<bool, RowError> {
        while self.at == self.rows.count {
            let mut raw = std::mem::take(&mut self.raw);
            if !self.cut(&mut raw, 1).map_err(RowError::End)? {
                return Ok(false);
            }
            self.before += self.at as u64;
            self.at = 0;
            self.parser.parse(&raw, &mut self.rows);
            // Taken from its end, so that the next is the last.
            self.rows.bad.reverse();
            self.raw = raw;
        }
        let at = self.at;
        self.at += 1;
        if let Some((_, mut bad)) = self.rows.bad.pop_if(|(place, _)| *place == at) {
            bad.row += self.before;
            return Err(RowError::Bad(bad));
        }
        row.copy_from_slice(&self.rows.inputs[at * row.len()..(at + 1) * row.len()]);
        Ok(true)
    }

    /// How far the stream has come.
    pub fn progress(&self) -> ReadProgress {
        self.blocks.progress()
    }
}

/// Bytes that are read at a time.
const READ: usize = 1 << 15;

/// Reads up to `most` bytes behind those in `bytes`; of a live stream, no more than is there. Returns how many.
fn read_more(reader: &mut dyn Read, bytes: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    let before = bytes.len();
    bytes.resize(before + most, 0);
    let found = loop {
        match reader.read(&mut bytes[before..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            found => break found,
        }
    };
    bytes.truncate(before + *found.as_ref().unwrap_or(&0));
    found
}

/// Finds out what a source is.
fn blocks(source: &RowSource, layout: &Layout) -> Result<Box<dyn Blocks>> {
    if let RowSource::File(path) = source
        && is_parquet(path)
    {
        return parquet::blocks(path, layout);
    }
    let (reader, total): (Box<dyn Read>, _) = match source {
        RowSource::Stdin => (Box::new(io::stdin().lock()), None),
        RowSource::File(path) => match FilePart::parse(&path.to_string_lossy()) {
            // An archive cannot be read as a stream.
            FilePart { path, part, .. } if path.to_string_lossy().to_lowercase().ends_with(".npz") => {
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
    if npy {
        let file = match source {
            RowSource::File(path) if total.is_some() => Some(path.as_path()),
            _ => None,
        };
        return Ok(Box::new(NpyRows::new(reader, file, layout)?));
    }
    Ok(Box::new(CsvRows::new(Box::new(limits::lines(reader)), total, layout)?))
}
