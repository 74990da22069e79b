//! The rest: how far an input lies outside of the axes that a view keeps, as the view's last axis.
//!
//! A view of fewer axes than columns does not see what an input does along the others. The rest is their length together, so
//! that nothing about an input can move unseen. It stands behind feature bit 5, at the end of the parameters; [`layers`
//! ](crate::layers) has the formula.
//!
//! ```text
//! (rest.scale (dim − 1), rest.gain) of each view with a rest, the base first; then which views these are: u32, bit n is view n
//! ```

use super::checks::{Allowed, limit};
use super::error::{ArtifactError, Part};
use super::reader::Parameters;
use super::schema::{ChannelsMeta, Meta};

/// The incompatible-feature bit of rests.
pub const REST: u32 = 1 << 5;
/// What follows the schema of a file with rests; its key continues the hash of the schema without them.
pub const REST_SCHEMA: &str = " rest:[(rest.scale rest.gain)* views:u32le]";

/// The rests of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rests<'a> {
    /// Bit n: view n has one; the base is view 0.
    pub(crate) views: u32,
    /// As many values for each as it has axes, one view behind another.
    pub(crate) values: &'a [f32],
}

/// The parameters without the rests, the words of these, and which views have one.
pub(super) fn split<'a>(
    params: &'a [u8],
    meta: &Meta,
    channels: &ChannelsMeta,
) -> Result<(&'a [u8], &'a [u8], u32), ArtifactError> {
    let views = params.last_chunk().map_or(0, |&word| u32::from_le_bytes(word));
    limit("rest.views", views, (1 << channels.view_count()) - 1)?;
    // At most four views of 1024 axes.
    let mut words = 1 + if views & 1 == 1 { meta.dim } else { 0 };
    for (place, view) in channels.views.iter().enumerate() {
        words += if views >> place & 2 == 2 { view.dim } else { 0 };
    }
    let (words, found) = (words as usize, params.len() / 4);
    let short = ArtifactError::ParamCount { expected: words, found };
    let before = found.checked_sub(words).ok_or(short)?;
    let (params, words) = params.split_at_checked(4 * before).ok_or(short)?;
    Ok((params, words, views))
}

/// The rests, checked value by value: none is negative.
pub(super) fn values(words: &[u8], views: u32) -> Result<Rests<'_>, ArtifactError> {
    let words: &[f32] = bytemuck::try_cast_slice(words).map_err(|_| ArtifactError::Misaligned)?;
    let count = words.len().saturating_sub(1);
    Ok(Rests { views, values: Parameters::new(words).next(count, Part::Rest, &Allowed::ALPHA)? })
}

impl Rests<'_> {
    /// Which views have one, and their values, as a file ends with them.
    #[cfg(feature = "alloc")]
    pub(super) fn to_bytes(self) -> alloc::vec::Vec<u8> {
        let floats = self.values.iter().flat_map(|x| x.to_le_bytes());
        floats
            .chain(if self.views == 0 { None } else { Some(self.views.to_le_bytes()) }.into_iter().flatten())
            .collect()
    }
}
