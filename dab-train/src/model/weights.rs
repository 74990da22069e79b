//! Pretrained weights: a PyTorch or safetensors file → a [`ResNet`].
//!
//! ```text
//! .pth .pt .th (any container that torch.save wrote)    .safetensors    →    name → shape, f32 numbers
//! ```
//!
//! Names are torchvision's; whatever stands before `conv1.weight` (`state_dict.module.` …) is taken off all of
//! them. A file must hold every tensor of the network in its shape, and nothing else but the last dense layer, which the
//! bottleneck replaces. Where the file's name ends in the first digits of its SHA-256, as PyTorch's do, it is checked.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::{Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use sha2::Sha256;

use super::resnet::ResNet;
use crate::support::digest;

/// The parameter that every image network here has.
const ANCHOR: &str = "conv1.weight";
/// What PyTorch counts beside the running statistics; nothing uses it.
const COUNTER: &str = "num_batches_tracked";
/// How the last dense layer is called: torchvision's and timm's, and the CIFAR ResNets'.
const CLASSIFIERS: [&str; 2] = ["fc", "linear"];
/// How many names an error lists.
const LISTED: usize = 6;
/// Digits of the SHA-256 in a file's name.
const DIGITS: usize = 8;

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub values: Vec<f32>,
}

/// The tensors of a file, by torchvision's names.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Where they come from, for messages.
    pub path: String,
    /// By name.
    pub tensors: BTreeMap<String, Stored>,
}

/// The last dense layer: `classes × features` and one number per class.
#[derive(Clone, Debug, PartialEq)]
pub struct Classifier {
    /// Row by class.
    pub weight: Stored,
    /// One per class.
    pub bias: Stored,
}

impl Weights {
    /// Reads a file and verifies the digest in its name.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let here = || format!("cannot read weights from {}", path.display());
        verify_name(path)?;
        let found = match path.extension().and_then(|extension| extension.to_str()) {
            Some("safetensors") => from_safetensors(path).with_context(here)?,
            Some("pth" | "pt" | "th") => from_pytorch(path).with_context(here)?,
            _ => bail!("{}: expected a file named .pth, .pt, .th or .safetensors", path.display()),
        };
        let stem = found.keys().filter(|name| name.ends_with(ANCHOR)).min_by_key(|name| name.len());
        let prefix = stem.map_or(0, |name| name.len() - ANCHOR.len());
        let before = stem.map_or(String::new(), |name| name[..prefix].to_owned());
        let short = |name: String| name.strip_prefix(&before).map_or(name.clone(), ToOwned::to_owned);
        let tensors = found.into_iter().map(|(name, stored)| (short(name), stored)).collect();
        Ok(Self { path: path.display().to_string(), tensors })
    }

    /// The last dense layer, if the file has one.
    #[must_use]
    pub fn classifier(&self) -> Option<Classifier> {
        let part = |name: &str, part: &str| self.tensors.get(&format!("{name}.{part}")).cloned();
        CLASSIFIERS
            .iter()
            .find_map(|name| Some(Classifier { weight: part(name, "weight")?, bias: part(name, "bias")? }))
    }

    /// Overwrites the network's parameters and running statistics; gradients are tracked as before.
    ///
    /// # Errors
    /// When a tensor is missing, has another shape, or is left over: the message lists them. The network is
    /// then unchanged.
    pub fn load(&self, network: &mut ResNet) -> Result<()> {
        let mut named = network.named_mut();
        let mut left: Vec<&str> = self.tensors.keys().map(String::as_str).collect();
        let (mut missing, mut misshapen) = (Vec::new(), Vec::new());
        for wanted in &named {
            left.retain(|name| *name != wanted.name);
            match self.tensors.get(&wanted.name) {
                None => missing.push(wanted.name.clone()),
                Some(stored) if stored.shape != wanted.shape => {
                    misshapen
                        .push(format!("{} {:?} instead of {:?}", wanted.name, stored.shape, wanted.shape));
                }
                Some(_) => {}
            }
        }
        let replaced = |name: &str| {
            CLASSIFIERS.iter().any(|classifier| {
                name.strip_suffix(".weight").or(name.strip_suffix(".bias")) == Some(classifier)
            })
        };
        left.retain(|name| !name.ends_with(COUNTER) && !replaced(name));
        if !(missing.is_empty() && misshapen.is_empty() && left.is_empty()) {
            let left: Vec<String> = left.into_iter().map(ToOwned::to_owned).collect();
            let faults: Vec<String> = [("missing", missing), ("misshapen", misshapen), ("left over", left)]
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(what, names)| format!("{what}: {}", listed(&names)))
                .collect();
            bail!("{} does not fit the network; {}", self.path, faults.join("; "));
        }
        for wanted in &mut named {
            let stored = &self.tensors[&wanted.name];
            let data = TensorData::new(stored.values.clone(), wanted.tensor.dims());
            let tensor = Tensor::from_data(data, &wanted.tensor.device());
            *wanted.tensor = if wanted.tensor.is_require_grad() { tensor.require_grad() } else { tensor };
        }
        Ok(())
    }
}

/// The network as a safetensors file under PyTorch's names.
///
/// # Errors
/// When a tensor cannot be stored.
pub fn to_safetensors(network: &ResNet) -> Result<Vec<u8>> {
    let mut network = network.clone();
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = network
        .named_mut()
        .into_iter()
        .map(|named| {
            let bytes = named.tensor.to_data().iter::<f32>().flat_map(f32::to_le_bytes).collect();
            (named.name, named.shape, bytes)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        Ok((name.as_str(), safetensors::tensor::TensorView::new(Dtype::F32, shape.clone(), bytes)?))
    });
    Ok(safetensors::serialize(views.collect::<Result<Vec<_>>>()?, None)?)
}

/// The first names, and how many more there are.
fn listed(names: &[String]) -> String {
    let rest = names.len().saturating_sub(LISTED);
    let shown = names[..names.len() - rest].join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

/// Compares the digest at the end of a name such as `resnet50-0676ba61.pth` with the file's own.
fn verify_name(path: &Path) -> Result<()> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let Some((_, digits)) = stem.rsplit_once('-') else { return Ok(()) };
    if digits.len() != DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(());
    }
    let digest = digest::of_file::<Sha256>(path)?;
    ensure!(
        digest.starts_with(&digits.to_ascii_lowercase()),
        "{} is damaged: its SHA-256 begins with {}, its name says {digits}",
        path.display(),
        &digest[..DIGITS]
    );
    Ok(())
}

#[cfg(feature = "pytorch")]
fn from_pytorch(path: &Path) -> Result<BTreeMap<String, Stored>> {
    let mut found = BTreeMap::new();
    for (name, tensor) in pytorch_reader::PytorchReader::new(path)?.into_tensors() {
        if name.ends_with(COUNTER) {
            continue;
        }
        let bytes = tensor.read().with_context(|| name.clone())?;
        let values = numbers(&format!("{:?}", tensor.dtype()), &bytes).with_context(|| name.clone())?;
        found.insert(name, Stored { shape: tensor.shape().to_vec(), values });
    }
    Ok(found)
}

#[cfg(not(feature = "pytorch"))]
fn from_pytorch(_: &Path) -> Result<BTreeMap<String, Stored>> {
    bail!("this build lacks the cargo feature `pytorch`; safetensors need none")
}

fn from_safetensors(path: &Path) -> Result<BTreeMap<String, Stored>> {
    let bytes = crate::support::limits::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let mut found = BTreeMap::new();
    for (name, view) in file.iter().filter(|(name, _)| !name.ends_with(COUNTER)) {
        let kind = format!("{:?}", view.dtype());
        let values = numbers(&kind, view.data()).with_context(|| name.to_owned())?;
        found.insert(name.to_owned(), Stored { shape: view.shape().to_vec(), values });
    }
    Ok(found)
}

/// Little-endian numbers of a type that both formats call by the same name.
fn numbers(kind: &str, bytes: &[u8]) -> Result<Vec<f32>> {
    Ok(match kind {
        "F32" => words(bytes, f32::from_le_bytes),
        "F64" => words(bytes, |word| f64::from_le_bytes(word) as f32),
        "F16" => words(bytes, |word| half::f16::from_le_bytes(word).to_f32()),
        "BF16" => words(bytes, |word| half::bf16::from_le_bytes(word).to_f32()),
        _ => bail!("it holds {kind}, not real numbers"),
    })
}

/// Little-endian words as numbers.
fn words<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|&word| convert(word)).collect()
}
