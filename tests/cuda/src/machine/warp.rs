//! What threads of a warp tell one another.

use super::{Block, LANES, Outcome, list, operand};
use crate::ptx::{
    Instruction,
    types::{cut, signed},
};

impl Block<'_> {
    /// One bit for each active lane of each warp where `chosen` holds.
    fn ballots(&self, chosen: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut ballots = vec![0; self.threads.div_ceil(LANES)];
        for &thread in self.active.iter().filter(|&&thread| chosen(thread)) {
            ballots[thread / LANES] |= 1 << (thread % LANES);
        }
        ballots
    }

    /// `shfl.sync`: another lane's value, and whether that lane is in the segment.
    pub(super) fn shuffle(&mut self, i: &Instruction) -> Outcome {
        let to = list(operand(i, 0)?);
        let (a, b, c) =
            (self.fetch(operand(i, 1)?)?, self.fetch(operand(i, 2)?)?, self.fetch(operand(i, 3)?)?);
        let mode = i
            .modifiers
            .words
            .iter()
            .map(String::as_str)
            .find(|word| ["up", "down", "bfly", "idx"].contains(word));
        let mode = mode.ok_or("is a shuffle that is not known")?;
        // The lane to read from, and whether it lies in the segment that c describes.
        let source = |thread: usize| {
            let lane = thread % LANES;
            let (by, clamp) = (b[thread] as usize & 31, c[thread] as usize & 31);
            let segment = c[thread] as usize >> 8 & 31;
            let most = lane & segment | clamp & !segment;
            let (from, inside) = match mode {
                "up" => (lane.wrapping_sub(by), lane >= by + most),
                "down" => (lane + by, lane + by <= most),
                "bfly" => (lane ^ by, lane ^ by <= most),
                _ => {
                    let from = lane & segment | by & !segment;
                    (from, from <= most)
                }
            };
            (thread - lane + if inside { from } else { lane }, inside)
        };
        let value = |thread: usize| a.get(source(thread).0).map_or(0, |&value| cut(value, 4));
        self.write(&to[0], value)?;
        if let Some(inside) = to.get(1) {
            self.write(inside, |thread| source(thread).1.into())?;
        }
        [a, b, c].into_iter().for_each(|row| self.give(row));
        Ok(())
    }

    /// `vote.sync`.
    pub(super) fn vote(&mut self, i: &Instruction) -> Outcome {
        let row = self.fetch(operand(i, 1)?)?;
        let (yes, all) = (self.ballots(|thread| row[thread] != 0), self.ballots(|_| true));
        let word = |word: &str| i.modifiers.has(word);
        let (ballot, every, any) = (word("ballot"), word("all"), word("any"));
        self.write(operand(i, 0)?, |thread| {
            let (yes, all) = (yes[thread / LANES], all[thread / LANES]);
            match (ballot, every, any) {
                (true, ..) => yes,
                (_, true, _) => u64::from(yes == all),
                (.., true) => u64::from(yes != 0),
                _ => u64::from(yes == 0 || yes == all),
            }
        })?;
        self.give(row);
        Ok(())
    }

    pub(super) fn active_mask(&mut self, i: &Instruction) -> Outcome {
        let all = self.ballots(|_| true);
        self.write(operand(i, 0)?, |thread| all[thread / LANES])
    }

    /// `redux.sync` of 32-bit whole numbers.
    pub(super) fn reduce(&mut self, i: &Instruction) -> Outcome {
        if i.ty.is_float() {
            return Err("is a reduction that is not known for this type".to_owned());
        }
        let row = self.fetch(operand(i, 1)?)?;
        let what = i.modifiers.words.iter().map(String::as_str).find(|word| *word != "sync").unwrap_or("");
        let is_signed = i.ty.is_signed();
        let both = |a: u64, b: u64| -> Outcome<u64> {
            let less = if is_signed { signed(a, 4) < signed(b, 4) } else { a < b };
            Ok(match what {
                "add" => cut(a + b, 4),
                "and" => a & b,
                "or" => a | b,
                "xor" => a ^ b,
                "min" => {
                    if less {
                        a
                    } else {
                        b
                    }
                }
                "max" => {
                    if less {
                        b
                    } else {
                        a
                    }
                }
                _ => return Err("is a reduction that is not known".to_owned()),
            })
        };
        let mut results = vec![None; self.threads.div_ceil(LANES)];
        for &thread in &self.active {
            let (result, value) = (&mut results[thread / LANES], cut(row[thread], 4));
            *result = Some(result.map_or(Ok(value), |so_far| both(so_far, value))?);
        }
        self.write(operand(i, 0)?, |thread| results[thread / LANES].unwrap_or(0))?;
        self.give(row);
        Ok(())
    }
}
