//! Numbers and labels from npy, npz and csv files (gzip allowed for csv); with the feature `parquet` also from Parquet.
//!
//! path → `FilePart` → `table` or `labels` → a data set. A source may name a part:
//!
//! ```text
//! file.npy          file.npz:key          file.csv          file.csv:column          file.parquet:column
//! ```
//!
//! The part is split off only behind a known extension, so `C:\x.npy` stays one path. An f16 array
//! is widened, a Fortran-ordered one is transposed: both are what numpy writes without being asked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use npyz::{DType, NpyFile, NpyHeader, Order, TypeChar};
use zip::ZipArchive;

use super::{
    columns::{check_once, no_column},
    listed,
    rows::{
        BadRow, Header, TextFormat,
        csv::Text,
        npy::{Scalar, header},
        parquet,
        unpack::unpack,
    },
    table::Table,
};
use crate::support::{limits, text::counted};

/// Formats by the ending of a file's name.
const FORMATS: [(&str, Format); 6] = [
    (".npy", Format::Npy),
    (".npz", Format::Npz),
    (".csv", Format::Csv),
    (".csv.gz", Format::Csv),
    (".parquet", Format::Parquet),
    (".pq", Format::Parquet),
];

/// A file and, for containers, which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    pub path: PathBuf,
    /// The array of an npz file, or the column of a csv or Parquet file.
    pub part: Option<String>,
    /// How a csv file is written.
    pub text: TextFormat,
}

impl FilePart {
    /// Reads `file` or `file:part`.
    pub fn parse(text: &str) -> Self {
        // An array of its own has no parts.
        let parts =
            |path: &str| FORMATS.iter().any(|&(e, format)| format != Format::Npy && path.ends_with(e));
        let split = text.rsplit_once(':').filter(|(path, _)| parts(path));
        let (path, part) = split.map_or((text, None), |(path, part)| (path, Some(part.to_owned())));
        Self { path: path.into(), part, text: TextFormat::default() }
    }

    /// The same with csv files that are written so.
    pub fn written(self, text: TextFormat) -> Self {
        Self { text, ..self }
    }

    fn format(&self) -> Result<Format> {
        let name = self.path.to_string_lossy().to_lowercase();
        let known = FORMATS.iter().find(|(ending, _)| name.ends_with(ending));
        known.map(|(_, format)| *format).with_context(|| {
            format!("{}: expected a file named .npy, .npz, .csv, .csv.gz or .parquet", self.path.display())
        })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Npy,
    Npz,
    Csv,
    Parquet,
}

/// Class labels as they stand in a file: numbers or words.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// Whole numbers.
    Numbers(Vec<i64>),
    /// Anything else.
    Words(Vec<String>),
}

impl Labels {
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(v) => v.len(),
            Self::Words(v) => v.len(),
        }
    }

    /// Labels that stand in a file as text: numbers if all of them are.
    fn of_words(words: Vec<String>) -> Result<Self> {
        if let Some(row) = words.iter().position(|word| word.trim().is_empty()) {
            bail!("the label of row {} is missing: fill it in, or leave the row out", row + 1);
        }
        let Some(numbers) = words.iter().map(|word| word.parse().ok()).collect::<Option<Vec<f64>>>() else {
            return Ok(Self::Words(words));
        };
        match numbers.iter().find(|number| number.fract() != 0.0) {
            Some(&number) => Err(no_class(number)),
            None => Ok(Self::Numbers(numbers.into_iter().map(|number| number as i64).collect())),
        }
    }
}

/// A table of numbers, with column names where the file has them. `without` drops columns of a csv or Parquet file,
/// where there are any of these names: the one that holds the labels, others that are no inputs.
pub fn table(source: &FilePart, without: &[&str]) -> Result<(Table, Vec<String>)> {
    let path = source.path.display().to_string();
    let what = source.part.as_ref().map_or(path.clone(), |part| format!("{path}:{part}"));
    let (table, names) = match source.format()? {
        Format::Npy | Format::Npz => (read_array(source, array)?, Vec::new()),
        Format::Csv => csv_table(source, without)?,
        Format::Parquet => {
            let columns = parquet_columns(source)?;
            if source.part.is_none() {
                check_once(&source.path, columns.iter().filter(|name| !without.contains(&name.as_str())))?;
            }
            let read = parquet::table(&source.path, source.part.as_deref(), without);
            let (values, names, cols) = read.with_context(|| what.clone())?;
            (Table::new(values.len() / cols.max(1), cols, values)?, names)
        }
    };
    ensure!(
        table.rows > 0 && table.cols > 0,
        "{what}: {} of {} hold nothing",
        counted(table.rows, "row"),
        counted(table.cols, "column")
    );
    table.check_finite(&what)?;
    Ok((table, names))
}

/// The names of a file's columns; none where it names none.
pub fn columns(source: &FilePart) -> Result<Vec<String>> {
    Ok(match source.format()? {
        Format::Npy | Format::Npz => Vec::new(),
        Format::Csv => open_text(source)?.header.unwrap_or_default(),
        Format::Parquet => parquet_columns(source)?,
    })
}

/// The names of the columns of a Parquet file, which has the one that the source names.
fn parquet_columns(source: &FilePart) -> Result<Vec<String>> {
    let names = parquet::columns(&source.path).with_context(|| source.path.display().to_string())?;
    match &source.part {
        Some(part) if !names.contains(part) => Err(no_column(&source.path, part, &names)),
        _ => Ok(names),
    }
}

/// Class labels, one per row.
pub fn labels(source: &FilePart) -> Result<Labels> {
    let here = || source.path.display().to_string();
    match source.format()? {
        Format::Npy | Format::Npz => read_array(source, array_labels),
        Format::Parquet => {
            parquet_columns(source)?;
            parquet::words(&source.path, source.part.as_deref()).and_then(Labels::of_words).with_context(here)
        }
        Format::Csv => {
            let mut text = open_text(source)?;
            let at = csv_column(&text, source)?;
            let mut words = Vec::new();
            while next_row(&mut text, source)? {
                words.push(std::str::from_utf8(text.field(at)).with_context(here)?.to_owned());
            }
            // A lone column whose "header" occurs again below has none: its first line is a label.
            if let Some([name]) = text.header.as_deref()
                && source.text.header == Header::Auto
                && words.contains(name)
            {
                words.insert(0, name.clone());
            }
            Labels::of_words(words).with_context(here)
        }
    }
}

fn no_class(label: f64) -> Error {
    anyhow!("label {label} is no whole number, so no class; numbers to predict are targets (--targets)")
}

/// Numbers the distinct labels in their order: the smallest number, or the first word, is class 0.
///
/// Returns the numbered labels of each part and the class names; parts are numbered together so
/// that train and test agree.
pub fn number_classes(parts: &[Labels]) -> Result<(Vec<Vec<u32>>, Vec<String>)> {
    let (mut words, mut numbers) = (BTreeMap::new(), BTreeMap::new());
    for part in parts {
        match part {
            Labels::Words(w) => words.extend(w.iter().map(|w| (w.as_str(), 0u32))),
            Labels::Numbers(n) => numbers.extend(n.iter().map(|&n| (n, 0u32))),
        }
    }
    ensure!(
        words.is_empty() || numbers.is_empty(),
        "labels mix numbers and words; use one of them in every file"
    );
    for (i, number) in words.values_mut().chain(numbers.values_mut()).enumerate() {
        *number = i as u32;
    }
    let numbered = parts
        .iter()
        .map(|part| match part {
            Labels::Words(w) => w.iter().map(|w| words[w.as_str()]).collect(),
            Labels::Numbers(n) => n.iter().map(|n| numbers[n]).collect(),
        })
        .collect();
    let names = words.keys().map(ToString::to_string).chain(numbers.keys().map(ToString::to_string));
    Ok((numbered, names.collect()))
}

/// Whether class j is called j.
pub fn are_places(names: &[String]) -> bool {
    names.iter().enumerate().all(|(class, name)| *name == class.to_string())
}

/// Makes names of outputs of labels that are numbers: none where class j is called j, otherwise such as `class_7`. A warning
/// then says which output is which.
pub fn name_numbers(names: &mut Vec<String>) -> Option<String> {
    if are_places(names) {
        names.clear();
        return None;
    }
    let (last, all) = (names.len() - 1, listed(names));
    names.iter_mut().for_each(|name| name.insert_str(0, "class_"));
    Some(format!("labels do not run from 0 to {last}: the outputs are, in order, {all}"))
}

/// Opens a file that must have something in it.
fn open(path: &Path) -> Result<File> {
    let here = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(here)?;
    let metadata = file.metadata().with_context(here)?;
    ensure!(!metadata.is_dir(), "{} is a folder: name a file in it", path.display());
    ensure!(!metadata.is_file() || metadata.len() > 0, "{} is empty (0 bytes)", path.display());
    Ok(file)
}

/// An open npz archive that names itself in its errors.
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

impl Npz {
    /// Opens the archive.
    pub fn open(path: &Path) -> Result<Self> {
        let archive = ZipArchive::new(BufReader::new(open(path)?))
            .with_context(|| format!("{} is no npz file", path.display()))?;
        Ok(Self { path: path.into(), archive })
    }

    /// The names of the arrays: each is a file of that name and `.npy`.
    fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().flatten();
        names.filter_map(|name| name.strip_suffix(".npy").map(Into::into)).collect()
    }

    /// The name of the array `wanted`; without a name, of the only one.
    pub(super) fn key(&self, wanted: Option<&str>) -> Result<String> {
        let names = self.names();
        match (wanted, names.as_slice()) {
            (Some(key), _) => Ok(key.into()),
            (None, [only]) => Ok(only.clone()),
            (None, _) => bail!(
                "{} holds several arrays ({}): say which one, as in {}:{}",
                self.path.display(),
                names.join(", "),
                self.path.display(),
                names.first().map_or("key", String::as_str)
            ),
        }
    }

    fn here(&self, key: &str) -> String {
        format!("{}:{key}", self.path.display())
    }

    /// One array as it lies in the archive: an npy file.
    fn entry(&mut self, key: &str) -> Result<impl Read> {
        let (here, names) = (self.here(key), self.names().join(", "));
        let known = self.archive.index_for_name(&format!("{key}.npy"));
        let index = known.with_context(|| format!("{here}: no such array; the file has {names}"))?;
        self.archive.by_index(index).context(here)
    }

    /// The array `wanted` as an npy file, decompressed; without a name, the only one.
    pub(super) fn file(&mut self, wanted: Option<&str>) -> Result<Vec<u8>> {
        let key = self.key(wanted)?;
        let here = self.here(&key);
        let mut bytes = Vec::new();
        self.entry(&key)?.read_to_end(&mut bytes).context(here)?;
        Ok(bytes)
    }

    /// Header and decompressed data of one array.
    fn read(&mut self, key: &str) -> Result<(NpyHeader, Vec<u8>)> {
        let here = self.here(key);
        let mut file = self.entry(key)?;
        let header = header(&mut file).with_context(|| here.clone())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).context(here)?;
        Ok((header, bytes))
    }

    /// The values of the array `key` as they are stored.
    pub fn values(&mut self, key: &str) -> Result<Vec<u8>> {
        Ok(self.read(key)?.1)
    }

    /// The array `key` as a table; one dimension becomes one column.
    pub fn table(&mut self, key: &str) -> Result<Table> {
        self.make(key, array)
    }

    /// Whether `wanted` (or the only array) holds images: bytes of four dimensions.
    pub fn has_images(&mut self, wanted: Option<&str>) -> Result<bool> {
        let key = self.key(wanted)?;
        let here = self.here(&key);
        let header = header(&mut self.entry(&key)?).context(here)?;
        let bytes = Scalar::new(&header.dtype()).is_ok_and(|scalar| scalar.is_byte());
        Ok(bytes && header.shape().len() == 4)
    }

    /// The array `key` as bytes with its shape.
    pub fn bytes(&mut self, key: &str) -> Result<(Vec<usize>, Vec<u8>)> {
        let (header, mut bytes) = self.read(key)?;
        let here = self.here(key);
        let (scalar, _) = values(&header, &bytes).with_context(|| here.clone())?;
        ensure!(
            scalar.is_byte() && header.order() == Order::C,
            "{here}: expected bytes (uint8) in C order, found {}",
            header.dtype().descr()
        );
        let shape: Vec<usize> = header.shape().iter().map(|&n| n as usize).collect();
        bytes.truncate(shape.iter().product());
        Ok((shape, bytes))
    }

    /// The array `key` as labels.
    pub fn labels(&mut self, key: &str) -> Result<Labels> {
        self.make(key, array_labels)
    }

    fn make<T>(&mut self, key: &str, make: impl Fn(&NpyHeader, &[u8]) -> Result<T>) -> Result<T> {
        let (header, bytes) = self.read(key)?;
        make(&header, &bytes).with_context(|| self.here(key))
    }
}

/// What `make` makes of the array of an npy file, or of one in an npz file.
fn read_array<T>(source: &FilePart, make: impl Fn(&NpyHeader, &[u8]) -> Result<T>) -> Result<T> {
    let path = &source.path;
    if matches!(source.format()?, Format::Npz) {
        let mut npz = Npz::open(path)?;
        let key = npz.key(source.part.as_deref())?;
        return npz.make(&key, make);
    }
    let mut file = BufReader::new(open(path)?);
    let header = header(&mut file).with_context(|| format!("{} is no npy file", path.display()))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    make(&header, &bytes).with_context(|| path.display().to_string())
}

/// The values of an array one by one, as they are stored.
fn values<'a>(header: &NpyHeader, bytes: &'a [u8]) -> Result<(Scalar, impl Fn(usize) -> &'a [u8])> {
    let scalar = Scalar::new(&header.dtype())?;
    let shape = header.shape();
    // Without this, a file of a hundred bytes could have any number of rows.
    ensure!(shape.iter().skip(1).all(|&n| n > 0), "shape {shape:?}: its rows are empty");
    let count = header.shape().iter().try_fold(scalar.size as u64, |product, &n| product.checked_mul(n));
    ensure!(count.is_some_and(|count| count <= bytes.len() as u64), "its numbers end too early");
    Ok((scalar, move |at: usize| &bytes[at * scalar.size..(at + 1) * scalar.size]))
}

fn array(header: &NpyHeader, bytes: &[u8]) -> Result<Table> {
    let (rows, cols) = match *header.shape() {
        [n] => (n as usize, 1),
        [n, m] => (n as usize, m as usize),
        ref shape => bail!("shape {shape:?}; expected rows × columns: save x.reshape(len(x), -1)"),
    };
    let (scalar, value) = values(header, bytes)?;
    let columns_first = header.order() == Order::Fortran && cols > 1;
    let place = |i: usize| if columns_first { (i % cols) * rows + i / cols } else { i };
    let values = (0..rows * cols).map(|i| scalar.value(value(place(i))) as f32).collect();
    Ok(Table::new(rows, cols, values)?)
}

fn array_labels(header: &NpyHeader, bytes: &[u8]) -> Result<Labels> {
    let count = match *header.shape() {
        [n] | [n, 1] => n as usize,
        ref shape => {
            bail!("labels of shape {shape:?}; expected one per row: of one-hot rows save y.argmax(1)")
        }
    };
    if let DType::Plain(kind) = header.dtype()
        && matches!(kind.type_char(), TypeChar::UnicodeStr | TypeChar::ByteStr)
    {
        let size = header.dtype().num_bytes().unwrap_or(0);
        let needed = size.checked_mul(count).filter(|_| size > 0);
        ensure!(needed.is_some_and(|needed| needed <= bytes.len()), "its words end too early, or are empty");
        return Ok(Labels::Words(NpyFile::with_header(header.clone(), bytes).into_vec()?));
    }
    let (scalar, value) = values(header, bytes).context("labels are whole numbers or text")?;
    let labels: Result<Vec<i64>, f64> = (0..count).map(|i| scalar.whole(value(i))).collect();
    labels.map(Labels::Numbers).map_err(no_class)
}

fn open_text(source: &FilePart) -> Result<Text> {
    let here = || format!("cannot read {}", source.path.display());
    let unpacked = unpack(Box::new(open(&source.path)?)).with_context(here)?;
    let reader = limits::endless_unless(&source.path, unpacked.reader);
    let text = Text::new(Box::new(limits::lines(reader)), source.text)
        .with_context(|| source.path.display().to_string())?;
    ensure!(text.columns > 0, "{} is empty", source.path.display());
    Ok(text)
}

/// Reads the next row, which must be as wide as the first.
fn next_row(text: &mut Text, source: &FilePart) -> Result<bool> {
    let here = source.path.display();
    let read = text.next().with_context(|| here.to_string())?;
    if read {
        text.check_width(text.columns).map_err(|bad| anyhow!("{here}: {bad}"))?;
    }
    Ok(read)
}

/// A hint where another character separates the fields.
fn separated(text: &Text) -> String {
    text.likely_delimiter()
        .map_or_else(String::new, |c| format!("; are the fields separated by {c:?}? see --delimiter"))
}

fn csv_column(text: &Text, source: &FilePart) -> Result<usize> {
    let here = source.path.display();
    let Some(part) = &source.part else {
        let columns = text.columns;
        ensure!(
            columns == 1,
            "{here} has {}: say which one, as in {here}:column",
            counted(columns, "column")
        );
        return Ok(0);
    };
    let Some(names) = &text.header else {
        bail!(
            "`{here}` has no column `{part}`, because it has no row of names: --header yes takes its first row as names"
        )
    };
    check_once(&source.path, names.iter().filter(|name| *name == part))?;
    let place = names.iter().position(|name| name == part);
    place.ok_or_else(|| anyhow!("{}{}", no_column(&source.path, part, names), separated(text)))
}

fn csv_table(source: &FilePart, without: &[&str]) -> Result<(Table, Vec<String>)> {
    let mut text = open_text(source)?;
    let names = text.header.clone().unwrap_or_default();
    let dropped = |&column: &usize| names.get(column).is_some_and(|name| without.contains(&name.as_str()));
    let wanted: Vec<usize> = match &source.part {
        Some(_) => vec![csv_column(&text, source)?],
        None => (0..text.columns).filter(|column| !dropped(column)).collect(),
    };
    check_once(&source.path, wanted.iter().filter_map(|&column| names.get(column)))?;
    let (mut rows, mut values) = (0, Vec::new());
    let refused = |bad: BadRow, text: &Text| {
        let here = source.path.display();
        match separated(text) {
            // What is wrong with the value may have a remedy, which the caller knows.
            hint if hint.is_empty() => Error::new(bad).context(here.to_string()),
            hint => anyhow!("{here}: {bad}{hint}"),
        }
    };
    while next_row(&mut text, source)? {
        for &column in &wanted {
            values.push(text.number(column).map_err(|bad| refused(bad, &text))?);
        }
        rows += 1;
    }
    let names = wanted.iter().filter_map(|&column| names.get(column).cloned()).collect();
    Ok((Table::new(rows, wanted.len(), values)?, names))
}

#[cfg(test)]
#[path = "files_tests.rs"]
pub(crate) mod tests;
