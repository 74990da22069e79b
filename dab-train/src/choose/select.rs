//! From candidates that were judged to the views of a model: the best of each kind, joined as long as that does not hurt.

use anyhow::Result;
use dab_core::channels::Form;

use super::{
    Candidate, FILLINGS, RIDGES, Trial,
    judge::{Both, auroc},
    plan::Filling,
};
use crate::{config::retrofit::Norm, support::parallel::map_blocks};

/// Candidates this near the best are as good.
pub(super) const TIE: f64 = 0.002;
/// A class with so many codes is drawn in detail: from ten a class on, digits are found nearly as well as by neighbours.
const MANY_CODES: usize = 10;
/// What may be lost among the folds by the energy of a coarse view, whose decoders see a part of the rows that the final one has.
const HANDICAP: f64 = 0.01;
/// A joining that costs less than this is taken: it cannot be told from noise, and diverse views are steadier.
pub(super) const JOINED: f64 = 5e-4;

/// Every candidate with its mean AUROC over the folds, those left out that do not fit into each of them.
pub(super) fn scored(
    judged: &[Vec<Trial>],
    norms: &[Norm],
    forms: &[Form],
    full: &dyn Fn(Norm, Filling) -> bool,
) -> Result<Vec<Candidate>> {
    let mut places = Vec::new();
    for (norm, &name) in norms.iter().enumerate() {
        for (ridge, &value) in RIDGES.iter().enumerate() {
            for filling in FILLINGS {
                let candidate = |form: &Form| Candidate {
                    norm: name,
                    ridge: value,
                    filling,
                    full_rank: full(name, filling),
                    form: *form,
                    auroc: 0.0,
                };
                places.extend(forms.iter().map(|form| (norm, place(ridge, filling), candidate(form))));
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
fn place(ridge: usize, filling: Filling) -> usize {
    ridge * FILLINGS.len() + filling as usize
}

/// The best of each norm and kind that candidates have; `each` says how many codes a class one has.
pub(super) fn best_of_each_kind(
    candidates: &[Candidate],
    classes: usize,
    each: &dyn Fn(&Candidate) -> usize,
) -> Vec<Candidate> {
    let mut kinds = Vec::new();
    for kind in candidates.iter().map(|one| one.kind(classes)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let own = |kind| candidates.iter().filter(|one| one.kind(classes) == kind).copied().collect::<Vec<_>>();
    let best: Vec<Candidate> = kinds.into_iter().filter_map(|kind| pick(&own(kind), each)).collect();
    best.iter().filter(|one| pays(one, &best, classes)).copied().collect()
}

/// Whether a view is worth its trouble: local distances are, where they find clearly more than plain ones with the same norm that
/// whiten as it does, or do not.
fn pays(one: &Candidate, best: &[Candidate], classes: usize) -> bool {
    let (norm, whitens, local) = one.kind(classes);
    let plain = best.iter().find(|other| other.kind(classes) == (norm, whitens, false));
    !local || plain.is_none_or(|plain| one.auroc >= plain.auroc + TIE)
}

/// The best of candidates of one kind: the largest AUROC, unless one code a class on every axis is within `TIE` of it. Then
/// the strongest whitening of those, which alone sees directions in which training rows do not vary; no stranger that is made of
/// training rows can test that. For the same reason, few codes a class on some axes take the energy along unless the folds speak
/// clearly against it.
fn pick(own: &[Candidate], each: &dyn Fn(&Candidate) -> usize) -> Option<Candidate> {
    // They come in the order of preference: ridges rising, one code a class first, the sum first.
    let best = own.iter().map(|candidate| candidate.auroc).fold(f64::NEG_INFINITY, f64::max);
    let simple =
        own.iter().find(|one| one.auroc >= best - TIE && one.filling == Filling::Single && one.full_rank);
    if let Some(simple) = simple {
        return Some(*simple);
    }
    let picked = *own.iter().find(|candidate| candidate.auroc >= best)?;
    let twin = |candidate: &&Candidate| {
        (candidate.ridge, candidate.filling, candidate.form) == (picked.ridge, picked.filling, Form::Sum)
            && candidate.auroc >= picked.auroc - HANDICAP
    };
    own.iter().filter(|_| each(&picked) < MANY_CODES).find(twin).copied().or(Some(picked))
}

/// A candidate, and g of known and hidden rows in every fold.
type Seen = (Candidate, Vec<Both<Vec<f32>>>);

/// Views that are better together, the best first: each next one is that with which the mean finds most. No stranger here has a
/// wrong gain, so a view that is not of rows at length 1 gets a place at any price. The first has the norm `first`, if that is given.
pub(super) fn join(
    judged: &[Vec<Trial>],
    norms: &[Norm],
    ordered: &[Candidate],
    most: usize,
    first: Option<Norm>,
) -> Result<Vec<Candidate>> {
    let mut left: Vec<Seen> = Vec::new();
    for candidate in ordered {
        let norm = norms.iter().position(|norm| *norm == candidate.norm).unwrap_or(0);
        let ridge = RIDGES.iter().position(|ridge| *ridge == candidate.ridge).unwrap_or(0);
        let trials = judged.iter().filter_map(|fold| fold[norm][place(ridge, candidate.filling)].as_ref());
        left.push((*candidate, trials.map(|trial| trial.surprise(candidate.form)).collect::<Result<_>>()?));
    }
    let mut joined: Vec<Seen> = Vec::new();
    let mut reached = f64::NEG_INFINITY;
    while joined.len() < most {
        let fits = |one: &Candidate| !joined.is_empty() || first.is_none_or(|norm| one.norm == norm);
        let next = next(&joined, &left, &fits)?;
        let Some((mean, index)) = next.filter(|(mean, _)| *mean >= reached - JOINED) else { break };
        reached = mean;
        joined.push(left.remove(index));
    }
    if most > 1 && joined.iter().all(|(one, _)| one.norm.has_length()) {
        left.retain(|(one, _)| !one.norm.has_length());
        // Where nothing else fits, the last view keeps its place.
        let room = joined.len().min(most - 1);
        if let Some((_, index)) = next(&joined[..room], &left, &|_| true)? {
            joined.truncate(room);
            joined.push(left.swap_remove(index));
        }
    }
    Ok(joined.into_iter().map(|(candidate, _)| candidate).collect())
}

/// Mean AUROC with the one that is best beside those that are joined, among those that `fits` allows, and where it is.
fn next(joined: &[Seen], left: &[Seen], fits: &dyn Fn(&Candidate) -> bool) -> Result<Option<(f64, usize)>> {
    let mut best: Option<(f64, usize)> = None;
    for (index, (_, surprises)) in left.iter().enumerate().filter(|(_, (one, _))| fits(one)) {
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
    Ok(best)
}
