//! Batch normalisation with the activation behind it, in few passes over memory.
//!
//! ```text
//! x̂ = (x − mean) / √(variance + ε)        y = scale · x̂ + shift, or max(0, that)
//! dy′ = dy where y > 0        dshift = Σ dy′        dscale = Σ dy′ x̂
//! dx = scale / √(variance + ε) · (dy′ − dshift / n − x̂ · dscale / n)
//! ```
//!
//! Sums are of f32 within a plane, an image's pixels of one channel, and of f64 over planes.

use dab_core::isa::{Isa, Kernel};
use rayon::prelude::*;

use crate::support::simd::Widest;

/// Sums side by side: a register's worth, or a few.
const LANES: usize = 16;

/// Pixels `[batch, channels, pixels]`.
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    pub channels: usize,
    /// Of a plane.
    pub pixels: usize,
}

/// What a norm does to a channel: y = max(least, factor · x + shift). Least is 0, or −∞ without an activation.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    pub factor: f32,
    pub shift: f32,
    pub least: f32,
}

/// A loop over the numbers of one plane, or of two, that adds up.
struct Add<'a, F> {
    x: &'a [f32],
    y: &'a [f32],
    of: F,
}

impl<F: Fn(f32, f32) -> [f32; 2]> Kernel for Add<'_, F> {
    type Output = [f32; 2];

    #[inline(always)]
    fn call(self) -> [f32; 2] {
        let Self { x, y, of } = self;
        let mut sums = [[0.0; LANES]; 2];
        let ((xs, x), (ys, y)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
        for (x, y) in xs.iter().zip(ys) {
            for lane in 0..LANES {
                let [first, second] = of(x[lane], y[lane]);
                sums[0][lane] += first;
                sums[1][lane] += second;
            }
        }
        for (lane, (&x, &y)) in x.iter().zip(y).enumerate() {
            let [first, second] = of(x, y);
            sums[0][lane] += first;
            sums[1][lane] += second;
        }
        sums.map(|sums| sums.iter().sum())
    }
}

/// A loop that writes. What `of` needs has to be in it, not behind a reference: it could then be changed by what is written.
struct Write<'a, F> {
    x: &'a [f32],
    dy: &'a [f32],
    out: &'a mut [f32],
    of: F,
}

impl<F: Fn(f32, f32) -> f32> Kernel for Write<'_, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { x, dy, out, of } = self;
        for ((out, &x), &dy) in out.iter_mut().zip(x).zip(dy) {
            *out = of(x, dy);
        }
    }
}

impl Planes {
    /// The planes of a channel.
    fn of(self, x: &[f32], channel: usize) -> impl Iterator<Item = &[f32]> {
        x.chunks_exact(self.pixels).skip(channel).step_by(self.channels)
    }

    /// Mean and biased variance of each channel.
    pub fn statistics(self, x: &[f32]) -> Vec<[f32; 2]> {
        let isa = Widest::detect();
        let count = (x.len() / self.channels) as f64;
        let pixels = self.pixels as f64;
        let of_channel = |channel| {
            // Of each plane the mean and the sum of squares about it; then both of all.
            let of_plane = |x| {
                let [sum, _] = isa.run(Add { x, y: x, of: |x, _| [x, 0.0] });
                let mean = sum / self.pixels as f32;
                let [rest, square] =
                    isa.run(Add { x, y: x, of: move |x, _| [x - mean, (x - mean) * (x - mean)] });
                // What rounding left of the mean is taken off again.
                let left = f64::from(rest) / pixels;
                (f64::from(mean) + left, f64::from(square) - left * left * pixels)
            };
            let planes: Vec<(f64, f64)> = self.of(x, channel).map(of_plane).collect();
            let mean = planes.iter().map(|(mean, _)| mean).sum::<f64>() / planes.len() as f64;
            let square: f64 = planes.iter().map(|(own, square)| square + (own - mean).powi(2) * pixels).sum();
            [mean as f32, (square.max(0.0) / count) as f32]
        };
        (0..self.channels).into_par_iter().map(of_channel).collect()
    }

    /// y.
    pub fn apply(self, x: &[f32], maps: &[Map]) -> Vec<f32> {
        let isa = Widest::detect();
        let mut y = vec![0.0; x.len()];
        let planes = y.par_chunks_mut(self.pixels).zip(x.par_chunks(self.pixels)).enumerate();
        planes.for_each(|(at, (out, x))| {
            let map = maps[at % self.channels];
            isa.run(Write { x, dy: x, out, of: move |x: f32, _| map.of(x).max(map.least) });
        });
        y
    }

    /// dx, and dscale and dshift of each channel; `x_hats` make x̂ of x.
    pub fn gradients(self, x: &[f32], dy: &[f32], maps: &[Map], x_hats: &[Map]) -> (Vec<f32>, Vec<[f32; 2]>) {
        let isa = Widest::detect();
        let count = (x.len() / self.channels) as f64;
        let of_channel = |channel: usize| {
            let (map, hat): (Map, Map) = (maps[channel], x_hats[channel]);
            let of = move |x: f32, dy: f32| {
                let dy = map.passes(x, dy);
                [dy * hat.of(x), dy]
            };
            let planes = self.of(x, channel).zip(self.of(dy, channel));
            planes.fold([0.0_f64; 2], |[scale, shift], (x, y)| {
                let [more_scale, more_shift] = isa.run(Add { x, y, of });
                [scale + f64::from(more_scale), shift + f64::from(more_shift)]
            })
        };
        let sums: Vec<[f64; 2]> = (0..self.channels).into_par_iter().map(of_channel).collect();
        let mut dx = vec![0.0; x.len()];
        let planes = x.par_chunks(self.pixels).zip(dy.par_chunks(self.pixels));
        dx.par_chunks_mut(self.pixels).zip(planes).enumerate().for_each(|(at, (out, (x, dy)))| {
            let channel = at % self.channels;
            let (map, hat) = (maps[channel], x_hats[channel]);
            let [along, mean] = sums[channel].map(|sum| (sum / count) as f32);
            let of = move |x: f32, dy: f32| map.factor * (map.passes(x, dy) - mean - hat.of(x) * along);
            isa.run(Write { x, dy, out, of });
        });
        (dx, sums.into_iter().map(|sums| sums.map(|sum| sum as f32)).collect())
    }
}

impl Map {
    /// Before the activation.
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        self.factor * x + self.shift
    }

    /// The gradient that the activation lets through.
    #[inline(always)]
    fn passes(self, x: f32, dy: f32) -> f32 {
        if self.of(x) > self.least { dy } else { 0.0 }
    }
}
