//! Residual networks for images: pixels → pooled features.
//!
//! ```text
//! cifar-resnet   conv-norm-relu → blocks relu(x + norm conv relu norm conv x)              → mean over pixels → 64
//! resnet50       conv-norm-relu-maxpool → blocks with 1×1, 3×3, 1×1 kernels                → 2048
//! wide-resnet    conv → blocks x + conv relu norm conv relu norm x → norm-relu             → 64 · width
//! ```
//!
//! One structure serves all three: a block is a list of convolutions and norms, normalised before (wide) or after each
//! convolution, and a shortcut. Parameters carry the names that torchvision, timm and the CIFAR ResNets'
//! checkpoints use.

use burn::tensor::{
    DType, Device, Tensor,
    activation::relu,
    module::{adaptive_avg_pool2d, max_pool2d},
    ops::MaxPoolOptions,
};
use serde::{Deserialize, Serialize};

use super::conv::{Conv, InitialWeights, Norm, Precision, Statistics};
pub use crate::data::images::pixels::CHANNELS;

/// How much wider a ResNet-50 block's output is than its 3×3 kernels.
const EXPANSION: usize = 4;
/// Blocks in each stage of ResNet-50.
const RESNET50_BLOCKS: [usize; 4] = [3, 4, 6, 3];

/// Which network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Architecture {
    /// Wide ResNet `depth`-`width` (Zagoruyko and Komodakis 2016); the depth is 6 n + 4.
    WideResnet {
        /// Layers.
        depth: usize,
        /// Channels, as a multiple of 16, 32 and 64.
        width: usize,
    },
    /// ResNet-50 (He et al. 2015), stride in the 3×3 kernels as torchvision has it.
    Resnet50,
    /// The CIFAR-10 ResNets of He et al. 2015 with parameter-free shortcuts; the depth is 6 n + 2.
    CifarResnet {
        /// Layers.
        depth: usize,
    },
}

impl Architecture {
    /// Width of the pooled features.
    pub fn features(self) -> usize {
        match self {
            Self::WideResnet { width, .. } => 64 * width,
            Self::Resnet50 => 512 * EXPANSION,
            Self::CifarResnet { .. } => 64,
        }
    }

    /// Height and width of the images that it was made for.
    pub fn side(self) -> usize {
        match self {
            Self::Resnet50 => 224,
            Self::WideResnet { .. } | Self::CifarResnet { .. } => 32,
        }
    }

    /// The shorter side of a picture before its centre of `side` × `side` is cut out, as its authors have it.
    pub fn resize(self, side: usize) -> usize {
        match self {
            Self::Resnet50 => side * 8 / 7,
            Self::WideResnet { .. } | Self::CifarResnet { .. } => side,
        }
    }

    /// Whether images of this height and width can be halved as often as the network does.
    pub fn takes(self, side: usize) -> bool {
        match self {
            Self::CifarResnet { .. } => side > 0 && side.is_multiple_of(4),
            _ => side > 0,
        }
    }

    /// Why there is no such network, if there is none.
    pub fn fault(self) -> Option<String> {
        match self {
            Self::WideResnet { depth, width } if depth < 10 || depth % 6 != 4 || width == 0 => Some(format!(
                "a wide ResNet has a depth of 10, 16, 22, 28, …, not {depth}, and a width from 1"
            )),
            Self::CifarResnet { depth } if depth < 8 || depth % 6 != 2 => {
                Some(format!("a CIFAR ResNet has a depth of 8, 14, 20, …, not {depth}"))
            }
            _ => None,
        }
    }
}

/// How a block's input reaches its sum.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are a few blocks, not thousands")]
pub enum Shortcut {
    /// As it is.
    Identity,
    /// Every second pixel, and zeros in new channels on both sides, half on each (option A).
    Subsample {
        /// Channels in all.
        channels: usize,
    },
    /// Through a 1×1 kernel, normalised or not.
    Project(Conv, Option<Norm>),
}

/// Convolutions with a shortcut around them.
#[derive(Clone, Debug)]
pub struct Block {
    name: String,
    convs: Vec<Conv>,
    norms: Vec<Norm>,
    shortcut: Shortcut,
}

/// A residual network up to its pooled features.
#[derive(Clone, Debug)]
pub struct ResNet {
    architecture: Architecture,
    stem: Conv,
    blocks: Vec<Block>,
    /// Follows the stem, or, in a wide ResNet, the last block.
    norm: Norm,
    /// In which convolutions multiply.
    pub precision: Precision,
}

/// A parameter or a running statistic under its PyTorch name.
#[derive(Debug)]
pub struct Named<'a> {
    /// As in `layer1.0.conv1.weight`.
    pub name: String,
    /// Its shape in a PyTorch file.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub tensor: &'a mut Tensor<2>,
    /// Whether gradients move it.
    pub learnt: bool,
}

/// What one image costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Multiply-adds of a forward pass.
    pub multiply_adds: u64,
    /// Numbers that a forward pass keeps for its backward pass.
    pub kept: u64,
}

impl ResNet {
    /// A network on `device`, its norms at the identity.
    pub fn new(architecture: Architecture, mut source: InitialWeights, device: &Device) -> Self {
        let mut conv = |shape, kernel, stride| Conv::new(shape, kernel, stride, &mut source, device);
        let norm = |channels| Norm::new(channels, device);
        let (stem_width, stem_kernel, stem_stride) = match architecture {
            Architecture::Resnet50 => (64, 7, 2),
            _ => (16, 3, 1),
        };
        let stages: Vec<(usize, usize)> = match architecture {
            Architecture::WideResnet { depth, width } => {
                [16, 32, 64].map(|channels| (channels * width, (depth - 4) / 6)).to_vec()
            }
            Architecture::CifarResnet { depth } => {
                [16, 32, 64].map(|channels| (channels, (depth - 2) / 6)).to_vec()
            }
            Architecture::Resnet50 => [64, 128, 256, 512].into_iter().zip(RESNET50_BLOCKS).collect(),
        };
        let stem = conv([CHANNELS, stem_width], stem_kernel, stem_stride);
        let mut blocks = Vec::new();
        let mut inputs = stem_width;
        for (stage, &(channels, count)) in stages.iter().enumerate() {
            for index in 0..count {
                let stride = if stage > 0 && index == 0 { 2 } else { 1 };
                let name = format!("layer{}.{index}", stage + 1);
                let outputs = match architecture {
                    Architecture::Resnet50 => channels * EXPANSION,
                    _ => channels,
                };
                let changes = stride > 1 || inputs != outputs;
                let shapes = match architecture {
                    Architecture::Resnet50 => vec![
                        ([inputs, channels], 1, 1),
                        ([channels, channels], 3, stride),
                        ([channels, outputs], 1, 1),
                    ],
                    _ => vec![([inputs, outputs], 3, stride), ([outputs, outputs], 3, 1)],
                };
                let wide = architecture.is_wide();
                let norms =
                    shapes.iter().map(|&([from, to], ..)| norm(if wide { from } else { to })).collect();
                let convs =
                    shapes.into_iter().map(|(shape, kernel, step)| conv(shape, kernel, step)).collect();
                let shortcut = match architecture {
                    _ if !changes => Shortcut::Identity,
                    Architecture::CifarResnet { .. } => Shortcut::Subsample { channels: outputs },
                    Architecture::WideResnet { .. } => {
                        Shortcut::Project(conv([inputs, outputs], 1, stride), None)
                    }
                    Architecture::Resnet50 => {
                        Shortcut::Project(conv([inputs, outputs], 1, stride), Some(norm(outputs)))
                    }
                };
                blocks.push(Block { name, convs, norms, shortcut });
                inputs = outputs;
            }
        }
        let norm = norm(if architecture.is_wide() { inputs } else { stem_width });
        Self { architecture, stem, blocks, norm, precision: Precision::Type(DType::F32) }
    }

    /// Which network this is.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Images `[batch, 3, h, w]` → features `[batch, F]`. Norms use their running statistics, or, with `taken`, the
    /// batch's, which are added to it in a fixed order.
    pub fn forward(&self, x: Tensor<4>, taken: Option<&mut Vec<Statistics>>) -> Tensor<2> {
        Self::forward_parts(&[self], vec![x], taken).pop().expect("one part gives one part")
    }

    /// [`ResNet::forward`] of a batch in parts, each through its own copy of the network on its own device; norms use the
    /// statistics of the whole batch.
    ///
    /// # Panics
    /// Without parts.
    pub fn forward_parts(
        parts: &[&Self],
        xs: Vec<Tensor<4>>,
        mut taken: Option<&mut Vec<Statistics>>,
    ) -> Vec<Tensor<2>> {
        let Self { architecture, precision, .. } = *parts[0];
        let norms: Vec<&Norm> = parts.iter().map(|part| &part.norm).collect();
        let mut xs: Vec<Tensor<4>> =
            parts.iter().zip(xs).map(|(part, x)| part.stem.forward(x, precision)).collect();
        if !architecture.is_wide() {
            xs = Norm::forward(&norms, xs, taken.as_deref_mut(), true);
        }
        if architecture == Architecture::Resnet50 {
            let options = MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]);
            xs = each(xs, |x| max_pool2d(x, options.clone()));
        }
        for index in 0..parts[0].blocks.len() {
            let blocks: Vec<&Block> = parts.iter().map(|part| &part.blocks[index]).collect();
            xs = Block::forward(&blocks, xs, architecture.is_wide(), precision, taken.as_deref_mut());
        }
        if architecture.is_wide() {
            xs = Norm::forward(&norms, xs, taken, true);
        }
        each(xs, |x| {
            let batch = x.dims()[0];
            adaptive_avg_pool2d(x, [1, 1]).reshape([batch, architecture.features()])
        })
    }

    /// Moves the running statistics towards those that [`ResNet::forward`] took.
    ///
    /// # Panics
    /// When they are another network's.
    pub fn absorb(&mut self, taken: Vec<Statistics>) {
        let norms: Vec<_> = self.norms_mut();
        assert_eq!(norms.len(), taken.len(), "statistics belong to the network that took them");
        norms.into_iter().zip(taken).for_each(|(norm, statistics)| norm.absorb(statistics));
    }

    /// The running mean of each norm, in the order of evaluation.
    pub fn running_means(&self) -> Vec<Tensor<2>> {
        self.clone().norms_mut().into_iter().map(|norm| norm.mean.clone()).collect()
    }

    /// In the order of evaluation.
    fn norms_mut(&mut self) -> Vec<&mut Norm> {
        let wide = self.architecture.is_wide();
        let mut norms: Vec<&mut Norm> = Vec::new();
        for block in &mut self.blocks {
            norms.extend(&mut block.norms);
            if let Shortcut::Project(_, Some(norm)) = &mut block.shortcut {
                norms.push(norm);
            }
        }
        norms.insert(if wide { norms.len() } else { 0 }, &mut self.norm);
        norms
    }

    /// Every parameter and running statistic by name, in a fixed order.
    pub fn named_mut(&mut self) -> Vec<Named<'_>> {
        let mut all = Vec::new();
        name_conv("conv1".to_owned(), &mut self.stem, &mut all);
        name_norm("bn1".to_owned(), &mut self.norm, &mut all);
        for block in &mut self.blocks {
            let name = &block.name;
            for (index, conv) in block.convs.iter_mut().enumerate() {
                name_conv(format!("{name}.conv{}", index + 1), conv, &mut all);
            }
            for (index, norm) in block.norms.iter_mut().enumerate() {
                name_norm(format!("{name}.bn{}", index + 1), norm, &mut all);
            }
            if let Shortcut::Project(conv, norm) = &mut block.shortcut {
                name_conv(format!("{name}.downsample.0"), conv, &mut all);
                norm.iter_mut().for_each(|norm| name_norm(format!("{name}.downsample.1"), norm, &mut all));
            }
        }
        all
    }

    /// Everything that gradients move, in a fixed order.
    pub fn parameters_mut(&mut self) -> impl Iterator<Item = &mut Tensor<2>> {
        self.named_mut().into_iter().filter(|named| named.learnt).map(|named| named.tensor)
    }

    /// The running statistics, in a fixed order.
    pub fn buffers_mut(&mut self) -> impl Iterator<Item = &mut Tensor<2>> {
        self.named_mut().into_iter().filter(|named| !named.learnt).map(|named| named.tensor)
    }

    /// What one image of this height and width costs.
    pub fn cost(&self, height: usize, width: usize) -> Cost {
        let mut cost = Cost::default();
        let mut size = cost.conv(&self.stem, [height, width], 1);
        if self.architecture == Architecture::Resnet50 {
            size = size.map(|side| side.div_ceil(2));
            cost.kept += (size[0] * size[1] * self.stem.outputs()) as u64;
        }
        for block in &self.blocks {
            let input = size;
            for conv in &block.convs {
                size = cost.conv(conv, size, 1);
            }
            if let Shortcut::Project(conv, norm) = &block.shortcut {
                let _ = cost.conv(conv, input, usize::from(norm.is_some()));
            }
        }
        cost
    }
}

/// As in `cifar-resnet-20`, `wide-resnet-28-10` and `resnet50`.
impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::WideResnet { depth, width } => write!(f, "wide-resnet-{depth}-{width}"),
            Self::Resnet50 => write!(f, "resnet50"),
            Self::CifarResnet { depth } => write!(f, "cifar-resnet-{depth}"),
        }
    }
}

impl std::str::FromStr for Architecture {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let numbers = |rest: &str| rest.split('-').map(|n| n.parse().ok()).collect::<Option<Vec<usize>>>();
        let cifar = name.strip_prefix("cifar-resnet-").and_then(numbers);
        let wide = name.strip_prefix("wide-resnet-").and_then(numbers);
        let found = match (name, cifar.as_deref(), wide.as_deref()) {
            ("resnet50", ..) => Self::Resnet50,
            (_, Some(&[depth]), _) => Self::CifarResnet { depth },
            (_, _, Some(&[depth, width])) => Self::WideResnet { depth, width },
            _ => {
                return Err(format!(
                    "there is no network `{name}`; give resnet50, cifar-resnet-DEPTH or wide-resnet-DEPTH-WIDTH"
                ));
            }
        };
        found.fault().map_or(Ok(found), Err)
    }
}

impl Architecture {
    fn is_wide(self) -> bool {
        matches!(self, Self::WideResnet { .. })
    }
}

impl Cost {
    /// Adds one convolution and, `norms` times, a norm with its activation; returns the size of its output.
    fn conv(&mut self, conv: &Conv, size: [usize; 2], norms: usize) -> [usize; 2] {
        let size = size.map(|side| side.div_ceil(conv.stride));
        let outputs = (size[0] * size[1] * conv.outputs()) as u64;
        self.multiply_adds += outputs * (conv.inputs * conv.kernel * conv.kernel) as u64;
        // A norm keeps its input, the offset from the mean and its product, an activation its output.
        self.kept += outputs * (1 + 3 * norms as u64);
        size
    }
}

fn name_conv<'a>(name: String, conv: &'a mut Conv, all: &mut Vec<Named<'a>>) {
    let shape = vec![conv.outputs(), conv.inputs, conv.kernel, conv.kernel];
    all.push(Named { name: name + ".weight", shape, tensor: &mut conv.weight, learnt: true });
}

fn name_norm<'a>(name: String, norm: &'a mut Norm, all: &mut Vec<Named<'a>>) {
    let shape = vec![norm.scale.dims()[1]];
    for (part, tensor, learnt) in [
        ("weight", &mut norm.scale, true),
        ("bias", &mut norm.shift, true),
        ("running_mean", &mut norm.mean, false),
        ("running_var", &mut norm.variance, false),
    ] {
        all.push(Named { name: format!("{name}.{part}"), shape: shape.clone(), tensor, learnt });
    }
}

impl Block {
    /// Of a batch in parts, each through its own copy of the block.
    fn forward(
        parts: &[&Self],
        xs: Vec<Tensor<4>>,
        wide: bool,
        precision: Precision,
        mut taken: Option<&mut Vec<Statistics>>,
    ) -> Vec<Tensor<4>> {
        let convolve = |index: usize, xs: Vec<Tensor<4>>| -> Vec<Tensor<4>> {
            parts.iter().zip(xs).map(|(part, x)| part.convs[index].forward(x, precision)).collect()
        };
        let convs = parts[0].convs.len();
        let mut ys = xs.clone();
        for index in 0..convs {
            let norms: Vec<&Norm> = parts.iter().map(|part| &part.norms[index]).collect();
            if wide {
                ys = convolve(index, Norm::forward(&norms, ys, taken.as_deref_mut(), true));
            } else {
                let last = index + 1 == convs;
                ys = Norm::forward(&norms, convolve(index, ys), taken.as_deref_mut(), !last);
            }
        }
        let through = |(part, x): (&&Self, Tensor<4>)| match &part.shortcut {
            Shortcut::Identity => x,
            Shortcut::Subsample { channels } => subsample(x, *channels),
            Shortcut::Project(conv, _) => conv.forward(x, precision),
        };
        let xs: Vec<Tensor<4>> = parts.iter().zip(xs).map(through).collect();
        let norms: Vec<&Norm> = parts.iter().filter_map(|part| part.shortcut_norm()).collect();
        let xs = if norms.is_empty() { xs } else { Norm::forward(&norms, xs, taken, false) };
        let sums = xs.into_iter().zip(ys).map(|(x, y)| x + y).collect();
        if wide { sums } else { each(sums, relu) }
    }

    fn shortcut_norm(&self) -> Option<&Norm> {
        match &self.shortcut {
            Shortcut::Project(_, norm) => norm.as_ref(),
            _ => None,
        }
    }
}

fn each<T, U>(all: Vec<T>, f: impl FnMut(T) -> U) -> Vec<U> {
    all.into_iter().map(f).collect()
}

/// Every second pixel in both directions, zeros in new channels on both sides.
fn subsample(x: Tensor<4>, channels: usize) -> Tensor<4> {
    let [batch, own, height, width] = x.dims();
    let (rows, columns) = (height / 2, width / 2);
    let even_rows = x.reshape([batch * own * rows, 2 * width]).narrow(1, 0, width);
    let even = even_rows.reshape([batch * own * rows * columns, 2]).narrow(1, 0, 1);
    let even = even.reshape([batch, own, rows, columns]);
    let zeros = Tensor::zeros([batch, (channels - own) / 2, rows, columns], (&even.device(), even.dtype()));
    Tensor::cat(vec![zeros.clone(), even, zeros], 1)
}

#[cfg(test)]
#[path = "resnet_tests.rs"]
mod tests;
