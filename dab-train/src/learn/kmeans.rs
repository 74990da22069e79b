//! Where codes are: k-means++, refined by Lloyd's iterations.
//!
//! [`clusters`] gives RDFC its start, on the encodings' means: the published start, N(0, 0.1²) for every code, lets one code
//! win everything before the others have moved. [`centres`] gives a model without gradients its codes.

use std::cmp::Ordering;

use crate::{
    data::Table,
    support::{
        matrix::{View, product},
        random::Random,
    },
};

/// Lloyd's iterations. Starts need no more: the alternating minimisation goes on from there.
const ITERATIONS: usize = 20;
/// Lloyd's iterations of codes that stay where they are put: more did not pay.
const CENTRE_ITERATIONS: usize = 12;
/// Rows of one matrix product.
const BLOCK: usize = 1024;

fn square_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// An index drawn with probability proportional to `weights`; the last one when they are all zero.
pub fn weighted(weights: &[f64], random: &mut Random) -> usize {
    let mut left = random.uniform() * weights.iter().sum::<f64>();
    for (index, &weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return index;
        }
    }
    weights.len().saturating_sub(1)
}

/// Which of `codes` clusters each of `points` (rows of `dim`) belongs to. `O(points × codes × dim)` a round.
pub fn clusters(points: &[f32], dim: usize, codes: usize, random: &mut Random) -> Vec<usize> {
    let points = Table { rows: points.len() / dim, cols: dim, values: points.to_vec() };
    if points.rows == 0 {
        return Vec::new();
    }
    let mut centres = plus_plus(&points, codes, square_distance, random);
    lloyd(&points, &mut centres, ITERATIONS, |points, centres| {
        points
            .iter()
            .map(|point| least(centres.iter().map(|centre| square_distance(point, centre))))
            .collect()
    })
}

/// Up to `codes` centres of `points` with the number of points nearest to each. Points that are fewer than the codes are
/// their own centres.
///
/// ```text
/// argmin_c ‖x − c‖² = argmin_c ‖c‖² − 2 x·c
/// ```
pub fn centres(points: &Table, codes: usize, random: &mut Random) -> (Table, Vec<usize>) {
    if points.rows <= codes {
        return (points.clone(), vec![1; points.rows]);
    }
    let gap = |row: &[f32], centre: &[f32]| {
        f64::from(row.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum::<f32>())
    };
    let mut centres = plus_plus(points, codes, gap, random);
    lloyd(points, &mut centres, CENTRE_ITERATIONS, members);
    let counts = counts(&members(points, &centres), codes);
    // A centre that lost all its points describes nothing.
    let kept: Vec<usize> = (0..codes).filter(|&code| counts[code] > 0).collect();
    (centres.select(&kept), kept.iter().map(|&code| counts[code]).collect())
}

/// Puts each centre at the mean of its points until nothing changes, so many times at most. Gives whose point each one was.
fn lloyd(
    points: &Table,
    centres: &mut Table,
    rounds: usize,
    members: impl Fn(&Table, &Table) -> Vec<usize>,
) -> Vec<usize> {
    let (codes, dim) = (centres.rows, centres.cols);
    let mut member = Vec::new();
    for _ in 0..rounds {
        let next = members(points, centres);
        if next == member {
            break;
        }
        member = next;
        let mut sums = vec![0.0_f64; codes * dim];
        for (row, &code) in points.iter().zip(&member) {
            sums[code * dim..(code + 1) * dim].iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        for (code, count) in counts(&member, codes).into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let places = code * dim..(code + 1) * dim;
            let centre = &mut centres.values[places.clone()];
            centre.iter_mut().zip(&sums[places]).for_each(|(c, s)| *c = (s / count as f64) as f32);
        }
    }
    member
}

/// Where the least of some numbers is, the first among equals.
pub fn least<T: PartialOrd>(numbers: impl Iterator<Item = T>) -> usize {
    let order = |a: &(usize, T), b: &(usize, T)| a.1.partial_cmp(&b.1).unwrap_or(Ordering::Equal);
    numbers.enumerate().min_by(order).map_or(0, |(place, _)| place)
}

fn counts(member: &[usize], codes: usize) -> Vec<usize> {
    let mut counts = vec![0; codes];
    member.iter().for_each(|&code| counts[code] += 1);
    counts
}

/// Centres drawn from the points, each with probability proportional to its `gap` from those before it.
fn plus_plus(
    points: &Table,
    codes: usize,
    gap: impl Fn(&[f32], &[f32]) -> f64,
    random: &mut Random,
) -> Table {
    let mut chosen = points.row(random.below(points.rows)).to_vec();
    let mut values = chosen.clone();
    let mut gaps: Vec<f64> = points.iter().map(|row| gap(row, &chosen)).collect();
    for _ in 1..codes {
        chosen = points.row(weighted(&gaps, random)).to_vec();
        gaps.iter_mut().zip(points.iter()).for_each(|(least, row)| *least = least.min(gap(row, &chosen)));
        values.extend_from_slice(&chosen);
    }
    Table { rows: codes, cols: points.cols, values }
}

/// The nearest centre of each point, the first among equals.
fn members(points: &Table, centres: &Table) -> Vec<usize> {
    let (dim, codes) = (points.cols, centres.rows);
    let squares: Vec<f32> = centres.iter().map(|centre| centre.iter().map(|x| x * x).sum()).collect();
    let mut member = Vec::with_capacity(points.rows);
    let mut products = vec![0.0; BLOCK.min(points.rows) * codes];
    for block in points.values.chunks(BLOCK * dim) {
        let rows = block.len() / dim;
        let products = &mut products[..rows * codes];
        product(View::new(block, rows, dim), View::new(&centres.values, codes, dim).t(), products);
        for dots in products.chunks_exact(codes) {
            member.push(least(dots.iter().zip(&squares).map(|(dot, square)| square - 2.0 * dot)));
        }
    }
    member
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centres_sit_in_their_groups() {
        let mut random = Random::new(4, "points");
        let points: Vec<[f32; 2]> = (0..3000)
            .map(|i| [(i % 3) as f32 * 10.0 + random.normal() as f32, random.normal() as f32])
            .collect();
        let points = Table::from_rows(&points).unwrap();
        let wanted = |seed: u64| {
            let (found, counts) = centres(&points, 3, &mut Random::new(seed, "codes"));
            let mut places: Vec<f32> = found.iter().map(|centre| centre[0]).collect();
            places.sort_by(f32::total_cmp);
            let near =
                places.iter().zip([0.0, 10.0, 20.0]).all(|(place, wanted)| (place - wanted).abs() < 0.2);
            near && counts == [1000; 3]
        };
        // Two starts in one group are rare, and Lloyd's iterations cannot mend them.
        assert!((0..20).filter(|&seed| wanted(seed)).count() >= 17);
        let found = centres(&points, 3, &mut Random::new(1, "codes")).0;
        assert_eq!(found, centres(&points, 3, &mut Random::new(1, "codes")).0);
        let few = points.select(&[0, 1]);
        assert_eq!(centres(&few, 5, &mut Random::new(1, "codes")), (few, vec![1, 1]));
        let same = points.select(&[7; 9]);
        assert_eq!(centres(&same, 4, &mut Random::new(1, "codes")).1, [9]);
    }

    #[test]
    fn separate_groups_get_a_code_each() {
        let mut random = Random::new(3, "points");
        let points: Vec<f32> = (0..300)
            .flat_map(|i| [(i % 3) as f32 * 10.0 + random.normal() as f32, random.normal() as f32])
            .collect();
        for seed in 0..10 {
            let member = clusters(&points, 2, 3, &mut Random::new(seed, "codes"));
            assert!((0..300).all(|i| member[i] == member[i % 3]), "seed {seed}");
            assert!(member[0] != member[1] && member[1] != member[2] && member[0] != member[2]);
        }
    }

    #[test]
    fn fewer_points_than_codes_is_no_panic() {
        assert_eq!(clusters(&[1.0, 1.0], 1, 5, &mut Random::new(0, "codes")).len(), 2);
        assert!(clusters(&[], 1, 5, &mut Random::new(0, "codes")).is_empty());
    }
}
