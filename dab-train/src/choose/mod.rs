//! Choosing the views of a model without gradients: by leaving classes out, within the flash, on training rows alone.
//!
//! ```text
//! training rows → folds → norm × ridge × size × form → mean AUROC of strangers → four views a norm → joined views
//! ```
//!
//! Strangers are classes that are left out, and chimeras of two rows ([`folds`]). Each norm has four kinds of view: one that
//! whitens and one that is nearly Euclidean, with plain and with local distances. They find different strangers. [`select`] picks the best of each kind and joins them
//! as long as that does not hurt: a mean over diverse views is steadier than any one of them, and choosing one is noisy.
//! [`curve`] shows what the chosen ones reach in files of other sizes.

pub mod beside;
pub mod curve;
pub mod folds;
pub mod judge;
pub mod numbers;
pub mod plan;
mod reasons;
mod select;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use dab_core::channels::Form;
use serde::Serialize;

use self::{
    folds::Fold,
    judge::{Judged, judge},
    plan::{Filling, Rows, alpha},
};
use crate::{
    config::{
        Experiment,
        retrofit::{Norm, ViewConfig},
    },
    data::Table,
    support::{parallel::map_blocks, text::plural},
};

/// Ridges that are tried, strongest whitening first.
const RIDGES: [f64; 6] = [1e-4, 0.01, 0.1, 1.0, 10.0, 100.0];
/// Ridges below this whiten: distances count standard deviations. Those above are nearly Euclidean.
const WHITENS: f64 = 0.5;
/// Views for which room is left, for each norm: one that whitens, one that does not.
const OF_A_NORM: usize = 2;
/// Norms of a regression. Sensors that share a unit are best left as they are, others are not: the folds tell.
const REGRESSION_NORMS: [Norm; 2] = [Norm::Columns, Norm::Raw];
/// Forms that are tried. Joined is within noise of the sum, energy alone never wins by more than noise.
const FORMS: [Form; 2] = [Form::Sum, Form::Distance];
/// Sizes that are tried, the simpler first.
const FILLINGS: [Filling; 3] = [Filling::Single, Filling::Full, Filling::Local];
/// Views that share the flash, at most.
const VIEWS: u64 = 3;
/// Axes that each of several views must have room for.
const AXES: usize = 16;
/// Columns have one unit when the effective number of their variances is at least this share of them.
const ONE_UNIT: f64 = 0.25;
/// Rows have one length when its deviation is below this share of its mean.
const ONE_LENGTH: f64 = 1e-3;
/// Ridge of views that are not chosen, and of those of them that leave axes out: axes after a strong whitening leave most of what
/// rows vary by to the rest, which then sees little.
const FIXED_RIDGE: f64 = 0.1;
const FIXED_LOW_RANK_RIDGE: f64 = 10.0;
/// Columns from which features are taken for a deep network's when nothing is chosen.
const DEEP_FEATURES: usize = 32;

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
    /// How many codes it has, and what their distances count in.
    pub filling: Filling,
    /// Whether it keeps every axis.
    pub full_rank: bool,
    /// What its score is made of.
    pub form: Form,
    /// Mean AUROC of hidden classes.
    pub auroc: f64,
}

impl Candidate {
    /// One that nobody has judged.
    fn untried(norm: Norm, ridge: f64, filling: Filling, form: Form) -> Self {
        Self { norm, ridge, filling, full_rank: true, form, auroc: f64::NAN }
    }

    /// Its norm, whether it whitens, and whether its distances count locally: what these see differs. A regression has one view of
    /// each norm, and no kinds.
    fn kind(&self, classes: usize) -> (Norm, bool, bool) {
        (self.norm, classes > 1 && self.ridge < WHITENS, self.filling == Filling::Local)
    }
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
    let each = if rows.classes() > 1 { OF_A_NORM } else { 1 };
    (1..=VIEWS.min((each * norms.len()) as u64)).rev().find(|&views| fits(views)).unwrap_or(1)
}

fn view(candidate: &Candidate, rows: &Rows, room: Option<u64>) -> Option<ViewConfig> {
    let size = rows.size(candidate.norm, room, candidate.filling)?;
    Some(ViewConfig {
        norm: candidate.norm,
        ridge: judge::sound(candidate.ridge, size.dim, rows.inputs),
        rank: (size.dim < rows.inputs).then_some(size.dim),
        codes: size.each,
        local: size.local,
        alpha: alpha(size.dim),
        form: candidate.form,
    })
}

/// The views of candidates that nobody has judged, and why these.
fn unjudged(chosen: &[Candidate], rows: &Rows, wish: &Wish, why: &str) -> Result<Choice> {
    let mut views = views(chosen, rows, wish.flash).ok_or_else(|| too_small(rows, wish.flash))?;
    for view in views.iter_mut().filter(|view| view.rank.is_some()) {
        view.ridge = view.ridge.max(FIXED_LOW_RANK_RIDGE);
    }
    Ok(sized(Choice { views, reasons: vec![why.to_owned()], ..Choice::default() }, rows, wish))
}

/// Whether some of these views would have more axes or codes without one more that shares the flash with them.
fn would_grow(views: &[Candidate], rows: &Rows, flash: Option<u64>) -> bool {
    let sizes = |sharing: usize| {
        let room = flash.map(|flash| rows.room(flash) / sharing.max(1) as u64);
        views.iter().map(|view| rows.size(view.norm, room, view.filling)).collect::<Vec<_>>()
    };
    sizes(views.len()) != sizes(views.len() + 1)
}

/// Views of all candidates in a file of `flash` bytes; none when one of them does not fit.
fn views(candidates: &[Candidate], rows: &Rows, flash: Option<u64>) -> Option<Vec<ViewConfig>> {
    let room = flash.map(|flash| rows.room(flash) / candidates.len().max(1) as u64);
    candidates.iter().map(|candidate| view(candidate, rows, room)).collect()
}

/// Bytes of a network's file, at least: one for each weight of its hidden layers.
pub fn least_bytes(experiment: &Experiment, inputs: usize) -> u64 {
    let units: Vec<u64> = experiment.backbone.layers.iter().map(|layer| layer.units as u64).collect();
    std::iter::once(&(inputs as u64)).chain(&units).zip(&units).map(|(inputs, units)| inputs * units).sum()
}

fn too_small(rows: &Rows, flash: Option<u64>) -> anyhow::Error {
    let bytes = flash.unwrap_or(0);
    let what = if rows.classes() > 1 { "class" } else { "output" };
    anyhow::anyhow!(
        "{bytes} bytes of flash hold no model of {} and {}: allow at least {}K with --flash",
        plural(rows.inputs as u64, "input"),
        plural(rows.outputs as u64, what),
        rows.least_flash().div_ceil(1 << 10)
    )
}

/// Views that need no choosing: what the rule takes on most data.
///
/// # Errors
/// When they do not fit into the flash.
pub fn fixed(inputs: &Table, rows: &Rows, wish: &Wish, why: &str) -> Result<Choice> {
    let all = norms(inputs);
    let untried = Candidate::untried;
    let mut chosen = if all.len() == 1 {
        vec![untried(Norm::Columns, FIXED_RIDGE, Filling::Local, Form::Distance)]
    } else if rows.inputs >= DEEP_FEATURES && rows.classes() > 2 {
        vec![
            untried(Norm::Columns, FIXED_RIDGE, Filling::Single, Form::Sum),
            untried(all.get(1).copied().unwrap_or_default(), FIXED_RIDGE, Filling::Single, Form::Sum),
        ]
    } else {
        vec![
            untried(Norm::Raw, 1.0, Filling::Local, Form::Distance),
            untried(Norm::Columns, FIXED_RIDGE, Filling::Local, Form::Distance),
        ]
    };
    chosen.truncate(most_views(rows, &all, wish.flash) as usize);
    unjudged(&chosen, rows, wish, why)
}

/// Views that an experiment has: nothing was tried.
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
/// When nothing fits into the flash.
pub fn choose(
    inputs: &Table,
    labels: &[u32],
    rows: &Rows,
    wish: &Wish,
    progress: Progress,
) -> Result<Choice> {
    let folds = folds::folds(inputs, labels, rows, wish.seed);
    if folds.is_empty() {
        return fixed(inputs, rows, wish, "fixed views: the rows are too few to hide some of them");
    }
    let forms = if rows.classes() > 2 { &FORMS[..] } else { &FORMS[1..] };
    among(&folds, &norms(inputs), forms, rows, wish, None, progress)
}

/// Chooses the views of a regression. The columns of the first are standardised, so that its decoder is a ridge regression; raw
/// columns may join it. Clusters of the inputs are left out, and rows with a column of another row are strangers too.
///
/// # Errors
/// When nothing fits into the flash.
pub fn choose_clusters(inputs: &Table, rows: &Rows, wish: &Wish, progress: Progress) -> Result<Choice> {
    let folds = folds::clusters(inputs, rows, plan::most_codes, wish.seed);
    if folds.is_empty() {
        return one_code(rows, wish, "all inputs are alike, or too few: there is nothing to choose by");
    }
    among(&folds, &REGRESSION_NORMS, &[Form::Distance], rows, wish, Some(Norm::Columns), progress)
}

/// The view of a regression that needs no choosing: one code.
///
/// # Errors
/// When it does not fit into the flash.
pub fn one_code(rows: &Rows, wish: &Wish, why: &str) -> Result<Choice> {
    unjudged(
        &[Candidate::untried(Norm::Columns, FIXED_RIDGE, Filling::Single, Form::Distance)],
        rows,
        wish,
        why,
    )
}

/// Chooses by folds among norms and forms; the first view has the norm `first`, if that is given.
fn among(
    folds: &[Fold],
    norms: &[Norm],
    forms: &[Form],
    rows: &Rows,
    wish: &Wish,
    first: Option<Norm>,
    progress: Progress,
) -> Result<Choice> {
    let begun = Instant::now();
    let late = || wish.time.is_some_and(|time| begun.elapsed() > time);
    let most = most_views(rows, norms, wish.flash);
    let room = wish.flash.map(|flash| rows.room(flash) / most);
    // What a fold has room for, the model must have room for as well: a fold has fewer classes to decode. A regression's distances
    // count alike everywhere: its band is made of them, and would be narrow where rows are sparse.
    let size = |fold: &Fold, norm, filling| {
        if filling == Filling::Local && rows.classes() < 2 {
            return None;
        }
        rows.size(norm, room, filling).and_then(|_| fold.rows.size(norm, room, filling))
    };
    let sizes = |fold: &Fold, norm| FILLINGS.map(|filling| size(fold, norm, filling));
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
        if fold > 0 && late() {
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

    let full = |norm, filling: Filling| {
        sizes(&folds[0], norm)[filling as usize].is_some_and(|size| size.dim == rows.inputs)
    };
    let candidates = select::scored(&judged, norms, forms, &full)?;
    let each = |candidate: &Candidate| {
        sizes(&folds[0], candidate.norm)[candidate.filling as usize].map_or(0, |size| size.each)
    };
    let mut chosen = select::best_of_each_kind(&candidates, rows.classes(), &each);
    // A stable sort: among equals the norms keep their order.
    chosen.sort_by(|a, b| b.auroc.total_cmp(&a.auroc));
    let mut chosen = select::join(&judged, norms, &chosen, most as usize, first)?;
    ensure!(!chosen.is_empty(), too_small(rows, wish.flash));
    let used = &folds[..judged.len()];
    let mut auroc = curve::joined(used, &chosen, wish.flash, wish.seed)?;
    // Fewer views have more axes each, or more codes, where the flash is what limits them: that may be worth more than another view.
    while chosen.len() > 1 && !late() {
        let fewer = &chosen[..chosen.len() - 1];
        if !would_grow(fewer, rows, wish.flash) {
            break;
        }
        let blind_to_gain = fewer.iter().all(|view| view.norm.has_length());
        let found = curve::joined(used, fewer, wish.flash, wish.seed)?;
        if blind_to_gain || found.zip(auroc).is_none_or(|(fewer, all)| fewer < all + select::TIE) {
            break;
        }
        (auroc, _) = (found, chosen.pop());
    }
    let views = views(&chosen, rows, wish.flash).ok_or_else(|| too_small(rows, wish.flash))?;
    let choice = sized(Choice { views, folds: judged.len(), ..Choice::default() }, rows, wish);
    let (curve, notes) = curve::curve(used, &chosen, rows, wish, &choice, auroc, &late)?;
    let mut reasons =
        reasons::reasons(&candidates, &chosen, norms, (judged.len(), folds.len()), rows.classes());
    reasons.extend(notes);
    Ok(Choice { auroc, candidates, curve, reasons, ..choice })
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
