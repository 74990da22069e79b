//! The tensors of a PyTorch or safetensors file. Nothing here knows burn: fuzz/ reads files of any bytes with it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail, ensure};
use safetensors::SafeTensors;
use sha2::Sha256;

use crate::support::digest;

/// The parameter that every image network here has.
const ANCHOR: &str = "conv1.weight";
/// What PyTorch counts beside the running statistics; nothing uses it.
pub const COUNTER: &str = "num_batches_tracked";
/// Digits of the SHA-256 in a file's name.
const DIGITS: usize = 8;

/// One tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub values: Vec<f32>,
}

/// All tensors of a file, by torchvision's names; the digest in the file's name is verified.
pub fn tensors(path: &Path) -> Result<BTreeMap<String, Stored>> {
    let here = || format!("cannot read weights from {}", path.display());
    verify_name(path)?;
    let found = match path.extension().and_then(|extension| extension.to_str()) {
        Some("safetensors") => from_safetensors(path).with_context(here)?,
        Some("pth" | "pt" | "th") => from_pytorch(path).with_context(here)?,
        _ => bail!("{}: expected a file named .pth, .pt, .th or .safetensors", path.display()),
    };
    let stem = found.keys().filter(|name| name.ends_with(ANCHOR)).min_by_key(|name| name.len());
    let before = stem.map_or(String::new(), |name| name[..name.len() - ANCHOR.len()].to_owned());
    let short = |name: String| name.strip_prefix(&before).map_or(name.clone(), ToOwned::to_owned);
    Ok(found.into_iter().map(|(name, stored)| (short(name), stored)).collect())
}

/// Compares the digest at the end of a name such as `resnet50-0676ba61.pth` with the file's own.
fn verify_name(path: &Path) -> Result<()> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let Some((_, digits)) = stem.rsplit_once('-') else { return Ok(()) };
    if digits.len() != DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(());
    }
    let digest = digest::of_file::<Sha256>(path)?;
    ensure!(
        digest.starts_with(&digits.to_ascii_lowercase()),
        "{} is damaged: its SHA-256 begins with {}, its name says {digits}",
        path.display(),
        &digest[..DIGITS]
    );
    Ok(())
}

#[cfg(feature = "pytorch")]
fn from_pytorch(path: &Path) -> Result<BTreeMap<String, Stored>> {
    let mut found = BTreeMap::new();
    for (name, tensor) in pytorch_reader::PytorchReader::new(path)?.into_tensors() {
        if name.ends_with(COUNTER) {
            continue;
        }
        let bytes = tensor.read().with_context(|| name.clone())?;
        let values = numbers(&format!("{:?}", tensor.dtype()), &bytes).with_context(|| name.clone())?;
        found.insert(name, Stored { shape: tensor.shape().to_vec(), values });
    }
    Ok(found)
}

#[cfg(not(feature = "pytorch"))]
fn from_pytorch(_: &Path) -> Result<BTreeMap<String, Stored>> {
    bail!("this build lacks the cargo feature `pytorch`; safetensors need none")
}

fn from_safetensors(path: &Path) -> Result<BTreeMap<String, Stored>> {
    let bytes = crate::support::limits::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let mut found = BTreeMap::new();
    for (name, view) in file.iter().filter(|(name, _)| !name.ends_with(COUNTER)) {
        let kind = format!("{:?}", view.dtype());
        let values = numbers(&kind, view.data()).with_context(|| name.to_owned())?;
        found.insert(name.to_owned(), Stored { shape: view.shape().to_vec(), values });
    }
    Ok(found)
}

/// Little-endian numbers of a type that both formats call by the same name.
fn numbers(kind: &str, bytes: &[u8]) -> Result<Vec<f32>> {
    Ok(match kind {
        "F32" => words(bytes, f32::from_le_bytes),
        "F64" => words(bytes, |word| f64::from_le_bytes(word) as f32),
        "F16" => words(bytes, |word| half::f16::from_le_bytes(word).to_f32()),
        "BF16" => words(bytes, |word| half::bf16::from_le_bytes(word).to_f32()),
        _ => bail!("it holds {kind}, not real numbers"),
    })
}

/// Little-endian words as numbers.
fn words<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|&word| convert(word)).collect()
}
