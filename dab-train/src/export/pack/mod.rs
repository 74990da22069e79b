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

/// How every matrix lies in the file.
const OUT_IN: &str = "weights are stored as [out, in]";

fn open(bytes: &[u8]) -> Result<(Tensors<'_>, Metadata), PackError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(PackError::NotSafetensors)?;
    let file = SafeTensors::deserialize(bytes).map_err(PackError::NotSafetensors)?;
    Ok((Tensors::new(file), Metadata::new(header.metadata().clone().unwrap_or_default())))
}

/// The model in the bytes of a safetensors file. [`Spec::to_bytes`] makes an artifact of it.
pub fn spec_from_safetensors(bytes: &[u8]) -> Result<Spec, PackError> {
    let (tensors, mut metadata) = open(bytes)?;
    let layer_count = tensors.layers()?;
    let head_weight = tensors.require(
        "head.weight",
        "[raw, features]",
        "it maps the features to the means and spreads of the encoder; without head and codes, --fit computes both",
    )?;
    let (codes, covariance, dim) = codes(&tensors, &mut metadata)?;
    let layers =
        (0..layer_count).map(|n| layer(&tensors, &mut metadata, n)).collect::<Result<Vec<_>, _>>()?;
    let (_, features) = head_weight.matrix("[raw, features]", OUT_IN)?;
    let (inputs, layers) = chain(layers, features)?;
    let head = head(&tensors, &mut metadata, &head_weight, covariance, dim, layers.last())?;

    let spec = Spec {
        normalization: normalization(&tensors, inputs)?,
        layers,
        decoder: decoder(&tensors, &mut metadata, dim)?,
        calibration: calibration(&tensors, &mut metadata)?,
        self_test: self_test(&tensors, inputs)?,
        info: metadata.rest()?,
        ..Spec::new(inputs, head, codes)
    };
    check_names(&spec.info, spec.inputs, spec.decoder.as_ref())?;
    Ok(spec)
}

/// A network without codes: what `dab pack --fit` completes.
#[derive(Clone, Debug)]
pub struct Network {
    pub inputs: usize,
    pub normalization: Option<Normalization>,
    /// Dense layers, first one first.
    pub layers: Vec<Dense>,
    /// Values that the last layer gives: the inputs, without layers.
    pub features: usize,
    /// The encoder's head, if the file has one.
    pub head: Option<Head>,
    /// The map from the latent mean, or from the features where there is no head, to the outputs.
    pub decoder: Option<DecoderSpec>,
    /// The temperature, if the file says one.
    pub alpha: Option<f32>,
    /// False-alarm rates, if the file says them.
    pub rates: Option<Rates>,
    /// Inputs of the known-answer vectors.
    pub self_test: Vec<Vec<f32>>,
    /// Strings for people.
    pub info: Vec<(String, String)>,
}

/// The network in the bytes of a safetensors file that has no codes.
pub fn network_from_safetensors(bytes: &[u8]) -> Result<Network, PackError> {
    let (tensors, mut metadata) = open(bytes)?;
    let layer_count = tensors.layers()?;
    for name in ["codes.mean", "codes.cov", "codes.prior", "calibration.scores"] {
        if tensors.get(name)?.is_some() {
            return Err(PackError::Computed { name: name.into() });
        }
    }
    let head_weight = tensors.get("head.weight")?;
    let links = (0..layer_count).map(|n| layer(&tensors, &mut metadata, n)).collect::<Result<Vec<_>, _>>()?;
    let columns = match (&head_weight, tensors.get("decoder.weight")?, links.last()) {
        (Some(head), _, _) => head.matrix("[raw, features]", OUT_IN)?.1,
        (None, _, Some(last)) => last.layer.outputs,
        (None, Some(decoder), None) => decoder.matrix("[out, features]", OUT_IN)?.1,
        (None, None, None) => {
            let advice =
                "the file has neither layers nor a head nor a decoder: use `dab fit` on the features";
            return Err(PackError::absent("layers.0.weight", "[out, in]", advice));
        }
    };
    let (inputs, layers) = chain(links, columns)?;
    let features = layers.last().map_or(columns, |layer| layer.outputs);
    let head = match head_weight {
        Some(weight) => {
            let (raw, _) = weight.matrix("[raw, features]", OUT_IN)?;
            let kind = metadata.covariance()?.unwrap_or(CovarianceKind::Diagonal);
            let dim = (1..=raw).find(|&d| kind.raw_len(d) == raw).ok_or_else(|| {
                let advice =
                    "say the covariance: a diagonal head gives 2 d values, the others d + d (d + 1) / 2";
                weight.misshapen("[raw, features]", advice)
            })?;
            Some(self::head(&tensors, &mut metadata, &weight, kind, dim, layers.last())?)
        }
        None => match tensors.get("head.bias")? {
            None => None,
            Some(_) => {
                let advice = "head.bias is there; add the weight or remove the bias";
                return Err(PackError::absent("head.weight", &format!("[raw, {features}]"), advice));
            }
        },
    };
    let read = head.as_ref().map_or(features, |head| head.dim);
    let network = Network {
        inputs,
        normalization: normalization(&tensors, inputs)?,
        layers,
        features,
        decoder: decoder(&tensors, &mut metadata, read)?,
        head,
        alpha: metadata.given_alpha()?,
        rates: metadata.rates()?,
        self_test: self_test(&tensors, inputs)?,
        info: metadata.rest()?,
    };
    check_names(&network.info, network.inputs, network.decoder.as_ref())?;
    Ok(network)
}

/// Codebook, kind of covariance, latent dimension.
fn codes(
    tensors: &Tensors<'_>,
    metadata: &mut Metadata,
) -> Result<(Codes, CovarianceKind, usize), PackError> {
    let mean = tensors.require(
        "codes.mean",
        "[k, d]",
        "add the means of the k codes, or have them computed: --fit",
    )?;
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
        _ if diagonal => {
            let mut covs = vec![0.0; k * d * d];
            cov.values.iter().enumerate().for_each(|(i, &variance)| covs[i * d + i % d] = variance);
            covs
        }
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

/// A layer and the number of its inputs, which is not yet known to fit.
struct Link {
    weight: Tensor,
    inputs: usize,
    layer: Dense,
}

fn layer(tensors: &Tensors<'_>, metadata: &mut Metadata, n: usize) -> Result<Link, PackError> {
    let weight = tensors.require(&format!("layers.{n}.weight"), "[out, in]", OUT_IN)?;
    let norm = metadata.norm(n)?;
    let (outputs, inputs) = match (norm, &*weight.shape) {
        (Some(_), &[width]) if width > 0 => (width, width),
        (Some(_), _) => return Err(weight.misshapen("[width]", "a layernorm has one weight per value")),
        (None, _) => weight.matrix("[out, in]", OUT_IN)?,
    };
    let bias = tensors.vector(
        &format!("layers.{n}.bias"),
        outputs,
        &format!("one value per row of layers.{n}.weight"),
    )?;
    let layer = Dense {
        weight: weight.narrow()?,
        bias,
        outputs,
        activation: metadata.layer_activation(n)?,
        residual: metadata.residual(n)?,
        norm,
    };
    Ok(Link { weight, inputs, layer })
}

/// Number of inputs, and the layers once each takes what the one before it gives.
fn chain(links: Vec<Link>, features: usize) -> Result<(usize, Vec<Dense>), PackError> {
    let inputs = links.first().map_or(features, |link| link.inputs);
    let mut layers: Vec<Dense> = Vec::with_capacity(links.len());
    for link in links {
        if let Some(previous) = layers.last().map(|layer| layer.outputs).filter(|&n| n != link.inputs) {
            let n = layers.len();
            let expected = match link.layer.norm {
                Some(_) => format!("[{previous}]"),
                None => format!("[{}, {previous}]", link.layer.outputs),
            };
            return Err(link.weight.misshapen(
                &expected,
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
    let (rows, columns) = weight.matrix("[raw, features]", OUT_IN)?;
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
    let lone = |name: &str, other: &str| {
        let advice = format!("{other} is there; normalisation needs both or neither");
        Err(PackError::absent(name, &format!("[{inputs}]"), &advice))
    };
    match (mean, std) {
        (Some(mean), Some(std)) => Ok(Some(Normalization { mean, std })),
        (None, None) => Ok(None),
        (Some(_), None) => lone("normalize.std", "normalize.mean"),
        (None, Some(_)) => lone("normalize.mean", "normalize.std"),
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
            let advice = "there is a decoder.weight: remove it, or name its task";
            return Err(wrong("task", "none".into(), advice));
        }
        (None, Some(Some(_))) => {
            return Err(PackError::absent("decoder.weight", &expected, "add it, or set task to none"));
        }
        (None, _) if tensors.get("decoder.bias")?.is_none() => return Ok(None),
        (None, _) => {
            let advice = "decoder.bias is there; add the weight or remove the bias";
            return Err(PackError::absent("decoder.weight", &expected, advice));
        }
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
        let advice = "rates of verdicts need it; add it or remove the rates";
        return rates.map_or(Ok(None), |_| Err(PackError::absent("calibration.scores", "[n]", advice)));
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
fn check_names(
    info: &[(String, String)],
    inputs: usize,
    decoder: Option<&DecoderSpec>,
) -> Result<(), PackError> {
    let outputs = decoder.map_or(0, |d| d.outputs);
    for (key, count) in [(names::INPUTS, inputs), (names::OUTPUTS, outputs)] {
        if let Some((_, value)) = info.iter().find(|(k, _)| k == key) {
            let found = names::split(value).len();
            if found != count {
                let advice = format!("{found} names, the model has {count}; separate them with commas");
                return Err(wrong(key, value.clone(), &advice));
            }
        }
    }
    Ok(())
}
