//! Blocks of rows that are read and scored together.

use dab_core::InputError;

use super::Scorer;
use crate::data::rows::{BadRow, Parse, ParsedRows, RawRows};

/// Rows that are scored together.
#[derive(Default)]
pub struct Block {
    /// As they lie in the file.
    pub raw: RawRows,
    rows: ParsedRows,
    /// What the model says of them, or as far as it came.
    pub lines: Vec<u8>,
    /// How many rows that is.
    pub count: usize,
    /// Bad rows, and how many bytes of `lines` stand before each. Rows are counted from 1 in the block.
    pub bad: Vec<(usize, BadRow)>,
    /// Why it did not come further.
    pub end: Option<End>,
}

/// Why a block was not scored to its end.
pub enum End {
    /// The last of the bad rows ends the run.
    Bad,
    /// The model refuses an input.
    Input(InputError),
}

impl Block {
    /// Reads and scores the rows, without lines for bad ones: only the thread that has all blocks knows their numbers in the file.
    pub fn score(&mut self, parser: &dyn Parse, scorer: &mut Scorer<'_>, skip_bad: bool) {
        parser.parse(&self.raw, &mut self.rows);
        std::mem::swap(&mut scorer.lines, &mut self.lines);
        scorer.lines.clear();
        self.bad.clear();
        (self.count, self.end) = (0, None);
        let mut bad = std::mem::take(&mut self.rows.bad).into_iter().peekable();
        for (at, input) in self.rows.inputs.chunks_exact(scorer.inputs()).enumerate() {
            self.count += 1;
            if let Some((_, row)) = bad.next_if(|(place, _)| *place == at) {
                self.bad.push((scorer.lines.len(), row));
                self.end = (!skip_bad).then_some(End::Bad);
            } else {
                self.end = scorer.line(input).err().map(End::Input);
            }
            if self.end.is_some() {
                break;
            }
        }
        std::mem::swap(&mut scorer.lines, &mut self.lines);
    }
}
