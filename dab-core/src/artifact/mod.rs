//! The artifact: one file that holds a whole model (docs/format.md is the normative page).
//!
//! `schema` says what is in it, `reader` turns bytes into a checked [`Model`](crate::Model), `error` names
//! every way in which bytes can be wrong, `embed` puts a file into a program. For the host (feature `alloc`): `spec` is a model before it is a
//! file, `writer` makes bytes of it.

#[cfg(feature = "alloc")]
pub mod aligned;
mod channels;
mod checks;
pub(crate) mod crc;
#[cfg(feature = "alloc")]
mod derive;
pub(crate) mod embed;
pub mod error;
pub(crate) mod extension;
pub mod info;
pub mod monitor;
pub mod names;
#[cfg(feature = "alloc")]
pub mod quantise;
pub(crate) mod reader;
pub mod schema;
pub(crate) mod some_views;
#[cfg(feature = "alloc")]
pub mod spec;
pub mod taught;
#[cfg(feature = "alloc")]
mod views;
#[cfg(feature = "alloc")]
pub mod writer;

#[cfg(feature = "alloc")]
pub use aligned::AlignedBytes;
pub use error::{ArtifactError, Part};

/// Whether the bytes of an artifact are still those that were written: both checksums, the length and the places of the
/// sections. It costs a pass over the bytes and no arithmetic, so that a device can repeat it while it runs; every error of
/// one, two or three bits is found.
///
/// # Errors
/// What is wrong with them.
pub fn check(bytes: &[u8]) -> Result<(), ArtifactError> {
    reader::sections(bytes).map(|_| ())
}
