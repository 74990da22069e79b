//! Normalisation, dense layers, residuals, head and decoder of random networks against float64.

use dab_core::CovarianceKind;
use dab_core::artifact::AlignedBytes;
use dab_tests::network64::network;
use dab_tests::specs::{Random, any};
use proptest::prelude::*;

/// Up to five maps of up to a dozen terms each: f32 rounding of terms of size 1 to 100.
const ABSOLUTE: f64 = 2e-4;
const RELATIVE: f64 = 2e-5;

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
            let expected = network(&spec, &input);
            model.predict_into(&input, &mut outputs, &mut scratch).expect("an input");
            let mean = model.encode(&input, &mut scratch).expect("an input").mean;
            for (found, expected) in [(mean, &expected.0), (&outputs, &expected.1)] {
                prop_assert_eq!(found.len(), expected.len());
                for (&found, expected) in found.iter().zip(expected) {
                    let error = (f64::from(found) - expected.value).abs();
                    prop_assert!(error <= ABSOLUTE + RELATIVE * expected.value.abs(), "{found} {expected:?}");
                }
            }
        }
    }
}

#[test]
fn a_model_says_the_sizes_that_it_was_written_with() {
    let random = &mut Random(7);
    let mut without_layers = 0;
    for kind in [CovarianceKind::ALL; 20].concat() {
        let spec = any(random, kind, 1.0);
        without_layers += u32::from(spec.layers.is_empty());
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let shape = bytes.model().expect("a model").shape();
        // What enters the head: the outputs of the last layer, or the model's inputs.
        let features = spec.layers.last().map_or(spec.inputs, |layer| layer.outputs);
        assert_eq!((shape.inputs, shape.layers, shape.features), (spec.inputs, spec.layers.len(), features));
        assert_eq!(
            (shape.covariance, shape.dim, shape.codes),
            (kind, spec.head.dim, spec.codes.priors.len())
        );
        let decoder = spec.decoder.as_ref();
        assert_eq!((shape.outputs, shape.task), (decoder.map_or(0, |d| d.outputs), decoder.map(|d| d.task)));
        assert_eq!(shape.views, 1 + spec.channels.map_or(0, |channels| channels.views.len()));
    }
    assert!(without_layers > 5, "{without_layers}");
}
