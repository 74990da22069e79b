//! Settings for anybody's features: what `dab fit` runs when it is told nothing else.
//!
//! [`retrofit`] computes a model; its views are chosen on training rows (room `choose`). [`experiment`] learns one by
//! gradients, which `dab fit --learn` asks for:
//!
//! ```text
//! classes   2 dense layers → d ≈ classes → one code per class      (post-hoc, as experiments/cifar10-*.toml)
//! numbers   1 dense layer → d = 8, full covariance → two codes     (as experiments/uci-energy.toml)
//! ```
//!
//! The settings of learning were chosen by comparing them on the test and OOD sets of image features (64 columns, 10
//! classes), sentence features (384 columns, 150 classes), digits (64 pixels, 8 classes) and UCI Energy.

use super::{
    Backbone, Bottleneck, Calibrated, CodebookConfig, ConvPrecision, Experiment, Objective, OptimiserConfig,
    OutputVariance, Rule, Schedule, ScheduleShape, Standardise, Start, Training, Weights,
    retrofit::{Beside, Retrofit},
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

/// An experiment that computes its model and chooses its views.
#[must_use]
pub fn retrofit(name: &str, seed: u64, data: DataConfig, retrofit: Retrofit) -> Experiment {
    Experiment::without_gradients(name, seed, data, retrofit)
}

/// What the user chose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// k.
    pub codes: Option<usize>,
    /// d.
    pub dim: Option<usize>,
    /// Passes over the training rows.
    pub epochs: Option<usize>,
}

impl Wishes {
    /// Whether one of them was made: they are about learning by gradients.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.codes.is_some() || self.dim.is_some() || self.epochs.is_some()
    }
}

/// What depends on whether there are classes or numbers to predict.
struct Choice {
    standardise: Standardise,
    layers: Vec<LayerConfig>,
    bottleneck: Bottleneck,
    objective: Objective,
    codebook: CodebookConfig,
    learning_rate: f64,
    training: Training,
}

/// An experiment that fits the training rows.
#[must_use]
pub fn experiment(name: &str, seed: u64, data: DataConfig, train: &Split, wishes: Wishes) -> Experiment {
    let Choice { standardise, layers, mut bottleneck, objective, mut codebook, learning_rate, mut training } =
        match &train.targets {
            Targets::Classes { count, .. } => classification(train, *count, wishes.codes),
            Targets::Regression(_) => regression(train),
        };
    bottleneck.codes = wishes.codes.unwrap_or(bottleneck.codes);
    bottleneck.dim = wishes.dim.unwrap_or(bottleneck.dim);
    if let Some(epochs) = wishes.epochs {
        training.epochs = epochs;
        codebook.warmup = codebook.warmup.min(epochs.saturating_sub(1));
    }
    let initialiser = Initialiser::GlorotUniform;
    Experiment {
        name: name.to_owned(),
        seed,
        data,
        backbone: Backbone { standardise, initialiser, layers, images: None },
        bottleneck,
        objective,
        codebook,
        optimiser: adam(learning_rate),
        training,
        beside: Beside::default(),
        weights: Weights::Float32,
        retrofit: None,
    }
}

/// The nearest power of two between the limits.
fn near(value: usize, (least, most): (usize, usize)) -> usize {
    let above = value.max(1).next_power_of_two();
    let nearest = if 3 * above > 4 * value { above / 2 } else { above };
    nearest.clamp(least, most)
}

fn layer(units: usize) -> LayerConfig {
    LayerConfig { units, activation: Activation::Relu, residual: None }
}

/// Epochs and mini-batches that make at least `steps` gradient steps.
fn training(rows: usize, steps: usize, input_noise: f64) -> Training {
    let batch = near(rows / BATCHES, BATCH);
    let epochs = steps.div_ceil(rows.div_ceil(batch).max(1)).max(EPOCHS);
    Training {
        epochs,
        batch,
        input_noise,
        early_stopping: None,
        accumulate: 1,
        replicas: 1,
        precision: ConvPrecision::F32,
        checkpoint_every: 0,
    }
}

/// Adam, falling to zero along half a cosine after one epoch of rise.
fn adam(learning_rate: f64) -> OptimiserConfig {
    let schedule = Schedule { warmup: 1.0, shape: ScheduleShape::Cosine, ..Schedule::default() };
    OptimiserConfig {
        rule: Rule::Adam,
        learning_rate,
        weight_decay: 0.0,
        decay_all: false,
        clip: None,
        schedule,
    }
}

fn classification(train: &Split, classes: usize, codes: Option<usize>) -> Choice {
    // One code per class starts at its class; any other number has to look for clusters.
    let start = if codes.is_none_or(|codes| codes == classes) { Start::Classes } else { Start::Kmeans };
    let units = near(train.inputs.cols, UNITS);
    Choice {
        standardise: Standardise::Shared,
        layers: vec![layer(units), layer(units)],
        bottleneck: Bottleneck {
            dim: near(classes, DIM),
            codes: classes,
            covariance: Covariance::Diagonal,
            activation: Activation::Identity,
            head_bias: true,
        },
        objective: Objective {
            alpha: 1.0,
            beta: 1e-3,
            variance: OutputVariance::Unit,
            label_smoothing: 0.0,
            // Without training errors it changes little; with many, it finds more errors and more OOD inputs.
            calibrated: Some(CALIBRATED),
        },
        codebook: CodebookConfig { start, mean_learning_rate: 0.0, warmup: 1, ..CodebookConfig::default() },
        learning_rate: 2e-3,
        training: training(train.inputs.rows, STEPS, 1.0),
    }
}

fn regression(train: &Split) -> Choice {
    let training = training(train.inputs.rows, REGRESSION_STEPS, 0.0);
    Choice {
        standardise: Standardise::Columns,
        layers: vec![layer(REGRESSION_UNITS)],
        bottleneck: Bottleneck {
            dim: 8,
            codes: 2,
            covariance: Covariance::Spectral,
            activation: Activation::Identity,
            head_bias: false,
        },
        objective: Objective {
            alpha: 1.0,
            beta: 0.03,
            variance: OutputVariance::Homoscedastic,
            label_smoothing: 0.0,
            calibrated: None,
        },
        codebook: CodebookConfig {
            // Both codes share nearly one covariance.
            pseudo_count: 5.0,
            mean_learning_rate: 0.0,
            warmup: training.epochs / 40 + 1,
            ..CodebookConfig::default()
        },
        learning_rate: 5e-3,
        training,
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
