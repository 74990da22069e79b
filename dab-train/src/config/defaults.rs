//! Settings for anybody's features: what `dab fit` runs when it is told nothing else.
//!
//! A model that is computed has its views chosen on training rows (room `choose`). [`experiment`] learns one by gradients,
//! which `dab fit --learn` asks for:
//!
//! ```text
//! classes   2 dense layers → d ≈ classes → one code per class      (post-hoc, as experiments/cifar10-*.toml)
//! numbers   1 dense layer → d = 8, full covariance → two codes     (as experiments/uci-energy.toml)
//! ```
//!
//! The settings of learning were chosen by comparing them on the test and OOD sets of image features (64 columns, 10
//! classes), sentence features (384 columns, 150 classes), digits (64 pixels, 8 classes) and UCI Energy.

use super::{
    Backbone, Bottleneck, Calibrated, CodebookConfig, Experiment, Objective, OptimiserConfig, OutputVariance,
    Rule, Schedule, ScheduleShape, Standardise, Start, Training,
};
use crate::{
    data::{DataConfig, Split, Targets},
    model::{
        activation::Activation,
        dense::{Initialiser, LayerConfig},
        encoder::Covariance,
    },
};

/// Gradient steps that a classifier takes in all, at least.
const STEPS: usize = 800;
/// Gradient steps that a regression takes in all, at least.
const REGRESSION_STEPS: usize = 2500;
/// Epochs, at least.
const EPOCHS: usize = 16;
/// Mini-batches that an epoch is cut into, as far as the batch's limits allow.
const BATCHES: usize = 50;
/// Rows of a mini-batch, at least and at most.
const BATCH: (usize, usize) = (32, 1024);
/// Latent dimensions of a classifier, at least and at most.
const DIM: (usize, usize) = (16, 64);
/// Units of a classifier's hidden layers, at least and at most.
const UNITS: (usize, usize) = (128, 256);
/// Misclassified training rows are pushed to this uncertainty, gently (E9).
const CALIBRATED: Calibrated = Calibrated { least: 30.0, weight: 0.01 };
/// Units of a regression's hidden layer.
const REGRESSION_UNITS: usize = 50;

/// Bytes of flash that a model may have when nobody says otherwise.
pub const FLASH: u64 = 128 << 10;

/// What the user chose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// Codes, k.
    pub codes: Option<usize>,
    /// Latent dimensions, d.
    pub dim: Option<usize>,
    /// Passes over the training rows.
    pub epochs: Option<usize>,
}

impl Wishes {
    /// Whether one of them was made: they are about learning by gradients.
    pub const fn any(&self) -> bool {
        self.codes.is_some() || self.dim.is_some() || self.epochs.is_some()
    }
}

/// An experiment that fits the training rows.
pub fn experiment(name: &str, seed: u64, data: DataConfig, train: &Split, wishes: Wishes) -> Experiment {
    let unsaid = Experiment::unsaid(name, seed, data);
    let mut experiment = match &train.targets {
        Targets::Classes { count, .. } => classification(unsaid, train, *count, wishes.codes),
        Targets::Regression(_) => regression(unsaid, train),
    };
    let Experiment { bottleneck, codebook, training, .. } = &mut experiment;
    bottleneck.codes = wishes.codes.unwrap_or(bottleneck.codes);
    bottleneck.dim = wishes.dim.unwrap_or(bottleneck.dim);
    if let Some(epochs) = wishes.epochs {
        training.epochs = epochs;
        codebook.warmup = codebook.warmup.min(epochs.saturating_sub(1));
    }
    experiment
}

/// The nearest power of two between the limits.
fn near(value: usize, (least, most): (usize, usize)) -> usize {
    let above = value.max(1).next_power_of_two();
    let nearest = if 3 * above > 4 * value { above / 2 } else { above };
    nearest.clamp(least, most)
}

fn backbone(standardise: Standardise, units: &[usize]) -> Backbone {
    let layer = |&units: &usize| LayerConfig { units, activation: Activation::Relu, residual: None };
    let layers = units.iter().map(layer).collect();
    Backbone { standardise, initialiser: Initialiser::GlorotUniform, layers, images: None }
}

/// Epochs and mini-batches that make at least `steps` gradient steps.
fn training(rows: usize, steps: usize, input_noise: f64) -> Training {
    let batch = near(rows / BATCHES, BATCH);
    let epochs = steps.div_ceil(rows.div_ceil(batch).max(1)).max(EPOCHS);
    Training { epochs, batch, input_noise, accumulate: 1, replicas: 1, ..Training::default() }
}

/// Adam, falling to zero along half a cosine after one epoch of rise.
fn adam(learning_rate: f64) -> OptimiserConfig {
    let schedule = Schedule { warmup: 1.0, shape: ScheduleShape::Cosine, ..Schedule::default() };
    OptimiserConfig { rule: Rule::Adam, learning_rate, schedule, ..OptimiserConfig::default() }
}

fn classification(unsaid: Experiment, train: &Split, classes: usize, codes: Option<usize>) -> Experiment {
    // One code per class starts at its class; any other number has to look for clusters.
    let start = if codes.is_none_or(|codes| codes == classes) { Start::Classes } else { Start::Kmeans };
    let units = near(train.inputs.cols, UNITS);
    Experiment {
        backbone: backbone(Standardise::Shared, &[units, units]),
        bottleneck: Bottleneck {
            dim: near(classes, DIM),
            codes: classes,
            covariance: Covariance::Diagonal,
            head_bias: true,
            ..Bottleneck::default()
        },
        // Without training errors E9 changes little; with many, it finds more errors and more OOD inputs.
        objective: Objective { alpha: 1.0, beta: 1e-3, calibrated: Some(CALIBRATED), ..Objective::default() },
        codebook: CodebookConfig { start, mean_learning_rate: 0.0, warmup: 1, ..CodebookConfig::default() },
        optimiser: adam(2e-3),
        training: training(train.inputs.rows, STEPS, 1.0),
        ..unsaid
    }
}

fn regression(unsaid: Experiment, train: &Split) -> Experiment {
    let training = training(train.inputs.rows, REGRESSION_STEPS, 0.0);
    Experiment {
        backbone: backbone(Standardise::Columns, &[REGRESSION_UNITS]),
        bottleneck: Bottleneck {
            dim: 8,
            codes: 2,
            covariance: Covariance::Spectral,
            ..Bottleneck::default()
        },
        objective: Objective {
            alpha: 1.0,
            beta: 0.03,
            variance: OutputVariance::Homoscedastic,
            ..Objective::default()
        },
        codebook: CodebookConfig {
            // Both codes share nearly one covariance.
            pseudo_count: 5.0,
            mean_learning_rate: 0.0,
            warmup: training.epochs / 40 + 1,
            ..CodebookConfig::default()
        },
        optimiser: adam(5e-3),
        training,
        ..unsaid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Table, sources::features};

    fn chosen(rows: usize, cols: usize, classes: usize, wishes: Wishes) -> Experiment {
        let labels = (0..rows).map(|row| (row % classes) as u32).collect();
        let inputs = Table { rows, cols, values: vec![0.0; rows * cols] };
        let train = Split { inputs, targets: Targets::Classes { labels, count: classes } };
        let data = DataConfig::Features(features::FeaturesConfig::new("x.npy", "y.npy"));
        experiment("mine", 3, data, &train, wishes)
    }

    #[test]
    fn settings_grow_with_rows_features_and_classes() {
        let shape = |e: &Experiment| {
            (
                e.backbone.layers[0].units,
                e.bottleneck.dim,
                e.bottleneck.codes,
                e.training.batch,
                e.training.epochs,
            )
        };
        let none = Wishes::default();
        assert_eq!(shape(&chosen(45_000, 64, 10, none)), (128, 16, 10, 1024, 19));
        assert_eq!(shape(&chosen(13_500, 384, 150, none)), (256, 64, 150, 256, 16));
        assert_eq!(shape(&chosen(100, 4, 3, none)), (128, 16, 3, 32, 200));
        for experiment in [chosen(100, 4, 3, none), chosen(20, 1, 2, none)] {
            experiment.check().unwrap();
            assert_eq!(Experiment::parse(&experiment.resolved().unwrap()).unwrap(), experiment);
        }
    }

    #[test]
    fn wishes_win() {
        let wishes = Wishes { codes: Some(5), dim: Some(3), epochs: Some(1) };
        let experiment = chosen(1000, 4, 3, wishes);
        assert_eq!((experiment.bottleneck.codes, experiment.bottleneck.dim), (5, 3));
        assert_eq!((experiment.codebook.start, experiment.training.epochs), (Start::Kmeans, 1));
        experiment.check().unwrap();
    }
}
