//! The core's kernels on the widest instructions that this processor has.
//!
//! `dab-core` is compiled for the baseline of its target; [`Widest`] calls its kernels from functions that
//! are compiled for AVX-512, AVX2 (x86-64) or NEON (aarch64), chosen once, at run time. That changes the
//! speed and not the results: the order of every sum is fixed and nothing is fused, so the bits are those of
//! [`Baseline`](dab_core::isa::Baseline).

use dab_core::isa::{Isa, Kernel};
use pulp::{Arch, Simd, WithSimd};

/// The widest instructions of this processor.
#[derive(Clone, Copy, Debug)]
pub struct Widest(Arch);

impl Widest {
    /// Asks the processor, once; keep the answer.
    pub fn detect() -> Self {
        Self(Arch::new())
    }

    /// What was found, for people.
    pub fn name(self) -> String {
        let found = format!("{:?}", self.0);
        found.split(['(', ' ']).next().unwrap_or_default().to_lowercase()
    }
}

/// A kernel as `pulp` wants it: it vectorises by itself, from the instructions that it is inlined into.
struct Op<K>(K);

impl<K: Kernel> WithSimd for Op<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Output {
        self.0.call()
    }
}

impl Isa for Widest {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        self.0.dispatch(Op(kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;
    use dab_core::artifact::AlignedBytes;
    use dab_core::artifact::writer::{ChannelsSpec, Codes, DecoderSpec, Dense, Head, Spec};
    use dab_core::{Activation, CovarianceKind, Task};

    /// A model with every kernel in it; the values only have to be irregular.
    fn model(covariance: CovarianceKind) -> AlignedBytes {
        let (inputs, features, dim, codes, outputs) = (37, 29, 6, 11, 5);
        let mut random = Random::new(1, "simd");
        let mut values = |n: usize| (0..n).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        let square = match covariance {
            CovarianceKind::Diagonal => dim,
            CovarianceKind::Constant => 0,
            CovarianceKind::Spectral | CovarianceKind::Cholesky => dim * dim,
        };
        let covs = (0..codes * square).map(|i: usize| match covariance {
            CovarianceKind::Diagonal => 0.5 + (i % 7) as f64 * 0.1,
            _ if (i % square).is_multiple_of(dim + 1) => 0.7,
            _ => 0.05,
        });
        let layer = Dense {
            weight: values(features * inputs),
            bias: Some(values(features)),
            outputs: features,
            activation: Activation::Gelu,
            ..Dense::default()
        };
        let weight = values(covariance.raw_len(dim) * features);
        let head = Head { weight, bias: None, activation: Activation::Identity, covariance, dim };
        let codes = Codes {
            means: values(codes * dim).iter().map(|&x| x.into()).collect(),
            covs: covs.collect(),
            priors: vec![1.0 / codes as f64; codes],
            alpha: 1.5,
        };
        let (weight, bias) = (values(outputs * dim), Some(values(outputs)));
        let spec = Spec {
            layers: vec![layer],
            decoder: Some(DecoderSpec { weight, bias, outputs, task: Task::Regression }),
            channels: (covariance == CovarianceKind::Constant).then(ChannelsSpec::default),
            ..Spec::new(inputs, head, codes)
        };
        AlignedBytes::from(&*spec.to_bytes().unwrap())
    }

    #[test]
    fn wide_instructions_give_the_bits_of_the_baseline() {
        for covariance in CovarianceKind::ALL {
            let bytes = model(covariance);
            let model = bytes.model().unwrap();
            let wide = Widest::detect();
            let mut scratch = vec![0.0; model.scratch_len()];
            model.self_test_on(wide, &mut scratch).unwrap();
            for seed in 0..50 {
                let input: Vec<f32> = (0..37).map(|i| ((seed * 37 + i) as f32 * 0.7).sin() * 3.0).collect();
                let (mut narrow_out, mut wide_out) = ([0.0; 5], [0.0; 5]);
                let narrow = model.predict_into(&input, &mut narrow_out, &mut scratch).unwrap();
                let wide = model.predict_on(wide, &input, &mut wide_out, &mut scratch).unwrap();
                assert_eq!(narrow.uncertainty.to_bits(), wide.uncertainty.to_bits());
                assert_eq!(narrow, wide);
                assert_eq!(narrow_out.map(f32::to_bits), wide_out.map(f32::to_bits));
            }
        }
    }
}
