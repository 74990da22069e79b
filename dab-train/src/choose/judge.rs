//! How well candidates tell hidden classes from known ones, in one fold.
//!
//! ```text
//! fold + norm → whitening, codes, decoder for each ridge and size → u, E of known and hidden rows → t, g by form → AUROC
//! ```

use anyhow::{Context, Result};
use dab_core::channels::{Form, Tail, Tails};

use super::{
    folds::Fold,
    plan::{self, Filling, Size},
};
use crate::{
    config::retrofit::Norm,
    data::Table,
    learn::retrofit::{
        Affine, Codes, Prepare, Spread, energy, leaves_axes_out, rest, spread_around, usual_logits,
    },
    measure::metrics,
};

/// The ridge whose latent means the decoder reads.
const DECODER_RIDGE: f64 = 1.0;
/// The least ridge of a view with fewer axes than columns.
const LOW_RANK_RIDGE: f64 = 1.0;

/// Known rows first, hidden rows second.
pub type Both<T> = [T; 2];

/// u and E of one candidate in one fold.
#[derive(Clone, Debug)]
pub struct Judged {
    distance: Both<Vec<f32>>,
    /// Where two or more classes are known.
    energy: Option<Both<Vec<f32>>>,
}

impl Judged {
    /// u, and E where there are logits.
    pub const fn new(distance: Both<Vec<f32>>, energy: Option<Both<Vec<f32>>>) -> Self {
        Self { distance, energy }
    }

    /// g of the view's score, by its form; the known rows give the tails.
    ///
    /// # Errors
    /// When a score is not finite.
    pub fn surprise(&self, form: Form) -> Result<Both<Vec<f32>>> {
        let tail = |scores: &[f32]| Tail::fit(scores).context("a score of a known row is not finite");
        let mut tails = Tails { u: tail(&self.distance[0])?, ..Tails::UNIT };
        if let Some(energy) = &self.energy {
            tails.energy = tail(&energy[0])?;
        }
        let score = |side: usize| -> Vec<f32> {
            let energy = |row: usize| self.energy.as_ref().map(|energy| energy[side][row]);
            let distance = self.distance[side].iter().enumerate();
            distance.map(|(row, &u)| tails.score(form, u, energy(row))).collect()
        };
        let (known, hidden) = (score(0), score(1));
        tails.view = tail(&known)?;
        Ok([known, hidden].map(|scores| scores.into_iter().map(|t| tails.view.surprise(t)).collect()))
    }
}

/// AUROC of hidden rows against known ones by the mean of the views' surprises.
///
/// # Errors
/// When a side is empty or a score is not finite.
pub fn auroc(views: &[&Both<Vec<f32>>]) -> Result<f64> {
    let mean = |side: usize| -> Vec<f32> {
        let rows = views.first().map_or(0, |view| view[side].len());
        (0..rows)
            .map(|row| views.iter().map(|view| view[side][row]).sum::<f32>() / views.len() as f32)
            .collect()
    };
    metrics::auroc(&mean(0), &mean(1))
}

/// g of known and hidden rows by each view of a model whose file has `flash` bytes, fitted to a fold: its norm, ridge, filling and
/// form. None when they do not fit into the flash of the fold.
pub fn surprises(
    fold: &Fold,
    views: &[(Norm, f64, Filling, Form)],
    flash: Option<u64>,
    seed: u64,
) -> Result<Option<Vec<Both<Vec<f32>>>>> {
    let room = flash.map(|flash| fold.rows.room(flash) / views.len().max(1) as u64);
    let mut all = Vec::new();
    for &(norm, ridge, filling, form) in views {
        let Some(size) = fold.rows.size(norm, room, filling) else { return Ok(None) };
        let judged = judge(fold, norm, &[sound(ridge, size.dim, fold.fit.cols)], &[Some(size)], seed)?;
        let Some(Some(judged)) = judged.first() else { return Ok(None) };
        all.push(judged.surprise(form)?);
    }
    Ok(Some(all))
}

/// The ridge of a view of `dim` axes that asks for `ridge`: leading axes after a strong whitening are those of noise.
#[must_use]
pub fn sound(ridge: f64, dim: usize, inputs: usize) -> f64 {
    if dim < inputs { ridge.max(LOW_RANK_RIDGE) } else { ridge }
}

/// Judges every ridge with every size, ridges outermost. A size of `None` is no candidate, nor is a ridge that its number of axes
/// does not allow, nor a strong whitening of fewer rows than columns: what they do not vary by at all it takes for the most telling. One decoder serves all ridges: its energy hardly depends on them, but it does on the number of axes.
///
/// # Errors
/// When the fold has no rows.
pub fn judge(
    fold: &Fold,
    norm: Norm,
    ridges: &[f64],
    sizes: &[Option<Size>],
    seed: u64,
) -> Result<Vec<Option<Judged>>> {
    let prepare = Prepare::fit(norm, &fold.fit);
    let [fit, known, hidden] = [&fold.fit, &fold.known, &fold.hidden].map(|rows| prepare.apply(rows));
    let spread = Spread::fit(&fit, &fold.labels, fold.classes)?;
    let mut energies: Vec<(usize, Option<Both<Vec<f32>>>)> = Vec::new();
    for size in sizes.iter().flatten() {
        if energies.iter().all(|(dim, _)| *dim != size.dim) {
            let head = spread.rotated(DECODER_RIDGE, size.dim);
            energies.push((size.dim, energies_of(fold, &head, [&fit, &known, &hidden])?));
        }
    }
    let mut spreads: Vec<(usize, Spread)> = Vec::new();
    for size in sizes.iter().flatten() {
        if spreads.iter().all(|(each, _)| *each != size.each) {
            let labels = (&*fold.labels, fold.classes);
            spreads.push((size.each, spread_around(spread.clone(), &fit, labels, size.each, seed)?));
        }
    }
    let least = if fit.rows <= fit.cols { LOW_RANK_RIDGE } else { 0.0 };
    let mut all = Vec::new();
    for &ridge in ridges {
        // Sizes that differ in how distances count have the same codes.
        let mut last: Option<(Size, View)> = None;
        for size in sizes {
            let sound = |size: &Size| sound(ridge, size.dim, fit.cols).max(least) <= ridge;
            let of_each = |size: Size| spreads.iter().find(|(each, _)| *each == size.each);
            let Some((size, (_, spread))) = size.filter(sound).and_then(|size| Some((size, of_each(size)?)))
            else {
                all.push(None);
                continue;
            };
            let same = |(other, _): &(Size, View)| (other.dim, other.each) == (size.dim, size.each);
            let view = match last.take().filter(same) {
                Some((_, view)) => view,
                None => View::fit(fold, norm, size, [&fit, &known, &hidden], (spread, ridge), seed),
            };
            let distance = view.distances(size);
            last = Some((size, view));
            let energy =
                energies.iter().find(|(dim, _)| *dim == size.dim).and_then(|(_, energy)| energy.clone());
            all.push(Some(Judged { distance, energy }));
        }
    }
    Ok(all)
}

/// E of known and hidden rows, by a decoder of fitting rows; none of a single class.
fn energies_of(
    fold: &Fold,
    head: &Affine,
    [fit, known, hidden]: [&Table; 3],
) -> Result<Option<Both<Vec<f32>>>> {
    if fold.classes < 2 {
        return Ok(None);
    }
    let decoder = Affine::from(usual_logits(&head.apply(fit), &fold.labels, fold.classes)?.layer());
    Ok(Some([known, hidden].map(|rows| energy(&decoder.apply(&head.apply(rows))))))
}

/// Codes of a fold, before their distances count in anything.
struct View {
    /// z of fitting, known and hidden rows.
    latents: [Table; 3],
    codes: Codes,
    /// Half the square of the rest of known and hidden rows; none of a view with every axis.
    outside: Both<Vec<f32>>,
}

impl View {
    fn fit(
        fold: &Fold,
        norm: Norm,
        size: Size,
        rows: [&Table; 3],
        (spread, ridge): (&Spread, f64),
        seed: u64,
    ) -> Self {
        let head = spread.whitening(ridge, Some(size.dim));
        let latents = rows.map(|rows| head.apply(rows));
        let stream = format!("fit/codes/{}/{}", norm.name(), size.each);
        let codes = Codes::fit(&latents[0], &fold.labels, fold.classes, size.each, seed, &stream);
        let [fit, known, hidden] = rows;
        let mut outside = Both::default();
        if leaves_axes_out(Some(head.outputs()), fit.cols) {
            let squares = [known, hidden].map(|rows| rest::squares(&head, spread.mean(), rows));
            let share = rest::least_share(fold.rows.int8, norm.has_length());
            let gain = f64::from(rest::gain(&squares[0], fit.cols - head.outputs(), share));
            let half = |&(square, _): &(f64, f64)| (0.5 * gain * gain * square) as f32;
            outside = squares.map(|squares| squares.iter().map(half).collect());
        }
        Self { latents, codes, outside }
    }

    /// u of known and hidden rows.
    fn distances(&self, size: Size) -> Both<Vec<f32>> {
        let (mut latents, mut codes) = (self.latents.clone(), self.codes.clone());
        if size.local {
            codes.count_locally(&latents[0]);
        }
        codes.temper(&mut latents);
        let [_, known, hidden] = &latents;
        let [of_known, of_hidden] = &self.outside;
        [(known, of_known), (hidden, of_hidden)]
            .map(|(latent, outside)| codes.uncertainty(latent, outside, plan::alpha(size.dim)))
    }
}
