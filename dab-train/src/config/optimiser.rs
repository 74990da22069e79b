//! The network's gradient steps: rule, learning rate and how it changes, weight decay.

use serde::{Deserialize, Serialize};

/// The network's gradient steps. An experiment that learns states rule and learning rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimiserConfig {
    /// sgd, adam or adamw.
    pub rule: Rule,
    /// After the warm-up, before any decay.
    pub learning_rate: f64,
    /// Weight decay, λ₂ of E8.
    #[serde(default)]
    pub weight_decay: f64,
    /// Whether λ₂ also covers biases and the scales and shifts of norms, as in the published image models.
    #[serde(default)]
    pub decay_all: bool,
    /// The largest joint norm of all gradients.
    pub clip: Option<f64>,
    /// How the learning rate changes.
    #[serde(default)]
    pub schedule: Schedule,
}

/// The learning rate over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// Epochs of linear rise from zero.
    pub warmup: f64,
    /// What follows.
    pub shape: ScheduleShape,
    /// Epochs at which `step` multiplies the rate by `factor`.
    pub milestones: Vec<f64>,
    /// See `milestones`.
    pub factor: f64,
}

/// What follows the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleShape {
    /// The rate stays.
    #[default]
    Constant,
    /// The rate falls at milestones.
    Step,
    /// The rate falls to zero along half a cosine.
    Cosine,
}

impl Schedule {
    /// The factor of the learning rate at `epoch` (a fraction inside an epoch counts) of `epochs`.
    #[must_use]
    pub fn factor_at(&self, epoch: f64, epochs: f64) -> f64 {
        if epoch < self.warmup {
            return epoch / self.warmup;
        }
        match self.shape {
            ScheduleShape::Constant => 1.0,
            ScheduleShape::Step => {
                self.factor.powi(self.milestones.iter().filter(|&&m| epoch >= m).count() as i32)
            }
            ScheduleShape::Cosine => {
                let done = (epoch - self.warmup) / (epochs - self.warmup).max(f64::MIN_POSITIVE);
                0.5 * (1.0 + (core::f64::consts::PI * done.min(1.0)).cos())
            }
        }
    }
}

/// Which rule, with its constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Stochastic gradient descent with Nesterov momentum; `weight_decay` is L2.
    #[default]
    Sgd,
    /// Adam; `weight_decay` is L2.
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
}
