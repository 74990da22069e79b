//! What a network that learnt numbers overlooks: a view of its raw inputs beside it.
//!
//! ```text
//! training rows → folds → a network and a view of each → u of known and hidden rows → which of the two count
//! ```
//!
//! Hidden layers keep what predicts and may throw away what tells strangers apart. Learning must never find fewer of them
//! than not learning, so both are judged on strangers made of training rows: clusters of inputs that are left out, and rows
//! with one column of another row.

use anyhow::Result;
use burn::tensor::Device;

use super::{
    JOINED, Wish, among,
    folds::{self, Fold},
    judge::{Judged, auroc, judge},
    plan::{Filling, Rows},
};
use crate::{
    config::{
        Experiment,
        retrofit::{Beside, Norm},
    },
    data::{Split, Table},
    export::artifact,
    learn::run::{self, Setting},
};

/// Networks that are trained to judge, at most.
const FOLDS: usize = 5;

/// A network of a fold's rows: what it says of known and hidden rows, and the bytes of its file.
fn network(
    experiment: &Experiment,
    train: &Split,
    fold: &Fold,
    wish: &Wish,
    device: &Device,
) -> Result<(Judged, u64)> {
    let setting =
        Setting { seed: wish.seed, device: device.clone(), checkpoint: None, resume: false, machines: None };
    let learnt = run::train(experiment, &train.select(&fold.places), &setting, &mut ())?;
    let u = |rows: &Table| -> Result<Vec<f32>> { Ok(learnt.trained.score(rows, device)?.uncertainty) };
    let none = Table { rows: 0, cols: train.inputs.cols, values: Vec::new() };
    let bytes = artifact::artifact(&learnt.trained, &none, Vec::new())?.len() as u64;
    Ok((Judged::of_distances([u(&fold.known)?, u(&fold.hidden)?]), bytes))
}

/// Views beside a network that predicts, chosen on training rows, and why.
///
/// # Errors
/// When learning fails.
pub fn beside(
    experiment: &Experiment,
    train: &Split,
    outputs: usize,
    wish: &Wish,
    device: &Device,
) -> Result<(Beside, Vec<String>)> {
    let inputs = &train.inputs;
    // The network's own distance makes the band, so a code of the view may be a row.
    let rows = Rows { inputs: inputs.cols, outputs, counts: vec![inputs.rows], strings: 0 };
    let mut folds = folds::clusters(inputs, &rows, |rows| rows, wish.seed);
    folds.truncate(FOLDS);
    let (mut own, mut bytes) = (Vec::new(), 0);
    for fold in &folds {
        let (judged, size) = network(experiment, train, fold, wish, device)?;
        own.push(judged.surprise(dab_core::channels::Form::Distance)?);
        bytes = size;
    }
    let left = Wish { flash: wish.flash.map(|flash| flash.saturating_sub(bytes)), ..*wish };
    // Without room for a view, or rows that differ, the network judges alone.
    let Some(view) = among(&folds, &[Norm::Columns], &rows, &left, &|_, _| ())
        .ok()
        .and_then(|choice| choice.views.into_iter().next())
    else {
        return Ok((Beside::default(), Vec::new()));
    };
    let filling = if view.codes > 1 { Filling::Full } else { Filling::Single };
    let mut found = [0.0; 3];
    for (fold, own) in folds.iter().zip(&own) {
        let room = left.flash.map(|flash| fold.rows.room(flash));
        let size = fold.rows.size(view.norm, room, filling);
        let judged = judge(fold, view.norm, &[view.ridge], &[size], wish.seed)?;
        let Some(Some(judged)) = judged.first() else { return Ok((Beside::default(), Vec::new())) };
        let seen = judged.surprise(view.form)?;
        for (sum, views) in found.iter_mut().zip([&[own][..], &[&seen], &[own, &seen]]) {
            *sum += auroc(views)? / folds.len() as f64;
        }
    }
    let [network, alone, both] = found;
    let (chosen, taken) = if both >= network.max(alone) - JOINED {
        (Beside { views: vec![view.clone()], alone: false }, "both are joined")
    } else if alone > network {
        (Beside { views: vec![view.clone()], alone: true }, "the view alone judges")
    } else {
        (Beside::default(), "the network alone judges")
    };
    let reason = format!(
        "strangers made of training rows (hidden clusters, rows with one column of another row) are found with AUROC \
         {network:.4} by the network's distance, {alone:.4} by a view of its inputs ({}), {both:.4} by both: {taken}",
        view.words(false)
    );
    Ok((chosen, vec![reason]))
}
