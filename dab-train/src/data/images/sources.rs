//! What a source of images names: which format, and its reader.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, bail, ensure};

pub use super::folder::is_picture;
use super::{
    Augment, Images, Pixels, Preprocessing, cifar,
    folder::{self, ENDINGS_IN_WORDS, Folder},
};
use crate::data::{
    files::{Labels, Npz},
    stored,
};

/// What a source holds.
pub struct Read {
    /// In the order of the source.
    pub images: Arc<dyn Images>,
    /// One per image, where there are any: numbers, or the names of folders and string labels.
    pub labels: Option<Labels>,
}

/// How images are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// What happens to a picture in a file before the network sees it.
    pub preprocessing: Preprocessing,
    /// How images are changed while a network learns from them.
    pub augment: Augment,
}

/// Reads `source`, in the data folder `root` unless it is absolute; a folder of pictures has one folder per class if
/// `labelled`, and is a plain list of pictures otherwise.
pub fn read(source: &str, root: &Path, how: How, labelled: bool) -> Result<Read> {
    let (path, part) = split(source, root);
    let path = stored(root, path)?;
    let npz = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"));
    match part {
        _ if npz => arrays(&path, part, how.augment),
        Some(part) if path.is_dir() => binary_cifar(&path, part, how.augment),
        None if path.is_dir() && labelled => {
            let (files, labels) = folder::classes(&path)?;
            Ok(Read { labels: Some(Labels::Words(labels)), ..pictures(files, how) })
        }
        None if path.is_dir() => {
            let files = folder::pictures(&path)?;
            ensure!(!files.is_empty(), "{} holds no {ENDINGS_IN_WORDS} file", path.display());
            Ok(pictures(files, how))
        }
        None if !labelled && is_picture(&path) => Ok(pictures(vec![path], how)),
        _ => bail!(
            "{source}: expected an npz file, a folder of CIFAR's binary version, or a folder of {}",
            if labelled { "class folders" } else { "pictures" }
        ),
    }
}

/// `path` or `path:part`. A name with a colon in it that exists is a path.
fn split<'a>(source: &'a str, root: &Path) -> (&'a str, Option<&'a str>) {
    match source.rsplit_once(':') {
        Some((path, part)) if !root.join(source).exists() && !Path::new(source).exists() => {
            (path, Some(part))
        }
        _ => (source, None),
    }
}

/// Files of pictures, in this order.
pub fn pictures(files: Vec<PathBuf>, how: How) -> Read {
    let images = Arc::new(Folder::new(files, how.preprocessing, how.augment));
    Read { images, labels: None }
}

fn binary_cifar(path: &Path, part: &str, augment: Augment) -> Result<Read> {
    let (bytes, labels) = cifar::read(path, part)?;
    let images = Arc::new(Pixels::planar(cifar::SIDE, bytes, augment));
    Ok(Read { images, labels: Some(Labels::Numbers(labels.into_iter().map(i64::from).collect())) })
}

/// `images` or `images,labels` of an npz file.
fn arrays(path: &Path, part: Option<&str>, augment: Augment) -> Result<Read> {
    let mut npz = Npz::open(path)?;
    let (images, labels) = match part {
        Some(part) => part.split_once(',').map_or((part, None), |(images, labels)| (images, Some(labels))),
        None => ("", None),
    };
    // An archive of one array needs no name for it.
    let images = &npz.key(Some(images).filter(|key| !key.is_empty()))?;
    let (shape, bytes) = npz.bytes(images)?;
    let side = match shape[..] {
        [_, height, width, 3] if height == width => height,
        _ => bail!("{}:{images} has shape {shape:?}, expected images × side × side × 3", path.display()),
    };
    let labels = labels.map(|key| npz.labels(key)).transpose()?;
    ensure!(side > 0, "{}:{images} holds no pixels", path.display());
    Ok(Read { images: Arc::new(Pixels::interleaved(side, &bytes, augment)), labels })
}
