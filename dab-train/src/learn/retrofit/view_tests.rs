//! Views of rows that are made here.

use super::*;
use crate::support::random::Random;

fn rows(count: usize) -> (Table, Vec<u32>) {
    let mut random = Random::new(8, "view");
    let labels: Vec<u32> = (0..count as u32).map(|i| i % 3).collect();
    let row = |&label: &u32| [(); 5].map(|()| 3.0 * label as f32 + random.normal() as f32);
    (Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap(), labels)
}

#[test]
fn matrix_products_give_the_uncertainty_of_the_plain_sum() {
    let (inputs, labels) = rows(600);
    for (norm, local) in [(Norm::Raw, false), (Norm::Columns, true), (Norm::L2, false), (Norm::L2, true)] {
        let config = ViewConfig { norm, ridge: 0.1, codes: 4, local, ..ViewConfig::default() };
        let view = Fitted::fit(&config, &inputs, &labels, 3, 0).unwrap();
        assert_eq!((view.codes.means.rows, view.head.outputs()), (12, 5));
        assert!((view.codes.priors.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert_eq!(view.codes.precisions.len(), if local { 12 } else { 0 });
        let fast = view.codes.uncertainty(&view.latent(&inputs), &[], config.alpha);
        for (a, b) in fast.iter().zip(view.exact(&inputs)) {
            assert!((a - b).abs() < 1e-3 * b.max(1.0), "{norm:?}: {a} {b}");
        }
        assert_eq!(view, Fitted::fit(&config, &inputs, &labels, 3, 0).unwrap());
        // What lies outside of the axes is another axis along which codes are at 0.
        let latent = view.latent(&inputs);
        let outside: Vec<f32> = (0..inputs.rows).map(|row| row as f32 / 100.0).collect();
        let beside = view.codes.uncertainty(&latent, &outside, config.alpha);
        let mut wide = view.clone();
        wide.widen();
        let rows: Vec<Vec<f32>> =
            latent.iter().zip(&outside).map(|(z, o)| [z, &[(2.0 * o).sqrt()]].concat()).collect();
        let wide = wide.codes.uncertainty(&Table::from_rows(&rows).unwrap(), &[], config.alpha);
        assert!(beside.iter().zip(wide).all(|(a, b)| (a - b).abs() < 1e-3 * b.max(1.0)));
    }
}

#[test]
fn many_codes_are_whitened_by_what_varies_around_them() {
    // One class in two clusters that are 100 apart; rows of each vary by 1 and by 3.
    let mut random = Random::new(9, "around");
    let row =
        |index: usize| [100.0 * (index % 2) as f32 + random.normal() as f32, 3.0 * random.normal() as f32];
    let inputs = Table::from_rows(&(0..400).map(row).collect::<Vec<_>>()).unwrap();
    let labels = vec![0; 400];
    let apart = |each: usize| {
        let whole = Spread::fit(&inputs, &labels, 1).unwrap();
        let spread = spread_around(whole, &inputs, (&labels, 1), each, 0).unwrap();
        let z = spread.whitening(0.0, None).apply(&inputs);
        let mean = |first: usize, axis: usize| {
            (first..400).step_by(2).map(|row| z.row(row)[axis]).sum::<f32>() / 200.0
        };
        (0..2).map(|axis| (mean(1, axis) - mean(0, axis)).powi(2)).sum::<f32>().sqrt()
    };
    // In standard deviations of the class they are 2 apart; of what varies around two or more codes, 100 or more.
    assert!((apart(1) - 2.0).abs() < 0.1, "{}", apart(1));
    assert!(apart(2) > 90.0 && apart(40) > 90.0, "{} {}", apart(2), apart(40));
}

#[test]
fn a_lifted_view_never_says_zero_and_keeps_its_order() {
    let (inputs, labels) = rows(60);
    // As many codes as rows: each row is one.
    let config = ViewConfig { norm: Norm::Columns, codes: 60, ..ViewConfig::default() };
    let mut view = Fitted::fit(&config, &inputs, &labels, 3, 0).unwrap();
    let before = view.exact(&inputs);
    view.lift(2.0);
    for (before, after) in before.iter().zip(view.exact(&inputs)) {
        assert!((after - before - 2.0).abs() < 1e-4, "{before} {after}");
    }
}

#[test]
fn a_column_that_never_moved_is_strange_when_it_does() {
    let (inputs, labels) = rows(600);
    for constant in [0.0, 1e-17, 7.0, -3e6] {
        let with = |row: &[f32], value: f32| -> Vec<f32> { row.iter().copied().chain([value]).collect() };
        let table = |value: f32| {
            Table::from_rows(&inputs.iter().map(|row| with(row, value)).collect::<Vec<_>>()).unwrap()
        };
        let config = ViewConfig { norm: Norm::Columns, ridge: 0.1, ..ViewConfig::default() };
        let view = Fitted::fit(&config, &table(constant), &labels, 3, 0).unwrap();
        let familiar = view.exact(&table(constant));
        let largest = familiar.iter().copied().fold(0.0, f32::max);
        // Ten units of what moves: the other columns have a deviation of about 2.6.
        let moved = if constant.abs() < 1.0 { 26.0 } else { 2.0 * constant };
        assert!(view.exact(&table(moved)).iter().all(|&u| u > 2.0 * largest), "{constant}: {largest}");
        // What rounding may do is not strange.
        let near = view.exact(&table(constant * (1.0 + 1e-6)));
        assert!(near.iter().zip(&familiar).all(|(a, b)| (a - b).abs() < 1e-2 * b.max(1.0)), "{constant}");
    }
}

#[test]
fn a_stranger_is_far_and_a_row_of_zeros_is_no_error() {
    let (inputs, labels) = rows(600);
    let config = ViewConfig { norm: Norm::Columns, ..ViewConfig::default() };
    let view = Fitted::fit(&config, &inputs, &labels, 3, 0).unwrap();
    let far = Table::from_rows(&[[-9.0, 9.0, -9.0, 9.0, -9.0], [0.0; 5]]).unwrap();
    let (inside, outside) = (view.exact(&inputs), view.exact(&far));
    let largest = inside.iter().copied().fold(0.0, f32::max);
    assert!(outside[0] > largest && outside[1].is_finite(), "{outside:?} {largest}");
}
