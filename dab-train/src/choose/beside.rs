//! What a network that learnt overlooks: views of its raw inputs beside it.
//!
//! ```text
//! training rows → folds → a network and views of each → g of known and hidden rows → which of the two count
//! ```
//!
//! Hidden layers keep what predicts and may throw away what tells strangers apart. Learning must never find fewer of them
//! than not learning, so both are judged on strangers made of training rows: classes that are left out; of a regression, and
//! of two classes, clusters of inputs that are left out and rows with one column of another row.

use anyhow::{Context, Result};
use burn::tensor::Device;
use dab_core::channels::Form;

use super::{
    FORMS, REGRESSION_NORMS, Wish, among,
    folds::{self, Fold},
    judge::{Both, Judged, auroc, surprises},
    least_bytes, norms,
    plan::{Filling, Rows},
    select::{JOINED, TIE},
    wants_bytes,
};
use crate::{
    config::{Experiment, Weights, retrofit::Beside},
    data::{Split, Table, Targets, count_labels},
    export::{artifact, int8},
    learn::{
        logistic::Logistic,
        retrofit::{classes, energy},
        run::{self, Setting},
    },
};

/// Networks that are trained to judge a regression, at most.
const FOLDS: usize = 5;
/// Networks that are trained to judge a classifier, at most: they have more to learn.
const CLASS_FOLDS: usize = 3;

/// What was found about a network that learns and views of its inputs.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The views beside it, and who judges.
    pub beside: Beside,
    /// How the file stores weights: in bytes where floats would leave the views too little room.
    pub weights: Option<Weights>,
    /// Whether learning does something for strangers or for predictions.
    pub learning_pays: bool,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

impl Found {
    /// The network judges alone: there is no room for a view, or nothing to judge by.
    fn alone() -> Self {
        Self { learning_pays: true, ..Self::default() }
    }
}

/// How a network does in a fold, and the bytes of its file.
struct Network {
    judged: Judged,
    /// With weights of four bytes, and of one.
    bytes: [u64; 2],
    /// Of known rows that did not fit, −ln p of their classes: by the network, and by softmax regression on the inputs.
    likelihoods: Option<[f64; 2]>,
}

/// The experiment, the rows of a fold, and those of them that judge.
fn within(experiment: &Experiment, train: &Split, fold: &Fold, hides: bool) -> (Experiment, [Split; 2]) {
    let mut experiment = experiment.clone();
    let (Targets::Classes { count, .. }, true) = (&train.targets, hides) else {
        return (experiment, [train.select(&fold.places), train.select(&fold.known_places)]);
    };
    let codes = &mut experiment.bottleneck.codes;
    *codes = (*codes * fold.classes).div_ceil(*count).max(1);
    let of = |inputs: &Table, labels: &[u32]| {
        let targets = Targets::Classes { labels: labels.to_vec(), count: fold.classes };
        Split { inputs: inputs.clone(), targets }
    };
    (experiment, [of(&fold.fit, &fold.labels), of(&fold.known, &fold.known_labels)])
}

fn network(
    experiment: &Experiment,
    [rows, judging]: &[Split; 2],
    hidden: &Table,
    seed: u64,
    device: &Device,
) -> Result<Network> {
    let setting = Setting { seed, device: device.clone(), checkpoint: None, resume: false, machines: None };
    let learnt = run::train(experiment, rows, &setting, &mut ())?;
    let [known, hidden] =
        [learnt.trained.score(&judging.inputs, device)?, learnt.trained.score(hidden, device)?];
    let none = Table { rows: 0, cols: rows.inputs.cols, values: Vec::new() };
    let floats = artifact::artifact(&learnt.trained, &none, Vec::new())?;
    let bytes = [floats.len() as u64, int8::quantised(&floats, None)?.len() as u64];
    let energies = matches!(rows.targets, Targets::Classes { count, .. } if count > 1)
        .then(|| [energy(&known.outputs), energy(&hidden.outputs)]);
    let likelihoods = match (&rows.targets, &judging.targets) {
        (Targets::Classes { labels, count }, Targets::Classes { labels: right, .. }) if *count > 1 => {
            let linear = Logistic::fit((&rows.inputs, labels), (&judging.inputs, right), *count)?;
            let own = known.outputs.iter().zip(right).zip(energy(&known.outputs));
            let own: f64 = own.map(|((row, &label), energy)| f64::from(-row[label as usize] - energy)).sum();
            Some([own / right.len() as f64, linear.nll(&judging.inputs, right)])
        }
        _ => None,
    };
    Ok(Network { judged: Judged::new([known.uncertainty, hidden.uncertainty], energies), bytes, likelihoods })
}

/// What is known about the rows, and the folds that judge.
fn cut(train: &Split, outputs: usize, hides: bool, seed: u64) -> (Rows, Vec<Fold>) {
    let (labels, count) = classes(&train.targets);
    let (counts, inputs) = (count_labels(&labels, count), &train.inputs);
    let rows = Rows { inputs: inputs.cols, outputs, counts, strings: 0, int8: false };
    // The network's own distance makes a regression's band, so a code of the view may be a row.
    let mut folds = match hides {
        true => folds::folds(inputs, &labels, &rows, seed),
        false => folds::clusters(inputs, &rows, |rows| rows, seed),
    };
    folds.truncate(if count > 1 { CLASS_FOLDS } else { FOLDS });
    (rows, folds)
}

/// Views beside a network, chosen on training rows, and why.
///
/// # Errors
/// When learning fails.
pub fn beside(experiment: &Experiment, train: &Split, wish: &Wish, device: &Device) -> Result<Found> {
    let (outputs, hides) = match &train.targets {
        Targets::Classes { count, .. } => (*count, *count > 2),
        Targets::Regression(targets) => (targets.cols, false),
    };
    let (mut rows, mut folds) = cut(train, outputs, hides, wish.seed);
    let norms = if hides { norms(&train.inputs) } else { REGRESSION_NORMS.to_vec() };
    // Without room for a view the network judges alone, and none has to be trained to find that out.
    if let Some(flash) = wish.flash {
        let small = Rows { int8: true, ..rows.clone() };
        let room = small.room(flash.saturating_sub(least_bytes(experiment, train.inputs.cols)));
        if norms.iter().all(|&norm| small.size(norm, Some(room), Filling::Single).is_none()) {
            return Ok(Found::alone());
        }
    }
    let mut networks = Vec::new();
    for fold in &folds {
        let (experiment, rows) = within(experiment, train, fold, hides);
        networks.push(network(&experiment, &rows, &fold.hidden, wish.seed, device)?);
    }
    let largest = |which: usize| networks.iter().map(|network| network.bytes[which]).max();
    let (Some(floats), Some(bytes)) = (largest(0), largest(1)) else { return Ok(Found::alone()) };
    let left = |bytes: u64| wish.flash.map(|flash| flash.saturating_sub(bytes));
    let mut weights = experiment.weights;
    if weights.is_none() && wants_bytes(&train.inputs, &rows, left(floats)) {
        weights = Some(Weights::Int8);
    }
    rows.int8 = weights == Some(Weights::Int8);
    folds.iter_mut().for_each(|fold| fold.rows.int8 = rows.int8);
    let left = Wish { flash: left(if rows.int8 { bytes } else { floats }), ..*wish };
    // Without room for a view, or rows that differ, the network judges alone.
    let Ok(choice) = among(&folds, &norms, &[Form::Distance], &rows, &left, None, &|_, _| ()) else {
        return Ok(Found::alone());
    };
    let views = choice.views.iter().map(|view| (view.norm, view.ridge, Filling::of(view), view.form));
    let views: Vec<_> = views.collect();
    let seen = folds.iter().map(|fold| surprises(fold, &views, left.flash, wish.seed));
    let Some(views_say) = seen.collect::<Result<Option<Vec<_>>>>()? else {
        return Ok(Found::alone());
    };
    // What the network's own score is made of: the energy of its logits, where there are any, if that finds more.
    let forms = if hides { &FORMS[..] } else { &[Form::Distance] };
    let mut best: Option<(Form, [f64; 3])> = None;
    for &form in forms {
        let mut found = [0.0; 3];
        for (seen, network) in views_say.iter().zip(&networks) {
            let own = network.judged.surprise(form)?;
            let views: Vec<&Both<Vec<f32>>> = seen.iter().collect();
            let both: Vec<&Both<Vec<f32>>> = std::iter::once(&own).chain(seen).collect();
            for (sum, views) in found.iter_mut().zip([&[&own][..], &views, &both]) {
                *sum += auroc(views)? / folds.len() as f64;
            }
        }
        if best.as_ref().is_none_or(|(_, other)| found[2] > other[2]) {
            best = Some((form, found));
        }
    }
    let (form, [network, alone, both]) = best.context("a network has a form")?;
    let predicts_numbers = matches!(train.targets, Targets::Regression(_));
    let mut learning_pays = predicts_numbers || network.max(both) >= alone + TIE;
    let views = choice.views;
    let words: Vec<String> = views.iter().map(|view| view.words(outputs > 1 && hides)).collect();
    let (chosen, taken) = if both >= network.max(alone) - JOINED {
        (Beside { views, alone: false, form }, "both are joined")
    } else if alone > network {
        (Beside { views, alone: true, form }, "the views alone judge")
    } else {
        (Beside::default(), "the network alone judges")
    };
    let made = match hides {
        true => "hidden classes",
        false => "hidden clusters, rows with one column of another row",
    };
    let reason = format!(
        "strangers made of training rows ({made}) are found with AUROC {network:.4} by the network's {}, {alone:.4} by \
         views of its inputs ({}), {both:.4} by both: {taken}",
        if form == Form::Distance { "distance" } else { "distance and energy" },
        words.join("; ")
    );
    let mut reasons = vec![reason];
    let likelihoods: Vec<[f64; 2]> = networks.iter().filter_map(|network| network.likelihoods).collect();
    if !likelihoods.is_empty() {
        let mean = |which: usize| -> f64 {
            likelihoods.iter().map(|both| both[which]).sum::<f64>() / likelihoods.len() as f64
        };
        let (own, linear) = (mean(0), mean(1));
        learning_pays |= own < linear;
        let advice = match own < linear {
            true => "learning predicts better",
            false => "learning does not predict better",
        };
        reasons.push(format!(
            "classes of rows that did not fit have a negative log-likelihood of {own:.4} by the network, {linear:.4} by \
             softmax regression on the inputs: {advice}"
        ));
    }
    Ok(Found { beside: chosen, weights, learning_pays, reasons })
}
