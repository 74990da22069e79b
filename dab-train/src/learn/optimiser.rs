//! Gradient steps for a list of parameter matrices: SGD with Nesterov momentum, Adam, AdamW.
//!
//! ```text
//! sgd    v ← ρ v + g            w ← w − η (g + ρ v)
//! adam   m ← β₁ m + (1 − β₁) g  s ← β₂ s + (1 − β₂) g²   w ← w − η m̂ / (√ŝ + ε)
//! ```
//!
//! burn's own optimisers keep their momentum private; a checkpoint that resumes to the same bits needs it, so the
//! three rules are written here over plain tensors.

use burn::tensor::{Gradients, Tensor};

use crate::config::{OptimiserConfig, Rule};

/// Nesterov momentum of SGD.
const MOMENTUM: f64 = 0.9;
/// Decay of Adam's first and second moment.
const BETAS: (f64, f64) = (0.9, 0.999);
/// Keeps Adam's division finite.
const EPSILON: f64 = 1e-7;

/// The memory of one parameter.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Velocity, or Adam's first moment.
    pub first: Option<Tensor<2>>,
    /// Adam's second moment.
    pub second: Option<Tensor<2>>,
}

/// A rule and its memory of every parameter.
#[derive(Clone, Debug)]
pub struct Optimiser {
    rule: Rule,
    /// λ₂ of E8.
    decay: f64,
    /// Whether it covers biases and norms too, `[1, n]` matrices here.
    decay_all: bool,
    /// The largest norm that all gradients together may have.
    clip: Option<f64>,
    /// Steps taken.
    pub time: u64,
    /// One per parameter, in their order.
    pub memory: Vec<Memory>,
}

impl Optimiser {
    /// An optimiser without memory. `decay` is λ₂ in λ₂‖W‖²; it applies to weights, not to biases.
    pub fn new(rule: Rule, decay: f64, clip: Option<f64>) -> Self {
        Self { rule, decay, decay_all: false, clip, time: 0, memory: Vec::new() }
    }

    /// The optimiser of an experiment's network.
    pub fn of(config: &OptimiserConfig) -> Self {
        Self { decay_all: config.decay_all, ..Self::new(config.rule, config.weight_decay, config.clip) }
    }

    /// Moves `parameters` against their gradients by learning rate `rate`. Parameters stay leaves of new graphs.
    pub fn step(&mut self, parameters: Vec<&mut Tensor<2>>, gradients: &mut Gradients, rate: f64) {
        let steps = parameters.iter().map(|parameter| parameter.grad_remove(gradients)).collect();
        self.step_by(parameters, steps, |_| rate);
    }

    /// [`Optimiser::step`] with the gradient and the rate of each parameter given apart.
    pub fn step_by(
        &mut self,
        parameters: Vec<&mut Tensor<2>>,
        mut steps: Vec<Option<Tensor<2>>>,
        rate: impl Fn(usize) -> f64,
    ) {
        self.time += 1;
        self.memory.resize_with(parameters.len(), Memory::default);
        if let Some(limit) = self.clip {
            clip(&mut steps, limit);
        }
        let both = parameters.into_iter().zip(steps).zip(&mut self.memory);
        for (index, ((parameter, gradient), memory)) in both.enumerate() {
            let Some(mut gradient) = gradient else { continue };
            let rate = rate(index);
            let mut value = parameter.clone().without_autodiff();
            if self.decay > 0.0 && (self.decay_all || value.dims()[0] > 1) {
                match self.rule {
                    Rule::AdamW => value = value.mul_scalar(1.0 - 2.0 * self.decay * rate),
                    Rule::Sgd | Rule::Adam => {
                        gradient = gradient + value.clone().mul_scalar(2.0 * self.decay)
                    }
                }
            }
            let step = match self.rule {
                Rule::Sgd => memory.nesterov(gradient),
                Rule::Adam | Rule::AdamW => memory.adam(gradient, self.time),
            };
            *parameter = (value - step.mul_scalar(rate)).autodiff().require_grad();
        }
    }
}

/// Scales all gradients so that their joint norm is at most `limit`.
fn clip(gradients: &mut [Option<Tensor<2>>], limit: f64) {
    let square: f64 = gradients.iter().flatten().map(|g| g.clone().square().sum().into_scalar::<f64>()).sum();
    let norm = square.sqrt();
    if norm > limit {
        for gradient in gradients.iter_mut().flatten() {
            *gradient = gradient.clone().mul_scalar(limit / norm);
        }
    }
}

/// a·x + b·y, or b·y when there is no x yet.
fn blend(x: Option<Tensor<2>>, a: f64, y: Tensor<2>, b: f64) -> Tensor<2> {
    let y = y.mul_scalar(b);
    x.map_or(y.clone(), |x| x.mul_scalar(a) + y)
}

impl Memory {
    fn nesterov(&mut self, gradient: Tensor<2>) -> Tensor<2> {
        let velocity = blend(self.first.take(), MOMENTUM, gradient.clone(), 1.0);
        self.first = Some(velocity.clone());
        gradient + velocity.mul_scalar(MOMENTUM)
    }

    fn adam(&mut self, gradient: Tensor<2>, time: u64) -> Tensor<2> {
        let first = blend(self.first.take(), BETAS.0, gradient.clone(), 1.0 - BETAS.0);
        let second = blend(self.second.take(), BETAS.1, gradient.square(), 1.0 - BETAS.1);
        (self.first, self.second) = (Some(first.clone()), Some(second.clone()));
        let correction = |beta: f64| 1.0 - beta.powf(time as f64);
        let scale = second.div_scalar(correction(BETAS.1)).sqrt().add_scalar(EPSILON);
        first.div_scalar(correction(BETAS.0)) / scale
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    /// Minimises ½‖w − 3‖² from 0 and returns w.
    fn minimise(rule: Rule, rate: f64, clip: Option<f64>, steps: usize) -> f32 {
        let mut w = Tensor::<2>::zeros([2, 1], &Device::flex().autodiff()).require_grad();
        let mut optimiser = Optimiser::new(rule, 0.0, clip);
        for _ in 0..steps {
            let mut gradients = w.clone().sub_scalar(3.0).square().mul_scalar(0.5).sum().backward();
            optimiser.step(vec![&mut w], &mut gradients, rate);
        }
        w.into_data().iter::<f32>().next().unwrap()
    }

    #[test]
    fn every_rule_reaches_the_minimum() {
        for rule in [Rule::Sgd, Rule::Adam, Rule::AdamW] {
            let w = minimise(rule, 0.05, None, 600);
            assert!((w - 3.0).abs() < 1e-2, "{rule:?}: {w}");
        }
    }

    #[test]
    fn first_steps_are_the_textbook_ones() {
        // Adam's first step is the learning rate; Nesterov's is rate · (1 + ρ) · gradient.
        assert!((minimise(Rule::Adam, 0.1, None, 1) - 0.1).abs() < 1e-6);
        assert!((minimise(Rule::Sgd, 0.1, None, 1) - 0.57).abs() < 1e-6);
        // Two gradients of −3 have norm 3√2; clipped to √2 each is −1.
        assert!((minimise(Rule::Sgd, 0.1, Some(2.0_f64.sqrt()), 1) - 0.19).abs() < 1e-6);
    }
}
