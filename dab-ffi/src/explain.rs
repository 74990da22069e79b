//! Why an input is as far from the training data as it is.

use core::ffi::c_void;

use crate::assess::{Assessment, Call};
use crate::model::Handle;
use crate::ptr::{self, span};
use crate::status::{self, Result, Status};

/// Assesses `input`, and tells why it is as far as it is in the first view; nothing of it is about other views.
/// distances: the distance to each of `codes` codes in nats. assignment: the weight of each code; their sum is 1.
/// dimensions: what each of `dim` latent dimensions adds to the uncertainty in nats; their sum is the uncertainty, and
/// a negative one makes the input more familiar. `codes` and `dim` are those of dab_shape.
/// Returns as dab_assess, or DAB_ERR_OUTPUT_LENGTH.
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
    // SAFETY: `explain` and `end` check the memory of the results and every pointer of `call`; the caller promises what
    // dab.h says under "MEMORY".
    unsafe { call.end(1, explain(&call, [distances, assignment], codes, dimensions, dim)) }
}

/// # Safety
/// As [`Call::check`]; and the three results, if not NULL, are writable and this call's alone.
unsafe fn explain(
    call: &Call,
    [distances, assignment]: [*mut f32; 2],
    codes: usize,
    dimensions: *mut f32,
    dim: usize,
) -> Result<()> {
    let results = [span(distances, codes)?, span(assignment, codes)?, span(dimensions, dim)?];
    // SAFETY: `span` checked the three results; for the rest the caller promises what `check` asks.
    let checked = unsafe { call.check(results)? };
    // SAFETY: `span` checked pointer and length, `check` that it lies apart from all other memory of the call; the
    // caller promises writable memory that is this call's alone.
    let distances = unsafe { ptr::slice_mut(distances, codes) };
    // SAFETY: as for `distances`.
    let assignment = unsafe { ptr::slice_mut(assignment, codes) };
    // SAFETY: as for `distances`.
    let dimensions = unsafe { ptr::slice_mut(dimensions, dim) };
    let model = &checked.loaded.model;
    let found = model.explain_into(checked.input, distances, assignment, dimensions, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}
