//! A model without gradients: views of an input that are computed in closed form or by k-means.
//!
//! ```text
//! rows → norm → whitening → codes in each class → decoder (softmax or ridge regression, or the user's own last layer)
//! ```
//!
//! It is a special case of E1–E7 with a constant encoder covariance: z = μ, Σ = Σ_κ = I, and the scale lies in the head.

pub mod codes;
pub mod rest;
pub mod view;
pub mod whitening;

use anyhow::{Context, Result, ensure};

pub use codes::{Codes, unit};
pub use view::{Fitted, Prepare, energy, leaves_axes_out, spread_around};
pub use whitening::{Affine, Spread};

use super::{logistic::Logistic, ridge::Ridge};
use crate::{
    config::retrofit::ViewConfig,
    data::{Scale, Split, Table, Targets},
    model::{codebook::Codebook, encoder::Covariance},
    support::random::Random,
};

/// All views of a model, fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Retrofitted {
    /// Values per input.
    pub inputs: usize,
    /// The base first.
    pub views: Vec<Fitted>,
    /// The user's own last layer: it decodes the raw input in place of the base view's decoder.
    pub head: Option<Affine>,
    /// Whether numbers are predicted.
    pub regression: bool,
    /// What stands in for fresh rows before any are touched: one trial, or several where rows are few.
    pub trials: Vec<Trial>,
}

/// The same views fitted to most of the training rows, and the rest of these.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The base first.
    pub views: Vec<Fitted>,
    /// Rows that they were not fitted to.
    pub rows: Table,
}

/// A regression's view of fewer axes than this is lifted to as many: with few, u is next to 0 near a code, and so would be the
/// band around a prediction.
const LEAST_AXES: usize = 4;
/// Share of the training rows that a trial sets aside.
const ASIDE: f64 = 0.2;
/// A tail is what lies beyond the 90 % quantile. With fewer rows aside than this, so many trials take turns that every row is aside
/// once. With more, taking turns changed nothing on the rows that the rule is developed on.
const ENOUGH_ASIDE: usize = 100;
const TURNS: usize = 5;
/// Fewer rows than this cannot be shared.
const LEAST_ROWS: usize = 20;

/// Class of every row, and how many classes; a regression is one class.
pub fn classes(targets: &Targets) -> (Vec<u32>, usize) {
    match targets {
        Targets::Classes { labels, count } => (labels.clone(), *count),
        Targets::Regression(table) => (vec![0; table.rows], 1),
    }
}

/// Penalties of the softmax regression on latent means, strongest first.
const PENALTIES: [f64; 4] = [1000.0 / 3.0, 100.0 / 3.0, 10.0 / 3.0, 1.0 / 3.0];
/// The one of them that choosing uses: a search over penalties for every candidate would not pay.
const USUAL: f64 = PENALTIES[1];

/// One scale for all axes, so that their mean square is 1: a penalty then means the same for every view.
fn shared_scale(latent: &Table) -> Scale {
    let squares: f64 = latent.values.iter().map(|&z| f64::from(z).powi(2)).sum();
    let size = (squares / latent.values.len().max(1) as f64).sqrt() as f32;
    let size = if size.is_normal() { size } else { 1.0 };
    Scale { mean: vec![0.0; latent.cols], std: vec![size; latent.cols] }
}

/// Axes along which fitting rows hardly vary have no scale of their own: with fewer rows than columns fresh rows do vary along
/// them, and a prediction would follow their noise.
fn axis_scale(latent: &Table) -> Scale {
    /// Least deviation of an axis, as a share of the usual one.
    const LEAST: f32 = 0.01;
    let mut scale = Scale::fit(latent);
    let squares: f32 = scale.std.iter().map(|std| std * std).sum();
    let usual = (squares / scale.std.len().max(1) as f32).sqrt();
    scale.std.iter_mut().for_each(|std| *std = std.max(LEAST * usual));
    scale
}

/// Logits from latent means by the usual penalty.
///
/// # Errors
/// As [`Logistic::fit`].
pub fn usual_logits(latent: &Table, labels: &[u32], classes: usize) -> Result<Logistic> {
    let none = Table { rows: 0, cols: latent.cols, values: Vec::new() };
    Logistic::fit_scaled((latent, labels), (&none, &[]), classes, shared_scale(latent), &[USUAL])
}

/// Outputs from latent means, by the penalty that judges best unless it is given; gives the penalty too.
fn decoder(
    latent: (&Table, &Targets),
    judges: (&Table, &Targets),
    only: Option<f64>,
) -> Result<(Affine, f64)> {
    let (layer, penalty) = match (latent.1, judges.1) {
        (Targets::Classes { labels, count }, Targets::Classes { labels: judging, .. }) => {
            let scale = shared_scale(latent.0);
            let penalties = only.map_or_else(|| PENALTIES.to_vec(), |only| vec![only]);
            let fitted =
                Logistic::fit_scaled((latent.0, labels), (judges.0, judging), *count, scale, &penalties)?;
            (fitted.layer(), fitted.penalty)
        }
        (Targets::Regression(wanted), Targets::Regression(judging)) => {
            let fitted =
                Ridge::fit_scaled((latent.0, wanted), (judges.0, judging), axis_scale(latent.0), only)?;
            ((fitted.weight, fitted.bias), fitted.penalty)
        }
        _ => anyhow::bail!("rows have targets of different kinds"),
    };
    Ok((layer.into(), penalty))
}

/// The rows that each trial keeps and sets aside, class by class; all of them twice when they are too few to share.
fn cuts(train: &Split, seed: u64) -> Vec<(Split, Split)> {
    let rows = train.inputs.rows;
    let random = &mut Random::new(seed, "fit/aside");
    let (kept, aside) = train.targets.cut(ASIDE, random);
    if aside.len() >= ENOUGH_ASIDE {
        return vec![(train.select(&kept), train.select(&aside))];
    }
    let parts = if rows < LEAST_ROWS { Vec::new() } else { train.targets.deal(TURNS, random) };
    let cut = |part: &Vec<usize>| {
        let kept: Vec<usize> = (0..rows).filter(|row| part.binary_search(row).is_err()).collect();
        (train.select(&kept), train.select(part))
    };
    let cuts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).map(cut).collect();
    if cuts.is_empty() { vec![(train.clone(), train.clone())] } else { cuts }
}

/// Gives the view of each trial its decoder, and the last one, which was fitted to all rows. The penalty is the middle one of those
/// that judge the trials best.
fn decode(views: &mut [Fitted], train: &Split, cuts: &[(Split, Split)]) -> Result<()> {
    let of = |view: &Fitted, rows: &Split, judges: &Split, only| {
        let (latent, judging) = (view.latent(&rows.inputs), view.latent(&judges.inputs));
        decoder((&latent, &rows.targets), (&judging, &judges.targets), only)
    };
    let rows =
        cuts.iter().map(|(kept, aside)| (kept, aside)).chain(cuts.first().map(|(_, aside)| (train, aside)));
    let judged = views.iter().zip(cuts).map(|(view, (kept, aside))| of(view, kept, aside, None));
    let judged = judged.collect::<Result<Vec<_>>>()?;
    let mut penalties: Vec<f64> = judged.iter().map(|(_, penalty)| *penalty).collect();
    penalties.sort_by(f64::total_cmp);
    let penalty = penalties[penalties.len() / 2];
    let mut own = judged.into_iter().map(|(affine, own)| (own == penalty).then_some(affine));
    for (view, (rows, judges)) in views.iter_mut().zip(rows) {
        let affine = match own.next().flatten() {
            Some(affine) => affine,
            None => of(view, rows, judges, Some(penalty))?.0,
        };
        view.decoder = Some(affine);
    }
    Ok(())
}

impl Retrofitted {
    /// Fits views to training rows.
    ///
    /// Scales of distances and penalties of decoders come from trials: the same views, fitted to most of the rows and judged
    /// by the rest, which are other rows in each. Held-out rows have no part in it, so that p-values that are made of them hold exactly.
    ///
    /// # Errors
    /// No view, no rows, or a last layer of another shape.
    pub fn fit(configs: &[ViewConfig], train: &Split, head: Option<Affine>, seed: u64) -> Result<Self> {
        Self::fit_for(configs, train, head, false, seed)
    }

    /// [`Retrofitted::fit`] for a file with weights of one byte, or not.
    ///
    /// # Errors
    /// As [`Retrofitted::fit`].
    pub fn fit_for(
        configs: &[ViewConfig],
        train: &Split,
        head: Option<Affine>,
        bytes: bool,
        seed: u64,
    ) -> Result<Self> {
        ensure!(!configs.is_empty(), "a model has at least one view");
        let count = classes(&train.targets).1;
        let inputs = train.inputs.cols;
        if let Some(own) = &head {
            let (outputs, weights) = (own.outputs(), own.weight.len());
            ensure!(
                outputs == count || outputs != inputs || weights != count * inputs,
                "the weight of the last layer is [{inputs}, {count}], expected [{count} classes, {inputs} inputs]: transpose it"
            );
            ensure!(
                outputs == count && weights == count * inputs,
                "the last layer has {outputs} outputs and {weights} weights; {count} classes of {inputs} inputs need \
                 {count} and {}",
                count * inputs
            );
        }
        let regression = matches!(train.targets, Targets::Regression(_));
        let cuts = cuts(train, seed);
        let mut views = Vec::new();
        let mut trials: Vec<Trial> =
            cuts.iter().map(|(_, aside)| Trial { views: Vec::new(), rows: aside.inputs.clone() }).collect();
        for (index, config) in configs.iter().enumerate() {
            let fitted =
                |rows: &Split| Fitted::fit(config, &rows.inputs, &classes(&rows.targets).0, count, seed);
            // The view last, behind those of the trials.
            let mut all = cuts.iter().map(|(kept, _)| fitted(kept)).collect::<Result<Vec<_>>>()?;
            let nearest: Vec<f32> = all
                .iter()
                .zip(&cuts)
                .flat_map(|(trial, (_, aside))| trial.codes.nearest(&trial.latent(&aside.inputs)))
                .collect();
            all.push(fitted(train)?);
            let dim = all[0].head.outputs();
            let scale = unit(&nearest, dim);
            all.iter_mut().for_each(|view| view.rescale(scale));
            let decodes = if index == 0 { head.is_none() } else { config.form.uses_energy() };
            if decodes {
                decode(&mut all, train, &cuts).with_context(|| format!("the decoder of view {index}"))?;
            }
            if regression && dim < LEAST_AXES {
                let missing = ((LEAST_AXES - dim) as f32).sqrt();
                all.iter_mut().for_each(|view| view.lift(missing));
            }
            if leaves_axes_out(Some(dim), inputs) {
                let squares: Vec<(f64, f64)> = all
                    .iter()
                    .zip(&cuts)
                    .flat_map(|(trial, (_, aside))| trial.rest_squares(&aside.inputs))
                    .collect();
                let gain = rest::gain(&squares, inputs - dim, rest::least_share(bytes, all[0].prepare.l2));
                all.iter_mut().for_each(|view| view.add_rest(gain));
            }
            views.extend(all.pop());
            trials.iter_mut().zip(all).for_each(|(trial, view)| trial.views.push(view));
        }
        Ok(Self { inputs, views, head, regression, trials })
    }

    /// The codes of the base view, with their constant covariance spelt out.
    pub fn codebook(&self) -> Codebook {
        let base = &self.views[0];
        Codebook {
            dim: base.head.outputs(),
            kind: Covariance::Diagonal,
            means: base.codes.means.values.clone(),
            covs: vec![1.0; base.codes.means.values.len()],
            priors: base.codes.priors.iter().map(|&p| p as f32).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_of_few_rows_is_aside_once_and_of_many_a_fifth() {
        for (count, trials) in [(19, 1), (20, TURNS), (400, TURNS), (600, 1)] {
            let labels: Vec<u32> = (0..count as u32).map(|row| row % 3).collect();
            let inputs = Table::column((0..count).map(|row| row as f32).collect());
            let train = Split { inputs, targets: Targets::Classes { labels, count: 3 } };
            let cuts = cuts(&train, 0);
            assert_eq!(cuts.len(), trials, "{count}");
            let mut aside: Vec<f32> =
                cuts.iter().flat_map(|(_, aside)| aside.inputs.values.clone()).collect();
            aside.sort_by(f32::total_cmp);
            let once = if trials == TURNS || count == 19 { count } else { count / 5 };
            assert!(
                aside.len().abs_diff(once) <= 1 && aside.windows(2).all(|pair| pair[0] < pair[1]),
                "{aside:?}"
            );
            // Nothing is fitted to what it is judged by, unless there is hardly anything.
            for (kept, aside) in &cuts {
                let shared = aside.inputs.values.iter().any(|row| kept.inputs.values.contains(row));
                assert!(shared == (count == 19) && (shared || kept.inputs.rows + aside.inputs.rows == count));
            }
        }
    }

    #[test]
    fn trials_share_one_scale_and_one_penalty() {
        let mut random = Random::new(7, "trials");
        let labels: Vec<u32> = (0..150).map(|row| row % 3).collect();
        let row = |&label: &u32| [(); 4].map(|()| 3.0 * label as f32 + random.normal() as f32);
        let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
        let train = Split { inputs, targets: Targets::Classes { labels, count: 3 } };
        let config = ViewConfig { codes: 40, ..ViewConfig::default() };
        let model = Retrofitted::fit(&[config], &train, None, 0).unwrap();
        assert_eq!(model.trials.len(), TURNS);
        // Every row is a code of the model; rows of a trial are judged by codes that are not theirs.
        let aside = |trial: &Trial| trial.views[0].codes.nearest(&trial.views[0].latent(&trial.rows));
        let nearest: Vec<f32> = model.trials.iter().flat_map(aside).collect();
        assert!(
            (unit(&nearest, 4) - 1.0).abs() < 1e-3,
            "one standard deviation an axis: {}",
            unit(&nearest, 4)
        );
        let own = model.views[0].codes.nearest(&model.views[0].latent(&train.inputs));
        assert!(own.iter().sum::<f32>() < 0.5 * nearest.iter().sum::<f32>());
        // The penalty decides how long the weights are.
        let length = |view: &Fitted| {
            let weights = &view.decoder.as_ref().unwrap().weight;
            weights.iter().map(|w| w * w).sum::<f32>().sqrt()
        };
        let all: Vec<f32> = model
            .trials
            .iter()
            .map(|trial| length(&trial.views[0]))
            .chain([length(&model.views[0])])
            .collect();
        let (least, most) = all.iter().fold((f32::MAX, 0.0_f32), |(a, b), &x| (a.min(x), b.max(x)));
        assert!(most < 1.5 * least, "{all:?}");
    }
}
