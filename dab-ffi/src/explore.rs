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

/// dab_exploration_config.schedule: always `start`.
pub const DAB_SCHEDULE_CONSTANT: u32 = 0;
/// dab_exploration_config.schedule: a line from `start` to `end` in `steps` steps, then `end`.
pub const DAB_SCHEDULE_LINEAR: u32 = 1;
/// dab_exploration_config.schedule: end + (start - end) * exp(-step / steps).
pub const DAB_SCHEDULE_EXPONENTIAL: u32 = 2;

/// How an uncertainty becomes a reward:
///
///   bonus = weight(step) * clip((u - mean) / std, +-clip)
///
/// with the running mean and standard deviation of the uncertainties given to dab_exploration_update.
/// Set `size` to sizeof(dab_exploration_config).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ExplorationConfig {
    /// sizeof(dab_exploration_config).
    pub size: u32,
    /// One of DAB_SCHEDULE_.
    pub schedule: u32,
    /// Weight at step 0.
    pub start: f32,
    /// Weight in the end; unused by DAB_SCHEDULE_CONSTANT.
    pub end: f32,
    /// Length of the schedule, above 0; unused by DAB_SCHEDULE_CONSTANT.
    pub steps: u64,
    /// Updates before the first bonus, at least 2; until then it is 0.
    pub warmup: u64,
    /// Largest magnitude of a normalised uncertainty, above 0.
    pub clip: f32,
    /// 1: subtract the running mean, so that typical inputs give 0. 0: do not.
    pub centered: u32,
}

// SAFETY: repr(C), the size first, numbers only.
unsafe impl Sized32 for ExplorationConfig {}

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
/// Returns DAB_OK, or DAB_ERR_CONFIG for a value out of its range. *exploration is written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_init(
    exploration: *mut Exploration,
    config: *const ExplorationConfig,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { init(exploration, config) })
}

unsafe fn init(exploration: *mut Exploration, config: *const ExplorationConfig) -> Result<()> {
    let place = span(exploration, 1)?;
    // SAFETY: handed on.
    let found = unsafe { ptr::config(config)? };
    ptr::disjoint(&[place], &[span(config, 1)?])?;
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
    // SAFETY: `exploration` was checked, and `Stored` fits into it; the caller promises that it is writable.
    unsafe { ptr::put(exploration.cast::<Stored>(), Tagged::new(TAG, started)) };
    Ok(())
}

/// Teaches the normaliser `count` uncertainties, in their order.
/// Returns DAB_OK, or DAB_ERR_NON_FINITE if one is not finite: then none was taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_update(
    exploration: *mut Exploration,
    uncertainties: *const f32,
    count: usize,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { update(exploration, uncertainties, count) })
}

unsafe fn update(exploration: *mut Exploration, uncertainties: *const f32, count: usize) -> Result<()> {
    ptr::disjoint(&[span(exploration, 1)?], &[span(uncertainties, count)?])?;
    // SAFETY: handed on.
    let found = unsafe { ptr::object_mut(exploration.cast::<Stored>(), TAG)? };
    // SAFETY: checked above; the caller promises readable floats that nobody writes during the call.
    let uncertainties = unsafe { ptr::slice(uncertainties, count) };
    if !uncertainties.iter().all(|u| u.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    for u in uncertainties {
        found.update(*u);
    }
    Ok(())
}

/// The bonus of each of `count` uncertainties at `step` of the training. Teaches nothing.
/// Threads: `exploration` may be shared while nobody updates it.
/// Returns DAB_OK or DAB_ERR_NON_FINITE; bonuses are written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_compute(
    exploration: *const Exploration,
    uncertainties: *const f32,
    count: usize,
    step: u64,
    bonuses: *mut f32,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { compute(exploration, uncertainties, count, step, bonuses) })
}

unsafe fn compute(
    exploration: *const Exploration,
    uncertainties: *const f32,
    count: usize,
    step: u64,
    bonuses: *mut f32,
) -> Result<()> {
    let read = [span(exploration, 1)?, span(uncertainties, count)?];
    ptr::disjoint(&[span(bonuses, count)?], &read)?;
    // SAFETY: handed on.
    let found = unsafe { ptr::object(exploration.cast::<Stored>(), TAG)? };
    // SAFETY: checked above; the caller promises readable floats that nobody writes during the call.
    let uncertainties = unsafe { ptr::slice(uncertainties, count) };
    if !uncertainties.iter().all(|u| u.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    // SAFETY: checked above, apart from all else; the caller promises writable memory.
    let bonuses = unsafe { ptr::slice_mut(bonuses, count) };
    for (bonus, u) in bonuses.iter_mut().zip(uncertainties) {
        *bonus = found.compute(*u, step);
    }
    Ok(())
}

/// Saves the normaliser (not the configuration) into DAB_EXPLORATION_SAVED_BYTES bytes, the same on every machine.
/// Returns DAB_OK or DAB_ERR_TOO_SMALL; *bytes is written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_save(
    exploration: *const Exploration,
    bytes: *mut c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { save(exploration, bytes.cast(), byte_count) })
}

unsafe fn save(exploration: *const Exploration, bytes: *mut u8, count: usize) -> Result<()> {
    let room = span(bytes, DAB_EXPLORATION_SAVED_BYTES)?;
    ptr::disjoint(&[room], &[span(exploration, 1)?])?;
    // SAFETY: handed on.
    let found = unsafe { ptr::object(exploration.cast::<Stored>(), TAG)? };
    if count < DAB_EXPLORATION_SAVED_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: checked above; the caller promises writable memory.
    unsafe { ptr::put(bytes.cast(), found.save()) };
    Ok(())
}

/// Continues with a saved normaliser.
/// Returns DAB_OK, DAB_ERR_TOO_SMALL or DAB_ERR_SAVED_STATE; *exploration is changed only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_exploration_restore(
    exploration: *mut Exploration,
    bytes: *const c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { restore(exploration, bytes.cast(), byte_count) })
}

unsafe fn restore(exploration: *mut Exploration, bytes: *const u8, count: usize) -> Result<()> {
    let place = span(bytes, DAB_EXPLORATION_SAVED_BYTES)?;
    ptr::disjoint(&[span(exploration, 1)?], &[place])?;
    // SAFETY: handed on.
    let found = unsafe { ptr::object_mut(exploration.cast::<Stored>(), TAG)? };
    if count < DAB_EXPLORATION_SAVED_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: checked above; the caller promises readable bytes that nobody writes during the call.
    let saved = unsafe { ptr::slice(bytes, DAB_EXPLORATION_SAVED_BYTES) };
    let saved = saved.first_chunk().ok_or(DAB_ERR_TOO_SMALL)?;
    found.restore(saved).map_err(|_| DAB_ERR_SAVED_STATE)
}
