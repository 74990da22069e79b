//! `dab fit`: anybody's features in, a model out. Makes an experiment of them and runs it as `dab train` would.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use clap::ArgGroup;

use super::{input::TextArgs, train::Options};
use crate::{
    config::{defaults, retrofit::Retrofit},
    data::{
        self, DataConfig, Loaded,
        sources::features::{self, Ood},
    },
    fit::Wanted,
    learn::machines::Machines,
};

/// Learn a model from your own features
///
/// Give what enters the last layers of your network, one row per example, and one label per row. dab
/// summarises these features in codebooks and writes a model that tells familiar inputs from others
/// (unfamiliarity) and sure answers from torn ones (ambiguity), with p-values from rows that it set aside.
///
/// A file is x.npy, x.npz:key, x.csv or x.csv:column (also .csv.gz). Labels are classes: whole numbers or
/// words. Numbers to predict are given with --targets instead of --labels: then it is a regression.
/// Without --test, a fifth of each class is tested; a tenth of the rest calibrates. If your network was
/// trained on these very rows, new inputs look less familiar to it than these: features of rows that it
/// has not seen give honest p-values (--calibration).
///
/// How inputs are normalised and whitened, how many codes there are and how many views of an input are
/// joined is chosen by leaving classes out of the training rows and looking how well they are found; test
/// and OOD rows play no part in it. The file is as large as --flash allows, if that pays. Nothing is
/// trained by gradients unless --learn asks for it. The output folder holds the choice as experiment.toml,
/// which `dab train` runs again; see `dab train --help` for the other files. Files that cannot be used are
/// refused before anything is written.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("answers").required(true).args(["labels", "targets"])))]
#[command(after_help = "Examples:
  dab fit --features train.npy --labels y.npy
  dab fit --features data.npz:x --labels data.npz:y --ood noise=noise.npy --out runs/mine
  dab fit --features train.npy --labels y.npy --test test.npy --test-labels y_test.npy
  dab fit --features train.npy --labels y.npy --calibration unseen.npy   # your network was trained on train.npy
  dab fit --features train.npy --labels y.npy --head last_layer.safetensors
  dab fit --features table.csv --labels table.csv:species --flash 16K --fast
  dab fit --features table.csv --labels table.csv:species --learn --epochs 50
  dab fit --features table.csv --targets table.csv:strength --without time,other_target

  # In Python:
  #   np.save(\"train.npy\", model.features(x).numpy()); np.save(\"y.npy\", y)")]
pub struct Args {
    /// Training inputs, one row per example
    #[arg(long, value_name = "FILE")]
    features: String,
    /// Their classes: whole numbers or words
    #[arg(long, value_name = "FILE")]
    labels: Option<String>,
    /// Numbers to predict, for a regression
    #[arg(long, value_name = "FILE")]
    targets: Option<String>,
    /// Columns of CSV and Parquet files that are no inputs, separated by commas: times, numbers of devices, other targets
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    without: Vec<String>,
    /// Test inputs [default: a fifth of the training file]
    #[arg(long, value_name = "FILE", requires = "test_labels")]
    test: Option<String>,
    /// Labels (or, for a regression, targets) of the test inputs
    #[arg(long, value_name = "FILE", requires = "test", visible_alias = "test-targets")]
    test_labels: Option<String>,
    /// Inputs that your network has not seen: they calibrate in place of held-out rows; no labels needed
    #[arg(long, value_name = "FILE")]
    calibration: Option<String>,
    /// The last layer of your network, safetensors with weight [classes, inputs] and bias: it gives class and ambiguity; the
    /// outputs are its logits less their mean
    #[arg(long, value_name = "FILE", conflicts_with_all = ["learn", "targets"])]
    head: Option<PathBuf>,
    /// Bytes that the model may have: 16K, 128K, 1M, or none for no limit; not with --learn, beside whose network views have half of the
    /// default
    #[arg(long, default_value = "128K", value_name = "SIZE", conflicts_with = "learn")]
    flash: Flash,
    /// Seconds that choosing may take; then the best so far is taken. Not with --learn
    #[arg(long, value_name = "SECONDS", conflicts_with = "learn", value_parser = seconds)]
    time: Option<f64>,
    /// Choose nothing: take fixed views
    #[arg(long, conflicts_with_all = ["learn", "time"])]
    fast: bool,
    /// Learn hidden layers and codes by gradients, as `dab train` does; of classes, if hidden training rows say that this finds more
    /// strangers or predicts better than the computed model. --codes, --dim and --epochs imply it, whatever these rows say
    #[arg(long)]
    learn: bool,
    /// Inputs from elsewhere, to see how well they are found; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    ood: Vec<String>,
    /// What to call it [default: the name of the features file]
    #[arg(long)]
    name: Option<String>,
    /// With --learn: codes in the codebook [default: one per class; 2 for a regression]
    #[arg(long)]
    codes: Option<usize>,
    /// With --learn: dimensions of the latent space [default: by the number of classes]
    #[arg(long)]
    dim: Option<usize>,
    /// With --learn: passes over the training rows [default: by their number]
    #[arg(long)]
    epochs: Option<usize>,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    options: Options,
}

impl Args {
    /// Chooses the settings, trains, measures and writes.
    pub fn run(&self) -> Result<()> {
        self.options.together(|machines| self.fit(machines))
    }

    fn fit(&self, machines: Option<Arc<Machines>>) -> Result<()> {
        let device = self.options.device.open()?;
        let data = self.data()?;
        let name = data.name.clone();
        let data = DataConfig::Features(data);
        let seed = self.options.first_seed(0);
        let (task, description) = data::load_described(&data, seed, Path::new(""))?;
        // Choosing may take long: nobody else may fill the folder meanwhile.
        let taken = self.options.take_early(&name, machines.as_ref())?;
        let wishes = defaults::Wishes { codes: self.codes, dim: self.dim, epochs: self.epochs };
        let head = self.head.as_deref().map(full).transpose()?;
        let (flash, seconds, fast) = (self.flash.0, self.time, self.fast);
        let retrofit = Retrofit { flash, seconds, fast, head, views: Vec::new() };
        let told = self.options.changes_learning();
        let wanted = Wanted { learn: self.learn, told, wishes, retrofit };
        let (experiment, found) =
            wanted.experiment(&name, seed, data, &task.train, &device, &|experiment| {
                self.options.changed(experiment.table()?)
            })?;
        if machines.as_ref().is_none_or(|machines| machines.place.index == 0) {
            self.options.tell(&found.reasons);
        }
        let changed = self.options.changed(experiment.table()?)?;
        let same = (&changed.data, changed.seed) == (&experiment.data, seed);
        let first = same.then_some(Loaded::Rows(Box::new(task), description));
        self.options.run(&changed, first, taken, machines, found)
    }

    fn data(&self) -> Result<features::FeaturesConfig> {
        let given = |file: &Option<String>| file.as_deref().map(absolute).transpose();
        Ok(features::FeaturesConfig {
            name: self.name.clone().unwrap_or_else(|| stem(&self.features)),
            labels: given(&self.labels)?,
            targets: given(&self.targets)?,
            test_features: given(&self.test)?,
            test_labels: given(&self.test_labels)?,
            calibration: given(&self.calibration)?,
            without: self.without.clone(),
            ood: ood_sets(&self.ood)?,
            header: self.text.format().header,
            delimiter: self.text.format().delimiter.into(),
            ..features::FeaturesConfig::new(&absolute(&self.features)?, "")
        })
    }
}

/// The name of a file without folder and endings.
fn stem(file: &str) -> String {
    let path = data::files::FilePart::parse(file).path;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// The sets of `--ood NAME=FILE`.
pub(super) fn ood_sets(given: &[String]) -> Result<Vec<Ood>> {
    let mut ood: Vec<Ood> = Vec::new();
    for set in given {
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
    Ok(ood)
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|seconds: &f64| *seconds >= 0.0);
    number.ok_or_else(|| "a number of seconds, such as 5".to_owned())
}

/// A size of flash, or no limit.
#[derive(Clone, Copy, Debug)]
struct Flash(Option<u64>);

impl std::str::FromStr for Flash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Self(None));
        }
        let (digits, unit) = match text.trim_end_matches(['b', 'B']).char_indices().last() {
            Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
            Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
            _ => (text, 1),
        };
        let number: Option<u64> = digits.parse().ok();
        let bytes = number.and_then(|number| number.checked_mul(unit)).filter(|&bytes| bytes > 0);
        bytes.map(|bytes| Self(Some(bytes))).ok_or_else(|| "expected bytes, 16K, 1M or none".to_owned())
    }
}

/// The file (with its part) as `experiment.toml` names it: it can be run from any folder.
fn absolute(file: &str) -> Result<String> {
    let source = data::files::FilePart::parse(file);
    let path = full(&source.path)?;
    Ok(source.part.map_or(path.clone(), |part| format!("{path}:{part}")))
}

/// The path from the root of the file system.
fn full(path: &Path) -> Result<String> {
    let full =
        std::path::absolute(path).with_context(|| format!("cannot tell where {} is", path.display()))?;
    Ok(full.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_flash_are_read_as_people_write_them() {
        let bytes = |text: &str| text.parse::<Flash>().map(|flash| flash.0);
        assert_eq!(bytes("16K"), Ok(Some(16 << 10)));
        assert_eq!(bytes("128kB"), Ok(Some(128 << 10)));
        assert_eq!(bytes("1M"), Ok(Some(1 << 20)));
        assert_eq!(bytes("40000"), Ok(Some(40_000)));
        assert_eq!(bytes("none"), Ok(None));
        for wrong in ["", "K", "0", "-1", "1.5M", "big", "99999999999999999999M"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
