//! One ellipse around all that was seen, and random features where there is no model.

use core::ffi::c_void;
use core::mem::{align_of, size_of};

use dab_core::ellipse::{self, EllipseError, EllipseView};
use dab_core::random::RandomEncoder;

use crate::ptr::{self, Span, Tagged, span};
use crate::status::{
    self, DAB_ERR_CONFIG, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_NULL, DAB_ERR_TOO_SMALL, Result, Status,
};

/// Bytes of an ellipse besides its numbers.
pub const DAB_ELLIPSE_HEAD_BYTES: usize = 16;

/// An ellipse, in storage of the caller. Its contents are private.
#[derive(Debug)]
pub struct Ellipse {
    _private: (),
}

/// What lies at the beginning of the storage.
struct Kept {
    ridge: f32,
    dim: u32,
}

type Stored = Tagged<Kept>;

/// First word of an ellipse's storage.
const TAG: u32 = u32::from_le_bytes(*b"dabE");
/// Largest dimension.
const MAX_DIM: usize = 1024;

const _: () = assert!(size_of::<Stored>() <= DAB_ELLIPSE_HEAD_BYTES && align_of::<Stored>() <= 8);

/// # Safety
/// If not NULL, whatever has the tag was put there by [`init`], and nobody else uses it during the call.
unsafe fn opened<'a>(ellipse: *mut Ellipse) -> Result<(EllipseView<'a>, Span)> {
    // SAFETY: `object` checks pointer and tag; the caller of this function promises a whole ellipse.
    let kept = unsafe { ptr::object(ellipse.cast::<Stored>(), TAG)? };
    let floats = ellipse::storage_len(kept.dim as usize);
    let place = span(ellipse.cast::<u8>(), DAB_ELLIPSE_HEAD_BYTES + floats * size_of::<f32>())?;
    let numbers = ellipse.wrapping_byte_add(DAB_ELLIPSE_HEAD_BYTES).cast::<f32>();
    // SAFETY: `init` checked that so many floats follow, initialized them, and that all is aligned; they lie behind the
    // head; the caller promises that nobody else uses them during the call.
    let storage = unsafe { ptr::slice_mut(numbers, floats) };
    let view = EllipseView::new(kept.ridge, kept.dim as usize, storage).map_err(|e| of(&e))?;
    Ok((view, place))
}

fn of(error: &EllipseError) -> Status {
    match error {
        EllipseError::Length { .. } => DAB_ERR_LENGTH,
        EllipseError::NonFinite { .. } => DAB_ERR_NON_FINITE,
        EllipseError::Storage { .. } => DAB_ERR_TOO_SMALL,
        _ => DAB_ERR_CONFIG,
    }
}

/// Bytes of storage for an ellipse of dimension 1 to 1024; 0 for any other.
#[unsafe(no_mangle)]
pub extern "C" fn dab_ellipse_bytes(dim: u32) -> usize {
    let dim = dim as usize;
    if !(1..=MAX_DIM).contains(&dim) {
        return 0;
    }
    DAB_ELLIPSE_HEAD_BYTES + ellipse::storage_len(dim) * size_of::<f32>()
}

/// Makes an ellipse that has seen nothing in `storage`: dab_ellipse_bytes bytes at a multiple of 8. ridge: its first
/// size, above 0; a feature vector whose squared length equals `ridge` has half its novelty after one observation. Along
/// directions that were not seen, novelty is right to 1 % while the lengths of all learned features add up to at most
/// 2^16 sqrt(ridge).
/// Returns DAB_OK, DAB_ERR_CONFIG, or -1 to -5 for bad pointers and sizes. After an error *out is NULL, and an ellipse that was
/// in the storage is as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_ellipse_init(
    storage: *mut c_void,
    storage_bytes: usize,
    dim: u32,
    ridge: f32,
    out: *mut *mut Ellipse,
) -> Status {
    // SAFETY: `init` checks every pointer and size; the caller promises writable storage that is this ellipse's alone.
    let result = unsafe { init(storage, storage_bytes, dim, ridge, out) };
    if result.is_err() {
        let storage = span::<u8>(storage.cast(), storage_bytes).unwrap_or(ptr::Span::NONE);
        // SAFETY: the caller promises that `out` is writable; an ellipse in the storage stays as it is.
        unsafe { ptr::no_handle(out, &[storage]) };
    }
    status::of(result)
}

/// # Safety
/// As [`dab_ellipse_init`].
unsafe fn init(
    storage: *mut c_void,
    storage_bytes: usize,
    dim: u32,
    ridge: f32,
    out: *mut *mut Ellipse,
) -> Result<()> {
    let bytes = dab_ellipse_bytes(dim);
    if bytes == 0 {
        return Err(DAB_ERR_CONFIG);
    }
    let room = ptr::room(storage, bytes)?;
    ptr::disjoint(&[room, span(out, 1)?], &[])?;
    if storage_bytes < bytes {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // Before anything is written: the storage may hold an ellipse that the program goes on with after an error. Without
    // numbers the ridge is refused first.
    if let Err(error @ EllipseError::Ridge { .. }) = EllipseView::new(ridge, dim as usize, &mut []) {
        return Err(of(&error));
    }
    let stored = storage.cast::<Stored>();
    let floats = storage.wrapping_byte_add(DAB_ELLIPSE_HEAD_BYTES).cast::<f32>();
    // SAFETY: `span` and the comparison checked pointer, alignment and length; the caller promises writable storage.
    unsafe { core::ptr::write_bytes(floats, 0, ellipse::storage_len(dim as usize)) };
    // SAFETY: as above; `storage_len` floats were just initialized, and nobody else has a reference to them.
    let numbers = unsafe { ptr::slice_mut(floats, ellipse::storage_len(dim as usize)) };
    EllipseView::new(ridge, dim as usize, numbers).map_err(|e| of(&e))?.clear();
    // SAFETY: as above; `Stored` fits before the floats (asserted above).
    unsafe { ptr::put(stored, Tagged::new(TAG, Kept { ridge, dim })) };
    // SAFETY: `span` checked that `out` is not NULL and aligned; the caller promises that it is writable.
    unsafe { ptr::put(out, stored.cast()) };
    Ok(())
}

/// The squared length of `features` in units of what was seen, at least 0: large for directions that are new. With
/// learn 1 they are learned afterwards, with 0 not.
/// Threads: one at a time for each ellipse. Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE,
/// DAB_ERR_CONFIG if `learn` is neither 0 nor 1, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_ellipse_observe(
    ellipse: *mut Ellipse,
    features: *const f32,
    dim: usize,
    learn: u32,
    square: *mut f32,
) -> Status {
    // SAFETY: `observe` checks every pointer; the caller promises an ellipse without another user, and readable floats.
    status::of(unsafe { observe(ellipse, features, dim, learn, square) })
}

/// # Safety
/// As [`dab_ellipse_observe`].
unsafe fn observe(
    ellipse: *mut Ellipse,
    features: *const f32,
    dim: usize,
    learn: u32,
    square: *mut f32,
) -> Result<()> {
    // SAFETY: the caller promises an ellipse without another user.
    let (mut view, place) = unsafe { opened(ellipse)? };
    if features.is_null() {
        return Err(DAB_ERR_NULL);
    }
    ptr::disjoint(&[span(square, 1)?, place], &[span(features, dim)?])?;
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes.
    let features = unsafe { ptr::slice(features, dim) };
    let found = match learn {
        0 => view.assess(features),
        1 => view.observe(features),
        _ => return Err(DAB_ERR_CONFIG),
    };
    let found = found.map_err(|e| of(&e))?;
    // SAFETY: `span` checked that `square` is not NULL and aligned; the caller promises that it is writable.
    unsafe { ptr::put(square, found) };
    Ok(())
}

/// Forgets what was seen.
/// Returns DAB_OK, or -1, -2 or -6 for a bad pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_ellipse_clear(ellipse: *mut Ellipse) -> Status {
    // SAFETY: `opened` checks pointer and tag; the caller promises an ellipse without another user.
    status::of(unsafe { opened(ellipse) }.map(|(mut view, _)| view.clear()))
}

/// Features of an observation where there is no model: tanh of `dim` random sums of its `inputs` values, each feature in
/// (-1, 1). The seed chooses the sums; nothing is stored. With values of about 1, a scale of 1 keeps tanh in its middle.
/// Returns DAB_OK, DAB_ERR_CONFIG unless scale is above 0, DAB_ERR_NON_FINITE, or -1 to -5 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_random_features(
    seed: u32,
    scale: f32,
    input: *const f32,
    inputs: usize,
    features: *mut f32,
    dim: usize,
) -> Status {
    // SAFETY: `random` checks both pointers; the caller promises readable input and writable features.
    status::of(unsafe { random(seed, scale, (input, inputs), (features, dim)) })
}

/// # Safety
/// As [`dab_random_features`].
unsafe fn random(
    seed: u32,
    scale: f32,
    (input, inputs): (*const f32, usize),
    (features, dim): (*mut f32, usize),
) -> Result<()> {
    ptr::disjoint(&[span(features, dim)?], &[span(input, inputs)?])?;
    let encoder = RandomEncoder::new(seed, inputs, scale).ok_or(DAB_ERR_CONFIG)?;
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes.
    let input = unsafe { ptr::slice(input, inputs) };
    // SAFETY: `span` checked pointer and length, `disjoint` that they lie apart; the caller promises writable floats.
    let features = unsafe { ptr::slice_mut(features, dim) };
    encoder.encode_into(input, features).map_err(|e| status::of_input(&e))
}
