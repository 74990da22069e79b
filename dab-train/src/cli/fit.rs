//! `dab fit`: anybody's features in, a model out. Chooses an experiment and runs it as `dab train` would.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::train::Options;
use crate::{
    config::defaults,
    data::{
        self, DataConfig, Loaded,
        sources::features::{self, Ood},
    },
};

/// Learn a model from your own features
///
/// Give what enters the last layers of your network, one row per example, and one label per row. dab
/// learns a codebook of these features and writes a model that tells familiar inputs from others, with
/// p-values from rows that it set aside.
///
/// A file is x.npy, x.npz:key, x.csv or x.csv:column (also .csv.gz). Labels are classes: whole numbers or
/// words. Numbers to predict are given with --targets instead of --labels: then it is a regression.
/// Without --test, a fifth of each class is tested; a tenth of the rest calibrates. If your network was
/// trained on these very rows, new inputs look less familiar to it than these: features of rows that it
/// has not seen give honest p-values.
///
/// Settings follow from the number of rows, features and classes. The output folder holds them as
/// experiment.toml, which `dab train` runs again; see `dab train --help` for the other files. Files that
/// cannot be used are refused before anything is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab fit --features train.npy --labels y.npy
  dab fit --features data.npz:x --labels data.npz:y --ood noise=noise.npy --out runs/mine
  dab fit --features train.npy --labels y.npy --test test.npy --test-labels y_test.npy
  dab fit --features table.csv --labels table.csv:species --epochs 50
  dab fit --features table.csv --targets table.csv:strength

  # In Python:
  #   np.save(\"train.npy\", model.features(x).numpy()); np.save(\"y.npy\", y)")]
pub struct Args {
    /// Training inputs, one row per example
    #[arg(long, value_name = "FILE")]
    features: String,
    /// Their classes: whole numbers or words
    #[arg(long, value_name = "FILE", required_unless_present = "targets", conflicts_with = "targets")]
    labels: Option<String>,
    /// Numbers to predict, for a regression
    #[arg(long, value_name = "FILE")]
    targets: Option<String>,
    /// Test inputs [default: a fifth of the training file]
    #[arg(long, value_name = "FILE", requires = "test_labels")]
    test: Option<String>,
    /// Labels (or, for a regression, targets) of the test inputs
    #[arg(long, value_name = "FILE", requires = "test", visible_alias = "test-targets")]
    test_labels: Option<String>,
    /// Inputs from elsewhere, to see how well they are found; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    ood: Vec<String>,
    /// What to call it [default: the name of the features file]
    #[arg(long)]
    name: Option<String>,
    /// Codes in the codebook [default: one per class; 2 for a regression]
    #[arg(long)]
    codes: Option<usize>,
    /// Dimensions of the latent space [default: by the number of classes]
    #[arg(long)]
    dim: Option<usize>,
    /// Passes over the training rows [default: by their number]
    #[arg(long)]
    epochs: Option<usize>,
    #[command(flatten)]
    options: Options,
}

impl Args {
    /// Chooses the settings, trains, measures and writes.
    ///
    /// # Errors
    /// When a file cannot be used, or as `dab train`.
    pub fn run(&self) -> Result<()> {
        self.options.device.open()?;
        let data = self.data()?;
        let name = data.name.clone();
        let data = DataConfig::Features(data);
        let seed = self.options.first_seed(0);
        let (task, description) = data::load_described(&data, seed, Path::new(""))?;
        let wishes = defaults::Wishes { codes: self.codes, dim: self.dim, epochs: self.epochs };
        let experiment = defaults::experiment(&name, seed, data, &task.train, wishes);
        let table = toml::Table::try_from(&experiment).context("the experiment does not fit TOML")?;
        let changed = self.options.changed(table)?;
        let same = (&changed.data, changed.seed) == (&experiment.data, seed);
        self.options.run(&changed, same.then_some(Loaded::Rows(Box::new(task), description)))
    }

    fn data(&self) -> Result<features::FeaturesConfig> {
        let given = |file: &Option<String>| file.as_deref().map(absolute).transpose();
        let stem = |file: &str| {
            let path = data::files::FilePart::parse(file).path;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.split('.').next().unwrap_or_default().to_owned()
        };
        let mut ood: Vec<Ood> = Vec::new();
        for set in &self.ood {
            let (name, file) = match set.split_once('=') {
                Some((name, file)) => (name.to_owned(), file),
                None => (stem(set), set.as_str()),
            };
            ensure!(!name.is_empty() && !file.is_empty(), "--ood {set}: expected NAME=FILE");
            let taken = ["test", "held_out", "held-out"].contains(&name.as_str());
            ensure!(
                !taken && ood.iter().all(|other| other.name != name),
                "--ood {set}: the name {name} is taken, choose another"
            );
            ood.push(Ood { name, file: absolute(file)? });
        }
        Ok(features::FeaturesConfig {
            name: self.name.clone().unwrap_or_else(|| stem(&self.features)),
            labels: given(&self.labels)?,
            targets: given(&self.targets)?,
            test_features: given(&self.test)?,
            test_labels: given(&self.test_labels)?,
            ood,
            ..features::FeaturesConfig::new(&absolute(&self.features)?, "")
        })
    }
}

/// The file (with its part) as `experiment.toml` names it: it can be run from any folder.
fn absolute(file: &str) -> Result<String> {
    let at = |path: PathBuf| {
        std::path::absolute(&path).with_context(|| format!("cannot tell where {} is", path.display()))
    };
    let source = data::files::FilePart::parse(file);
    let path = at(source.path)?.to_string_lossy().into_owned();
    Ok(source.part.map_or(path.clone(), |part| format!("{path}:{part}")))
}
