//! Bytes in memory that starts where the reader wants it (feature `alloc`).
//!
//! A file read into a `Vec<u8>` may start anywhere; parameters are read in place as `f32`, so the first
//! byte must lie at a multiple of four. Firmware gets that from its linker, a host from this.

use alloc::vec::Vec;

use super::error::ArtifactError;
use crate::model::Model;

/// An owned copy of an artifact's bytes, aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignedBytes {
    words: Vec<u32>,
    len: usize,
}

impl AlignedBytes {
    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words).get(..self.len).unwrap_or_default()
    }

    /// The model in them.
    ///
    /// # Errors
    /// As [`Model::from_bytes`].
    pub fn model(&self) -> Result<Model<'_>, ArtifactError> {
        Model::from_bytes(self.as_slice())
    }
}

impl From<&[u8]> for AlignedBytes {
    fn from(bytes: &[u8]) -> Self {
        let mut words = alloc::vec![0u32; bytes.len().div_ceil(4)];
        for (to, from) in bytemuck::cast_slice_mut::<u32, u8>(&mut words).iter_mut().zip(bytes) {
            *to = *from;
        }
        Self { words, len: bytes.len() }
    }
}
