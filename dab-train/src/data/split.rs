//! Cutting a set in two: a random fraction goes aside.
//!
//! `Random` + fraction → (kept, taken), both in file order so that a table reads sequentially.
//! The classed cut takes the fraction of each class, and never the last example of one: a class
//! that training lacks cannot be learnt.

use serde::{Deserialize, Serialize};

use super::Targets;
use crate::support::random::Random;

/// Where the held-out part is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldOutFrom {
    /// The training images: the test set stays whole, p-values are optimistic.
    Train,
    /// The test images: p-values are honest.
    Test,
}

impl HeldOutFrom {
    /// Train, held-out and test: `cut` sets a part of one of the two aside.
    pub(super) fn cut<T>(self, train: T, test: T, cut: impl Fn(&T) -> (T, T)) -> (T, T, T) {
        match self {
            Self::Train => {
                let (kept, aside) = cut(&train);
                (kept, aside, test)
            }
            Self::Test => {
                let (kept, aside) = cut(&test);
                (train, aside, kept)
            }
        }
    }
}

impl Targets {
    /// Splits the examples, by class where there are classes.
    pub(crate) fn cut(&self, share: f64, random: &mut Random) -> (Vec<usize>, Vec<usize>) {
        match self {
            Self::Classes { labels, .. } => by_class(labels, share, random),
            Self::Regression(table) => fraction(table.rows, share, random),
        }
    }

    /// Deals the examples into `parts` parts, class by class where there are classes: see [`deal`].
    pub(crate) fn deal(&self, parts: usize, random: &mut Random) -> Vec<Vec<usize>> {
        match self {
            Self::Classes { labels, .. } => deal(labels, parts, random),
            Self::Regression(table) => deal(&vec![0; table.rows], parts, random),
        }
    }
}

/// Splits `0..n`; about `fraction · n` indices are taken.
pub(crate) fn fraction(n: usize, fraction: f64, random: &mut Random) -> (Vec<usize>, Vec<usize>) {
    let taken = ((n as f64 * fraction).round() as usize).min(n);
    let mut order = random.permutation(n);
    let mut taken = order.split_off(n - taken);
    order.sort_unstable();
    taken.sort_unstable();
    (order, taken)
}

/// The examples of each class.
fn members(labels: &[u32]) -> Vec<Vec<usize>> {
    let classes = labels.iter().max().map_or(0, |&m| m as usize + 1);
    let mut members = vec![Vec::new(); classes];
    for (i, &label) in labels.iter().enumerate() {
        members[label as usize].push(i);
    }
    members
}

/// Deals the examples into `parts` parts, each class in turn, so that every part has about as many of it. The only example of a class
/// is in no part: the others could not learn it.
fn deal(labels: &[u32], parts: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let (mut dealt, mut next) = (vec![Vec::new(); parts], 0);
    for class in members(labels).iter().filter(|class| class.len() > 1) {
        for &rank in &random.permutation(class.len()) {
            dealt[next % parts].push(class[rank]);
            next += 1;
        }
    }
    dealt.iter_mut().for_each(|part| part.sort_unstable());
    dealt
}

/// Splits the examples so that each class gives about `share` of its own.
pub(crate) fn by_class(labels: &[u32], share: f64, random: &mut Random) -> (Vec<usize>, Vec<usize>) {
    let members = members(labels);
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    for class in members.iter().filter(|class| !class.is_empty()) {
        let count = ((class.len() as f64 * share).round() as usize).min(class.len() - 1);
        for (rank, &i) in random.permutation(class.len()).iter().enumerate() {
            if rank < count { taken.push(class[i]) } else { kept.push(class[i]) }
        }
    }
    kept.sort_unstable();
    taken.sort_unstable();
    (kept, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_a_partition() {
        let (kept, taken) = fraction(768, 0.2, &mut Random::new(3, "split"));
        assert_eq!((kept.len(), taken.len()), (614, 154));
        let mut all = [kept, taken].concat();
        all.sort_unstable();
        assert_eq!(all, (0..768).collect::<Vec<_>>());
    }

    #[test]
    fn examples_are_dealt_evenly_and_no_class_is_lost() {
        let labels: Vec<u32> = [vec![0; 51], vec![1; 2], vec![2], vec![4; 7]].concat();
        let parts = deal(&labels, 5, &mut Random::new(1, "deal"));
        assert!(parts.iter().all(|part| part.len() == 12), "{parts:?}");
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..61).filter(|&i| i != 53).collect::<Vec<_>>());
        for part in &parts {
            let of = |class| part.iter().filter(|&&i| labels[i] == class).count();
            assert!((10..=11).contains(&of(0)) && of(1) < 2 && (1..=2).contains(&of(4)), "{part:?}");
        }
    }

    #[test]
    fn every_class_stays_in_training() {
        let labels: Vec<u32> = [vec![0; 50], vec![1; 50], vec![2]].concat();
        let (kept, taken) = by_class(&labels, 0.1, &mut Random::new(0, "split"));
        assert!(kept.contains(&100));
        assert_eq!(taken.iter().filter(|&&i| labels[i] == 0).count(), 5);
        assert_eq!(kept.len() + taken.len(), 101);
    }
}
