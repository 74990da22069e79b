//! One call for a control loop: an input in, who may drive out.

use core::ffi::c_void;

use crate::assess::{Assessment, Call};
use crate::isa::Widest;
use crate::model::Handle;
use crate::monitor::{self, Monitor, Stored};
use crate::ptr::{self, Span, span};
use crate::status::{self, DAB_ERR_OVERLAP, Result};

/// Who may drive? The whole of a control loop: assesses the input of tick `now`, gives its verdict, predicts, and tells
/// the monitor. Whatever is refused (a NaN, a wrong length, a bad pointer) is counted, votes for the fallback, and is
/// never driven on; dab_monitor_statistics.last_rejection says why. A refused input is DAB_FALLBACK for its own tick only,
/// until `reject_votes` of them are in the window.
/// The answer is about the stream, by the thresholds of the monitor: one unfamiliar input among familiar ones is still
/// DAB_NOMINAL, until `enter_votes` of them are in the window. If not even one may be driven on, set `enter_votes` to 1,
/// or ask for the verdict too: who == DAB_NOMINAL && a.verdict == DAB_FAMILIAR.
/// outputs: as dab_predict; NULL and 0 if no prediction is wanted. They are written whenever the input was assessed, also in
/// DAB_FALLBACK; a refused input leaves them as they were. Use them in DAB_NOMINAL only. The rest as dab_assess and
/// dab_monitor_observe. On a tick without a new input, call dab_monitor_poll.
/// Returns DAB_NOMINAL (the outputs may be used), DAB_FALLBACK or DAB_STALE, or a negative number if `monitor` is not a
/// monitor. Use the fallback unless it is DAB_NOMINAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_guard(
    model: *const Handle,
    monitor: *mut Monitor,
    now: u32,
    input: *const f32,
    inputs: usize,
    outputs: *mut f32,
    output_count: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> i32 {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `object_mut` checks pointer and tag; the caller promises that whatever has the tag is a whole monitor. The
    // reference is not kept.
    if let Err(status) = unsafe { ptr::object_mut(monitor.cast::<Stored>(), monitor::TAG) } {
        // SAFETY: `end` checks every pointer of `call`; the caller promises what dab.h says under "MEMORY".
        return unsafe { call.end(1, Err(status)) };
    }
    let place = span(monitor, 1).unwrap_or(Span::NONE);
    // SAFETY: `assess` checks every pointer of `call`, and `outputs`; the caller promises what dab.h says under "MEMORY".
    let found = unsafe { assess(&call, place, outputs, output_count) };
    // SAFETY: as above. An assessment that lies over the monitor is left alone.
    let status = match unsafe { call.writes_over(place) } {
        true => DAB_ERR_OVERLAP,
        // SAFETY: as above.
        false => unsafe { call.end(1, found.map(|_| ())) },
    };
    // SAFETY: as above; nothing that `assess` made a reference to is used any more, and the caller promises that the
    // monitor has no other user during the call (dab.h, "THREADS").
    match unsafe { ptr::object_mut(monitor.cast::<Stored>(), monitor::TAG) } {
        Ok(watch) => monitor::number(match found {
            Ok(found) => watch.monitor.judge(now, &Ok(found)),
            Err(_) => {
                watch.rejection = status;
                watch.monitor.reject(now)
            }
        }),
        Err(status) => status,
    }
}

/// # Safety
/// As [`Call::check`]; and `outputs`, if not NULL, are `count` writable floats that are this call's alone.
unsafe fn assess(
    call: &Call,
    monitor: Span,
    outputs: *mut f32,
    count: usize,
) -> Result<dab_core::Assessment> {
    // SAFETY: `span` checks `outputs`; for the rest the caller promises what `check` asks.
    let checked = unsafe { call.check([span(outputs, count)?, monitor, Span::NONE])? };
    let found = if count == 0 {
        checked.loaded.model.assess_on(Widest, checked.input, checked.scratch)
    } else {
        // SAFETY: `span` checked pointer and length, `check` that it lies apart from all other memory of the call; the
        // caller promises writable memory that is this call's alone (dab.h, "MEMORY").
        let outputs = unsafe { ptr::slice_mut(outputs, count) };
        checked.loaded.model.predict_on(Widest, checked.input, outputs, checked.scratch)
    };
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(found)
}
