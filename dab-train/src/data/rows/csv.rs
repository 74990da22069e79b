//! The one reader of CSV, with or without a row of names.
//!
//! ```text
//! bytes → Text: records, names, numbers → tables and labels (`files`: fit, train)
//!       → CsvRows: blocks of records → Inputs: a model's inputs, on any thread (score, explain, report)
//! ```

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::{
    BadRow, Fault, Header, Layout, RawRows, ReadProgress, Rows, TextFormat,
    text::{Cutter, Records},
};

/// Separators that people use; for a hint when the chosen one does not fit.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

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
                Err(Fault::Text(field)) => text = text.or(Some((i + 1, field))),
                Err(Fault::Missing) => {}
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
    cutter: Cutter,
    block: Vec<u8>,
    /// Lines before the block.
    lines: u64,
    records: Records,
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
    pub(crate) fn new(reader: Box<dyn Read>, format: TextFormat) -> Result<Self> {
        let mut text = Self {
            cutter: Cutter::new(reader, format.delimiter),
            block: Vec::new(),
            lines: 0,
            records: Records::default(),
            pending: false,
            header: None,
            columns: 0,
            delimiter: format.delimiter,
            row: 0,
        };
        if text.read()? {
            text.columns = text.records.len();
            text.pending = !text.first_is_header(format.header)?;
            if !text.pending {
                let name = |column| String::from_utf8_lossy(text.field(column)).into_owned();
                text.header = Some((0..text.columns).map(name).collect());
            }
        }
        Ok(text)
    }

    fn first_is_header(&self, header: Header) -> Result<bool> {
        match (header, FirstRow::of((0..self.columns).map(|column| self.field(column)))) {
            (Header::Yes, _) | (Header::Auto, FirstRow::Names) => Ok(true),
            (Header::No, _) | (Header::Auto, FirstRow::Data) => Ok(false),
            (Header::Auto, FirstRow::Mixed { column, field }) => bail!(
                "the first row has numbers and text (column {column}: `{field}`): say --header yes if it \
                 holds names, --header no if it is data"
            ),
        }
    }

    fn read(&mut self) -> std::io::Result<bool> {
        while !self.records.next(&self.block, self.delimiter) {
            self.lines = self.cutter.next(&mut self.block, 1)?;
            self.records = Records::default();
            if self.block.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the next record. Returns whether there was one.
    pub(crate) fn next(&mut self) -> Result<bool> {
        let read = std::mem::take(&mut self.pending) || self.read().context("cannot read on")?;
        self.row += u64::from(read);
        Ok(read)
    }

    /// A field of the record; empty where there is none.
    pub(crate) fn field(&self, column: usize) -> &[u8] {
        self.records.field(&self.block, column)
    }

    /// Refuses a record of another number of fields.
    pub(crate) fn check_width(&self, expected: usize) -> Result<(), BadRow> {
        let found = self.records.len();
        if found == expected {
            return Ok(());
        }
        Err(self.bad(None, Fault::Width { expected, found, delimiter: self.likely_delimiter() }))
    }

    /// A field as a number.
    pub(crate) fn number(&self, column: usize) -> Result<f32, BadRow> {
        parse(self.field(column)).map_err(|fault| self.bad(Some(column), fault))
    }

    fn bad(&self, column: Option<usize>, fault: Fault) -> BadRow {
        let line = self.lines + self.records.lines_before(&self.block) + 1;
        bad(self.row, line, self.header.as_deref(), column, fault)
    }

    /// Another separator that a lone field is full of.
    pub(crate) fn likely_delimiter(&self) -> Option<char> {
        likely_delimiter(&self.records, &self.block, self.delimiter)
    }
}

fn bad(row: u64, line: u64, header: Option<&[String]>, column: Option<usize>, fault: Fault) -> BadRow {
    let name = column.and_then(|column| header?.get(column).cloned());
    BadRow { row, line: Some(line), column: column.map(|column| column + 1), name, fault }
}

fn likely_delimiter(records: &Records, block: &[u8], delimiter: u8) -> Option<char> {
    let field = Some(records.field(block, 0)).filter(|_| records.len() == 1)?;
    let other = SEPARATORS.iter().find(|s| **s != delimiter && field.contains(s))?;
    Some(char::from(*other))
}

/// Where a model's inputs are in a record.
#[derive(Debug)]
pub(super) struct Inputs {
    header: Option<Vec<String>>,
    /// Which field each value comes from, when names choose them.
    chosen: Option<Vec<usize>>,
    /// Fields that a record must have.
    columns: usize,
    inputs: usize,
    delimiter: u8,
}

impl Inputs {
    /// Reads the records of a block.
    pub(super) fn parse(&self, raw: &RawRows, rows: &mut Rows) {
        let (mut records, block) = (Records::default(), raw.bytes.as_slice());
        // A number has about eight bytes; what is reserved once is kept.
        rows.inputs.reserve(block.len() / 8);
        while records.next(block, self.delimiter) {
            let start = rows.inputs.len();
            let found = self.record(&records, block, &mut rows.inputs);
            if let Err((column, fault)) = found {
                rows.inputs.truncate(start);
                rows.inputs.resize(start + self.inputs, 0.0);
                let line = raw.lines + records.lines_before(block) + 1;
                let row = rows.count as u64 + 1;
                rows.bad.push((rows.count, bad(row, line, self.header.as_deref(), column, fault)));
            }
            rows.count += 1;
        }
    }

    /// Adds the inputs of a record, or says what is wrong with it.
    fn record(
        &self,
        records: &Records,
        block: &[u8],
        inputs: &mut Vec<f32>,
    ) -> Result<(), (Option<usize>, Fault)> {
        let found = records.len();
        if found != self.columns {
            let delimiter = likely_delimiter(records, block, self.delimiter);
            return Err((None, Fault::Width { expected: self.columns, found, delimiter }));
        }
        for input in 0..self.inputs {
            let column = self.chosen.as_ref().map_or(input, |chosen| chosen[input]);
            inputs.push(parse(records.field(block, column)).map_err(|fault| (Some(column), fault))?);
        }
        Ok(())
    }
}

/// A stream of a model's inputs.
pub(super) struct CsvRows {
    cutter: Cutter,
    /// What was read to look for names, without them.
    first: Option<RawRows>,
    pub(super) inputs: Arc<Inputs>,
    total: Option<u64>,
}

impl CsvRows {
    pub(super) fn new(reader: Box<dyn Read>, total: Option<u64>, layout: &Layout) -> Result<Self> {
        let mut text = Text::new(reader, layout.text)?;
        let chosen = match &text.header {
            Some(names) => choose(names, layout).map_err(|error| match text.likely_delimiter() {
                Some(c) => error.context(format!("are the fields separated by {c:?}? see --delimiter")),
                None => error,
            })?,
            None => None,
        };
        let taken = if text.pending { text.records.start() } else { text.records.end() };
        let lines = text.lines + text.block[..taken].iter().filter(|&&byte| byte == b'\n').count() as u64;
        text.block.drain(..taken);
        let inputs = Inputs {
            header: text.header,
            columns: if chosen.is_some() { text.columns } else { layout.inputs },
            chosen,
            inputs: layout.inputs,
            delimiter: text.delimiter,
        };
        let first = Some(RawRows::of_text(text.block, lines));
        Ok(Self { cutter: text.cutter, first, inputs: Arc::new(inputs), total })
    }

    /// The next records, of at least so many bytes. Returns whether there are any.
    pub(super) fn cut(&mut self, raw: &mut RawRows, least: usize) -> Result<bool> {
        if let Some(first) = self.first.take().filter(|first| !first.bytes.is_empty()) {
            *raw = first;
            return Ok(true);
        }
        raw.lines = self.cutter.next(&mut raw.bytes, least).context("cannot read on")?;
        Ok(!raw.bytes.is_empty())
    }

    pub(super) fn progress(&self) -> ReadProgress {
        ReadProgress { done: self.cutter.bytes, total: self.total, bytes: true }
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

#[inline]
fn parse(field: &[u8]) -> Result<f32, Fault> {
    if field.is_empty() {
        return Err(Fault::Missing);
    }
    let text = std::str::from_utf8(field);
    match text.ok().and_then(|text| text.parse::<f32>().ok()) {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(Fault::NonFinite(shown(field))),
        None => Err(Fault::Text(shown(field))),
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
