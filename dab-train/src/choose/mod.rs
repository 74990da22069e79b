//! Choosing the views of a model without gradients: by leaving classes out, within the flash, on training rows alone.
//!
//! ```text
//! training rows → folds → norm × ridge × size × form → mean AUROC of hidden classes → one view a norm → joined views
//! ```
//!
//! Inside each norm the best mean AUROC wins, unless one code a class on every axis is within `TIE` of it: then the
//! strongest whitening of those, which alone sees directions in which training rows do not vary; no class that is left out
//! can test that. For the same reason, a view of few codes a class on some axes takes the energy along unless the folds
//! speak clearly against it. Then norms are joined as long as that does not hurt: a mean over diverse views is steadier than any
//! one of them, and choosing one is noisy.

pub mod beside;
pub mod folds;
pub mod judge;
pub mod numbers;
pub mod plan;
mod reasons;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use dab_core::channels::Form;
use serde::Serialize;

use self::{
    folds::Fold,
    judge::{Both, Judged, auroc, judge},
    plan::{Filling, Rows, Size, alpha},
};
use crate::{
    config::{
        Experiment,
        retrofit::{Norm, ViewConfig},
    },
    data::Table,
    support::parallel::map_blocks,
};

/// Ridges that are tried, strongest whitening first.
const RIDGES: [f64; 6] = [1e-4, 0.01, 0.1, 1.0, 10.0, 100.0];
/// Forms that are tried. Joined is within noise of the sum, energy alone never wins by more than noise.
const FORMS: [Form; 2] = [Form::Sum, Form::Distance];
/// Sizes that are tried, the simpler first.
const FILLINGS: [Filling; 2] = [Filling::Single, Filling::Full];
/// Candidates this near the best are as good.
const TIE: f64 = 0.002;
/// A class with so many codes is drawn in detail: from ten a class on, digits are found nearly as well as by neighbours.
const MANY_CODES: usize = 10;
/// What the energy of a coarse view may lose among the folds: their decoders see a part of the rows that the final one has.
const HANDICAP: f64 = 0.01;
/// A joining that costs less than this is taken: it cannot be told from noise, and diverse views are steadier.
const JOINED: f64 = 5e-4;
/// Views that share the flash, at most.
const VIEWS: u64 = 3;
/// Axes that each of several views must have room for.
const AXES: usize = 16;
/// Columns have one unit when the effective number of their variances is at least this share of them.
const ONE_UNIT: f64 = 0.25;
/// Rows have one length when its deviation is below this share of its mean.
const ONE_LENGTH: f64 = 1e-3;
/// Ridge of views that are not chosen.
const FIXED_RIDGE: f64 = 0.1;
/// Columns from which features are taken for a deep network's when nothing is chosen.
const DEEP_FEATURES: usize = 32;
/// Sizes of file on the rate–distortion curve.
const CURVE: [u64; 6] = [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Bytes that the file may have.
    pub flash: Option<u64>,
    /// How long choosing may take.
    pub time: Option<Duration>,
    /// Whether the user's own last layer gives the logits.
    pub own_head: bool,
    /// Seed of folds and codes.
    pub seed: u64,
}

/// A candidate, and what it reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// What comes first.
    pub norm: Norm,
    /// r.
    pub ridge: f64,
    /// Whether it has more than one code a class.
    pub deep: bool,
    /// Whether it keeps every axis.
    pub full_rank: bool,
    /// What its score is made of.
    pub form: Form,
    /// Mean AUROC of hidden classes.
    pub auroc: f64,
}

/// A point of the rate–distortion curve: the chosen views in a file of another size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Bytes that the file may have; none for no limit.
    pub flash: Option<u64>,
    /// Bytes that it has.
    pub bytes: u64,
    /// Multiply-adds of one input.
    pub multiply_adds: u64,
    /// Codes of all views.
    pub codes: usize,
    /// Mean AUROC of hidden classes.
    pub auroc: f64,
    /// Whether this is the model.
    pub chosen: bool,
}

/// The views of a model, and why these.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    /// The base first.
    pub views: Vec<ViewConfig>,
    /// Mean AUROC of hidden classes by all views together; none when nothing was tried.
    pub auroc: Option<f64>,
    /// Bytes that the file may have.
    pub flash: Option<u64>,
    /// Bytes that it is expected to have.
    pub bytes: u64,
    /// Multiply-adds of one input.
    pub multiply_adds: u64,
    /// What is hidden from a fit to judge it: "classes", or "clusters" of the inputs of a regression.
    pub hidden: &'static str,
    /// Folds that were judged.
    pub folds: usize,
    /// What was tried.
    pub candidates: Vec<Candidate>,
    /// The rate–distortion curve, smallest file first.
    pub curve: Vec<Point>,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

/// Told how far choosing is: fits done, of so many.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The norms that may serve: one that mixes units, or makes nothing new, is none.
#[must_use]
pub fn norms(inputs: &Table) -> Vec<Norm> {
    let variances: Vec<f64> = inputs.column_stats().iter().map(|column| column.std.powi(2)).collect();
    let (sum, squares): (f64, f64) = (variances.iter().sum(), variances.iter().map(|v| v * v).sum());
    if squares == 0.0 || sum * sum / squares < ONE_UNIT * variances.len() as f64 {
        return vec![Norm::Columns];
    }
    let lengths =
        inputs.iter().map(|row| row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt() as f32);
    let lengths = Table::column(lengths.collect()).column_stats()[0];
    match lengths.std < ONE_LENGTH * lengths.mean {
        true => vec![Norm::Columns, Norm::Raw],
        false => vec![Norm::Columns, Norm::L2, Norm::Raw],
    }
}

/// Whether a file of `flash` bytes keeps more axes with weights of one byte than with floats.
#[must_use]
pub fn wants_bytes(inputs: &Table, rows: &Rows, flash: Option<u64>) -> bool {
    rows.lacks_axes(flash, most_views(rows, &norms(inputs), flash))
}

/// Views that fit beside one another: as many as leave each enough axes.
fn most_views(rows: &Rows, norms: &[Norm], flash: Option<u64>) -> u64 {
    let enough = rows.inputs.min(AXES);
    let fits = |views: u64| {
        let room = flash.map(|flash| rows.room(flash) / views);
        rows.size(Norm::Columns, room, Filling::Full).is_some_and(|size| size.dim >= enough)
    };
    (1..=VIEWS.min(norms.len() as u64)).rev().find(|&views| fits(views)).unwrap_or(1)
}

fn view(candidate: &Candidate, rows: &Rows, room: Option<u64>) -> Option<ViewConfig> {
    let filling = if candidate.deep { Filling::Full } else { Filling::Single };
    let size = rows.size(candidate.norm, room, filling)?;
    Some(ViewConfig {
        norm: candidate.norm,
        // Leading axes after a strong whitening are those of noise.
        ridge: if size.dim < rows.inputs {
            candidate.ridge.max(judge::LOW_RANK_RIDGE)
        } else {
            candidate.ridge
        },
        rank: (size.dim < rows.inputs).then_some(size.dim),
        codes: size.each,
        alpha: alpha(size.dim),
        form: candidate.form,
    })
}

/// Views of all candidates in a file of `flash` bytes; none when one of them does not fit.
fn views(candidates: &[Candidate], rows: &Rows, flash: Option<u64>) -> Option<Vec<ViewConfig>> {
    let room = flash.map(|flash| rows.room(flash) / candidates.len().max(1) as u64);
    candidates.iter().map(|candidate| view(candidate, rows, room)).collect()
}

/// Bytes of a network's file, at least: one for each weight of its hidden layers.
fn least_bytes(experiment: &Experiment, inputs: usize) -> u64 {
    let units: Vec<u64> = experiment.backbone.layers.iter().map(|layer| layer.units as u64).collect();
    std::iter::once(&(inputs as u64)).chain(&units).zip(&units).map(|(inputs, units)| inputs * units).sum()
}

fn too_small(rows: &Rows, flash: Option<u64>) -> anyhow::Error {
    let bytes = flash.unwrap_or(0);
    anyhow::anyhow!(
        "{bytes} bytes of flash hold no model of {} inputs and {} classes: allow more with --flash",
        rows.inputs,
        rows.outputs
    )
}

/// Views that need no choosing: what the rule takes on most data.
///
/// # Errors
/// When they do not fit into the flash.
pub fn fixed(inputs: &Table, rows: &Rows, wish: &Wish) -> Result<Choice> {
    let all = norms(inputs);
    let untried =
        |norm, ridge, deep, form| Candidate { norm, ridge, deep, full_rank: true, form, auroc: f64::NAN };
    let mut chosen = if all.len() == 1 {
        vec![untried(Norm::Columns, FIXED_RIDGE, true, Form::Distance)]
    } else if rows.inputs >= DEEP_FEATURES && rows.classes() > 2 {
        vec![
            untried(Norm::Columns, FIXED_RIDGE, false, Form::Sum),
            untried(all.get(1).copied().unwrap_or_default(), FIXED_RIDGE, false, Form::Sum),
        ]
    } else {
        vec![
            untried(Norm::Raw, 1.0, true, Form::Distance),
            untried(Norm::Columns, FIXED_RIDGE, true, Form::Distance),
        ]
    };
    let most = most_views(rows, &all, wish.flash) as usize;
    chosen.truncate(most);
    let views = views(&chosen, rows, wish.flash).ok_or_else(|| too_small(rows, wish.flash))?;
    let reasons = vec!["fixed views: nothing was tried (--fast)".to_owned()];
    Ok(sized(Choice { views, reasons, ..Choice::default() }, rows, wish))
}

/// Views that an experiment has: nothing was tried.
#[must_use]
pub fn given(views: Vec<ViewConfig>, rows: &Rows, wish: &Wish) -> Choice {
    let reasons = vec!["the experiment has these views".to_owned()];
    sized(Choice { views, reasons, ..Choice::default() }, rows, wish)
}

fn sized(choice: Choice, rows: &Rows, wish: &Wish) -> Choice {
    let (bytes, multiply_adds) =
        (rows.bytes(&choice.views, wish.own_head), rows.multiply_adds(&choice.views, wish.own_head));
    let hidden = if rows.classes() > 1 { "classes" } else { "clusters" };
    Choice { flash: wish.flash, bytes, multiply_adds, hidden, ..choice }
}

/// All candidates of one norm in one fold, ridges outermost, then sizes.
type Trial = Vec<Option<Judged>>;

/// Chooses views for labelled training rows.
///
/// # Errors
/// When nothing fits into the flash, or fewer than two classes have rows.
pub fn choose(
    inputs: &Table,
    labels: &[u32],
    rows: &Rows,
    wish: &Wish,
    progress: Progress,
) -> Result<Choice> {
    let folds = folds::folds(inputs, labels, rows, wish.seed);
    ensure!(!folds.is_empty(), "choosing leaves classes out, and there are fewer than two");
    let forms = if rows.classes() > 2 { &FORMS[..] } else { &FORMS[1..] };
    among(&folds, &norms(inputs), forms, rows, wish, progress)
}

/// Chooses the view of a regression: columns are standardised, so that its decoder is a ridge regression; clusters of the
/// inputs are left out, and rows with a column of another row are strangers too.
///
/// # Errors
/// When nothing fits into the flash.
pub fn choose_clusters(inputs: &Table, rows: &Rows, wish: &Wish, progress: Progress) -> Result<Choice> {
    let folds = folds::clusters(inputs, rows, plan::most_codes, wish.seed);
    if folds.is_empty() {
        return one_code(rows, wish, "all inputs are alike: there is nothing to choose by");
    }
    among(&folds, &[Norm::Columns], &[Form::Distance], rows, wish, progress)
}

/// The view of a regression that needs no choosing: one code.
///
/// # Errors
/// When it does not fit into the flash.
pub fn one_code(rows: &Rows, wish: &Wish, why: &str) -> Result<Choice> {
    let candidate = Candidate {
        norm: Norm::Columns,
        ridge: FIXED_RIDGE,
        deep: false,
        full_rank: true,
        form: Form::Distance,
        auroc: f64::NAN,
    };
    let views = views(&[candidate], rows, wish.flash).ok_or_else(|| too_small(rows, wish.flash))?;
    Ok(sized(Choice { views, reasons: vec![why.to_owned()], ..Choice::default() }, rows, wish))
}

/// Chooses by folds among norms and forms.
fn among(
    folds: &[Fold],
    norms: &[Norm],
    forms: &[Form],
    rows: &Rows,
    wish: &Wish,
    progress: Progress,
) -> Result<Choice> {
    let begun = Instant::now();
    let most = most_views(rows, norms, wish.flash);
    let room = wish.flash.map(|flash| rows.room(flash) / most);
    let sizes = |fold: &Fold, norm| FILLINGS.map(|filling| fold.rows.size(norm, room, filling));
    ensure!(
        norms.iter().any(|&norm| rows.size(norm, room, Filling::Single).is_some()),
        too_small(rows, wish.flash)
    );

    let jobs: Vec<(usize, usize)> =
        (0..folds.len()).flat_map(|fold| (0..norms.len()).map(move |n| (fold, n))).collect();
    let done = AtomicUsize::new(0);
    let trials = map_blocks(jobs.len(), 1, |job| {
        let (fold, norm) = jobs[job.start];
        // The first fold is always judged: something must be known.
        if fold > 0 && wish.time.is_some_and(|time| begun.elapsed() > time) {
            return None;
        }
        let (fold, norm) = (&folds[fold], norms[norm]);
        let found = judge(fold, norm, &RIDGES, &sizes(fold, norm), wish.seed);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        Some(found)
    });
    // Folds of which every norm was judged, in order.
    let mut judged: Vec<Vec<Trial>> = Vec::new();
    let mut trials = trials.into_iter();
    while let Some(fold) =
        trials.by_ref().take(norms.len()).collect::<Option<Vec<_>>>().filter(|f| !f.is_empty())
    {
        judged.push(fold.into_iter().collect::<Result<_>>()?);
    }

    let full =
        |norm, filling: usize| sizes(&folds[0], norm)[filling].is_some_and(|size| size.dim == rows.inputs);
    let candidates = scored(&judged, norms, forms, &full)?;
    let coarse = |candidate: &Candidate| {
        let size = sizes(&folds[0], candidate.norm)[usize::from(candidate.deep)];
        size.is_some_and(|size| size.each < MANY_CODES)
    };
    let mut chosen: Vec<Candidate> =
        norms.iter().filter_map(|norm| pick(&candidates, *norm, &coarse)).collect();
    // A stable sort: among equals the norms keep their order.
    chosen.sort_by(|a, b| b.auroc.total_cmp(&a.auroc));
    let chosen = join(&judged, norms, &chosen, most as usize)?;
    ensure!(!chosen.is_empty(), too_small(rows, wish.flash));
    let views = views(&chosen, rows, wish.flash).ok_or_else(|| too_small(rows, wish.flash))?;
    let choice = sized(Choice { views, folds: judged.len(), ..Choice::default() }, rows, wish);
    let used = &folds[..judged.len()];
    let auroc = joined(used, &chosen, wish.flash, wish.seed)?;
    let curve = curve(used, &chosen, rows, wish, &choice, auroc)?;
    let reasons = reasons::reasons(&candidates, &chosen, norms, judged.len(), rows.classes());
    Ok(Choice { auroc, candidates, curve, reasons, ..choice })
}

/// Every candidate with its mean AUROC over the folds, those left out that do not fit into each of them.
fn scored(
    judged: &[Vec<Trial>],
    norms: &[Norm],
    forms: &[Form],
    full: &dyn Fn(Norm, usize) -> bool,
) -> Result<Vec<Candidate>> {
    let mut places = Vec::new();
    for (norm, &name) in norms.iter().enumerate() {
        for (ridge, &value) in RIDGES.iter().enumerate() {
            for (size, filling) in FILLINGS.iter().enumerate() {
                let candidate = |form: &Form| Candidate {
                    norm: name,
                    ridge: value,
                    deep: *filling == Filling::Full,
                    full_rank: full(name, size),
                    form: *form,
                    auroc: 0.0,
                };
                places.extend(forms.iter().map(|form| (norm, place(ridge, size), candidate(form))));
            }
        }
    }
    let found = map_blocks(places.len(), 1, |job| -> Result<Option<Candidate>> {
        let (at, place, candidate) = places[job.start];
        let mut sum = 0.0;
        for fold in judged {
            let Some(one) = &fold[at][place] else { return Ok(None) };
            sum += auroc(&[&one.surprise(candidate.form)?])?;
        }
        Ok(Some(Candidate { auroc: sum / judged.len() as f64, ..candidate }))
    });
    Ok(found.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Where a trial has a ridge and a size.
fn place(ridge: usize, size: usize) -> usize {
    ridge * FILLINGS.len() + size
}

/// The candidate of a norm; `coarse` says whether it has few codes a class.
fn pick(candidates: &[Candidate], norm: Norm, coarse: &dyn Fn(&Candidate) -> bool) -> Option<Candidate> {
    // They come in the order of preference: ridges rising, one code a class first, the sum first.
    let own = || candidates.iter().filter(|candidate| candidate.norm == norm);
    let best = own().map(|candidate| candidate.auroc).fold(f64::NEG_INFINITY, f64::max);
    let good = |candidate: &&Candidate| candidate.auroc >= best - TIE;
    let simple = own().filter(good).find(|candidate| !candidate.deep && candidate.full_rank);
    if let Some(simple) = simple {
        return Some(*simple);
    }
    let picked = *own().find(|candidate| candidate.auroc >= best)?;
    // Few codes a class on some axes only are coarse, and the energy sees strangers that no class of the training rows plays.
    let twin = |candidate: &&Candidate| {
        (candidate.ridge, candidate.deep, candidate.form) == (picked.ridge, picked.deep, Form::Sum)
            && candidate.auroc >= picked.auroc - HANDICAP
    };
    own().filter(|_| coarse(&picked)).find(twin).copied().or(Some(picked))
}

/// Views that are better together, the best first: each next one is that with which the mean finds most.
fn join(judged: &[Vec<Trial>], norms: &[Norm], ordered: &[Candidate], most: usize) -> Result<Vec<Candidate>> {
    let mut left: Vec<(Candidate, Vec<Both<Vec<f32>>>)> = Vec::new();
    for candidate in ordered {
        let norm = norms.iter().position(|norm| *norm == candidate.norm).unwrap_or(0);
        let ridge = RIDGES.iter().position(|ridge| *ridge == candidate.ridge).unwrap_or(0);
        let trials =
            judged.iter().filter_map(|fold| fold[norm][place(ridge, candidate.deep.into())].as_ref());
        left.push((*candidate, trials.map(|trial| trial.surprise(candidate.form)).collect::<Result<_>>()?));
    }
    let mut joined: Vec<(Candidate, Vec<Both<Vec<f32>>>)> = Vec::new();
    let mut reached = f64::NEG_INFINITY;
    while joined.len() < most && !left.is_empty() {
        let mut best: Option<(f64, usize)> = None;
        for (index, (_, surprises)) in left.iter().enumerate() {
            let mut sum = 0.0;
            for (fold, own) in surprises.iter().enumerate() {
                let mut views: Vec<&Both<Vec<f32>>> = joined.iter().map(|(_, all)| &all[fold]).collect();
                views.push(own);
                sum += auroc(&views)?;
            }
            let mean = sum / surprises.len().max(1) as f64;
            if best.is_none_or(|(most, _)| mean > most) {
                best = Some((mean, index));
            }
        }
        let Some((mean, index)) = best.filter(|(mean, _)| *mean >= reached - JOINED) else { break };
        reached = mean;
        joined.push(left.remove(index));
    }
    Ok(joined.into_iter().map(|(candidate, _)| candidate).collect())
}

/// Mean AUROC of all views together in a file of `flash` bytes; none when they do not fit into each fold.
fn joined(folds: &[Fold], chosen: &[Candidate], flash: Option<u64>, seed: u64) -> Result<Option<f64>> {
    let found = map_blocks(folds.len(), 1, |job| -> Result<Option<f64>> {
        let fold = &folds[job.start];
        let room = flash.map(|flash| fold.rows.room(flash) / chosen.len() as u64);
        let mut views = Vec::new();
        for candidate in chosen {
            let filling = if candidate.deep { Filling::Full } else { Filling::Single };
            let size: Option<Size> = fold.rows.size(candidate.norm, room, filling);
            let found = judge(fold, candidate.norm, &[candidate.ridge], &[size], seed)?;
            let Some(Some(found)) = found.first() else { return Ok(None) };
            views.push(found.surprise(candidate.form)?);
        }
        auroc(&views.iter().collect::<Vec<_>>()).map(Some)
    });
    let each = found.into_iter().collect::<Result<Option<Vec<f64>>>>()?;
    Ok(each.map(|each| each.iter().sum::<f64>() / each.len().max(1) as f64))
}

/// The chosen views in files of other sizes, and in this one.
fn curve(
    folds: &[Fold],
    chosen: &[Candidate],
    rows: &Rows,
    wish: &Wish,
    choice: &Choice,
    auroc: Option<f64>,
) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    let point = |flash, views: &[ViewConfig], auroc, chosen| Point {
        flash,
        bytes: rows.bytes(views, wish.own_head),
        multiply_adds: rows.multiply_adds(views, wish.own_head),
        codes: views.iter().map(|view| rows.of(view).codes).sum(),
        auroc,
        chosen,
    };
    points.extend(auroc.map(|auroc| point(wish.flash, &choice.views, auroc, true)));
    for flash in CURVE {
        let Some(views) = views(chosen, rows, Some(flash)) else { continue };
        // A file that is no larger although it may be says nothing new.
        if points.iter().any(|point: &Point| point.bytes == rows.bytes(&views, wish.own_head)) {
            continue;
        }
        let found = joined(folds, chosen, Some(flash), wish.seed)?;
        points.extend(found.map(|auroc| point(Some(flash), &views, auroc, false)));
    }
    points.sort_by_key(|point| point.bytes);
    Ok(points)
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
