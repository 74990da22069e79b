//! A model without gradients: views of an input that are computed in closed form or by k-means.
//!
//! ```text
//! rows → norm → whitening → codes in each class → decoder (softmax or ridge regression, or the user's own last layer)
//! ```
//!
//! It is a special case of E1–E7 with a constant encoder covariance: z = μ, Σ = Σ_κ = I, and the scale lies in the head.

pub mod rest;
pub mod view;
pub mod whitening;

use anyhow::{Context, Result, ensure};

pub use view::{Codes, Fitted, Prepare, energy, leaves_axes_out, spread_around};
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
    /// What stands in for fresh rows before any are touched.
    pub trial: Trial,
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
/// Fewer rows than this say nothing about a tail.
const LEAST_ASIDE: usize = 20;

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

/// A part of the rows that is set aside, class by class; all of them twice when they are too few to share.
fn cut(train: &Split, seed: u64) -> (Split, Split) {
    let (kept, aside) = train.targets.cut(ASIDE, &mut Random::new(seed, "fit/aside"));
    if aside.len() < LEAST_ASIDE {
        return (train.clone(), train.clone());
    }
    (train.select(&kept), train.select(&aside))
}

impl Retrofitted {
    /// Fits views to training rows.
    ///
    /// Scales of distances and penalties of decoders come from a trial: the same views, fitted to most of the rows and judged
    /// by the rest. Held-out rows have no part in it, so that p-values that are made of them hold exactly.
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
        let (labels, count) = classes(&train.targets);
        let inputs = train.inputs.cols;
        if let Some(own) = &head {
            let (outputs, weights) = (own.outputs(), own.weight.len());
            ensure!(
                outputs == count && weights == count * inputs,
                "the last layer has {outputs} outputs and {weights} weights; {count} classes of {inputs} inputs need \
                 {count} and {}",
                count * inputs
            );
        }
        let regression = matches!(train.targets, Targets::Regression(_));
        let (kept, aside) = cut(train, seed);
        let (mut views, mut tried) = (Vec::new(), Vec::new());
        for (index, config) in configs.iter().enumerate() {
            let mut trial = Fitted::fit(config, &kept.inputs, &classes(&kept.targets).0, count, seed)?;
            let mut view = Fitted::fit(config, &train.inputs, &labels, count, seed)?;
            let scale = trial.codes.scale(&trial.latent(&aside.inputs));
            [&mut trial, &mut view].into_iter().for_each(|view| view.rescale(scale));
            let decodes = if index == 0 { head.is_none() } else { config.form.uses_energy() };
            if decodes {
                let of = |view: &Fitted, rows: &Split, judges: &Split, only| {
                    let (latent, judging) = (view.latent(&rows.inputs), view.latent(&judges.inputs));
                    decoder((&latent, &rows.targets), (&judging, &judges.targets), only)
                        .with_context(|| format!("the decoder of view {index}"))
                };
                let (affine, penalty) = of(&trial, &kept, &aside, None)?;
                trial.decoder = Some(affine);
                view.decoder = Some(of(&view, train, &aside, Some(penalty))?.0);
            }
            let dim = view.head.outputs();
            if regression && dim < LEAST_AXES {
                let missing = ((LEAST_AXES - dim) as f32).sqrt();
                [&mut trial, &mut view].into_iter().for_each(|view| view.lift(missing));
            }
            if let Some(gain) = trial.rest_gain(&aside.inputs, bytes) {
                [&mut trial, &mut view].into_iter().for_each(|view| view.add_rest(gain));
            }
            views.push(view);
            tried.push(trial);
        }
        Ok(Self { inputs, views, head, regression, trial: Trial { views: tried, rows: aside.inputs } })
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
