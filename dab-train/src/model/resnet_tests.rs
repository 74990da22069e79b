//! Image networks: sizes to the unit, shapes, statistics, names.

use burn::tensor::TensorData;

use super::*;
use crate::{
    config::Experiment,
    learn::epoch::Rdfc,
    model::{conv, network::Output},
    support::random::Random,
};

fn zero(architecture: Architecture) -> ResNet {
    ResNet::new(architecture, InitialWeights::Zero, &Device::flex())
}

fn count<'a>(parameters: impl Iterator<Item = &'a mut Tensor<2>>) -> usize {
    parameters.map(|parameter| parameter.dims().iter().product::<usize>()).sum()
}

fn experiment(file: &str) -> Experiment {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(file);
    Experiment::read(&path).unwrap()
}

/// Trainable numbers of an experiment: network and code means.
fn trainable(experiment: &Experiment, inputs: usize, classes: usize) -> usize {
    let mut model = Rdfc::new(experiment, inputs, Output::Classes(classes), 0, &Device::flex());
    model.network.parameter_count() + model.codebook.means.len()
}

#[test]
fn a_plain_wide_resnet_has_the_published_size() {
    let wide = Architecture::WideResnet { depth: 28, width: 10 };
    let dense = wide.features() * 10 + 10;
    assert_eq!(count(zero(wide).parameters_mut()) + dense, 36_479_194);
    assert_eq!(count(zero(Architecture::Resnet50).parameters_mut()) + 2048 * 1000 + 1000, 25_557_032);
    assert_eq!(count(zero(Architecture::CifarResnet { depth: 20 }).parameters_mut()) + 650, 269_722);
    assert_eq!(count(zero(Architecture::CifarResnet { depth: 56 }).parameters_mut()) + 650, 853_018);
}

#[test]
fn published_experiments_have_the_published_sizes() {
    assert_eq!(trainable(&experiment("cifar10-wrn28-10.toml"), 3072, 10), 36_501_114);
    assert_eq!(trainable(&experiment("imagenet-resnet50-frozen.toml"), 2048, 1000), 13_077_736);
    assert_eq!(trainable(&experiment("imagenet-resnet50-finetune.toml"), 3 * 224 * 224, 1000), 36_585_768);
}

#[test]
fn impossible_depths_are_refused() {
    for (architecture, possible) in [
        (Architecture::WideResnet { depth: 16, width: 1 }, true),
        (Architecture::WideResnet { depth: 28, width: 0 }, false),
        (Architecture::WideResnet { depth: 20, width: 1 }, false),
        (Architecture::CifarResnet { depth: 56 }, true),
        (Architecture::CifarResnet { depth: 28 }, false),
    ] {
        assert_eq!(architecture.fault().is_none(), possible, "{architecture:?}");
    }
}

/// Images in a batch of noise.
const BATCH: usize = 16;

/// A network with random kernels and one batch of noise.
fn sample(architecture: Architecture, side: usize) -> (ResNet, Tensor<4>) {
    let mut random = Random::new(1, "network");
    let network = ResNet::new(architecture, InitialWeights::Random(&mut random), &Device::flex());
    let values: Vec<f32> = (0..BATCH * 3 * side * side).map(|_| random.normal() as f32).collect();
    let x = Tensor::from_data(TensorData::new(values, [BATCH, CHANNELS, side, side]), &Device::flex());
    (network, x)
}

#[test]
fn every_network_gives_its_features_and_statistics_settle() {
    for (architecture, side) in [
        (Architecture::WideResnet { depth: 10, width: 2 }, 16),
        (Architecture::CifarResnet { depth: 8 }, 16),
        (Architecture::Resnet50, 64),
    ] {
        let (mut network, x) = sample(architecture, side);
        // With the batch's own statistics as the running ones, both ways of normalising agree.
        let mut taken = Vec::new();
        let last = network.forward(x.clone(), Some(&mut taken));
        (0..200).for_each(|_| network.absorb(taken.clone()));
        let settled = network.forward(x, None);
        assert_eq!(settled.dims(), [BATCH, architecture.features()]);
        let difference = (settled - last.clone()).abs().max().into_scalar::<f32>();
        let size = last.abs().max().into_scalar::<f32>();
        // The running variance is the unbiased one: up to 1/63 larger than the batch's, in every layer.
        assert!(difference < 0.35 * size && size > 0.0, "{architecture:?}: {difference} of {size}");
    }
}

/// bf16 has 8 bits: 2⁻⁸ of a product, through eight layers.
const BF16: f32 = 8.0 / 256.0;

#[test]
fn convolutions_in_bf16_stay_close() {
    if !Device::flex().supports_dtype(DType::BF16) {
        println!("SKIPPED convolutions_in_bf16_stay_close: the CPU device has no bf16");
        return;
    }
    let (mut network, x) = sample(Architecture::CifarResnet { depth: 8 }, 16);
    let precise = network.forward(x.clone(), Some(&mut Vec::new()));
    network.precision = Precision::Type(DType::BF16);
    let coarse = network.forward(x, Some(&mut Vec::new()));
    assert_eq!(coarse.dtype(), DType::F32);
    let difference = (precise.clone() - coarse).abs().max().into_scalar::<f32>();
    let size = precise.abs().max().into_scalar::<f32>();
    assert!(difference > 0.0 && difference < BF16 * size, "{difference} of {size}");
}

#[test]
fn kernels_have_the_variance_of_he() {
    let (network, _) = sample(Architecture::CifarResnet { depth: 20 }, 8);
    let conv = &network.blocks.last().unwrap().convs[1];
    let values: Vec<f64> = conv.weight.to_data().iter::<f64>().collect();
    let wanted = 2.0 / (64.0 * 9.0);
    let variance = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
    assert!((variance / wanted - 1.0).abs() < 0.05, "{variance} {wanted}");
    let bound = 2.0 * wanted.sqrt() / 0.879;
    assert!(values.iter().all(|v| v.abs() < bound));
}

#[test]
fn gradients_reach_every_parameter() {
    for architecture in [
        Architecture::WideResnet { depth: 10, width: 1 },
        Architecture::CifarResnet { depth: 8 },
        Architecture::Resnet50,
    ] {
        let mut random = Random::new(2, "network");
        let device = Device::flex().autodiff();
        let mut network = ResNet::new(architecture, InitialWeights::Random(&mut random), &device);
        network.parameters_mut().for_each(|parameter| *parameter = parameter.clone().require_grad());
        let values: Vec<f32> = (0..2 * 3 * 32 * 32).map(|_| random.normal() as f32).collect();
        let x = Tensor::from_data(TensorData::new(values, [2, CHANNELS, 32, 32]), &device);
        let loss = network.forward(x, Some(&mut Vec::new())).square().mean();
        let gradients = loss.backward();
        for named in network.named_mut().into_iter().filter(|named| named.learnt) {
            let gradient = named.tensor.grad(&gradients).unwrap_or_else(|| panic!("{}", named.name));
            let largest = gradient.abs().max().into_scalar::<f32>();
            assert!(largest > 0.0 && largest.is_finite(), "{}: {largest}", named.name);
        }
    }
}

#[test]
fn names_are_torchvisions() {
    let mut network = zero(Architecture::Resnet50);
    let named = network.named_mut();
    let shape = |name: &str| {
        let found = named.iter().find(|named| named.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).shape.clone()
    };
    assert_eq!(shape("conv1.weight"), [64, 3, 7, 7]);
    assert_eq!(shape("bn1.running_var"), [64]);
    assert_eq!(shape("layer1.0.downsample.0.weight"), [256, 64, 1, 1]);
    assert_eq!(shape("layer4.2.conv3.weight"), [2048, 512, 1, 1]);
    assert_eq!(shape("layer2.0.downsample.1.bias"), [512]);
    // torchvision's ResNet-50 has 320 tensors: two are the last dense layer's, 53 count batches.
    assert_eq!(named.len(), 320 - 2 - 53);
}

#[test]
fn one_image_costs_what_is_published() {
    // 4.09 G multiply-adds at 224 × 224 (torchvision), 5.2 G for WRN-28-10 (Zagoruyko), 41 M for ResNet-20.
    let giga = |architecture, side| zero(architecture).cost(side, side).multiply_adds as f64 / 1e9;
    assert!((giga(Architecture::Resnet50, 224) - 4.09).abs() < 0.01);
    assert!((giga(Architecture::WideResnet { depth: 28, width: 10 }, 32) - 5.25).abs() < 0.05);
    assert!((giga(Architecture::CifarResnet { depth: 20 }, 32) - 0.0405).abs() < 0.0005);
}

#[test]
fn statistics_of_parts_add_up_to_those_of_the_batch() {
    /// Of the sums of some hundred f32 whose mean is far from 0.
    const RELATIVE: f32 = 1e-4;
    let device = Device::flex();
    let [batch, channels, side] = [7, 3, 4];
    // Every image has a level of its own, so that most of the variance lies between parts.
    let value = |i: usize| (i / (channels * side * side)) as f32 * 5.0 + (i as f32 * 0.7).sin() + 100.0;
    let values: Vec<f32> = (0..batch * channels * side * side).map(value).collect();
    let x = Tensor::<4>::from_data(TensorData::new(values, [batch, channels, side, side]), &device);
    let norm = Norm::new(channels, &device);
    let taken = |x: Tensor<4>| {
        let mut taken = Vec::new();
        let _ = Norm::forward(&[&norm], vec![x], Some(&mut taken), false);
        taken.remove(0)
    };
    let whole = taken(x.clone());
    for reference in [60.0, 90.0, 130.0] {
        let reference = norm.mean.clone().full_like(reference);
        let parts = [0..1, 1..3, 3..7].map(|rows| {
            let part = x.clone().narrow(0, rows.start, rows.len());
            conv::sums(taken(part), &reference)
        });
        let sum = parts.into_iter().reduce(|[a, b, c], [d, e, f]| [a + d, b + e, c + f]).unwrap();
        for (found, wanted) in conv::from_sums(sum, &reference).into_iter().zip(whole.clone()) {
            let numbers = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
            for (found, wanted) in numbers(found).into_iter().zip(numbers(wanted)) {
                assert!((found - wanted).abs() <= RELATIVE * wanted.abs(), "{found} {wanted}");
            }
        }
    }
}
