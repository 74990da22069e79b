//! Blocks of rows, and the threads that read and score them.

use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use dab_core::InputError;

use super::Scorer;
use crate::data::rows::{BadRow, ParsedRows, RawRows, RowParser};

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

/// A thread that scores blocks, one after the other.
pub struct Worker {
    blocks: mpsc::Sender<Block>,
    scored: mpsc::Receiver<Block>,
}

impl Worker {
    pub fn start<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        parser: RowParser,
        mut scorer: Scorer<'scope>,
        skip_bad: bool,
    ) -> Self {
        let (blocks, work) = mpsc::channel::<Block>();
        let (answers, scored) = mpsc::channel();
        scope.spawn(move || {
            for mut block in work {
                parser.parse(&block.raw, &mut block.rows);
                std::mem::swap(&mut scorer.lines, &mut block.lines);
                block.score(&mut scorer, skip_bad);
                std::mem::swap(&mut scorer.lines, &mut block.lines);
                if answers.send(block).is_err() {
                    break;
                }
            }
        });
        Self { blocks, scored }
    }

    pub fn ask(&self, block: Block) -> Result<()> {
        self.blocks.send(block).ok().context("a thread that scores has ended")
    }

    pub fn answer(&self) -> Result<Block> {
        self.scored.recv().context("a thread that scores has ended")
    }
}

impl Block {
    /// Scores the rows into the scorer's lines, without those of bad rows: only the thread that has all blocks knows their numbers
    /// in the file.
    fn score(&mut self, scorer: &mut Scorer<'_>, skip_bad: bool) {
        scorer.lines.clear();
        self.bad.clear();
        (self.count, self.end) = (0, None);
        let mut bad = std::mem::take(&mut self.rows.bad).into_iter().peekable();
        for (at, input) in self.rows.inputs.chunks_exact(scorer.inputs()).enumerate() {
            self.count += 1;
            if let Some((_, row)) = bad.next_if(|(place, _)| *place == at) {
                self.bad.push((scorer.lines.len(), row));
                if !skip_bad {
                    self.end = Some(End::Bad);
                    return;
                }
            } else if let Err(error) = scorer.line(input) {
                self.end = Some(End::Input(error));
                return;
            }
        }
    }
}
