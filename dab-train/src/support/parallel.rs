//! Work on row blocks by all cores, with results that do not depend on how many there are.
//!
//! rows → blocks of a fixed size → `map_blocks` → one result per block, in block order. The block size
//! is the caller's constant, so a sum over blocks has one order on every machine.

use std::ops::Range;

use rayon::prelude::*;

/// Applies `f` to the blocks `0..block`, `block..2·block`, … of `0..rows` and returns the results in
/// order. A panic in `f` is the caller's panic.
pub fn map_blocks<T: Send>(rows: usize, block: usize, f: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let block = block.max(1);
    (0..rows.div_ceil(block)).into_par_iter().map(|i| f(i * block..((i + 1) * block).min(rows))).collect()
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
