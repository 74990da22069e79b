//! Dot products and affine maps with a fixed order of summation.
//!
//! ```text
//! acc[i mod 8] += a[i]·b[i],   result = ((0+4)+(2+6)) + ((1+5)+(3+7))
//! ```
//!
//! Eight lanes whatever the machine: one AVX register, two SSE registers, or eight scalar registers of
//! a Cortex-M4. The compiler may not reorder float additions and never fuses `a*b + c`, so the width of
//! the hardware cannot change a bit. The error is at most `(n/8 + 4) ε Σ|a·b|`, an eighth of a plain loop's.

/// Accumulator lanes. Part of the numeric contract: changing it changes bits.
pub const LANES: usize = 8;

/// One accumulator.
pub type Lanes = [f32; LANES];

/// Machines with wide registers take four rows at a time, small ones a row at a time: the same bits.
pub const IS_64_BIT: bool = cfg!(target_pointer_width = "64");

/// The same values, which the compiler of a wide machine must lay out as arrays: left to itself it mixes the
/// lanes of what comes before with those of what follows, and computes both in pairs or one by one.
#[inline(always)]
fn settled<T>(values: T) -> T {
    if IS_64_BIT { core::hint::black_box(values) } else { values }
}

/// Sum of the lanes, in the order of the module's formula.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[must_use]
pub fn fold(lanes: Lanes) -> f32 {
    let [a, b, c, d, e, f, g, h] = settled(lanes);
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Adds the terms of what is left behind the last full chunk, term `i` to lane `i`.
///
/// A wide machine gathers them in memory first and adds all lanes at once: the accumulator then never
/// leaves its register. A small one adds them where they belong. Adding zeros changes no bit.
#[inline(always)]
pub fn add_tail(acc: &mut Lanes, terms: impl Iterator<Item = f32>) {
    if IS_64_BIT {
        let mut padded = [0.0; LANES];
        for (p, term) in padded.iter_mut().zip(terms) {
            *p = term;
        }
        for (s, p) in acc.iter_mut().zip(padded) {
            *s += p;
        }
    } else {
        for (s, term) in acc.iter_mut().zip(terms) {
            *s += term;
        }
    }
}

/// Adds `term(aᵢ, bᵢ)` to lane `i`. Spelt out for small machines: compiled for size, a loop over the lanes stays one
/// and keeps them in memory.
#[inline(always)]
fn add_chunk(acc: &mut Lanes, a: &Lanes, b: &Lanes, term: impl Fn(f32, f32) -> f32) {
    if IS_64_BIT {
        for ((s, &a), &b) in acc.iter_mut().zip(a).zip(b) {
            *s += term(a, b);
        }
    } else {
        acc[0] += term(a[0], b[0]);
        acc[1] += term(a[1], b[1]);
        acc[2] += term(a[2], b[2]);
        acc[3] += term(a[3], b[3]);
        acc[4] += term(a[4], b[4]);
        acc[5] += term(a[5], b[5]);
        acc[6] += term(a[6], b[6]);
        acc[7] += term(a[7], b[7]);
    }
}

/// `Σ term(aᵢ, bᵢ)` over the shorter of the two slices, unfolded.
#[inline(always)]
pub fn accumulate(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> Lanes {
    accumulate_from(0.0, a, b, term)
}

/// [`accumulate`] with lanes that begin at `start`.
#[inline(always)]
pub fn accumulate_from(start: f32, a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> Lanes {
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut acc = [start; LANES];
    for (a, b) in a.iter().zip(b) {
        add_chunk(&mut acc, a, b, &term);
    }
    add_tail(&mut acc, a_tail.iter().zip(b_tail).map(|(&a, &b)| term(a, b)));
    acc
}

/// `a · b`. `n` multiply-adds.
#[inline(always)]
#[must_use]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    fold(accumulate(a, b, |a, b| a * b))
}

/// Sum of `term(x)` over `x`, in lanes.
#[inline(always)]
pub fn sum(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    if IS_64_BIT {
        return fold(accumulate(x, x, |x, _| term(x)));
    }
    let mut acc = [0.0; LANES];
    for (i, &x) in x.iter().enumerate() {
        acc[i % LANES] += term(x);
    }
    fold(acc)
}

/// The first `n` values, and the rest; what is there when there are fewer.
#[inline(always)]
#[must_use]
pub fn take<T>(values: &[T], n: usize) -> (&[T], &[T]) {
    values.split_at_checked(n).unwrap_or((values, &[]))
}

/// `out = W x + b`, `weight` row-major `[out, in]`. `out × in` multiply-adds.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn affine_into(out: &mut [f32], weight: &[f32], bias: &[f32], x: &[f32]) {
    let mut rest = weight;
    let (blocks, tail) = if IS_64_BIT { out.as_chunks_mut::<4>() } else { (&mut [][..], &mut *out) };
    for block in blocks {
        let (r0, after) = take(rest, x.len());
        let (r1, after) = take(after, x.len());
        let (r2, after) = take(after, x.len());
        let (r3, after) = take(after, x.len());
        *block = dot_four([r0, r1, r2, r3], x);
        rest = after;
    }
    for o in tail {
        let (row, after) = take(rest, x.len());
        *o = dot(row, x);
        rest = after;
    }
    for (o, b) in out.iter_mut().zip(bias) {
        *o += b;
    }
}

/// Four dot products that share `x`: four independent chains hide the latency of the additions.
/// Each result has the bits of [`dot`].
#[inline(always)]
fn dot_four(rows: [&[f32]; 4], x: &[f32]) -> [f32; 4] {
    let (x, x_tail) = x.as_chunks::<LANES>();
    let [(r0, t0), (r1, t1), (r2, t2), (r3, t3)] = rows.map(<[f32]>::as_chunks::<LANES>);
    let mut acc = [[0.0f32; LANES]; 4];
    for ((((x, r0), r1), r2), r3) in x.iter().zip(r0).zip(r1).zip(r2).zip(r3) {
        for (acc, row) in acc.iter_mut().zip([r0, r1, r2, r3]) {
            for ((s, w), x) in acc.iter_mut().zip(row).zip(x) {
                *s += w * x;
            }
        }
    }
    for (acc, row) in acc.iter_mut().zip([t0, t1, t2, t3]) {
        add_tail(acc, row.iter().zip(x_tail).map(|(w, x)| w * x));
    }
    acc.map(fold)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn dot_keeps_its_error_bound(pairs in prop::collection::vec((-1e3f32..1e3, -1e3f32..1e3), 0..300)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let terms = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b));
            let (exact, size) = terms.fold((0.0, 0.0), |(s, m), t: f64| (s + t, m + t.abs()));
            let bound = (a.len() as f64 / 8.0 + 4.0) * f64::from(f32::EPSILON) * size;
            prop_assert!((f64::from(dot(&a, &b)) - exact).abs() <= bound);
        }

        #[test]
        fn rows_in_blocks_have_the_bits_of_rows_alone(
            inputs in 1usize..70,
            outputs in 1usize..14,
            seed in prop::collection::vec(-2f32..2.0, 70 * 14),
        ) {
            let (weight, x) = (&seed[..inputs * outputs], &seed[seed.len() - inputs..]);
            let mut out = std::vec![0.0; outputs];
            affine_into(&mut out, weight, &[], x);
            for (o, row) in out.iter().zip(weight.chunks(inputs)) {
                prop_assert_eq!(o.to_bits(), dot(row, x).to_bits());
            }
        }
    }
}
