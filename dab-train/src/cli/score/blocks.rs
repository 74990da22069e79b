//! Blocks of rows, and the threads that score them.

use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result};
use dab_core::InputError;

use super::Scorer;
use crate::data::rows::{BadRow, RowError, RowReader};

/// Rows that are scored together.
pub struct Block {
    width: usize,
    /// Good rows, one behind the other; a bad one has its place too.
    inputs: Vec<f32>,
    /// What is wrong with each row.
    pub bad: Vec<Option<BadRow>>,
    /// What the model says of them, or as far as it came.
    pub lines: Vec<u8>,
    pub scored: Result<(), InputError>,
}

impl Block {
    pub const fn new(width: usize) -> Self {
        Self { width, inputs: Vec::new(), bad: Vec::new(), lines: Vec::new(), scored: Ok(()) }
    }

    /// Reads up to `limit` rows; whether there may be more. What was read before an error is in the block.
    pub fn fill(&mut self, rows: &mut RowReader, limit: usize, skip_bad: bool) -> Result<bool, RowError> {
        self.bad.clear();
        self.inputs.resize(limit * self.width, 0.0);
        for input in self.inputs.chunks_exact_mut(self.width) {
            match rows.next_into(input) {
                Ok(true) => self.bad.push(None),
                Ok(false) => return Ok(false),
                Err(RowError::Bad(row)) if skip_bad => self.bad.push(Some(row)),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// A thread that scores blocks, one after the other.
pub struct Worker {
    blocks: mpsc::Sender<Block>,
    scored: mpsc::Receiver<Block>,
}

impl Worker {
    pub fn start<'scope>(scope: &'scope thread::Scope<'scope, '_>, mut scorer: Scorer<'scope>) -> Self {
        let (blocks, work) = mpsc::channel::<Block>();
        let (answers, scored) = mpsc::channel();
        scope.spawn(move || {
            for mut block in work {
                std::mem::swap(&mut scorer.lines, &mut block.lines);
                block.scored = scorer.score(&block.inputs, &block.bad);
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
