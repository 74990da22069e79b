//! Images as bytes: where they are kept, how they are changed for learning, how they become numbers.
//!
//! ```text
//! bytes 0…255, colour by colour → (random crop, flip, RandAugment) → (x / 255 − mean) / std per colour
//! ```
//!
//! Every image draws its own random stream, named by epoch and row, so the order of threads changes nothing.

use std::{fmt, sync::Arc};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::rand_augment::RandAugment;
use crate::support::{parallel::map_blocks, random::Random};

/// Colours of an image.
pub const CHANNELS: usize = 3;
/// Images that one thread makes at a time.
const BLOCK: usize = 16;
/// The largest byte.
const WHITE: f32 = 255.0;

/// Square images of one size, in memory or on disk.
pub trait Images: fmt::Debug + Send + Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Height and width.
    fn side(&self) -> usize;

    /// What image `index` is called, where it has a file of its own.
    fn name(&self, _index: usize) -> Option<String> {
        None
    }

    /// Writes image `index` to `into` (3 · side² bytes, colour by colour), changed at random when `change` is given.
    fn read(&self, index: usize, change: Option<&mut Random>, into: &mut [u8]) -> Result<()>;
}

/// How training images are changed: not at all by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Augment {
    /// Shift by up to this many pixels in both directions, black beyond the edge. Where anything is changed, pictures in
    /// files that are not of the network's size are cut at random instead, as torchvision's `RandomResizedCrop` does.
    pub pad: usize,
    /// Mirror every second image.
    pub flip: bool,
    /// RandAugment, as in `rand = { operations = 2, magnitude = 9 }`.
    pub rand: Option<RandAugment>,
}

impl Augment {
    /// An image, colour by colour, shifted and whatever follows.
    pub(super) fn apply(&self, side: usize, own: &[u8], into: &mut [u8], random: &mut Random) {
        let pad = self.pad;
        let (down, right) = (random.below(2 * pad + 1), random.below(2 * pad + 1));
        into.fill(0);
        for plane in 0..CHANNELS {
            for row in pad.saturating_sub(down)..side.min(side + pad - down) {
                let from = (plane * side + row + down - pad) * side;
                let (skip, start) = (pad.saturating_sub(right), right.saturating_sub(pad));
                let count = side - skip - start;
                let to = (plane * side + row) * side + skip;
                into[to..to + count].copy_from_slice(&own[from + start..from + start + count]);
            }
        }
        self.finish(side, into, random);
    }

    /// Whatever follows the crop.
    pub(super) fn finish(&self, side: usize, bytes: &mut [u8], random: &mut Random) {
        if self.flip && random.below(2) == 1 {
            bytes.chunks_exact_mut(side).for_each(<[u8]>::reverse);
        }
        if let Some(rand) = self.rand {
            rand.apply(side, bytes, random);
        }
    }
}

/// What turns bytes into the network's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Normalise {
    /// Subtracted from x / 255, per colour.
    pub mean: [f32; CHANNELS],
    /// Divides what is left, per colour.
    pub std: [f32; CHANNELS],
}

/// ImageNet's, which most published networks were trained with.
impl Default for Normalise {
    fn default() -> Self {
        Self { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] }
    }
}

/// Images in memory.
#[derive(Clone, PartialEq)]
pub struct Pixels {
    side: usize,
    augment: Augment,
    bytes: Vec<u8>,
}

impl fmt::Debug for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} images of {side} × {side}", self.len(), side = self.side)
    }
}

impl Pixels {
    /// From bytes that are colour by colour within each image.
    pub fn planar(side: usize, bytes: Vec<u8>, augment: Augment) -> Self {
        Self { side, augment, bytes }
    }

    /// From bytes that are pixel by pixel, three colours each.
    pub fn interleaved(side: usize, bytes: &[u8], augment: Augment) -> Self {
        let mut planar = vec![0; bytes.len()];
        let size = CHANNELS * side * side;
        for (from, to) in bytes.chunks_exact(size).zip(planar.chunks_exact_mut(size)) {
            deinterleave(from, to);
        }
        Self::planar(side, planar, augment)
    }
}

/// Pixel by pixel → colour by colour.
pub(super) fn deinterleave(from: &[u8], to: &mut [u8]) {
    let pixels = from.len() / CHANNELS;
    for (pixel, colours) in from.chunks_exact(CHANNELS).enumerate() {
        colours.iter().enumerate().for_each(|(colour, &byte)| to[colour * pixels + pixel] = byte);
    }
}

impl Images for Pixels {
    fn len(&self) -> usize {
        self.bytes.len() / (CHANNELS * self.side * self.side)
    }

    fn side(&self) -> usize {
        self.side
    }

    fn read(&self, index: usize, change: Option<&mut Random>, into: &mut [u8]) -> Result<()> {
        let size = CHANNELS * self.side * self.side;
        let own = &self.bytes[index * size..(index + 1) * size];
        match change {
            None => into.copy_from_slice(own),
            Some(random) => self.augment.apply(self.side, own, into, random),
        }
        Ok(())
    }
}

/// A selection of images.
#[derive(Clone, Debug)]
pub struct ImageSet {
    /// Where they come from, as an experiment file says it.
    pub source: String,
    /// All of them.
    pub images: Arc<dyn Images>,
    /// Those that count, in order.
    pub rows: Vec<usize>,
}

impl ImageSet {
    /// All `images` of `source`.
    pub fn all(source: &str, images: Arc<dyn Images>) -> Self {
        let rows = (0..images.len()).collect();
        Self { source: source.to_owned(), images, rows }
    }

    /// The images at `indices` of this selection.
    pub fn select(&self, indices: &[usize]) -> Self {
        let rows = indices.iter().map(|&index| self.rows[index]).collect();
        Self { source: self.source.clone(), images: self.images.clone(), rows }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What image `index` of this selection is called: its file, or its place in the source, counting from 1.
    pub fn name(&self, index: usize) -> String {
        let row = self.rows[index];
        self.images.name(row).unwrap_or_else(|| format!("{}:{}", self.source, row + 1))
    }

    /// Numbers of one image.
    pub fn cols(&self) -> usize {
        CHANNELS * self.images.side() * self.images.side()
    }

    /// The images at `indices` as network inputs, row by row, made by all cores. `change` names the random streams.
    pub fn numbers(
        &self,
        indices: &[usize],
        normalise: &Normalise,
        change: Option<(u64, &str)>,
    ) -> Result<Vec<f32>> {
        let (numbers, faults) = self.readable(indices, normalise, change);
        faults.into_iter().flatten().next().map_or(Ok(numbers), Err)
    }

    /// The numbers as [`ImageSet::numbers`] gives them; zeros, and why, in place of an image that cannot be read.
    pub fn readable(
        &self,
        indices: &[usize],
        normalise: &Normalise,
        change: Option<(u64, &str)>,
    ) -> (Vec<f32>, Vec<Option<anyhow::Error>>) {
        let size = self.cols();
        let tables: Vec<[f32; 256]> = (normalise.mean.iter().zip(&normalise.std))
            .map(|(mean, std)| std::array::from_fn(|byte| (byte as f32 / WHITE - mean) / std))
            .collect();
        let blocks = map_blocks(indices.len(), BLOCK, |range| {
            let (mut numbers, mut faults) = (Vec::with_capacity(range.len() * size), Vec::new());
            let mut bytes = vec![0; size];
            for index in range {
                let row = self.rows[indices[index]];
                let mut random = change.map(|(seed, name)| Random::new(seed, &format!("{name} {row}")));
                let fault = self.images.read(row, random.as_mut(), &mut bytes).err();
                if fault.is_some() {
                    bytes.fill(0);
                }
                faults.push(fault);
                for (plane, table) in bytes.chunks_exact(size / CHANNELS).zip(&tables) {
                    numbers.extend(plane.iter().map(|&byte| table[usize::from(byte)]));
                }
            }
            (numbers, faults)
        });
        let (numbers, faults): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
        (numbers.concat(), faults.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two images of 4 × 4 whose bytes count up.
    fn pixels(augment: Augment) -> Pixels {
        Pixels::planar(4, (0..96).collect(), augment)
    }

    #[test]
    fn interleaved_bytes_become_planes() {
        let bytes: Vec<u8> = (0..4).flat_map(|pixel| [pixel, 10 + pixel, 20 + pixel]).collect();
        let mut read = vec![0; 12];
        Pixels::interleaved(2, &bytes, Augment::default()).read(0, None, &mut read).unwrap();
        assert_eq!(read, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
    }

    #[test]
    fn a_crop_is_a_shift_and_a_flip_a_mirror() {
        let (plain, changed) =
            (pixels(Augment::default()), pixels(Augment { pad: 2, flip: true, rand: None }));
        let pixel = |bytes: &[u8], plane: usize, row: i32, column: i32| {
            let inside = (0..4).contains(&row) && (0..4).contains(&column);
            if inside { bytes[(plane * 16) + (4 * row + column) as usize] } else { 0 }
        };
        let mut own = vec![0; 48];
        plain.read(1, None, &mut own).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for draw in 0..300 {
            let mut read = vec![0; 48];
            changed.read(1, Some(&mut Random::new(draw, "crop")), &mut read).unwrap();
            let fits = |&(down, right, mirror): &(i32, i32, bool)| {
                (0..48).all(|at| {
                    let (plane, row, column) = (at / 16, (at / 4 % 4) as i32, (at % 4) as i32);
                    let column = if mirror { 3 - column } else { column };
                    read[at] == pixel(&own, plane, row + down, column + right)
                })
            };
            let mut all = (-2..=2)
                .flat_map(|down| (-2..=2).flat_map(move |right| [(down, right, false), (down, right, true)]));
            seen.insert(all.find(fits).expect("a shifted, perhaps mirrored image"));
        }
        assert!(seen.len() > 45, "{} of 50 changes were seen", seen.len());
    }

    #[test]
    fn numbers_are_normalised_and_do_not_depend_on_threads() {
        let rand = Some(RandAugment { operations: 2, magnitude: 9 });
        let augment = Augment { pad: 1, flip: true, rand };
        let set = ImageSet::all("pixels", Arc::new(pixels(augment)));
        let normalise = Normalise { mean: [0.5, 0.0, 0.0], std: [0.5, 1.0, 2.0] };
        let plain = set.numbers(&[0], &normalise, None).unwrap();
        assert!((plain[15] - (15.0 / 255.0 - 0.5) / 0.5).abs() < 1e-6);
        assert!((plain[47] - 47.0 / 255.0 / 2.0).abs() < 1e-6);
        let many: Vec<usize> = (0..100).map(|i| i % 2).collect();
        let changed = set.numbers(&many, &normalise, Some((1, "epoch 0"))).unwrap();
        assert_eq!(changed[..48], changed[96..144], "a row's stream has one name");
        assert_eq!(changed, set.numbers(&many, &normalise, Some((1, "epoch 0"))).unwrap());
        assert_ne!(changed, set.numbers(&many, &normalise, Some((1, "epoch 1"))).unwrap());
    }
}
