//! A file with taught codes from one without, on the host.

use alloc::string::String;
use alloc::vec::Vec;

use super::{TAUGHT, split};
use crate::artifact::aligned::AlignedBytes;
use crate::artifact::crc::{Crc, crc32c};
use crate::artifact::error::ArtifactError;
use crate::artifact::monitor;
use crate::artifact::reader::sections;
use crate::artifact::schema::{HEADER_LEN, MAX_CODES, MONITOR, minor, schema_key};
use crate::codebook::CodebookView;
use crate::isa::Baseline;
use crate::linalg::dot::take;

/// A model that was taught more: `artifact` with `codes` (diagonal, of the model's dimension; counts for priors) behind
/// those that it was taught before, and with `info` in place of its info. The known answers are computed anew.
///
/// # Errors
/// When `artifact` is no model, the codes have another dimension or are too many, or a value is out of its range.
pub fn add_taught(
    artifact: &[u8],
    codes: &CodebookView<'_>,
    info: &[(String, String)],
) -> Result<Vec<u8>, ArtifactError> {
    let bytes = AlignedBytes::from(artifact);
    let model = bytes.model()?;
    let parts = sections(bytes.as_slice())?;
    let dim = model.shape().dim;
    let (own, monitor) = match parts.features & MONITOR {
        0 => (parts.params, &[][..]),
        _ => monitor::split(parts.params)?,
    };
    let mut params = if parts.taught { split(own, dim as u32)?.0 } else { own }.to_vec();
    let before = model.taught();
    let old = before.map_or(0, CodebookView::len);
    let count = old + codes.len();
    if codes.dim != dim || count > MAX_CODES as usize {
        let value = u32::try_from(count).unwrap_or(u32::MAX);
        return Err(ArtifactError::Limit { field: "taught.codes", value, max: MAX_CODES });
    }
    let chosen: [fn(&CodebookView<'_>) -> Vec<f32>; 4] =
        [|c| c.means.into(), |c| c.precisions.into(), |c| c.log_dets.into(), |c| c.priors.into()];
    for part in chosen {
        for value in before.map(part).into_iter().flatten().chain(part(codes)) {
            // −0 becomes 0, as everywhere in a file.
            params.extend_from_slice(&(value + 0.0).to_le_bytes());
        }
    }
    let alpha = before.map_or(codes.alpha, |b| b.alpha);
    params.extend_from_slice(&alpha.to_le_bytes());
    params.extend_from_slice(&(count as u32).to_le_bytes());
    params.extend_from_slice(monitor);

    let info = postcard::to_allocvec(info).map_err(|_| ArtifactError::Info)?;
    let file =
        |params: &[u8], meta: &[u8]| seal(bytes.as_slice(), meta, params, &info, parts.features | TAUGHT);
    let draft = file(&params, parts.meta);
    // The known answers: u of every vector in the parameters, the digest at the end of `Meta`.
    let (answers, digest) = {
        let model = draft.model()?;
        let mut scratch = alloc::vec![0.0; model.scratch_len()];
        let (mut rest, mut digest, mut answers) = (model.self_test.inputs, Crc::new(), Vec::new());
        for _ in model.self_test.answers {
            let (input, after) = take(rest, model.shape().inputs);
            rest = after;
            let found = model.answer(Baseline, input, &mut scratch, &mut digest);
            answers.push(found.map_err(|_| ArtifactError::Info)?);
        }
        (answers, digest.value())
    };
    let at = {
        let model = draft.model()?;
        let start = draft.as_slice().as_ptr().addr() + params_at(parts.meta.len());
        model.self_test.answers.as_ptr().addr() - start
    };
    for (to, answer) in params.iter_mut().skip(at).zip(answers.iter().flat_map(|a| a.to_le_bytes())) {
        *to = answer;
    }
    let mut meta = parts.meta.to_vec();
    let end = postcard::to_allocvec(model.meta()).map_err(|_| ArtifactError::MetaEncoding)?.len();
    for (to, byte) in meta.iter_mut().skip(end - 4).zip(digest.to_le_bytes()) {
        *to = byte;
    }
    let taught = file(&params, &meta);
    taught.model()?;
    Ok(taught.as_slice().into())
}

/// Where the parameters begin.
fn params_at(meta: usize) -> usize {
    (HEADER_LEN + meta).next_multiple_of(super::super::schema::PARAMS_ALIGN)
}

/// The file of these sections, with the header of `before`, these feature bits, and new checksums.
pub(in crate::artifact) fn seal(
    before: &[u8],
    meta: &[u8],
    params: &[u8],
    info: &[u8],
    features: u32,
) -> AlignedBytes {
    let params_at = params_at(meta.len());
    let mut body = meta.to_vec();
    body.resize(params_at - HEADER_LEN, 0);
    body.extend_from_slice(params);
    body.extend_from_slice(info);
    let mut header = before.get(..HEADER_LEN).unwrap_or_default().to_vec();
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, byte) in header.iter_mut().skip(at).zip(bytes) {
            *to = *byte;
        }
    };
    let info_at = params_at + params.len();
    put(10, &minor(features).to_le_bytes());
    for (at, value) in [(12, HEADER_LEN + body.len()), (36, params.len()), (40, info_at), (44, info.len())] {
        put(at, &u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }
    put(16, &features.to_le_bytes());
    put(48, &schema_key(features).to_le_bytes());
    put(56, &crc32c(&body).to_le_bytes());
    let sum = crc32c(header.get(..60).unwrap_or_default());
    let mut bytes = header;
    bytes.truncate(60);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(&body);
    AlignedBytes::from(&*bytes)
}
