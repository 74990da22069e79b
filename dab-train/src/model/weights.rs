//! Pretrained weights: a PyTorch or safetensors file → a [`ResNet`].
//!
//! ```text
//! .pth .pt .th (any container that torch.save wrote)    .safetensors    →    name → shape, f32 numbers
//! ```
//!
//! Names are torchvision's; whatever stands before `conv1.weight` (`state_dict.module.` …) is taken off all of
//! them. A file must hold every tensor of the network in its shape, and nothing else but the last dense layer, which the
//! bottleneck replaces. Where the file's name ends in the first digits of its SHA-256, as PyTorch's do, it is checked.

mod file;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, bail};
use burn::tensor::{Tensor, TensorData};
use safetensors::Dtype;

pub use self::file::Stored;
use super::resnet::ResNet;

/// How the last dense layer is called: torchvision's and timm's, and the CIFAR ResNets'.
const CLASSIFIERS: [&str; 2] = ["fc", "linear"];
/// How many names an error lists.
const LISTED: usize = 6;

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
        Ok(Self { path: path.display().to_string(), tensors: file::tensors(path)? })
    }

    /// The last dense layer, if the file has one.
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
        left.retain(|name| !name.ends_with(file::COUNTER) && !replaced(name));
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
