//! An artifact from disk.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dab_core::artifact::schema::{HEADER_LEN, MAGIC};
use dab_core::artifact::{AlignedBytes, info};
use dab_core::{ArtifactError, Model, Rates};

use super::names;
use crate::support::text::printable;

/// An artifact in memory. [`ModelFile::model`] is the checked view.
#[derive(Clone, Debug)]
pub struct ModelFile {
    path: PathBuf,
    bytes: AlignedBytes,
    /// False-alarm rates in place of the file's.
    rates: Option<Rates>,
    /// Key–value strings of the info section.
    pub info: Vec<(String, String)>,
}

/// The bytes of a file: of a regular one all, up to the length that no model exceeds; of a pipe or a device, which may not
/// end, one more than its header promises. (libdab.so does the same: dab-ffi/src/host.rs.)
fn read(path: &Path) -> io::Result<Vec<u8>> {
    /// Where the header has the length of the whole file (docs/format.md).
    const LENGTH: usize = 12;
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEADER_LEN as u64).read_to_end(&mut bytes)?;
    let stored = bytes.get(LENGTH..).and_then(<[u8]>::first_chunk).filter(|_| bytes.starts_with(&MAGIC));
    let promised = stored.map_or(0, |&length| u32::from_le_bytes(length));
    let most = if file.metadata()?.is_file() { u32::MAX } else { promised };
    file.take((u64::from(most) + 1).saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl ModelFile {
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let bytes = read(path).with_context(|| format!("cannot read `{name}`"))?;
        Self::new(path.into(), &bytes)
    }

    /// A model that was just made.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::new("the model".into(), bytes)
    }

    fn new(path: PathBuf, bytes: &[u8]) -> Result<Self> {
        let artifact = Self { path, bytes: AlignedBytes::from(bytes), rates: None, info: Vec::new() };
        artifact.model()?;
        let info =
            info::read_info(artifact.bytes()).with_context(|| format!("`{}`", artifact.path.display()))?;
        Ok(Self { info, ..artifact })
    }

    /// The same model at other false-alarm rates.
    pub fn at(self, rates: Rates) -> Result<Self> {
        self.model()?.set_rates(rates)?;
        Ok(Self { rates: Some(rates), ..self })
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The model in it.
    /// Never an error after [`ModelFile::open`].
    pub fn model(&self) -> Result<Model<'_>> {
        let mut model = self.bytes.model().map_err(|error| {
            let advice = match error {
                ArtifactError::NotAnArtifact => "; make one with `dab pack`",
                ArtifactError::Version { .. } | ArtifactError::IncompatibleFeatures { .. } => {
                    "; a newer dab wrote it, update this one"
                }
                _ => "; copy it again, in binary mode, or pack it anew",
            };
            anyhow::anyhow!("`{}`: {error}{advice}", self.path.display())
        })?;
        if let Some(rates) = self.rates {
            model.set_rates(rates)?;
        }
        Ok(model)
    }

    /// CRC-32C of everything behind the header: one model has one encoding, so this names it.
    pub fn identity(&self) -> u32 {
        /// Where the header keeps it (docs/format.md).
        const BODY_CRC: usize = 56;
        let stored = self.bytes().get(BODY_CRC..).and_then(<[u8]>::first_chunk);
        stored.map_or(0, |&b| u32::from_le_bytes(b))
    }

    pub fn input_names(&self, count: usize) -> Option<Vec<String>> {
        names::find(&self.info, names::INPUTS, count)
    }

    /// Names of the classes: the outputs' names in the artifact, or their numbers.
    pub fn class_names(&self, count: usize) -> Vec<String> {
        self.outputs_or(count, |class| class.to_string())
    }

    /// Names of the outputs: the artifact's, or `output_0`, `output_1`, …
    pub fn output_names(&self, count: usize) -> Vec<String> {
        self.outputs_or(count, |i| format!("output_{i}"))
    }

    /// Control characters are escaped: these names are written to a terminal as they are.
    fn outputs_or(&self, count: usize, name: impl Fn(usize) -> String) -> Vec<String> {
        let mut found = names::find(&self.info, names::OUTPUTS, count)
            .unwrap_or_else(|| (0..count).map(name).collect::<Vec<_>>());
        for name in found.iter_mut().filter(|name| name.contains(char::is_control)) {
            *name = printable(name);
        }
        found
    }
}
