//! A model in the caller's memory: bytes are checked once, then every other call uses the handle.

use core::ffi::c_void;
use core::mem::{align_of, offset_of, size_of};

use dab_core::{CovarianceKind, Model, Rates, Task};

use crate::isa::Widest;
use crate::ptr::{self, Results, Sized32, Span, Tagged, span};
use crate::status::{
    self, DAB_ERR_NOT_CALIBRATED, DAB_ERR_NULL, DAB_ERR_RATES, DAB_ERR_TOO_SMALL, DAB_OK, Result, Status,
};

/// Bytes of storage for a model: uint64_t storage[DAB_MODEL_BYTES / 8].
pub const DAB_MODEL_BYTES: usize = 896;

/// covariance: independent latent dimensions.
pub const DAB_COVARIANCE_DIAGONAL: u32 = 0;
/// covariance: full, by eigen-decomposition.
pub const DAB_COVARIANCE_SPECTRAL: u32 = 1;
/// covariance: full, by triangular factor.
pub const DAB_COVARIANCE_CHOLESKY: u32 = 2;
/// covariance: the identity for every input and code.
pub const DAB_COVARIANCE_CONSTANT: u32 = 3;
/// task: the model has no decoder.
pub const DAB_TASK_NONE: u32 = 0;
/// task: outputs are means.
pub const DAB_TASK_REGRESSION: u32 = 1;
/// task: outputs are logits, one per class.
pub const DAB_TASK_CLASSIFICATION: u32 = 2;

/// A loaded model, in storage of the caller. Its contents are private.
#[derive(Debug)]
pub struct Handle {
    _private: (),
}

/// Sizes of a model. Set `size` before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Shape {
    /// sizeof(dab_shape), set by the caller.
    pub size: u32,
    /// Values per input.
    pub inputs: u32,
    /// Values that the decoder gives; 0 without one.
    pub outputs: u32,
    /// Number of codes, in the first view.
    pub codes: u32,
    /// Latent dimension.
    pub dim: u32,
    /// Dense layers before the head.
    pub layers: u32,
    /// Values that enter the head.
    pub features: u32,
    /// One of DAB_COVARIANCE_.
    pub covariance: u32,
    /// One of DAB_TASK_.
    pub task: u32,
    /// Held-out inputs behind p-values and verdicts; 0: not calibrated.
    pub calibration: u32,
    /// Views of an input, 1 to 4.
    pub views: u32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, integers of 4 bytes only.
unsafe impl Sized32 for Shape {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[44, 48] } else { &[44] };
}

const _: () = assert!(ptr::layouts_grow::<Shape>());

/// What lies in the storage.
pub(crate) struct Loaded {
    pub(crate) model: Model<'static>,
    /// The artifact: results must not be written over it.
    pub(crate) artifact: &'static [u8],
}

pub(crate) type Stored = Tagged<Loaded>;

/// First word of a model's storage.
const TAG: u32 = u32::from_le_bytes(*b"dabM");

const _: () = assert!(size_of::<Stored>() <= DAB_MODEL_BYTES && align_of::<Stored>() <= 8);

/// The model behind a handle, and where it lies.
///
/// # Safety
/// As [`ptr::object`].
pub(crate) unsafe fn loaded<'a>(model: *const Handle) -> Result<(&'a Loaded, [Span; 2])> {
    let stored = model.cast::<Stored>();
    // SAFETY: `object` checks pointer and tag; the caller of this function promises that whatever has the tag is a whole
    // model, which only `init` puts there.
    let loaded = unsafe { ptr::object(stored, TAG)? };
    Ok((loaded, [span(stored, 1)?, span(loaded.artifact.as_ptr(), loaded.artifact.len())?]))
}

/// DAB_MODEL_BYTES of the linked library. If it is larger than the program's, dab_model_init refuses the program's
/// storage (DAB_ERR_TOO_SMALL).
#[unsafe(no_mangle)]
pub extern "C" fn dab_model_bytes() -> usize {
    DAB_MODEL_BYTES
}

/// Checks all of an artifact and makes a model of it in `storage`.
/// storage: DAB_MODEL_BYTES bytes at a multiple of 8. artifact: the bytes of a .dab file at a multiple of 4, in flash
/// or RAM. It is read in place: both must stay, unchanged, as long as the model is used. There is nothing to free.
/// Returns DAB_OK, what is wrong with the arguments (-1 to -5, DAB_ERR_ARTIFACT_MISALIGNED), or what is wrong with the
/// artifact (-100 and below). Checksums find damage, not forgery (SECURITY.md). After an error *out is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_init(
    storage: *mut c_void,
    storage_bytes: usize,
    artifact: *const c_void,
    artifact_bytes: usize,
    out: *mut *mut Handle,
) -> Status {
    // SAFETY: `init` checks every pointer and size; the caller promises what dab.h says under "MEMORY": storage that is
    // writable, and an artifact that nobody changes.
    let result = unsafe { init(storage, storage_bytes, artifact.cast(), artifact_bytes, out) };
    if result.is_err() {
        let artifact = span(artifact.cast::<u8>(), artifact_bytes).unwrap_or(Span::NONE);
        // SAFETY: the caller promises that `out` is writable; the artifact, which nobody may change, is left alone.
        unsafe { ptr::no_handle(out, &[artifact]) };
    }
    status::of(result)
}

/// # Safety
/// As [`dab_model_init`].
pub(crate) unsafe fn init(
    storage: *mut c_void,
    storage_bytes: usize,
    artifact: *const u8,
    artifact_bytes: usize,
    out: *mut *mut Handle,
) -> Result<()> {
    if artifact.is_null() {
        return Err(DAB_ERR_NULL);
    }
    // As words of 8 bytes, because that is the alignment.
    let room = span(storage.cast::<u64>(), DAB_MODEL_BYTES / size_of::<u64>())?;
    span(storage.cast::<u8>(), storage_bytes)?;
    let bytes = span(artifact, artifact_bytes)?;
    let handle = span(out, 1)?;
    if storage_bytes < DAB_MODEL_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    ptr::disjoint(&[room, handle], &[bytes])?;
    // SAFETY: `span` checked pointer and length; the caller promises readable bytes that nobody changes while the model
    // is used (dab.h, "MEMORY"), which is the 'static of `Loaded`.
    let slice: &'static [u8] = unsafe { ptr::slice(artifact, artifact_bytes) };
    let stored = storage.cast::<Stored>();
    let (tag, value) = Tagged::places(stored);
    let place = value.wrapping_byte_add(offset_of!(Loaded, model)).cast();
    // Straight into its place: every further name for a model is a copy of it on the stack.
    match Model::from_bytes(slice) {
        // SAFETY: `storage` was checked non-null, aligned to 8 and at least as large as `Stored`, of which this is a part;
        // the caller promises that it is writable.
        Ok(model) => unsafe { ptr::put(place, model) },
        Err(e) => return Err(status::of_artifact(&e)),
    }
    // SAFETY: as for the model.
    unsafe { ptr::put(value.wrapping_byte_add(offset_of!(Loaded, artifact)).cast(), slice) };
    // SAFETY: as for the model. The tag comes last: only a whole model has it.
    unsafe { ptr::put(tag, TAG) };
    // SAFETY: `out` was checked non-null and aligned; the caller promises that it is writable.
    unsafe { ptr::put(out, stored.cast()) };
    Ok(())
}

/// Sizes of the model.
/// Returns DAB_OK, or -1 to -7 for bad pointers and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_shape(model: *const Handle, out: *mut Shape) -> Status {
    // SAFETY: `shape` checks both pointers; the caller promises a model that nobody writes to, and a writable `out`.
    status::of(unsafe { shape(model, out) })
}

/// # Safety
/// As [`dab_model_shape`].
unsafe fn shape(model: *const Handle, out: *mut Shape) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    let (loaded, places) = unsafe { loaded(model)? };
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
    let mut out = unsafe { Results::at(out, 1)? };
    ptr::disjoint(&[out.span()], &places)?;
    let shape = loaded.model.shape();
    let found = Shape {
        size: out.size(),
        inputs: shape.inputs as u32,
        outputs: shape.outputs as u32,
        codes: shape.codes as u32,
        dim: shape.dim as u32,
        layers: shape.layers as u32,
        features: shape.features as u32,
        covariance: match shape.covariance {
            CovarianceKind::Diagonal => DAB_COVARIANCE_DIAGONAL,
            CovarianceKind::Spectral => DAB_COVARIANCE_SPECTRAL,
            CovarianceKind::Cholesky => DAB_COVARIANCE_CHOLESKY,
            CovarianceKind::Constant => DAB_COVARIANCE_CONSTANT,
        },
        task: match shape.task {
            None => DAB_TASK_NONE,
            Some(Task::Regression) => DAB_TASK_REGRESSION,
            Some(Task::Classification) => DAB_TASK_CLASSIFICATION,
        },
        calibration: loaded.model.calibration().map_or(0, |table| table.held_out),
        views: shape.views as u32,
        #[cfg(feature = "grown")]
        grown: ptr::GROWN,
    };
    // SAFETY: there is one row, and `disjoint` found it apart from the model and its artifact.
    unsafe { out.put(&found) };
    Ok(())
}

/// Bytes of scratch that a call on this model needs, a multiple of 4; 0 if `model` is not a model. Only dab_attribute and
/// dab_assess_without need more: dab_attribution_bytes().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_scratch_bytes(model: *const Handle) -> usize {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    unsafe { loaded(model) }.map_or(0, |(loaded, _)| loaded.model.scratch_len() * size_of::<f32>())
}

/// Checks that file, library and floating-point unit agree: the known answers inside the artifact must come out bit for
/// bit. Call it once, at boot. If it fails, do not use the model.
/// Returns DAB_OK, DAB_ERR_SELF_TEST, DAB_ERR_SELF_TEST_DIGEST, DAB_ERR_SCRATCH, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_self_test(
    model: *const Handle,
    scratch: *mut c_void,
    scratch_bytes: usize,
) -> Status {
    // SAFETY: `self_test` checks both pointers; the caller promises a model that nobody writes to, and writable scratch
    // that is this call's alone.
    status::of(unsafe { self_test(model, scratch.cast(), scratch_bytes / size_of::<f32>()) })
}

/// # Safety
/// As [`dab_self_test`], with `floats` floats of scratch.
unsafe fn self_test(model: *const Handle, scratch: *mut f32, floats: usize) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    let (loaded, places) = unsafe { loaded(model)? };
    ptr::disjoint(&[scratch_span(scratch, floats)?], &places)?;
    // SAFETY: `scratch_span` checked pointer and length, `disjoint` that it lies apart from the model and its artifact;
    // the caller promises writable memory that is this call's alone.
    let scratch = unsafe { ptr::slice_mut(scratch, floats) };
    loaded.model.self_test_on(Widest, scratch).map_err(|e| status::of_self_test(&e))
}

/// Where scratch lies. NULL is a mistake even if its size is 0.
pub(crate) fn scratch_span(scratch: *const f32, floats: usize) -> Result<Span> {
    if scratch.is_null() { Err(DAB_ERR_NULL) } else { span(scratch, floats) }
}

/// Checks that the artifact of a model is still what it was when it was loaded, by its checksums: flash can lose bits. It
/// needs no floating point and no scratch: repeat it while the program runs, as often as its time allows.
/// Returns DAB_OK, what is wrong with the artifact (-100 and below): do not use the model any more; or -1, -2 or -6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_check(model: *const Handle) -> Status {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    let found = unsafe { loaded(model) };
    status::of(found.and_then(|(loaded, _)| {
        dab_core::artifact::check(loaded.artifact).map_err(|e| status::of_artifact(&e))
    }))
}

/// Sets other false-alarm rates for the verdicts than the artifact's: at most the share `doubtful` of familiar inputs is
/// called doubtful or unfamiliar, at most the share `unfamiliar` is called unfamiliar.
/// Threads: this is the only call that changes a model. Make it before others use the model.
/// Returns DAB_OK, DAB_ERR_RATES unless 0 < unfamiliar <= doubtful < 1, or DAB_ERR_NOT_CALIBRATED if the model has fewer
/// than 1/unfamiliar - 1 held-out inputs (dab_shape.calibration): it would never call anything unfamiliar; or -1, -2 or -6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_set_rates(model: *mut Handle, doubtful: f32, unfamiliar: f32) -> Status {
    let Ok(rates) = Rates::new(doubtful, unfamiliar) else { return DAB_ERR_RATES };
    // SAFETY: `object_mut` checks pointer and tag; the caller promises a model, and that nobody uses it during this call
    // (dab.h, "THREADS").
    match unsafe { ptr::object_mut(model.cast::<Stored>(), TAG) } {
        Ok(loaded) => match loaded.model.set_rates(rates) {
            Ok(()) => DAB_OK,
            Err(_) => DAB_ERR_NOT_CALIBRATED,
        },
        Err(status) => status,
    }
}

/// The score (dab_assessment.score) that at most the share `rate` of familiar inputs exceeds: a threshold for a monitor.
/// Ask it at boot for the rate that you use: an artifact with too few held-out inputs never calls anything unfamiliar.
/// Returns DAB_OK, DAB_ERR_RATES unless 0 < rate < 1, DAB_ERR_NOT_CALIBRATED, or -1 to -6 for bad pointers. After an error
/// the threshold is -FLT_MAX: every input exceeds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_threshold(model: *const Handle, rate: f32, score: *mut f32) -> Status {
    // SAFETY: `threshold` checks both pointers; the caller promises a model that nobody writes to, and a writable float.
    let result = unsafe { threshold(model, rate, score) };
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model.
    let places = unsafe { loaded(model) }.map_or([Span::NONE; 2], |(_, places)| places);
    if let (Err(_), Ok(place)) = (result, span(score, 1))
        && ptr::disjoint(&[place], &places).is_ok()
    {
        // SAFETY: `span` checked that `score` is not NULL and aligned, `disjoint` that it is no part of the model; the
        // caller promises that it is writable.
        unsafe { ptr::put(score, -f32::MAX) };
    }
    status::of(result)
}

/// # Safety
/// As [`dab_threshold`].
unsafe fn threshold(model: *const Handle, rate: f32, score: *mut f32) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    let (loaded, places) = unsafe { loaded(model)? };
    ptr::disjoint(&[span(score, 1)?], &places)?;
    Rates::new(rate, rate).map_err(|_| DAB_ERR_RATES)?;
    let table = loaded.model.calibration().ok_or(DAB_ERR_NOT_CALIBRATED)?;
    let found = table.threshold(rate).ok_or(DAB_ERR_NOT_CALIBRATED)?;
    // SAFETY: `span` checked that `score` is not NULL and aligned; the caller promises that it is writable.
    unsafe { ptr::put(score, found) };
    Ok(())
}
