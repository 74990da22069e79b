//! Gradient steps for a list of parameter matrices: SGD with Nesterov momentum, Adam, AdamW.
//!
//! ```text
//! sgd    v ← ρ v + g            w ← w − η (g + ρ v)
//! adam   m ← β₁ m + (1 − β₁) g  s ← β₂ s + (1 − β₂) g²   w ← w − η m̂ / (√ŝ + ε)
//! ```
//!
//! burn's own optimisers keep their momentum private; a checkpoint that resumes to the same bits needs it, so the
//! three rules are written here over plain tensors. On the processor one loop does the same (`model/cpu/update.rs`).

use burn::tensor::{Gradients, Tensor};

use crate::{
    config::{OptimiserConfig, Rule},
    model::cpu::{
        self,
        update::{Adam, Nesterov, adam, nesterov},
    },
};

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
            let Some(gradient) = gradient else { continue };
            let rate = rate(index);
            let value = parameter.clone().without_autodiff();
            let decays = self.decay_all || value.dims()[0] > 1;
            let decay = if decays { 2.0 * self.decay } else { 0.0 };
            let ours = cpu::is_ours(&value) && cpu::is_ours(&gradient);
            let moved = match ours {
                true => memory.in_one_pass(self.rule, value, gradient, rate, decay, self.time),
                false => memory.by_tensors(self.rule, value, gradient, rate, decay, self.time),
            };
            *parameter = moved.autodiff().require_grad();
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

/// 1 − βᵗ.
fn correction(beta: f64, time: u64) -> f64 {
    1.0 - beta.powf(time as f64)
}

impl Memory {
    /// The parameter after a step; `decay` is 2 λ₂.
    fn by_tensors(
        &mut self,
        rule: Rule,
        mut value: Tensor<2>,
        mut gradient: Tensor<2>,
        rate: f64,
        decay: f64,
        time: u64,
    ) -> Tensor<2> {
        if decay > 0.0 {
            match rule {
                Rule::AdamW => value = value.mul_scalar(1.0 - decay * rate),
                Rule::Sgd | Rule::Adam => gradient = gradient + value.clone().mul_scalar(decay),
            }
        }
        let step = match rule {
            Rule::Sgd => self.nesterov(gradient),
            Rule::Adam | Rule::AdamW => self.adam(gradient, time),
        };
        value - step.mul_scalar(rate)
    }

    /// [`Memory::by_tensors`] on the processor: the same bits in one pass over the numbers.
    fn in_one_pass(
        &mut self,
        rule: Rule,
        value: Tensor<2>,
        gradient: Tensor<2>,
        rate: f64,
        decay: f64,
        time: u64,
    ) -> Tensor<2> {
        let moment = |kept: &mut Option<Tensor<2>>| kept.take().unwrap_or_else(|| gradient.zeros_like());
        let first = moment(&mut self.first);
        if rule == Rule::Sgd {
            let by = Nesterov { rate: rate as f32, momentum: MOMENTUM as f32, decay: decay as f32 };
            let [value, velocity] = nesterov(value, gradient, first, by);
            self.first = Some(velocity);
            return value;
        }
        let second = moment(&mut self.second);
        let (shrink, added) = if rule == Rule::AdamW { (1.0 - decay * rate, 0.0) } else { (1.0, decay) };
        let betas = [BETAS.0, BETAS.1];
        let by = Adam {
            rate: rate as f32,
            keep: betas.map(|beta| beta as f32),
            take: betas.map(|beta| (1.0 - beta) as f32),
            correction: betas.map(|beta| correction(beta, time) as f32),
            epsilon: EPSILON as f32,
            shrink: shrink as f32,
            decay: added as f32,
        };
        let [value, first, second] = adam(value, gradient, [first, second], by);
        (self.first, self.second) = (Some(first), Some(second));
        value
    }

    fn nesterov(&mut self, gradient: Tensor<2>) -> Tensor<2> {
        let velocity = blend(self.first.take(), MOMENTUM, gradient.clone(), 1.0);
        self.first = Some(velocity.clone());
        gradient + velocity.mul_scalar(MOMENTUM)
    }

    fn adam(&mut self, gradient: Tensor<2>, time: u64) -> Tensor<2> {
        let first = blend(self.first.take(), BETAS.0, gradient.clone(), 1.0 - BETAS.0);
        let second = blend(self.second.take(), BETAS.1, gradient.square(), 1.0 - BETAS.1);
        (self.first, self.second) = (Some(first.clone()), Some(second.clone()));
        let scale = second.div_scalar(correction(BETAS.1, time)).sqrt().add_scalar(EPSILON);
        first.div_scalar(correction(BETAS.0, time)) / scale
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

    /// Numbers of several sizes, some of them 0.
    fn numbers(seed: u64) -> Tensor<2> {
        let mut random = crate::support::random::Random::new(seed, "step");
        let each = |i: i32| if i % 11 == 0 { 0.0 } else { random.normal() as f32 * 10f32.powi(i % 7 - 4) };
        let values: Vec<f32> = (0..6 * 17).map(each).collect();
        Tensor::from_data(burn::tensor::TensorData::new(values, [6, 17]), &Device::flex())
    }

    #[test]
    fn one_pass_has_the_bits_of_many() {
        for rule in [Rule::Sgd, Rule::Adam, Rule::AdamW] {
            for decay in [0.0, 0.02] {
                let (mut ours, mut tensors) = (Memory::default(), Memory::default());
                let (mut w, mut v) = (numbers(0), numbers(0));
                for time in 1..=5 {
                    w = ours.in_one_pass(rule, w, numbers(time), 0.01, decay, time);
                    v = tensors.by_tensors(rule, v, numbers(time), 0.01, decay, time);
                    assert_eq!(w.to_data(), v.to_data(), "{rule:?}, {decay}, step {time}");
                }
                let memory = |memory: Memory| [memory.first, memory.second].map(|m| m.map(Tensor::into_data));
                let ([first, second], wanted) = (memory(ours), memory(tensors));
                assert_eq!(first, wanted[0]);
                assert_eq!(second, wanted[1]);
            }
        }
    }
}
