//! The exploration bonus.

use core::ffi::c_void;
use core::mem::{align_of, size_of};

use dab_core::explore::{self, Schedule};

use crate::ptr::{self, Sized32, Tagged, span};
use crate::status::{
    self, DAB_ERR_CONFIG, DAB_ERR_NON_FINITE, DAB_ERR_SAVED_STATE, DAB_ERR_TOO_SMALL, Result, Status,
};

/// Bytes of a saved exploration state.
pub const DAB_EXPLORATION_SAVED_BYTES: usize = 40;

/// schedule: always `start`.
pub const DAB_SCHEDULE_CONSTANT: u32 = 0;
/// schedule: a line from `start` to `end` in `steps` steps, then `end`.
pub const DAB_SCHEDULE_LINEAR: u32 = 1;
/// schedule: end + (start - end) * exp(-step / steps).
pub const DAB_SCHEDULE_EXPONENTIAL: u32 = 2;

/// How an uncertainty becomes a reward:
///
///   bonus = weight(step) * clip((u - mean) / std, +-clip)
///
/// with the running mean and standard deviation of the uncertainties given to dab_exploration_update. Set `size`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExplorationConfig {
    /// sizeof(dab_exploration_config), set by the caller.
    pub size: u32,
    /// One of DAB_SCHEDULE_.
    pub schedule: u32,
    /// Weight at step 0.
    pub start: f32,
    /// Weight at the end; unused by DAB_SCHEDULE_CONSTANT.
    pub end: f32,
    /// Length of the schedule, above 0; unused by DAB_SCHEDULE_CONSTANT.
    pub steps: u64,
    /// Updates before the first bonus, at least 2; until then the bonus is 0.
    pub warmup: u64,
    /// Largest magnitude of a normalised uncertainty, above 0.
    pub clip: f32,
    /// 1: subtract the running mean, so that typical inputs give 0; 0: do not.
    pub centered: u32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u64,
}

// SAFETY: repr(C), the size first, numbers only, each at a multiple of its size.
unsafe impl Sized32 for ExplorationConfig {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[40, 48] } else { &[40] };
}

const _: () = assert!(ptr::layouts_grow::<ExplorationConfig>());

/// An exploration bonus, in memory of the caller. Its words are private; copying the struct copies the bonus.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Exploration {
    /// Private.
    pub words: [u64; 16],
}

type Stored = Tagged<explore::Exploration>;

/// First word of an exploration bonus.
const TAG: u32 = u32::from_le_bytes(*b"dabX");

const _: () = {
    assert!(size_of::<Stored>() <= size_of::<Exploration>());
    assert!(align_of::<Stored>() <= align_of::<Exploration>());
    assert!(DAB_EXPLORATION_SAVED_BYTES == explore::SAVED_BYTES);
};

/// Starts a bonus that has seen nothing.
/// Returns DAB_OK, DAB_ERR_CONFIG if a value is out of its range, or -1 to -7 for bad pointers and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_init(
    exploration: *mut Exploration,
    config: *const ExplorationConfig,
) -> Status {
    // SAFETY: `init` checks both pointers; the caller promises a writable exploration that is this call's alone, and a
    // configuration of the size that it says.
    status::of(unsafe { init(exploration, config) })
}

/// # Safety
/// As [`dab_exploration_init`].
unsafe fn init(exploration: *mut Exploration, config: *const ExplorationConfig) -> Result<()> {
    let place = span(exploration, 1)?;
    // SAFETY: the caller promises that `config`, if not NULL, has as many readable bytes as its `size` says.
    let (found, given) = unsafe { ptr::config(config)? };
    ptr::disjoint(&[place], &[given])?;
    #[cfg(feature = "grown")]
    if found.grown != 0 {
        return Err(DAB_ERR_CONFIG);
    }
    let ExplorationConfig { start, end, steps, .. } = found;
    let config = explore::Config {
        schedule: match found.schedule {
            DAB_SCHEDULE_CONSTANT => Schedule::Constant { start },
            DAB_SCHEDULE_LINEAR => Schedule::Linear { start, end, steps },
            DAB_SCHEDULE_EXPONENTIAL => Schedule::Exponential { start, end, steps },
            _ => return Err(DAB_ERR_CONFIG),
        },
        clip: found.clip,
        centered: match found.centered {
            0 => false,
            1 => true,
            _ => return Err(DAB_ERR_CONFIG),
        },
        warmup: found.warmup,
    };
    let started = explore::Exploration::new(config).map_err(|_| DAB_ERR_CONFIG)?;
    // SAFETY: `span` checked that `exploration` is not NULL and aligned, and `Stored` fits into it (asserted above); the
    // caller promises that it is writable.
    unsafe { ptr::put(exploration.cast::<Stored>(), Tagged::new(TAG, started)) };
    Ok(())
}

/// Updates the running mean and deviation with `count` uncertainties, in their order.
/// Returns DAB_OK, DAB_ERR_NON_FINITE if one is not finite (then none of them counts), or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_update(
    exploration: *mut Exploration,
    uncertainties: *const f32,
    count: usize,
) -> Status {
    // SAFETY: `update` checks both pointers; the caller promises an exploration without another user, and `count`
    // readable floats.
    status::of(unsafe { update(exploration, uncertainties, count) })
}

/// # Safety
/// As [`dab_exploration_update`].
unsafe fn update(exploration: *mut Exploration, uncertainties: *const f32, count: usize) -> Result<()> {
    ptr::disjoint(&[span(exploration, 1)?], &[span(uncertainties, count)?])?;
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole exploration
    // without another user during the call.
    let found = unsafe { ptr::object_mut(exploration.cast::<Stored>(), TAG)? };
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes during the call.
    let uncertainties = unsafe { ptr::slice(uncertainties, count) };
    if !uncertainties.iter().all(|u| u.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    for u in uncertainties {
        found.update(*u);
    }
    Ok(())
}

/// The bonus of each of `count` uncertainties at `step` of the training. Mean and deviation stay as they are.
/// Threads: `exploration` may be shared while nobody updates it.
/// Returns DAB_OK, DAB_ERR_NON_FINITE, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_compute(
    exploration: *const Exploration,
    uncertainties: *const f32,
    count: usize,
    step: u64,
    bonuses: *mut f32,
) -> Status {
    // SAFETY: `compute` checks all pointers; the caller promises an exploration that nobody updates, `count` readable
    // uncertainties and `count` writable bonuses.
    status::of(unsafe { compute(exploration, uncertainties, count, step, bonuses) })
}

/// # Safety
/// As [`dab_exploration_compute`].
unsafe fn compute(
    exploration: *const Exploration,
    uncertainties: *const f32,
    count: usize,
    step: u64,
    bonuses: *mut f32,
) -> Result<()> {
    let read = [span(exploration, 1)?, span(uncertainties, count)?];
    ptr::disjoint(&[span(bonuses, count)?], &read)?;
    // SAFETY: `object` checks pointer and tag; the caller promises that whatever has the tag is a whole exploration that
    // nobody updates during the call.
    let found = unsafe { ptr::object(exploration.cast::<Stored>(), TAG)? };
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes during the call.
    let uncertainties = unsafe { ptr::slice(uncertainties, count) };
    if !uncertainties.iter().all(|u| u.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    // SAFETY: `span` checked pointer and length, `disjoint` that they lie apart from what is read; the caller promises
    // writable memory.
    let bonuses = unsafe { ptr::slice_mut(bonuses, count) };
    for (bonus, u) in bonuses.iter_mut().zip(uncertainties) {
        *bonus = found.compute(*u, step);
    }
    Ok(())
}

/// Saves mean and deviation (not the configuration) into DAB_EXPLORATION_SAVED_BYTES bytes, the same on every machine.
/// Returns DAB_OK, DAB_ERR_TOO_SMALL, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_save(
    exploration: *const Exploration,
    bytes: *mut c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: `save` checks both pointers; the caller promises an exploration that nobody updates, and `byte_count`
    // writable bytes.
    status::of(unsafe { save(exploration, bytes.cast(), byte_count) })
}

/// # Safety
/// As [`dab_exploration_save`].
unsafe fn save(exploration: *const Exploration, bytes: *mut u8, count: usize) -> Result<()> {
    let room = span(bytes, DAB_EXPLORATION_SAVED_BYTES)?;
    ptr::disjoint(&[room], &[span(exploration, 1)?])?;
    // SAFETY: `object` checks pointer and tag; the caller promises that whatever has the tag is a whole exploration that
    // nobody updates during the call.
    let found = unsafe { ptr::object(exploration.cast::<Stored>(), TAG)? };
    if count < DAB_EXPLORATION_SAVED_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: `span` checked the pointer, and `count` is large enough; the caller promises that so many bytes are
    // writable. They are bytes: every address is aligned.
    unsafe { ptr::put(bytes.cast(), found.save()) };
    Ok(())
}

/// Continues with a saved mean and deviation.
/// Returns DAB_OK, DAB_ERR_SAVED_STATE, or -1 to -6 for bad pointers and sizes; on an error, the exploration stays as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_restore(
    exploration: *mut Exploration,
    bytes: *const c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: `restore` checks both pointers; the caller promises an exploration without another user, and `byte_count`
    // readable bytes.
    status::of(unsafe { restore(exploration, bytes.cast(), byte_count) })
}

/// # Safety
/// As [`dab_exploration_restore`].
unsafe fn restore(exploration: *mut Exploration, bytes: *const u8, count: usize) -> Result<()> {
    let place = span(bytes, DAB_EXPLORATION_SAVED_BYTES)?;
    ptr::disjoint(&[span(exploration, 1)?], &[place])?;
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole exploration
    // without another user during the call.
    let found = unsafe { ptr::object_mut(exploration.cast::<Stored>(), TAG)? };
    if count < DAB_EXPLORATION_SAVED_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: `span` checked the pointer, and `count` is large enough; the caller promises that so many bytes are
    // readable, and that nobody writes them during the call.
    let saved = unsafe { ptr::slice(bytes, DAB_EXPLORATION_SAVED_BYTES) };
    let saved = saved.first_chunk().ok_or(DAB_ERR_TOO_SMALL)?;
    found.restore(saved).map_err(|_| DAB_ERR_SAVED_STATE)
}
