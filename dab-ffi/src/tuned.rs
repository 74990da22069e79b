//! The monitor that was tuned for a model and lies in its file.

use crate::model::{self, Handle};
use crate::monitor::MonitorConfig;
use crate::ptr::{self, Results, Span, span};
use crate::status::{self, DAB_ERR_NO_MONITOR, Result, Status};

/// The monitor that was tuned for the model and lies in its artifact (`dab monitor tune --into`): start it with
/// dab_monitor_init.
/// out: set `size`. tick_seconds: the length of a tick for which it was tuned, or NULL; a loop with other ticks has other
/// false alarms an hour.
/// Returns DAB_OK, DAB_ERR_NO_MONITOR if the artifact has none, or -1 to -7 for bad pointers and sizes. After an error the
/// configuration, if it can be written, is one that dab_monitor_init refuses, and the tick is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_monitor(
    model: *const Handle,
    out: *mut MonitorConfig,
    tick_seconds: *mut f32,
) -> Status {
    // SAFETY: `tuned` checks every pointer; the caller promises a model that nobody writes to, a writable `out` of the size
    // that it says, and a writable float.
    let result = unsafe { tuned(model, out, tick_seconds) };
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model.
    let [storage, artifact] = unsafe { model::loaded(model) }.map_or([Span::NONE; 2], |(_, places)| places);
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
    let config = unsafe { Results::at(out, 1) }.map_or(Span::NONE, |out| out.span());
    if let (Err(_), Ok(tick)) = (result, span(tick_seconds, 1))
        && ptr::disjoint(&[tick], &[config, storage, artifact]).is_ok()
    {
        // SAFETY: `span` checked that it is not NULL and aligned, `disjoint` that it is no part of the rest; the caller
        // promises that it is writable.
        unsafe { ptr::put(tick_seconds, 0.0) };
    }
    status::of(result)
}

/// No window: dab_monitor_init refuses it.
const NONE: MonitorConfig = MonitorConfig {
    size: 0,
    enter: 0.0,
    exit: 0.0,
    window: 0,
    enter_votes: 0,
    exit_votes: 0,
    min_dwell: 0,
    timeout: 0,
    reject_votes: 0,
    drift_block: 0,
    drift_alarm: 0.0,
    drift_keeps: 0,
    drift_levels: [0.0; 7],
    drift_p: [0.0; 7],
    #[cfg(feature = "grown")]
    grown: 0,
};

/// # Safety
/// As [`dab_model_monitor`].
unsafe fn tuned(model: *const Handle, out: *mut MonitorConfig, tick_seconds: *mut f32) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    let found = unsafe { model::loaded(model) };
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
    let mut out = unsafe { Results::at(out, 1)? };
    let tick = if tick_seconds.is_null() { Ok(Span::NONE) } else { span(tick_seconds, 1) };
    let places = found.as_ref().map_or([Span::NONE; 2], |(_, places)| *places);
    ptr::disjoint(&[out.span(), tick.unwrap_or(Span::NONE)], &[])?;
    ptr::disjoint(&[out.span()], &places)?;
    // The configuration is emptied even if the tick lies over the model or its artifact.
    let tick = tick.and_then(|tick| ptr::disjoint(&[tick], &places));
    let config = match (&found, tick) {
        (Ok((loaded, _)), Ok(_)) => loaded.model.monitor_config().ok_or(DAB_ERR_NO_MONITOR),
        (Err(status), _) => Err(*status),
        (_, Err(status)) => Err(status),
    };
    let size = out.size();
    let written = match &config {
        Ok(config) => MonitorConfig {
            size,
            enter: config.enter,
            exit: config.exit,
            window: config.window,
            enter_votes: config.enter_votes,
            exit_votes: config.exit_votes,
            min_dwell: config.min_dwell,
            timeout: config.timeout,
            reject_votes: config.reject_votes,
            drift_block: config.drift.block,
            drift_alarm: config.drift.alarm,
            drift_keeps: u32::from(!config.drift.restart),
            drift_levels: config.drift.levels,
            drift_p: config.drift.p_values,
            #[cfg(feature = "grown")]
            grown: 0,
        },
        Err(_) => MonitorConfig { size, ..NONE },
    };
    // SAFETY: there is one row, and `disjoint` found it apart from the tick, the model and its artifact.
    unsafe { out.put(&written) };
    if let (Ok((loaded, _)), Ok(_), false) = (&found, tick, tick_seconds.is_null()) {
        // SAFETY: `span` checked that it is aligned, `disjoint` that it is no part of the rest; the caller promises that it
        // is writable.
        unsafe { ptr::put(tick_seconds, loaded.model.monitor_tick().unwrap_or(0.0)) };
    }
    config.map(|_| ())
}
