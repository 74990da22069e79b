//! Rows from comma-separated text, with or without a row of names.

use std::io::Read;

use anyhow::{Context, Result, bail};
use csv::ByteRecord;

use super::{BadRow, Fault, Header, Layout, ReadProgress, RowError};

/// Separators that people use; for a hint when the chosen one does not fit.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// What a field holds.
enum Field {
    Number(f32),
    Fault(Fault),
}

/// What the first row of a file is.
pub(crate) enum FirstRow {
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
    pub(crate) fn of<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Self {
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

/// A stream of text rows.
pub struct CsvRows {
    reader: csv::Reader<Box<dyn Read>>,
    record: ByteRecord,
    /// The first record was read to look for names and is data.
    pending: bool,
    header: Option<Vec<String>>,
    /// Which field each value comes from, when names choose them.
    chosen: Option<Vec<usize>>,
    delimiter: u8,
    row: u64,
    total: Option<u64>,
}

impl CsvRows {
    pub(super) fn new(reader: Box<dyn Read>, total: Option<u64>, layout: &Layout) -> Result<Self> {
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(layout.delimiter)
            .trim(csv::Trim::All)
            .from_reader(reader);
        let mut rows = Self {
            reader,
            record: ByteRecord::new(),
            pending: false,
            header: None,
            chosen: None,
            delimiter: layout.delimiter,
            row: 0,
            total,
        };
        if rows.reader.read_byte_record(&mut rows.record)? {
            if rows.first_is_header(layout.header)? {
                let names = rows.record.iter().map(|name| String::from_utf8_lossy(name).into_owned());
                let names: Vec<String> = names.collect();
                rows.chosen = choose(&names, layout).map_err(|error| match rows.likely_delimiter() {
                    Some(c) => error.context(format!("are the fields separated by {c:?}? see --delimiter")),
                    None => error,
                })?;
                rows.header = Some(names);
            } else {
                rows.pending = true;
            }
        }
        Ok(rows)
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

    pub(super) fn next_into(&mut self, row: &mut [f32]) -> Result<bool, RowError> {
        if !std::mem::take(&mut self.pending) {
            let read = self.reader.read_byte_record(&mut self.record);
            if !read.context("cannot read on").map_err(RowError::End)? {
                return Ok(false);
            }
        }
        self.row += 1;
        let expected = match (&self.chosen, &self.header) {
            (Some(_), Some(header)) => header.len(),
            _ => row.len(),
        };
        let found = self.record.len();
        if found != expected {
            let delimiter = self.likely_delimiter();
            return Err(self.bad(None, Fault::Width { expected, found, delimiter }));
        }
        for (i, value) in row.iter_mut().enumerate() {
            let column = self.chosen.as_ref().map_or(i, |chosen| chosen[i]);
            match parse(self.record.get(column).unwrap_or_default()) {
                Field::Number(number) => *value = number,
                Field::Fault(fault) => return Err(self.bad(Some(column), fault)),
            }
        }
        Ok(true)
    }

    fn bad(&self, column: Option<usize>, fault: Fault) -> RowError {
        let name = column.and_then(|c| self.header.as_ref()?.get(c).cloned());
        let line = self.record.position().map(csv::Position::line);
        RowError::Bad(BadRow { row: self.row, line, column: column.map(|c| c + 1), name, fault })
    }

    /// Another separator that a lone field is full of.
    fn likely_delimiter(&self) -> Option<char> {
        let field = self.record.get(0).filter(|_| self.record.len() == 1)?;
        let other = SEPARATORS.iter().find(|s| **s != self.delimiter && field.contains(s))?;
        Some(char::from(*other))
    }

    pub(super) fn progress(&self) -> ReadProgress {
        ReadProgress { done: self.reader.position().byte(), total: self.total, bytes: true }
    }
}

/// Which columns the model's inputs are, by name; `None` when they are taken as they come.
fn choose(header: &[String], layout: &Layout) -> Result<Option<Vec<usize>>> {
    let Some(names) = &layout.names else {
        if header.len() != layout.inputs {
            let (found, inputs) = (header.len(), layout.inputs);
            bail!("the file has {found} columns, the model takes {inputs} values: keep only its inputs");
        }
        return Ok(None);
    };
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
