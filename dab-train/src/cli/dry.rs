//! `dab train --dry-run`: what an experiment would do, without data or a device for it.

use std::{fmt::Write, path::Path};

use anyhow::{Context, Result};
use burn::tensor::Device;

use crate::{
    config::{Experiment, ImageBackbone, Rule},
    data::{self, DataConfig, Loaded, Targets, images, sets::Known},
    learn::epoch::Rdfc,
    measure::cost::{Cost, odd_size},
    model::{network::Output, resnet::CHANNELS},
};

/// Bytes of a number.
const NUMBER: u64 = size_of::<f32>() as u64;

/// What is known about the data.
struct Size {
    examples: usize,
    inputs: usize,
    output: Output,
    /// Why it is not the data's own size.
    published: bool,
}

/// Shapes, parameters, memory and steps of an experiment, as lines of text.
///
/// # Errors
/// When neither the data nor their published size is at hand.
pub fn plan(experiment: &Experiment) -> Result<String> {
    let size = size(experiment)?;
    let mut text = format!("{}\n", experiment.name);
    let note = if size.published { " (as published; the data are not here)" } else { "" };
    writeln!(text, "  examples      {}{note}", size.examples)?;
    if let Some(retrofit) = &experiment.retrofit {
        writeln!(text, "  inputs        {}", size.inputs)?;
        let flash = retrofit.flash.map_or_else(|| "no limit".to_owned(), |bytes| format!("{bytes} bytes"));
        writeln!(text, "  flash         {flash}")?;
        for (index, view) in retrofit.views.iter().enumerate() {
            writeln!(
                text,
                "  view {index}        {}",
                view.words(matches!(size.output, Output::Classes(_)))
            )?;
        }
        if retrofit.views.is_empty() {
            writeln!(
                text,
                "  views         {}",
                match (retrofit.fast, size.output) {
                    (true, _) => "fixed",
                    (false, Output::Classes(_)) => "chosen by leaving classes out",
                    (false, Output::Regression(..)) => "chosen by leaving clusters of inputs out",
                }
            )?;
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
        writeln!(text, "  image network {:.2} G multiply-adds an image, forward", cost.images as f64 / 1e9)?;
        if let Some(note) = weights {
            writeln!(text, "  weights       {note}")?;
        }
        if let Some(odd) = odd_size(experiment, side) {
            writeln!(text, "  image size    {odd}")?;
        }
        if images.frozen {
            cost.images = 0;
        }
    }
    for layer in &experiment.backbone.layers {
        write!(shape, " → {}", layer.units)?;
    }
    let bottleneck = &experiment.bottleneck;
    let head = bottleneck.covariance.outputs(bottleneck.dim);
    writeln!(
        text,
        "  shapes        {shape} → {head} ({:?}, d {}, k {}) → {outputs}",
        bottleneck.covariance, bottleneck.dim, bottleneck.codes
    )?;
    writeln!(
        text,
        "  bottleneck    {} multiply-adds an example, {:.3} % of a forward pass",
        cost.bottleneck,
        100.0 * cost.share()
    )?;
    let parameters = (model.network.parameter_count() + model.codebook.means.len()) as u64;
    writeln!(
        text,
        "  parameters    {parameters} learnt, of which {} are code means",
        model.codebook.means.len()
    )?;
    let batch = if experiment.training.batch == 0 { size.examples } else { experiment.training.batch };
    let parts = experiment.training.accumulate * experiment.training.replicas;
    // Values, gradients and momentum; Adam keeps a second moment.
    let copies = if experiment.optimiser.rule == Rule::Sgd { 3 } else { 4 };
    let gib = |numbers: u64| (numbers * NUMBER) as f64 / f64::from(1 << 30);
    let part = batch.div_ceil(parts);
    writeln!(
        text,
        "  memory        {:.2} GiB parameters, gradients, momentum + {:.2} GiB activations of {part} examples (f32, estimate)",
        gib(copies * parameters),
        gib((cost.kept + inputs as u64) * part as u64)
    )?;
    let steps = size.examples.div_ceil(batch.max(1));
    let epochs = experiment.training.epochs;
    let cut = if parts > 1 { format!(", in {parts} parts each") } else { String::new() };
    writeln!(
        text,
        "  steps         {steps} an epoch × {epochs} epochs = {}, batch {batch}{cut}",
        steps * epochs
    )?;
    if let Some(images) = frozen {
        let table = size.examples as u64 * images.network.features() as u64;
        writeln!(text, "  features      {:.2} GiB, computed once and kept on disk", gib(table))?;
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
            let output = match &task.train.targets {
                Targets::Regression(values) => Output::Regression(values.cols, experiment.objective.variance),
                Targets::Classes { count, .. } => Output::Classes(*count),
            };
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
        (Err(error), _) => Err(error),
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
