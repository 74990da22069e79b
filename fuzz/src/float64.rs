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
use dab_core::divergence::Precision;
use dab_core::gaussian::Spread;
use dab_core::{CovarianceKind, Model};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::network64::{Bounded, EPSILON, FLUSHED, network};
use crate::specs::{Random, add_locals, any};

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

/// A model, as it was written and as it is read.
struct Made {
    spec: Spec,
    model: Model<'static>,
    /// Where the model's numbers lie: kept, so that nothing counts as leaked.
    _bytes: &'static AlignedBytes,
    /// Of every code, R as rows, where P = Rᵀ R.
    factors: Vec<Vec<Vec<f64>>>,
}

/// Model `index`, made when it is first asked for.
fn model(index: usize) -> &'static Made {
    static MADE: [OnceLock<Made>; MODELS] = [const { OnceLock::new() }; MODELS];
    MADE[index].get_or_init(|| {
        let random = &mut Random(index as u64);
        let (kind, scale) = (random.pick(&CovarianceKind::ALL), random.pick(&[1.0, 0.01, 30.0]));
        let mut spec = any(random, kind, scale);
        if spec.channels.is_some() && random.below(2) == 0 {
            add_locals(random, &mut spec);
        }
        let bytes: &'static AlignedBytes =
            Box::leak(Box::new(AlignedBytes::from(&*spec.to_bytes().expect("a model"))));
        let model = bytes.model().expect("a model");
        let factors = (0..model.shape().codes).map(|code| rows(&model, code)).collect();
        Made { spec, model, _bytes: bytes, factors }
    })
}

fn compare(u: &mut Unstructured<'_>) -> Result<()> {
    let made = model(usize::from(u.arbitrary::<u16>()?) % MODELS);
    let mut input = Vec::new();
    for _ in 0..made.spec.inputs {
        let power = u.int_in_range(-8..=8i8)?;
        input.push(f32::from(u.arbitrary::<i16>()?) / 8192.0 * f32::from(power).exp2());
    }
    one(made, &input);
    Ok(())
}

fn one(Made { spec, model, factors, .. }: &Made, input: &[f32]) {
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
    // V, where Σ = V Vᵀ, column by column.
    let columns: Option<Vec<Vec<f64>>> = match gaussian.spread {
        Spread::Identity => None,
        Spread::Diagonal(v) => Some((0..d).map(|j| column(d, j, f64::from(v[j]).sqrt())).collect()),
        Spread::Full { factor, .. } => {
            Some((0..d).map(|j| (0..d).map(|i| f64::from(factor[i * d + j])).collect()).collect())
        }
    };
    let mut least = f64::INFINITY;
    let mut exact = Vec::new();
    for (code, &found) in model.codebook().codes().zip(&distances) {
        let offset: Vec<f64> = mu.iter().zip(code.mean).map(|(x, &m)| x - f64::from(m)).collect();
        let rows = &factors[exact.len()];
        // ‖R x‖², and how large it would be if no products cancelled: these sizes count for the error, not their sum.
        let square = |x: &[f64]| -> [f64; 2] {
            rows.iter().fold([0.0; 2], |[square, size], row| {
                let products = row.iter().zip(x).map(|(r, x)| r * x);
                let [sum, sizes] = products.fold([0.0; 2], |[sum, sizes], p| [sum + p, sizes + p.abs()]);
                [square + sum * sum, size + sizes * sizes]
            })
        };
        let [trace, sizes] = match &columns {
            None => [d as f64; 2],
            Some(columns) => columns.iter().fold([0.0; 2], |[trace, sizes], x| {
                let [square, size] = square(x);
                [trace + square, sizes + size]
            }),
        };
        let [mahalanobis, far] = square(&offset);
        let log_code = f64::from(code.log_det);
        let distance = 0.5 * (trace + mahalanobis - d as f64 + log_code - log_det);
        let terms = sizes + far + d as f64 + log_code.abs() + log_det.abs();
        // A half square below 2⁻⁵⁰ is 0 before it is multiplied.
        let flushed =
            if let Precision::Local(p) = code.precision { FLUSHED * f64::from(p).max(1.0) } else { FLUSHED };
        let bound = OF_TERMS * terms + flushed;
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

/// The rows of R, where P = Rᵀ R; zeros behind the last number of a row are left out.
fn rows(model: &Model<'_>, code: usize) -> Vec<Vec<f64>> {
    let book = model.codebook();
    let d = book.dim;
    let stride = book.layout.stride(d);
    let own = &book.precisions[code * stride..(code + 1) * stride];
    match book.layout {
        PrecisionLayout::Local => (0..d).map(|j| column(d, j, f64::from(own[0]).sqrt())).collect(),
        PrecisionLayout::Identity => (0..d).map(|j| column(d, j, 1.0)).collect(),
        PrecisionLayout::Diagonal => (0..d).map(|j| column(d, j, f64::from(own[j]).sqrt())).collect(),
        PrecisionLayout::Full(_) => {
            (0..d).map(|i| (0..=i).map(|j| f64::from(own[i * (i + 1) / 2 + j])).collect()).collect()
        }
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
