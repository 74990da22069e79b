//! The memory that learns: how often was something like this seen before?

use core::ffi::c_void;
use core::mem::{align_of, size_of};

use dab_core::memory::{
    self, Config, Head, MAX_CODES, MAX_DIM, MemoryError, MemoryView, Novelty as Found, Width,
};

use crate::ptr::{self, Results, Sized32, Span, Tagged, span};
use crate::status::{
    self, DAB_ERR_CONFIG, DAB_ERR_LENGTH, DAB_ERR_MEMORY_FULL, DAB_ERR_NON_FINITE, DAB_ERR_NULL,
    DAB_ERR_OUTPUT_LENGTH, DAB_ERR_SATURATED, DAB_ERR_TOO_SMALL, Result, Status,
};

/// Bytes of a memory besides its codes, see DAB_MEMORY_BYTES.
pub const DAB_MEMORY_HEAD_BYTES: usize = 96;
/// Bytes of a saved memory besides its codes, see DAB_MEMORY_SAVED_BYTES.
pub const DAB_MEMORY_SAVED_HEAD_BYTES: usize = 40;

/// How a memory scores and learns. Set `size`, `codes`, `dim` and `std`; 0 in any other member is its default.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemoryConfig {
    /// sizeof(dab_memory_config), set by the caller.
    pub size: u32,
    /// Places for codes, 1 to 65536.
    pub codes: u32,
    /// Values of an input, 1 to 1024.
    pub dim: u32,
    /// Standard deviation of an input where a call gives none, in its unit: what is this near is the same. Above 0.
    pub std: f32,
    /// An input farther than this (nats) from all codes becomes a code. Default 1.
    pub spawn: f32,
    /// Temperature: larger means that only near codes count. Default 1.
    pub alpha: f32,
    /// A code's variance is at most so many times an input's, at least 1. Default 4.
    pub widen: f32,
    /// What is left of every count after an observation, up to 1. Default 1: nothing is forgotten.
    pub keep: f32,
    /// Largest count of a code, up to 2^23. Default 2^20.
    pub horizon: u32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for MemoryConfig {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[36, 40] } else { &[36] };
}

const _: () = assert!(ptr::layouts_grow::<MemoryConfig>());

/// What a memory says of one input. Set `size` before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Novelty {
    /// sizeof(dab_novelty), set by the caller.
    pub size: u32,
    /// 1 if this call made a new code of the input, else 0.
    pub spawned: u32,
    /// 1 / sqrt(1 + visits): 1 for what was never seen, towards 0 for what was seen often.
    pub bonus: f32,
    /// How often something like this was seen, a soft count.
    pub visits: f32,
    /// Expected distance from the codes in nats; FLT_MAX while there are none.
    pub uncertainty: f32,
    /// The closest code, counting from 0; 0 while there are none.
    pub nearest: u32,
    /// Its distance, nats.
    pub nearest_distance: f32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for Novelty {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[28, 32] } else { &[28] };
}

const _: () = assert!(ptr::layouts_grow::<Novelty>());

/// How full a memory is. Set `size` before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemoryStatistics {
    /// sizeof(dab_memory_statistics), set by the caller.
    pub size: u32,
    /// Places for codes.
    pub codes: u32,
    /// Values of an input.
    pub dim: u32,
    /// Codes that there are; the first `taught` of them were taught.
    pub used: u32,
    /// Taught codes.
    pub taught: u32,
    /// Bytes that dab_memory_save writes now.
    pub saved_bytes: u32,
    /// Sum of all counts.
    pub visits: f32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for MemoryStatistics {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[28, 32] } else { &[28] };
}

const _: () = assert!(ptr::layouts_grow::<MemoryStatistics>());

/// A memory, in storage of the caller. Its contents are private.
#[derive(Debug)]
pub struct Memory {
    _private: (),
}

/// What lies at the beginning of the storage; the floats of the codes follow at DAB_MEMORY_HEAD_BYTES.
struct Kept {
    head: Head,
    codes: usize,
    dim: usize,
    std: f32,
}

type Stored = Tagged<Kept>;

/// First word of a memory's storage.
const TAG: u32 = u32::from_le_bytes(*b"dabN");

const _: () = {
    assert!(DAB_MEMORY_SAVED_HEAD_BYTES == memory::saved_len(0, 1));
    assert!(size_of::<Stored>() <= DAB_MEMORY_HEAD_BYTES && align_of::<Stored>() <= 8);
    assert!(DAB_MEMORY_HEAD_BYTES.is_multiple_of(8));
};

/// The memory behind a handle, its default deviation, and where all of it lies.
///
/// # Safety
/// If not NULL, whatever has the tag at `memory` was put there by [`init`], and nobody else uses it during the call.
pub(crate) unsafe fn opened<'a>(memory: *mut Memory) -> Result<(MemoryView<'a>, f32, Span)> {
    // SAFETY: `object_mut` checks pointer and tag; the caller of this function promises a whole memory without another
    // user.
    let kept = unsafe { ptr::object_mut(memory.cast::<Stored>(), TAG)? };
    let floats = memory::storage_len(kept.codes, kept.dim);
    let codes = memory.wrapping_byte_add(DAB_MEMORY_HEAD_BYTES).cast::<f32>();
    let place = span(memory.cast::<u8>(), DAB_MEMORY_HEAD_BYTES + floats * size_of::<f32>())?;
    // SAFETY: `init` checked that so many floats follow, initialized them, and that all is aligned; they lie behind the
    // head, so the two references are apart; the caller promises that nobody else uses them during the call.
    let storage = unsafe { ptr::slice_mut(codes, floats) };
    let view = MemoryView::new(&mut kept.head, kept.codes, kept.dim, storage).map_err(|e| of(&e))?;
    Ok((view, kept.std, place))
}

/// The number of a refusal.
pub(crate) fn of(error: &MemoryError) -> Status {
    match error {
        MemoryError::Length { .. } => DAB_ERR_LENGTH,
        MemoryError::NonFinite { .. } => DAB_ERR_NON_FINITE,
        MemoryError::Full { .. } => DAB_ERR_MEMORY_FULL,
        MemoryError::Saturated => DAB_ERR_SATURATED,
        MemoryError::Storage { .. } => DAB_ERR_TOO_SMALL,
        // A deviation that is not above 0, a shape, the number of a code.
        _ => DAB_ERR_CONFIG,
    }
}

fn novelty(found: &Found, size: u32) -> Novelty {
    Novelty {
        size,
        spawned: found.spawned.into(),
        bonus: found.bonus,
        visits: found.visits,
        uncertainty: found.uncertainty,
        nearest: found.nearest as u32,
        nearest_distance: found.nearest_distance,
        #[cfg(feature = "grown")]
        grown: ptr::GROWN,
    }
}

/// Bytes of storage for a memory; 0 if a number is out of its range. DAB_MEMORY_BYTES is the same for the compiler.
#[unsafe(no_mangle)]
pub extern "C" fn dab_memory_bytes(codes: u32, dim: u32) -> usize {
    let (codes, dim) = (codes as usize, dim as usize);
    if !(1..=MAX_CODES).contains(&codes) || !(1..=MAX_DIM).contains(&dim) {
        return 0;
    }
    DAB_MEMORY_HEAD_BYTES + memory::storage_len(codes, dim) * size_of::<f32>()
}

/// Makes an empty memory in `storage`: dab_memory_bytes bytes at a multiple of 8, which stay where they are while the
/// memory is used. There is nothing to free.
/// Returns DAB_OK, DAB_ERR_CONFIG if a value is out of its range, or -1 to -7 for bad pointers and sizes. After an error *out
/// is NULL, and a memory that was in the storage is as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_init(
    storage: *mut c_void,
    storage_bytes: usize,
    config: *const MemoryConfig,
    out: *mut *mut Memory,
) -> Status {
    // SAFETY: `init` checks every pointer and size; the caller promises writable storage that is this memory's alone, and
    // a configuration of the size that it says.
    let result = unsafe { init(storage, storage_bytes, config, out) };
    if result.is_err() {
        // SAFETY: as above.
        let config = unsafe { ptr::config_place(config) };
        let others = [span::<u8>(storage.cast(), storage_bytes).unwrap_or(Span::NONE), config];
        // SAFETY: the caller promises that `out` is writable; a memory in the storage, and the configuration, stay as they
        // are.
        unsafe { ptr::no_handle(out, &others) };
    }
    status::of(result)
}

/// # Safety
/// As [`dab_memory_init`].
unsafe fn init(
    storage: *mut c_void,
    storage_bytes: usize,
    config: *const MemoryConfig,
    out: *mut *mut Memory,
) -> Result<()> {
    // SAFETY: the caller promises that `config`, if not NULL, has as many readable bytes as its `size` says.
    let (found, given) = unsafe { ptr::config(config)? };
    #[cfg(feature = "grown")]
    if found.grown != 0 {
        return Err(DAB_ERR_CONFIG);
    }
    let bytes = dab_memory_bytes(found.codes, found.dim);
    let or = |value: f32, default: f32| if value == 0.0 { default } else { value };
    let defaults = Config::DEFAULT;
    let head = Head::new(Config {
        alpha: or(found.alpha, defaults.alpha),
        spawn: or(found.spawn, defaults.spawn),
        widen: or(found.widen, defaults.widen),
        keep: or(found.keep, defaults.keep),
        horizon: if found.horizon == 0 { defaults.horizon } else { found.horizon },
    })
    .map_err(|_| DAB_ERR_CONFIG)?;
    if bytes == 0 || !(found.std > 0.0 && found.std.is_finite()) {
        return Err(DAB_ERR_CONFIG);
    }
    let room = ptr::room(storage, bytes)?;
    let handle = span(out, 1)?;
    if storage_bytes < bytes {
        return Err(DAB_ERR_TOO_SMALL);
    }
    ptr::disjoint(&[room, handle], &[given])?;
    let (codes, dim) = (found.codes as usize, found.dim as usize);
    let floats = storage.wrapping_byte_add(DAB_MEMORY_HEAD_BYTES).cast::<f32>();
    // SAFETY: `span` and the comparison checked pointer, alignment and length of all bytes; the caller promises that they
    // are writable.
    unsafe { core::ptr::write_bytes(floats, 0, memory::storage_len(codes, dim)) };
    let stored = storage.cast::<Stored>();
    // SAFETY: as above; `Stored` fits before the floats (asserted above).
    unsafe { ptr::put(stored, Tagged::new(TAG, Kept { head, codes, dim, std: found.std })) };
    // SAFETY: `span` checked that `out` is not NULL and aligned; the caller promises that it is writable.
    unsafe { ptr::put(out, stored.cast()) };
    Ok(())
}

/// Whether a call learns.
#[derive(Clone, Copy, PartialEq)]
enum Learning {
    No,
    Yes,
    Taught,
}

/// Scores `rows` inputs one after the other.
///
/// # Safety
/// As [`opened`]; and `means`, and `stds` if it is not NULL, have `rows * dim` readable floats, `out` has `rows` structs.
unsafe fn score(
    memory: *mut Memory,
    [means, stds]: [*const f32; 2],
    rows: usize,
    dim: usize,
    learning: Learning,
    out: *mut Novelty,
) -> Result<()> {
    // SAFETY: the caller of this function promises it.
    let (mut view, std, place) = unsafe { opened(memory)? };
    let count = rows.checked_mul(dim).ok_or(status::DAB_ERR_TOO_LARGE)?;
    if means.is_null() {
        return Err(DAB_ERR_NULL);
    }
    let given = span(means, count)?;
    let widths = if stds.is_null() { Span::NONE } else { span(stds, count)? };
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes for each row as its first `size`
    // says.
    let mut out = unsafe { Results::at(out, rows)? };
    ptr::disjoint(&[out.span(), place], &[given, widths])?;
    if dim != view.dim() {
        return Err(DAB_ERR_LENGTH);
    }
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes.
    let means = unsafe { ptr::slice(means, count) };
    // SAFETY: as for `means`; without deviations the slice is empty and its pointer is not used.
    let stds = unsafe { ptr::slice(stds, if stds.is_null() { 0 } else { count }) };
    if !means.iter().all(|x| x.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    if !stds.iter().all(|x| *x > 0.0 && x.is_finite()) {
        return Err(DAB_ERR_CONFIG);
    }
    let (mut rest, mut widths) = (means, stds);
    for _ in 0..rows {
        let (mean, after) = rest.split_at_checked(dim).ok_or(DAB_ERR_LENGTH)?;
        rest = after;
        let width = match widths.split_at_checked(dim) {
            Some((row, after)) => {
                widths = after;
                Width::Std(row)
            }
            None => Width::EveryStd(std),
        };
        let found = match learning {
            Learning::No => view.assess(mean, width),
            Learning::Yes => view.observe(mean, width),
            Learning::Taught => view.teach(mean, width, None),
        };
        let found = found.map_err(|e| of(&e))?;
        let found = novelty(&found, out.size());
        // SAFETY: once a row, and `disjoint` found the results apart from all other memory of the call.
        unsafe { out.put(&found) };
    }
    Ok(())
}

/// How novel an input is. Nothing is learned.
/// mean: `dim` floats. std: their standard deviations, or NULL for the memory's own `std`.
/// Threads: one at a time for each memory, also here, because it has its scratch in it.
/// Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_CONFIG if a deviation is not above 0, or -1 to -7 for bad
/// pointers and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_assess(
    memory: *mut Memory,
    mean: *const f32,
    std: *const f32,
    dim: usize,
    out: *mut Novelty,
) -> Status {
    // SAFETY: `score` checks every pointer; the caller promises a memory without another user and readable floats.
    status::of(unsafe { score(memory, [mean, std], 1, dim, Learning::No, out) })
}

/// dab_memory_assess; then the input is learned. The answer is of the memory before.
/// Returns as dab_memory_assess.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_observe(
    memory: *mut Memory,
    mean: *const f32,
    std: *const f32,
    dim: usize,
    out: *mut Novelty,
) -> Status {
    // SAFETY: `score` checks every pointer; the caller promises a memory without another user and readable floats.
    status::of(unsafe { score(memory, [mean, std], 1, dim, Learning::Yes, out) })
}

/// dab_memory_observe for `rows` inputs, one after the other, and an array of `rows` results, of which the first one has
/// its `size` set. If one value is refused, nothing is learned.
/// Returns as dab_memory_assess.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_observe_batch(
    memory: *mut Memory,
    mean: *const f32,
    std: *const f32,
    rows: usize,
    dim: usize,
    out: *mut Novelty,
) -> Status {
    // SAFETY: `score` checks every pointer; the caller promises a memory without another user and readable floats.
    status::of(unsafe { score(memory, [mean, std], rows, dim, Learning::Yes, out) })
}

/// "This is normal": makes a code of the input that is never forgotten; or, if a taught code is within `spawn` nats,
/// improves that one. The answer says how far the input was from what was taught before.
/// Returns as dab_memory_assess, DAB_ERR_MEMORY_FULL, or DAB_ERR_SATURATED: a value is 2^50 or more; teaching it would
/// make every broken sensor look normal. After an error nothing changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_teach(
    memory: *mut Memory,
    mean: *const f32,
    std: *const f32,
    dim: usize,
    out: *mut Novelty,
) -> Status {
    // SAFETY: `score` checks every pointer; the caller promises a memory without another user and readable floats.
    status::of(unsafe { score(memory, [mean, std], 1, dim, Learning::Taught, out) })
}

/// Forgets what was observed, at the end of an episode. What was taught stays.
/// Returns DAB_OK, or -1, -2 or -6 for a bad pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_clear(memory: *mut Memory) -> Status {
    // SAFETY: `opened` checks pointer and tag; the caller promises a memory without another user.
    status::of(unsafe { opened(memory) }.map(|(mut view, ..)| view.clear()))
}

/// Forgets taught code `index`; the last taught code gets its number.
/// Returns DAB_OK, DAB_ERR_CONFIG if there is no such code, or -1, -2 or -6 for a bad pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_remove(memory: *mut Memory, index: u32) -> Status {
    // SAFETY: `opened` checks pointer and tag; the caller promises a memory without another user.
    let opened = unsafe { opened(memory) };
    status::of(opened.and_then(|(mut view, ..)| view.remove(index as usize).map_err(|e| of(&e))))
}

/// Code `index`: its mean and standard deviations, `dim` floats each, and how often it was seen.
/// Returns DAB_OK, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_CONFIG if there is no such code, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_code(
    memory: *mut Memory,
    index: u32,
    mean: *mut f32,
    std: *mut f32,
    dim: usize,
    count: *mut f32,
) -> Status {
    // SAFETY: `code` checks every pointer; the caller promises a memory without another user, and writable floats.
    status::of(unsafe { code(memory, index, [mean, std], dim, count) })
}

/// # Safety
/// As [`dab_memory_code`].
unsafe fn code(
    memory: *mut Memory,
    index: u32,
    [mean, std]: [*mut f32; 2],
    dim: usize,
    count: *mut f32,
) -> Result<()> {
    // SAFETY: the caller promises a memory without another user.
    let (view, _, place) = unsafe { opened(memory)? };
    ptr::disjoint(&[span(mean, dim)?, span(std, dim)?, span(count, 1)?], &[place])?;
    if dim != view.dim() {
        return Err(DAB_ERR_OUTPUT_LENGTH);
    }
    let (found, n) = view.code(index as usize).ok_or(DAB_ERR_CONFIG)?;
    let dab_core::divergence::Precision::Diagonal(precisions) = found.precision else {
        return Err(DAB_ERR_CONFIG);
    };
    // SAFETY: `span` checked pointer and length, `disjoint` that they lie apart; the caller promises writable floats.
    let mean = unsafe { ptr::slice_mut(mean, dim) };
    // SAFETY: as for `mean`.
    let std = unsafe { ptr::slice_mut(std, dim) };
    for ((m, s), (from, precision)) in mean.iter_mut().zip(std).zip(found.mean.iter().zip(precisions)) {
        (*m, *s) = (*from, memory::std_of(*precision));
    }
    // SAFETY: `span` checked that `count` is not NULL and aligned; the caller promises that it is writable.
    unsafe { ptr::put(count, n) };
    Ok(())
}

/// How full the memory is.
/// Returns DAB_OK, or -1 to -7 for bad pointers and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_memory_stats(memory: *mut Memory, out: *mut MemoryStatistics) -> Status {
    // SAFETY: `stats` checks both pointers; the caller promises a memory without another user, and a writable `out`.
    status::of(unsafe { stats(memory, out) })
}

/// # Safety
/// As [`dab_memory_stats`].
unsafe fn stats(memory: *mut Memory, out: *mut MemoryStatistics) -> Result<()> {
    // SAFETY: the caller promises a memory without another user.
    let (view, _, place) = unsafe { opened(memory)? };
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
    let mut out = unsafe { Results::at(out, 1)? };
    ptr::disjoint(&[out.span()], &[place])?;
    let found = MemoryStatistics {
        size: out.size(),
        codes: view.capacity() as u32,
        dim: view.dim() as u32,
        used: view.len() as u32,
        taught: view.pinned() as u32,
        saved_bytes: view.saved_len() as u32,
        visits: view.total(),
        #[cfg(feature = "grown")]
        grown: ptr::GROWN,
    };
    // SAFETY: there is one row, and `disjoint` found it apart from the memory.
    unsafe { out.put(&found) };
    Ok(())
}
