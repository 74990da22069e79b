//! A network from elsewhere, without codes, and rows → the whole model: `dab pack --fit`.
//!
//! ```text
//! rows → layers → features → head → codes in each class → table of held-out rows
//! ```
//!
//! A file with a head has an encoder: its Gaussians are gathered into codes (E10 to E12, each row in its nearest code). One
//! without a head gets what `dab fit` makes of features: a head that whitens them, codes of constant covariance. The user's
//! last layer then reads the latent mean, through the inverse of the whitening.

use anyhow::{Context, Result, ensure};
use dab_core::artifact::writer::{CalibrationSpec, ChannelsSpec, Codes as CodesSpec, Head, Spec};
use dab_core::channels::Form;
use dab_core::{Activation, CovarianceKind, Rates, Task};
use nalgebra::DMatrix;

use crate::{
    choose::plan::alpha,
    config::retrofit::{Norm, ViewConfig},
    data::{Split, Table, Targets, split},
    export::{
        device,
        pack::Network,
        retrofit::{self, Calibration},
    },
    learn::retrofit::{Affine, Codes, Fitted, Retrofitted},
    model::{
        codebook::{Codebook, Shrinkage},
        encoder::Covariance,
    },
    support::{random::Random, text::counted},
};

/// Share of the rows that calibrates.
const HELD_OUT: f64 = 0.2;
/// Known answers in the file.
const SELF_TESTS: usize = 4;
/// Ridge of the whitening: what `dab fit --fast` takes.
const RIDGE: f64 = 0.1;
/// How codes of an encoder are drawn together: enough that a code of one row has a volume.
const SHRINKAGE: Shrinkage = Shrinkage { pooled: 0.1, ridge: 1e-3 };
/// Rows without which there is nothing to fit.
const LEAST: usize = 20;
/// Codes of rows without classes, unless another number is asked for.
const DEFAULT_CODES: usize = 10;

/// The rows, cut in two.
struct Cut {
    fitting: Table,
    held_out: Table,
    /// Classes of the fitting rows, all below the second number.
    labels: Option<(Vec<u32>, usize)>,
    /// Whether they run through the layers, or are features already.
    whole: bool,
    /// Codes a class; in all, without classes.
    codes: Option<usize>,
}

impl Cut {
    fn new(
        network: &Network,
        rows: &Table,
        labels: Option<(Vec<u32>, usize)>,
        codes: Option<usize>,
    ) -> Result<Self> {
        let (found, columns) = (rows.rows, rows.cols);
        ensure!(
            columns == network.inputs || columns == network.features,
            "the rows have {}: the network takes {}{}",
            counted(columns, "column"),
            counted(network.inputs, "input"),
            match network.features == network.inputs {
                true => String::new(),
                false => format!(", and its head {}", counted(network.features, "feature")),
            }
        );
        ensure!(found >= LEAST, "{} are too few to fit to: give at least {LEAST}", counted(found, "row"));
        ensure!(codes != Some(0), "--codes 0: a model has at least one code");
        if let Some((labels, _)) = &labels {
            ensure!(
                labels.len() == found,
                "{} but {}: every row needs its own",
                counted(found, "row"),
                counted(labels.len(), "label")
            );
        }
        let mut random = Random::new(0, "pack/held-out");
        let (kept, taken) = match &labels {
            Some((labels, _)) => split::by_class(labels, HELD_OUT, &mut random),
            None => split::fraction(found, HELD_OUT, &mut random),
        };
        let of_kept = |labels: &[u32]| kept.iter().map(|&row| labels[row]).collect();
        Ok(Self {
            fitting: rows.select(&kept),
            held_out: rows.select(&taken),
            labels: labels.map(|(labels, count)| (of_kept(&labels), count)),
            whole: columns == network.inputs,
            codes,
        })
    }

    /// Codes for each class.
    fn each(&self, classed: bool) -> usize {
        self.codes.unwrap_or(if classed { 1 } else { DEFAULT_CODES })
    }
}

/// Head (if there is none), codes, priors and calibration of a network, from rows that enter it or are its features, with their
/// classes, if they are known, and the codes a class. Also gives the inputs that calibrated it: none where the rows were features.
pub fn complete(
    network: &Network,
    rows: &Table,
    labels: Option<(Vec<u32>, usize)>,
    codes: Option<usize>,
) -> Result<(Spec, Option<Table>)> {
    let cut = Cut::new(network, rows, labels, codes)?;
    let mut spec = match &network.head {
        Some(head) => encoder(network, head, &cut)?,
        None => whitened(network, &cut)?,
    };
    // What was fitted to features gets the layers before it: the bits of the scores stay.
    spec.inputs = network.inputs;
    spec.normalization.clone_from(&network.normalization);
    spec.layers.clone_from(&network.layers);
    spec.info.clone_from(&network.info);
    if let (Some(rates), Some(calibration)) = (network.rates, &mut spec.calibration) {
        calibration.rates = rates;
    }
    spec.self_test = match network.self_test.is_empty() && cut.whole {
        true => cut.held_out.iter().take(SELF_TESTS).map(<[f32]>::to_vec).collect(),
        false => network.self_test.clone(),
    };
    Ok((spec, cut.whole.then_some(cut.held_out)))
}

/// A model of the network's layers, if the rows need them, and of this head, with one code: enough to encode rows.
fn draft(network: &Network, whole: bool, head: Head) -> Spec {
    let (dim, constant) = (head.dim, head.covariance == CovarianceKind::Constant);
    let covs = match head.covariance {
        CovarianceKind::Constant => Vec::new(),
        CovarianceKind::Diagonal => vec![1.0; dim],
        CovarianceKind::Spectral | CovarianceKind::Cholesky => {
            DMatrix::<f64>::identity(dim, dim).as_slice().to_vec()
        }
    };
    let codes = CodesSpec { means: vec![0.0; dim], covs, priors: vec![1.0], alpha: 1.0 };
    let mut spec = Spec::new(if whole { network.inputs } else { network.features }, head, codes);
    spec.channels = constant.then(ChannelsSpec::default);
    if whole {
        spec.normalization.clone_from(&network.normalization);
        spec.layers.clone_from(&network.layers);
    }
    spec
}

/// The features of rows, as a device computes them.
fn features(network: &Network, whole: bool, rows: &Table) -> Result<Table> {
    if !whole || rows.rows == 0 {
        return Ok(Table { cols: network.features, ..rows.clone() });
    }
    let width = network.features;
    let head = Head {
        weight: DMatrix::<f32>::identity(width, width).as_slice().to_vec(),
        bias: None,
        activation: Activation::Identity,
        covariance: CovarianceKind::Constant,
        dim: width,
    };
    let encoded = device::encoded(&draft(network, whole, head).to_bytes()?, rows)?;
    Ok(Table::from_rows(&encoded.into_iter().map(|row| row.mean).collect::<Vec<_>>())?)
}

/// Codes of the Gaussians that the network's own head gives.
fn encoder(network: &Network, head: &Head, cut: &Cut) -> Result<Spec> {
    let mut spec = draft(network, cut.whole, head.clone());
    let encoded = device::encoded(&spec.to_bytes()?, &cut.fitting)?;
    let latent = Table::from_rows(&encoded.iter().map(|row| &row.mean).collect::<Vec<_>>())?;
    let each = cut.each(cut.labels.is_some());
    let (labels, classes) = cut.labels.clone().unwrap_or_else(|| (vec![0; latent.rows], 1));
    let found = Codes::fit(&latent, &labels, classes, each, 0, "pack/codes");
    let kind = match head.covariance {
        CovarianceKind::Diagonal => Covariance::Diagonal,
        _ => Covariance::Cholesky,
    };
    let mut book = Codebook::new(found.means.values.clone(), head.dim, kind);
    let entries = kind.entries(head.dim);
    let (mut weights, mut sums) = (vec![0.0; book.len()], vec![0.0; book.len() * entries]);
    for ((row, z), code) in encoded.iter().zip(latent.iter()).zip(found.members(&latent)) {
        let code = code as usize;
        weights[code] += 1.0;
        let mean = found.means.row(code);
        let offset: Vec<f64> = z.iter().zip(mean).map(|(&z, &m)| f64::from(z) - f64::from(m)).collect();
        let sum = &mut sums[code * entries..(code + 1) * entries];
        for (entry, (sum, inner)) in sum.iter_mut().zip(&row.cov).enumerate() {
            let (i, j) = match kind {
                Covariance::Diagonal => (entry, entry),
                _ => (entry / head.dim, entry % head.dim),
            };
            *sum += inner + offset[i] * offset[j];
        }
    }
    book.set_priors(&weights, 0.0);
    book.set_covs(&sums, &weights, SHRINKAGE);
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect();
    spec.codes = CodesSpec {
        means: wide(&book.means),
        covs: wide(&book.covs),
        priors: wide(&book.priors),
        alpha: network.alpha.unwrap_or(1.0),
    };
    spec.decoder.clone_from(&network.decoder);
    let said = device::assessments(&spec.to_bytes()?, &cut.held_out)?;
    let scores: Vec<f32> = said.iter().map(|said| said.uncertainty).collect();
    if !scores.is_empty() {
        let rates = Rates::for_held_out(u32::try_from(scores.len()).unwrap_or(u32::MAX));
        spec.calibration = Some(CalibrationSpec { scores, rates });
    }
    Ok(spec)
}

/// What `dab fit` makes of the network's features, with the network's own last layer.
fn whitened(network: &Network, cut: &Cut) -> Result<Spec> {
    let inputs = features(network, cut.whole, &cut.fitting).context("the features of the rows")?;
    let fresh = features(network, cut.whole, &cut.held_out).context("the features of the held-out rows")?;
    let own = network.decoder.as_ref();
    let affine = own.map(|own| Affine {
        weight: own.weight.clone(),
        bias: own.bias.clone().unwrap_or_else(|| vec![0.0; own.outputs]),
    });
    let classes = own.filter(|own| own.task == Task::Classification && own.outputs > 1);
    let (labels, count, classed) = match (&cut.labels, classes) {
        (Some((labels, count)), _) => (labels.clone(), *count, true),
        (None, Some(own)) => {
            // Without labels, a row belongs to the class that the network gives it.
            let logits = affine.as_ref().map(|own| own.apply(&inputs)).context("a decoder of classes")?;
            (logits.largest(), own.outputs, true)
        }
        (None, None) => (vec![0; inputs.rows], 1, false),
    };
    let config = ViewConfig {
        norm: Norm::Raw,
        ridge: RIDGE,
        rank: None,
        codes: cut.each(classed),
        local: false,
        alpha: network.alpha.map_or_else(|| alpha(network.features), f64::from),
        form: if classes.is_some() { Form::Sum } else { Form::Distance },
    };
    let train = Split { inputs, targets: Targets::Classes { labels, count } };
    // With a last layer the fit makes none of its own; what this one gives is put in below.
    let none = Affine { weight: vec![0.0; count * network.features], bias: vec![0.0; count] };
    let mut model = Retrofitted::fit(&[config], &train, Some(none), 0)?;
    model.head = None;
    model.regression = own.is_some_and(|own| own.task == Task::Regression);
    let tried = model.trials.iter_mut().flat_map(|trial| &mut trial.views);
    for view in model.views.iter_mut().chain(tried) {
        view.decoder = affine.as_ref().map(|own| through(own, view)).transpose()?;
    }
    retrofit::calibrated(&model, Calibration::HeldOut(&fresh), Vec::new())
}

/// `own`, which reads features, as a map of the view's latent mean: features = W⁻¹ (z − b).
fn through(own: &Affine, view: &Fitted) -> Result<Affine> {
    let dim = view.head.outputs();
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let whitening = DMatrix::from_row_slice(dim, dim, &wide(&view.head.weight));
    let inverse = whitening.try_inverse().context("the features' covariance cannot be inverted")?;
    let weight = DMatrix::from_row_slice(own.outputs(), dim, &wide(&own.weight)) * inverse;
    let shift = &weight * DMatrix::from_column_slice(dim, 1, &wide(&view.head.bias));
    Ok(Affine {
        weight: weight.transpose().as_slice().iter().map(|&w| w as f32).collect(),
        bias: wide(&own.bias).iter().zip(shift.as_slice()).map(|(b, s)| (b - s) as f32).collect(),
    })
}
