//! Experiments on images: where they come from and how they are cut into train, held-out, test and OOD.
//!
//! ```text
//! [data] kind = "images" → ImagesConfig → ImageTask → features of an image network → Task
//! ```
//!
//! The bottleneck, the baselines and the metrics only see features: an `ImageTask` becomes a [`Task`] through
//! the network, before learning (frozen) or after it (fine-tuned).

mod cifar;
mod classes;
#[cfg(feature = "pictures")]
mod decode;
#[cfg(not(feature = "pictures"))]
#[path = "without_pictures.rs"]
mod decode;
mod folder;
pub mod pixels;
pub mod preprocess;
pub mod rand_augment;
mod resize;
pub mod sources;

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

pub use pixels::{Augment, ImageSet, Images, Normalise, Pixels};
pub use preprocess::Preprocessing;
pub use rand_augment::RandAugment;

use self::sources::{How, Read};
use super::{Description, RowNames, Split, Table, Targets, Task, split, split::HeldOutFrom};
use crate::{
    error::Error,
    support::{random::Random, settings::tenth},
};

/// Settings of an experiment on images.
///
/// A source is a file or a folder, absolute or in the data folder:
/// `file.npz:images,labels` (bytes, `n × side × side × 3`), `cifar-10-batches-bin:train`, `cifar-100-binary:test`, or a
/// folder with one folder per class. A folder of an OOD set may be a plain list of pictures.
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
    /// Class names in label order. Folders and string labels name their classes themselves: then these must be the same
    /// names, and say their order.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Bytes → inputs.
    #[serde(default)]
    pub normalise: Normalise,
    /// How training images are changed.
    #[serde(default)]
    pub augment: Augment,
    /// Height and width of what the network sees of pictures in files: its own by default, 32 for the CIFAR networks
    /// and 224 for ResNet-50.
    pub side: Option<usize>,
    /// Their shorter side before the centre is cut out: 256 before 224 for ResNet-50, otherwise `side`.
    pub resize: Option<usize>,
    /// Whether files of side × side are resized too; they are taken as they are otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always_resize: bool,
}

fn from_test() -> HeldOutFrom {
    HeldOutFrom::Test
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
    /// What the model learns from.
    pub train: Labelled,
    /// What calibrates it.
    pub held_out: Labelled,
    /// What it is measured on.
    pub test: Labelled,
    /// Images from elsewhere, by name: what it is measured on as well.
    pub ood: Vec<(String, ImageSet)>,
    /// Pictures → inputs.
    pub preprocessing: Preprocessing,
    /// Names of classes and rows, and what is odd.
    pub description: Description,
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
    /// How pictures become the network's inputs.
    #[must_use]
    pub fn preprocessing(&self) -> Preprocessing {
        let plain = Preprocessing::default();
        let side = self.side.unwrap_or(plain.side);
        let resize = self.resize.unwrap_or(if self.side.is_none() { plain.resize } else { side });
        Preprocessing { side, resize, always_resize: self.always_resize, normalise: self.normalise }
    }

    /// Refuses settings that contradict each other.
    pub(crate) fn check(&self) -> Result<()> {
        let Preprocessing { side, resize, normalise, .. } = self.preprocessing();
        ensure!(
            (0.0..1.0).contains(&self.held_out),
            "data.held_out = {}: it must be a share, 0 to below 1",
            self.held_out
        );
        ensure!(side > 0, "data.side = 0: images need pixels");
        ensure!(
            resize >= side,
            "data.resize = {resize} is less than data.side = {side}, which is cut out of it"
        );
        ensure!(
            normalise.std.iter().all(|&std| std > 0.0 && std.is_finite()),
            "data.normalise.std = {:?}: three positive numbers divide the colours",
            normalise.std
        );
        self.augment.rand.map_or(Ok(()), RandAugment::check)
    }

    /// Reads and cuts the images. The same `seed` gives the same cut.
    ///
    /// # Errors
    /// Missing or damaged files, images without labels, classes that are only tested, sizes that differ.
    pub fn load(&self, seed: u64, root: &Path) -> Result<ImageTask, Error> {
        self.read(seed, root).map_err(Error::of(Error::Data))
    }

    fn read(&self, seed: u64, root: &Path) -> Result<ImageTask> {
        self.check()?;
        let how = How { preprocessing: self.preprocessing(), augment: self.augment };
        let labelled = |source: &str| -> Result<_> {
            let Read { images, labels } = sources::read(source, root, how, true)?;
            let labels = labels.with_context(|| format!("{source} gives no labels"))?;
            let (found, given) = (images.len(), labels.len());
            ensure!(found == given, "{source}: {found} images, {given} labels");
            Ok((ImageSet::all(source, images), labels))
        };
        let ((train, train_labels), (test, test_labels)) = (labelled(&self.train)?, labelled(&self.test)?);
        let classes = self.numbered([&train_labels, &test_labels])?;
        let [train_labels, test_labels] = classes.labels;
        let train = Labelled { set: train, labels: train_labels };
        let test = Labelled { set: test, labels: test_labels };
        let cut = |whole: &Labelled| {
            let mut random = Random::new(seed, "images/held-out");
            let (kept, aside) = split::by_class(&whole.labels, self.held_out, &mut random);
            (whole.select(&kept), whole.select(&aside))
        };
        let (train, held_out, test) = self.held_out_from.cut(train, test, cut);
        let mut ood = Vec::new();
        for (name, source) in &self.ood {
            let images = sources::read(source, root, how, false)?.images;
            ood.push((name.clone(), ImageSet::all(source, images)));
        }
        let side = train.set.images.side();
        ensure!(
            self.augment.pad < side,
            "data.augment.pad = {} shifts images of {side} × {side} out of sight",
            self.augment.pad
        );
        for (name, set) in [("test", &test.set)].into_iter().chain(ood.iter().map(|(n, s)| (n.as_str(), s))) {
            let other = set.images.side();
            ensure!(other == side, "{name} has images of {other} × {other}, train of {side} × {side}");
        }
        let names = |set: &ImageSet| (0..set.len()).map(|index| set.name(index)).collect();
        let rows = RowNames {
            train: Vec::new(),
            held_out: names(&held_out.set),
            test: names(&test.set),
            ood: ood.iter().map(|(_, set)| names(set)).collect(),
        };
        let description = Description {
            output_names: classes.names,
            warnings: classes.warnings,
            rows,
            ..Description::default()
        };
        // Arrays come in a size of their own, which is not changed.
        let preprocessing = match side == how.preprocessing.side {
            true => how.preprocessing,
            false => Preprocessing { side, resize: side, ..how.preprocessing },
        };
        Ok(ImageTask { classes: classes.count, train, held_out, test, ood, preprocessing, description })
    }
}

impl ImageTask {
    /// The same task on features: `features` turns images into one row each.
    ///
    /// # Errors
    /// When an image cannot be read, or the task is one that no model can learn from.
    pub fn featured<E: From<Error>>(
        &self,
        name: &str,
        features: impl Fn(&ImageSet) -> Result<Table, E>,
    ) -> Result<Task, E> {
        let split = |part: &Labelled| -> Result<Split, E> {
            let targets = Targets::Classes { labels: part.labels.clone(), count: self.classes };
            Ok(Split { inputs: features(&part.set)?, targets })
        };
        let (train, held_out, test) = (split(&self.train)?, split(&self.held_out)?, split(&self.test)?);
        let ood = self.ood.iter().map(|(name, set)| Ok((name.clone(), features(set)?)));
        let task = Task { name: name.to_owned(), train, held_out, test, ood: ood.collect::<Result<_, E>>()? };
        task.check().map_err(Error::of(Error::Data))?;
        Ok(task)
    }
}
