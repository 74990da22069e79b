//! Models from files, for hosts (feature `host`).

use core::ffi::{CStr, c_char, c_void};
use std::boxed::Box;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::vec::Vec;

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::info::read_info;
use dab_core::artifact::schema::{HEADER_LEN, MAGIC};

use crate::model::{self, DAB_MODEL_BYTES, Handle};
use crate::ptr::{self, span};
use crate::status::{self, DAB_ERR_FILE, DAB_ERR_NULL, Result, Status};

/// A model's storage, with the bytes of its file behind it. The storage comes first: its address is the handle's.
#[repr(C)]
struct Opened {
    storage: [u64; DAB_MODEL_BYTES / 8],
    bytes: AlignedBytes,
}

/// Reads a file, checks all of it (also the names and notes that dab_model_init skips), and makes a model of it in
/// memory of its own. Close it with dab_model_close. path: UTF-8, with a NUL at the end.
/// Returns DAB_OK, DAB_ERR_FILE, DAB_ERR_INFO, or as dab_model_init. After an error *out is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_open(path: *const c_char, out: *mut *mut Handle) -> Status {
    // SAFETY: `open` checks both pointers; the caller promises a path with a NUL at its end, and a writable `out`.
    let result = unsafe { open(path, out) };
    if result.is_err() {
        // SAFETY: the caller promises that `out` is writable.
        unsafe { ptr::no_handle(out, &[]) };
    }
    status::of(result)
}

/// The bytes of a file: of a regular one all, up to the length that no model exceeds; of a pipe or a device, which may not
/// end, one more than its header promises. (The `dab` command does the same: dab-train/src/export/model_file.rs.)
fn read(path: &Path) -> io::Result<Vec<u8>> {
    /// Where the header has the length of the whole file (docs/format.md).
    const LENGTH: usize = 12;
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEADER_LEN as u64).read_to_end(&mut bytes)?;
    let stored = bytes.get(LENGTH..).and_then(<[u8]>::first_chunk).filter(|_| bytes.starts_with(&MAGIC));
    let promised = stored.map_or(0, |&length| u32::from_le_bytes(length));
    let most = if file.metadata()?.is_file() { u32::MAX } else { promised };
    file.take((u64::from(most) + 1).saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// # Safety
/// As [`dab_model_open`].
unsafe fn open(path: *const c_char, out: *mut *mut Handle) -> Result<()> {
    span(out, 1)?;
    if path.is_null() {
        return Err(DAB_ERR_NULL);
    }
    // SAFETY: `path` was checked non-null; the caller promises a NUL at the end.
    let path = unsafe { CStr::from_ptr(path) };
    let path = Path::new(path.to_str().map_err(|_| DAB_ERR_FILE)?);
    let bytes = read(path).map_err(|_| DAB_ERR_FILE)?;
    read_info(&bytes).map_err(|e| status::of_artifact(&e))?;
    let opened = Box::new(Opened { storage: [0; DAB_MODEL_BYTES / 8], bytes: AlignedBytes::from(&*bytes) });
    drop(bytes);
    let opened = Box::into_raw(opened);
    // SAFETY: `opened` was made one line above and is nobody else's.
    let artifact = unsafe { (*opened).bytes.as_slice() };
    let (start, len) = (artifact.as_ptr(), artifact.len());
    // SAFETY: the storage is ours, aligned and large enough; the bytes live, on the heap, until
    // `dab_model_close`, as long as the model.
    let result = unsafe { model::init(opened.cast::<c_void>(), DAB_MODEL_BYTES, start, len, out) };
    if result.is_err() {
        // SAFETY: it came from `Box::into_raw` above, and no handle was given out.
        drop(unsafe { Box::from_raw(opened) });
    }
    result
}

/// Frees a model that dab_model_open made. NULL is allowed. Never use it for a model of dab_model_init.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_close(model: *mut Handle) {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    if unsafe { model::loaded(model) }.is_err() {
        return;
    }
    let opened = model.cast::<Opened>();
    // SAFETY: a loaded model that, the caller promises, came from `dab_model_open` and is used by nobody any
    // more; its storage is the first member of an `Opened` in a box. A second close must not find the tag.
    unsafe {
        ptr::put(opened.cast::<u64>(), 0);
        drop(Box::from_raw(opened));
    }
}
