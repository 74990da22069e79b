//! One input, or many, in; an assessment for each out.

use core::ffi::c_void;
use core::mem::size_of;

use dab_core::Verdict;

use crate::isa::Widest;
use crate::model::{Handle, Loaded, loaded, scratch_span};
use crate::ptr::{self, Results, Sized32, Span, span};
use crate::status::{
    self, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_NULL, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_SCRATCH,
    DAB_ERR_TOO_LARGE, Result, Status,
};

/// verdict: none. The model has no calibration table, or the call failed.
pub const DAB_NO_VERDICT: i32 = 0;
/// verdict: like the training data.
pub const DAB_FAMILIAR: i32 = 1;
/// verdict: like the training data, but between two classes.
pub const DAB_AMBIGUOUS: i32 = 2;
/// verdict: rare among the training data.
pub const DAB_DOUBTFUL: i32 = 3;
/// verdict: unlike the training data.
pub const DAB_UNFAMILIAR: i32 = 4;

/// flags: p_value and verdict are set.
pub const DAB_FLAG_CALIBRATED: u32 = 1;
/// flags: the uncertainty overflowed and is the largest finite number.
pub const DAB_FLAG_SATURATED: u32 = 2;
/// flags: the model has channels; unfamiliarity and view are set.
pub const DAB_FLAG_CHANNELS: u32 = 4;
/// flags: ambiguity, top_class and runner_up are set.
pub const DAB_FLAG_AMBIGUITY: u32 = 8;

/// top_class, runner_up, view: there is none.
pub const DAB_NONE: u32 = u32::MAX;

/// What a model says of one input. Set `size` before the call. After an error it is the answer that trusts nothing: no
/// verdict, no flags, distances and scores of FLT_MAX, and a `nearest` of 0 that means nothing. DAB_DOUBTFUL and
/// DAB_UNFAMILIAR hide DAB_AMBIGUOUS: look at ambiguity_p.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Assessment {
    /// sizeof(dab_assessment), set by the caller.
    pub size: u32,
    /// Bits of DAB_FLAG_.
    pub flags: u32,
    /// Distance from the training data in nats, in the first view; always finite.
    pub uncertainty: f32,
    /// (1 + held-out inputs that score at least this) / (1 + held-out inputs); -1: unknown.
    pub p_value: f32,
    /// One of the verdicts above.
    pub verdict: i32,
    /// The closest code of the first view, counting from 0.
    pub nearest: u32,
    /// Its distance, nats.
    pub nearest_distance: f32,
    /// What p_value, verdict, dab_threshold and a monitor go by: unfamiliarity if there are channels, else uncertainty.
    pub score: f32,
    /// Surprise of all views, at least 0; -1 without channels; FLT_MAX after an error.
    pub unfamiliarity: f32,
    /// ln of the odds against top_class, any sign; 0 without one; FLT_MAX after an error.
    pub ambiguity: f32,
    /// Share of familiar inputs that are at least this ambiguous, as p_value; -1: unknown.
    pub ambiguity_p: f32,
    /// The likeliest class, or DAB_NONE.
    pub top_class: u32,
    /// The second likeliest class, or DAB_NONE.
    pub runner_up: u32,
    /// The view that is surprised most, 0 is the base; DAB_NONE without channels.
    pub view: u32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for Assessment {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[56, 60] } else { &[56] };
}

const _: () = assert!(ptr::layouts_grow::<Assessment>());

impl Assessment {
    /// What a caller gets who does not look at the status: nothing in it can be taken for trust.
    const fn fail_safe(size: u32) -> Self {
        Self {
            size,
            flags: 0,
            uncertainty: f32::MAX,
            p_value: -1.0,
            verdict: DAB_NO_VERDICT,
            nearest: 0,
            nearest_distance: f32::MAX,
            score: f32::MAX,
            unfamiliarity: f32::MAX,
            ambiguity: f32::MAX,
            ambiguity_p: -1.0,
            top_class: DAB_NONE,
            runner_up: DAB_NONE,
            view: DAB_NONE,
            #[cfg(feature = "grown")]
            grown: ptr::GROWN,
        }
    }
}

fn assessment(found: &dab_core::Assessment, size: u32) -> Assessment {
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let place = |place: Option<usize>| place.map_or(DAB_NONE, |i| i as u32);
    Assessment {
        size,
        flags: flag(found.p_value.is_some(), DAB_FLAG_CALIBRATED)
            | flag(found.saturated, DAB_FLAG_SATURATED)
            | flag(found.unfamiliarity.is_some(), DAB_FLAG_CHANNELS)
            | flag(found.ambiguity.is_some(), DAB_FLAG_AMBIGUITY),
        uncertainty: found.uncertainty,
        p_value: found.p_value.unwrap_or(-1.0),
        verdict: match found.verdict {
            None => DAB_NO_VERDICT,
            Some(Verdict::Familiar) => DAB_FAMILIAR,
            Some(Verdict::Ambiguous) => DAB_AMBIGUOUS,
            Some(Verdict::Doubtful) => DAB_DOUBTFUL,
            Some(Verdict::Unfamiliar) => DAB_UNFAMILIAR,
        },
        nearest: found.nearest as u32,
        nearest_distance: found.nearest_distance,
        score: found.score(),
        unfamiliarity: found.unfamiliarity.unwrap_or(-1.0),
        ambiguity: found.ambiguity.unwrap_or(0.0),
        ambiguity_p: found.ambiguity_p.unwrap_or(-1.0),
        top_class: place(found.class),
        runner_up: place(found.runner_up),
        view: place(found.view),
        #[cfg(feature = "grown")]
        grown: ptr::GROWN,
    }
}

/// What every call on one input is given.
pub(crate) struct Call {
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    scratch: *mut f32,
    floats: usize,
    out: *mut Assessment,
}

/// [`Call`] after the checks.
pub(crate) struct Checked<'a> {
    pub(crate) loaded: &'a Loaded,
    pub(crate) input: &'a [f32],
    pub(crate) scratch: &'a mut [f32],
    out: Results<Assessment>,
}

impl Checked<'_> {
    /// Writes what was found.
    pub(crate) fn put(mut self, found: &dab_core::Assessment) {
        let found = assessment(found, self.out.size());
        // SAFETY: there is one row, `check` found it apart from all other memory of the call, and this is the one
        // write: `self` is used up.
        unsafe { self.out.put(&found) };
    }
}

impl Call {
    /// From the arguments as C gives them: scratch in bytes, of which whole floats are used.
    pub(crate) fn new(
        model: *const Handle,
        (input, inputs): (*const f32, usize),
        (scratch, scratch_bytes): (*mut c_void, usize),
        out: *mut Assessment,
    ) -> Self {
        Self { model, input, inputs, scratch: scratch.cast(), floats: scratch_bytes / size_of::<f32>(), out }
    }

    /// The status of a call that ended with `result`; after an error, `rows` results are those that trust nothing.
    ///
    /// # Safety
    /// The promises of dab.h, "MEMORY".
    pub(crate) unsafe fn end(&self, rows: usize, result: Result<()>) -> Status {
        if result.is_err() {
            // SAFETY: the caller of this function promises what dab.h says.
            unsafe { self.distrust(rows) };
        }
        status::of(result)
    }

    /// Whether the one result lies over `place`.
    ///
    /// # Safety
    /// The promises of dab.h, "MEMORY".
    pub(crate) unsafe fn writes_over(&self, place: Span) -> bool {
        // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
        unsafe { Results::at(self.out, 1) }.is_ok_and(|out| ptr::disjoint(&[out.span()], &[place]).is_err())
    }

    /// Writes the results that trust nothing, unless their place is bad or overlaps what the caller still needs.
    ///
    /// # Safety
    /// The promises of dab.h, "MEMORY".
    unsafe fn distrust(&self, rows: usize) {
        // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes for each row as the first
        // `size` says.
        let Ok(mut out) = (unsafe { Results::at(self.out, rows) }) else { return };
        // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model.
        let places = unsafe { loaded(self.model) }.map_or([Span::NONE; 2], |(_, places)| places);
        let [storage, artifact] = places;
        let values = self.inputs.checked_mul(rows).unwrap_or(0);
        let input = span(self.input, values).unwrap_or(Span::NONE);
        if ptr::disjoint(&[out.span()], &[input, storage, artifact]).is_err() {
            return;
        }
        let nothing = Assessment::fail_safe(out.size());
        for _ in 0..rows {
            // SAFETY: done once for each of `rows` places, which `disjoint` found apart from input and model.
            unsafe { out.put(&nothing) };
        }
    }

    /// Checks everything, with `results` as further memory that is written.
    ///
    /// # Safety
    /// The promises of dab.h, "MEMORY".
    pub(crate) unsafe fn check<'a>(&self, results: [Span; 3]) -> Result<Checked<'a>> {
        // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that
        // dab_model_init or dab_model_open made and nobody writes to.
        let (loaded, [storage, artifact]) = unsafe { loaded(self.model)? };
        if self.input.is_null() {
            return Err(DAB_ERR_NULL);
        }
        let input = span(self.input, self.inputs)?;
        let scratch = scratch_span(self.scratch, self.floats)?;
        // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
        let out = unsafe { Results::at(self.out, 1)? };
        let [a, b, c] = results;
        ptr::disjoint(&[scratch, out.span(), a, b, c], &[input, storage, artifact])?;
        // SAFETY: `span` checked pointer and length; the caller promises `inputs` readable floats that nobody writes
        // during the call (dab.h, "MEMORY").
        let input = unsafe { ptr::slice(self.input, self.inputs) };
        // SAFETY: `scratch_span` checked pointer and length, `disjoint` that it lies apart from all other memory of the
        // call; the caller promises writable memory that is this call's alone (dab.h, "MEMORY").
        let scratch = unsafe { ptr::slice_mut(self.scratch, self.floats) };
        Ok(Checked { loaded, input, scratch, out })
    }

    /// Values of the input, as the caller says.
    pub(crate) const fn inputs(&self) -> usize {
        self.inputs
    }

    /// [`Call::check`] of a call that reads `more` memory, which nothing that is written may overlap.
    ///
    /// # Safety
    /// The promises of dab.h, "MEMORY".
    pub(crate) unsafe fn check_reading<'a>(
        &self,
        results: [Span; 3],
        more: [Span; 2],
    ) -> Result<Checked<'a>> {
        // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes as its `size` says.
        let out = unsafe { Results::at(self.out, 1)? };
        let [a, b, c] = results;
        ptr::disjoint(&[scratch_span(self.scratch, self.floats)?, out.span(), a, b, c], &more)?;
        // SAFETY: the caller of this function promises it.
        unsafe { self.check(results) }
    }
}

/// How far `input` lies from the training data. Act only if the status is DAB_OK and the verdict is one that you name.
/// input: `inputs` floats, as many as dab_shape.inputs. scratch: `scratch_bytes` bytes at a multiple of 4, at least
/// dab_scratch_bytes(model); its contents mean nothing before and after the call.
/// Threads: `model` may be shared, `scratch` and `out` may not.
/// Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_SCRATCH, or -1 to -7 for bad pointers and sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_assess(
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `check` and `end` look at every pointer of `call`; the caller promises what dab.h says under "MEMORY".
    unsafe { call.end(1, assess(&call)) }
}

/// # Safety
/// As [`Call::check`].
unsafe fn assess(call: &Call) -> Result<()> {
    // SAFETY: no further memory is written; for the rest the caller promises what `check` asks.
    let checked = unsafe { call.check([Span::NONE; 3])? };
    let found = checked.loaded.model.assess_on(Widest, checked.input, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}

/// dab_assess for many inputs: `rows` inputs of `inputs` floats, one after the other, and an array of `rows`
/// assessments, of which the first one has its `size` set.
/// Returns as dab_assess. If one value of one row is not finite, no row is assessed, and none is trusted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_assess_batch(
    model: *const Handle,
    input: *const f32,
    rows: usize,
    inputs: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `batch` and `end` check every pointer of `call`; the caller promises what dab.h says under "MEMORY".
    unsafe { call.end(rows, batch(&call, rows, None)) }
}

/// # Safety
/// As [`Call::check`], with `rows` inputs and results; and `predict`, if any, has `rows` times as many writable floats as
/// it says, which are this call's alone.
unsafe fn batch(call: &Call, rows: usize, predict: Option<(*mut f32, usize)>) -> Result<()> {
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes for each row as the first `size`
    // says.
    let mut out = unsafe { Results::at(call.out, rows)? };
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that
    // dab_model_init or dab_model_open made and nobody writes to.
    let (loaded, [storage, artifact]) = unsafe { loaded(call.model)? };
    if call.input.is_null() {
        return Err(DAB_ERR_NULL);
    }
    let values = call.inputs.checked_mul(rows).ok_or(DAB_ERR_TOO_LARGE)?;
    let input = span(call.input, values)?;
    let scratch = scratch_span(call.scratch, call.floats)?;
    let (outputs, width) = predict.unwrap_or((core::ptr::null_mut(), 0));
    let predicted = width.checked_mul(rows).ok_or(DAB_ERR_TOO_LARGE)?;
    ptr::disjoint(&[scratch, out.span(), span(outputs, predicted)?], &[input, storage, artifact])?;
    let shape = loaded.model.shape();
    if call.inputs != shape.inputs {
        return Err(DAB_ERR_LENGTH);
    }
    if call.floats < loaded.model.scratch_len() {
        return Err(DAB_ERR_SCRATCH);
    }
    if predict.is_some() && width != shape.outputs {
        return Err(DAB_ERR_OUTPUT_LENGTH);
    }
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes during the call
    // (dab.h, "MEMORY").
    let mut rest = unsafe { ptr::slice(call.input, values) };
    if !rest.iter().all(|x| x.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    // SAFETY: `scratch_span` checked pointer and length, `disjoint` that it lies apart from all other memory of the call;
    // the caller promises writable memory that is this call's alone (dab.h, "MEMORY").
    let scratch = unsafe { ptr::slice_mut(call.scratch, call.floats) };
    // SAFETY: as for the scratch; `span` checked pointer and length.
    let mut outputs = unsafe { ptr::slice_mut(outputs, predicted) };
    while let Some((row, after)) = rest.split_at_checked(call.inputs).filter(|(row, _)| !row.is_empty()) {
        let found = match predict {
            None => loaded.model.assess_on(Widest, row, scratch),
            Some(_) => {
                let (now, later) = outputs.split_at_mut_checked(width).ok_or(DAB_ERR_OUTPUT_LENGTH)?;
                outputs = later;
                loaded.model.predict_on(Widest, row, now, scratch)
            }
        };
        let found = found.map_err(|e| status::of_input(&e))?;
        // SAFETY: `values` has `rows` inputs, so this is done at most `rows` times; `disjoint` found the results apart
        // from all other memory of the call.
        unsafe { out.put(&assessment(&found, out.size())) };
        rest = after;
    }
    Ok(())
}

/// The assessment of `input`, and what the model predicts: means (regression) or logits (classification).
/// outputs: `output_count` floats, as many as dab_shape.outputs.
/// Returns as dab_assess, or DAB_ERR_OUTPUT_LENGTH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_predict(
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    outputs: *mut f32,
    output_count: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `predict` and `end` check `outputs` and every pointer of `call`; the caller promises what dab.h says under
    // "MEMORY".
    unsafe { call.end(1, predict(&call, outputs, output_count)) }
}

/// dab_predict for many inputs: as dab_assess_batch, with `rows` times `output_count` floats of outputs, those of one input
/// after those of another. `output_count` is dab_shape.outputs.
/// Returns as dab_assess_batch, or DAB_ERR_OUTPUT_LENGTH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_predict_batch(
    model: *const Handle,
    input: *const f32,
    rows: usize,
    inputs: usize,
    outputs: *mut f32,
    output_count: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `batch` and `end` check `outputs` and every pointer of `call`; the caller promises what dab.h says under
    // "MEMORY".
    unsafe { call.end(rows, batch(&call, rows, Some((outputs, output_count)))) }
}

/// # Safety
/// As [`Call::check`]; and `outputs`, if not NULL, are `count` writable floats that are this call's alone.
unsafe fn predict(call: &Call, outputs: *mut f32, count: usize) -> Result<()> {
    // SAFETY: `span` checks `outputs`; for the rest the caller promises what `check` asks.
    let checked = unsafe { call.check([span(outputs, count)?, Span::NONE, Span::NONE])? };
    // SAFETY: `span` checked pointer and length, `check` that it lies apart from all other memory of the call; the caller
    // promises writable memory that is this call's alone (dab.h, "MEMORY").
    let outputs = unsafe { ptr::slice_mut(outputs, count) };
    let found = checked.loaded.model.predict_on(Widest, checked.input, outputs, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}
