//! Learning from images: the image network, the bottleneck and the codebook together, or the bottleneck on what a
//! frozen network sees.
//!
//! ```text
//! frozen       images → features, once, kept on disk → an ordinary run on a table
//! fine-tuned   images → run of everything → features of the learnt network → measures, artifact
//! ```
//!
//! Either way the artifact begins at the features: convolutions stay on the workstation or in the user's own runtime.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use anyhow::{Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};

use crate::{
    backbone::{conv::Source, resnet::ResNet, weights::Weights},
    config::{Experiment, ImageBackbone, Standardise},
    data::{
        Table,
        images::{ImageSet, ImageTask, Labelled, Normalise},
        stored_path,
    },
    network::{Output, as_images},
    rdfc::{Examples, ImageInputs, Inputs, Rdfc},
    trainer::{Observer, Run, Setting, check_start, epochs, set_aside},
};

/// Images in one pass through a network that does not learn.
const CHUNK: usize = 256;

/// The pretrained numbers that an experiment names.
///
/// # Errors
/// When the file is missing or damaged.
pub fn pretrained(config: &ImageBackbone, shared: &Path) -> Result<Option<Weights>> {
    config.weights.as_ref().map(|path| Weights::read(&stored_path(shared, path)?)).transpose()
}

/// An image network with a file's numbers, without gradients.
///
/// # Errors
/// When the numbers are another network's.
pub fn frozen(config: &ImageBackbone, weights: &Weights, device: &Device) -> Result<ResNet> {
    let mut network = ResNet::new(config.network, Source::Zero, device);
    weights.load(&mut network)?;
    Ok(network)
}

/// Features of every image, one row each.
///
/// # Errors
/// When an image cannot be read.
pub fn features(network: &ResNet, set: &ImageSet, normalise: &Normalise, device: &Device) -> Result<Table> {
    let cols = network.architecture().features();
    let mut values = Vec::with_capacity(set.len() * cols);
    let indices: Vec<usize> = (0..set.len()).collect();
    for rows in indices.chunks(CHUNK) {
        let numbers = set.numbers(rows, normalise, None)?;
        let x = Tensor::from_data(TensorData::new(numbers, [rows.len(), set.cols()]), device);
        values.extend(network.forward(as_images(x), None).into_data().iter::<f32>());
    }
    Table::new(set.len(), cols, values)
}

/// Trains everything, from the pretrained numbers on if there are any.
///
/// # Errors
/// As [`crate::trainer::train`].
pub fn train(
    experiment: &Experiment,
    task: &ImageTask,
    weights: Option<&Weights>,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<Run> {
    experiment.check()?;
    let output = Output::Classes(task.classes);
    check_start(experiment, output)?;
    ensure!(
        experiment.backbone.standardise == Standardise::None && experiment.training.input_noise == 0.0,
        "an image network that learns needs backbone.standardise = \"none\" and no training.input_noise"
    );
    let mut model = Rdfc::new(experiment, task.train.set.cols(), output, setting.seed, &setting.device);
    if let (Some(weights), Some(images)) = (weights, &mut model.network.images) {
        weights.load(images)?;
    }
    let (kept, aside) = set_aside(experiment, task.train.set.len(), setting.seed);
    let examples = |rows: &[usize]| examples(&task.train, rows, task, setting);
    let watched = aside.map(|rows| examples(&rows));
    epochs(experiment, model, &examples(&kept), watched.as_ref(), setting, observer)
}

fn examples(part: &Labelled, rows: &[usize], task: &ImageTask, setting: &Setting) -> Examples {
    let images = ImageInputs {
        set: part.set.select(rows),
        normalise: task.normalise,
        classes: task.classes,
        device: setting.device.clone(),
        seed: setting.seed,
        fault: Arc::new(Mutex::new(None)),
    };
    let labels = rows.iter().map(|&row| part.labels[row]).collect();
    Examples { inputs: Inputs::Images(images), labels: Some(labels), noise: None }
}
