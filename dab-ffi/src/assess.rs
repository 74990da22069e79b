//! One input, or many, in; an assessment each out.

use core::ffi::c_void;
use core::mem::size_of;

use dab_core::Verdict;

use crate::isa::Widest;
use crate::model::{Handle, Loaded, loaded, scratch_span};
use crate::ptr::{self, Results, Sized32, Span, span};
use crate::status::{
    self, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_NULL, DAB_ERR_SCRATCH, DAB_ERR_TOO_LARGE, Result,
    Status,
};

/// dab_assessment.verdict: the model has no calibration table.
pub const DAB_NO_VERDICT: i32 = -1;
/// dab_assessment.verdict: like the training data.
pub const DAB_FAMILIAR: i32 = 0;
/// dab_assessment.verdict: rare among the training data.
pub const DAB_DOUBTFUL: i32 = 1;
/// dab_assessment.verdict: unlike the training data.
pub const DAB_UNFAMILIAR: i32 = 2;

/// dab_assessment.flags: p_value and verdict are there.
pub const DAB_FLAG_CALIBRATED: u32 = 1;
/// dab_assessment.flags: the uncertainty overflowed and is the largest finite number.
pub const DAB_FLAG_SATURATED: u32 = 2;

/// What a model says of one input. Set `size` to sizeof(dab_assessment) before the call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Assessment {
    /// sizeof(dab_assessment), set by the caller and kept.
    pub size: u32,
    /// Bits of DAB_FLAG_.
    pub flags: u32,
    /// Expected distance from the training data, nats; larger is farther. Always finite.
    pub uncertainty: f32,
    /// Share of familiar inputs that are at least this uncertain, in (0, 1]; -1 without a calibration table.
    pub p_value: f32,
    /// DAB_FAMILIAR, DAB_DOUBTFUL, DAB_UNFAMILIAR or DAB_NO_VERDICT.
    pub verdict: i32,
    /// The closest code, counting from 0.
    pub nearest: u32,
    /// Its distance, nats.
    pub nearest_distance: f32,
    /// Only for the tests of struct growth.
    #[cfg(feature = "grown")]
    pub grown: u32,
}

// SAFETY: repr(C), the size first, numbers of 4 bytes only.
unsafe impl Sized32 for Assessment {
    const LAYOUTS: &'static [usize] = if cfg!(feature = "grown") { &[28, 32] } else { &[28] };
}

const _: () = assert!(ptr::layouts_grow::<Assessment>());

fn assessment(found: &dab_core::Assessment, size: u32) -> Assessment {
    let calibrated = if found.p_value.is_some() { DAB_FLAG_CALIBRATED } else { 0 };
    let saturated = if found.saturated { DAB_FLAG_SATURATED } else { 0 };
    Assessment {
        size,
        flags: calibrated | saturated,
        uncertainty: found.uncertainty,
        p_value: found.p_value.unwrap_or(-1.0),
        verdict: match found.verdict {
            None => DAB_NO_VERDICT,
            Some(Verdict::Familiar) => DAB_FAMILIAR,
            Some(Verdict::Doubtful) => DAB_DOUBTFUL,
            Some(Verdict::Unfamiliar) => DAB_UNFAMILIAR,
        },
        nearest: found.nearest as u32,
        nearest_distance: found.nearest_distance,
        #[cfg(feature = "grown")]
        grown: ptr::GROWN,
    }
}

/// What every call of this file is given.
struct Call {
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    scratch: *mut f32,
    floats: usize,
    out: *mut Assessment,
}

/// [`Call`] after the checks.
struct Checked<'a> {
    loaded: &'a Loaded,
    input: &'a [f32],
    scratch: &'a mut [f32],
    out: Results<Assessment>,
}

impl Checked<'_> {
    /// Writes what was found.
    fn put(mut self, found: &dab_core::Assessment) {
        let found = assessment(found, self.out.size());
        // SAFETY: there is one row, `check` found it apart from all other memory of the call, and this is the one
        // write: `self` is used up.
        unsafe { self.out.put(&found) };
    }
}

impl Call {
    /// From the arguments as C gives them: scratch in bytes, of which whole floats are used.
    fn new(
        model: *const Handle,
        (input, inputs): (*const f32, usize),
        (scratch, scratch_bytes): (*mut c_void, usize),
        out: *mut Assessment,
    ) -> Self {
        Self { model, input, inputs, scratch: scratch.cast(), floats: scratch_bytes / size_of::<f32>(), out }
    }

    /// Checks everything, with `results` as further memory that is written.
    ///
    /// # Safety
    /// The promises of dab.h, "Memory".
    unsafe fn check<'a>(&self, results: [Span; 3]) -> Result<Checked<'a>> {
        // SAFETY: handed on.
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
        // SAFETY: checked above; the caller promises `inputs` readable floats that nobody writes during the
        // call (dab.h, "Memory").
        let input = unsafe { ptr::slice(self.input, self.inputs) };
        // SAFETY: checked above, apart from all else; the caller promises writable memory that is this call's
        // alone (dab.h, "Memory").
        let scratch = unsafe { ptr::slice_mut(self.scratch, self.floats) };
        Ok(Checked { loaded, input, scratch, out })
    }
}

/// How far `input` lies from the training data.
/// input: `inputs` floats, as many as dab_shape.inputs. scratch: `scratch_bytes` bytes at a multiple of 4, at
/// least dab_scratch_bytes(model); contents ignored before and after.
/// Threads: `model` may be shared, `scratch` may not.
/// Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_SCRATCH, or -1 to -7 for bad pointers; *out is
/// written only on DAB_OK.
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
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { assess(&call) })
}

unsafe fn assess(call: &Call) -> Result<()> {
    // SAFETY: handed on.
    let checked = unsafe { call.check([Span::NONE; 3])? };
    let found = checked.loaded.model.assess_on(Widest, checked.input, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}

/// dab_assess for many inputs: `rows` inputs of `inputs` floats, one behind the other, and `rows` assessments. Set
/// the size of the first assessment: it is the distance from one to the next.
/// Returns as dab_assess. Either all rows are assessed or, if one has a value that is not finite, none: *out is
/// written only on DAB_OK.
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
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { assess_batch(call, rows) })
}

unsafe fn assess_batch(call: Call, rows: usize) -> Result<()> {
    // SAFETY: the caller promises that `out`, if not NULL, has as many writable bytes for each row as the first `size`
    // says.
    let mut out = unsafe { Results::at(call.out, rows)? };
    // SAFETY: handed on.
    let (loaded, [storage, artifact]) = unsafe { loaded(call.model)? };
    if call.input.is_null() {
        return Err(DAB_ERR_NULL);
    }
    let values = call.inputs.checked_mul(rows).ok_or(DAB_ERR_TOO_LARGE)?;
    let input = span(call.input, values)?;
    let scratch = scratch_span(call.scratch, call.floats)?;
    ptr::disjoint(&[scratch, out.span()], &[input, storage, artifact])?;
    if call.inputs != loaded.model.shape().inputs {
        return Err(DAB_ERR_LENGTH);
    }
    if call.floats < loaded.model.scratch_len() {
        return Err(DAB_ERR_SCRATCH);
    }
    // SAFETY: checked above; the caller promises readable floats that nobody writes during the call (dab.h,
    // "Memory").
    let mut rest = unsafe { ptr::slice(call.input, values) };
    if !rest.iter().all(|x| x.is_finite()) {
        return Err(DAB_ERR_NON_FINITE);
    }
    // SAFETY: checked above, apart from all else; the caller promises writable memory that is this call's alone
    // (dab.h, "Memory").
    let scratch = unsafe { ptr::slice_mut(call.scratch, call.floats) };
    while let Some((row, after)) = rest.split_at_checked(call.inputs).filter(|(row, _)| !row.is_empty()) {
        let found = loaded.model.assess_on(Widest, row, scratch).map_err(|e| status::of_input(&e))?;
        // SAFETY: `values` has `rows` inputs, so this is done at most `rows` times; `disjoint` found the results apart
        // from all other memory of the call.
        unsafe { out.put(&assessment(&found, out.size())) };
        rest = after;
    }
    Ok(())
}

/// The assessment of `input`, and what the model predicts: means (regression) or logits (classification).
/// outputs: `output_count` floats, as many as dab_shape.outputs.
/// Returns as dab_assess, and DAB_ERR_OUTPUT_LENGTH; results are written only on DAB_OK.
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
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { predict(&call, outputs, output_count) })
}

unsafe fn predict(call: &Call, outputs: *mut f32, count: usize) -> Result<()> {
    // SAFETY: handed on.
    let checked = unsafe { call.check([span(outputs, count)?, Span::NONE, Span::NONE])? };
    // SAFETY: checked above, apart from all else; the caller promises writable memory that is this call's alone
    // (dab.h, "Memory").
    let outputs = unsafe { ptr::slice_mut(outputs, count) };
    let found = checked.loaded.model.predict_on(Widest, checked.input, outputs, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}

/// Why the input is as far as it is.
/// distances: nats to each of `codes` codes. assignment: the weight of each, sum 1. dimensions: what each of `dim`
/// latent dimensions contributes to the uncertainty, nats, sum dab_assessment.uncertainty; negative ones make the
/// input more familiar. `codes` and `dim` are those of dab_shape.
/// Returns as dab_assess, and DAB_ERR_OUTPUT_LENGTH; results are written only on DAB_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_explain(
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    distances: *mut f32,
    assignment: *mut f32,
    codes: usize,
    dimensions: *mut f32,
    dim: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: the caller's promises (dab.h, "Memory") are handed on.
    status::of(unsafe { explain(&call, [distances, assignment], codes, dimensions, dim) })
}

unsafe fn explain(
    call: &Call,
    [distances, assignment]: [*mut f32; 2],
    codes: usize,
    dimensions: *mut f32,
    dim: usize,
) -> Result<()> {
    let results = [span(distances, codes)?, span(assignment, codes)?, span(dimensions, dim)?];
    // SAFETY: handed on.
    let checked = unsafe { call.check(results)? };
    // SAFETY: here and twice below: checked above, apart from all else; the caller promises writable memory
    // that is this call's alone (dab.h, "Memory").
    let distances = unsafe { ptr::slice_mut(distances, codes) };
    // SAFETY: as above.
    let assignment = unsafe { ptr::slice_mut(assignment, codes) };
    // SAFETY: as above.
    let dimensions = unsafe { ptr::slice_mut(dimensions, dim) };
    let model = &checked.loaded.model;
    let found = model.explain_into(checked.input, distances, assignment, dimensions, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}
