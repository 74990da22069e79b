//! A model and a memory beside it: "this is normal now".

use core::ffi::c_void;
use core::mem::size_of;

use dab_core::memory;
use dab_core::teach::TeachError;

use crate::assess::{Assessment, Call};
use crate::memory::{Memory, opened};
use crate::model::{Handle, loaded, scratch_span};
use crate::ptr::{self, Span, span};
use crate::status::{self, DAB_ERR_NULL, DAB_ERR_OUTPUT_LENGTH, Result, Status};

/// The number of a refusal.
fn of(error: &TeachError) -> Status {
    match error {
        TeachError::Input(error) => status::of_input(error),
        TeachError::Memory(error) => crate::memory::of(error),
    }
}

/// The Gaussian that a model's encoder makes of `input`: mean and standard deviations, `dim` floats each
/// (dab_shape.dim). It is what a memory in the model's latent space observes.
/// Returns as dab_assess, or DAB_ERR_OUTPUT_LENGTH.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_encode(
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    mean: *mut f32,
    std: *mut f32,
    dim: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
) -> Status {
    // SAFETY: `encode` checks every pointer; the caller promises what dab.h says under "MEMORY".
    status::of(unsafe {
        encode(model, (input, inputs), [mean, std], dim, (scratch.cast(), scratch_bytes / size_of::<f32>()))
    })
}

/// # Safety
/// As [`dab_encode`].
unsafe fn encode(
    model: *const Handle,
    (input, inputs): (*const f32, usize),
    [mean, std]: [*mut f32; 2],
    dim: usize,
    (scratch, floats): (*mut f32, usize),
) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises a model that nobody writes to.
    let (loaded, [storage, artifact]) = unsafe { loaded(model)? };
    if input.is_null() {
        return Err(DAB_ERR_NULL);
    }
    let given = span(input, inputs)?;
    let written = [span(mean, dim)?, span(std, dim)?, scratch_span(scratch, floats)?];
    ptr::disjoint(&written, &[given, storage, artifact])?;
    if dim != loaded.model.shape().dim {
        return Err(DAB_ERR_OUTPUT_LENGTH);
    }
    // SAFETY: `span` checked pointer and length; the caller promises readable floats that nobody writes.
    let input = unsafe { ptr::slice(input, inputs) };
    // SAFETY: `scratch_span` checked pointer and length, `disjoint` that it lies apart; the caller promises that it is
    // writable and this call's alone.
    let scratch = unsafe { ptr::slice_mut(scratch, floats) };
    let found = loaded.model.encode(input, scratch).map_err(|e| status::of_input(&e))?;
    // SAFETY: as for `scratch`.
    let mean = unsafe { ptr::slice_mut(mean, dim) };
    // SAFETY: as for `scratch`.
    let std = unsafe { ptr::slice_mut(std, dim) };
    for (to, from) in mean.iter_mut().zip(found.mean) {
        *to = *from;
    }
    memory::stds_into(found.spread, std);
    Ok(())
}

/// Teaches `memory`, whose `dim` is dab_shape.dim, that an input of `model` is normal. Its code is at least as wide as the
/// model's codes are on average. The answer is that of dab_assess_taught afterwards.
/// Only the first view can be taught, and only what lies within its axes. Look at the verdict afterwards: the input may still
/// be unfamiliar, although the call returned DAB_OK. `dab inspect` says if the axes of a view leave something out.
/// Returns as dab_assess, DAB_ERR_LENGTH if the memory has another dimension, DAB_ERR_MEMORY_FULL, or DAB_ERR_SATURATED: an
/// input or an encoded value is 2^50 or more; teaching it would make every broken sensor look normal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_teach(
    model: *const Handle,
    memory: *mut Memory,
    input: *const f32,
    inputs: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `taught` checks every pointer; the caller promises what dab.h says under "MEMORY", and a memory without
    // another user.
    unsafe { end(&call, memory, taught(&call, memory, true)) }
}

/// dab_assess where what was taught counts as familiar: the uncertainty is the smaller one of the model's and of the
/// distance from the taught codes in the first view, so is the unfamiliarity, and p-value and verdict follow. Teaching
/// never makes an input less familiar.
/// Returns as dab_assess, or DAB_ERR_LENGTH if the memory has another dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_assess_taught(
    model: *const Handle,
    memory: *mut Memory,
    input: *const f32,
    inputs: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    // SAFETY: `taught` checks every pointer; the caller promises what dab.h says under "MEMORY", and a memory without
    // another user.
    unsafe { end(&call, memory, taught(&call, memory, false)) }
}

/// [`Call::end`], which does not know the memory: a result that lies over it is left alone.
///
/// # Safety
/// As [`Call::end`] and [`opened`].
unsafe fn end(call: &Call, memory: *mut Memory, result: Result<()>) -> Status {
    // SAFETY: the caller promises a memory without another user.
    let place = unsafe { opened(memory) }.map_or(Span::NONE, |(_, _, place)| place);
    // SAFETY: the caller of this function promises what `writes_over` and `end` ask.
    unsafe { if call.writes_over(place) { status::of(result) } else { call.end(1, result) } }
}

/// # Safety
/// As [`Call::check`] and [`opened`].
unsafe fn taught(call: &Call, memory: *mut Memory, teach: bool) -> Result<()> {
    // SAFETY: the caller promises a memory without another user.
    let (mut view, _, place) = unsafe { opened(memory)? };
    // SAFETY: `place` is the checked memory of the view; for the rest the caller promises what `check` asks.
    let checked = unsafe { call.check([place, Span::NONE, Span::NONE])? };
    let model = &checked.loaded.model;
    if teach {
        model.teach(&mut view, checked.input, checked.scratch).map_err(|e| of(&e))?;
    }
    let found = model.assess_taught(&mut view, checked.input, checked.scratch).map_err(|e| of(&e))?;
    checked.put(&found);
    Ok(())
}
