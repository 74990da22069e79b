//! How a mini-batch is cut into parts, and who computes which: devices of this process, and other processes.

use std::ops::Range;

use super::machines::Machines;

/// Which of all replicas, on all machines, are here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The first.
    pub first: usize,
    /// How many are here.
    pub here: usize,
    /// How many there are everywhere.
    pub all: usize,
}

/// How a mini-batch is cut into parts, which all replicas take in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    count: usize,
    parts: usize,
    share: Share,
}

impl Cut {
    /// A mini-batch of `count` rows; `accumulate` parts for each replica, as far as there are rows.
    pub fn new(count: usize, share: Share, accumulate: usize) -> Self {
        Self { count, parts: (share.all * accumulate.max(1)).min(count.max(1)), share }
    }

    /// Rows of the parts that a replica takes: parts are as equal as possible.
    pub fn parts_of(self, replica: usize) -> impl Iterator<Item = Range<usize>> {
        let rows = move |part: usize| part * self.count / self.parts..(part + 1) * self.count / self.parts;
        (replica..self.parts).step_by(self.share.all).map(rows)
    }

    /// All rows that this machine computes.
    pub fn rows_here(self) -> impl Iterator<Item = usize> {
        let Share { first, here, .. } = self.share;
        (first..first + here).flat_map(move |replica| self.parts_of(replica)).flatten()
    }
}

impl Share {
    /// The share of a machine with `here` replicas; the others have as many.
    pub fn of(here: usize, machines: Option<&Machines>) -> Self {
        let (index, count) = machines.map_or((0, 1), |machines| (machines.place.index, machines.place.count));
        Self { first: index * here, here, all: count * here }
    }
}

/// `f(0)`, …, `f(count − 1)`, each in a thread of its own; one alone stays in this one.
pub(super) fn threads<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if count == 1 {
        return vec![f(0)];
    }
    let f = &f;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|index| scope.spawn(move || f(index))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a replica's panic is the step's")).collect()
    })
}
