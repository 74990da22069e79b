//! Loss scaling: what f16 needs beside bf16.
//!
//! ```text
//! gradient = ∇(s · loss) / s        not finite: skip the step, s ← s / 2        2000 good steps: s ← 2 s
//! ```
//!
//! Convolutions hand on gradients in their own precision. In f16 those below 6e-8 vanish and those above 65504 are
//! infinite; a power of two moves them between the two without rounding.

use burn::tensor::Tensor;

use super::network_step::Found;

/// s at the start.
const START: f64 = 65_536.0;
/// Good steps before s grows.
const PATIENCE: u32 = 2000;
/// Below this it is not the scale that makes gradients infinite.
const LEAST: f64 = 1.0 / 16_384.0;

/// s, and the good steps since it last changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// s, a power of two.
    pub factor: f64,
    /// Steps since it changed.
    pub good: u32,
}

impl Default for Scaling {
    fn default() -> Self {
        Self { factor: START, good: 0 }
    }
}

impl Scaling {
    /// Whether a step counts: all its gradients are finite. Changes s for the next.
    pub(super) fn accept(&mut self, found: &Found) -> bool {
        let sums = found.gradients.iter().flatten().map(|gradient| gradient.clone().sum());
        let sums = Tensor::cat(sums.chain([found.means.clone().sum()]).collect(), 0);
        let finite = sums.into_data().iter::<f32>().all(f32::is_finite);
        self.count(finite);
        finite
    }

    fn count(&mut self, finite: bool) {
        self.good += 1;
        if !finite {
            *self = Self { factor: self.factor / 2.0, good: 0 };
        } else if self.good >= PATIENCE {
            *self = Self { factor: self.factor * 2.0, good: 0 };
        }
    }

    /// Whether s is so small that the loss itself must be at fault.
    pub(super) fn is_lost(self) -> bool {
        self.factor < LEAST
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device, TensorData};

    use super::*;
    use crate::model::conv::{Conv, InitialWeights, Precision};

    /// Half a unit in the last of f16's eleven bits, and how often a gradient and its sum are rounded.
    const HALF: f64 = 1.0 / 2048.0;
    const ROUNDINGS: f64 = 4.0;

    #[test]
    fn the_factor_halves_at_once_and_doubles_after_many_good_steps() {
        let mut scaling = Scaling::default();
        scaling.count(false);
        assert_eq!(scaling, Scaling { factor: START / 2.0, good: 0 });
        (1..PATIENCE).for_each(|_| scaling.count(true));
        assert_eq!(scaling, Scaling { factor: START / 2.0, good: PATIENCE - 1 });
        scaling.count(true);
        assert_eq!(scaling, Scaling { factor: START, good: 0 });
        (0..31).for_each(|_| scaling.count(false));
        assert!(scaling.is_lost());
    }

    #[test]
    fn small_gradients_of_f16_survive_by_scaling_alone() {
        let device = Device::flex().autodiff();
        let mut conv = Conv::new([1, 1], 3, 1, &mut InitialWeights::Zero, &device);
        conv.weight = conv.weight.require_grad();
        let x = Tensor::<4>::ones([1, 1, 4, 4], &device);
        let gradient = |precision, scale: f64| {
            // A loss whose gradient, 1e-8, is no number of f16.
            let loss = conv.forward(x.clone(), Precision::Type(precision)).sum().mul_scalar(1e-8 * scale);
            let gradient = conv.weight.grad(&loss.backward()).unwrap().mul_scalar(1.0 / scale);
            gradient.into_data().iter::<f64>().sum::<f64>()
        };
        let exact = gradient(DType::F32, 1.0);
        assert_eq!(gradient(DType::F16, 1.0), 0.0);
        let error = (gradient(DType::F16, START) / exact - 1.0).abs();
        assert!(error < ROUNDINGS * HALF, "{error}");
    }

    #[test]
    fn infinite_gradients_are_seen() {
        let found = |value: f32| {
            let tensor = Tensor::from_data(TensorData::new(vec![1.0, value], [1, 2]), &Device::flex());
            let means = Tensor::zeros([3], &Device::flex());
            Found { gradients: vec![None, Some(tensor)], means, statistics: Vec::new() }
        };
        let mut scaling = Scaling::default();
        assert!(scaling.accept(&found(1e30)));
        assert!(!scaling.accept(&found(f32::INFINITY)) && !scaling.accept(&found(f32::NAN)));
        assert_eq!(scaling.factor, START / 4.0);
    }
}
