//! The one reader of CSV, with or without a row of names.
//!
//! ```text
//! bytes → Text: records, names, numbers → CsvRows: a model's inputs, one row at a time (score, explain, report)
//!                                       → tables and labels (`files`: fit, train)
//! ```

use std::io::Read;

use anyhow::{Context, Result, bail};
use csv::ByteRecord;

use super::{BadRow, Fault, Header, Layout, ReadProgress, RowError, TextFormat};

/// Separators that people use; for a hint when the chosen one does not fit.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// What a field holds.
enum Field {
    Number(f32),
    Fault(Fault),
}

/// What the first row of a file is.
enum FirstRow {
    /// Text and no number: names.
    Names,
    /// No text: data.
    Data,
    /// Numbers and text.
    Mixed {
        /// Where the first text is, counting from 1.
        column: usize,
        /// That text.
        field: String,
    },
}

impl FirstRow {
    /// Looks at the fields of the row.
    fn of<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut text, mut numbers) = (None, false);
        for (i, field) in fields.enumerate() {
            match parse(field) {
                Field::Fault(Fault::Text(field)) => text = text.or(Some((i + 1, field))),
                Field::Fault(Fault::Missing) => {}
                _ => numbers = true,
            }
        }
        match text {
            None => Self::Data,
            Some(_) if !numbers => Self::Names,
            Some((column, field)) => Self::Mixed { column, field },
        }
    }
}

/// The records of a text, and the names of its columns where the first record holds them.
pub(crate) struct Text {
    reader: csv::Reader<Box<dyn Read>>,
    record: ByteRecord,
    /// The first record was read to look for names and is data.
    pending: bool,
    /// Names of the columns.
    pub header: Option<Vec<String>>,
    /// Fields of the first record; 0 of an empty text.
    pub columns: usize,
    delimiter: u8,
    row: u64,
}

impl Text {
    /// Reads the first record and finds out whether it holds names.
    ///
    /// # Errors
    /// When nothing can be read, or nobody but the user can tell.
    pub(crate) fn new(reader: Box<dyn Read>, format: TextFormat) -> Result<Self> {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(format.delimiter)
            .trim(csv::Trim::All)
            .from_reader(reader);
        let (record, delimiter) = (ByteRecord::new(), format.delimiter);
        let mut text = Self { reader, record, pending: false, header: None, columns: 0, delimiter, row: 0 };
        if text.reader.read_byte_record(&mut text.record)? {
            text.columns = text.record.len();
            text.pending = !text.first_is_header(format.header)?;
            if !text.pending {
                let names = text.record.iter().map(|name| String::from_utf8_lossy(name).into_owned());
                text.header = Some(names.collect());
            }
        }
        Ok(text)
    }

    fn first_is_header(&self, header: Header) -> Result<bool> {
        match (header, FirstRow::of(self.record.iter())) {
            (Header::Yes, _) | (Header::Auto, FirstRow::Names) => Ok(true),
            (Header::No, _) | (Header::Auto, FirstRow::Data) => Ok(false),
            (Header::Auto, FirstRow::Mixed { column, field }) => bail!(
                "the first row has numbers and text (column {column}: `{field}`): say --header yes if it \
                 holds names, --header no if it is data"
            ),
        }
    }

    /// Reads the next record. Returns whether there was one.
    ///
    /// # Errors
    /// When the text cannot be read on.
    pub(crate) fn next(&mut self) -> Result<bool> {
        let read = std::mem::take(&mut self.pending)
            || self.reader.read_byte_record(&mut self.record).context("cannot read on")?;
        self.row += u64::from(read);
        Ok(read)
    }

    /// A field of the record; empty where there is none.
    pub(crate) fn field(&self, column: usize) -> &[u8] {
        self.record.get(column).unwrap_or_default()
    }

    /// Refuses a record of another number of fields.
    pub(crate) fn check_width(&self, expected: usize) -> Result<(), BadRow> {
        let (found, delimiter) = (self.record.len(), self.likely_delimiter());
        if found == expected {
            return Ok(());
        }
        Err(self.bad(None, Fault::Width { expected, found, delimiter }))
    }

    /// A field as a number.
    pub(crate) fn number(&self, column: usize) -> Result<f32, BadRow> {
        match parse(self.field(column)) {
            Field::Number(number) => Ok(number),
            Field::Fault(fault) => Err(self.bad(Some(column), fault)),
        }
    }

    fn bad(&self, column: Option<usize>, fault: Fault) -> BadRow {
        let name = column.and_then(|c| self.header.as_ref()?.get(c).cloned());
        let line = self.record.position().map(csv::Position::line);
        BadRow { row: self.row, line, column: column.map(|c| c + 1), name, fault }
    }

    /// Another separator that a lone field is full of.
    pub(crate) fn likely_delimiter(&self) -> Option<char> {
        let field = self.record.get(0).filter(|_| self.record.len() == 1)?;
        let other = SEPARATORS.iter().find(|s| **s != self.delimiter && field.contains(s))?;
        Some(char::from(*other))
    }
}

/// A stream of a model's inputs.
pub(super) struct CsvRows {
    text: Text,
    /// Which field each value comes from, when names choose them.
    chosen: Option<Vec<usize>>,
    total: Option<u64>,
}

impl CsvRows {
    pub(super) fn new(reader: Box<dyn Read>, total: Option<u64>, layout: &Layout) -> Result<Self> {
        let text = Text::new(reader, layout.text)?;
        let chosen = match &text.header {
            Some(names) => choose(names, layout).map_err(|error| match text.likely_delimiter() {
                Some(c) => error.context(format!("are the fields separated by {c:?}? see --delimiter")),
                None => error,
            })?,
            None => None,
        };
        Ok(Self { text, chosen, total })
    }

    pub(super) fn next_into(&mut self, row: &mut [f32]) -> Result<bool, RowError> {
        if !self.text.next().map_err(RowError::End)? {
            return Ok(false);
        }
        let expected = if self.chosen.is_some() { self.text.columns } else { row.len() };
        self.text.check_width(expected).map_err(RowError::Bad)?;
        for (i, value) in row.iter_mut().enumerate() {
            let column = self.chosen.as_ref().map_or(i, |chosen| chosen[i]);
            *value = self.text.number(column).map_err(RowError::Bad)?;
        }
        Ok(true)
    }

    pub(super) fn progress(&self) -> ReadProgress {
        ReadProgress { done: self.text.reader.position().byte(), total: self.total, bytes: true }
    }
}

/// Which columns the model's inputs are, by name; `None` when they are taken as they come.
pub(super) fn choose(header: &[String], layout: &Layout) -> Result<Option<Vec<usize>>> {
    let Some(names) = &layout.names else {
        if header.len() != layout.inputs {
            let (found, inputs) = (header.len(), layout.inputs);
            bail!("the file has {found} columns, the model takes {inputs} values: keep only its inputs");
        }
        return Ok(None);
    };
    if names.len() != layout.inputs {
        let (named, inputs) = (names.len(), layout.inputs);
        bail!("--columns names {named} columns, the model takes {inputs} values: name one for each of them");
    }
    let place = |name: &String| {
        let mut found = header.iter().enumerate().filter(|(_, column)| *column == name).map(|(i, _)| i);
        match (found.next(), found.next()) {
            (Some(i), None) => Ok(i),
            (None, _) => bail!(
                "no column is called `{name}`, which the model takes (its inputs are {}): rename the columns, \
                 or use --by-position",
                names.join(", ")
            ),
            (Some(_), Some(_)) => bail!("two columns are called `{name}`: keep one, or use --by-position"),
        }
    };
    names.iter().map(place).collect::<Result<_>>().map(Some)
}

fn parse(field: &[u8]) -> Field {
    if field.is_empty() {
        return Field::Fault(Fault::Missing);
    }
    let text = std::str::from_utf8(field);
    match text.ok().and_then(|text| text.parse::<f32>().ok()) {
        Some(number) if number.is_finite() => Field::Number(number),
        Some(_) => Field::Fault(Fault::NonFinite(shown(field))),
        None => Field::Fault(Fault::Text(shown(field))),
    }
}

/// A field as an error shows it: one line, not too long.
fn shown(field: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(field);
    let mut shown: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > LONGEST {
        shown.push('…');
    }
    shown
}
