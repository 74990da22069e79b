//! Rows that should be fresh and are training rows over again: on them everything looks familiar, and p-values are too small.

use std::collections::{HashSet, hash_map::DefaultHasher};
use std::hash::Hasher;

use super::{Table, Task};

/// The share that is worth a word, of so many copies or more.
const MANY: f64 = 0.05;
const LEAST: usize = 5;

/// How many of so many `others` are rows of `train`, where that is worth a word.
pub(crate) fn many(train: &Table, others: &[&Table]) -> Option<(usize, usize)> {
    let place = |row: &[f32]| {
        let mut hasher = DefaultHasher::new();
        // 0 and −0 are one number.
        row.iter().for_each(|x| hasher.write_u32((x + 0.0).to_bits()));
        hasher.finish()
    };
    let trained: HashSet<u64> = train.iter().map(place).collect();
    let rows = || others.iter().flat_map(|table| table.iter());
    let (all, found) = (rows().count(), rows().filter(|row| trained.contains(&place(row))).count());
    (found >= LEAST && found as f64 > MANY * all as f64).then_some((found, all))
}

/// What a user should know about copies among the rows that test, and among those that calibrate.
pub(super) fn warnings(task: &Task, calibration: Option<&Table>) -> Vec<String> {
    let train = &task.train.inputs;
    let cut = many(train, &[&task.held_out.inputs, &task.test.inputs]).map(|(found, all)| {
        format!(
            "{found} of {all} held-out and test rows are copies of training rows: if fresh rows will not be, keep copies together \
             (--test, --calibration) or leave them out, or too many fresh rows will be called doubtful"
        )
    });
    let given = calibration.and_then(|rows| many(train, &[rows])).map(|(found, all)| {
        format!(
            "{found} of {all} calibration rows are copies of training rows: leave them out, or too many fresh rows will be called \
             doubtful"
        )
    });
    cut.into_iter().chain(given).collect()
}
