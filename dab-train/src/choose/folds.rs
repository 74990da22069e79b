//! Leaving classes out: training rows alone, cut so that some classes play strangers.
//!
//! ```text
//! rows ≤ 4000 → hidden classes | known classes → 25 % familiar rows to judge by | the rest to fit
//! ```
//!
//! A hidden class says how well a class that is like the others is found. Chimeras, rows that have about half of their columns from
//! another row, say whether a view sees what holds between columns; where one class of two is hidden, and hardly anything is left
//! to tell apart, they are what keeps the choice sound.

use super::plan::Rows;
use crate::{
    data::{Scale, Table, count_labels, split},
    learn::kmeans,
    support::random::Random,
};

/// Rows that choosing looks at, at most.
const ROWS: usize = 4000;
/// Up to this many classes each is hidden in turn; more are hidden in `GROUPS` groups.
const EACH: usize = 10;
const GROUPS: usize = 5;
/// Share of the known classes' rows that judges.
const JUDGING: f64 = 0.25;
/// Sets of fewer rows than this are cut several times, up to `REPEATS`.
const FEW: usize = 2000;
const REPEATS: usize = 4;

/// Chimeras for each row of a hidden class.
const CHIMERAS: f64 = 0.5;

/// Fewer rows than this judge nothing.
const LEAST_KNOWN: usize = 4;

/// Clusters of the inputs of a regression: each is hidden in turn.
const CLUSTERS: usize = 5;

/// One cut.
#[derive(Clone, Debug)]
pub struct Fold {
    /// What fits.
    pub fit: Table,
    /// Which training rows these are.
    pub places: Vec<usize>,
    /// Its classes, numbered without gaps.
    pub labels: Vec<u32>,
    /// How many they are.
    pub classes: usize,
    /// Rows of the same classes that judge.
    pub known: Table,
    /// Which training rows these are.
    pub known_places: Vec<usize>,
    /// Their classes; none of a regression.
    pub known_labels: Vec<u32>,
    /// Rows of the hidden classes.
    pub hidden: Table,
    /// What is known about the fitting rows.
    pub rows: Rows,
}

/// About `rows` rows of all classes in their proportions, in order.
fn thinned(labels: &[u32], rows: usize, random: &mut Random) -> Vec<usize> {
    if labels.len() <= rows {
        return (0..labels.len()).collect();
    }
    split::by_class(labels, 1.0 - rows as f64 / labels.len() as f64, random).0
}

/// All cuts of training rows, about which `rows` is known; none when fewer than two classes have rows, or when these are too few.
pub fn folds(inputs: &Table, labels: &[u32], rows: &Rows, seed: u64) -> Vec<Fold> {
    let mut all = classes_left_out(inputs, labels, rows, seed);
    for (index, fold) in all.iter_mut().enumerate() {
        let count = (CHIMERAS * fold.hidden.rows as f64).ceil() as usize;
        let random = &mut Random::new(seed, &format!("fit/chimeras/{index}"));
        fold.hide(chimeras(&fold.known, count, random));
    }
    all
}

impl Fold {
    /// More strangers.
    fn hide(&mut self, strangers: Table) {
        self.hidden.rows += strangers.rows;
        self.hidden.values.extend(strangers.values);
    }
}

/// So many rows, each with about half of its columns from another row.
fn chimeras(rows: &Table, count: usize, random: &mut Random) -> Table {
    if rows.rows < 2 || rows.cols < 2 {
        return Table { rows: 0, cols: rows.cols, values: Vec::new() };
    }
    let mut values = Vec::with_capacity(count * rows.cols);
    for index in 0..count {
        let one = index % rows.rows;
        let other = (one + 1 + random.below(rows.rows - 1)) % rows.rows;
        let pairs = rows.row(one).iter().zip(rows.row(other));
        values.extend(pairs.map(|(&a, &b)| if random.below(2) == 0 { a } else { b }));
    }
    Table { rows: count, cols: rows.cols, values }
}

fn classes_left_out(inputs: &Table, labels: &[u32], rows: &Rows, seed: u64) -> Vec<Fold> {
    let chosen = thinned(labels, ROWS, &mut Random::new(seed, "fit/rows"));
    let of: Vec<u32> = chosen.iter().map(|&row| labels[row]).collect();
    let classes = of.iter().max().map_or(0, |&class| class as usize + 1);
    let present: Vec<u32> = (0..classes as u32).filter(|class| of.contains(class)).collect();
    if present.len() < 2 {
        return Vec::new();
    }
    let order = Random::new(seed, "fit/classes").permutation(present.len());
    let groups = if present.len() <= EACH { present.len() } else { GROUPS };
    let repeats = (FEW / chosen.len().max(1)).clamp(1, REPEATS);
    let mut all = Vec::new();
    for repeat in 0..repeats {
        for group in 0..groups {
            let part = group * order.len() / groups..(group + 1) * order.len() / groups;
            let hidden: Vec<u32> = order[part].iter().map(|&place| present[place]).collect();
            let mut random = Random::new(seed, &format!("fit/fold/{repeat}/{group}"));
            all.push(cut(inputs, &chosen, &of, &hidden, rows, &mut random));
        }
    }
    all.retain(|fold| fold.known.rows >= LEAST_KNOWN);
    all
}

/// Cuts of a regression's training rows: it has no classes, so clusters of its inputs play strangers, and rows that have one
/// column of another row: these lie among the others, but break what holds between columns. What is known are rows of one kind;
/// of so many rows, `most` says how many codes they may have.
pub fn clusters(inputs: &Table, rows: &Rows, most: impl Fn(usize) -> usize, seed: u64) -> Vec<Fold> {
    let standardised = Scale::fit(inputs).apply(inputs);
    let centres = kmeans::centres(&standardised, CLUSTERS, &mut Random::new(seed, "fit/clusters")).0;
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
    let nearest = |row| kmeans::least(centres.iter().map(|centre| distance(row, centre))) as u32;
    let labels: Vec<u32> = standardised.iter().map(nearest).collect();
    let mut all = classes_left_out(inputs, &labels, rows, seed);
    for (index, fold) in all.iter_mut().enumerate() {
        fold.labels.fill(0);
        fold.known_labels.clear();
        fold.classes = 1;
        fold.rows = Rows { counts: vec![most(fold.fit.rows)], ..rows.clone() };
        if inputs.cols > 1 {
            let broken = swapped(&fold.known, &mut Random::new(seed, &format!("fit/swapped/{index}")));
            fold.hide(broken);
        }
    }
    all
}

/// Every row with one column of another.
fn swapped(rows: &Table, random: &mut Random) -> Table {
    let mut broken = rows.clone();
    for row in 0..rows.rows {
        let (column, other) = (random.below(rows.cols), random.below(rows.rows));
        broken.values[row * rows.cols + column] = rows.row(other)[column];
    }
    broken
}

fn cut(
    inputs: &Table,
    chosen: &[usize],
    labels: &[u32],
    hidden: &[u32],
    all: &Rows,
    random: &mut Random,
) -> Fold {
    let (mut strangers, mut rows, mut classes) = (Vec::new(), Vec::new(), Vec::new());
    for (&row, &label) in chosen.iter().zip(labels) {
        if hidden.contains(&label) {
            strangers.push(row);
        } else {
            rows.push(row);
            classes.push(label);
        }
    }
    let mut names: Vec<u32> = classes.clone();
    names.sort_unstable();
    names.dedup();
    let number = |label: &u32| names.binary_search(label).unwrap_or(0) as u32;
    let dense: Vec<u32> = classes.iter().map(number).collect();
    let (fit, judge) = split::by_class(&dense, JUDGING, random);
    let labels: Vec<u32> = fit.iter().map(|&place| dense[place]).collect();
    let counts = count_labels(&labels, names.len());
    let select =
        |places: &[usize]| inputs.select(&places.iter().map(|&place| rows[place]).collect::<Vec<_>>());
    let known = Rows { outputs: names.len(), counts, ..all.clone() };
    Fold {
        fit: select(&fit),
        places: fit.iter().map(|&place| rows[place]).collect(),
        labels,
        classes: names.len(),
        known: select(&judge),
        known_places: judge.iter().map(|&place| rows[place]).collect(),
        known_labels: judge.iter().map(|&place| dense[place]).collect(),
        hidden: inputs.select(&strangers),
        rows: known,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::plan::most_codes, *};

    fn rows(count: usize, classes: u32) -> (Table, Vec<u32>) {
        let labels: Vec<u32> = (0..count as u32).map(|row| 10 * (row % classes)).collect();
        let values = labels.iter().enumerate().flat_map(|(row, &label)| [label as f32, row as f32]).collect();
        (Table { rows: count, cols: 2, values }, labels)
    }

    fn known(inputs: usize, outputs: usize, counts: Vec<usize>) -> Rows {
        Rows { inputs, outputs, counts, strings: 0, int8: false }
    }

    #[test]
    fn every_class_is_hidden_once_a_repeat_and_never_fits() {
        let (inputs, labels) = rows(900, 4);
        let folds = classes_left_out(&inputs, &labels, &known(2, 4, vec![225; 4]), 3);
        assert_eq!(folds.len(), 2 * 4);
        let mut hidden = [0; 4];
        for fold in &folds {
            let class = fold.hidden.row(0)[0];
            hidden[class as usize / 10] += 1;
            assert!(fold.hidden.iter().all(|row| row[0] == class));
            assert!(fold.fit.iter().chain(fold.known.iter()).all(|row| row[0] != class));
            assert_eq!(fold.fit.rows + fold.known.rows + fold.hidden.rows, 900);
            assert_eq!(
                (fold.classes, fold.rows.counts.len(), fold.rows.counts.iter().sum()),
                (3, 3, fold.fit.rows)
            );
        }
        assert_eq!(hidden, [2; 4]);
    }

    #[test]
    fn chimeras_are_made_of_two_known_rows() {
        let (inputs, labels) = rows(900, 4);
        let known = known(2, 4, vec![225; 4]);
        let (with, without) =
            (folds(&inputs, &labels, &known, 3), classes_left_out(&inputs, &labels, &known, 3));
        for (with, without) in with.iter().zip(&without) {
            let hidden = without.hidden.rows;
            assert_eq!((without.hidden.rows, with.hidden.rows), (225, 225 + 113));
            assert!(with.hidden.iter().take(hidden).eq(without.hidden.iter()));
            assert!((with.fit.clone(), with.known.clone()) == (without.fit.clone(), without.known.clone()));
            let is = |row: &[f32]| with.known.iter().any(|known| known == row);
            let made: Vec<&[f32]> = with.hidden.iter().skip(hidden).collect();
            // Both columns are those of known rows; about half of the rows have them from two.
            let has = |column: usize, value: f32| with.known.iter().any(|known| known[column] == value);
            assert!(made.iter().all(|row| has(0, row[0]) && has(1, row[1])));
            let strange = made.iter().filter(|row| !is(row)).count();
            assert!((20..90).contains(&strange), "{strange}");
        }
        let one = Table { rows: 4, cols: 1, values: vec![1.0, 2.0, 3.0, 4.0] };
        assert_eq!(chimeras(&one, 5, &mut Random::new(0, "one")).rows, 0);
    }

    #[test]
    fn clusters_of_a_regression_are_hidden_one_by_one() {
        let (inputs, _) = rows(2000, 5);
        let known = known(2, 1, vec![most_codes(2000)]);
        let folds = clusters(&inputs, &known, most_codes, 3);
        assert_eq!(folds.len(), CLUSTERS);
        // Each cluster once, and as many broken rows as judge.
        assert_eq!(folds.iter().map(|fold| fold.hidden.rows - fold.known.rows).sum::<usize>(), 2000);
        assert!(
            folds.iter().all(|fold| fold
                .places
                .iter()
                .zip(fold.fit.iter())
                .all(|(&at, row)| inputs.row(at) == row))
        );
        assert!(folds.iter().all(|fold| fold.classes == 1 && fold.labels == vec![0; fold.fit.rows]));
    }

    #[test]
    fn many_rows_are_thinned_and_many_classes_grouped() {
        let (inputs, labels) = rows(9000, 23);
        let all = known(2, 23, vec![391; 23]);
        let folds = classes_left_out(&inputs, &labels, &all, 0);
        assert_eq!(folds.len(), 5);
        let total = folds[0].fit.rows + folds[0].known.rows + folds[0].hidden.rows;
        assert!((3900..4100).contains(&total), "{total}");
        assert!(folds.iter().map(|fold| 23 - fold.classes).sum::<usize>() == 23);
        assert!(super::folds(&inputs, &vec![7; 9000], &all, 0).is_empty());
    }
}
