//! Experiments on images: where they come from and how they are cut into train, held-out, test and OOD.
//!
//! ```text
//! [data] kind = "images" → ImagesConfig → ImageTask → features of an image network → Task
//! ```
//!
//! The bottleneck, the baselines and the metrics only see features: an `ImageTask` becomes a [`Task`] through
//! the network, before learning (frozen) or after it (fine-tuned).

mod cifar;
#[cfg(feature = "pictures")]
mod folder;
pub mod pixels;
pub mod rand_augment;
mod sources;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

pub use pixels::{Augment, ImageSet, Images, Normalise, Pixels};
pub use rand_augment::RandAugment;

use self::sources::Read;
use super::{Split, Table, Targets, Task, split, split::HeldOutFrom};
use crate::support::random::Random;

/// Settings of an experiment on images.
///
/// A source is a file or a folder, absolute or in the data folder:
/// `file.npz:images,labels` (bytes, `n × side × side × 3`), `cifar-10-batches-bin:train`, `cifar-100-binary:test`, or a
/// folder with one folder per class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagesConfig {
    /// What is learnt from.
    pub train: String,
    /// What is measured on.
    pub test: String,
    /// What is told from it, by name; labels are not needed.
    #[serde(default)]
    pub ood: BTreeMap<String, String>,
    /// Which of the two gives the held-out part; training images that a pretrained network has seen are no honest one.
    #[serde(default = "from_test")]
    pub held_out_from: HeldOutFrom,
    /// Its share of that part.
    #[serde(default = "tenth")]
    pub held_out: f64,
    /// Class names in label order.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Bytes → inputs.
    #[serde(default)]
    pub normalise: Normalise,
    /// How training images are changed.
    #[serde(default)]
    pub augment: Augment,
    /// Height and width of images from folders.
    #[serde(default = "imagenet_side")]
    pub side: usize,
}

fn from_test() -> HeldOutFrom {
    HeldOutFrom::Test
}

fn tenth() -> f64 {
    0.1
}

fn imagenet_side() -> usize {
    224
}

/// Images and their classes.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The images.
    pub set: ImageSet,
    /// One per image, below the task's `classes`.
    pub labels: Vec<u32>,
}

/// A [`Task`] whose inputs are still images.
#[derive(Clone, Debug)]
pub struct ImageTask {
    /// How many classes there are.
    pub classes: usize,
    /// Learns.
    pub train: Labelled,
    /// Calibrates.
    pub held_out: Labelled,
    /// Is measured.
    pub test: Labelled,
    /// Is measured, by name.
    pub ood: Vec<(String, ImageSet)>,
    /// Bytes → inputs.
    pub normalise: Normalise,
}

impl Labelled {
    /// The images at `indices`.
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let labels = indices.iter().map(|&index| self.labels[index]).collect();
        Self { set: self.set.select(indices), labels }
    }
}

impl ImagesConfig {
    /// Reads and cuts the images. The same `seed` gives the same cut.
    ///
    /// # Errors
    /// Missing or damaged files, images without labels, sizes that differ.
    pub fn load(&self, seed: u64, root: &Path) -> Result<ImageTask> {
        ensure!((0.0..1.0).contains(&self.held_out), "held_out = {}: a share below 1", self.held_out);
        if let Some(rand) = self.augment.rand {
            rand.check()?;
        }
        let labelled = |source: &str| -> Result<(Labelled, Vec<String>)> {
            let Read { images, labels, names } = sources::read(source, root, self)?;
            let labels = labels.with_context(|| format!("{source} gives no labels"))?;
            let (found, given) = (images.len(), labels.len());
            ensure!(found == given, "{source}: {found} images, {given} labels");
            Ok((Labelled { set: ImageSet::all(source, images), labels }, names))
        };
        let ((train, names), (test, others)) = (labelled(&self.train)?, labelled(&self.test)?);
        let differs = names.iter().zip(&others).find(|(own, other)| own != other);
        ensure!(
            differs.is_none() && names.len() == others.len(),
            "{} and {} have different classes{}",
            self.train,
            self.test,
            differs.map_or(String::new(), |(own, other)| format!(": {own} and {other}"))
        );
        let classes = 1 + train.labels.iter().max().map_or(0, |&label| label as usize);
        if let Some(label) = test.labels.iter().find(|&&label| label as usize >= classes) {
            bail!("{} has class {label}, {} has classes 0 to {}", self.test, self.train, classes - 1);
        }
        let cut = |whole: &Labelled| {
            let mut random = Random::new(seed, "images/held-out");
            let (kept, aside) = split::by_class(&whole.labels, self.held_out, &mut random);
            (whole.select(&kept), whole.select(&aside))
        };
        let (train, held_out, test) = match self.held_out_from {
            HeldOutFrom::Train => {
                let (kept, aside) = cut(&train);
                (kept, aside, test)
            }
            HeldOutFrom::Test => {
                let (kept, aside) = cut(&test);
                (train, aside, kept)
            }
        };
        let mut ood = Vec::new();
        for (name, source) in &self.ood {
            let images = sources::read(source, root, self)?.images;
            ood.push((name.clone(), ImageSet::all(source, images)));
        }
        let side = train.set.images.side();
        for (name, set) in [("test", &test.set)].into_iter().chain(ood.iter().map(|(n, s)| (n.as_str(), s))) {
            let other = set.images.side();
            ensure!(other == side, "{name} has images of {other} × {other}, train of {side} × {side}");
        }
        Ok(ImageTask { classes, train, held_out, test, ood, normalise: self.normalise })
    }
}

impl ImageTask {
    /// The same task on features: `features` turns images into one row each.
    ///
    /// # Errors
    /// When an image cannot be read, or the task is one that no model can learn from.
    pub fn featured(&self, name: &str, features: impl Fn(&ImageSet) -> Result<Table>) -> Result<Task> {
        let split = |part: &Labelled| -> Result<Split> {
            let targets = Targets::Classes { labels: part.labels.clone(), count: self.classes };
            Ok(Split { inputs: features(&part.set)?, targets })
        };
        let (train, held_out, test) = (split(&self.train)?, split(&self.held_out)?, split(&self.test)?);
        let ood = self.ood.iter().map(|(name, set)| Ok((name.clone(), features(set)?)));
        let task = Task { name: name.to_owned(), train, held_out, test, ood: ood.collect::<Result<_>>()? };
        task.check()?;
        Ok(task)
    }
}
