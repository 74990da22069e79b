//! Normalisation, dense layers, residuals, head and decoder of random networks against float64.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::Spec;
use dab_core::channels::DecoderReads;
use dab_core::{Activation, CovarianceKind};
use dab_tests::specs::{Random, any};
use proptest::prelude::*;

/// Up to five maps of up to a dozen terms each: f32 rounding of terms of size 1 to 100.
const ABSOLUTE: f64 = 2e-4;
const RELATIVE: f64 = 2e-5;

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

fn affine(weight: &[f32], bias: Option<&Vec<f32>>, x: &[f64]) -> Vec<f64> {
    let row = |(i, row): (usize, &[f32])| {
        let dot: f64 = row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum();
        dot + bias.map_or(0.0, |b| f64::from(b[i]))
    };
    weight.chunks(x.len()).enumerate().map(row).collect()
}

/// The latent mean and the decoder's outputs, in float64.
fn reference(spec: &Spec, input: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let mut x: Vec<f64> = input.iter().copied().map(f64::from).collect();
    if let Some(n) = &spec.normalization {
        for ((x, &mean), &std) in x.iter_mut().zip(&n.mean).zip(&n.std) {
            *x = (*x - f64::from(mean)) / f64::from(std);
        }
    }
    if spec.channels.as_ref().is_some_and(|c| c.base.l2) {
        let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
    }
    let mut activations = vec![x.clone()];
    for layer in &spec.layers {
        let mut y = affine(&layer.weight, layer.bias.as_ref(), &x);
        for (i, y) in y.iter_mut().enumerate() {
            *y = match layer.residual {
                None => activation(layer.activation, *y),
                Some(r) => {
                    let earlier = activations[usize::from(r.source)][i];
                    if r.before_activation {
                        activation(layer.activation, *y + earlier)
                    } else {
                        activation(layer.activation, *y) + earlier
                    }
                }
            };
        }
        activations.push(y.clone());
        x = y;
    }
    for x in &mut x {
        *x = activation(spec.head.activation, *x);
    }
    let mut mean = affine(&spec.head.weight, spec.head.bias.as_ref(), &x);
    mean.truncate(spec.head.dim);
    let reads = spec.channels.as_ref().map_or(DecoderReads::Latent, |c| c.base.decoder_reads);
    let read = match reads {
        DecoderReads::Latent => mean.clone(),
        DecoderReads::Input => input.iter().copied().map(f64::from).collect(),
    };
    let outputs = spec.decoder.as_ref().map_or(vec![], |d| affine(&d.weight, d.bias.as_ref(), &read));
    (mean, outputs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn networks_agree_with_float64(seed: u64) {
        let random = &mut Random(seed);
        for kind in CovarianceKind::ALL {
            let spec = any(random, kind, 1.0);
            let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
            let model = bytes.model().expect("a model");
            let mut scratch = vec![f32::NAN; model.scratch_len()];
            let mut outputs = vec![f32::NAN; model.shape().outputs];
            let input = random.floats(spec.inputs, 2.0);
            let expected = reference(&spec, &input);
            model.predict_into(&input, &mut outputs, &mut scratch).expect("an input");
            let mean = model.encode(&input, &mut scratch).expect("an input").mean;
            for (found, expected) in [(mean, &expected.0), (&outputs, &expected.1)] {
                prop_assert_eq!(found.len(), expected.len());
                for (&found, &expected) in found.iter().zip(expected) {
                    let error = (f64::from(found) - expected).abs();
                    prop_assert!(error <= ABSOLUTE + RELATIVE * expected.abs(), "{found} {expected}");
                }
            }
        }
    }
}
