//! CSV as bytes: cut into blocks of whole records, and a block into records and fields.
//!
//! ```text
//! one thread     bytes → Cutter → blocks that end where a record ends
//! any thread     block → Records → one record after another, its fields where they lie
//! ```
//!
//! The rules are those of RFC 4180, as the crate csv reads it: a field may be quoted if its first byte is a quote, two quotes
//! inside are one, `\n`, `\r` and `\r\n` end a record, and lines without a byte are no records. Bytes around a field that are
//! ASCII white space are left out.

use std::io::{self, Read};

use super::{READ, read_more};

const QUOTE: u8 = b'"';

const fn ends_record(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// Where in a field a byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next byte is the first of a field.
    Start,
    Plain,
    Quoted,
    /// Behind a quote in a quoted field: its end, or the first of two.
    Behind,
}

impl State {
    fn next(self, byte: u8, delimiter: u8) -> Self {
        match self {
            Self::Quoted if byte == QUOTE => Self::Behind,
            Self::Quoted => Self::Quoted,
            Self::Start | Self::Behind if byte == QUOTE => Self::Quoted,
            _ if byte == delimiter || ends_record(byte) => Self::Start,
            _ => Self::Plain,
        }
    }
}

/// Cuts a text into blocks of whole records.
pub(super) struct Cutter {
    reader: Box<dyn Read>,
    delimiter: u8,
    /// What was read behind the last block.
    rest: Vec<u8>,
    /// Why reading stopped, to be told behind the records before it.
    error: Option<io::Error>,
    ended: bool,
    /// Lines and bytes of the blocks so far.
    lines: u64,
    pub(super) bytes: u64,
}

impl Cutter {
    pub(super) fn new(reader: Box<dyn Read>, delimiter: u8) -> Self {
        Self { reader, delimiter, rest: Vec::new(), error: None, ended: false, lines: 0, bytes: 0 }
    }

    /// Brings the next records into `block`, as soon as they have `least` bytes; nothing at the end of the text. Returns how many
    /// lines were before them.
    /// When the text cannot be read on, the records before were in the blocks before.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, least: usize) -> io::Result<u64> {
        block.clear();
        std::mem::swap(block, &mut self.rest);
        let (mut seen, mut end, mut state) = (0, 0, State::Start);
        loop {
            self.look(&block[seen..], seen, &mut end, &mut state);
            seen = block.len();
            if end > 0 && end >= least || self.ended {
                break;
            }
            match read_more(&mut self.reader, block, READ) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => (self.ended, self.error) = (true, Some(error)),
            }
        }
        // Behind an error there may be half a record.
        let whole = if self.ended && self.error.is_none() { block.len() } else { end };
        if whole == 0
            && let Some(error) = self.error.take()
        {
            return Err(error);
        }
        self.rest.clear();
        self.rest.extend_from_slice(&block[whole..]);
        block.truncate(whole);
        let before = self.lines;
        self.lines += block.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.bytes += whole as u64;
        Ok(before)
    }

    /// Looks at bytes that begin `at` bytes into a block: where its last record ends, and the state behind them.
    fn look(&self, bytes: &[u8], at: usize, end: &mut usize, state: &mut State) {
        if *state != State::Quoted && !bytes.contains(&QUOTE) {
            // The usual case: every line is a record.
            if let Some(last) = bytes.iter().rposition(|&byte| byte == b'\n') {
                *end = at + last + 1;
            }
            if let Some(&last) = bytes.last() {
                *state = State::Plain.next(last, self.delimiter);
            }
            return;
        }
        for (i, &byte) in bytes.iter().enumerate() {
            *state = state.next(byte, self.delimiter);
            if byte == b'\n' && *state == State::Start {
                *end = at + i + 1;
            }
        }
    }
}

/// The records of a block, one at a time.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Where the next record may begin.
    pub at: usize,
    /// Where the current record begins.
    pub start: usize,
    /// Its fields, one behind the other and without quotes, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Records {
    /// Reads the next record of `block`. Returns whether there was one.
    pub(super) fn next(&mut self, block: &[u8], delimiter: u8) -> bool {
        self.bytes.clear();
        self.ends.clear();
        while block.get(self.at).is_some_and(|&byte| ends_record(byte)) {
            self.at += 1;
        }
        self.start = self.at;
        if self.at == block.len() {
            return false;
        }
        loop {
            if block.get(self.at) == Some(&QUOTE) {
                self.unquote(block, delimiter);
            }
            // Behind its closing quote, a field goes on as it is.
            let rest = &block[self.at..];
            let plain =
                rest.iter().position(|&byte| byte == delimiter || ends_record(byte)).unwrap_or(rest.len());
            self.bytes.extend_from_slice(&rest[..plain]);
            self.ends.push(self.bytes.len());
            self.at += plain;
            let end = block.get(self.at).copied();
            self.at += usize::from(end.is_some());
            if end != Some(delimiter) {
                return true;
            }
        }
    }

    /// Takes a quoted field in, up to its closing quote.
    fn unquote(&mut self, block: &[u8], delimiter: u8) {
        let mut state = State::Start;
        while let Some(&byte) = block.get(self.at) {
            let next = state.next(byte, delimiter);
            match (state, next) {
                (State::Behind, State::Start | State::Plain) => break,
                (State::Quoted, State::Quoted) | (State::Behind, State::Quoted) => self.bytes.push(byte),
                _ => {}
            }
            state = next;
            self.at += 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field of the record; empty where there is none.
    pub(super) fn field(&self, column: usize) -> &[u8] {
        let Some(&end) = self.ends.get(column) else { return &[] };
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes[start..end].trim_ascii()
    }

    pub(super) fn lines_before(&self, block: &[u8]) -> u64 {
        block[..self.start].iter().filter(|&&byte| byte == b'\n').count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    /// The records of a text, read in pieces of so many bytes and cut into blocks of at least so many.
    fn records(text: &[u8], piece: usize, least: usize) -> Vec<Vec<Vec<u8>>> {
        struct Pieces(io::Cursor<Vec<u8>>, usize);
        impl Read for Pieces {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                let most = self.1.min(to.len());
                self.0.read(&mut to[..most])
            }
        }
        let mut cutter = Cutter::new(Box::new(Pieces(io::Cursor::new(text.to_vec()), piece)), b',');
        let (mut found, mut block) = (Vec::new(), Vec::new());
        loop {
            cutter.next(&mut block, least).unwrap();
            if block.is_empty() {
                return found;
            }
            let mut records = Records::default();
            while records.next(&block, b',') {
                found.push((0..records.len()).map(|at| records.field(at).to_vec()).collect());
            }
        }
    }

    #[test]
    fn records_are_those_of_the_crate_csv_however_a_text_is_cut() {
        let mut random = Random::new(1, "csv");
        for _ in 0..20_000 {
            let length = random.below(24);
            let text: Vec<u8> = (0..length).map(|_| b"12a,\"\"\n\n\r  "[random.below(11)]).collect();
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .trim(csv::Trim::All)
                .from_reader(text.as_slice());
            let expected: Vec<Vec<Vec<u8>>> = reader
                .byte_records()
                .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
                .collect();
            for (piece, least) in [(100, 100), (1, 0), (3, 5)] {
                let found = records(&text, piece, least);
                assert_eq!(found, expected, "{:?}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn a_text_that_breaks_off_gives_its_whole_records_first() {
        struct Broken(usize);
        impl Read for Broken {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                match self.0 {
                    1 => {
                        to[..6].copy_from_slice(b"1\n2\n34");
                        Ok(6)
                    }
                    _ => Err(io::ErrorKind::ConnectionReset.into()),
                }
            }
        }
        let (mut cutter, mut block) = (Cutter::new(Box::new(Broken(0)), b','), Vec::new());
        assert_eq!(cutter.next(&mut block, 100).unwrap(), 0);
        assert_eq!(block, b"1\n2\n");
        assert_eq!(cutter.next(&mut block, 100).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}
