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

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use anyhow::{Result, ensure};
use burn::tensor::{Tensor, TensorData};
use safetensors::{Dtype, tensor::TensorView};

pub use self::file::Stored;
use super::resnet::ResNet;
use crate::data::listed;

/// How the last dense layer is called: torchvision's and timm's, and the CIFAR ResNets'.
const CLASSIFIERS: [&str; 2] = ["fc", "linear"];

/// The tensors of a file, by torchvision's names.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Where they come from, for messages.
    pub path: String,
    /// By name.
    pub tensors: BTreeMap<String, Stored>,
}

impl Weights {
    /// Reads a file and verifies the digest in its name.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self { path: path.display().to_string(), tensors: file::tensors(path)? })
    }

    /// Overwrites the network's parameters and running statistics; gradients are tracked as before.
    /// A tensor that is missing, has another shape or is left over is refused, and the network is then unchanged.
    pub fn load(&self, network: &mut ResNet) -> Result<()> {
        let mut named = network.named_mut();
        let missing: Vec<String> =
            named.iter().filter(|w| !self.tensors.contains_key(&w.name)).map(|w| w.name.clone()).collect();
        let misshapen = named.iter().filter_map(|wanted| {
            let found = &self.tensors.get(&wanted.name)?.shape;
            let fault = || format!("{} {found:?} instead of {:?}", wanted.name, wanted.shape);
            (*found != wanted.shape).then(fault)
        });
        let replaced = |name: &str| {
            CLASSIFIERS.iter().any(|classifier| {
                name.strip_suffix(".weight").or(name.strip_suffix(".bias")) == Some(classifier)
            })
        };
        let known = |name: &str| {
            named.iter().any(|wanted| wanted.name == name) || name.ends_with(file::COUNTER) || replaced(name)
        };
        let left = self.tensors.keys().filter(|name| !known(name)).cloned();
        let lists = [("missing", missing), ("misshapen", misshapen.collect()), ("left over", left.collect())];
        let faults = lists.into_iter().filter(|(_, names)| !names.is_empty());
        let faults: Vec<String> = faults.map(|(what, names)| format!("{what}: {}", listed(&names))).collect();
        ensure!(faults.is_empty(), "{} does not fit the network; {}", self.path, faults.join("; "));
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
    serialized(&tensors, None)
}

/// A file of tensors, each with its name, its shape and the bytes of its f32 numbers.
pub(crate) fn serialized(
    tensors: &[(String, Vec<usize>, Vec<u8>)],
    metadata: Option<HashMap<String, String>>,
) -> Result<Vec<u8>> {
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)));
    Ok(safetensors::serialize(views.collect::<Result<Vec<_>>>()?, metadata)?)
}
