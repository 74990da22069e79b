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
/// What may be lost among the folds for the sake of strangers that they do not have: by the energy of a coarse view, whose decoders
/// see a part of the rows that the final one has, or by a view with every axis.
const HANDICAP: f64 = 0.01;
/// A joining that costs less than this is taken: it cannot be told from noise, and diverse views are steadier.
pub(super) const JOINED: f64 = 5e-4;

/// Every candidate with its mean AUROC over the folds, those left out that do not fit into each of them.
pub(super) fn scored(
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

/// The best of each norm and kind that candidates have; `each` says how many codes a class one has.
pub(super) fn best_of_each_kind(
    candidates: &[Candidate],
    classes: usize,
    each: &dyn Fn(&Candidate) -> usize,
) -> Vec<Candidate> {
    let mut kinds: Vec<_> = candidates.iter().map(|one| one.kind(classes)).collect();
    kinds.dedup();
    let own = |kind| candidates.iter().filter(|one| one.kind(classes) == kind).copied().collect::<Vec<_>>();
    kinds.into_iter().filter_map(|kind| pick(&own(kind), each)).collect()
}

/// The best of candidates of one kind: the largest AUROC, unless one code a class on every axis is within `TIE` of it. Then
/// the strongest whitening of those, which alone sees directions in which training rows do not vary; no stranger that is made of
/// training rows can test that. For the same reason, few codes a class on some axes take the energy along unless the folds speak
/// clearly against it.
fn pick(own: &[Candidate], each: &dyn Fn(&Candidate) -> usize) -> Option<Candidate> {
    // They come in the order of preference: ridges rising, one code a class first, the sum first.
    let best = own.iter().map(|candidate| candidate.auroc).fold(f64::NEG_INFINITY, f64::max);
    let simple = own.iter().find(|one| one.auroc >= best - TIE && !one.deep && one.full_rank);
    if let Some(simple) = simple {
        return Some(*simple);
    }
    let picked = *own.iter().find(|candidate| candidate.auroc >= best)?;
    let twin = |candidate: &&Candidate| {
        (candidate.ridge, candidate.deep, candidate.form) == (picked.ridge, picked.deep, Form::Sum)
            && candidate.auroc >= picked.auroc - HANDICAP
    };
    own.iter().filter(|_| each(&picked) < MANY_CODES).find(twin).copied().or(Some(picked))
}

/// A candidate, and g of known and hidden rows in every fold.
type Seen = (Candidate, Vec<Both<Vec<f32>>>);

/// Views that are better together, the best first: each next one is that with which the mean finds most. No stranger here is one in
/// directions in which training rows hardly vary, or has a wrong gain. So a view with every axis gets a place where it costs less
/// than `HANDICAP`, and one that is not of rows at length 1 at any price.
pub(super) fn join(
    judged: &[Vec<Trial>],
    norms: &[Norm],
    ordered: &[Candidate],
    most: usize,
) -> Result<Vec<Candidate>> {
    let mut left: Vec<Seen> = Vec::new();
    for candidate in ordered {
        let norm = norms.iter().position(|norm| *norm == candidate.norm).unwrap_or(0);
        let ridge = RIDGES.iter().position(|ridge| *ridge == candidate.ridge).unwrap_or(0);
        let trials =
            judged.iter().filter_map(|fold| fold[norm][place(ridge, candidate.deep.into())].as_ref());
        left.push((*candidate, trials.map(|trial| trial.surprise(candidate.form)).collect::<Result<_>>()?));
    }
    let mut joined: Vec<Seen> = Vec::new();
    let mut reached = f64::NEG_INFINITY;
    while joined.len() < most {
        let next = next(&joined, &left)?;
        let Some((mean, index)) = next.filter(|(mean, _)| *mean >= reached - JOINED) else { break };
        reached = mean;
        joined.push(left.remove(index));
    }
    if most > 1 {
        let (whole, long) = (|one: &Candidate| one.full_rank, |one: &Candidate| !one.norm.has_length());
        admit(&mut joined, &left, most, &whole, &|_| false, reached - HANDICAP)?;
        admit(&mut joined, &left, most, &long, &whole, f64::NEG_INFINITY)?;
    }
    Ok(joined.into_iter().map(|(candidate, _)| candidate).collect())
}

/// Gives a place to a view that `sees` what none of the joined ones does, if there is one with which they reach `least`. The last view
/// makes room for it, but not the only one of which `keep` holds.
fn admit(
    joined: &mut Vec<Seen>,
    left: &[Seen],
    most: usize,
    sees: &dyn Fn(&Candidate) -> bool,
    keep: &dyn Fn(&Candidate) -> bool,
    least: f64,
) -> Result<()> {
    let seeing: Vec<Seen> = left.iter().filter(|(one, _)| sees(one)).cloned().collect();
    if joined.iter().any(|(one, _)| sees(one)) {
        return Ok(());
    }
    let mut beside = joined.clone();
    if beside.len() == most {
        let kept = beside.iter().filter(|(one, _)| keep(one)).count();
        if let Some(last) = beside.iter().rposition(|(one, _)| kept > 1 || !keep(one)) {
            beside.remove(last);
        }
    }
    if let Some((_, index)) = next(&beside, &seeing)?.filter(|(mean, _)| *mean >= least) {
        beside.push(seeing[index].clone());
        *joined = beside;
    }
    Ok(())
}

/// Mean AUROC with the one that is best beside those that are joined, and where it is.
fn next(joined: &[Seen], left: &[Seen]) -> Result<Option<(f64, usize)>> {
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
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A view that finds so many of four strangers.
    fn seen(norm: Norm, full_rank: bool, found: usize) -> Seen {
        let candidate =
            Candidate { full_rank, auroc: 0.0, ..Candidate::untried(norm, 1.0, false, Form::Distance) };
        let hidden = (0..4).map(|row| if row < found { 9.0 } else { -20.0 }).collect();
        (candidate, vec![[vec![1.0, 2.0, 3.0, 4.0], hidden]])
    }

    #[test]
    fn a_view_with_every_axis_takes_the_last_place_where_it_costs_little() {
        let whole = |one: &Candidate| one.full_rank;
        let long = |one: &Candidate| !one.norm.has_length();
        let some = vec![seen(Norm::L2, false, 4), seen(Norm::L2, false, 3)];
        let left = [seen(Norm::L2, true, 3), seen(Norm::L2, true, 2), seen(Norm::Raw, false, 4)];
        let mut joined = some.clone();
        // One stranger of four is no longer found.
        admit(&mut joined, &left, 2, &whole, &|_| false, 1.0).unwrap();
        assert!(joined == some, "{joined:?}");
        admit(&mut joined, &left, 2, &whole, &|_| false, 0.5).unwrap();
        assert!(joined == [some[0].clone(), left[0].clone()], "{joined:?}");
        // The view that sees a wrong gain leaves it its place.
        admit(&mut joined, &left, 2, &long, &whole, f64::NEG_INFINITY).unwrap();
        assert!(joined == [left[0].clone(), left[2].clone()], "{joined:?}");
        // Nothing is wanting.
        let kept = joined.clone();
        admit(&mut joined, &left, 2, &whole, &|_| false, 0.0).unwrap();
        assert!(joined == kept, "{joined:?}");
    }
}
