//! Codes that were taught after the training ("this is normal now"), in the artifact itself.
//!
//! They stand behind feature bit 4, at the end of the parameters, and lower an uncertainty as a memory beside the model does
//! ([`teach`](crate::teach)). Nothing else of the file changes: a model that was taught is the model, and more.
//!
//! ```text
//! taught.mean (codes × dim), taught.precision (codes × dim), taught.log_det (codes), taught.count (codes), alpha, codes: u32
//! ```

#[cfg(feature = "alloc")]
mod write;

use super::checks::{Allowed, limit};
use super::error::{ArtifactError, Part};
use super::reader::Parameters;
use super::schema::MAX_CODES;
use crate::codebook::{CodebookView, PrecisionLayout};

/// The incompatible-feature bit of taught codes.
pub const TAUGHT: u32 = 1 << 4;
/// What follows the schema of a file with taught codes; its key continues the hash of the schema without them.
pub const TAUGHT_SCHEMA: &str =
    " taught:[taught.mean taught.precision taught.log_det taught.count alpha:f32 codes:u32le]";

/// The parameters without the taught codes; the bytes of those; and how many there are.
pub(super) fn split(params: &[u8], dim: u32) -> Result<(&[u8], &[u8], usize), ArtifactError> {
    let codes = params.last_chunk().map_or(0, |&word| u32::from_le_bytes(word));
    limit("taught.codes", codes, MAX_CODES)?;
    // The largest dimension and number of codes are far from the end of a word of 32 bits: 2^16 (2 · 2^10 + 2) + 2.
    let (codes, dim) = (codes as usize, dim as usize);
    let words = codes.saturating_mul(2 * dim + 2).saturating_add(2);
    let found = params.len() / 4;
    let short = ArtifactError::ParamCount { expected: words, found };
    let rest = found.checked_sub(words).ok_or(short)?;
    let (params, taught) = params.split_at_checked(4 * rest).ok_or(short)?;
    Ok((params, taught, codes))
}

/// The taught codes, checked value by value.
pub(super) fn values(words: &[u8], codes: usize, dim: usize) -> Result<CodebookView<'_>, ArtifactError> {
    let mut params = Parameters::new(bytemuck::try_cast_slice(words).map_err(|_| ArtifactError::Misaligned)?);
    let mut next = |n, allowed: &Allowed| params.next(n, Part::Taught, allowed);
    Ok(CodebookView {
        dim,
        means: next(codes * dim, &Allowed::DOMAIN)?,
        precisions: next(codes * dim, &Allowed::POSITIVE)?,
        layout: PrecisionLayout::Diagonal,
        log_dets: next(codes, &Allowed::DOMAIN)?,
        priors: next(codes, &Allowed::POSITIVE)?,
        alpha: next(1, &Allowed::POSITIVE)?.first().copied().unwrap_or(1.0),
    })
}

#[cfg(feature = "alloc")]
pub use write::add_taught;
#[cfg(feature = "alloc")]
pub(super) use write::seal;
