//! What a source in an experiment file names: which format, and its reader.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result, bail, ensure};

use super::{Images, ImagesConfig, Pixels, cifar};
use crate::data::{
    files::{Npz, number_classes},
    stored,
};

/// What a source holds.
pub(super) struct Read {
    pub images: Arc<dyn Images>,
    /// One per image, where there are any.
    pub labels: Option<Vec<u32>>,
    /// The classes' names, where labels are their places in this list.
    pub names: Vec<String>,
}

/// Reads `source`, in the data folder `root` unless it is absolute.
pub(super) fn read(source: &str, root: &Path, config: &ImagesConfig) -> Result<Read> {
    let (path, part) = match source.rsplit_once(':') {
        Some((path, part)) => (path, Some(part)),
        None => (source, None),
    };
    let path = stored(root, path)?;
    match (path.extension().and_then(|extension| extension.to_str()), part) {
        (Some("npz"), _) => npz(&path, part, config),
        (_, Some(part)) if path.is_dir() => binary_cifar(&path, part, config),
        (_, None) if path.is_dir() => pictures(&path, config),
        _ => bail!(
            "{source}: expected an npz file, a folder of CIFAR's binary version, or a folder of class folders"
        ),
    }
}

#[cfg(feature = "pictures")]
fn pictures(path: &Path, config: &ImagesConfig) -> Result<Read> {
    let (folder, labels, names) = super::folder::open(path, config.side, config.augment)?;
    Ok(Read { images: Arc::new(folder), labels: Some(labels), names })
}

#[cfg(not(feature = "pictures"))]
fn pictures(path: &Path, _: &ImagesConfig) -> Result<Read> {
    bail!("{}: this build lacks the cargo feature `pictures`, which reads JPEG and PNG", path.display())
}

fn binary_cifar(path: &Path, part: &str, config: &ImagesConfig) -> Result<Read> {
    let (bytes, labels) = cifar::read(path, part)?;
    let images = Arc::new(Pixels::planar(cifar::SIDE, bytes, config.augment));
    Ok(Read { images, labels: Some(labels), names: Vec::new() })
}

/// `images` or `images,labels` of an npz file.
fn npz(path: &Path, part: Option<&str>, config: &ImagesConfig) -> Result<Read> {
    let part =
        part.with_context(|| format!("{0}: say which arrays, as in {0}:images,labels", path.display()))?;
    let (images, labels) =
        part.split_once(',').map_or((part, None), |(images, labels)| (images, Some(labels)));
    let mut npz = Npz::open(path)?;
    let (shape, bytes) = npz.bytes(images)?;
    let side = match shape[..] {
        [_, height, width, 3] if height == width => height,
        _ => bail!("{}:{images} has shape {shape:?}, expected images × side × side × 3", path.display()),
    };
    let labels = labels.map(|key| -> Result<Vec<u32>> {
        let (mut numbered, _) = number_classes(&[npz.labels(key)?])?;
        Ok(numbered.swap_remove(0))
    });
    ensure!(side > 0, "{}:{images} holds no pixels", path.display());
    let images = Arc::new(Pixels::interleaved(side, &bytes, config.augment));
    Ok(Read { images, labels: labels.transpose()?, names: Vec::new() })
}
