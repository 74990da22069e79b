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
