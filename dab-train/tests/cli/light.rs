//! Small experiments on images: is it dark or light, and which insect is it?

use std::path::Path;

use dab_train::internals::support::random::Random;
use libjpeg_turbo_rs::{PixelFormat, Subsampling, compress};

/// Noise of two brightnesses, which are its classes, as CIFAR-10's binary files.
fn images(folder: &Path, file: &str, count: usize) {
    let mut random = Random::new(1, file);
    let record = |label: usize| {
        let pixels = (0..3072).map(|_| (random.below(100) + 100 * label) as u8);
        std::iter::once(label as u8).chain(pixels).collect::<Vec<_>>()
    };
    let bytes: Vec<u8> = (0..count).map(|i| i % 2).flat_map(record).collect();
    std::fs::write(folder.join(file), bytes).unwrap();
}

/// Writes the images and `light.toml`, which keeps a checkpoint of each of its epochs.
pub fn light(folder: &Path, epochs: usize) {
    images(folder, "data_batch_1.bin", 60);
    images(folder, "test_batch.bin", 40);
    let at = folder.display();
    let experiment = format!(
        "name = 'light'
        bottleneck = {{ dim = 2, codes = 2 }}
        objective = {{ alpha = 1.0, beta = 0.01 }}
        optimiser = {{ rule = 'adam', learning_rate = 0.01 }}
        training = {{ epochs = {epochs}, batch = 20, checkpoint_every = 1 }}
        [data]
        kind = 'images'
        train = '{at}:train'
        test = '{at}:test'
        held_out = 0.3
        ood = {{ same = '{at}:test' }}
        augment = {{ pad = 2, flip = true, rand = {{ operations = 1, magnitude = 5 }} }}
        [backbone]
        standardise = 'none'
        images = {{ network = {{ kind = 'cifar-resnet', depth = 8 }} }}"
    );
    std::fs::write(folder.join("light.toml"), experiment).unwrap();
}

/// Pictures of 32 × 32 in folders, one colour a class, in `train`, `test` and `odd`, and `insects.toml`, which learns from them.
pub fn insects(folder: &Path) {
    let paint = |path: &str, shade: u8| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let pixel = |x, y| image::Rgb([shade, (x * 7) as u8, (y * 5) as u8]);
        let picture = image::RgbImage::from_fn(32, 32, pixel);
        if path.extension().is_some_and(|ending| ending == "png") {
            return picture.save(path).unwrap();
        }
        let jpeg = compress(picture.as_raw(), 32, 32, PixelFormat::Rgb, 75, Subsampling::S420).unwrap();
        std::fs::write(path, jpeg).unwrap();
    };
    for i in 0..6 {
        for (class, shade) in [("ant", 10), ("bee", 120), ("cat", 240)] {
            paint(&format!("train/{class}/{i}.png"), shade + i);
            paint(&format!("test/{class}/{i}.jpg"), shade + i);
        }
        paint(&format!("odd/{i}.JPG"), 40 * i);
    }
    let at = folder.display();
    let experiment = format!(
        "name = 'insects'
        bottleneck = {{ dim = 2, codes = 3 }}
        objective = {{ alpha = 1.0, beta = 0.01 }}
        optimiser = {{ rule = 'adam', learning_rate = 0.01 }}
        codebook = {{ start = 'classes' }}
        training = {{ epochs = 2, batch = 9 }}
        [data]
        kind = 'images'
        train = '{at}/train'
        test = '{at}/test'
        held_out = 0.5
        [backbone]
        standardise = 'none'
        images = {{ network = {{ kind = 'cifar-resnet', depth = 8 }} }}"
    );
    std::fs::write(folder.join("insects.toml"), experiment).unwrap();
}
