//! A model in the caller's memory.

use core::ffi::c_void;
use core::mem::{align_of, size_of};

use dab_core::{CovarianceKind, Model, Rates, Task};

use crate::isa::Widest;
use crate::ptr::{self, Sized32, Span, Tagged, span};
use crate::status::{
    self, DAB_ERR_NOT_CALIBRATED, DAB_ERR_NULL, DAB_ERR_RATES, DAB_ERR_TOO_SMALL, DAB_OK, Result, Status,
};

/// Bytes of storage for a model, on every target. Declare it as uint64_t storage[DAB_MODEL_BYTES / 8]: it
/// must start at a multiple of 8.
pub const DAB_MODEL_BYTES: usize = 640;

/// dab_shape.covariance: independent latent dimensions.
pub const DAB_COVARIANCE_DIAGONAL: u32 = 0;
/// dab_shape.covariance: full, by eigen-decomposition.
pub const DAB_COVARIANCE_SPECTRAL: u32 = 1;
/// dab_shape.covariance: full, by triangular factor.
pub const DAB_COVARIANCE_CHOLESKY: u32 = 2;
/// dab_shape.task: the model has no decoder.
pub const DAB_TASK_NONE: u32 = 0;
/// dab_shape.task: outputs are means.
pub const DAB_TASK_REGRESSION: u32 = 1;
/// dab_shape.task: outputs are logits, one per class.
pub const DAB_TASK_CLASSIFICATION: u32 = 2;

/// A loaded model. Opaque: it lies in storage of the caller.
#[derive(Debug)]
pub struct Handle {
    _private: (),
}

/// Sizes of a model. Set `size` to sizeof(dab_shape) before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Shape {
    /// sizeof(dab_shape), set by the caller.
    pub size: u32,
    /// Values per input.
    pub inputs: u32,
    /// Values that the decoder gives; 0 without one.
    pub outputs: u32,
    /// Number of codes.
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
    /// Held-out inputs behind p-values and verdicts; 0: the model has no calibration table.
    pub calibration: u32,
}

// SAFETY: repr(C), the size first, integers only.
unsafe impl Sized32 for Shape {}

/// What lies in the storage.
pub(crate) struct Loaded {
    pub(crate) model: Model<'static>,
    /// Where the artifact lies: results must not be written over it.
    pub(crate) artifact: Span,
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
    // SAFETY: handed on.
    let loaded = unsafe { ptr::object(stored, TAG)? };
    Ok((loaded, [span(stored, 1)?, loaded.artifact]))
}

/// DAB_MODEL_BYTES of the linked library. If it is larger than the macro that a program was compiled with,
/// storage of the macro's size is refused (DAB_ERR_TOO_SMALL), never overrun.
#[unsafe(no_mangle)]
pub extern "C" fn dab_model_bytes() -> usize {
    DAB_MODEL_BYTES
}

/// Checks an artifact, all of it, and makes a model of it in `storage`.
/// storage: DAB_MODEL_BYTES bytes at a multiple of 8. artifact: the bytes of a .dab file at a multiple of 4, in
/// flash or RAM; read in place, so both must stay, unchanged, as long as the model is used. There is nothing to
/// free.
/// Returns DAB_OK, or what is wrong with the arguments (-1 to -5) or the artifact (-100 and below). *out is
/// written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_init(
    storage: *mut c_void,
    storage_bytes: usize,
    artifact: *const c_void,
    artifact_bytes: usize,
    out: *mut *mut Handle,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { init(storage, storage_bytes, artifact.cast(), artifact_bytes, out) })
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
    let bytes = span(artifact, artifact_bytes)?;
    let handle = span(out, 1)?;
    if storage_bytes < DAB_MODEL_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    ptr::disjoint(&[room, handle], &[bytes])?;
    // SAFETY: checked above; the caller promises readable bytes that nobody changes while the model is used
    // (dab.h, "Memory"), which is the 'static of `Loaded`.
    let slice: &'static [u8] = unsafe { ptr::slice(artifact, artifact_bytes) };
    let model = Model::from_bytes(slice).map_err(|e| status::of_artifact(&e))?;
    let stored = storage.cast::<Stored>();
    // SAFETY: `storage` was checked non-null, aligned to 8 and at least as large as `Stored`; the caller
    // promises that it is writable.
    unsafe { ptr::put(stored, Tagged::new(TAG, Loaded { model, artifact: bytes })) };
    // SAFETY: `out` was checked non-null and aligned; the caller promises that it is writable.
    unsafe { ptr::put(out, stored.cast()) };
    Ok(())
}

/// Sizes of the model. *out is written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_shape(model: *const Handle, out: *mut Shape) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { shape(model, out) })
}

unsafe fn shape(model: *const Handle, out: *mut Shape) -> Result<()> {
    // SAFETY: handed on.
    let (loaded, places) = unsafe { loaded(model)? };
    // SAFETY: handed on.
    let size = unsafe { ptr::declared_size(out)? };
    ptr::disjoint(&[span(out.cast::<u8>(), size)?], &places)?;
    let shape = loaded.model.shape();
    let found = Shape {
        size: size as u32,
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
        },
        task: match shape.task {
            None => DAB_TASK_NONE,
            Some(Task::Regression) => DAB_TASK_REGRESSION,
            Some(Task::Classification) => DAB_TASK_CLASSIFICATION,
        },
        calibration: loaded.model.calibration().map_or(0, |table| table.held_out),
    };
    // SAFETY: `out` was checked by `declared_size`; the caller promises that it is writable.
    unsafe { ptr::put(out, found) };
    Ok(())
}

/// Bytes of scratch that every call on this model needs, a multiple of 4; 0 when `model` is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_scratch_bytes(model: *const Handle) -> usize {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    unsafe { loaded(model) }.map_or(0, |(loaded, _)| loaded.model.scratch_len() * size_of::<f32>())
}

/// Proves that file, library and floating-point environment agree: the known answers inside the artifact must
/// come out bit for bit. Call it once, at boot; if it fails, do not use the model.
/// Returns DAB_OK, DAB_ERR_SELF_TEST, DAB_ERR_SELF_TEST_DIGEST or DAB_ERR_SCRATCH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_self_test(
    model: *const Handle,
    scratch: *mut c_void,
    scratch_bytes: usize,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { self_test(model, scratch.cast(), scratch_bytes / size_of::<f32>()) })
}

unsafe fn self_test(model: *const Handle, scratch: *mut f32, floats: usize) -> Result<()> {
    // SAFETY: handed on.
    let (loaded, places) = unsafe { loaded(model)? };
    ptr::disjoint(&[scratch_span(scratch, floats)?], &places)?;
    // SAFETY: checked above; the caller promises writable memory that is this call's alone.
    let scratch = unsafe { ptr::slice_mut(scratch, floats) };
    loaded.model.self_test_on(Widest, scratch).map_err(|e| status::of_self_test(&e))
}

/// Where scratch lies. NULL is a mistake even if its size is 0.
pub(crate) fn scratch_span(scratch: *const f32, floats: usize) -> Result<Span> {
    if scratch.is_null() { Err(DAB_ERR_NULL) } else { span(scratch, floats) }
}

/// Gives verdicts at other false-alarm rates than the artifact's: of familiar inputs, the share `doubtful` may
/// be called doubtful or worse, the share `unfamiliar` unfamiliar.
/// Threads: the one call that changes a model. Make it before others use the model.
/// Returns DAB_OK, or DAB_ERR_RATES unless 0 < unfamiliar <= doubtful < 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_set_thresholds(model: *mut Handle, doubtful: f32, unfamiliar: f32) -> Status {
    let Ok(rates) = Rates::new(doubtful, unfamiliar) else { return DAB_ERR_RATES };
    // SAFETY: the caller's promises (dab.h, "Memory" and "Threads") are handed on.
    match unsafe { ptr::object_mut(model.cast::<Stored>(), TAG) } {
        Ok(loaded) => {
            loaded.model.set_rates(rates);
            DAB_OK
        }
        Err(status) => status,
    }
}

/// The uncertainty, in nats, that at most the share `rate` of familiar inputs exceeds: a threshold for a
/// monitor.
/// Returns DAB_OK, DAB_ERR_RATES unless 0 < rate < 1, or DAB_ERR_NOT_CALIBRATED. *nats is written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_threshold(model: *const Handle, rate: f32, nats: *mut f32) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { threshold(model, rate, nats) })
}

unsafe fn threshold(model: *const Handle, rate: f32, nats: *mut f32) -> Result<()> {
    // SAFETY: handed on.
    let (loaded, places) = unsafe { loaded(model)? };
    ptr::disjoint(&[span(nats, 1)?], &places)?;
    Rates::new(rate, rate).map_err(|_| DAB_ERR_RATES)?;
    let table = loaded.model.calibration().ok_or(DAB_ERR_NOT_CALIBRATED)?;
    let found = table.threshold(rate).ok_or(DAB_ERR_NOT_CALIBRATED)?;
    // SAFETY: `nats` was checked above; the caller promises that it is writable.
    unsafe { ptr::put(nats, found) };
    Ok(())
}
