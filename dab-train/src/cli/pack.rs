//! `dab pack`: tensors → artifact.

use std::path::PathBuf;

use anyhow::{Context, Result};
use dab_core::Model;
use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::Spec;

use super::{input::check_apart, text};
use crate::{
    config::Weights,
    data::files::{self, FilePart},
    export::{
        int8,
        pack::{PackError, network_from_safetensors, spec_from_safetensors},
    },
    fit::network,
    support::files::save,
};

/// Make a model file from tensors trained anywhere
///
/// The safetensors file holds the tensors of the flow, weights as [out, in] like
/// PyTorch's. Only the head and the codes must be there; types may be F32, F64,
/// F16 or BF16.
///
///   normalize.mean, .std    [inputs]             (x - mean) / std
///   layers.N.weight, .bias  [out, in], [out]     dense layers, N = 0, 1, …
///   head.weight, .bias      [raw, features], [raw]
///                           raw = 2 d (diagonal), d + d (d + 1) / 2 (others)
///   codes.mean, .prior      [k, d], [k]
///   codes.cov               [k, d] or [k, d, d]  variances or covariances
///   decoder.weight, .bias   [out, d], [out]
///   calibration.scores      [n]                  uncertainties of held-out
///                           inputs: they make p-values and verdicts; with
///                           --weights int8 those that such weights give
///   self_test.inputs        [m, inputs]          up to 8 known-answer inputs
///
/// Metadata strings say the rest:
///
///   covariance              diagonal, spectral or cholesky
///   alpha                   temperature of the assignment, 1 if missing
///   task                    regression, classification or none
///   layers.N.activation     identity, relu, elu, gelu, silu or tanh
///   layers.N.kind           dense (if missing) or layernorm: over all values, its
///                           weight and bias are [width]
///   layers.N.epsilon        of a layernorm: what is added to the variance
///   layers.N.residual       input or layers.M: an earlier activation to add
///   layers.N.residual_before_activation
///                           true: add it before the activation function
///   head.activation         applied to the features, before the head
///   rates.doubtful, rates.unfamiliar
///                           false-alarm rates, 0.05 and 0.01 if missing
///
/// All other strings travel in the file for people; of these input_names and
/// output_names (comma-separated) name the columns of `dab score`. A key that
/// is nearly one of the above is refused: it would change the model unnoticed.
///
/// What head.weight gives becomes a Gaussian: the first d values are its mean,
/// the rest, r, its spread, with s(t) = ln(1 + e^(t - 5)) + 0.00001:
///
///   diagonal                standard deviations s(r)
///   cholesky                r fills a lower triangle L row by row, s on its
///                           diagonal; the covariance is L L^T
///   spectral                r fills a symmetric matrix (off the diagonal halved);
///                           its eigenvalues become standard deviations s(|l|)
///
/// A file without codes is completed from data: --fit rows.npy. A fifth of the
/// rows calibrates, the rest makes codes and priors. Rows are inputs of the
/// network; rows as wide as its last layer are taken for features. If the file
/// has no head either, features are whitened as by `dab fit`, and decoder.weight
/// is your network's last layer, [out, features]: it gives the same outputs as
/// before. Take rows that the network was not trained on: p-values then hold.
///
/// The same tensors give the same bytes. The file appears whole or not at all.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  dab pack weights.safetensors -o model.dab

  dab pack network.safetensors --fit rows.npy -o model.dab
  dab pack network.safetensors --fit rows.npy --labels classes.npy --codes 4 -o model.dab

  # In Python, from PyTorch, Keras or ONNX:
  #   dab_uncertainty.export(model, \"network.safetensors\")
  # or by hand:
  #   safetensors.torch.save_file(
  #     {\"head.weight\": w, \"codes.mean\": m, \"codes.cov\": v, \"codes.prior\": p},
  #     \"weights.safetensors\", metadata={\"covariance\": \"diagonal\", \"alpha\": \"1\"})"
)]
pub struct Args {
    /// The tensors
    #[arg(value_name = "WEIGHTS.safetensors")]
    weights: PathBuf,

    /// The model file to write
    #[arg(short, long, value_name = "MODEL.dab")]
    output: PathBuf,

    /// How weights of layers and heads are stored: float32, or int8 with one scale a row
    #[arg(long = "weights", value_enum, default_value_t, value_name = "KIND")]
    stored: Weights,

    /// Rows to compute codes, priors and calibration from: x.npy, x.npz:key, x.csv
    #[arg(long, value_name = "ROWS")]
    fit: Option<String>,

    /// Classes of these rows, whole numbers or words [default: what the network says]
    #[arg(long, value_name = "FILE", requires = "fit")]
    labels: Option<String>,

    /// Codes a class; in all where there are no classes [default: 1, or 10 in all]
    #[arg(long, value_name = "N", requires = "fit")]
    codes: Option<usize>,
}

impl Args {
    /// The bytes of the model of the file, completed from rows where that is asked for.
    fn artifact(&self, tensors: &[u8]) -> Result<Vec<u8>> {
        let weights = self.weights.display();
        let store =
            |spec: &Spec| spec.to_bytes().map_err(PackError::from).with_context(|| format!("`{weights}`"));
        let Some(rows) = &self.fit else {
            let mut spec = spec_from_safetensors(tensors).with_context(|| format!("`{weights}`"))?;
            spec.weights = self.stored.kind();
            return store(&spec);
        };
        let network = network_from_safetensors(tensors).with_context(|| format!("`{weights}`"))?;
        let labels = self.labels.as_deref().map(FilePart::parse);
        let same = labels.as_ref().filter(|labels| labels.path == FilePart::parse(rows).path);
        let without: Vec<&str> = same.and_then(|labels| labels.part.as_deref()).into_iter().collect();
        let (inputs, _) = files::table(&FilePart::parse(rows), &without)?;
        let labels = match &labels {
            Some(file) => {
                let (mut numbers, names) = files::number_classes(&[files::labels(file)?])?;
                Some((numbers.swap_remove(0), names.len()))
            }
            None => None,
        };
        let (spec, held_out) = network::complete(&network, &inputs, labels, self.codes)
            .with_context(|| format!("`{weights}` cannot be fitted to `{rows}`"))?;
        let bytes = store(&spec)?;
        if self.stored == Weights::Float32 {
            return Ok(bytes);
        }
        // The table is made with the weights that the file has, so the rows have to run through all of them.
        let held_out = held_out.with_context(|| {
            format!("--weights int8 calibrates with inputs of the network: `{rows}` has its features")
        })?;
        int8::quantised(&bytes, Some(&held_out))
    }
}

/// What follows each layer, and comes before the head.
fn activations(model: &Model<'_>) -> String {
    let meta = model.meta();
    let name = |activation: dab_core::Activation| activation.name();
    let mut words: Vec<String> = meta.layers.iter().map(|layer| name(layer.activation).to_owned()).collect();
    words.push(format!("{} before the head", name(meta.head.activation)));
    format!("activations: {}", words.join(", "))
}

pub fn run(args: &Args) -> Result<()> {
    let (weights, output) = (args.weights.display(), args.output.display());
    check_apart(&args.output, [&args.weights])?;
    check_apart(&args.output, args.fit.iter().chain(&args.labels))?;
    let tensors =
        crate::support::limits::read(&args.weights).with_context(|| format!("cannot read `{weights}`"))?;
    let bytes = args.artifact(&tensors)?;
    drop(tensors);
    save(&args.output, &bytes)?;

    let bytes = AlignedBytes::from(&*bytes);
    let model = bytes.model()?;
    let verdicts = match model.calibration() {
        Some(table) => format!("calibrated with {}", text::plural(table.held_out.into(), "held-out score")),
        None => "no calibration.scores: uncertainties without p-values and verdicts".into(),
    };
    super::print(&format!(
        "{output}: {}\n  {}\n  {}\n  alpha {}; {verdicts}\n",
        text::flow(&model),
        activations(&model),
        text::cost(&model, bytes.as_slice().len()),
        model.codebook().alpha,
    ))
}
