//! Dense layers before the bottleneck, so that a small network runs whole on the device.
//!
//! input → normalise → `y = act(W x + b)`, optionally with an earlier activation added → features.
//!
//! Every value that leaves a layer is brought back into the numeric domain
//! (`scalar.rs`): a far-away input saturates, it never turns into NaN.

use serde::{Deserialize, Serialize};

use crate::linalg::dot::{IS_64_BIT, sum};
use crate::scalar::{elu, gelu, silu, sqrt, tame, tanh};

/// What follows an affine map. The order is the artifact's encoding: append only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// y = x.
    #[default]
    Identity,
    /// y = max(x, 0).
    Relu,
    /// y = x for x > 0, eˣ − 1 below.
    Elu,
    /// y = x Φ(x), exact.
    Gelu,
    /// y = x / (1 + e^−x).
    Silu,
    /// y = tanh x.
    Tanh,
}

impl Activation {
    /// All of them, in the artifact's order.
    pub const ALL: [Self; 6] = [Self::Identity, Self::Relu, Self::Elu, Self::Gelu, Self::Silu, Self::Tanh];

    /// Lower-case name, as `dab pack` reads it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Relu => "relu",
            Self::Elu => "elu",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
            Self::Tanh => "tanh",
        }
    }

    /// Of one value.
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        match self {
            Self::Identity => x,
            Self::Relu if x > 0.0 => x,
            Self::Relu => 0.0,
            Self::Elu => elu(x),
            Self::Gelu => gelu(x),
            Self::Silu => silu(x),
            Self::Tanh => tanh(x),
        }
    }

    /// Applies the activation in place and brings the values into the numeric domain.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn apply(self, values: &mut [f32]) {
        match self {
            Self::Identity => map(values, Self::Identity),
            // On a small machine one loop for all others, on a wide one a loop for each: it does many values at a time.
            _ if !IS_64_BIT => map(values, self),
            Self::Relu => map(values, Self::Relu),
            Self::Elu => map(values, Self::Elu),
            Self::Gelu => map(values, Self::Gelu),
            Self::Silu => map(values, Self::Silu),
            Self::Tanh => map(values, Self::Tanh),
        }
    }
}

/// The activation of every value, which is brought into the domain before and after.
#[inline(always)]
fn map(values: &mut [f32], activation: Activation) {
    for x in values {
        *x = tame(activation.of(tame(*x)));
    }
}

/// Adds `addend` to `values`, in place and within the domain.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn add_into(values: &mut [f32], addend: &[f32]) {
    for (x, a) in values.iter_mut().zip(addend) {
        *x = tame(*x + a);
    }
}

/// `out = (x − mean) · inverse_std`, or a copy where there is no normalisation, within the domain.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn normalize_into(out: &mut [f32], x: &[f32], mean: &[f32], inverse_std: &[f32]) {
    for (o, &x) in out.iter_mut().zip(x) {
        *o = tame(x);
    }
    for ((o, m), s) in out.iter_mut().zip(mean).zip(inverse_std) {
        *o = tame((*o - m) * s);
    }
}

/// Brings `x`, numbers of the domain, to length 1 in place; a vector of zeros stays as it is. `2 n` multiply-adds.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn unit(x: &mut [f32]) {
    let square = squared_length(x);
    if square > 0.0 {
        let inverse = 1.0 / sqrt(square);
        for x in x {
            *x = tame(*x * inverse);
        }
    }
}

/// ‖x‖². One copy for all on a small machine.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn squared_length(x: &[f32]) -> f32 {
    sum(x, |x| x * x)
}

/// Makes the last of a view's axes the rest: how far `x` lies outside of the others. Nothing happens where `rest` is empty.
///
/// ```text
/// z_d = gain √max(0, ‖x‖² − 2 t − Σ_{i<d} (scale_i z_i)²)      t: what the head gives for z_d
/// ```
///
/// With orthogonal rows w_i of the head, scale_i = 1/‖w_i‖, and c, −½‖c‖² for the last row and its bias, the root is the length
/// of what is left of x − c when its parts along all w_i are taken away. `n + 2 d` multiply-adds.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub fn rest_into(mean: &mut [f32], x: &[f32], rest: &[f32]) {
    let (Some((gain, scales)), Some((last, kept))) = (rest.split_last(), mean.split_last_mut()) else {
        return;
    };
    let mut square = squared_length(x) - 2.0 * tame(*last);
    // One after the other: they are few beside the weights of the head.
    for (z, scale) in kept.iter().zip(scales) {
        let along = tame(tame(*z) * scale);
        square -= along * along;
    }
    *last = if square > 0.0 { tame(sqrt(square) * gain) } else { 0.0 };
}

/// `out = (x − mean) / √(variance + ε) · weight + bias`, mean and variance over all of `x`. `4 n` multiply-adds.
///
/// What is nearly 0 becomes 0 before it is squared: a square below the normal numbers would not be the same everywhere.
#[cfg_attr(target_pointer_width = "64", inline(always))]
pub fn layer_norm_into(out: &mut [f32], x: &[f32], epsilon: f32, weight: &[f32], bias: &[f32]) {
    let n = x.len() as f32;
    let mean = tame(sum(x, |x| x) / n);
    for (o, x) in out.iter_mut().zip(x) {
        *o = tame(x - mean);
    }
    let variance = sum(out, |x| x * x) / n;
    let inverse = 1.0 / sqrt(variance + epsilon);
    for (o, w) in out.iter_mut().zip(weight) {
        *o = tame(*o * inverse) * w;
    }
    for (o, b) in out.iter_mut().zip(bias) {
        *o += b;
    }
}

/// Softmax in place: class probabilities from logits, sum 1. One exponential per class.
#[inline(always)]
pub fn softmax(logits: &mut [f32]) {
    let largest = logits.iter().fold(f32::MIN, |m, &x| if x > m { x } else { m });
    for x in logits.iter_mut() {
        *x = crate::scalar::exp(*x - largest);
    }
    let total = sum(logits, |x| x);
    for x in logits {
        *x /= total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::LARGEST;

    #[test]
    fn activations_keep_to_the_domain_at_its_edges() {
        for activation in Activation::ALL {
            let mut values =
                [f32::MAX, -f32::MAX, LARGEST, -LARGEST, 1e-30, -1e-30, 0.0, 1.0, -1.0, 90.0, -90.0];
            activation.apply(&mut values);
            assert!(values.iter().all(|&x| crate::scalar::in_domain(x)), "{activation:?} {values:?}");
        }
    }

    #[test]
    fn layer_norms_agree_with_float64_and_survive_the_edges_of_the_domain() {
        let x = [1.0, -2.0, 3.5, 0.25, 8.0];
        let (weight, bias) = ([1.0, 0.5, -2.0, 3.0, 0.0], [0.0, 1.0, 0.5, -1.0, 2.0]);
        let mut out = [0.0; 5];
        layer_norm_into(&mut out, &x, 1e-5, &weight, &bias);
        let wide = x.map(f64::from);
        let mean = wide.iter().sum::<f64>() / 5.0;
        let variance = wide.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 5.0;
        for (i, o) in out.iter().enumerate() {
            let unit = (wide[i] - mean) / libm::sqrt(variance + 1e-5);
            let expected = unit * f64::from(weight[i]) + f64::from(bias[i]);
            assert!((f64::from(*o) - expected).abs() < 1e-6, "{o} {expected}");
        }
        for x in [[LARGEST, -LARGEST, 0.0], [LARGEST; 3], [0.0; 3], [crate::scalar::SMALLEST, 0.0, 0.0]] {
            let mut out = [0.0; 3];
            layer_norm_into(&mut out, &x, crate::scalar::SMALLEST, &[1.0; 3], &[]);
            assert!(out.iter().all(|x| x.is_finite()), "{x:?} {out:?}");
        }
    }

    #[test]
    fn softmax_survives_saturated_logits() {
        let mut logits = [LARGEST, -LARGEST, 0.0];
        softmax(&mut logits);
        assert_eq!(logits, [1.0, 0.0, 0.0]);
    }
}
