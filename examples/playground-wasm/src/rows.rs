//! Rows from comma-separated text, by csv-core, the parser of the csv crate.

use core::str;

use csv_core::{ReadRecordResult, Reader};

use crate::memory;

/// Most fields of a record: twice the most inputs of a model.
const MOST_FIELDS: usize = 1 << 17;

/// What a field holds.
#[derive(Clone, Copy, PartialEq)]
pub enum Field {
    /// A finite number.
    Number(f32),
    /// Nothing.
    Missing,
    /// No number.
    Text,
    /// NaN, infinite, or beyond f32.
    NonFinite,
}

impl Field {
    /// `dab score` reads a number so: as f32 at once, not by way of f64, which rounds twice.
    pub fn parse(field: &[u8]) -> Self {
        if field.is_empty() {
            return Self::Missing;
        }
        match str::from_utf8(field).ok().and_then(|text| text.parse::<f32>().ok()) {
            Some(number) if number.is_finite() => Self::Number(number),
            Some(_) => Self::NonFinite,
            None => Self::Text,
        }
    }
}

/// What comes next in a file.
pub enum Next {
    /// A record of that many fields.
    Record(usize),
    /// Nothing more.
    End,
    /// A record of more fields than a model can have inputs.
    TooWide,
}

/// A file of rows, and the record that was read last.
pub struct Rows {
    reader: Reader,
    file: &'static [u8],
    at: usize,
    /// The record's fields, one behind the other without quotes and separators.
    fields: &'static mut [u8],
    /// Where each of them ends.
    ends: &'static mut [usize],
    count: usize,
    line: u64,
    /// Bytes before this are in `line`.
    counted: usize,
}

impl Rows {
    /// The rows of a file; `None` when there is no memory for the longest record it may have.
    pub fn new(file: &'static [u8]) -> Option<Self> {
        let (fields, ends) = (memory::bytes(file.len())?, memory::numbers(MOST_FIELDS)?);
        Some(Self { reader: Reader::new(), file, at: 0, fields, ends, count: 0, line: 1, counted: 0 })
    }

    /// Reads the next record.
    pub fn next(&mut self) -> Next {
        // The reader passes over empty lines, and does not count all of them.
        let rest = self.file.get(self.at..).unwrap_or_default();
        let start = self.at + rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let passed = self.file.get(self.counted..start).unwrap_or_default();
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.counted = start;
        self.count = 0;
        let mut written = 0;
        loop {
            let file = self.file.get(self.at..).unwrap_or_default();
            let fields = self.fields.get_mut(written..).unwrap_or_default();
            let ends = self.ends.get_mut(self.count..).unwrap_or_default();
            let (result, read, bytes, fields) = self.reader.read_record(file, fields, ends);
            self.at += read;
            written += bytes;
            self.count += fields;
            match result {
                // No input left: called once more, with none, the reader ends the last record.
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record => return Next::Record(self.count),
                ReadRecordResult::End => return Next::End,
                // The fields of a record are never longer than the file.
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => return Next::TooWide,
            }
        }
    }

    /// Where the record begins, in lines from 1 on.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Bytes that were read so far.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Fields of the record.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Field `i` without the space around it; empty when there is none.
    pub fn field(&self, i: usize) -> &[u8] {
        let end = |i: usize| self.ends.get(..self.count).and_then(|ends| ends.get(i)).copied();
        let start = i.checked_sub(1).map_or(Some(0), end);
        let field = start.zip(end(i)).and_then(|(start, end)| self.fields.get(start..end));
        field.unwrap_or_default().trim_ascii()
    }
}
