//! One experiment: what a file in `experiments/` says.
//!
//! TOML → `Experiment` → everything else. A misspelt name is an error, a missing one has the default stated
//! here, and the resolved experiment is written beside its results. TOML has no `None`: such a setting is left out.

mod check;
pub(crate) mod defaults;
mod optimiser;
pub mod retrofit;

use std::path::{Path, PathBuf};

use anyhow::Context;
use dab_core::artifact::writer::WeightKind;
pub use optimiser::{OptimiserConfig, Rule, Schedule, ScheduleShape};
use retrofit::{Beside, Retrofit};
use serde::{Deserialize, Serialize};

pub use crate::model::network::OutputVariance;
use crate::{
    data::DataConfig,
    error::Error,
    model::{
        activation::Activation,
        codebook::Shrinkage,
        dense::{Initialiser, LayerConfig},
        encoder::Covariance,
        resnet::Architecture,
    },
    support::settings::{is_default, is_one, one},
};

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// How reports call it.
    pub name: String,
    /// Seed of data, weights, order and noise; `--seed` overrides it.
    #[serde(default)]
    pub seed: u64,
    /// Where examples come from.
    pub data: DataConfig,
    /// Inputs → features.
    #[serde(default)]
    pub backbone: Backbone,
    /// Features → latent Gaussian, and how many codes.
    #[serde(default)]
    pub bottleneck: Bottleneck,
    /// What learning minimises (E8 and E9 of docs/method.md).
    #[serde(default)]
    pub objective: Objective,
    /// How codes start and are updated (E10–E13).
    #[serde(default)]
    pub codebook: CodebookConfig,
    /// The network's gradient steps.
    #[serde(default)]
    pub optimiser: OptimiserConfig,
    /// The epochs.
    #[serde(default)]
    pub training: Training,
    /// Views of the inputs beside the network that learns.
    #[serde(default, skip_serializing_if = "Beside::is_empty")]
    pub beside: Beside,
    /// How the file stores weights of dense layers and heads. Without: floats; a model that is computed takes bytes where its
    /// flash would otherwise leave axes out.
    pub weights: Option<Weights>,
    /// A model without gradients, in place of all that is said from `backbone` on.
    pub retrofit: Option<Retrofit>,
}

/// How a file stores the weights of dense layers and heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Four bytes each.
    #[default]
    Float32,
    /// One byte each, and a scale for each row: a quarter of the flash.
    Int8,
}

impl Weights {
    /// As the artifact's writer takes it.
    #[must_use]
    pub const fn kind(self) -> WeightKind {
        match self {
            Self::Float32 => WeightKind::Float32,
            Self::Int8 => WeightKind::Int8,
        }
    }
}

/// What only learning by gradients has: a retrofit writes and reads none of it.
pub(crate) const LEARNING: [&str; 6] =
    ["backbone", "bottleneck", "objective", "codebook", "optimiser", "training"];

/// Dense layers before the bottleneck. None for post-hoc use on given features.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backbone {
    /// Standardise each input column by the training examples' mean and standard deviation.
    pub standardise: Standardise,
    /// How weights start (head and decoder too).
    pub initialiser: Initialiser,
    /// The layers, first one first.
    pub layers: Vec<LayerConfig>,
    /// Images only: what comes before the layers. The artifact begins at its features.
    pub images: Option<ImageBackbone>,
}

/// A network on images, up to its pooled features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageBackbone {
    /// Which network.
    pub network: Architecture,
    /// Its numbers: a PyTorch (.pth, .pt, .th) or safetensors file, absolute or in the data folder. Random without.
    pub weights: Option<PathBuf>,
    /// Whether it stays as it is: its features are then computed once.
    #[serde(default)]
    pub frozen: bool,
    /// Its learning rate, as a share of the others': below 1, a pretrained network changes less than what is new after it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub rate_share: f64,
}

/// What happens to inputs before the first layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standardise {
    /// Nothing.
    None,
    /// Each column to mean 0 and variance 1.
    #[default]
    Columns,
    /// Each column to mean 0, all of them divided by one number: keeps the columns' relative size.
    Shared,
}

/// The latent space. It has no default size: an experiment that learns states it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Its dimensions, d.
    pub dim: usize,
    /// Codes in it, k.
    pub codes: usize,
    /// How the head describes the covariance of an input: E1, E2 or E3.
    #[serde(default)]
    pub covariance: Covariance,
    /// What is applied to the features before the head.
    #[serde(default)]
    pub activation: Activation,
    /// Whether the head has a bias; the published ones have none.
    #[serde(default)]
    pub head_bias: bool,
}

/// What learning minimises (E8, E9), and the temperature of E5. An experiment that learns states α and β.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// α: the assignment's temperature, and a factor of the distortion's weight.
    pub alpha: f64,
    /// β: the distortion's weight is αβ.
    pub beta: f64,
    /// Regression only.
    #[serde(default)]
    pub variance: OutputVariance,
    /// Classification only: the share of probability spread over all classes in the targets.
    #[serde(default)]
    pub label_smoothing: f64,
    /// The calibrated variant, E9, when present.
    pub calibrated: Option<Calibrated>,
}

/// E9: misclassified training examples are pushed away from the codes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Calibrated {
    /// U_lb: the least uncertainty, in nats, that a misclassified example should have.
    pub least: f64,
    /// Weight of the hinge; 1 in the paper.
    pub weight: f64,
}

impl Default for Calibrated {
    fn default() -> Self {
        Self { least: 100.0, weight: 1.0 }
    }
}

/// How the covariances of codes are averaged: the two forms of E13.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Sums over the whole pass.
    #[default]
    Exact,
    /// Moving averages without bias correction, as the published code has them.
    Reference,
}

/// Where codes start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Means N(0, 0.1²), covariances identity: the published start.
    Normal,
    /// k-means++ on the encodings after `warmup` epochs, each code with its cluster's moments.
    #[default]
    Kmeans,
    /// One code per class (k = classes), with the class's moments, after `warmup` epochs.
    Classes,
    /// As a model without gradients: head, codes and decoder are computed from the training rows, hidden layers begin as the
    /// identity. Of rows with classes.
    Retrofit,
}

/// How codes start and are updated in every epoch (E10–E13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodebookConfig {
    /// How covariances are averaged (E13).
    pub mode: Mode,
    /// Momentum γ of the moving averages; `reference` only.
    pub momentum: f64,
    /// Pseudo-count c of E11; 5 in the published code.
    pub pseudo_count: f64,
    /// How far each covariance is drawn towards the codes' common one, 0 to 1 (Shrinkage).
    pub pooled: f64,
    /// Added to each variance, relative to the code's mean variance.
    pub ridge: f64,
    /// The least prior, as a share of an equal one.
    pub prior_floor: f64,
    /// Learning rate of the code means' Adam; 0 puts each mean at its examples' weighted mean (E10's minimum).
    pub mean_learning_rate: f64,
    /// Where codes start.
    pub start: Start,
    /// Epochs of the network alone (no distortion term) before `kmeans` or `classes` start the codes.
    pub warmup: usize,
    /// α rises from this share of itself to itself over `anneal` epochs after the start.
    pub anneal_from: f64,
    /// Epochs of that rise.
    pub anneal: usize,
    /// A code whose prior falls below this share of an equal one starts again at a far example.
    pub reseed_below: f64,
    /// No re-seeding in the last part of training, from this share of the epochs on.
    pub reseed_until: f64,
}

impl Default for CodebookConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Exact,
            momentum: 0.99,
            pseudo_count: 0.0,
            pooled: 0.0,
            ridge: 1e-5,
            prior_floor: 1e-3,
            mean_learning_rate: 1e-2,
            start: Start::Kmeans,
            warmup: 1,
            anneal_from: 1.0,
            anneal: 0,
            reseed_below: 0.02,
            reseed_until: 0.5,
        }
    }
}

impl CodebookConfig {
    /// How covariances are drawn together.
    #[must_use]
    pub fn shrinkage(&self) -> Shrinkage {
        Shrinkage { pooled: self.pooled, ridge: self.ridge }
    }
}

/// The epochs. An experiment that learns states how many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// How many there are.
    pub epochs: usize,
    /// Examples a step; 0 takes all.
    #[serde(default)]
    pub batch: usize,
    /// Standard deviation of noise added to the standardised inputs in step 1.
    #[serde(default)]
    pub input_noise: f64,
    /// Stops early, when present, as in `early_stopping = { patience = 20, share = 0.1 }`.
    pub early_stopping: Option<EarlyStopping>,
    /// Parts of a mini-batch that one device computes one after the other: less memory, the same gradient.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub accumulate: usize,
    /// Devices that share a mini-batch: this many GPUs from the chosen one on, or as many threads on a CPU.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replicas: usize,
    /// Whether the norms of an image network use the statistics of the whole mini-batch, not of a replica's part.
    #[serde(default, skip_serializing_if = "is_default")]
    pub synchronised_norms: bool,
    /// In which an image network's convolutions multiply; everything else stays f32.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precision: ConvPrecision,
    /// Epochs between checkpoints; 0 for one at the end only.
    #[serde(default)]
    pub checkpoint_every: usize,
}

impl Training {
    /// Examples a step, of so many in all.
    pub(crate) fn batch_of(&self, examples: usize) -> usize {
        if self.batch == 0 { examples } else { self.batch }
    }
}

/// How precisely convolutions multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConvPrecision {
    /// 24 bits, range 1e±38.
    #[default]
    F32,
    /// 11 bits, the same range, on the matrix units of NVIDIA's GPUs from sm_80 on; other devices refuse it.
    Tf32,
    /// 8 bits, the same range: no scaling of the loss is needed.
    Bf16,
    /// 11 bits, range 6e-8 … 6e4: the loss is scaled, and steps whose gradients overflow are skipped.
    F16,
}

/// Training ends when the loss on a part of the training examples, set aside, no longer falls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table of two numbers in training.early_stopping, as in { patience = 20, share = 0.1 }: stop after 20 epochs \
                 without a better loss on a tenth of the training rows, which are set aside"
)]
pub struct EarlyStopping {
    /// Epochs without a new minimum.
    pub patience: usize,
    /// The part set aside.
    pub share: f64,
}

impl Experiment {
    /// Reads and checks an experiment file.
    ///
    /// # Errors
    /// When the file cannot be read, is not such a TOML, or contradicts itself.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = crate::support::limits::read_text(path)
            .with_context(|| format!("cannot read {}", path.display()))
            .map_err(Error::of(Error::Experiment))?;
        Self::parse(&text)
            .with_context(|| format!("{} is not an experiment", path.display()))
            .map_err(Error::of(Error::Experiment))
    }

    /// Parses and checks an experiment.
    ///
    /// # Errors
    /// As [`Experiment::read`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut experiment: Self = toml::from_str(text).map_err(|error| Error::Experiment(error.into()))?;
        // Pictures get the size that the image network was made for, unless the file says another.
        if let (DataConfig::Images(data), Some(images)) = (&mut experiment.data, &experiment.backbone.images)
        {
            let side = *data.side.get_or_insert(images.network.side());
            data.resize.get_or_insert(images.network.resize(side));
        }
        experiment.check()?;
        Ok(experiment)
    }

    /// An experiment that computes its model.
    #[must_use]
    pub fn without_gradients(name: &str, seed: u64, data: DataConfig, retrofit: Retrofit) -> Self {
        Self { retrofit: Some(retrofit), ..Self::unsaid(name, seed, data) }
    }

    /// The network's learning rate after so many epochs; a part of one counts.
    pub(crate) fn rate_at(&self, epoch: f64) -> f64 {
        self.optimiser.learning_rate * self.optimiser.schedule.factor_at(epoch, self.training.epochs as f64)
    }

    /// An experiment that says nothing about how a model is made.
    fn unsaid(name: &str, seed: u64, data: DataConfig) -> Self {
        Self {
            name: name.to_owned(),
            seed,
            data,
            backbone: Backbone::default(),
            bottleneck: Bottleneck::default(),
            objective: Objective::default(),
            codebook: CodebookConfig::default(),
            optimiser: OptimiserConfig::default(),
            training: Training::default(),
            beside: Beside::default(),
            weights: None,
            retrofit: None,
        }
    }

    /// The experiment as TOML, every default spelt out.
    ///
    /// # Errors
    /// When a number does not fit TOML.
    pub fn resolved(&self) -> Result<String, Error> {
        toml::to_string_pretty(&self.table()?).map_err(|error| Error::Experiment(error.into()))
    }

    /// The same as a table: of a retrofit, without what only learning has.
    ///
    /// # Errors
    /// As [`Experiment::resolved`].
    pub fn table(&self) -> Result<toml::Table, Error> {
        let mut table = toml::Table::try_from(self).map_err(|error| Error::Experiment(error.into()))?;
        if self.retrofit.is_some() {
            LEARNING.iter().for_each(|part| drop(table.remove(*part)));
        }
        Ok(table)
    }
}
