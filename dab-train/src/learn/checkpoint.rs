//! A run between two epochs, as one safetensors file.
//!
//! Parameters, both optimisers' memories, codebook and (under early stopping) the best model so far are `f32`
//! tensors; counters, the history and a digest are metadata. Random streams need nothing: they are named by epoch. The
//! file replaces its predecessor in one rename, so a kill or a full disk at any moment leaves a whole one. Until the run
//! ends, the one before it stays beside it, for the day when a disk loses a bit.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    epoch::{Epoch, Rdfc},
    loss_scaling::Scaling,
    optimiser::{Memory, Optimiser},
};
use crate::{
    config::Experiment,
    model::{codebook::Codebook, network::Network, weights},
    support::files::AtomicFile,
};

/// The metadata key of everything that is not a tensor.
const STATE: &str = "dab";

/// A run between two epochs.
#[derive(Clone, Debug)]
pub struct RunState {
    /// The model as trained so far.
    pub model: Rdfc,
    pub history: Vec<Epoch>,
    /// The best model so far, under early stopping.
    pub best: Option<Best>,
}

/// The best model so far.
#[derive(Clone, Debug)]
pub struct Best {
    /// Its loss on the examples set aside.
    pub loss: f64,
    pub epoch: usize,
    /// θ.
    pub network: Network,
    /// m, Σ, π.
    pub codebook: Codebook,
}

/// What is not a tensor. Floats travel as bits: text would round them.
#[derive(Serialize, Deserialize)]
struct State {
    experiment: String,
    seed: u64,
    epoch: usize,
    started: bool,
    times: [u64; 2],
    best: Option<(u64, usize)>,
    /// [`History`] as TOML: serde_json reads some floats one bit off.
    history: String,
    /// Of the loss: s, a power of two, and good steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scaling: Option<(f64, u32)>,
    /// SHA-256 of all tensors' bytes, in the order of their names.
    digest: String,
}

/// What a run told so far.
#[derive(Serialize, Deserialize)]
struct History {
    epochs: Vec<Epoch>,
}

/// Named tensors on their way to a file.
#[derive(Default)]
struct Named(Vec<(String, Vec<usize>, Vec<u8>)>);

impl Named {
    fn numbers(&mut self, name: String, shape: Vec<usize>, values: impl IntoIterator<Item = f32>) {
        self.0.push((name, shape, values.into_iter().flat_map(f32::to_le_bytes).collect()));
    }

    fn tensor(&mut self, name: String, tensor: &Tensor<2>) {
        self.numbers(name, tensor.dims().to_vec(), tensor.to_data().iter::<f32>());
    }

    fn network(&mut self, name: &str, network: &Network) {
        let mut network = network.clone();
        for (index, parameter) in network.parameters_mut().into_iter().enumerate() {
            self.tensor(format!("{name}.{index}"), parameter);
        }
        for (index, buffer) in network.buffers_mut().into_iter().enumerate() {
            self.tensor(format!("{name}.buffer.{index}"), buffer);
        }
    }

    fn codebook(&mut self, name: &str, codebook: &Codebook) {
        for (part, values) in
            [("means", &codebook.means), ("covs", &codebook.covs), ("priors", &codebook.priors)]
        {
            self.numbers(format!("{name}.{part}"), vec![values.len()], values.iter().copied());
        }
    }

    fn optimiser(&mut self, name: &str, optimiser: &Optimiser) {
        for (index, memory) in optimiser.memory.iter().enumerate() {
            for (part, tensor) in [("first", &memory.first), ("second", &memory.second)] {
                if let Some(tensor) = tensor {
                    self.tensor(format!("{name}.{index}.{part}"), tensor);
                }
            }
        }
    }
}

/// A run as the bytes of a checkpoint.
pub fn to_bytes(experiment: &Experiment, progress: &RunState) -> Result<Vec<u8>> {
    let model = &progress.model;
    let mut named = Named::default();
    named.network("network", &model.network);
    named.codebook("codebook", &model.codebook);
    named.optimiser("network_optimiser", &model.network_optimiser);
    named.optimiser("means_optimiser", &model.means_optimiser);
    if let Some(best) = &progress.best {
        named.network("best.network", &best.network);
        named.codebook("best.codebook", &best.codebook);
    }
    let state = State {
        experiment: experiment.resolved()?,
        seed: model.seed,
        epoch: model.epoch,
        started: model.started,
        times: [model.network_optimiser.time, model.means_optimiser.time],
        best: progress.best.as_ref().map(|best| (best.loss.to_bits(), best.epoch)),
        history: toml::to_string(&History { epochs: progress.history.clone() })?,
        scaling: model.scaling.map(|scaling| (scaling.factor, scaling.good)),
        digest: digest(named.0.iter().map(|(name, _, bytes)| (name.as_str(), bytes.as_slice())).collect()),
    };
    let metadata = HashMap::from([(STATE.to_owned(), serde_json::to_string(&state)?)]);
    weights::serialized(&named.0, Some(metadata))
}

/// Writes `progress` to `path`, replacing what is there in one step.
pub fn write(path: &Path, experiment: &Experiment, progress: &RunState) -> Result<()> {
    let bytes = to_bytes(experiment, progress)?;
    if let Some(parent) = path.parent() {
        let here = || format!("cannot make the folder of {}", path.display());
        fs::create_dir_all(parent).with_context(here)?;
    }
    let here = || format!("cannot write {}; the last checkpoint is as it was", path.display());
    if path.is_file() {
        keep(path).with_context(here)?;
    }
    AtomicFile::write(path, &bytes).with_context(here)
}

pub fn before(path: &Path) -> PathBuf {
    path.with_extension("before.safetensors")
}

/// Gives the checkpoint a second name, which it keeps when the next one takes its own. The name is never without a file: a
/// run that is killed here leaves the checkpoint that had it before, or this one.
fn keep(path: &Path) -> io::Result<()> {
    let before = before(path);
    let link = path.with_extension(format!("{}.part", std::process::id()));
    let linked = fs::hard_link(path, &link).and_then(|()| fs::rename(&link, &before));
    // A link to a file that has the new name already stays where it is, by the rules of rename.
    let _ = fs::remove_file(&link);
    // Not every file system has two names for one file.
    linked.or_else(|_| AtomicFile::write(&before, &fs::read(path)?))
}

/// SHA-256 of names and bytes, in the order of the names.
fn digest(mut parts: Vec<(&str, &[u8])>) -> String {
    parts.sort_unstable();
    let mut digest = Sha256::new();
    for (name, bytes) in parts {
        digest.update(name);
        digest.update(bytes);
    }
    crate::support::digest::hex(digest)
}

/// A checkpoint's tensors, by name.
struct Stored<'a> {
    file: SafeTensors<'a>,
    device: &'a Device,
}

impl Stored<'_> {
    fn numbers(&self, name: &str) -> Result<Vec<f32>> {
        let view = self.file.tensor(name).map_err(|_| anyhow!("the checkpoint has no `{name}`"))?;
        ensure!(view.dtype() == Dtype::F32, "`{name}` in the checkpoint is not f32");
        Ok(view.data().as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect())
    }

    fn tensor(&self, name: &str, shape: [usize; 2]) -> Result<Tensor<2>> {
        let values = self.numbers(name)?;
        ensure!(values.len() == shape[0] * shape[1], "`{name}` in the checkpoint has another shape");
        Ok(Tensor::from_data(TensorData::new(values, shape), self.device))
    }

    fn network(&self, name: &str, network: &mut Network) -> Result<()> {
        for (index, parameter) in network.parameters_mut().into_iter().enumerate() {
            let tensor = self.tensor(&format!("{name}.{index}"), parameter.dims())?;
            *parameter = tensor.autodiff().require_grad();
        }
        for (index, buffer) in network.buffers_mut().into_iter().enumerate() {
            *buffer = self.tensor(&format!("{name}.buffer.{index}"), buffer.dims())?;
        }
        Ok(())
    }

    fn codebook(&self, name: &str, codebook: &mut Codebook) -> Result<()> {
        let parts =
            [("means", &mut codebook.means), ("covs", &mut codebook.covs), ("priors", &mut codebook.priors)];
        for (part, values) in parts {
            let read = self.numbers(&format!("{name}.{part}"))?;
            ensure!(read.len() == values.len(), "`{name}.{part}` in the checkpoint has another length");
            *values = read;
        }
        Ok(())
    }

    fn optimiser(&self, name: &str, optimiser: &mut Optimiser, shapes: &[[usize; 2]]) -> Result<()> {
        optimiser.memory.clear();
        for (index, &shape) in shapes.iter().enumerate() {
            let part = |part: &str| {
                let name = format!("{name}.{index}.{part}");
                self.file.names().contains(&name.as_str()).then(|| self.tensor(&name, shape)).transpose()
            };
            optimiser.memory.push(Memory { first: part("first")?, second: part("second")? });
        }
        Ok(())
    }
}

/// Reads `path` into `progress`, which holds a fresh start of the same experiment.
pub fn read(path: &Path, experiment: &Experiment, progress: &mut RunState) -> Result<()> {
    let bytes = bytes(path)?;
    let before = before(path);
    let instead = match before.is_file() {
        true => format!("; the checkpoint before it is {}: rename it to go on from there", before.display()),
        false => String::new(),
    };
    resume(&bytes, experiment, progress)
        .with_context(|| format!("cannot resume from {}{instead}", path.display()))
}

/// A checkpoint as it is.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    crate::support::limits::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// [`read`] of a checkpoint's bytes.
pub fn resume(bytes: &[u8], experiment: &Experiment, progress: &mut RunState) -> Result<()> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).context("it is damaged")?;
    let text =
        metadata.metadata().as_ref().and_then(|map| map.get(STATE)).context("it has no state of a run")?;
    let state: State = serde_json::from_str(text).context("it is damaged")?;
    let seed = progress.model.seed;
    ensure!(state.seed == seed, "it belongs to seed {}, not {seed}", state.seed);
    ensure!(state.experiment == experiment.resolved()?, "it belongs to another version of the experiment");
    let file = SafeTensors::deserialize(bytes).context("it is damaged")?;
    let device = progress.model.device.clone();
    let stored = Stored { file, device: &device };
    let views = stored.file.iter().map(|(name, view)| (name, view.data())).collect();
    ensure!(digest(views) == state.digest, "it is damaged: its tensors have another SHA-256");
    let model = &mut progress.model;
    stored.network("network", &mut model.network)?;
    stored.codebook("codebook", &mut model.codebook)?;
    let shapes: Vec<_> = model.network.parameters_mut().iter().map(|parameter| parameter.dims()).collect();
    stored.optimiser("network_optimiser", &mut model.network_optimiser, &shapes)?;
    let shape = [model.codebook.len(), model.codebook.dim];
    stored.optimiser("means_optimiser", &mut model.means_optimiser, &[shape])?;
    [model.network_optimiser.time, model.means_optimiser.time] = state.times;
    (model.epoch, model.started) = (state.epoch, state.started);
    model.scaling = state.scaling.map(|(factor, good)| Scaling { factor, good });
    progress.history = toml::from_str::<History>(&state.history).context("it is damaged")?.epochs;
    progress.best = None;
    if let Some((loss, epoch)) = state.best {
        let (mut network, mut codebook) = (model.network.clone(), model.codebook.clone());
        stored.network("best.network", &mut network)?;
        stored.codebook("best.codebook", &mut codebook)?;
        progress.best = Some(Best { loss: f64::from_bits(loss), epoch, network, codebook });
    }
    Ok(())
}
