//! Work on row blocks by all cores, with results that do not depend on how many there are.
//!
//! rows → blocks of a fixed size → `map_blocks` → one result per block, in block order. The block size
//! is the caller's constant, so a sum over blocks has one order on every machine. A stream that has no end yet goes through
//! [`in_order`].

use std::{collections::VecDeque, ops::Range, sync::mpsc};

use anyhow::Result;
use rayon::prelude::*;

/// Applies `f` to the blocks `0..block`, `block..2·block`, … of `0..rows` and returns the results in
/// order. A panic in `f` is the caller's panic.
pub fn map_blocks<T: Send>(rows: usize, block: usize, f: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let block = block.max(1);
    (0..rows.div_ceil(block)).into_par_iter().map(|i| f(i * block..((i + 1) * block).min(rows))).collect()
}

/// Does `work` with each of `items`, on all cores, while this thread makes the next ones and gives the results to `take`, in their
/// order. At most `ahead` of them are under way. The first error of `take` ends it.
pub fn in_order<T: Send, U: Send>(
    items: impl Iterator<Item = T>,
    ahead: usize,
    work: impl Fn(T) -> U + Sync,
    mut take: impl FnMut(U) -> Result<()>,
) -> Result<()> {
    let (work, mut items) = (&work, items.fuse());
    rayon::in_place_scope(|scope| {
        let mut waiting = VecDeque::new();
        loop {
            for item in items.by_ref().take(ahead.max(1) - waiting.len()) {
                let (sender, receiver) = mpsc::sync_channel(1);
                // Nobody waits for it any more if an earlier one failed.
                scope.spawn(move |_| drop(sender.send(work(item))));
                waiting.push_back(receiver);
            }
            let Some(next) = waiting.pop_front() else { return Ok(()) };
            take(next.recv()?)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_in_order() {
        let sums = map_blocks(1003, 10, |rows| rows.sum::<usize>());
        assert_eq!(sums.len(), 101);
        assert_eq!((sums[0], sums[100]), (45, 1000 + 1001 + 1002));
        assert_eq!(sums.iter().sum::<usize>(), 1003 * 1002 / 2);
        assert!(map_blocks(0, 10, |rows| rows.len()).is_empty());
    }

    #[test]
    fn results_are_taken_in_order_up_to_the_first_error() {
        let mut taken = Vec::new();
        let mut take = |square: u64| {
            anyhow::ensure!(square < 400, "{square} is enough");
            taken.push(square);
            Ok(())
        };
        in_order(0..10, 3, |x: u64| x * x, &mut take).unwrap();
        let error = in_order(10.., 3, |x: u64| x * x, &mut take).unwrap_err();
        assert_eq!(error.to_string(), "400 is enough");
        assert_eq!(taken, (0..20).map(|x| x * x).collect::<Vec<u64>>());
    }
}
