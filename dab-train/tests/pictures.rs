//! Pictures in files are seen as PyTorch and torchvision see them: tests/reference/images/by_pytorch.py stored what they say.
#![cfg(feature = "pictures")]

use std::io::Read;
use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use dab_train::{
    data::{Augment, Normalise, Preprocessing},
    internals::{
        data::{
            ImageSet, Pixels,
            sources::{self, How},
        },
        learn::images::features,
        model::{
            conv::InitialWeights,
            resnet::{Architecture, ResNet},
        },
    },
};
use serde_json::Value;

/// Numbers and features of the same pixels: rounding of f32 sums.
const SAME: f32 = 1e-5;
fn stored() -> (Value, Vec<u8>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/images");
    let json = serde_json::from_slice(&std::fs::read(folder.join("by_pytorch.json")).unwrap()).unwrap();
    let mut crops = Vec::new();
    let packed = std::fs::read(folder.join("by_pytorch.zlib")).unwrap();
    flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut crops).unwrap();
    (json, crops)
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// Numbers from −1/2 to 1/2 that depend on a tensor's name alone.
fn numbers(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let seed = name.bytes().fold(0_u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    (0..count as u32).map(move |i| {
        let mut x = i.wrapping_mul(2_654_435_761).wrapping_add(seed);
        x ^= x >> 16;
        x = x.wrapping_mul(0x45D_9F3B);
        x ^= x >> 16;
        f64::from(x) / f64::from(2.0_f32.powi(32)) - 0.5
    })
}

/// A CIFAR ResNet-8 with the weights of by_pytorch.py.
fn network() -> ResNet {
    let architecture = Architecture::CifarResnet { depth: 8 };
    let mut network = ResNet::new(architecture, InitialWeights::Zero, &Device::flex());
    for named in network.named_mut() {
        let change = |u: f64| match named.shape[..] {
            [_, inputs, 3, 3] => u * (24.0 / (inputs as f64 * 9.0)).sqrt(),
            _ if named.name.ends_with("running_var") => 1.0 + u / 2.0,
            _ if named.name.ends_with("weight") => 1.0 + u / 5.0,
            _ => u / 5.0,
        };
        let count = named.shape.iter().product();
        let values: Vec<f32> = numbers(&named.name, count).map(|u| change(u) as f32).collect();
        *named.tensor = Tensor::from_data(TensorData::new(values, named.tensor.dims()), &Device::flex());
    }
    network
}

fn preprocessing(stored: &Value, resize: usize) -> Preprocessing {
    let three = |key: &str| <[f32; 3]>::try_from(floats(&stored[key])).unwrap();
    let normalise = Normalise { mean: three("mean"), std: three("std") };
    let side = stored["side"].as_u64().unwrap() as usize;
    Preprocessing { side, resize, always_resize: true, normalise }
}

#[test]
fn pictures_are_seen_as_torchvision_and_pytorch_see_them() {
    let (stored, crops) = stored();
    let network = network();
    let mut worst = [0.0_f32; 2];
    for (case, crop) in stored["cases"].as_array().unwrap().iter().zip(crops.chunks_exact(3 * 32 * 32)) {
        let (file, resize) = (case["file"].as_str().unwrap(), case["resize"].as_u64().unwrap() as usize);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/images/by_pytorch").join(file);
        let preprocessing = preprocessing(&stored, resize);
        let how = How { preprocessing, ..How::default() };
        let images = sources::pictures(vec![path], how).images;
        let mut bytes = vec![0; crop.len()];
        images.read(0, None, &mut bytes).unwrap();
        assert_eq!(bytes, crop, "{file} resized to {resize}: bytes");
        let set = ImageSet::all(file, images);
        let own = set.numbers(&[0], &preprocessing.normalise, None).unwrap();
        let every = stored["every"].as_u64().unwrap() as usize;
        let far = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let sampled: Vec<f32> = own.iter().step_by(every).copied().collect();
        let of_numbers = far(&sampled, &floats(&case["numbers"]));
        let wanted = floats(&case["features"]);
        let table = features(&network, &set, &preprocessing.normalise, &Device::flex()).unwrap();
        assert_eq!(
            (table.values.len(), sampled.len()),
            (wanted.len(), case["numbers"].as_array().unwrap().len())
        );
        let largest = wanted.iter().fold(1.0_f32, |m, x| m.max(x.abs()));
        let of_features = far(&table.values, &wanted) / largest;
        worst = [worst[0].max(of_numbers), worst[1].max(of_features)];
        assert!(of_numbers <= SAME && of_features <= SAME, "{file} {resize}: {of_numbers} {of_features}");
    }
    println!("largest differences: of numbers {}, of features {}", worst[0], worst[1]);
}

#[test]
fn the_same_pixels_give_the_same_numbers_from_a_file_and_from_an_array() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/images/by_pytorch/exact.png");
    let picture = image::open(&path).unwrap().into_rgb8();
    let augment = Augment { pad: 4, flip: true, ..Augment::default() };
    // 256 before 224 would resize it; a file of the right size is taken as it is.
    let preprocessing = Preprocessing { side: 32, resize: 37, ..Preprocessing::default() };
    let file = sources::pictures(vec![path], How { preprocessing, augment }).images;
    let array = Pixels::interleaved(32, picture.as_raw(), augment);
    let (file, array) = (ImageSet::all("x", file), ImageSet::all("x", std::sync::Arc::new(array)));
    for change in [None, Some((1, "epoch 0")), Some((1, "epoch 1"))] {
        let normalise = preprocessing.normalise;
        let numbers = |set: &ImageSet| set.numbers(&[0], &normalise, change).unwrap();
        assert_eq!(numbers(&file), numbers(&array), "{change:?}");
    }
}
