//! `dab train --dry-run`: what an experiment would do, without data or a device for it.

use std::{fmt::Write, path::Path};

use anyhow::{Context, Result};
use burn::tensor::Device;

use crate::{
    config::{Bottleneck, ConvPrecision, Experiment, ImageBackbone},
    data::{self, DataConfig, Loaded, images, sets::Known},
    learn::{epoch::Rdfc, run::predicted},
    measure::cost::{Cost, odd_size},
    model::{network::Output, resnet::CHANNELS},
};

/// What is known about the data.
struct Size {
    examples: usize,
    inputs: usize,
    output: Output,
    /// Whether it is the published size, because the data are not here.
    published: bool,
}

/// Shapes, parameters, memory and steps of an experiment, as lines of text.
pub fn plan(experiment: &Experiment) -> Result<String> {
    let size = size(experiment)?;
    let mut text = format!("{}\n", experiment.name);
    let mut line = |name: &str, words: String| text += &format!("  {name:13} {words}\n");
    let note = if size.published { " (as published; the data are not here)" } else { "" };
    line("examples", format!("{}{note}", size.examples));
    if let Some(retrofit) = &experiment.retrofit {
        let classes = matches!(size.output, Output::Classes(_));
        line("inputs", size.inputs.to_string());
        line("flash", retrofit.flash.map_or_else(|| "no limit".to_owned(), |bytes| format!("{bytes} bytes")));
        for (index, view) in retrofit.views.iter().enumerate() {
            line(&format!("view {index}"), view.words(classes));
        }
        if retrofit.views.is_empty() {
            let how = match (retrofit.fast, classes) {
                (true, _) => "fixed",
                (false, true) => "chosen by leaving classes out",
                (false, false) => "chosen by leaving clusters of inputs out",
            };
            line("views", how.to_owned());
        }
        return Ok(text);
    }
    let frozen = experiment.backbone.images.as_ref().filter(|images| images.frozen);
    let inputs = frozen.map_or(size.inputs, |images| images.network.features());
    let mut model = Rdfc::new(experiment, inputs, size.output, 0, &Device::flex());
    let outputs = size.output.width();
    let mut cost = Cost::of(experiment, size.inputs, outputs);
    let mut shape = size.inputs.to_string();
    if let Some(images) = &experiment.backbone.images {
        let weights = weights(images, size.published)?;
        let side = (size.inputs / CHANNELS).isqrt();
        shape = format!("{CHANNELS}×{side}×{side} → {:?} → {}", images.network, images.network.features());
        let adds = cost.images as f64 / 1e9;
        line("image network", format!("{adds:.2} G multiply-adds an image, forward"));
        weights.into_iter().for_each(|note| line("weights", note));
        odd_size(experiment, side).into_iter().for_each(|odd| line("image size", odd));
        let precision = match experiment.training.precision {
            ConvPrecision::F32 => None,
            ConvPrecision::Tf32 => Some("tf32: f32 with 10 bits of mantissa, on NVIDIA's GPUs from sm_80 on"),
            ConvPrecision::Bf16 => Some("bf16"),
            ConvPrecision::F16 => Some("f16, with a scaled loss"),
        };
        if let (Some(precision), false) = (precision, images.frozen) {
            line("convolutions", format!("multiply in {precision}; everything else is f32"));
        }
        if images.frozen {
            cost.images = 0;
        }
    }
    for layer in &experiment.backbone.layers {
        write!(shape, " → {}", layer.units)?;
    }
    let Bottleneck { covariance, dim, codes, .. } = experiment.bottleneck;
    let head = covariance.outputs(dim);
    line("shapes", format!("{shape} → {head} ({covariance:?}, d {dim}, k {codes}) → {outputs}"));
    let (own, percent) = (cost.bottleneck, 100.0 * cost.share());
    line("bottleneck", format!("{own} multiply-adds an example, {percent:.3} % of a forward pass"));
    let means = model.codebook.means.len();
    let parameters = (model.network.parameter_count() + means) as u64;
    line("parameters", format!("{parameters} learnt, of which {means} are code means"));
    let training = &experiment.training;
    let (batch, parts) = (training.batch_of(size.examples), training.accumulate * training.replicas);
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let part = batch.div_ceil(parts);
    let [kept, activations] = cost.memory(experiment.optimiser.rule, parameters, inputs, part).map(gib);
    line(
        "memory",
        format!(
            "{kept:.2} GiB parameters, gradients, momentum + {activations:.2} GiB activations of {part} examples (f32, estimate)"
        ),
    );
    let (steps, epochs) = (size.examples.div_ceil(batch.max(1)), training.epochs);
    let cut = if parts > 1 { format!(", in {parts} parts each") } else { String::new() };
    let all = steps * epochs;
    line("steps", format!("{steps} an epoch × {epochs} epochs = {all}, batch {batch}{cut}"));
    if let Some(images) = frozen {
        let table = gib((size.examples * images.network.features() * size_of::<f32>()) as u64);
        line("features", format!("{table:.2} GiB, computed once and kept on disk"));
    }
    Ok(text)
}

/// Where the image network's numbers come from. A file that is missing is an error, unless the data are missing too and
/// `dab data` tells how to get it: then this is only a plan.
fn weights(images: &ImageBackbone, published: bool) -> Result<Option<String>> {
    let Some(path) = &images.weights else { return Ok(None) };
    match data::stored(&data::data_root(), path) {
        Ok(path) => Ok(Some(path.display().to_string())),
        Err(error) if published && Known::of_path(path).is_some() => Ok(Some(format!("not here: {error}"))),
        Err(error) => Err(error.context("backbone.images.weights")),
    }
}

fn size(experiment: &Experiment) -> Result<Size> {
    match (experiment.data.load(experiment.seed, &data::data_root()), &experiment.data) {
        (Ok(Loaded::Rows(task, _)), _) => {
            let (output, _) = predicted(experiment, &task.train.targets);
            let (examples, inputs) = (task.train.inputs.rows, task.train.inputs.cols);
            Ok(Size { examples, inputs, output, published: false })
        }
        (Ok(Loaded::Images(task)), _) => Ok(Size {
            examples: task.train.set.len(),
            inputs: task.train.set.cols(),
            output: Output::Classes(task.classes),
            published: false,
        }),
        (Err(error), DataConfig::Images(config)) => published(config).with_context(|| format!("{error:#}")),
        (Err(error), _) => Err(error.into()),
    }
}

/// The published size of the set that an experiment learns from.
fn published(config: &images::ImagesConfig) -> Result<Size> {
    let folder = config.train.rsplit_once(':').map_or(config.train.as_str(), |(folder, _)| folder);
    let published = Known::of_path(Path::new(folder)).and_then(|known| known.images);
    let published = published.context("its size is not known")?;
    let aside = match config.held_out_from {
        data::split::HeldOutFrom::Train => (published.count as f64 * config.held_out).round() as usize,
        data::split::HeldOutFrom::Test => 0,
    };
    Ok(Size {
        examples: published.count - aside,
        inputs: CHANNELS * published.side * published.side,
        output: Output::Classes(published.classes),
        published: true,
    })
}
