//! What only some views of a file have: rests, and local precisions. Each kind is a block at the end of the parameters.
//!
//! A *rest* (feature bit 5): a view of fewer axes than columns does not see what an input does along the others. The rest is
//! their length together, as the view's last axis, so that nothing about an input can move unseen; [`layers`](crate::layers)
//! has the formula. *Local precisions* (feature bit 6): p_κ, one number for each code of a view, which multiplies the distance
//! from it (method.md E14).
//!
//! ```text
//! (rest.scale (dim − 1), rest.gain) of each view with a rest, the base first;           then which views these are: u32,
//! local.precision (codes) of each view with local precisions, the base first;           bit n is view n
//! ```

use super::checks::Allowed;
use super::error::{ArtifactError, Part};
use super::reader::Parameters;
use super::schema::{ChannelsMeta, CovarianceKind, Meta};
use crate::linalg::dot::take;

/// The incompatible-feature bit of rests.
pub const REST: u32 = 1 << 5;
/// What follows the schema of a file with rests; its key continues the hash of the schema without them.
pub const REST_SCHEMA: &str = " rest:[(rest.scale rest.gain)* views:u32le]";
/// The incompatible-feature bit of local precisions.
pub const LOCAL: u32 = 1 << 6;
/// What follows the schema of a file with local precisions, behind that of rests.
pub const LOCAL_SCHEMA: &str = " local:[local.precision* views:u32le]";

/// One of the two blocks of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SomeViews<'a> {
    /// Bit n: view n has it; the base is view 0.
    pub(crate) views: u32,
    /// The values of these views, one view behind another.
    pub(crate) values: &'a [f32],
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    Rest,
    Local,
}

impl Block {
    /// The parameters without the block, the words of it, and which views it is about.
    #[inline(never)]
    pub(super) fn split<'a>(
        self,
        params: &'a [u8],
        meta: &Meta,
        channels: &ChannelsMeta,
    ) -> Result<(&'a [u8], &'a [u8], u32), ArtifactError> {
        let rest = self == Self::Rest;
        let views = params.last_chunk().map_or(0, |&word| u32::from_le_bytes(word));
        // A base of another covariance has precisions of its own.
        let without_base = !rest && meta.head.covariance != CovarianceKind::Constant;
        let most = ((1 << channels.view_count()) - 1) & if without_base { !1 } else { u32::MAX };
        if views == 0 || views & !most != 0 {
            let field = if rest { "rest.views" } else { "local.views" };
            return Err(ArtifactError::Limit { field, value: views, max: most });
        }
        let size = |dim, codes| if rest { dim } else { codes };
        // At most four views of 65536 codes.
        let mut words = 1 + if views & 1 == 1 { size(meta.dim, meta.codes) } else { 0 };
        for (place, view) in channels.views.iter().enumerate() {
            words += if views >> place & 2 == 2 { size(view.dim, view.codes) } else { 0 };
        }
        let (words, found) = (words as usize, params.len() / 4);
        let short = ArtifactError::ParamCount { expected: words, found };
        let before = found.checked_sub(words).ok_or(short)?;
        let (params, words) = params.split_at_checked(4 * before).ok_or(short)?;
        Ok((params, words, views))
    }

    /// The block, checked value by value: no rest is negative, every precision positive.
    #[inline(never)]
    pub(super) fn values(self, words: &[u8], views: u32) -> Result<SomeViews<'_>, ArtifactError> {
        let words: &[f32] = bytemuck::try_cast_slice(words).map_err(|_| ArtifactError::Misaligned)?;
        let count = words.len().saturating_sub(1);
        let (part, allowed) = match self {
            Self::Rest => (Part::Rest, &Allowed::ALPHA),
            Self::Local => (Part::Local, &Allowed::POSITIVE),
        };
        Ok(SomeViews { views, values: Parameters::new(words).next(count, part, allowed)? })
    }
}

impl<'a> SomeViews<'a> {
    /// The values of the first view, `size` of them if it has any; the others are left.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn next(&mut self, size: u32) -> &'a [f32] {
        let (own, rest) = take(self.values, if self.views & 1 == 1 { size as usize } else { 0 });
        *self = Self { views: self.views >> 1, values: rest };
        own
    }

    /// The values, and which views have them, as a file ends with them; nothing if none has.
    #[cfg(feature = "alloc")]
    pub(super) fn to_bytes(self) -> alloc::vec::Vec<u8> {
        let floats = self.values.iter().flat_map(|x| x.to_le_bytes());
        floats
            .chain(if self.views == 0 { None } else { Some(self.views.to_le_bytes()) }.into_iter().flatten())
            .collect()
    }
}
