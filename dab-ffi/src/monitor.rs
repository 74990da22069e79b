//! The runtime monitor.

use core::mem::{align_of, size_of};

use dab_core::monitor::{self, State};

use crate::ptr::{self, Sized32, Tagged, span};
use crate::status::{self, DAB_ERR_CONFIG, Result, Status};

/// dab_monitor_observe: the learned controller may drive, its inputs are familiar.
pub const DAB_NOMINAL: i32 = 0;
/// dab_monitor_observe: use the fallback; inputs are unfamiliar, or have not been familiar for long enough.
pub const DAB_FALLBACK: i32 = 1;
/// dab_monitor_observe: use the fallback; there is no recent input.
pub const DAB_STALE: i32 = 2;

/// When to distrust a stream of inputs, and when to trust it again. Set `size` to sizeof(dab_monitor_config).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorConfig {
    /// sizeof(dab_monitor_config).
    pub size: u32,
    /// An uncertainty above this, in nats, is a vote for the alarm (see dab_threshold).
    pub enter: f32,
    /// An uncertainty at or below this is a vote for recovery; at most `enter`.
    pub exit: f32,
    /// How many of the last inputs vote, 1 to 32.
    pub window: u32,
    /// Votes that raise the alarm, 1 to window.
    pub enter_votes: u32,
    /// Votes that end it, 1 to window.
    pub exit_votes: u32,
    /// Ticks that an alarm lasts at least. It never delays one.
    pub min_dwell: u32,
    /// Ticks without an input after which the last one is too old; 0: never; less than 2^31.
    pub timeout: u32,
}

// SAFETY: repr(C), the size first, numbers only.
unsafe impl Sized32 for MonitorConfig {}

/// A monitor, in memory of the caller. Its words are private; copying the struct copies the monitor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Monitor {
    /// Private.
    pub words: [u64; 24],
}

/// What a monitor saw so far. Set `size` to sizeof(dab_monitor_statistics) before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorStatistics {
    /// sizeof(dab_monitor_statistics), set by the caller.
    pub size: u32,
    /// DAB_NOMINAL, DAB_FALLBACK or DAB_STALE.
    pub state: i32,
    /// Inputs, with those that were not finite.
    pub inputs: u64,
    /// Inputs that voted for the alarm.
    pub votes: u64,
    /// How often trust was lost to unfamiliar inputs.
    pub alarms: u64,
    /// How often the input went silent, or the clock jumped back.
    pub stales: u64,
    /// Ticks in DAB_NOMINAL.
    pub nominal_ticks: u64,
    /// Ticks in the other states.
    pub fallback_ticks: u64,
    /// Mean of the finite uncertainties, nats.
    pub mean: f32,
    /// Their standard deviation.
    pub std: f32,
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
}

// SAFETY: repr(C), the size first, numbers only.
unsafe impl Sized32 for MonitorStatistics {}

type Stored = Tagged<monitor::Monitor>;

/// First word of a monitor.
const TAG: u32 = u32::from_le_bytes(*b"dabW");

const _: () =
    assert!(size_of::<Stored>() <= size_of::<Monitor>() && align_of::<Stored>() <= align_of::<Monitor>());

const fn number(state: State) -> i32 {
    match state {
        State::Nominal => DAB_NOMINAL,
        State::Fallback => DAB_FALLBACK,
        State::Stale => DAB_STALE,
    }
}

/// Starts a monitor. It has seen nothing and trusts nothing: it is DAB_STALE, and DAB_FALLBACK from the first input
/// until enough of them were familiar.
/// Returns DAB_OK, or DAB_ERR_CONFIG for a value out of its range. *monitor is written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_init(monitor: *mut Monitor, config: *const MonitorConfig) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { init(monitor, config) })
}

unsafe fn init(monitor: *mut Monitor, config: *const MonitorConfig) -> Result<()> {
    let place = span(monitor, 1)?;
    // SAFETY: handed on.
    let found = unsafe { ptr::config(config)? };
    ptr::disjoint(&[place], &[span(config, 1)?])?;
    let small = |x: u32| u8::try_from(x).map_err(|_| DAB_ERR_CONFIG);
    let config = monitor::Config {
        enter: found.enter,
        exit: found.exit,
        enter_votes: small(found.enter_votes)?,
        exit_votes: small(found.exit_votes)?,
        window: small(found.window)?,
        min_dwell: found.min_dwell,
        timeout: found.timeout,
    };
    let started = monitor::Monitor::new(config).map_err(|_| DAB_ERR_CONFIG)?;
    // SAFETY: `monitor` was checked, and `Stored` fits into it; the caller promises that it is writable.
    unsafe { ptr::put(monitor.cast::<Stored>(), Tagged::new(TAG, started)) };
    Ok(())
}

/// Takes in an uncertainty (dab_assessment.uncertainty) that was measured at tick `now`, and says who may drive.
/// now: any counter that goes up and wraps around at 2^32; its unit is the configuration's. A step back is
/// DAB_STALE. An uncertainty that is not finite is a vote for the alarm.
/// Threads: one at a time per monitor. The cost is constant.
/// Returns DAB_NOMINAL, DAB_FALLBACK, DAB_STALE or a negative DAB_ERR_ number: "if not DAB_NOMINAL, use the
/// fallback" is right for all of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_observe(monitor: *mut Monitor, now: u32, uncertainty: f32) -> i32 {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG) } {
        Ok(monitor) => number(monitor.observe(now, uncertainty)),
        Err(status) => status,
    }
}

/// Says who may drive at tick `now` when there is no new input, so that silence is noticed.
/// Returns as dab_monitor_observe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_poll(monitor: *mut Monitor, now: u32) -> i32 {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG) } {
        Ok(monitor) => number(monitor.poll(now)),
        Err(status) => status,
    }
}

/// What the monitor saw so far. *out is written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_stats(monitor: *const Monitor, out: *mut MonitorStatistics) -> Status {
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { stats(monitor, out) })
}

unsafe fn stats(monitor: *const Monitor, out: *mut MonitorStatistics) -> Result<()> {
    // SAFETY: handed on.
    let found = unsafe { ptr::object(monitor.cast::<Stored>(), TAG)? };
    // SAFETY: handed on.
    let size = unsafe { ptr::declared_size(out)? };
    ptr::disjoint(&[span(out.cast::<u8>(), size)?], &[span(monitor, 1)?])?;
    let s = found.statistics();
    let found = MonitorStatistics {
        size: size as u32,
        state: number(found.state()),
        inputs: s.inputs,
        votes: s.votes,
        alarms: s.alarms,
        stales: s.stales,
        nominal_ticks: s.nominal_ticks,
        fallback_ticks: s.fallback_ticks,
        mean: s.uncertainty.mean(),
        std: s.uncertainty.std(),
        min: s.uncertainty.min(),
        max: s.uncertainty.max(),
    };
    // SAFETY: `out` was checked; the caller promises that it is writable.
    unsafe { ptr::put(out, found) };
    Ok(())
}
