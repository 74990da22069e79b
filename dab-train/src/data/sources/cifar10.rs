//! Image features of a CIFAR-10 network, with SVHN, Tiny-ImageNet and CINIC as OOD.
//!
//! npz (64 columns after the average pool, f16) → `Task`; the backbone's own logits apart, for
//! baselines that deserve them.
//!
//! ```text
//! train 50 000 − held out,  test 10 000,  ood = svhn 10 000, tiny-imagenet 8 250, cinic 7 815
//! ```
//!
//! The backbone has seen every training image, so their features are more certain than a test
//! image's: a held-out part of the training images gives p-values that are too small on new images.
//! `held_out_from = "test"` gives honest ones, at the price of a smaller test set.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    data::{
        Description, Split, Table, Targets, Task,
        files::{Npz, number_classes},
        split::HeldOutFrom,
        stored,
    },
    error::Error,
    support::random::Random,
};

/// Class names in label order.
const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];
/// OOD sets: name, key in the file, and the key of a mask of rows to drop.
const OOD: [(&str, &str, Option<&str>); 3] = [
    ("svhn", "svhn", None),
    ("tiny-imagenet", "tin", Some("tin_overlaps_cifar10")),
    ("cinic", "cinic", None),
];

/// Which network made the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backbone {
    /// ResNet-56, 93.4 % accurate.
    Resnet56,
    /// The MLPerf Tiny ResNet-8, 87.2 % accurate.
    Resnet8,
}

impl Backbone {
    fn name(self) -> &'static str {
        match self {
            Self::Resnet56 => "resnet56",
            Self::Resnet8 => "resnet8",
        }
    }
}

/// Settings of the image experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cifar10Config {
    /// Which network made the features.
    pub backbone: Backbone,
    /// Where the held-out part is taken from.
    pub held_out_from: HeldOutFrom,
    /// Its share of that part.
    pub held_out: f64,
}

impl Default for Cifar10Config {
    fn default() -> Self {
        Self { backbone: Backbone::Resnet56, held_out_from: HeldOutFrom::Train, held_out: 0.1 }
    }
}

impl Cifar10Config {
    fn open(&self, root: &Path) -> Result<Npz> {
        Npz::open(&stored(root, format!("cifar10/cifar10_{}_feats_f16.npz", self.backbone.name()))?)
    }

    /// Rows that stay, and rows that are held out.
    fn cut(&self, targets: &Targets, seed: u64) -> (Vec<usize>, Vec<usize>) {
        targets.cut(self.held_out, &mut Random::new(seed, "cifar10/held-out"))
    }

    pub(crate) fn load(&self, seed: u64, root: &Path) -> Result<(Task, Description)> {
        ensure!((0.0..1.0).contains(&self.held_out), "held_out = {}: a share below 1", self.held_out);
        let mut npz = self.open(root)?;
        let train = whole(&mut npz, "train")?;
        let test = whole(&mut npz, "test")?;
        let (train, held_out, test) = self.held_out_from.cut(train, test, |whole| {
            let (kept, aside) = self.cut(&whole.targets, seed);
            (whole.select(&kept), whole.select(&aside))
        });
        let ood = ood_tables(&mut npz, "f")?;
        let task = Task { name: format!("cifar10-{}", self.backbone.name()), train, held_out, test, ood };
        let output_names = CLASSES.iter().map(ToString::to_string).collect();
        Ok((task, Description { output_names, ..Description::default() }))
    }

    /// The backbone's own logits of the rows of [`crate::data::load`]'s `test` and `ood`, same seed, same order.
    ///
    /// # Errors
    /// Missing or malformed data.
    pub fn backbone_logits(&self, seed: u64, root: &Path) -> Result<(Table, Vec<(String, Table)>), Error> {
        self.logits(seed, root).map_err(Error::of(Error::Data))
    }

    fn logits(&self, seed: u64, root: &Path) -> Result<(Table, Vec<(String, Table)>)> {
        let mut npz = self.open(root)?;
        let mut test = npz.table("logits_test")?;
        if self.held_out_from == HeldOutFrom::Test {
            test = test.select(&self.cut(&targets(&mut npz, "test")?, seed).0);
        }
        Ok((test, ood_tables(&mut npz, "logits")?))
    }
}

/// The classes of a part.
fn targets(npz: &mut Npz, part: &str) -> Result<Targets> {
    let (labels, _) = number_classes(&[npz.labels(&format!("y_{part}"))?])?;
    Ok(Targets::Classes { labels: labels.concat(), count: CLASSES.len() })
}

/// All rows of a part.
fn whole(npz: &mut Npz, part: &str) -> Result<Split> {
    Ok(Split { inputs: npz.table(&format!("f_{part}"))?, targets: targets(npz, part)? })
}

fn ood_tables(npz: &mut Npz, prefix: &str) -> Result<Vec<(String, Table)>> {
    let mut ood = Vec::new();
    for (name, key, mask) in OOD {
        let mut inputs = npz.table(&format!("{prefix}_{key}"))?;
        if let Some(mask) = mask {
            let overlaps = npz.table(mask)?;
            ensure!(overlaps.rows == inputs.rows, "{mask} does not fit {key}");
            let kept: Vec<usize> = (0..inputs.rows).filter(|&i| overlaps.values[i] == 0.0).collect();
            inputs = inputs.select(&kept);
        }
        ood.push((name.to_string(), inputs));
    }
    Ok(ood)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_features_have_their_shape() {
        let Some(root) = crate::stored::data(
            "the_stored_features_have_their_shape",
            "cifar10/cifar10_resnet8_feats_f16.npz",
        ) else {
            return;
        };
        let mut config = Cifar10Config { backbone: Backbone::Resnet8, ..Cifar10Config::default() };
        let (task, _) = config.load(0, &root).unwrap();
        task.check().unwrap();
        let rows = (task.train.inputs.rows, task.held_out.inputs.rows, task.test.inputs.rows);
        assert_eq!(rows, (45_000, 5_000, 10_000));
        assert_eq!(task.ood.iter().map(|(_, t)| t.rows).collect::<Vec<_>>(), [10_000, 8_250, 7_815]);
        config.held_out_from = HeldOutFrom::Test;
        let (task, _) = config.load(0, &root).unwrap();
        let (logits, ood) = config.backbone_logits(0, &root).unwrap();
        assert_eq!((task.train.inputs.rows, task.test.inputs.rows, logits.rows), (50_000, 9_000, 9_000));
        assert_eq!((logits.cols, ood[1].1.rows), (10, 8_250));
    }
}
