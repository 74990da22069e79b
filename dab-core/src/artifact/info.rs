//! The info section: names, units, provenance, for people and host tools. A device never reads it.
//!
//! A list of key–value strings in postcard, keys in the writer's order. Unlike the other sections it may
//! grow freely: an unknown key is shown, not refused.

use alloc::string::String;
use alloc::vec::Vec;

use super::error::ArtifactError;
use super::reader::sections;

/// Reads the info section of an artifact.
///
/// # Errors
/// When the container is damaged, or the section is not the canonical encoding of a list of strings.
pub fn read_info(bytes: &[u8]) -> Result<Vec<(String, String)>, ArtifactError> {
    let info = sections(bytes)?.info;
    let (entries, rest) =
        postcard::take_from_bytes::<Vec<(String, String)>>(info).map_err(|_| ArtifactError::Info)?;
    let canonical = postcard::to_allocvec(&entries).is_ok_and(|canonical| canonical == info);
    if rest.is_empty() && canonical { Ok(entries) } else { Err(ArtifactError::Info) }
}
