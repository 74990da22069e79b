//! A small experiment on images: is it dark or light?

use std::path::Path;

use dab_train::internals::support::random::Random;

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
