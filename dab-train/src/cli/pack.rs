//! `dab pack`: tensors → artifact.

use std::path::PathBuf;

use anyhow::{Context, Result};
use dab_core::artifact::AlignedBytes;

use super::text;
use crate::{export::pack::spec_from_safetensors, support::files::AtomicFile};

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
///                           inputs: they make p-values and verdicts
///   self_test.inputs        [m, inputs]          up to 8 known-answer inputs
///
/// Metadata strings say the rest:
///
///   covariance              diagonal, spectral or cholesky
///   alpha                   temperature of the assignment, 1 if missing
///   task                    regression, classification or none
///   layers.N.activation     identity, relu, elu, gelu, silu or tanh
///   layers.N.residual       input or layers.M: an earlier activation to add
///   layers.N.residual_before_activation
///                           true: add it before the activation function
///   head.activation         applied to the features, before the head
///   rates.doubtful, rates.unfamiliar
///                           false-alarm rates, 0.05 and 0.01 if missing
///
/// All other strings travel in the file for people; of these input_names and
/// output_names (comma-separated) name the columns of `dab score`.
///
/// The same tensors give the same bytes. The file appears whole or not at all.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  dab pack weights.safetensors -o model.dab

  # In Python:
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
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let (weights, output) = (args.weights.display(), args.output.display());
    let tensors = std::fs::read(&args.weights).with_context(|| format!("cannot read `{weights}`"))?;
    let spec = spec_from_safetensors(&tensors).with_context(|| format!("`{weights}`"))?;
    drop(tensors);
    let bytes = spec
        .to_bytes()
        .map_err(crate::export::pack::PackError::from)
        .with_context(|| format!("`{weights}`"))?;
    AtomicFile::write(&args.output, &bytes).with_context(|| format!("cannot write `{output}`"))?;

    let bytes = AlignedBytes::from(&*bytes);
    let model = bytes.model()?;
    let verdicts = match model.calibration() {
        Some(table) => format!("calibrated with {}", text::plural(table.held_out.into(), "held-out score")),
        None => "no calibration.scores: uncertainties without p-values and verdicts".into(),
    };
    super::print(&format!(
        "{output}: {}\n  {}\n  alpha {}; {verdicts}\n",
        text::flow(&model),
        text::cost(&model, bytes.as_slice().len()),
        model.codebook().alpha,
    ))
}
