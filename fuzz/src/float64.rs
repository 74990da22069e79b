//! dab-core against float64. The bound is not a guess: what every rounding may add is computed along with the value.
//!
//! ```text
//! network           its bounds are in `network64.rs`                        ε = 2⁻²⁴
//! D                 |error| ≤ 2⁻¹⁷ (tr(P Σ) + (μ − m)ᵀ P (μ − m) + d + |ln|Σ|| + |ln|Σ_κ||)
//! ```
//!
//! Distances are compared on the Gaussian that the encoder gave, so that an error of the network is not blamed on them.

use std::sync::OnceLock;

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::Spec;
use dab_core::codebook::PrecisionLayout;
use dab_core::gaussian::Spread;
use dab_core::{CovarianceKind, Model};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::network64::{Bounded, EPSILON, FLUSHED, network};
use crate::specs::{Random, any};

/// Error of a distance, of its terms: sums of up to 81 products, and logarithms.
const OF_TERMS: f64 = 128.0 * EPSILON;

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
