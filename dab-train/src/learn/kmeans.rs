//! Where codes start: k-means++ on the encodings' means, refined by Lloyd's iterations.
//!
//! The published start, N(0, 0.1²) for every code, lets one code win everything before the others have moved.

use crate::support::random::Random;

/// Lloyd's iterations. Starts need no more: the alternating minimisation goes on from there.
const ITERATIONS: usize = 20;

fn square_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// The nearest centre and its squared distance.
fn nearest(point: &[f32], centres: &[Vec<f32>]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (index, centre) in centres.iter().enumerate() {
        let distance = square_distance(point, centre);
        if distance < best.1 {
            best = (index, distance);
        }
    }
    best
}

/// An index drawn with probability proportional to `weights`; the last one when they are all zero.
#[must_use]
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
#[must_use]
pub fn clusters(points: &[f32], dim: usize, codes: usize, random: &mut Random) -> Vec<usize> {
    let rows: Vec<&[f32]> = points.chunks_exact(dim).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut centres = vec![rows[random.below(rows.len())].to_vec()];
    let mut gaps: Vec<f64> = rows.iter().map(|row| square_distance(row, &centres[0])).collect();
    while centres.len() < codes {
        let centre = rows[weighted(&gaps, random)].to_vec();
        for (gap, row) in gaps.iter_mut().zip(&rows) {
            *gap = gap.min(square_distance(row, &centre));
        }
        centres.push(centre);
    }
    let mut member: Vec<usize> = Vec::new();
    for _ in 0..ITERATIONS {
        let next: Vec<usize> = rows.iter().map(|row| nearest(row, &centres).0).collect();
        if next == member {
            break;
        }
        member = next;
        let mut sums = vec![vec![0.0_f64; dim]; codes];
        let mut counts = vec![0_usize; codes];
        for (row, &code) in rows.iter().zip(&member) {
            counts[code] += 1;
            sums[code].iter_mut().zip(*row).for_each(|(sum, &v)| *sum += f64::from(v));
        }
        for ((centre, sum), &count) in centres.iter_mut().zip(&sums).zip(&counts) {
            if count > 0 {
                centre.iter_mut().zip(sum).for_each(|(c, s)| *c = (s / count as f64) as f32);
            }
        }
    }
    member
}

#[cfg(test)]
mod tests {
    use super::*;

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
