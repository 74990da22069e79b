//! Pictures made smaller or larger as Pillow 13 does it, byte for byte, and so as torchvision's `Resize` does it.
//!
//! ```text
//! bilinear with antialiasing: a triangle as wide as the larger of 1 and the scale, along rows and along columns
//! ```
//!
//! Pillow rounds weights to 22 bits and every pass to bytes. Doing the same, and nothing better, is the point: a network
//! that was trained behind torchvision sees the very numbers that it was trained with.

use std::ops::Range;

use super::pixels::CHANNELS;

/// Bits behind the point of a weight: 32, less 8 of the byte and 2 that keep sums from overflowing.
const BITS: u32 = 32 - 8 - 2;

/// A picture, pixel by pixel, three colours each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub width: usize,
    pub height: usize,
    pub bytes: Vec<u8>,
}

/// The pixels that one new pixel is made of: the first of them, and their weights.
struct Mix {
    first: usize,
    weights: Vec<i32>,
}

/// How a line of `from` pixels becomes one of `to`, of which `wanted` are asked for.
fn mixes(from: usize, to: usize, wanted: Range<usize>) -> Vec<Mix> {
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    let inverse = 1.0 / reach;
    wanted
        .map(|at| {
            let centre = (at as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(from);
            let weights: Vec<f64> =
                (first..end).map(|x| (1.0 - ((x as f64 - centre + 0.5) * inverse).abs()).max(0.0)).collect();
            let sum: f64 = weights.iter().sum();
            let rounded = |w: &f64| (0.5 + w / sum * f64::from(1 << BITS)) as i32;
            Mix { first, weights: weights.iter().map(rounded).collect() }
        })
        .collect()
}

/// The weighted sum of bytes as a byte.
fn mixed(bytes: impl Iterator<Item = u8>, weights: &[i32]) -> u8 {
    let start = 1_i32 << (BITS - 1);
    let sum = bytes.zip(weights).fold(start, |sum, (byte, weight)| sum + i32::from(byte) * weight);
    (sum >> BITS).clamp(0, 255) as u8
}

impl Picture {
    /// The part `columns` × `rows` of the picture in another size. Nothing beyond the part is computed: a picture of one
    /// pixel's height would become as wide as memory allows.
    pub fn resized(&self, width: usize, height: usize, columns: Range<usize>, rows: Range<usize>) -> Self {
        let (less_height, less_width) =
            (self.height as f64 - height as f64, self.width as f64 - width as f64);
        // Pillow's rule since version 13; the order shows in the last bit.
        if less_height > 0.0 && less_height > 2.0 * less_width {
            self.rows(height, rows).columns(width, columns)
        } else {
            self.columns(width, columns).rows(height, rows)
        }
    }

    /// `wanted` columns of the picture in another width.
    fn columns(&self, width: usize, wanted: Range<usize>) -> Self {
        if width == self.width {
            return self.part(wanted.start, 0, wanted.len(), self.height);
        }
        let mixes = mixes(self.width, width, wanted);
        let mut bytes = Vec::with_capacity(mixes.len() * self.height * CHANNELS);
        for line in self.bytes.chunks_exact(self.width * CHANNELS) {
            for mix in &mixes {
                for colour in 0..CHANNELS {
                    let from = line[mix.first * CHANNELS + colour..].iter().step_by(CHANNELS).copied();
                    bytes.push(mixed(from, &mix.weights));
                }
            }
        }
        Self { width: mixes.len(), height: self.height, bytes }
    }

    /// `wanted` rows of the picture in another height.
    fn rows(&self, height: usize, wanted: Range<usize>) -> Self {
        if height == self.height {
            return self.part(0, wanted.start, self.width, wanted.len());
        }
        let line = self.width * CHANNELS;
        let mixes = mixes(self.height, height, wanted);
        let mut bytes = Vec::with_capacity(mixes.len() * line);
        for mix in &mixes {
            for column in 0..line {
                let from = self.bytes[mix.first * line + column..].iter().step_by(line).copied();
                bytes.push(mixed(from, &mix.weights));
            }
        }
        Self { width: self.width, height: mixes.len(), bytes }
    }

    /// The part of `width` × `height` whose upper left pixel is at (`left`, `top`).
    pub fn part(&self, left: usize, top: usize, width: usize, height: usize) -> Self {
        let lines = self.bytes.chunks_exact(self.width * CHANNELS).skip(top).take(height);
        let bytes = lines.flat_map(|line| &line[left * CHANNELS..(left + width) * CHANNELS]).copied();
        Self { width, height, bytes: bytes.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_colour_stays_and_a_half_is_the_mean_of_its_neighbours() {
        let flat = Picture { width: 7, height: 5, bytes: [9, 200, 255].repeat(35) };
        assert_eq!(flat.resized(13, 3, 0..13, 0..3).bytes, [9, 200, 255].repeat(39));
        let bytes = [0, 100, 100, 200].iter().flat_map(|&b| [b; 3]).collect();
        let line = Picture { width: 4, height: 1, bytes };
        // Two of four: a triangle that reaches two pixels to both sides, its weights 1, 3, 3 of 7 at the edge.
        assert_eq!(line.resized(2, 1, 0..2, 0..1).bytes, [57, 57, 57, 143, 143, 143]);
        assert_eq!(line.part(1, 0, 2, 1).bytes, [100; 6]);
        assert_eq!(line.resized(2_000_000_000, 9, 7..9, 3..5).bytes, [0; 12], "only what is asked for");
    }
}
