//! dab-core against float64. The bound is not a guess: what every rounding may add is computed along with the value.
//!
//! ```text
//! y = Σ wᵢ xᵢ + b   |error| ≤ Σ |wᵢ| eᵢ + (n + 3) ε (Σ |wᵢ xᵢ| + |b|)      ε = 2⁻²⁴, eᵢ the error of xᵢ
//! y = f(x)          |error| ≤ slope · e + 2⁻²⁰ (|x| + |y|)                  slope ≤ 1.13 for every activation
//! D                 |error| ≤ 2⁻¹⁷ (tr(P Σ) + (μ − m)ᵀ P (μ − m) + d + |ln|Σ|| + |ln|Σ_κ||)
//! ```
//!
//! Distances are compared on the Gaussian that the encoder gave, so that an error of the network is not blamed on them.

use std::sync::OnceLock;

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::Spec;
use dab_core::channels::DecoderReads;
use dab_core::codebook::PrecisionLayout;
use dab_core::gaussian::Spread;
use dab_core::{Activation, CovarianceKind, Model};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::specs::{Random, any};

/// Half of an ulp of 1.
const EPSILON: f64 = 1.0 / (1u64 << 24) as f64;
/// Error of an activation, of its argument and its value: exp is within 2 ulp, erf within a few.
const OF_ACTIVATION: f64 = 16.0 * EPSILON;
/// Largest slope: GELU's is 1.129, SiLU's 1.0999.
const SLOPE: f64 = 1.13;
/// Error of a distance, of its terms: sums of up to 81 products, and logarithms.
const OF_TERMS: f64 = 128.0 * EPSILON;
/// Numbers below 2⁻⁵⁰ are flushed to zero.
const FLUSHED: f64 = 1.0 / (1u64 << 50) as f64;

/// A value and how far dab-core's may be from it.
#[derive(Clone, Copy)]
struct Bounded {
    value: f64,
    error: f64,
}

/// Draws a model and an input and compares.
///
/// # Panics
/// When dab-core is farther from float64 than roundings explain.
pub fn check(data: &[u8]) {
    let _ = compare(&mut Unstructured::new(data));
}

/// Models that are compared; making one takes a hundred times as long as a question.
const MODELS: usize = 4096;

/// Model `index`, made when it is first asked for.
fn model(index: usize) -> &'static (Spec, AlignedBytes) {
    static MADE: [OnceLock<(Spec, AlignedBytes)>; MODELS] = [const { OnceLock::new() }; MODELS];
    MADE[index].get_or_init(|| {
        let random = &mut Random(index as u64);
        let (kind, scale) = (random.pick(&CovarianceKind::ALL), random.pick(&[1.0, 0.01, 30.0]));
        let spec = any(random, kind, scale);
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        (spec, bytes)
    })
}

fn compare(u: &mut Unstructured<'_>) -> Result<()> {
    let (spec, bytes) = model(usize::from(u.arbitrary::<u16>()?) % MODELS);
    let model = bytes.model().expect("a model");
    let mut input = Vec::new();
    for _ in 0..spec.inputs {
        let power = u.int_in_range(-8..=8i8)?;
        input.push(f32::from(u.arbitrary::<i16>()?) / 8192.0 * f32::from(power).exp2());
    }
    one(spec, &model, &input);
    Ok(())
}

fn one(spec: &Spec, model: &Model<'_>, input: &[f32]) {
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    let mut outputs = vec![f32::NAN; model.shape().outputs];
    let found = model.predict_into(input, &mut outputs, &mut scratch).expect("an input");
    let (mean, decoded) = network(spec, input);
    near("output", &outputs, &decoded);
    let (k, d) = (model.shape().codes, model.shape().dim);
    let (mut distances, mut weights) = (vec![0.0; k], vec![0.0; k]);
    let mut shares = vec![0.0; d];
    model.explain_into(input, &mut distances, &mut weights, &mut shares, &mut scratch).expect("an input");
    let gaussian = model.encode(input, &mut scratch).expect("an input");
    near("mean", gaussian.mean, &mean);

    // E4, on the encoder's own Gaussian.
    let mu: Vec<f64> = gaussian.mean.iter().map(|&x| x.into()).collect();
    let log_det = f64::from(gaussian.log_det);
    let mut least = f64::INFINITY;
    let mut exact = Vec::new();
    for (code, &found) in model.codebook().codes().zip(&distances) {
        let offset: Vec<f64> = mu.iter().zip(code.mean).map(|(x, &m)| x - f64::from(m)).collect();
        let rows = rows(model, exact.len());
        // ‖R V‖² and ‖R (μ − m)‖².
        let square = |x: &[f64]| -> f64 {
            rows.iter().map(|r| r.iter().zip(x).map(|(r, x)| r * x).sum::<f64>().powi(2)).sum()
        };
        let trace: f64 = match gaussian.spread {
            Spread::Identity => d as f64,
            Spread::Diagonal(v) => {
                (0..d).map(|j| column(d, j, f64::from(v[j]).sqrt())).map(|x| square(&x)).sum()
            }
            Spread::Full { factor, .. } => (0..d)
                .map(|j| (0..d).map(|i| f64::from(factor[i * d + j])).collect::<Vec<_>>())
                .map(|x| square(&x))
                .sum(),
        };
        let mahalanobis = square(&offset);
        let log_code = f64::from(code.log_det);
        let distance = 0.5 * (trace + mahalanobis - d as f64 + log_code - log_det);
        // Products inside R V can cancel: their sizes count, not their sum.
        let size = |x: &[f64]| -> f64 {
            rows.iter().map(|r| r.iter().zip(x).map(|(r, x)| (r * x).abs()).sum::<f64>().powi(2)).sum()
        };
        let sizes: f64 = match gaussian.spread {
            Spread::Full { factor, .. } => (0..d)
                .map(|j| (0..d).map(|i| f64::from(factor[i * d + j])).collect::<Vec<_>>())
                .map(|x| size(&x))
                .sum(),
            _ => trace,
        };
        let terms = sizes + size(&offset) + d as f64 + log_code.abs() + log_det.abs();
        let bound = OF_TERMS * terms + FLUSHED;
        let error = (f64::from(found) - distance.max(0.0)).abs();
        assert!(error <= bound, "distance {found}, float64 {distance}, error {error}, bound {bound}");
        least =
            least.min(if model.codebook().priors[exact.len()] > 0.0 { found.into() } else { f64::INFINITY });
        exact.push(f64::from(found));
    }

    // E5 and E6, on these distances.
    let alpha = f64::from(model.codebook().alpha);
    let weight = |(d, &p): (&f64, &f32)| f64::from(p) * (-alpha * (d - least)).exp();
    let total: f64 = exact.iter().zip(model.codebook().priors).map(weight).sum();
    let excess: f64 =
        exact.iter().zip(model.codebook().priors).map(|(d, p)| weight((d, p)) * (d - least)).sum();
    let expected = least + excess / total;
    let error = (f64::from(found.uncertainty) - expected).abs();
    // −α (D − D_min) is rounded before the exponential: an error of ε times the exponent, in a weight of e^−exponent.
    let bound = (128.0 * EPSILON) * (expected + excess / total) + FLUSHED;
    assert!(error <= bound, "u {}, float64 {expected}, error {error}, bound {bound}", found.uncertainty);
}

/// Row j of R, where P = Rᵀ R.
fn rows(model: &Model<'_>, code: usize) -> Vec<Vec<f64>> {
    let book = model.codebook();
    let d = book.dim;
    let stride = book.layout.stride(d);
    let own = &book.precisions[code * stride..(code + 1) * stride];
    match book.layout {
        PrecisionLayout::Identity => (0..d).map(|j| column(d, j, 1.0)).collect(),
        PrecisionLayout::Diagonal => (0..d).map(|j| column(d, j, f64::from(own[j]).sqrt())).collect(),
        PrecisionLayout::Full(_) => (0..d)
            .map(|i| (0..d).map(|j| if j > i { 0.0 } else { f64::from(own[i * (i + 1) / 2 + j]) }).collect())
            .collect(),
    }
}

fn column(d: usize, j: usize, value: f64) -> Vec<f64> {
    (0..d).map(|i| if i == j { value } else { 0.0 }).collect()
}

fn near(what: &str, found: &[f32], expected: &[Bounded]) {
    assert_eq!(found.len(), expected.len());
    for (&found, e) in found.iter().zip(expected) {
        let error = (f64::from(found) - e.value).abs();
        assert!(error <= e.error, "{what} {found}, float64 {}, error {error}, bound {}", e.value, e.error);
    }
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

/// The latent mean and the decoder's outputs.
fn network(spec: &Spec, input: &[f32]) -> (Vec<Bounded>, Vec<Bounded>) {
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
