//! Products with weights of one byte (feature `int8`, format 1.2).
//!
//! ```text
//! s = max |x| / 32767,   q_i = round(x_i / s)          one step size for all inputs of a layer
//! y_r = (scale_r s) Σ_i w_ri q_i + b_r                 w in −127 … 127
//! ```
//!
//! The sum is one of whole numbers, so its order cannot change a bit, and a wide machine adds sixteen products at a time.
//! Rounding inputs to 16 bits costs a 256th of what rounding weights to 8 does. Weights stay where they lie: a row is
//! read byte by byte, from any address.

#[cfg(feature = "int8")]
use super::dot::IS_64_BIT;
#[cfg(feature = "float32")]
use super::dot::affine_into;
#[cfg(feature = "int8")]
use super::dot::take;

/// The largest step of an input.
#[cfg(feature = "int8")]
const STEPS: f32 = i16::MAX as f32;
/// Products whose sum fits into 32 bits: 512 · 127 · 32767 < 2³¹. Part of the numeric contract, because sums of more are
/// added as floats, in order.
#[cfg(feature = "int8")]
const BLOCK: usize = 512;

/// The weights of an affine map.
#[derive(Clone, Copy, Debug)]
pub enum Weights<'a> {
    /// Row-major, `[out, in]`.
    #[cfg(feature = "float32")]
    Float(&'a [f32]),
    /// Row-major bytes, and what each row is multiplied by.
    #[cfg(feature = "int8")]
    Bytes {
        /// One per row.
        scales: &'a [f32],
        /// `[out, in]`.
        values: &'a [i8],
    },
}

impl<'a> Weights<'a> {
    /// Floats, or scales with their bytes.
    #[inline(always)]
    pub fn new(floats: &'a [f32], bytes: Option<&'a [i8]>) -> Self {
        match bytes {
            #[cfg(feature = "int8")]
            Some(values) => Self::Bytes { scales: floats, values },
            #[cfg(feature = "float32")]
            None => Self::Float(floats),
            // The reader refused such a file.
            #[cfg(not(feature = "int8"))]
            Some(_) => Self::Float(floats),
            #[cfg(not(feature = "float32"))]
            None => Self::Bytes { scales: floats, values: &[] },
        }
    }

    /// `out = W x + b`. `steps` has room for the inputs where the weights are bytes. Always inlined: on a small machine it would
    /// be one more frame on the deepest path.
    #[inline(always)]
    pub fn affine_into(self, out: &mut [f32], bias: &[f32], x: &[f32], steps: &mut [f32]) {
        match self {
            #[cfg(feature = "float32")]
            Self::Float(weight) => {
                let _ = steps;
                affine_into(out, weight, bias, x);
            }
            #[cfg(feature = "int8")]
            Self::Bytes { scales, values } => {
                let Ok(steps) = bytemuck::try_cast_slice_mut::<f32, i16>(steps) else { return };
                let Some(steps) = steps.get_mut(..x.len()) else { return };
                let size = steps_into(steps, x);
                bytes_into(out, values, scales, steps, size);
                for (o, b) in out.iter_mut().zip(bias) {
                    *o += b;
                }
            }
        }
    }
}

/// Floats of scratch for the steps of `n` inputs.
#[must_use]
pub const fn steps_len(n: usize) -> usize {
    n.div_ceil(2)
}

/// `x`, numbers of the domain, in whole steps; gives the size of a step. Ties go to the even step.
#[cfg(feature = "int8")]
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn steps_into(steps: &mut [i16], x: &[f32]) -> f32 {
    /// Adding it rounds to a whole number, which is then in the last bits.
    const ROUND: f32 = 12_582_912.0;
    // The bits of positive floats are in the order of the floats, and a maximum of integers has no order.
    // Signed ones, because x86-64 compares those with one instruction.
    let largest = x.iter().fold(0, |most: i32, x| most.max(x.abs().to_bits().cast_signed()));
    let largest = f32::from_bits(largest.cast_unsigned());
    let inverse = if largest > 0.0 { STEPS / largest } else { 0.0 };
    for (step, x) in steps.iter_mut().zip(x) {
        *step = (x * inverse + ROUND).to_bits() as i16;
    }
    largest / STEPS
}

/// `out = (scale · size) Σ w q`, row by row.
#[cfg(feature = "int8")]
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn bytes_into(out: &mut [f32], values: &[i8], scales: &[f32], steps: &[i16], size: f32) {
    let mut rest = values;
    for (o, scale) in out.iter_mut().zip(scales) {
        let (row, after) = take(rest, steps.len());
        rest = after;
        *o = row_sum(row, steps) * (scale * size);
    }
}

/// `Σ w q` of a row: the sums of blocks, added as floats.
#[cfg(feature = "int8")]
#[inline(always)]
fn row_sum(row: &[i8], steps: &[i16]) -> f32 {
    let mut total = 0.0;
    if !IS_64_BIT {
        let (mut row, mut steps) = (row, steps);
        while !steps.is_empty() {
            let ((part, row_rest), (some, steps_rest)) = (take(row, BLOCK), take(steps, BLOCK));
            total += sum(part, some) as f32;
            (row, steps) = (row_rest, steps_rest);
        }
        return total;
    }
    // Blocks of known length have no tail to look for. The sum of an empty rest is 0, which changes no bit.
    let ((rows, row), (blocks, rest)) = (row.as_chunks::<BLOCK>(), steps.as_chunks::<BLOCK>());
    for (row, steps) in rows.iter().zip(blocks) {
        total += sum(row, steps) as f32;
    }
    total + sum(row, rest) as f32
}

/// `Σ w q` of at most [`BLOCK`] products.
#[cfg(feature = "int8")]
#[inline(always)]
fn sum(row: &[i8], steps: &[i16]) -> i32 {
    let product = |(&w, &q): (&i8, &i16)| i32::from(w) * i32::from(q);
    let add = |total: i32, product: i32| total.wrapping_add(product);
    if !IS_64_BIT {
        let ((row, row_tail), (steps, steps_tail)) = (row.as_chunks::<8>(), steps.as_chunks::<8>());
        let mut total = 0;
        for (w, q) in row.iter().zip(steps) {
            // Spelt out: compiled for size, a loop stays one.
            total = add(total, product((&w[0], &q[0])));
            total = add(total, product((&w[1], &q[1])));
            total = add(total, product((&w[2], &q[2])));
            total = add(total, product((&w[3], &q[3])));
            total = add(total, product((&w[4], &q[4])));
            total = add(total, product((&w[5], &q[5])));
            total = add(total, product((&w[6], &q[6])));
            total = add(total, product((&w[7], &q[7])));
        }
        return row_tail.iter().zip(steps_tail).map(product).fold(total, add);
    }
    // Products of 32, and their sums by halves: the compiler of a wide machine then multiplies and adds neighbours at once.
    let ((row, row_tail), (steps, steps_tail)) = (row.as_chunks::<32>(), steps.as_chunks::<32>());
    let mut lanes = [0i32; 16];
    for (row, steps) in row.iter().zip(steps) {
        let mut products = [0; 32];
        for (p, (&w, &q)) in products.iter_mut().zip(row.iter().zip(steps)) {
            *p = i32::from(i16::from(w)) * i32::from(q);
        }
        let (low, high) = products.split_at(16);
        for (lane, (&a, &b)) in lanes.iter_mut().zip(low.iter().zip(high)) {
            *lane = lane.wrapping_add(a.wrapping_add(b));
        }
    }
    let total = lanes.into_iter().fold(0, add);
    row_tail.iter().zip(steps_tail).map(product).fold(total, add)
}

#[cfg(all(test, feature = "int8"))]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn steps_round_to_the_even_one_and_reach_both_ends() {
        let mut steps = [0; 6];
        let size = steps_into(&mut steps, &[32767.0, -32767.0, 2.5, 3.5, -2.5, 0.49]);
        assert_eq!((size, steps), (1.0, [32767, -32767, 2, 4, -2, 0]));
        assert_eq!((steps_into(&mut steps[..2], &[0.0, -0.0]), &steps[..2]), (0.0, &[0, 0][..]));
    }

    proptest! {
        #[test]
        fn a_product_is_that_of_whole_numbers_in_float64(
            inputs in 1usize..1300,
            seed in prop::collection::vec((-127i8..=127, -2f32..2.0), 1300),
        ) {
            let (weights, x): (Vec<i8>, Vec<f32>) = seed.into_iter().take(inputs).unzip();
            let (mut out, mut steps) = ([0.0], std::vec![0.0; steps_len(inputs)]);
            let w = Weights::Bytes { scales: &[0.25], values: &weights };
            w.affine_into(&mut out, &[0.5], &x, &mut steps);
            let mut quantised = std::vec![0; inputs];
            let size = f64::from(steps_into(&mut quantised, &x));
            let exact: i64 = weights.iter().zip(&quantised).map(|(&w, &q)| i64::from(w) * i64::from(q)).sum();
            let expected = exact as f64 * 0.25 * size + 0.5;
            // Sums of 512 are exact, and rounded once each when they are added.
            let sizes: i64 = weights.iter().zip(&quantised).map(|(&w, &q)| (i64::from(w) * i64::from(q)).abs()).sum();
            let bound = 1.0 + sizes as f64 * 0.25 * size;
            prop_assert!((f64::from(out[0]) - expected).abs() <= 4e-7 * bound);
            // Half a step, and what rounding the size, its inverse and the product moves one of 32767 steps by: 3 · 2⁻²⁴ of it.
            for (&q, &x) in quantised.iter().zip(&x) {
                prop_assert!((f64::from(q) * size - f64::from(x)).abs() <= (0.5 + 32767.0 * 3.0 / 16_777_216.0) * size);
            }
        }
    }
}
