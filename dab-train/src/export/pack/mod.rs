//! A model from tensors trained anywhere: safetensors bytes → [`Spec`] → artifact.
//!
//! Only the head and the codes must be there. Every tensor's shape follows from those before it in the
//! flow (inputs → layers → head → codes → decoder), so an error can name the tensor, the shape that it should
//! have and why. The same file gives the same bytes: nothing here depends on the order of a hash map.

mod error;
mod metadata;
pub(in crate::export) mod tensors;

use dab_core::artifact::writer::{CalibrationSpec, Codes, DecoderSpec, Dense, Head, Normalization, Spec};
use dab_core::{CovarianceKind, Rates};
use safetensors::SafeTensors;

use self::metadata::{Metadata, missing, wrong};
use self::tensors::Tensors;
pub use error::PackError;
pub use tensors::Tensor;

use super::names;

/// The model in the bytes of a safetensors file. [`Spec::to_bytes`] makes an artifact of it.
///
/// # Errors
/// Whatever is wrong with the file, by the name of the tensor or the metadata key.
pub fn spec_from_safetensors(bytes: &[u8]) -> Result<Spec, PackError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(PackError::NotSafetensors)?;
    let file = SafeTensors::deserialize(bytes).map_err(PackError::NotSafetensors)?;
    let mut metadata = Metadata::new(header.metadata().clone().unwrap_or_default());
    let tensors = Tensors::new(file);

    let layer_count = tensors.layers()?;
    let head_weight = tensors.require(
        "head.weight",
        "[raw, features]",
        "it maps the features to the means and spreads of the encoder",
    )?;
    let (codes, covariance, dim) = codes(&tensors, &mut metadata)?;
    let layers =
        (0..layer_count).map(|n| layer(&tensors, &mut metadata, n)).collect::<Result<Vec<_>, _>>()?;
    let (inputs, layers) = chain(layers, &head_weight)?;
    let head = head(&tensors, &mut metadata, &head_weight, covariance, dim, layers.last())?;

    let spec = Spec {
        inputs,
        normalization: normalization(&tensors, inputs)?,
        layers,
        head,
        codes,
        decoder: decoder(&tensors, &mut metadata, dim)?,
        calibration: calibration(&tensors, &mut metadata)?,
        self_test: self_test(&tensors, inputs)?,
        channels: None,
        info: metadata.rest()?,
    };
    check_names(&spec)?;
    Ok(spec)
}

/// Codebook, kind of covariance, latent dimension.
fn codes(
    tensors: &Tensors<'_>,
    metadata: &mut Metadata,
) -> Result<(Codes, CovarianceKind, usize), PackError> {
    let mean = tensors.require("codes.mean", "[k, d]", "add the means of the k codes")?;
    let (k, d) = mean.matrix("[k, d]", "one row per code, one column per latent dimension")?;
    let cov = tensors.require(
        "codes.cov",
        &format!("[{k}, {d}] or [{k}, {d}, {d}]"),
        "add the variances (diagonal) or covariances of the codes",
    )?;
    let (diagonal, full) = (cov.shape == [k, d], cov.shape == [k, d, d]);
    let covariance = match metadata.covariance()? {
        Some(kind) => kind,
        None if diagonal => CovarianceKind::Diagonal,
        None => {
            let advice = "say how the head describes a covariance: diagonal, spectral or cholesky";
            return Err(missing("covariance", advice));
        }
    };
    let covs = match covariance {
        CovarianceKind::Diagonal if diagonal => cov.values,
        CovarianceKind::Diagonal => {
            return Err(cov.misshapen(
                &format!("[{k}, {d}]"),
                "a diagonal model has one variance per code and dimension; k and d are those of codes.mean",
            ));
        }
        _ if full => cov.values,
        _ if diagonal => spread_diagonals(&cov.values, d),
        kind => {
            let advice =
                format!("a {} model has one d x d covariance per code, d of codes.mean", kind.name());
            return Err(cov.misshapen(&format!("[{k}, {d}, {d}]"), &advice));
        }
    };
    let prior =
        tensors.require("codes.prior", &format!("[{k}]"), "add the mean assignment, or 1/k for each code")?;
    if prior.shape != [k] {
        return Err(prior.misshapen(&format!("[{k}]"), "one prior per row of codes.mean"));
    }
    mean.narrow()?;
    let codes = Codes { means: mean.values, covs, priors: prior.values, alpha: metadata.alpha()? };
    Ok((codes, covariance, d))
}

/// Variances `[k, d]` as covariances `[k, d, d]`.
fn spread_diagonals(variances: &[f64], d: usize) -> Vec<f64> {
    let mut covs = vec![0.0; variances.len() * d];
    for (i, &variance) in variances.iter().enumerate() {
        covs[i * d + i % d] = variance;
    }
    covs
}

/// A layer and the number of its inputs, which is not yet known to fit.
struct Link {
    weight: Tensor,
    inputs: usize,
    layer: Dense,
}

fn layer(tensors: &Tensors<'_>, metadata: &mut Metadata, n: usize) -> Result<Link, PackError> {
    let advice = "weights are stored as [out, in]";
    let weight = tensors.require(&format!("layers.{n}.weight"), "[out, in]", advice)?;
    let (outputs, inputs) = weight.matrix("[out, in]", advice)?;
    let bias = tensors.vector(
        &format!("layers.{n}.bias"),
        outputs,
        &format!("one value per row of layers.{n}.weight"),
    )?;
    let layer = Dense {
        weight: weight.narrow()?,
        bias,
        outputs,
        activation: metadata.activation(&format!("layers.{n}.activation"))?,
        residual: metadata.residual(n)?,
    };
    Ok(Link { weight, inputs, layer })
}

/// Number of inputs, and the layers once each takes what the one before it gives.
fn chain(links: Vec<Link>, head: &Tensor) -> Result<(usize, Vec<Dense>), PackError> {
    let (_, features) = head.matrix("[raw, features]", "weights are stored as [out, in]")?;
    let inputs = links.first().map_or(features, |link| link.inputs);
    let mut layers: Vec<Dense> = Vec::with_capacity(links.len());
    for link in links {
        if let Some(previous) = layers.last().map(|layer| layer.outputs).filter(|&n| n != link.inputs) {
            let n = layers.len();
            return Err(link.weight.misshapen(
                &format!("[{}, {previous}]", link.layer.outputs),
                &format!("layer {} gives {previous} values; weights are stored as [out, in]", n - 1),
            ));
        }
        layers.push(link.layer);
    }
    Ok((inputs, layers))
}

fn head(
    tensors: &Tensors<'_>,
    metadata: &mut Metadata,
    weight: &Tensor,
    covariance: CovarianceKind,
    dim: usize,
    last: Option<&Dense>,
) -> Result<Head, PackError> {
    let (rows, columns) = weight.matrix("[raw, features]", "weights are stored as [out, in]")?;
    let (raw, features) = (covariance.raw_len(dim), last.map_or(columns, |layer| layer.outputs));
    if (rows, columns) != (raw, features) {
        let formula = match covariance {
            CovarianceKind::Diagonal => "2 d",
            CovarianceKind::Spectral | CovarianceKind::Cholesky => "d + d (d + 1) / 2",
            CovarianceKind::Constant => "d",
        };
        let kind = covariance.name();
        let mut advice = format!("a {kind} head gives {formula} values and codes.mean has d = {dim}");
        if columns != features {
            advice = format!("the last layer gives {features} values; {advice}");
        }
        if (columns, rows) == (raw, features) || (last.is_none() && columns == raw) {
            advice = format!("{advice}; it looks transposed, store it as [out, in]");
        }
        let expected = match last {
            None if columns == raw => format!("[{raw}, {rows}]"),
            _ => format!("[{raw}, {features}]"),
        };
        return Err(weight.misshapen(&expected, &advice));
    }
    Ok(Head {
        weight: weight.narrow()?,
        bias: tensors.vector("head.bias", raw, "one value per row of head.weight")?,
        activation: metadata.activation("head.activation")?,
        covariance,
        dim,
    })
}

fn normalization(tensors: &Tensors<'_>, inputs: usize) -> Result<Option<Normalization>, PackError> {
    let advice = "one value per input of the model";
    let mean = tensors.vector("normalize.mean", inputs, advice)?;
    let std = tensors.vector("normalize.std", inputs, advice)?;
    let lone = |name: &str, other: &str| PackError::MissingTensor {
        name: name.into(),
        expected: format!("[{inputs}]"),
        advice: format!("{other} is there; normalisation needs both or neither"),
    };
    match (mean, std) {
        (Some(mean), Some(std)) => Ok(Some(Normalization { mean, std })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(lone("normalize.std", "normalize.mean")),
        (None, Some(_)) => Err(lone("normalize.mean", "normalize.std")),
    }
}

fn decoder(
    tensors: &Tensors<'_>,
    metadata: &mut Metadata,
    dim: usize,
) -> Result<Option<DecoderSpec>, PackError> {
    let expected = format!("[out, {dim}]");
    let (weight, task) = match (tensors.get("decoder.weight")?, metadata.task()?) {
        (Some(weight), Some(Some(task))) => (weight, task),
        (Some(_), None) => {
            return Err(missing("task", "say what the decoder's outputs are: regression or classification"));
        }
        (Some(_), Some(None)) => {
            return Err(wrong(
                "task",
                "none".into(),
                "there is a decoder.weight: remove it, or name its task",
            ));
        }
        (None, Some(Some(_))) => {
            let advice = "add it, or set task to none".into();
            return Err(PackError::MissingTensor { name: "decoder.weight".into(), expected, advice });
        }
        (None, _) => match tensors.get("decoder.bias")? {
            None => return Ok(None),
            Some(_) => {
                let advice = "decoder.bias is there; add the weight or remove the bias".into();
                return Err(PackError::MissingTensor { name: "decoder.weight".into(), expected, advice });
            }
        },
    };
    let advice = "the decoder is one affine map of the d latent means of codes.mean, stored as [out, in]";
    let (outputs, columns) = weight.matrix(&expected, advice)?;
    if columns != dim {
        return Err(weight.misshapen(&expected, advice));
    }
    let bias = tensors.vector("decoder.bias", outputs, "one value per row of decoder.weight")?;
    Ok(Some(DecoderSpec { weight: weight.narrow()?, bias, outputs, task }))
}

fn calibration(tensors: &Tensors<'_>, metadata: &mut Metadata) -> Result<Option<CalibrationSpec>, PackError> {
    let rates = metadata.rates()?;
    let advice = "uncertainties of held-out inputs like the training data, in one dimension";
    let Some(scores) = tensors.get("calibration.scores")? else {
        return match rates {
            None => Ok(None),
            Some(_) => Err(PackError::MissingTensor {
                name: "calibration.scores".into(),
                expected: "[n]".into(),
                advice: "rates of verdicts need it; add it or remove the rates".into(),
            }),
        };
    };
    if !matches!(*scores.shape, [n] if n > 0) {
        return Err(scores.misshapen("[n], n > 0", advice));
    }
    let scores = scores.narrow()?;
    // Without rates in the file: the usual ones, or the smallest that so few scores can reach.
    let rates = rates.unwrap_or_else(|| Rates::for_held_out(scores.len() as u32));
    Ok(Some(CalibrationSpec { scores, rates }))
}

fn self_test(tensors: &Tensors<'_>, inputs: usize) -> Result<Vec<Vec<f32>>, PackError> {
    let Some(tensor) = tensors.get("self_test.inputs")? else { return Ok(Vec::new()) };
    let expected = format!("[m, {inputs}], 1 <= m <= 8");
    let advice = "one known-answer input per row; the answers are computed";
    match tensor.matrix(&expected, advice)? {
        (1..=8, columns) if columns == inputs => {
            Ok(tensor.narrow()?.chunks(inputs).map(<[f32]>::to_vec).collect())
        }
        _ => Err(tensor.misshapen(&expected, advice)),
    }
}

/// Names of inputs and outputs, when there are any, are as many as the inputs and outputs.
fn check_names(spec: &Spec) -> Result<(), PackError> {
    let outputs = spec.decoder.as_ref().map_or(0, |d| d.outputs);
    for (key, count) in [(names::INPUTS, spec.inputs), (names::OUTPUTS, outputs)] {
        if let Some((_, value)) = spec.info.iter().find(|(k, _)| k == key) {
            let found = names::split(value).len();
            if found != count {
                let advice = format!("{found} names, the model has {count}; separate them with commas");
                return Err(wrong(key, value.clone(), &advice));
            }
        }
    }
    Ok(())
}
