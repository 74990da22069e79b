//! Convolutions of one image as sums over taps, on the widest instructions.
//!
//! ```text
//! y[o][p] = Σ_q W[o][q] · source[offset_q + p]          forward, and the gradient of x
//! dW[o][q] = Σ_p dy[o][p] · source[offset_q + p]        the gradient of W
//! ```
//!
//! The source is the image with zeros around it, so that a shift by one tap of the kernel is an offset into it, and p runs over whole
//! rows, the zeros at their ends included: results there mean nothing, or meet a dy of 0. Nothing is copied for each tap, as im2col
//! does. With a stride s, the pixels whose coordinates have the same remainders by s lie together: a plane for each pair of
//! remainders.

use pulp::{Simd, WithSimd};

/// Outputs that are computed together.
const ROWS: usize = 4;
/// Numbers by which lists of pixels are padded: what is computed together on the widest instructions, and a multiple of that on all others.
const TILE: usize = 96;
/// Taps by which lists of taps are padded.
const COLUMNS: usize = 6;

/// A convolution without bias that keeps the size of an image, but for its stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    pub stride: usize,
    /// Height and width of the image.
    pub size: [usize; 2],
}

/// Where a sum finds its factors.
#[derive(Clone, Debug)]
struct Taps {
    offsets: Vec<usize>,
    rows: usize,
    pitch: usize,
}

impl Taps {
    /// Pixels, with those between the rows.
    fn len(&self) -> usize {
        self.rows * self.pitch
    }
}

impl Geometry {
    /// Whether the kernels here are made for it: pixels around the image are then enough for the gradient of x, and the weights stay in
    /// the second cache of every usual processor while an image goes through them.
    pub fn fits(&self) -> bool {
        const WEIGHTS: usize = 1 << 18;
        (self.kernel == 1 || self.kernel % 2 == 1 && self.stride <= 2)
            && self.outputs * self.columns() <= WEIGHTS
    }

    /// Height and width of the result.
    pub fn result(&self) -> [usize; 2] {
        self.size.map(|side| side.div_ceil(self.stride))
    }

    /// Weights of one output.
    fn columns(&self) -> usize {
        self.inputs * self.kernel * self.kernel
    }

    fn padding(&self) -> usize {
        self.kernel / 2
    }

    /// How far a tap reaches, in pixels of the result.
    fn reach(&self) -> usize {
        (self.kernel - 1) / self.stride
    }

    /// Remainders by the stride that some tap has.
    fn phases(&self) -> usize {
        self.stride.min(self.kernel)
    }

    /// Every tap of the kernel.
    fn kernel_taps(&self) -> impl Iterator<Item = [usize; 2]> + use<> {
        let side = self.kernel;
        (0..side * side).map(move |tap| [tap / side, tap % side])
    }
}

/// A convolution forward: y = W ∗ x.
pub struct Forward {
    of: Geometry,
    taps: Taps,
    plane: usize,
    weights: Vec<[f32; ROWS]>,
}

impl Forward {
    /// With `weight` `[outputs, inputs · kernel²]`.
    pub fn new(of: Geometry, weight: &[f32]) -> Self {
        let (taps, plane) = source_taps(&of);
        let columns = of.columns();
        let weights = in_rows(of.outputs, columns, |output, column| weight[output * columns + column]);
        Self { of, taps, plane, weights }
    }

    /// Memory that [`Forward::image`] works in.
    pub fn work(&self) -> Work {
        Work::new(source_len(&self.of, self.plane), &self.taps, self.of.outputs)
    }

    /// One image `x` `[inputs, h, w]` into `y` `[outputs, h′, w′]`.
    pub fn image(&self, x: &[f32], y: &mut [f32], work: &mut Work) {
        fill_source(&self.of, self.plane, x, &mut work.source);
        let sums = Sums { weights: &self.weights, taps: &self.taps, work };
        pulp::Arch::new().dispatch(sums);
        let [rows, cols] = self.of.result();
        for (y, flat) in y.chunks_exact_mut(rows * cols).zip(work.flat.chunks_exact(work.stride)) {
            for (y, flat) in y.chunks_exact_mut(cols).zip(flat.chunks(self.taps.pitch)) {
                y.copy_from_slice(&flat[..cols]);
            }
        }
    }
}

/// The gradient of x: every pixel of x gets what the taps gave away.
pub struct Backward {
    of: Geometry,
    phases: Vec<Phase>,
}

/// The pixels of x with the same remainders.
struct Phase {
    taps: Taps,
    weights: Vec<[f32; ROWS]>,
    /// Where the first of them is, in rows and columns of x.
    first: [usize; 2],
    /// How many there are in a row.
    cols: usize,
}

impl Backward {
    /// With `weight` `[outputs, inputs · kernel²]`.
    pub fn new(of: Geometry, weight: &[f32]) -> Self {
        let (reach, padding, stride, columns) = (of.reach(), of.padding(), of.stride, of.columns());
        let [rows, cols] = of.result();
        let pitch = cols + 2 * reach;
        let plane = (rows + 2 * reach) * pitch;
        let mut phases = Vec::new();
        for (row, col) in (0..stride * stride).map(|phase| (phase / stride, phase % stride)) {
            let taps: Vec<[usize; 2]> =
                of.kernel_taps().filter(|[y, x]| y % stride == row && x % stride == col).collect();
            // The range of r with 0 ≤ stride · r + remainder − padding < side.
            let range = |remainder: usize, side: usize| {
                let first = padding.saturating_sub(remainder).div_ceil(stride);
                first..(side + padding).saturating_sub(remainder).div_ceil(stride).max(first)
            };
            let [ys, xs] = [range(row, of.size[0]), range(col, of.size[1])];
            if taps.is_empty() || ys.is_empty() || xs.is_empty() {
                continue;
            }
            let offset = |output: usize, [y, x]: [usize; 2]| {
                output * plane + (reach - y / stride + ys.start) * pitch + reach - x / stride + xs.start
            };
            let offsets = (0..of.outputs).flat_map(|output| taps.iter().map(move |&tap| (output, tap)));
            let weights = in_rows(of.inputs, of.outputs * taps.len(), |input, column| {
                let (output, [y, x]) = (column / taps.len(), taps[column % taps.len()]);
                weight[output * columns + (input * of.kernel + y) * of.kernel + x]
            });
            phases.push(Phase {
                taps: Taps {
                    offsets: offsets.map(|(o, tap)| offset(o, tap)).collect(),
                    rows: ys.len(),
                    pitch,
                },
                weights,
                first: [stride * ys.start + row - padding, stride * xs.start + col - padding],
                cols: xs.len(),
            });
        }
        Self { of, phases }
    }

    /// Memory that [`Backward::image`] works in.
    pub fn work(&self) -> Work {
        let longest = self.phases.iter().map(|phase| &phase.taps).max_by_key(|taps| taps.len());
        let none = Taps { offsets: Vec::new(), rows: 0, pitch: 0 };
        let [rows, cols] = self.of.result().map(|side| side + 2 * self.of.reach());
        Work::new(self.of.outputs * rows * cols, longest.unwrap_or(&none), self.of.inputs)
    }

    /// The gradient `dy` `[outputs, h′, w′]` of one image into `dx` `[inputs, h, w]`, which is zero before.
    pub fn image(&self, dy: &[f32], dx: &mut [f32], work: &mut Work) {
        let (reach, stride) = (self.of.reach(), self.of.stride);
        let [rows, cols] = self.of.result();
        let pitch = cols + 2 * reach;
        let planes = work.source.chunks_exact_mut((rows + 2 * reach) * pitch);
        for (plane, dy) in planes.zip(dy.chunks_exact(rows * cols)) {
            for (to, from) in plane.chunks_exact_mut(pitch).skip(reach).zip(dy.chunks_exact(cols)) {
                to[reach..reach + cols].copy_from_slice(from);
            }
        }
        let [height, width] = self.of.size;
        for phase in &self.phases {
            pulp::Arch::new().dispatch(Sums { weights: &phase.weights, taps: &phase.taps, work });
            let flats = work.flat.chunks_exact(work.stride);
            for (dx, flat) in dx.chunks_exact_mut(height * width).zip(flats) {
                let rows = dx.chunks_exact_mut(width).skip(phase.first[0]).step_by(stride);
                for (dx, flat) in rows.zip(flat.chunks(pitch)) {
                    let flat = &flat[..phase.cols];
                    if stride == 1 {
                        dx[phase.first[1]..][..phase.cols].copy_from_slice(flat);
                    } else {
                        let dx = dx.iter_mut().skip(phase.first[1]).step_by(stride);
                        dx.zip(flat).for_each(|(to, &from)| *to = from);
                    }
                }
            }
        }
    }
}

/// The gradient of W over some images.
pub struct Weights {
    of: Geometry,
    taps: Taps,
    plane: usize,
}

impl Weights {
    pub fn new(of: Geometry) -> Self {
        let (mut taps, plane) = source_taps(&of);
        let padded = taps.offsets.len().next_multiple_of(COLUMNS);
        taps.offsets.resize(padded, 0);
        Self { of, taps, plane }
    }

    /// Images whose gradients are added up together: so many that adding up the lanes of a register in the end is little work, and
    /// never more for more threads, so that these do not change a bit.
    pub fn images(&self) -> usize {
        const PIXELS: usize = 1 << 12;
        (PIXELS / self.taps.len().max(1)).clamp(1, 32)
    }

    /// The gradient `[outputs, inputs · kernel²]` of images `x` `[n, inputs, h, w]` with `dy` `[n, outputs, h′, w′]`.
    pub fn images_sum(&self, x: &[f32], dy: &[f32]) -> Vec<f32> {
        let [height, width] = self.of.size;
        let [rows, cols] = self.of.result();
        let stride = self.taps.len().next_multiple_of(TILE);
        let outputs = self.of.outputs.next_multiple_of(ROWS);
        let images = x.len() / (self.of.inputs * height * width);
        let length = source_len(&self.of, self.plane);
        let mut source = vec![0.0; images * length + TILE];
        let mut grads = vec![0.0; images * outputs * stride];
        let parts = x.chunks_exact(self.of.inputs * height * width).zip(source.chunks_mut(length));
        parts.for_each(|(x, source)| fill_source(&self.of, self.plane, x, source));
        let parts = dy.chunks_exact(self.of.outputs * rows * cols).zip(grads.chunks_mut(outputs * stride));
        for (dy, grads) in parts {
            for (dy, grads) in dy.chunks_exact(rows * cols).zip(grads.chunks_mut(stride)) {
                for (dy, grads) in dy.chunks_exact(cols).zip(grads.chunks_mut(self.taps.pitch)) {
                    grads[..cols].copy_from_slice(dy);
                }
            }
        }
        let columns = self.of.columns();
        let mut sums = vec![0.0; outputs * self.taps.offsets.len()];
        pulp::Arch::new().dispatch(Correlations {
            taps: &self.taps,
            source: &source,
            grads: &grads,
            length,
            stride,
            outputs,
            sums: &mut sums,
        });
        let kept = sums.chunks_exact(self.taps.offsets.len()).take(self.of.outputs);
        kept.flat_map(|sums| &sums[..columns]).copied().collect()
    }
}

/// A source with room for what is read behind its end.
fn source_len(of: &Geometry, plane: usize) -> usize {
    of.inputs * of.phases() * of.phases() * plane
}

/// The taps of the source of an image, and the numbers of one of its planes.
fn source_taps(of: &Geometry) -> (Taps, usize) {
    let [rows, cols] = of.result();
    let (pitch, stride, phases) = (cols + of.reach(), of.stride, of.phases());
    let plane = (rows + of.reach()) * pitch;
    let offset =
        |[y, x]: [usize; 2]| (y % stride * phases + x % stride) * plane + y / stride * pitch + x / stride;
    let inputs = (0..of.inputs).map(|input| input * phases * phases * plane);
    let offsets = inputs.flat_map(|first| of.kernel_taps().map(move |tap| first + offset(tap))).collect();
    (Taps { offsets, rows, pitch }, plane)
}

/// The pixels of an image into its source, whose zeros stay.
fn fill_source(of: &Geometry, plane: usize, x: &[f32], source: &mut [f32]) {
    let ([height, width], padding, stride, phases) = (of.size, of.padding(), of.stride, of.phases());
    let pitch = of.result()[1] + of.reach();
    let planes = x.chunks_exact(height * width).flat_map(|x| std::iter::repeat_n(x, phases * phases));
    for (at, (x, plane)) in planes.zip(source.chunks_exact_mut(plane)).enumerate() {
        let (row, col) = (at / phases % phases, at % phases);
        // The first r with stride · r + remainder − padding ≥ 0, and that pixel.
        let first = |remainder: usize| {
            let first = padding.saturating_sub(remainder).div_ceil(stride);
            (first, stride * first + remainder - padding)
        };
        let ((to_row, from_row), (to_col, from_col)) = (first(row), first(col));
        let rows = x.chunks_exact(width).skip(from_row).step_by(stride);
        for (to, from) in plane.chunks_exact_mut(pitch).skip(to_row).zip(rows) {
            let (to, from) = (&mut to[to_col..], &from[from_col.min(width)..]);
            if stride == 1 {
                to[..from.len()].copy_from_slice(from);
            } else {
                to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, &from)| *to = from);
            }
        }
    }
}

/// Weights of [`ROWS`] outputs side by side, for each column; zero where there is no output.
fn in_rows(outputs: usize, columns: usize, of: impl Fn(usize, usize) -> f32) -> Vec<[f32; ROWS]> {
    let blocks = (0..outputs).step_by(ROWS).flat_map(|first| (0..columns).map(move |column| (first, column)));
    let row = |(first, column): (usize, usize)| {
        core::array::from_fn(|row| if first + row < outputs { of(first + row, column) } else { 0.0 })
    };
    blocks.map(row).collect()
}

/// What one thread works in, image after image.
pub struct Work {
    source: Vec<f32>,
    /// Results, with what is computed between the rows; one output behind the other, so many numbers each.
    flat: Vec<f32>,
    stride: usize,
}

impl Work {
    fn new(source: usize, taps: &Taps, outputs: usize) -> Self {
        let stride = taps.len().next_multiple_of(TILE);
        // Reading goes on behind the last plane: by a row that means nothing, and to the end of a tile.
        let behind = taps.pitch + TILE;
        Self {
            source: vec![0.0; source + behind],
            flat: vec![0.0; outputs.next_multiple_of(ROWS) * stride],
            stride,
        }
    }
}

/// y[o][p] of all outputs and pixels.
struct Sums<'a> {
    weights: &'a [[f32; ROWS]],
    taps: &'a Taps,
    work: &'a mut Work,
}

impl WithSimd for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Sums, factors and a weight fill the registers.
        if S::REGISTER_COUNT >= 32 { self.run::<S, 6>(simd) } else { self.run::<S, 2>(simd) }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn run<S: Simd, const V: usize>(self, simd: S) {
        let Work { source, flat, stride } = self.work;
        let tile = V * S::F32_LANES;
        for at in (0..self.taps.len()).step_by(tile) {
            let blocks = self.weights.chunks_exact(self.taps.offsets.len());
            for (weights, flat) in blocks.zip(flat.chunks_exact_mut(ROWS * *stride)) {
                let mut sums = [[simd.splat_f32s(0.0); V]; ROWS];
                for (weights, &offset) in weights.iter().zip(&self.taps.offsets) {
                    let mut values = [simd.splat_f32s(0.0); V];
                    values.copy_from_slice(S::as_simd_f32s(&source[offset + at..][..tile]).0);
                    for (sums, &weight) in sums.iter_mut().zip(weights) {
                        let weight = simd.splat_f32s(weight);
                        for (sum, &value) in sums.iter_mut().zip(&values) {
                            *sum = simd.mul_add_e_f32s(weight, value, *sum);
                        }
                    }
                }
                for (sums, flat) in sums.iter().zip(flat.chunks_exact_mut(*stride)) {
                    S::as_mut_simd_f32s(&mut flat[at..][..tile]).0.copy_from_slice(sums);
                }
            }
        }
    }
}

/// dW[o][q] of all outputs and taps.
struct Correlations<'a> {
    taps: &'a Taps,
    source: &'a [f32],
    grads: &'a [f32],
    /// Numbers of one image's source, and of one output's gradient.
    length: usize,
    stride: usize,
    outputs: usize,
    /// `[outputs, taps]`.
    sums: &'a mut [f32],
}

impl WithSimd for Correlations<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if S::REGISTER_COUNT >= 32 { self.run::<S, COLUMNS>(simd) } else { self.run::<S, 2>(simd) }
    }
}

impl Correlations<'_> {
    #[inline(always)]
    fn run<S: Simd, const Q: usize>(self, simd: S) {
        let columns = self.taps.offsets.len();
        let long = self.taps.len().next_multiple_of(S::F32_LANES);
        for (block, sums) in self.sums.chunks_exact_mut(ROWS * columns).enumerate() {
            for (at, offsets) in self.taps.offsets.chunks_exact(Q).enumerate() {
                let mut found = [[simd.splat_f32s(0.0); ROWS]; Q];
                for (image, grads) in self.grads.chunks_exact(self.outputs * self.stride).enumerate() {
                    let grads = &grads[ROWS * block * self.stride..];
                    let grads: [&[S::f32s]; ROWS] =
                        core::array::from_fn(|row| S::as_simd_f32s(&grads[row * self.stride..][..long]).0);
                    let source = &self.source[image * self.length..];
                    let values: [&[S::f32s]; Q] =
                        core::array::from_fn(|q| S::as_simd_f32s(&source[offsets[q]..][..long]).0);
                    for pixel in 0..long / S::F32_LANES {
                        let mut grad = [simd.splat_f32s(0.0); ROWS];
                        for (to, from) in grad.iter_mut().zip(&grads) {
                            *to = from[pixel];
                        }
                        for (found, values) in found.iter_mut().zip(&values) {
                            let value = values[pixel];
                            for (sum, &grad) in found.iter_mut().zip(&grad) {
                                *sum = simd.mul_add_e_f32s(value, grad, *sum);
                            }
                        }
                    }
                }
                for (q, found) in found.iter().enumerate() {
                    for (row, &sum) in found.iter().enumerate() {
                        sums[row * columns + at * Q + q] = simd.reduce_sum_f32s(sum);
                    }
                }
            }
        }
    }
}
