//! Learning from images: the image network, the bottleneck and the codebook together, or the bottleneck on what a
//! frozen network sees.
//!
//! ```text
//! frozen       images → features, once, kept on disk → a run on mapped rows, or on a table
//! fine-tuned   images → run of everything → features of the learnt network → measures, artifact
//! ```
//!
//! Either way the artifact begins at the features: convolutions stay on the workstation or in the user's own runtime.

use std::{
    fs,
    io::Write,
    path::Path,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use sha2::{Digest, Sha256};

use super::{
    epoch::Rdfc,
    examples::{Examples, Inputs, Streamed},
    indexed_rows::{Features, ImageRows, IndexedRows},
    run::{self, Learnt, Observer, Setting, check_start, epochs, restored, set_aside},
};
use crate::{
    config::{Experiment, ImageBackbone, Standardise},
    data::{
        self, Sealed, Seen, Table, Task,
        images::{ImageSet, ImageTask, Normalise},
        stored,
    },
    model::{
        conv::InitialWeights,
        network::{Output, as_images},
        resnet::ResNet,
        weights::Weights,
    },
    support::{digest, files::AtomicFile, random::Random},
};

/// Images in one pass through a network that does not learn.
const CHUNK: usize = 256;

/// Training examples that the task keeps in memory for baselines; a run on mapped features learns from all of them.
const IN_MEMORY: usize = 100_000;

/// Trains on images, and gives the rows as the trained bottleneck sees them, test and OOD under a seal. A frozen network's
/// features are kept in `cache`.
pub(super) fn learn_task(
    experiment: &Experiment,
    mut images: ImageTask,
    setting: &Setting,
    cache: &Path,
    observer: &mut dyn Observer,
) -> Result<(Seen, Sealed, Learnt)> {
    let (seed, device) = (setting.seed, &setting.device);
    let backbone = image_network(experiment, &images)?;
    let weights = pretrained(backbone, &data::data_root())?;
    let (network, mut run) = match (backbone.frozen, &weights) {
        (true, Some(weights)) => (frozen(backbone, weights, device)?, None),
        _ => {
            let run = train(experiment, &images, weights.as_ref(), setting, observer)?;
            (run.images.clone().context("the run kept no image network")?, Some(run))
        }
    };
    let normalise = images.preprocessing.normalise;
    let digest = digest(&network);
    let cached = |set: &_| cached(&network, set, &normalise, cache, device);
    if run.is_none() && streams(experiment) {
        let features = cached(&images.train.set)?;
        run = Some(train_frozen(experiment, &images, &features, setting, observer)?);
        if images.train.set.len() > IN_MEMORY {
            let order = Random::new(seed, "kept in memory").permutation(images.train.set.len());
            images.train = images.train.select(&order[..IN_MEMORY]);
        }
    }
    let task = images.featured(&experiment.name, |set| match backbone.frozen {
        true => cached(set)?.table(),
        false => features(&network, set, &normalise, device),
    })?;
    let (seen, sealed) = task.seal();
    let mut run = run.map_or_else(|| run::train(experiment, &seen.train, setting, observer), Ok)?;
    run.backbone = Some((digest, images.preprocessing));
    Ok((seen, sealed, run))
}

/// A finished run on images, and its task as the bottleneck sees it. The training images' part of the task is one of each
/// class where nothing depends on the others.
pub(super) fn restore_task(
    experiment: &Experiment,
    mut images: ImageTask,
    setting: &Setting,
) -> Result<(Task, Learnt)> {
    let backbone = image_network(experiment, &images)?;
    let device = &setting.device;
    // A network that learnt is in the checkpoint.
    let weights = backbone.frozen.then(|| pretrained(backbone, &data::data_root())).transpose()?;
    let frozen = weights.flatten().map(|weights| frozen(backbone, &weights, device)).transpose()?;
    let mut run = None;
    if streams(experiment) {
        let cols =
            frozen.as_ref().map_or(images.train.set.cols(), |network| network.architecture().features());
        run = Some(restored(experiment, fresh(experiment, images.classes, cols, setting)?, setting)?);
        let labels = &images.train.labels;
        let first = (0..images.classes).filter_map(|class| labels.iter().position(|&l| l as usize == class));
        images.train = images.train.select(&first.collect::<Vec<_>>());
    }
    let learnt = run.as_ref().and_then(|run| run.images.clone());
    let network = frozen.or(learnt).context("the run kept no image network")?;
    let features = |set: &_| features(&network, set, &images.preprocessing.normalise, device);
    let task = images.featured(&experiment.name, features)?;
    let run = run.map_or_else(|| run::restore(experiment, &task.train, setting), Ok)?;
    Ok((task, run))
}

/// The network that takes the images of an experiment.
fn image_network<'a>(experiment: &'a Experiment, images: &ImageTask) -> Result<&'a ImageBackbone> {
    let backbone = experiment.backbone.images.as_ref().context("images need [backbone.images]")?;
    let side = images.train.set.images.side();
    ensure!(backbone.network.takes(side), "{:?} takes no images of {side} × {side}", backbone.network);
    Ok(backbone)
}

/// The pretrained numbers that an experiment names; `root` is the data folder.
pub fn pretrained(config: &ImageBackbone, root: &Path) -> Result<Option<Weights>> {
    config.weights.as_ref().map(|path| Weights::read(&stored(root, path)?)).transpose()
}

/// An image network with a file's numbers, without gradients.
pub fn frozen(config: &ImageBackbone, weights: &Weights, device: &Device) -> Result<ResNet> {
    let mut network = ResNet::new(config.network, InitialWeights::Zero, device);
    weights.load(&mut network)?;
    Ok(network)
}

/// Gives `take` the features of every image, some rows at a time.
fn each(
    network: &ResNet,
    set: &ImageSet,
    normalise: &Normalise,
    device: &Device,
    mut take: impl FnMut(Vec<f32>) -> Result<()>,
) -> Result<()> {
    let indices: Vec<usize> = (0..set.len()).collect();
    for rows in indices.chunks(CHUNK) {
        let numbers = set.numbers(rows, normalise, None)?;
        let x = Tensor::from_data(TensorData::new(numbers, [rows.len(), set.cols()]), device);
        take(network.forward(as_images(x), None).into_data().iter::<f32>().collect())?;
    }
    Ok(())
}

/// Features of every image, one row each.
pub fn features(network: &ResNet, set: &ImageSet, normalise: &Normalise, device: &Device) -> Result<Table> {
    let cols = network.architecture().features();
    let mut values = Vec::with_capacity(set.len() * cols);
    each(network, set, normalise, device, |rows| {
        values.extend(rows);
        Ok(())
    })?;
    Ok(Table::new(set.len(), cols, values)?)
}

/// SHA-256 of a network's names and numbers: which network it is.
pub fn digest(network: &ResNet) -> String {
    digest::hex(numbers_digest(network))
}

fn numbers_digest(network: &ResNet) -> Sha256 {
    let mut key = Sha256::new();
    for named in network.clone().named_mut() {
        key.update(&named.name);
        named.tensor.to_data().iter::<f32>().for_each(|number| key.update(number.to_le_bytes()));
    }
    key
}

/// Features of every image from a file in `folder`, made once for a network, a source and a normalisation, and mapped.
pub fn cached(
    network: &ResNet,
    set: &ImageSet,
    normalise: &Normalise,
    folder: &Path,
    device: &Device,
) -> Result<Features> {
    let whole = ImageSet::all(&set.source, set.images.clone());
    let mut key = numbers_digest(network);
    key.update(format!("{normalise:?} {} {:?}", whole.source, whole.images));
    let path = folder.join(format!("{}.features", &digest::hex(key)[..16]));
    if !path.is_file() {
        let here = || format!("cannot write {}", path.display());
        fs::create_dir_all(folder).with_context(here)?;
        let mut file = AtomicFile::create(&path).with_context(here)?;
        file.write_all(&Features::header(whole.len(), network.architecture().features()))
            .with_context(here)?;
        each(network, &whole, normalise, device, |rows| {
            let bytes: Vec<u8> = rows.into_iter().flat_map(f32::to_le_bytes).collect();
            file.write_all(&bytes).with_context(here)
        })?;
        file.commit().with_context(here)?;
    }
    Ok(Features::open(&path)?.select(&set.rows))
}

/// Trains everything, from the pretrained numbers on if there are any.
pub fn train(
    experiment: &Experiment,
    task: &ImageTask,
    weights: Option<&Weights>,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<Learnt> {
    let rows = |indices: &[usize]| -> Arc<dyn IndexedRows> {
        Arc::new(ImageRows { set: task.train.set.select(indices), normalise: task.preprocessing.normalise })
    };
    on_rows(experiment, task, weights, task.train.set.cols(), rows, setting, observer)
}

/// Trains the bottleneck on a frozen network's features of the training images, row by row from the file.
pub fn train_frozen(
    experiment: &Experiment,
    task: &ImageTask,
    features: &Features,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<Learnt> {
    let rows = |indices: &[usize]| -> Arc<dyn IndexedRows> { Arc::new(features.select(indices)) };
    on_rows(experiment, task, None, features.cols(), rows, setting, observer)
}

/// Whether an experiment can learn from rows as they are, without the table that scaling and noise need.
pub fn streams(experiment: &Experiment) -> bool {
    experiment.backbone.standardise == Standardise::None && experiment.training.input_noise == 0.0
}

/// The model before its first epoch, on rows of `cols` numbers.
fn fresh(experiment: &Experiment, classes: usize, cols: usize, setting: &Setting) -> Result<Rdfc> {
    experiment.check()?;
    let output = Output::Classes(classes);
    check_start(experiment, output)?;
    ensure!(
        streams(experiment),
        "an image network that learns needs backbone.standardise = \"none\" and no training.input_noise"
    );
    Ok(Rdfc::new(experiment, cols, output, setting.seed, &setting.device))
}

fn on_rows(
    experiment: &Experiment,
    task: &ImageTask,
    weights: Option<&Weights>,
    cols: usize,
    rows: impl Fn(&[usize]) -> Arc<dyn IndexedRows>,
    setting: &Setting,
    observer: &mut dyn Observer,
) -> Result<Learnt> {
    let mut model = fresh(experiment, task.classes, cols, setting)?;
    if let (Some(weights), Some(images)) = (weights, &mut model.network.images) {
        weights.load(images)?;
    }
    let (kept, aside) = set_aside(experiment, task.train.set.len(), setting.seed);
    let examples = |indices: &[usize]| {
        let streamed = Streamed {
            rows: rows(indices),
            classes: task.classes,
            device: setting.device.clone(),
            seed: setting.seed,
            fault: Arc::new(Mutex::new(None)),
        };
        let labels = indices.iter().map(|&index| task.train.labels[index]).collect();
        Examples { inputs: Inputs::Streamed(streamed), labels: Some(labels), noise: None }
    };
    let watched = aside.map(|indices| examples(&indices));
    epochs(experiment, model, &examples(&kept), watched.as_ref(), setting, observer)
}
