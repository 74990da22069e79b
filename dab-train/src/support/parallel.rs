//! Work on row blocks by all cores, with results that do not depend on how many there are.
//!
//! rows → blocks of a fixed size → `map_blocks` → one result per block, in block order. The block size
//! is the caller's constant, so a sum over blocks has one order on every machine.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `f` to the blocks `0..block`, `block..2·block`, … of `0..rows` and returns the results in
/// order. A panic in `f` is the caller's panic.
pub fn map_blocks<T: Send>(rows: usize, block: usize, f: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let block = block.max(1);
    let blocks = rows.div_ceil(block);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(blocks);
    let range = |i: usize| i * block..((i + 1) * block).min(rows);
    if threads <= 1 {
        return (0..blocks).map(|i| f(range(i))).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(blocks));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= blocks {
                        return;
                    }
                    let result = f(range(i));
                    // A poisoned lock means that another block panicked; the scope reports that.
                    if let Ok(mut done) = done.lock() {
                        done.push((i, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, result)| result).collect()
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
}
