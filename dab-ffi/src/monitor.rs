//! The monitor: a stream of uncertainties in, who may drive out.

use core::mem::{align_of, size_of};

use dab_core::monitor::{self, State};

use crate::ptr::{self, Results, Sized32, Tagged, span};
use crate::status::{self, DAB_ERR_CONFIG, Result, Status};

/// Use the fallback: the inputs are unfamiliar, or not yet familiar for long enough.
pub const DAB_FALLBACK: i32 = 0;
/// The inputs are familiar: the learned controller may drive.
pub const DAB_NOMINAL: i32 = 1;
/// Use the fallback: there is no recent input.
pub const DAB_STALE: i32 = 2;

/// When to distrust a stream of inputs, and when to trust it again. Set `size`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorConfig {
    /// sizeof(dab_monitor_config), set by the caller.
    pub size: u32,
    /// A score above this votes for the alarm (see dab_threshold).
    pub enter: f32,
    /// A score at or below this votes for recovery; at most `enter`.
    pub exit: f32,
    /// How many of the last inputs vote, 1 to 32.
    pub window: u32,
    /// Votes that raise the alarm, 1 to window.
    pub enter_votes: u32,
    /// Votes that end it, 1 to window.
    pub exit_votes: u32,
    /// Ticks that an alarm lasts at least. It never delays one.
    pub min_dwell: u32,
    /// Ticks without an input until DAB_STALE, below 2^31; 0: never.
    pub timeout: u32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for MonitorConfig {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[32, 36] } else { &[32] };
}

/// A monitor, in memory of the caller. Its words are private; copying the struct copies the monitor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Monitor {
    /// Private.
    pub words: [u64; 24],
}

/// What a monitor saw so far. Set `size` before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorStatistics {
    /// sizeof(dab_monitor_statistics), set by the caller.
    pub size: u32,
    /// DAB_NOMINAL, DAB_FALLBACK or DAB_STALE.
    pub state: i32,
    /// Inputs, including those that were not finite.
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
    /// Mean of the finite scores.
    pub mean: f32,
    /// Standard deviation of the finite scores.
    pub std: f32,
    /// Smallest finite score.
    pub min: f32,
    /// Largest finite score.
    pub max: f32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u64,
}

// SAFETY: repr(C), the size first, numbers only, each at a multiple of its size.
unsafe impl Sized32 for MonitorStatistics {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[72, 80] } else { &[72] };
}

const _: () = assert!(ptr::layouts_grow::<MonitorConfig>() && ptr::layouts_grow::<MonitorStatistics>());

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

/// Starts a monitor. It has seen nothing and trusts nothing: it is DAB_STALE, then DAB_FALLBACK from the first input
/// until enough inputs were familiar.
/// Returns DAB_OK, or DAB_ERR_CONFIG if a value is out of its range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_init(monitor: *mut Monitor, config: *const MonitorConfig) -> Status {
    // SAFETY: `init` checks both pointers; the caller promises a writable monitor that is this call's alone, and a
    // configuration of the size that it says.
    status::of(unsafe { init(monitor, config) })
}

/// # Safety
/// As [`dab_monitor_init`].
unsafe fn init(monitor: *mut Monitor, config: *const MonitorConfig) -> Result<()> {
    let place = span(monitor, 1)?;
    // SAFETY: the caller promises that `config`, if not NULL, has as many readable bytes as its `size` says.
    let (found, given) = unsafe { ptr::config(config)? };
    ptr::disjoint(&[place], &[given])?;
    #[cfg(feature = "grown")]
    if found.grown != 0 {
        return Err(DAB_ERR_CONFIG);
    }
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
    // SAFETY: `span` checked that `monitor` is not NULL and aligned, and `Stored` fits into it (asserted above); the
    // caller promises that it is writable.
    unsafe { ptr::put(monitor.cast::<Stored>(), Tagged::new(TAG, started)) };
    Ok(())
}

/// Takes in a score (dab_assessment.score) that was measured at tick `now`, and says who may drive.
/// now: any counter that goes up and wraps around at 2^32; `min_dwell` and `timeout` have its unit. A step back is
/// DAB_STALE. A score that is not finite votes for the alarm, as does that of an assessment after an error. Every call
/// takes the same time.
/// Threads: one at a time for each monitor.
/// Returns DAB_NOMINAL, DAB_FALLBACK, DAB_STALE or a negative DAB_ERR_ number. Use the fallback unless it is
/// DAB_NOMINAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_observe(monitor: *mut Monitor, now: u32, score: f32) -> i32 {
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor, and
    // that it has no other user during the call (dab.h, "THREADS").
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG) } {
        Ok(monitor) => number(monitor.observe(now, score)),
        Err(status) => status,
    }
}

/// Says who may drive at tick `now` when there is no new input, so that silence is noticed.
/// Returns as dab_monitor_observe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_poll(monitor: *mut Monitor, now: u32) -> i32 {
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor, and
    // that it has no other user during the call (dab.h, "THREADS").
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG) } {
        Ok(monitor) => number(monitor.poll(now)),
        Err(status) => status,
    }
}

/// What the monitor saw so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_stats(monitor: *const Monitor, out: *mut MonitorStatistics) -> Status {
    // SAFETY: `stats` checks both pointers; the caller promises a monitor that nobody writes to, and a writable `out` of
    // the size that it says.
    status::of(unsafe { stats(monitor, out) })
}

/// # Safety
/// As [`dab_monitor_stats`].
unsafe fn stats(monitor: *const Monitor, out: *mut MonitorStatistics) -> Result<()> {
    // SAFETY: `object` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor that
    // nobody writes to.
    let found = unsafe { ptr::object(monitor.cast::<Stored>(), TAG)? };
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
    let mut out = unsafe { Results::at(out, 1)? };
    ptr::disjoint(&[out.span()], &[span(monitor, 1)?])?;
    let s = found.statistics();
    let found = MonitorStatistics {
        size: out.size(),
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
        #[cfg(feature = "grown")]
        grown: ptr::GROWN.into(),
    };
    // SAFETY: there is one row, and `disjoint` found it apart from the monitor.
    unsafe { out.put(&found) };
    Ok(())
}
