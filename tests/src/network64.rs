//! Normalisation, layers, head and decoder of a model in float64, and how far f32 may be from it: what every rounding may
//! add is computed along with the value.
//!
//! ```text
//! y = Σ wᵢ xᵢ + b   |error| ≤ Σ |wᵢ| eᵢ + (n + 3) ε (Σ |wᵢ xᵢ| + |b|)      ε = 2⁻²⁴, eᵢ the error of xᵢ
//! y = f(x)          |error| ≤ slope · e + 2⁻²⁰ (|x| + |y|)                  slope ≤ 1.13 for every activation
//! ```

use dab_core::Activation;
use dab_core::artifact::writer::Spec;
use dab_core::channels::DecoderReads;

/// Half of an ulp of 1.
pub const EPSILON: f64 = 1.0 / (1u64 << 24) as f64;
/// Error of an activation, of its argument and its value: exp is within 2 ulp, erf within a few.
const OF_ACTIVATION: f64 = 16.0 * EPSILON;
/// Largest slope: GELU's is 1.129, SiLU's 1.0999.
const SLOPE: f64 = 1.13;
/// Numbers below 2⁻⁵⁰ are flushed to zero.
pub const FLUSHED: f64 = 1.0 / (1u64 << 50) as f64;

/// A value and how far dab-core's may be from it.
#[derive(Clone, Copy, Debug)]
pub struct Bounded {
    /// In float64.
    pub value: f64,
    /// Of f32, at most.
    pub error: f64,
}

fn activation(kind: Activation, x: f64) -> f64 {
    match kind {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Elu => x.max(0.0) + x.min(0.0).exp_m1(),
        Activation::Gelu => 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt())),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
    }
}

fn apply(kind: Activation, x: Bounded) -> Bounded {
    let value = activation(kind, x.value);
    let own = if kind == Activation::Identity { 0.0 } else { OF_ACTIVATION * (x.value.abs() + value.abs()) };
    Bounded { value, error: SLOPE * x.error + own + FLUSHED }
}

fn sum(a: Bounded, b: Bounded) -> Bounded {
    let value = a.value + b.value;
    Bounded { value, error: a.error + b.error + EPSILON * (a.value.abs() + b.value.abs()) + FLUSHED }
}

fn affine(weight: &[f32], bias: Option<&Vec<f32>>, x: &[Bounded]) -> Vec<Bounded> {
    let n = x.len() as f64;
    let row = |(i, row): (usize, &[f32])| {
        let bias = bias.map_or(0.0, |b| f64::from(b[i]));
        let (mut value, mut size, mut error) = (bias, bias.abs(), 0.0);
        for (&w, x) in row.iter().zip(x) {
            let w = f64::from(w);
            value += w * x.value;
            size += (w * x.value).abs();
            error += w.abs() * (x.error + EPSILON * x.error);
        }
        Bounded { value, error: 1.001 * error + (n + 3.0) * EPSILON * size + FLUSHED }
    };
    weight.chunks(x.len()).enumerate().map(row).collect()
}

/// The latent mean and the decoder's outputs of a model.
#[must_use]
pub fn network(spec: &Spec, input: &[f32]) -> (Vec<Bounded>, Vec<Bounded>) {
    let exact = |x: &f32| Bounded { value: f64::from(*x), error: FLUSHED };
    let mut x: Vec<Bounded> = input.iter().map(exact).collect();
    if let Some(n) = &spec.normalization {
        for ((x, &mean), &std) in x.iter_mut().zip(&n.mean).zip(&n.std) {
            let (mean, std) = (f64::from(mean), f64::from(std));
            let size = (x.value.abs() + mean.abs()) / std;
            *x = Bounded {
                value: (x.value - mean) / std,
                error: x.error / std + 4.0 * EPSILON * size + FLUSHED,
            };
        }
    }
    if spec.channels.as_ref().is_some_and(|c| c.base.l2) {
        let norm = x.iter().map(|x| x.value * x.value).sum::<f64>().sqrt();
        let error = x.iter().map(|x| x.error * x.error).sum::<f64>().sqrt();
        // Without a length there is no direction to compare.
        let lost = norm <= 1e3 * error;
        for x in &mut x {
            *x = match lost {
                true => Bounded { value: 0.0, error: f64::INFINITY },
                false => Bounded {
                    value: x.value / norm,
                    error: 1.01 * (x.error + x.value.abs() * error / norm) / norm
                        + 16.0 * EPSILON * x.value.abs() / norm
                        + FLUSHED,
                },
            };
        }
    }
    let mut activations = vec![x.clone()];
    for layer in &spec.layers {
        let mut y = affine(&layer.weight, layer.bias.as_ref(), &x);
        for (i, y) in y.iter_mut().enumerate() {
            *y = match layer.residual {
                None => apply(layer.activation, *y),
                Some(r) => {
                    let earlier = activations[usize::from(r.source)][i];
                    match r.before_activation {
                        true => apply(layer.activation, sum(*y, earlier)),
                        false => sum(apply(layer.activation, *y), earlier),
                    }
                }
            };
        }
        activations.push(y.clone());
        x = y;
    }
    for x in &mut x {
        *x = apply(spec.head.activation, *x);
    }
    let mut mean = affine(&spec.head.weight, spec.head.bias.as_ref(), &x);
    mean.truncate(spec.head.dim);
    let reads = spec.channels.as_ref().map_or(DecoderReads::Latent, |c| c.base.decoder_reads);
    let read: Vec<Bounded> = match reads {
        DecoderReads::Latent => mean.clone(),
        DecoderReads::Input => input.iter().map(exact).collect(),
    };
    let outputs = spec.decoder.as_ref().map_or(vec![], |d| affine(&d.weight, d.bias.as_ref(), &read));
    (mean, outputs)
}
