//! Data sets that experiments name: where they come from, how they are made, and whether the files here are the right ones.
//!
//! ```text
//! known name → folder of the data folder, its files, and for each file what must hold: a `Check`
//! ```
//!
//! Files that everybody downloads have the digest of their bytes. Files that a script makes do not: zip and gzip depend on
//! the library that packs them, and features on the order of float sums. So a check looks at what they hold.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use anyhow::{Result, ensure};
use flate2::read::MultiGzDecoder;
use md5::Md5;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::files::Npz;
use crate::support::digest;

/// A feature computed anew is within this of ours, of the larger of itself and 1: half precision rounds at 5e-4.
const CLOSE: f32 = 2e-3;

/// The sets that `dab data` knows, with the experiments' own first.
///
/// # Panics
/// Never: a test reads the file that is compiled in.
pub static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Sets {
        set: Vec<Known>,
    }
    toml::from_str::<Sets>(include_str!("../../experiments/prepare/sets.toml")).expect("a list of sets").set
});

/// A published set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What `dab data` calls it.
    pub name: String,
    /// What it holds, and for which experiments.
    pub about: String,
    /// Sets that must be here before.
    #[serde(default)]
    pub after: Vec<String>,
    /// Commands that bring it here, typed in the top folder of the repository; `DATA` stands for the data folder.
    pub steps: Vec<String>,
    /// Its terms, and what else there is to know.
    #[serde(default)]
    pub note: String,
    /// In the data folder.
    pub folder: String,
    /// Its files and what must hold for them; none for folders of images.
    #[serde(default)]
    pub files: BTreeMap<String, Check>,
    /// What there is to learn from, where experiments name it as a source of images.
    pub images: Option<Published>,
}

/// The size of a set of images, as published.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Images to learn from; 0 where there are none.
    pub count: usize,
    /// Their height and width.
    pub side: usize,
    /// Their classes.
    pub classes: usize,
}

/// What must hold for a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// The MD5 of its bytes, as the publisher states it.
    Md5(String),
    /// The SHA-256 of its bytes.
    Sha256(String),
    /// The SHA-256 of what gzip unpacks it to.
    Unpacked(String),
    /// What its arrays hold (npz).
    Arrays(BTreeMap<String, Array>),
}

/// What must hold for an array.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Array {
    /// The SHA-256 of its values' bytes.
    pub sha256: Option<String>,
    /// How many rows it has.
    pub rows: Option<usize>,
    /// What its last row begins with, up to rounding.
    pub last: Vec<f32>,
}

/// How a set stands on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Every file is there and passes its check.
    Verified,
    /// The folder is there; there is nothing to compare.
    There,
    /// This file (or the folder) is not there.
    Missing(PathBuf),
    /// This file is there but another one: what differs.
    Differs(PathBuf, String),
}

impl Known {
    /// The set of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The set that a path in the data folder belongs to, such as `svhn/test_32x32.mat` or `imagenet/train`. Several
    /// sets may share a folder: then the file decides.
    pub fn of_path(path: &Path) -> Option<&'static Self> {
        let holds = |known: &&Known| {
            path.strip_prefix(&known.folder).is_ok_and(|rest| {
                let whole = rest.as_os_str().is_empty() || known.files.is_empty();
                whole || known.files.keys().any(|file| rest == Path::new(file))
            })
        };
        KNOWN.iter().find(holds)
    }

    /// Looks at the set's files in the data folder `root`. A file that cannot be read differs.
    pub fn state(&self, root: &Path) -> State {
        let folder = root.join(&self.folder);
        if !folder.is_dir() {
            return State::Missing(folder);
        }
        if let Some(file) = self.files.keys().find(|file| !folder.join(file).is_file()) {
            return State::Missing(folder.join(file));
        }
        for (file, check) in &self.files {
            let path = folder.join(file);
            let difference = check.difference(&path).unwrap_or_else(|error| Some(format!("{error:#}")));
            if let Some(difference) = difference {
                return State::Differs(path, difference);
            }
        }
        if self.files.is_empty() { State::There } else { State::Verified }
    }
}

impl Check {
    /// What is wrong with the file, if anything.
    fn difference(&self, path: &Path) -> Result<Option<String>> {
        let (name, wanted, found) = match self {
            Self::Md5(wanted) => ("MD5", wanted, digest::of_file::<Md5>(path)?),
            Self::Sha256(wanted) => ("SHA-256", wanted, digest::of_file::<Sha256>(path)?),
            Self::Unpacked(wanted) => {
                let found = digest::of::<Sha256, _>(path, MultiGzDecoder::new)?;
                ("SHA-256 of the unpacked text", wanted, found)
            }
            Self::Arrays(arrays) => {
                let mut npz = Npz::open(path)?;
                for (key, array) in arrays {
                    if let Some(difference) = array.difference(&mut npz, key)? {
                        return Ok(Some(format!("{key}: {difference}")));
                    }
                }
                return Ok(None);
            }
        };
        Ok((found != *wanted).then(|| format!("{name} is {found}, expected {wanted}")))
    }
}

impl Array {
    fn difference(&self, npz: &mut Npz, key: &str) -> Result<Option<String>> {
        if let Some(wanted) = &self.sha256 {
            let found = digest::hex(Sha256::new_with_prefix(npz.values(key)?));
            if found != *wanted {
                return Ok(Some(format!("SHA-256 of the values is {found}, expected {wanted}")));
            }
        }
        let Some(rows) = self.rows else { return Ok(None) };
        let table = npz.table(key)?;
        if table.rows != rows {
            return Ok(Some(format!("{} rows, expected {rows}", table.rows)));
        }
        let wanted = self.last.as_slice();
        ensure!(table.cols >= wanted.len(), "{key} has {} columns only", table.cols);
        let last = &table.row(rows - 1)[..wanted.len()];
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= CLOSE * b.abs().max(1.0);
        let equal = last.iter().zip(wanted).all(close);
        Ok((!equal).then(|| format!("the last row begins with {last:?}, expected {wanted:?}")))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write};

    use super::*;
    use crate::data::files::tests::write_npz;

    #[test]
    fn a_missing_and_a_wrong_file_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let svhn = Known::named("svhn").unwrap();
        assert_eq!(svhn.state(root), State::Missing(root.join("svhn")));
        std::fs::create_dir_all(root.join("svhn")).unwrap();
        let file = root.join("svhn/test_32x32.mat");
        assert_eq!(svhn.state(root), State::Missing(file.clone()));
        std::fs::write(&file, b"abc").unwrap();
        std::fs::write(root.join("svhn/test_32x32.npz"), b"").unwrap();
        let State::Differs(path, what) = svhn.state(root) else { panic!("another file") };
        assert!(path == file && what.starts_with("MD5 is 900150983cd24fb0d6963f7d28e17f72, "), "{what}");
    }

    #[test]
    fn a_packed_text_is_known_by_what_it_holds() {
        const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let folder = tempfile::tempdir().unwrap();
        for level in [0, 9] {
            let path = folder.path().join(format!("{level}.gz"));
            let file = File::create(&path).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::new(level));
            packed.write_all(b"abc").unwrap();
            packed.finish().unwrap();
            assert_eq!(Check::Unpacked(ABC.into()).difference(&path).unwrap(), None);
            assert!(Check::Sha256(ABC.into()).difference(&path).unwrap().unwrap().starts_with("SHA-256 is "));
        }
    }

    #[test]
    fn features_may_differ_by_their_rounding_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        write_npz(&path, &[("x", &[2, 4], &[9.0, 9.0, 9.0, 9.0, 0.5, 1.0, 2.0, 9.0])]);
        let difference = |rows, last: [f32; 3]| {
            let array = Array { rows: Some(rows), last: last.to_vec(), sha256: None };
            array.difference(&mut Npz::open(&path).unwrap(), "x").unwrap()
        };
        assert_eq!(difference(2, [0.501, 0.999, 2.001]), None);
        assert!(difference(2, [0.51, 1.0, 2.0]).unwrap().contains("0.5, 1.0, 2.0"));
        assert!(difference(3, [0.5, 1.0, 2.0]).unwrap().contains("2 rows, expected 3"));
    }

    #[test]
    fn paths_belong_to_sets() {
        let name = |path: &str| Known::of_path(Path::new(path)).map(|known| known.name.as_str());
        assert_eq!(name("cifar-100-binary"), Some("cifar100"));
        assert_eq!(name("svhn/test_32x32.npz"), Some("svhn"));
        assert_eq!(name("imagenet/train"), Some("imagenet"));
        assert_eq!(name("imagenet-o"), Some("imagenet-o"));
        assert_eq!(name("uci/energy_efficiency.csv.gz"), Some("uci"));
        assert_eq!(name("cifar10/resnet20-12fca82f.th"), Some("cifar10-resnets"));
        assert_eq!(name("cifar10/cifar10_resnet8_feats_f16.npz"), Some("cifar10-resnet8"));
        assert_eq!(name("cifar10/own.npz"), None);
    }
}
