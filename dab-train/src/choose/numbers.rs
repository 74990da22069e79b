//! How numbers are predicted: by ridge regression, or by a network that learns for so many epochs.
//!
//! ```text
//! training rows → cuts: four fifths fit, a fifth judges → squared error of each candidate → Predictor
//! ```
//!
//! Held-out rows calibrate the model, so they judge nothing here. Learning has to earn its place: a network is taken only when
//! its squared errors are smaller, row by row, by more than one standard error of the mean difference.

use std::time::{Duration, Instant};

use anyhow::Result;
use burn::tensor::Device;

use crate::{
    config::defaults::{self, Wishes},
    data::{DataConfig, Scale, Split, Table, Targets},
    learn::{
        ridge::Ridge,
        run::{self, Setting},
    },
    support::{random::Random, text::counted},
};

/// Share of the training rows that judges.
const JUDGING: f64 = 0.2;
/// Sets of fewer rows than this are cut `CUTS` times, with other rows judging each time.
const FEW: usize = 1000;
const CUTS: usize = 3;
/// With fewer training rows than this nothing is tried: a fifth of them judges nothing.
const LEAST: usize = 40;
/// Divisors of the usual number of epochs: long training overfits small sets.
const SHORTER: [usize; 3] = [1, 4, 16];
/// Epochs, at least.
const LEAST_EPOCHS: usize = 4;

/// What predicts, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictor {
    /// Epochs of a network; none for ridge regression.
    pub epochs: Option<usize>,
    /// In sentences.
    pub reasons: Vec<String>,
}

/// Rows that fit, and rows that judge.
fn cuts(rows: usize, seed: u64) -> Vec<(Vec<usize>, Vec<usize>)> {
    let order = Random::new(seed, "fit/numbers").permutation(rows);
    let judging = (rows as f64 * JUDGING).round() as usize;
    let cut = |index: usize| {
        let part = index * judging..(index + 1) * judging;
        let fit = order.iter().enumerate().filter(|(place, _)| !part.contains(place)).map(|(_, &row)| row);
        (fit.collect(), order[part.clone()].to_vec())
    };
    (0..if rows < FEW { CUTS } else { 1 }).map(cut).collect()
}

/// (ŷ − y)² of every row, in units of the targets' variance, a mean over its targets.
fn errors(predicted: impl Fn(usize, usize) -> f64, targets: &Table, scale: &Scale) -> Vec<f64> {
    let row = |(row, wanted): (usize, &[f32])| {
        let each = wanted.iter().enumerate().map(|(column, &y)| {
            ((predicted(row, column) - f64::from(y)) / f64::from(scale.std[column])).powi(2)
        });
        each.sum::<f64>() / wanted.len().max(1) as f64
    };
    targets.iter().enumerate().map(row).collect()
}

fn regression(split: &Split) -> Result<&Table> {
    match &split.targets {
        Targets::Regression(table) => Ok(table),
        Targets::Classes { .. } => anyhow::bail!("classes are no numbers to predict"),
    }
}

/// Squared errors of a network that learns for `epochs`.
fn network(
    fit: &Split,
    judge: &Split,
    epochs: usize,
    scale: &Scale,
    seed: u64,
    device: &Device,
) -> Result<Vec<f64>> {
    let wishes = Wishes { epochs: Some(epochs), ..Wishes::default() };
    let experiment = defaults::experiment("candidate", seed, DataConfig::Memory, fit, wishes);
    let setting = Setting { seed, device: device.clone(), checkpoint: None, resume: false, machines: None };
    let learnt = run::train(&experiment, fit, &setting, &mut ())?;
    let outputs = learnt.trained.score(&judge.inputs, device)?.outputs;
    Ok(errors(|row, column| f64::from(outputs.row(row)[column]), regression(judge)?, scale))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Whether `other` is larger than `own` by more than one standard error of the mean difference.
fn clearly_smaller(own: &[f64], other: &[f64]) -> bool {
    let differences: Vec<f64> = other.iter().zip(own).map(|(other, own)| other - own).collect();
    let gain = mean(&differences);
    let variance = mean(&differences.iter().map(|d| (d - gain).powi(2)).collect::<Vec<_>>());
    gain > (variance / differences.len().max(1) as f64).sqrt()
}

/// Chooses what predicts the targets of training rows, in a file of `flash` bytes. After `time` no other network is begun.
///
/// # Errors
/// When the targets are no numbers, or learning fails.
pub fn predictor(
    train: &Split,
    seed: u64,
    flash: Option<u64>,
    time: Option<Duration>,
    device: &Device,
) -> Result<Predictor> {
    let begun = Instant::now();
    let late = || time.is_some_and(|time| begun.elapsed() > time);
    let (rows, targets) = (train.inputs.rows, regression(train)?);
    if rows < LEAST {
        let reasons = vec![format!("ridge regression: {rows} training rows are too few to try others")];
        return Ok(Predictor { epochs: None, reasons });
    }
    let scale = Scale::fit(targets);
    let usual = defaults::experiment("candidate", seed, DataConfig::Memory, train, Wishes::default());
    let least = super::least_bytes(&usual, train.inputs.cols);
    if let Some(flash) = flash.filter(|&flash| least > flash) {
        let reason = format!("ridge regression: a network has more than {least} bytes, the flash {flash}");
        return Ok(Predictor { epochs: None, reasons: vec![reason] });
    }
    let usual = usual.training.epochs;
    let mut lengths: Vec<usize> = SHORTER.iter().map(|divisor| (usual / divisor).max(LEAST_EPOCHS)).collect();
    lengths.dedup();
    let (mut constant, mut ridge, mut networks) = (Vec::new(), Vec::new(), vec![Vec::new(); lengths.len()]);
    let (all_lengths, all_cuts) = (lengths.len(), cuts(rows, seed));
    let mut used = 0;
    for (fit, judge) in &all_cuts {
        // Every candidate is judged on the same rows: the first cut says how many of them there is time for.
        if used > 0 && late() {
            break;
        }
        used += 1;
        let (fit, judge) = (train.select(fit), train.select(judge));
        let (wanted, known) = (regression(&judge)?, regression(&fit)?);
        let middle = Scale::fit(known).mean;
        constant.extend(errors(|_, column| f64::from(middle[column]), wanted, &scale));
        let linear = Ridge::fit((&fit.inputs, known), (&judge.inputs, wanted), None)?;
        ridge.extend(errors(|row, column| linear.predict(judge.inputs.row(row), column), wanted, &scale));
        // The shortest first: it overruns the time by the least.
        for place in (0..lengths.len()).rev() {
            if used == 1 && late() {
                lengths.drain(..=place);
                networks.drain(..=place);
                break;
            }
            networks[place].extend(network(&fit, &judge, lengths[place], &scale, seed, device)?);
        }
    }
    let best = networks.iter().zip(&lengths).min_by(|a, b| mean(a.0).total_cmp(&mean(b.0)));
    let epochs = best.filter(|(errors, _)| clearly_smaller(errors, &ridge)).map(|(_, &epochs)| epochs);
    let show = |errors: &[f64]| format!("{:.3}", mean(errors).sqrt());
    let tried: Vec<String> = networks
        .iter()
        .zip(&lengths)
        .map(|(errors, epochs)| format!("a network of {epochs} epochs {}", show(errors)))
        .collect();
    let taken = match epochs {
        Some(epochs) => format!("the network of {epochs} epochs"),
        None => "ridge regression (a network must be clearly better)".to_owned(),
    };
    let all = [
        format!("their mean {}", show(&constant)),
        format!("ridge regression {}", show(&ridge)),
        tried.join(", "),
    ];
    let mut reasons = vec![
        format!(
            "error on {} training rows that did not fit, in standard deviations of the target: {}",
            ridge.len(),
            all.iter().filter(|words| !words.is_empty()).cloned().collect::<Vec<_>>().join(", ")
        ),
        format!("taken: {taken}"),
    ];
    if networks.len() < all_lengths || used < all_cuts.len() {
        reasons.push(format!(
            "stopped after {} of {} and {used} of {} (--time)",
            networks.len(),
            counted(all_lengths, "network"),
            counted(all_cuts.len(), "cut")
        ));
    }
    Ok(Predictor { epochs, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(law: impl Fn(&[f32; 4]) -> f32, noise: f32) -> Split {
        let mut random = Random::new(4, "numbers");
        let inputs: Vec<[f32; 4]> = (0..1000).map(|_| [(); 4].map(|()| random.normal() as f32)).collect();
        let targets = inputs.iter().map(|x| law(x) + noise * random.normal() as f32).collect();
        Split {
            inputs: Table::from_rows(&inputs).unwrap(),
            targets: Targets::Regression(Table::column(targets)),
        }
    }

    #[test]
    fn a_linear_law_needs_no_network_and_a_bent_one_does() {
        let chosen = |split: &Split| predictor(split, 0, None, None, &Device::flex()).unwrap();
        let straight = chosen(&rows(|x| 3.0 * x[0] - x[1], 1.0));
        assert_eq!(straight.epochs, None, "{:?}", straight.reasons);
        let bent = chosen(&rows(|x| 3.0 * x[0].abs() + x[1] * x[1], 0.1));
        assert!(bent.epochs.is_some(), "{:?}", bent.reasons);
    }

    #[test]
    fn a_network_that_the_flash_cannot_hold_is_not_tried() {
        let bent = rows(|x| 3.0 * x[0].abs() + x[1] * x[1], 0.1);
        // Four inputs and 50 units have 200 weights.
        let small = predictor(&bent, 0, Some(199), None, &Device::flex()).unwrap();
        assert_eq!(small.epochs, None);
        assert_eq!(small.reasons, ["ridge regression: a network has more than 200 bytes, the flash 199"]);
        assert!(predictor(&bent, 0, Some(200), None, &Device::flex()).unwrap().epochs.is_some());
    }

    #[test]
    fn without_time_no_network_is_tried() {
        let bent = rows(|x| 3.0 * x[0].abs() + x[1] * x[1], 0.1);
        let none = predictor(&bent, 0, None, Some(Duration::ZERO), &Device::flex()).unwrap();
        let said = none.reasons.join("\n");
        assert_eq!(none.epochs, None, "{said}");
        assert!(
            said.contains("ridge regression")
                && said.contains("stopped after 0 of 3 networks and 1 of 1 cut (--time)"),
            "{said}"
        );
    }

    #[test]
    fn every_row_fits_or_judges_and_few_rows_try_nothing() {
        for (fit, judge) in cuts(100, 2) {
            let mut all = [fit, judge].concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>());
        }
        assert_eq!((cuts(100, 2).len(), cuts(2000, 2).len()), (3, 1));
        let split = rows(|x| x[0], 0.1).select(&(0..30).collect::<Vec<_>>());
        assert_eq!(predictor(&split, 0, None, None, &Device::flex()).unwrap().epochs, None);
    }
}
