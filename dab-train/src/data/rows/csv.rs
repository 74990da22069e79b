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
    BadRow, Blocks, Fault, Header, Layout, Parse, ParsedRows, RawRows, ReadProgress, TextFormat, number,
    text::{Cutter, Records},
};
use crate::{data::columns::quoted, support::text::counted};

/// Separators that people use; for a hint when the chosen one does not fit.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// The records of a text, and the names of its columns where the first record holds them.
pub(crate) struct Text {
    cutter: Cutter,
    block: Vec<u8>,
    /// Lines before the block.
    lines: u64,
    records: Records,
    /// The first record was read to look for names and is data.
    pending: bool,
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

    /// Whether the first record holds names. Unless the user says, it does if it has text and no numbers.
    fn first_is_header(&self, header: Header) -> Result<bool> {
        if header != Header::Auto {
            return Ok(header == Header::Yes);
        }
        let (mut text, mut numbers) = (None, false);
        for column in 0..self.columns {
            match parse(self.field(column)) {
                Err(Fault::Text(field)) => text = text.or(Some((column + 1, field))),
                Err(Fault::Missing) => {}
                _ => numbers = true,
            }
        }
        match text {
            Some((column, field)) if numbers => bail!(
                "the first row has numbers and text (column {column}: `{field}`): say --header yes if it \
                 holds names, --header no if it is data"
            ),
            text => Ok(text.is_some()),
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
        self.records.field(column)
    }

    /// Refuses a record of another number of fields.
    pub(crate) fn check_width(&self, expected: usize) -> Result<(), BadRow> {
        let found = self.records.len();
        if found == expected {
            return Ok(());
        }
        Err(self.bad(None, Fault::Width { expected, found, delimiter: self.likely_delimiter() }))
    }

    pub(crate) fn number(&self, column: usize) -> Result<f32, BadRow> {
        parse(self.field(column)).map_err(|fault| self.bad(Some(column), fault))
    }

    fn bad(&self, column: Option<usize>, fault: Fault) -> BadRow {
        let line = self.lines + self.records.lines_before(&self.block) + 1;
        bad(self.row, line, self.header.as_deref(), column, fault)
    }

    /// Another separator that a lone field is full of.
    pub(crate) fn likely_delimiter(&self) -> Option<char> {
        likely_delimiter(&self.records, self.delimiter)
    }
}

fn bad(row: u64, line: u64, header: Option<&[String]>, column: Option<usize>, fault: Fault) -> BadRow {
    let name = column.and_then(|column| header?.get(column).cloned());
    BadRow { row, line: Some(line), column: column.map(|column| column + 1), name, fault }
}

fn likely_delimiter(records: &Records, delimiter: u8) -> Option<char> {
    let field = Some(records.field(0)).filter(|_| records.len() == 1)?;
    let other = SEPARATORS.iter().find(|s| **s != delimiter && field.contains(s))?;
    Some(char::from(*other))
}

/// Where a model's inputs are in a record.
struct Inputs {
    header: Option<Vec<String>>,
    /// Which field each value comes from.
    chosen: Vec<usize>,
    /// Which value each field of a record is, if any.
    places: Vec<Option<usize>>,
    delimiter: u8,
}

impl Parse for Inputs {
    fn add(&self, raw: &RawRows, rows: &mut ParsedRows) {
        let (mut records, block) = (Records::default(), raw.bytes.as_slice());
        // A number has about eight bytes; what is reserved once is kept.
        rows.inputs.reserve(block.len() / 8);
        // A number may have such a delimiter in it.
        let usual = !matches!(self.delimiter, b'.' | b'-' | b'0'..=b'9');
        loop {
            while usual
                && records.at < block.len()
                && let Some(end) = self.plain(block, records.at, &mut rows.inputs)
            {
                records.at = end;
                rows.count += 1;
            }
            if !records.next(block, self.delimiter) {
                break;
            }
            let start = rows.inputs.len();
            let found = self.record(&records, &mut rows.inputs);
            if let Err((column, fault)) = found {
                rows.inputs.truncate(start);
                rows.inputs.resize(start + self.chosen.len(), 0.0);
                let line = raw.lines + records.lines_before(block) + 1;
                let row = rows.count as u64 + 1;
                rows.bad.push((rows.count, bad(row, line, self.header.as_deref(), column, fault)));
            }
            rows.count += 1;
        }
    }
}

impl Inputs {
    /// Adds the inputs of a record of the usual kind, numbers and nothing around them, and returns where it ends. Of another record
    /// it adds nothing.
    #[inline]
    fn plain(&self, block: &[u8], start: usize, inputs: &mut Vec<f32>) -> Option<usize> {
        let (length, mut at) = (inputs.len(), start);
        inputs.resize(length + self.chosen.len(), 0.0);
        for (column, place) in self.places.iter().enumerate() {
            let rest = &block[at..];
            let end = match *place {
                Some(input) => number::prefix(rest).map(|(number, end)| {
                    inputs[length + input] = number;
                    end
                }),
                None if rest.first() == Some(&b'"') => None,
                None => {
                    rest.iter().position(|&byte| byte == self.delimiter || byte == b'\n' || byte == b'\r')
                }
            };
            let last = column + 1 == self.places.len();
            let read = end.and_then(|end| match rest.get(end..).unwrap_or_default() {
                [byte, ..] if !last && *byte == self.delimiter => Some(end + 1),
                [b'\n', ..] if last => Some(end + 1),
                [b'\r', b'\n', ..] if last => Some(end + 2),
                [] if last => Some(end),
                _ => None,
            });
            let Some(read) = read else {
                inputs.truncate(length);
                return None;
            };
            at += read;
        }
        Some(at)
    }

    /// Adds the inputs of a record, or says what is wrong with it.
    fn record(&self, records: &Records, inputs: &mut Vec<f32>) -> Result<(), (Option<usize>, Fault)> {
        let (found, expected) = (records.len(), self.places.len());
        if found != expected {
            let delimiter = likely_delimiter(records, self.delimiter);
            return Err((None, Fault::Width { expected, found, delimiter }));
        }
        for &column in &self.chosen {
            inputs.push(parse(records.field(column)).map_err(|fault| (Some(column), fault))?);
        }
        Ok(())
    }
}

/// A stream of a model's inputs.
pub(super) struct CsvRows {
    cutter: Cutter,
    /// What was read to look for names, without them.
    first: Option<RawRows>,
    inputs: Arc<Inputs>,
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
        let taken = if text.pending { text.records.start } else { text.records.at };
        let lines = text.lines + text.block[..taken].iter().filter(|&&byte| byte == b'\n').count() as u64;
        text.block.drain(..taken);
        let columns = if chosen.is_some() { text.columns } else { layout.inputs };
        let chosen = chosen.unwrap_or_else(|| (0..columns).collect());
        let mut places = vec![None; columns];
        chosen.iter().enumerate().for_each(|(input, &column)| places[column] = Some(input));
        let inputs = Inputs { header: text.header, chosen, places, delimiter: text.delimiter };
        let mut first = RawRows::default();
        (first.bytes, first.lines) = (text.block, lines);
        Ok(Self { cutter: text.cutter, first: Some(first), inputs: Arc::new(inputs), total })
    }
}

impl Blocks for CsvRows {
    fn parser(&self) -> Arc<dyn Parse> {
        self.inputs.clone()
    }

    fn cut(&mut self, raw: &mut RawRows, least: usize) -> Result<bool> {
        if let Some(first) = self.first.take().filter(|first| !first.bytes.is_empty()) {
            *raw = first;
            return Ok(true);
        }
        raw.lines = self.cutter.next(&mut raw.bytes, least).context("cannot read on")?;
        Ok(!raw.bytes.is_empty())
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress { done: self.cutter.bytes, total: self.total, bytes: true }
    }
}

/// Which columns the model's inputs are, by name; `None` when they are taken as they come.
pub(super) fn choose(header: &[String], layout: &Layout) -> Result<Option<Vec<usize>>> {
    let Some(names) = &layout.names else {
        if header.len() != layout.inputs {
            let (found, inputs) = (header.len(), layout.inputs);
            bail!(
                "the file has {}, the model takes {}: keep only its inputs",
                counted(found, "column"),
                counted(inputs, "value")
            );
        }
        return Ok(None);
    };
    if names.len() != layout.inputs {
        let (named, inputs) = (names.len(), layout.inputs);
        bail!(
            "--columns names {}, the model takes {}: name one for each of them",
            counted(named, "column"),
            counted(inputs, "value")
        );
    }
    let missing: Vec<&String> = names.iter().filter(|name| !header.contains(name)).collect();
    if !missing.is_empty() {
        let count = match missing.len() {
            1 => String::new(),
            all => format!(" ({all} of its {} inputs are missing)", names.len()),
        };
        bail!(
            "no column is called {}, which the model takes{count}: rename the columns, or use --by-position",
            quoted(&missing)
        );
    }
    let place = |name: &String| {
        let mut found = header.iter().enumerate().filter(|(_, column)| *column == name).map(|(i, _)| i);
        match (found.next(), found.next()) {
            (Some(i), None) => Ok(i),
            _ => bail!("two columns are called `{name}`: keep one, or use --by-position"),
        }
    };
    names.iter().map(place).collect::<Result<_>>().map(Some)
}

#[inline]
fn parse(field: &[u8]) -> Result<f32, Fault> {
    if field.is_empty() {
        return Err(Fault::Missing);
    }
    number::finite(field).map_err(|found| match found {
        Some(_) => Fault::NonFinite(shown(field)),
        None => Fault::Text(shown(field)),
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn rows_are_those_of_the_crate_csv_and_the_standard_library() {
        let mut random = Random::new(1, "rows");
        let words = [
            "1",
            "-2.5",
            "0.1",
            "12345678.75",
            "1e3",
            " 4",
            "\"5\"",
            "",
            "x",
            "6 ",
            "7,8",
            "+1",
            "nan",
            "\r9",
        ];
        let mut kinds = [0; 2];
        for _ in 0..20_000 {
            // Most rows are of the usual kind.
            let odd = random.below(4) == 0;
            let mut text = String::from("a,b,c\n");
            for _ in 0..random.below(4) {
                for column in 0..3 {
                    text += words[random.below(if odd { words.len() } else { 4 })];
                    text += if column < 2 { "," } else { ["\n", "\r\n", "\n\n"][random.below(3)] };
                }
            }
            let names = [None, Some(["c", "a"]), Some(["b", "c"])][random.below(3)];
            let names = names.map(|names| names.map(str::to_owned).to_vec());
            let inputs = names.as_ref().map_or(3, Vec::len);
            let layout = Layout { inputs, names: names.clone(), text: TextFormat::default() };
            let reader = std::io::Cursor::new(text.clone().into_bytes());
            let mut rows = CsvRows::new(Box::new(reader), None, &layout).unwrap();
            let (mut raw, mut found) = (RawRows::default(), ParsedRows::default());
            let (mut values, mut bad, mut before) = (Vec::new(), Vec::new(), 0);
            while rows.cut(&mut raw, 1).unwrap() {
                rows.inputs.parse(&raw, &mut found);
                values.append(&mut found.inputs);
                bad.extend(found.bad.iter().map(|(at, _)| before + at));
                before += found.count;
            }
            let chosen = names
                .map_or(vec![0, 1, 2], |names| names.iter().map(|name| "abc".find(name).unwrap()).collect());
            let mut expected = (Vec::new(), Vec::new());
            let mut reader =
                csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
            for (at, record) in reader.records().map(Result::unwrap).enumerate() {
                let number =
                    |&column: &usize| record.get(column)?.parse::<f32>().ok().filter(|x| x.is_finite());
                let row: Option<Vec<f32>> = chosen.iter().map(number).collect();
                match row.filter(|_| record.len() == 3) {
                    Some(row) => expected.0.extend(row),
                    None => {
                        expected.0.extend(vec![0.0; inputs]);
                        expected.1.push(at);
                    }
                }
            }
            kinds[usize::from(odd)] += 1;
            assert_eq!((values, bad), expected, "{text:?}");
        }
        assert!(kinds.iter().all(|&kind| kind > 1000), "{kinds:?}");
    }
}
