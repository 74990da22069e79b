//! RandAugment (Cubuk et al. 2019): a few random operations of one strength on every training image.
//!
//! ```text
//! n times: one of fourteen operations, at strength magnitude / 30 of its range, half of them with a random sign
//! ```
//!
//! Operations, ranges and roundings are those of Pillow and torchvision: pixels are the nearest ones, black beyond the edge.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::pixels::CHANNELS;
use crate::support::random::Random;

/// The largest magnitude.
const LARGEST: usize = 30;
/// The ranges' ends.
const SHEAR: f64 = 0.3;
/// As a share of the side.
const SHIFT: f64 = 150.0 / 331.0;
const DEGREES: f64 = 30.0;
const BLEND: f64 = 0.9;
/// Bits that the strongest posterisation takes.
const BITS: f64 = 4.0;
const WHITE: f64 = 255.0;
/// Values of a byte.
const LEVELS: usize = 256;
/// Weights of the three colours in grey, in 65536ths.
const GREY: [u32; CHANNELS] = [19_595, 38_470, 7_471];
/// Weight of the centre among nine pixels when an image is smoothed.
const CENTRE: u32 = 5;

/// How many operations, how strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandAugment {
    /// Operations on each image.
    pub operations: usize,
    /// Their strength, 0 to 30.
    pub magnitude: usize,
}

/// What may happen to an image: what a strength from −1 to 1 means in the operation's own unit, for images of some side, and what so
/// much of it does to one.
struct Operation(fn(f64, f64) -> f64, fn(f64, usize, &mut [u8]));

/// Operations, of which one is drawn: their order is that of torchvision.
const ALL: [Operation; 14] = [
    Operation(none, |_, _, _| ()),
    // Shear and shift, along x and along y.
    Operation(shear, |by, side, bytes| affine([1.0, by, 0.0, 0.0, 1.0, 0.0], side, bytes)),
    Operation(shear, |by, side, bytes| affine([1.0, 0.0, 0.0, by, 1.0, 0.0], side, bytes)),
    Operation(shift, |by, side, bytes| affine([1.0, 0.0, by, 0.0, 1.0, 0.0], side, bytes)),
    Operation(shift, |by, side, bytes| affine([1.0, 0.0, 0.0, 0.0, 1.0, by], side, bytes)),
    Operation(|strength, _| DEGREES * strength, rotate),
    // Brightness, colour, contrast, sharpness.
    Operation(factor, |by, _, bytes| blend(bytes, by, |_| 0)),
    Operation(factor, |by, _, bytes| {
        let grey = grey(bytes);
        blend(bytes, by, |at| grey[at % grey.len()]);
    }),
    Operation(factor, |by, _, bytes| {
        let grey = grey(bytes);
        let sum: u64 = grey.iter().map(|&g| u64::from(g)).sum();
        let mean = (sum as f64 / grey.len() as f64 + 0.5) as u8;
        blend(bytes, by, |_| mean);
    }),
    Operation(factor, |by, side, bytes| {
        let smooth = smooth(side, bytes);
        blend(bytes, by, |at| smooth[at]);
    }),
    Operation(|strength, _| (BITS * strength.abs()).round(), posterise),
    Operation(|strength, _| WHITE * (1.0 - strength.abs()), solarise),
    // Contrast as large as possible, and histograms as flat.
    Operation(none, |_, _, bytes| by_plane(bytes, stretched)),
    Operation(none, |_, _, bytes| by_plane(bytes, equal)),
];

fn none(_: f64, _: f64) -> f64 {
    0.0
}

fn shear(strength: f64, _: f64) -> f64 {
    SHEAR * strength
}

/// In whole pixels, towards zero.
fn shift(strength: f64, side: f64) -> f64 {
    (SHIFT * side * strength).trunc()
}

fn factor(strength: f64, _: f64) -> f64 {
    1.0 + BLEND * strength
}

impl RandAugment {
    /// Refuses a magnitude above the largest.
    pub(crate) fn check(self) -> Result<()> {
        ensure!(
            self.magnitude <= LARGEST,
            "augment.rand.magnitude is {}, allowed are 0 to {LARGEST}",
            self.magnitude
        );
        Ok(())
    }

    /// Changes an image of `side` × `side`, colour by colour.
    pub(super) fn apply(self, side: usize, bytes: &mut [u8], random: &mut Random) {
        for _ in 0..self.operations {
            let operation = &ALL[random.below(ALL.len())];
            operation.apply(self.magnitude, random.below(2) == 1, side, bytes);
        }
    }
}

impl Operation {
    fn apply(&self, magnitude: usize, negative: bool, side: usize, bytes: &mut [u8]) {
        let Self(amount, change) = self;
        let strength = magnitude as f64 / LARGEST as f64;
        change(amount(if negative { -strength } else { strength }, side as f64), side, bytes);
    }
}

fn rotate(degrees: f64, side: usize, bytes: &mut [u8]) {
    let (sin, cos) = (libm::sin(-degrees.to_radians()), libm::cos(-degrees.to_radians()));
    let centre = side as f64 / 2.0;
    // The centre stays where it is.
    let (x, y) = (centre - (cos + sin) * centre, centre - (cos - sin) * centre);
    affine([cos, sin, x, -sin, cos, y], side, bytes);
}

fn posterise(bits: f64, _: usize, bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte &= u8::MAX << bits as u32);
}

fn solarise(least: f64, _: usize, bytes: &mut [u8]) {
    let bright = |byte: &&mut u8| f64::from(**byte) >= least;
    bytes.iter_mut().filter(bright).for_each(|byte| *byte = !*byte);
}

/// The pixel at (x, y) comes from (a x + b y + c, d x + e y + f), both at their middles.
fn affine([a, b, c, d, e, f]: [f64; 6], side: usize, bytes: &mut [u8]) {
    let from = bytes.to_vec();
    let inside = |at: f64| (0.0..side as f64).contains(&at).then_some(at as usize);
    for at in 0..side * side {
        let (x, y) = ((at % side) as f64 + 0.5, (at / side) as f64 + 0.5);
        let source = inside(a * x + b * y + c).zip(inside(d * x + e * y + f));
        for plane in 0..CHANNELS {
            let plane = plane * side * side;
            bytes[plane + at] = source.map_or(0, |(x, y)| from[plane + y * side + x]);
        }
    }
}

/// other + factor (own − other), cut to a byte.
fn blend(bytes: &mut [u8], factor: f64, other: impl Fn(usize) -> u8) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        let other = f32::from(other(at));
        // A float becomes the nearest byte towards zero.
        *byte = (other + factor as f32 * (f32::from(*byte) - other)) as u8;
    }
}

/// How bright each pixel is.
fn grey(bytes: &[u8]) -> Vec<u8> {
    let pixels = bytes.len() / CHANNELS;
    let weighed = |at: usize| (0..CHANNELS).map(|c| GREY[c] * u32::from(bytes[c * pixels + at])).sum::<u32>();
    (0..pixels).map(|at| ((weighed(at) + (1 << 15)) >> 16) as u8).collect()
}

/// Weighted means of 3 × 3 pixels; the edge stays.
fn smooth(side: usize, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let sum = 8 + CENTRE;
    for (from, to) in bytes.chunks_exact(side * side).zip(out.chunks_exact_mut(side * side)) {
        for y in 1..side.saturating_sub(1) {
            for x in 1..side - 1 {
                let near: u32 = (y - 1..=y + 1)
                    .flat_map(|y| &from[y * side + x - 1..=y * side + x + 1])
                    .map(|&b| u32::from(b))
                    .sum();
                let all = near + (CENTRE - 1) * u32::from(from[y * side + x]);
                to[y * side + x] = ((2 * all + sum) / (2 * sum)) as u8;
            }
        }
    }
    out
}

/// Replaces the bytes of each colour by what a table of its histogram says.
fn by_plane(bytes: &mut [u8], table: impl Fn(&[usize; LEVELS]) -> Option<[u8; LEVELS]>) {
    let plane = bytes.len() / CHANNELS;
    for plane in bytes.chunks_exact_mut(plane) {
        let mut histogram = [0; LEVELS];
        plane.iter().for_each(|&byte| histogram[usize::from(byte)] += 1);
        if let Some(table) = table(&histogram) {
            plane.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]);
        }
    }
}

/// The darkest byte becomes black, the lightest white.
fn stretched(histogram: &[usize; LEVELS]) -> Option<[u8; LEVELS]> {
    let low = histogram.iter().position(|&n| n > 0)?;
    let high = histogram.iter().rposition(|&n| n > 0)?;
    let scale = WHITE / (high - low) as f64;
    (high > low).then(|| std::array::from_fn(|at| (at as f64 * scale - low as f64 * scale) as u8))
}

/// All bytes become about equally frequent.
fn equal(histogram: &[usize; LEVELS]) -> Option<[u8; LEVELS]> {
    let last = histogram.iter().rposition(|&n| n > 0)?;
    let step = (histogram.iter().sum::<usize>() - histogram[last]) / (LEVELS - 1);
    let mut sum = step / 2;
    (step > 0).then(|| {
        std::array::from_fn(|at| {
            let level = (sum / step).min(LEVELS - 1) as u8;
            sum += histogram[at];
            level
        })
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::{super::cifar::reference, *};

    const SIDE: usize = 20;
    /// Every operation at magnitude 9, with both signs, by Pillow on the same image: tests/reference/images/make.py.
    const PILLOW: &[u8] = include_bytes!("../../../tests/reference/images/rand-augment.zlib");

    fn picture() -> Vec<u8> {
        reference(2, SIDE).split_off(CHANNELS * SIDE * SIDE)
    }

    #[test]
    fn every_operation_gives_pillow_s_bytes() {
        let mut all = Vec::new();
        flate2::read::ZlibDecoder::new(PILLOW).read_to_end(&mut all).unwrap();
        let mut expected = all.chunks_exact(CHANNELS * SIDE * SIDE);
        for (place, operation) in ALL.iter().enumerate().skip(1) {
            for negative in [false, true] {
                let mut bytes = picture();
                operation.apply(9, negative, SIDE, &mut bytes);
                let wanted = expected.next().unwrap();
                let wrong = bytes.iter().zip(wanted).filter(|(a, b)| a != b).count();
                assert_eq!(wrong, 0, "{place} {negative}: {bytes:?} {wanted:?}");
                assert_ne!(bytes, picture(), "{place} does something");
            }
        }
        assert!(expected.next().is_none());
    }

    #[test]
    fn nothing_happens_at_strength_zero_but_to_histograms() {
        // The last are those that solarise and change histograms.
        for (place, operation) in ALL[..11].iter().enumerate() {
            let mut bytes = picture();
            operation.apply(0, true, SIDE, &mut bytes);
            assert_eq!(bytes, picture(), "{place}");
        }
    }

    #[test]
    fn flat_and_tiny_images_and_the_largest_magnitude_are_taken() {
        for side in [1, 2, 5] {
            for value in [0, 7, 255] {
                for operation in ALL {
                    for negative in [false, true] {
                        let mut bytes = vec![value; CHANNELS * side * side];
                        operation.apply(LARGEST, negative, side, &mut bytes);
                    }
                }
            }
        }
        assert!(RandAugment { operations: 2, magnitude: 31 }.check().is_err());
    }

    #[test]
    fn a_stream_draws_every_operation_and_repeats() {
        let rand = RandAugment { operations: 1, magnitude: 9 };
        let changed = |draw: u64| {
            let mut bytes = picture();
            rand.apply(SIDE, &mut bytes, &mut Random::new(draw, "image"));
            bytes
        };
        let seen: std::collections::BTreeSet<Vec<u8>> = (0..400).map(changed).collect();
        // Four of fourteen have no sign: nine of two kinds, one image as it is.
        assert_eq!(seen.len(), 9 * 2 + 4 + 1);
        assert_eq!(changed(3), changed(3));
    }
}
