//! Choosing on classes that lie on a circle.

use super::*;
use crate::support::random::Random;

/// Classes on a circle, two columns of signal and six of noise.
pub(super) fn ring(rows: usize, classes: u32, unit: f32) -> (Table, Vec<u32>) {
    let mut random = Random::new(1, "choose");
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % classes).collect();
    let row = |&label: &u32| {
        let angle = std::f32::consts::TAU * label as f32 / classes as f32;
        let mut row = [(); 8].map(|()| random.normal() as f32);
        row[0] += 8.0 * angle.cos();
        row[1] += 8.0 * angle.sin();
        row[2] *= unit;
        row
    };
    (Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap(), labels)
}

fn rows(labels: &[u32], classes: usize) -> Rows {
    let counts = crate::data::count_labels(labels, classes);
    Rows { inputs: 8, outputs: classes, counts, strings: 64, int8: false }
}

fn wish(flash: Option<u64>) -> Wish {
    Wish { flash, time: None, own_head: false, seed: 0 }
}

#[test]
fn hidden_classes_are_found_and_the_choice_repeats() {
    let (inputs, labels) = ring(600, 6, 1.0);
    let choose = || choose(&inputs, &labels, &rows(&labels, 6), &wish(Some(32 << 10)), &|_, _| ()).unwrap();
    let choice = choose();
    // All hidden rows, two thirds of the strangers, and half of the others: where six columns of eight are noise, chimeras of
    // two rows of one class are like any row.
    assert!(choice.auroc.unwrap() > 0.85, "{choice:?}");
    let all = folds::folds(&inputs, &labels, &rows(&labels, 6), 0);
    for fold in &all {
        let size = fold.rows.size(Norm::Raw, None, Filling::Single);
        let [known, hidden] = judge(fold, Norm::Raw, &[0.1], &[size], 0).unwrap()[0]
            .clone()
            .unwrap()
            .surprise(Form::Distance)
            .unwrap();
        let classes = hidden[..100].to_vec();
        assert!(judge::auroc(&[&[known, classes]]).unwrap() > 0.99);
    }
    assert!(choice.bytes <= 32 << 10 && !choice.views.is_empty() && choice.views.len() <= 3, "{choice:?}");
    assert_eq!(choice.curve.iter().filter(|point| point.chosen).count(), 1);
    assert!(choice.curve.windows(2).all(|pair| pair[0].bytes < pair[1].bytes), "{:?}", choice.curve);
    assert_eq!(choice, choose());
}

#[test]
fn columns_of_different_units_are_standardised() {
    let (inputs, labels) = ring(300, 3, 1000.0);
    assert_eq!(norms(&inputs), [Norm::Columns]);
    let choice = choose(&inputs, &labels, &rows(&labels, 3), &wish(None), &|_, _| ()).unwrap();
    assert!(choice.views.iter().all(|view| view.norm == Norm::Columns), "{choice:?}");
    let fast = fixed(&inputs, &rows(&labels, 3), &wish(Some(16 << 10)), "why").unwrap();
    assert_eq!((fast.views.len(), fast.views[0].form, fast.auroc), (1, Form::Distance, None));
}

#[test]
fn few_rows_take_fixed_views() {
    for count in [3, 8, 12, 40] {
        let (inputs, labels) = ring(count, 3, 1.0);
        let known = rows(&labels, 3);
        let choice = choose(&inputs, &labels, &known, &wish(None), &|_, _| ()).unwrap();
        let clusters = choose_clusters(
            &inputs,
            &Rows { outputs: 1, counts: vec![count], ..known },
            &wish(None),
            &|_, _| (),
        );
        // A fourth of two classes is too little to judge by.
        assert_eq!(choice.folds > 0, count == 40, "{choice:?}");
        assert!(!choice.views.is_empty() && !clusters.unwrap().views.is_empty());
    }
}

#[test]
fn two_classes_leave_no_decoder_to_judge() {
    let (inputs, labels) = ring(300, 2, 1.0);
    let choice = choose(&inputs, &labels, &rows(&labels, 2), &wish(Some(64 << 10)), &|_, _| ()).unwrap();
    assert!(choice.views.iter().all(|view| view.form == Form::Distance), "{choice:?}");
}

#[test]
fn columns_that_belong_together_are_whitened_where_two_classes_say_nothing() {
    // Both columns vary much, and nearly together: rows of one class tell nothing about that, chimeras do.
    let mut random = Random::new(2, "choose");
    let labels: Vec<u32> = (0..400).map(|row| row % 2).collect();
    let row = |&label: &u32| {
        let both = 3.0 * random.normal() as f32;
        [both + 0.1 * random.normal() as f32, both + 0.1 * random.normal() as f32 + 0.5 * label as f32]
    };
    let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
    let known = Rows { inputs: 2, ..rows(&labels, 2) };
    let choice = choose(&inputs, &labels, &known, &wish(Some(64 << 10)), &|_, _| ()).unwrap();
    assert!(choice.views.iter().any(|view| view.ridge < WHITENS), "{choice:?}");
    let kinds: Vec<_> =
        choice.views.iter().map(|view| (view.norm, view.ridge < WHITENS, view.local)).collect();
    assert!(kinds.iter().enumerate().all(|(at, kind)| !kinds[..at].contains(kind)), "{choice:?}");
}

#[test]
fn distances_count_locally_where_rows_of_some_classes_lie_densely() {
    // Two grids of eight classes, far from one another; everything in one of them is so many times as small.
    let chosen = |size: f32| {
        let mut random = Random::new(6, "choose");
        let labels: Vec<u32> = (0..960).map(|row| row % 16).collect();
        let row = |&label: &u32| {
            let (size, from) = if label < 8 { (1.0, 0.0) } else { (size, 40.0) };
            let mut near = |at: u32| from + size * (4.0 * at as f32 + random.normal() as f32);
            [near(label % 2), near(label / 2 % 2), near(label / 4 % 2), near(0)]
        };
        let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
        let known = Rows { inputs: 4, ..rows(&labels, 16) };
        let choice = choose(&inputs, &labels, &known, &wish(Some(64 << 10)), &|_, _| ()).unwrap();
        let found = |local: bool| {
            let own = choice.candidates.iter().filter(|one| (one.filling == Filling::Local) == local);
            own.map(|one| one.auroc).fold(0.0, f64::max)
        };
        (choice.views.iter().any(|view| view.local), found(true) - found(false))
    };
    let (local, gain) = chosen(0.1);
    assert!(local && gain > 0.01, "{local} {gain}");
    // Where all are alike nothing is gained, and the plain ones are taken.
    let (local, gain) = chosen(1.0);
    assert!(!local && gain < select::TIE, "{local} {gain}");
}

#[test]
fn views_grow_without_another_one_where_the_flash_is_what_limits_them() {
    let known = |each: usize| Rows { inputs: 8, outputs: 4, counts: vec![each; 4], strings: 64, int8: false };
    let view = |filling| Candidate::untried(Norm::Columns, 1.0, filling, Form::Distance);
    let (single, full) = (view(Filling::Single), view(Filling::Full));
    let flash = Some(32 << 10);
    assert!(would_grow(&[full], &known(5000), flash), "codes that have no room beside another view");
    assert!(would_grow(&[single, full], &known(5000), flash), "one of them is enough");
    assert!(!would_grow(&[full], &known(20), flash), "every row is a code anyway");
    assert!(!would_grow(&[single], &known(5000), flash), "one code a class on every axis");
    assert!(would_grow(&[single], &known(5000), Some(5 << 10)), "axes that have no room beside another view");
    assert!(!would_grow(&[full], &known(5000), None), "no limit");
}

#[test]
fn a_wrong_gain_is_seen_although_length_one_finds_all_hidden_classes() {
    // Classes are directions, lengths say nothing.
    let mut random = Random::new(3, "choose");
    let labels: Vec<u32> = (0..600).map(|row| row % 6).collect();
    let row = |&label: &u32| {
        let length = (1.0 + 3.0 * random.uniform()) as f32;
        let mut row = [(); 8].map(|()| 0.05 * random.normal() as f32);
        row[label as usize] += 1.0;
        row.map(|x| length * x)
    };
    let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
    let choice = choose(&inputs, &labels, &rows(&labels, 6), &wish(Some(64 << 10)), &|_, _| ()).unwrap();
    assert_eq!(choice.views[0].norm, Norm::L2, "{choice:?}");
    assert!(choice.views.len() > 1 && choice.views.iter().any(|view| view.norm != Norm::L2), "{choice:?}");
}

#[test]
fn no_time_judges_one_fold_and_no_flash_is_an_error() {
    let (inputs, labels) = ring(300, 5, 1.0);
    let wish = Wish { time: Some(Duration::ZERO), ..wish(Some(64 << 10)) };
    let choice = choose(&inputs, &labels, &rows(&labels, 5), &wish, &|_, _| ()).unwrap();
    assert_eq!(choice.folds, 1);
    let said = choice.reasons.join("\n");
    assert!(said.contains("were judged by 1 fold of training rows"), "{said}");
    assert!(said.contains("stopped after 1 of 20 folds (--time)"), "{said}");
    assert!(choice.curve.iter().all(|point| point.chosen) && said.contains("the curve of sizes"), "{said}");
    let none = Wish { flash: Some(4000), ..wish };
    let error = choose(&inputs, &labels, &rows(&labels, 5), &none, &|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("--flash"), "{error}");
}

#[test]
fn a_view_that_whitens_is_on_the_curve_where_some_axes_have_no_room() {
    let mut random = Random::new(4, "choose");
    let labels: Vec<u32> = (0..400).map(|row| row % 4).collect();
    let row = |&label: &u32| {
        let mut row = [(); 64].map(|()| random.normal() as f32);
        row[label as usize] += 8.0;
        row
    };
    let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
    let known = Rows { inputs: 64, ..rows(&labels, 4) };
    let (small, large) = (16 << 10, 128 << 10);
    let whitening = Candidate::untried(Norm::Columns, RIDGES[0], Filling::Full, Form::Distance);
    // The small file keeps some axes, and a ridge that does not lift noise.
    let view = |flash| views(&[whitening], &known, Some(flash)).unwrap().remove(0);
    assert_eq!((view(large).rank, view(large).ridge), (None, RIDGES[0]));
    assert!(view(small).rank.is_some() && view(small).ridge > WHITENS, "{:?}", view(small));
    let folds = folds::folds(&inputs, &labels, &known, 0);
    assert!(curve::joined(&folds, &[whitening], Some(small), 0).unwrap().is_some());
}

#[test]
fn raw_columns_join_a_regression_where_the_largest_ones_tell_strangers_and_the_first_view_stays_standardised()
{
    // Twelve columns of small noise, and three large ones in one unit, of which two give the third away.
    let rows = |large: f32| {
        let mut random = Random::new(5, "choose");
        let row = |_| {
            let mut row = [(); 15].map(|()| random.normal() as f32);
            let (a, b) = (4.0 * random.uniform() as f32 - 2.0, 4.0 * random.uniform() as f32 - 2.0);
            (row[12], row[13], row[14]) =
                (large * a, large * b, large * (a * b + 0.01 * random.normal() as f32));
            row
        };
        Table::from_rows(&(0..1500).map(row).collect::<Vec<_>>()).unwrap()
    };
    let chosen = |large: f32| {
        let inputs = rows(large);
        let known =
            Rows { inputs: 15, outputs: 1, counts: vec![plan::most_codes(1500)], strings: 64, int8: false };
        choose_clusters(&inputs, &known, &wish(Some(64 << 10)), &|_, _| ()).unwrap()
    };
    let norms = |choice: &Choice| choice.views.iter().map(|view| view.norm).collect::<Vec<_>>();
    let large = chosen(30.0);
    assert_eq!(norms(&large), [Norm::Columns, Norm::Raw], "{large:?}");
    assert!(large.bytes <= 64 << 10);
    // Where columns have one scale already, raw ones say nothing new; the first view stays.
    assert_eq!(norms(&chosen(1.0))[0], Norm::Columns);
}
