//! The monitor: a stream of uncertainties in, who may drive out.

use core::ffi::c_void;
use core::mem::{align_of, size_of};

use dab_core::monitor::{self, Drift, EVENTS, State, Why};

use crate::ptr::{self, Results, Sized32, Tagged, span};
use crate::status::{self, DAB_ERR_CONFIG, DAB_ERR_SAVED_STATE, DAB_ERR_TOO_SMALL, DAB_OK, Result, Status};

/// Use the fallback: the inputs are unfamiliar, or not yet familiar for long enough.
pub const DAB_FALLBACK: i32 = 0;
/// The inputs are familiar: the learned controller may drive.
pub const DAB_NOMINAL: i32 = 1;
/// Use the fallback: there is no recent input.
pub const DAB_STALE: i32 = 2;

/// why: enough of the last inputs were above `enter`.
pub const DAB_WHY_SPIKE: u32 = 1;
/// why: blocks of inputs were stranger than recorded ones for too long.
pub const DAB_WHY_DRIFT: u32 = 2;
/// why: there was no input for too long, or the clock jumped back.
pub const DAB_WHY_STALE: u32 = 4;
/// why: inputs could not be assessed.
pub const DAB_WHY_REJECTED: u32 = 8;
/// why: trust was not earned yet since the start.
pub const DAB_WHY_STARTING: u32 = 16;

/// Bytes of a saved monitor.
pub const DAB_MONITOR_SAVED_BYTES: usize = 496;
/// Events that a monitor keeps.
pub const DAB_MONITOR_EVENTS: u32 = 8;
/// Levels of the table of the drift channel.
pub const DAB_DRIFT_LEVELS: usize = 7;

/// When to distrust a stream of inputs, and when to trust it again. Set `size`. `dab monitor tune` writes one for a
/// budget of false alarms an hour, from a recorded stream.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorConfig {
    /// sizeof(dab_monitor_config), set by the caller.
    pub size: u32,
    /// A score above this votes for the alarm (see dab_threshold).
    pub enter: f32,
    /// A score at or below this votes for recovery; at most `enter`.
    pub exit: f32,
    /// How many of the last inputs vote, 1 to 2097120. Above 32, votes are counted to within 1/32 of the window.
    pub window: u32,
    /// Votes that raise the alarm, 1 to window.
    pub enter_votes: u32,
    /// Votes that end it, 1 to window.
    pub exit_votes: u32,
    /// Ticks before trust, at least: from the first input, after an alarm, after DAB_STALE. It delays no alarm.
    pub min_dwell: u32,
    /// More ticks than this without an input are DAB_STALE; below 2^31; 0: never.
    pub timeout: u32,
    /// Rejected inputs that raise the alarm, up to window; 0: a quarter of it.
    pub reject_votes: u32,
    /// Inputs in a block of the drift channel; 0: there is none.
    pub drift_block: u32,
    /// ln of the evidence (a bettor's capital) that raises the drift alarm, above 0.
    pub drift_alarm: f32,
    /// 0: bets start anew when the capital has fallen below its start; 1: never.
    pub drift_keeps: u32,
    /// Means of recorded blocks, ascending.
    pub drift_levels: [f32; 7],
    /// At most this share of familiar blocks lies above each level; descending.
    pub drift_p: [f32; 7],
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for MonitorConfig {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[104, 108] } else { &[104] };
}

/// A monitor, in memory of the caller. Its words are private; copying the struct copies the monitor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Monitor {
    /// Private.
    pub words: [u64; 88],
}

/// What a monitor saw so far. Set `size` before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorStatistics {
    /// sizeof(dab_monitor_statistics), set by the caller.
    pub size: u32,
    /// DAB_NOMINAL, DAB_FALLBACK or DAB_STALE.
    pub state: i32,
    /// Inputs, including those that were rejected.
    pub inputs: u64,
    /// Inputs that voted for the alarm.
    pub votes: u64,
    /// How often trust was lost to unfamiliar, drifting or rejected inputs.
    pub alarms: u64,
    /// How often the input went silent, or the clock jumped back.
    pub stales: u64,
    /// Ticks in DAB_NOMINAL.
    pub nominal_ticks: u64,
    /// Ticks in the other states.
    pub fallback_ticks: u64,
    /// Inputs that could not be assessed: a NaN, a wrong length.
    pub rejected: u64,
    /// Alarms that the votes raised.
    pub spikes: u64,
    /// Alarms that the drift channel raised.
    pub drifts: u64,
    /// Alarms that rejected inputs raised.
    pub rejections: u64,
    /// Events so far; the last DAB_MONITOR_EVENTS can be read.
    pub events: u64,
    /// Mean of the finite scores.
    pub mean: f32,
    /// Standard deviation of the finite scores.
    pub std: f32,
    /// Smallest finite score.
    pub min: f32,
    /// Largest finite score.
    pub max: f32,
    /// Bits of DAB_WHY_; 0 in DAB_NOMINAL.
    pub why: u32,
    /// Why dab_guard rejected an input last; DAB_OK: never.
    pub last_rejection: i32,
    /// ln of the capital of the drift channel.
    pub drift_capital: f32,
    /// p-value of its last complete block; 1 before the first.
    pub drift_p: f32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u64,
}

// SAFETY: repr(C), the size first, numbers only, each at a multiple of its size.
unsafe impl Sized32 for MonitorStatistics {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[128, 136] } else { &[128] };
}

/// Trust was lost, lost for a further reason, or came back. Set `size` before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// sizeof(dab_event), set by the caller.
    pub size: u32,
    /// Which event, counting from 1; 0: there is none.
    pub number: u32,
    /// When.
    pub tick: u32,
    /// New reasons, bits of DAB_WHY_; 0: trust came back.
    pub why: u32,
    /// The score of the input; FLT_MAX without one.
    pub score: f32,
    /// The closest code, or DAB_NONE.
    pub nearest: u32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for Event {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[24, 28] } else { &[24] };
}

const _: () = {
    assert!(ptr::layouts_grow::<MonitorConfig>() && ptr::layouts_grow::<MonitorStatistics>());
    assert!(ptr::layouts_grow::<Event>());
    assert!(DAB_MONITOR_SAVED_BYTES == monitor::SAVED_BYTES && DAB_MONITOR_EVENTS as usize == EVENTS);
    assert!(DAB_DRIFT_LEVELS == monitor::LEVELS);
};

/// What lies in the words of a monitor.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) monitor: monitor::Monitor,
    /// Why an input was rejected last.
    pub(crate) rejection: Status,
}

pub(crate) type Stored = Tagged<Watch>;

/// First word of a monitor.
pub(crate) const TAG: u32 = u32::from_le_bytes(*b"dabW");

const _: () =
    assert!(size_of::<Stored>() <= size_of::<Monitor>() && align_of::<Stored>() <= align_of::<Monitor>());

pub(crate) const fn number(state: State) -> i32 {
    match state {
        State::Nominal => DAB_NOMINAL,
        State::Fallback => DAB_FALLBACK,
        State::Stale => DAB_STALE,
    }
}

const _: () = {
    assert!(Why::SPIKE.bits() as u32 == DAB_WHY_SPIKE && Why::DRIFT.bits() as u32 == DAB_WHY_DRIFT);
    assert!(Why::STALE.bits() as u32 == DAB_WHY_STALE && Why::REJECTED.bits() as u32 == DAB_WHY_REJECTED);
    assert!(Why::STARTING.bits() as u32 == DAB_WHY_STARTING);
};

/// Starts a monitor. It has seen nothing and trusts nothing: it is DAB_STALE, then DAB_FALLBACK from the first input
/// until enough inputs were familiar.
/// Returns DAB_OK, DAB_ERR_CONFIG if a value is out of its range, or -1 to -7 for bad pointers and sizes. After an error the
/// monitor is not started, even if it was before: it trusts nothing until a later call succeeds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_init(monitor: *mut Monitor, config: *const MonitorConfig) -> Status {
    // SAFETY: `init` checks both pointers; the caller promises a writable monitor that is this call's alone, and a
    // configuration of the size that it says.
    let result = unsafe { init(monitor, config) };
    if result.is_err() {
        // SAFETY: the caller promises a writable monitor, and a configuration of the size that it says.
        unsafe { stop(monitor, config) };
    }
    status::of(result)
}

/// A monitor that was started before trusts nothing any more: a program that overlooks the error would go on with the old
/// configuration. Where the monitor lies over the configuration nothing is written.
///
/// # Safety
/// If not NULL and aligned, `monitor` is writable; `config` is as [`dab_monitor_init`] asks.
unsafe fn stop(monitor: *mut Monitor, config: *const MonitorConfig) {
    // SAFETY: the caller of this function promises a configuration of the size that it says.
    let config = unsafe { ptr::config_place(config) };
    if span(monitor, 1).is_ok_and(|place| ptr::disjoint(&[place], &[config]).is_ok()) {
        let (tag, _) = Tagged::places(monitor.cast::<Stored>());
        // SAFETY: `span` checked that `monitor` is not NULL and aligned; the caller of this function promises that it is
        // writable.
        unsafe { ptr::put(tag, 0) };
    }
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
    let config = monitor::Config {
        enter: found.enter,
        exit: found.exit,
        enter_votes: found.enter_votes,
        exit_votes: found.exit_votes,
        window: found.window,
        reject_votes: found.reject_votes,
        min_dwell: found.min_dwell,
        timeout: found.timeout,
        drift: Drift {
            block: found.drift_block,
            alarm: found.drift_alarm,
            levels: found.drift_levels,
            p_values: found.drift_p,
            restart: match found.drift_keeps {
                0 => true,
                1 => false,
                _ => return Err(DAB_ERR_CONFIG),
            },
        },
    };
    let fresh = monitor::Monitor::new(config).map_err(|_| DAB_ERR_CONFIG)?;
    let started = Watch { monitor: fresh, rejection: DAB_OK };
    // SAFETY: `span` checked that `monitor` is not NULL and aligned, and `Stored` fits into it (asserted above); the
    // caller promises that it is writable.
    unsafe { ptr::put(monitor.cast::<Stored>(), Tagged::new(TAG, started)) };
    Ok(())
}

/// Takes in a score (dab_assessment.score) that was measured at tick `now`, and says who may drive.
/// now: any counter that goes up and wraps around at 2^32; `min_dwell` and `timeout` have its unit. After a step back, or
/// more than `timeout` ticks of silence, trust is earned anew (DAB_WHY_STALE).
/// score: NAN if the call that should have given it failed, s == DAB_OK ? a.score : NAN. A score that is not finite is a
/// rejected input: it votes for the alarm, and is DAB_FALLBACK for its own tick only, until `reject_votes` of them are in
/// the window. The FLT_MAX in a dab_assessment after an error is finite: it votes for the alarm, but one vote may leave the
/// state DAB_NOMINAL.
/// Threads: one at a time for each monitor.
/// Returns DAB_NOMINAL, DAB_FALLBACK, DAB_STALE, or -1, -2 or -6 for a bad pointer. Use the fallback unless it is
/// DAB_NOMINAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_observe(monitor: *mut Monitor, now: u32, score: f32) -> i32 {
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor, and
    // that it has no other user during the call (dab.h, "THREADS").
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG) } {
        Ok(watch) => number(watch.monitor.observe(now, score)),
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
        Ok(watch) => number(watch.monitor.poll(now)),
        Err(status) => status,
    }
}

/// Forgets everything but the configuration: the monitor is as new, and trusts nothing.
/// Returns DAB_OK, or -1, -2 or -6 for a bad pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_reset(monitor: *mut Monitor) -> Status {
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor, and
    // that it has no other user during the call (dab.h, "THREADS").
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG) } {
        Ok(watch) => {
            watch.monitor.reset();
            watch.rejection = DAB_OK;
            DAB_OK
        }
        Err(status) => status,
    }
}

/// Why the fallback drives: bits of DAB_WHY_, 0 in DAB_NOMINAL. DAB_WHY_STARTING if `monitor` is not a monitor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_why(monitor: *const Monitor) -> u32 {
    // SAFETY: `object` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor that
    // nobody writes to.
    match unsafe { ptr::object(monitor.cast::<Stored>(), TAG) } {
        Ok(watch) => watch.monitor.why().bits().into(),
        Err(_) => DAB_WHY_STARTING,
    }
}

/// The event before the last `back` ones: 0 is the latest. Where there is none, or it was overwritten, `number` is 0.
/// Returns DAB_OK, or -1 to -7 for bad pointers and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_event(monitor: *const Monitor, back: u32, out: *mut Event) -> Status {
    // SAFETY: `event` checks both pointers; the caller promises a monitor that nobody writes to, and a writable `out` of
    // the size that it says.
    status::of(unsafe { event(monitor, back, out) })
}

/// # Safety
/// As [`dab_monitor_event`].
unsafe fn event(monitor: *const Monitor, back: u32, out: *mut Event) -> Result<()> {
    // SAFETY: `object` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor that
    // nobody writes to.
    let found = unsafe { &ptr::object(monitor.cast::<Stored>(), TAG)?.monitor };
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
    let mut out = unsafe { Results::at(out, 1)? };
    ptr::disjoint(&[out.span()], &[span(monitor, 1)?])?;
    let event = found.events().nth(back as usize);
    let number = event.map_or(0, |_| found.event_count().saturating_sub(back.into()) as u32);
    let event = Event {
        size: out.size(),
        number,
        tick: event.map_or(0, |e| e.tick),
        why: event.map_or(0, |e| e.why.bits().into()),
        score: event.map_or(f32::MAX, |e| e.score),
        nearest: event.map_or(monitor::Event::NO_CODE, |e| e.nearest),
        #[cfg(feature = "grown")]
        grown: ptr::GROWN,
    };
    // SAFETY: there is one row, and `disjoint` found it apart from the monitor.
    unsafe { out.put(&event) };
    Ok(())
}

/// Saves everything but the configuration into DAB_MONITOR_SAVED_BYTES bytes, the same on every machine.
/// Returns DAB_OK, DAB_ERR_TOO_SMALL, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_save(
    monitor: *const Monitor,
    bytes: *mut c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: `save` checks both pointers; the caller promises a monitor that nobody writes to, and `byte_count` writable
    // bytes.
    status::of(unsafe { save(monitor, bytes.cast(), byte_count) })
}

/// # Safety
/// As [`dab_monitor_save`].
unsafe fn save(monitor: *const Monitor, bytes: *mut u8, count: usize) -> Result<()> {
    let room = span(bytes, DAB_MONITOR_SAVED_BYTES)?;
    ptr::disjoint(&[room], &[span(monitor, 1)?])?;
    // SAFETY: `object` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor that
    // nobody writes to.
    let found = unsafe { ptr::object(monitor.cast::<Stored>(), TAG)? };
    if count < DAB_MONITOR_SAVED_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: `span` checked the pointer, and `count` is large enough; the caller promises that so many bytes are
    // writable. They are bytes: every address is aligned.
    unsafe { ptr::put(bytes.cast(), found.monitor.save()) };
    Ok(())
}

/// Continues with a saved monitor of the same configuration. After a restart the clock usually jumps back, which is
/// DAB_STALE: trust is then earned anew. If yours does not, call dab_monitor_reset instead, or set `timeout`.
/// Returns DAB_OK, DAB_ERR_SAVED_STATE, or -1 to -6 for bad pointers and sizes; on an error, the monitor stays as it was.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_monitor_restore(
    monitor: *mut Monitor,
    bytes: *const c_void,
    byte_count: usize,
) -> Status {
    // SAFETY: `restore` checks both pointers; the caller promises a monitor without another user, and `byte_count`
    // readable bytes.
    status::of(unsafe { restore(monitor, bytes.cast(), byte_count) })
}

/// # Safety
/// As [`dab_monitor_restore`].
unsafe fn restore(monitor: *mut Monitor, bytes: *const u8, count: usize) -> Result<()> {
    let place = span(bytes, DAB_MONITOR_SAVED_BYTES)?;
    ptr::disjoint(&[span(monitor, 1)?], &[place])?;
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor
    // without another user during the call.
    let found = unsafe { ptr::object_mut(monitor.cast::<Stored>(), TAG)? };
    if count < DAB_MONITOR_SAVED_BYTES {
        return Err(DAB_ERR_TOO_SMALL);
    }
    // SAFETY: `span` checked the pointer, and `count` is large enough; the caller promises that so many bytes are
    // readable, and that nobody writes them during the call.
    let saved = unsafe { ptr::slice(bytes, DAB_MONITOR_SAVED_BYTES) };
    let saved = saved.first_chunk().ok_or(DAB_ERR_TOO_SMALL)?;
    found.monitor.restore(saved).map_err(|_| DAB_ERR_SAVED_STATE)
}

/// What the monitor saw so far.
/// Returns DAB_OK, or -1 to -7 for bad pointers and sizes.
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
    let (monitor, s) = (&found.monitor, found.monitor.statistics());
    let (drift_capital, drift_p) = monitor.drift();
    let found = MonitorStatistics {
        size: out.size(),
        state: number(monitor.state()),
        inputs: s.inputs,
        votes: s.votes,
        alarms: s.alarms,
        stales: s.stales,
        nominal_ticks: s.nominal_ticks,
        fallback_ticks: s.fallback_ticks,
        rejected: s.rejected,
        spikes: s.spikes,
        drifts: s.drifts,
        rejections: s.rejections,
        events: monitor.event_count(),
        mean: s.uncertainty.mean(),
        std: s.uncertainty.std(),
        min: s.uncertainty.min(),
        max: s.uncertainty.max(),
        why: monitor.why().bits().into(),
        last_rejection: found.rejection,
        drift_capital,
        drift_p,
        #[cfg(feature = "grown")]
        grown: ptr::GROWN.into(),
    };
    // SAFETY: there is one row, and `disjoint` found it apart from the monitor.
    unsafe { out.put(&found) };
    Ok(())
}
