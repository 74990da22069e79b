//! Which sensor? What each input adds to an uncertainty, and the names of the inputs.

use core::ffi::{c_char, c_void};
use core::mem::size_of;

use dab_core::Model;
use dab_core::attribute::{Groups, Means};

use crate::assess::{Assessment, Call};
use crate::isa::Widest;
use crate::model::{Handle, loaded};
use crate::ptr::{self, Span, span};
use crate::status::{
    self, DAB_ERR_NO_MEANS, DAB_ERR_NO_NAME, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_TOO_SMALL, Result, Status,
};

/// Bytes of scratch that dab_attribute and dab_assess_without need: one input more than dab_scratch_bytes(); 0 if `model`
/// is not a model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_attribution_bytes(model: *const Handle) -> usize {
    // SAFETY: `loaded` checks pointer and tag; the caller promises that whatever has the tag is a model that nobody
    // writes to.
    unsafe { loaded(model) }
        .map_or(0, |(loaded, _)| loaded.model.attribution_scratch_len() * size_of::<f32>())
}

/// Which sensor? What each input, or each group of inputs, adds to the uncertainty and to the score: how much smaller they
/// are when the group is set to its mean in the training data. The broken sensor is the largest number. A negative one
/// speaks for a familiar input; the numbers do not add up to the score. Takes as long as groups + 1 calls of dab_assess.
/// means: `inputs` floats, or NULL for the model's own. groups: the group of each of `inputs` inputs, counting from 0, or
/// DAB_NONE for one that stays as it is; NULL if every input is a group of its own. uncertainty, score: `group_count`
/// floats each, or NULL. scratch: dab_attribution_bytes(model).
/// Returns as dab_assess, DAB_ERR_NO_MEANS if `means` is NULL and the model has none, or DAB_ERR_OUTPUT_LENGTH if
/// group_count is not above the number of every group or, without groups, not `inputs`, or if there is no result to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_attribute(
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    means: *const f32,
    groups: *const u32,
    uncertainty: *mut f32,
    score: *mut f32,
    group_count: usize,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    let asked = (means, groups);
    // SAFETY: `attribute` and `end` check every pointer; the caller promises what dab.h says under "MEMORY".
    unsafe { end(&call, asked, attribute(&call, asked, [uncertainty, score], group_count)) }
}

/// # Safety
/// As [`Call::check`]; means and groups, if not NULL, are as many readable values as the call has inputs, and the two
/// results, if not NULL, `count` writable floats that are this call's alone.
unsafe fn attribute(
    call: &Call,
    asked: (*const f32, *const u32),
    [uncertainty, score]: [*mut f32; 2],
    count: usize,
) -> Result<()> {
    let room = |place: *mut f32| if place.is_null() { 0 } else { count };
    let results = [span(uncertainty, room(uncertainty))?, span(score, room(score))?];
    // SAFETY: `span` checked the two results; for the rest the caller promises what `reads` and `check` ask.
    let checked = unsafe { call.check_reading([results[0], results[1], Span::NONE], reads(call, asked)?)? };
    let model = &checked.loaded.model;
    if results.iter().all(|span| span.is_none()) {
        return Err(DAB_ERR_OUTPUT_LENGTH);
    }
    // SAFETY: `reads` checked pointers and lengths; the caller promises readable values that nobody writes.
    let (means, groups) = unsafe { arguments(call, asked) };
    let means = means.or_else(|| model.means()).ok_or(DAB_ERR_NO_MEANS)?;
    // SAFETY: `span` checked pointer and length, `check_reading` that it lies apart from all other memory of the call; the
    // caller promises writable memory that is this call's alone.
    let uncertainty = unsafe { ptr::slice_mut(uncertainty, room(uncertainty)) };
    // SAFETY: as for `uncertainty`.
    let score = unsafe { ptr::slice_mut(score, room(score)) };
    let found = model.attribute_on(Widest, checked.input, means, groups, uncertainty, score, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}

/// dab_attribute one group at a time, for a loop that has time for one pass only: the assessment of `input` with the inputs
/// of `group` at their means. What the group adds is the score of dab_assess minus the score of this. Inputs of the group
/// may be NaN: this is also how a model judges the other sensors when one has failed.
/// means, groups, scratch: as dab_attribute; without groups, `group` is the number of an input. A group that no input has
/// leaves the input as it is.
/// Returns as dab_assess, or DAB_ERR_NO_MEANS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_assess_without(
    model: *const Handle,
    input: *const f32,
    inputs: usize,
    means: *const f32,
    groups: *const u32,
    group: u32,
    scratch: *mut c_void,
    scratch_bytes: usize,
    out: *mut Assessment,
) -> Status {
    let call = Call::new(model, (input, inputs), (scratch, scratch_bytes), out);
    let asked = (means, groups);
    // SAFETY: `without` and `end` check every pointer; the caller promises what dab.h says under "MEMORY".
    unsafe { end(&call, asked, without(&call, asked, group as usize)) }
}

/// # Safety
/// As [`Call::check`]; means and groups, if not NULL, are as many readable values as the call has inputs.
unsafe fn without(call: &Call, asked: (*const f32, *const u32), group: usize) -> Result<()> {
    // SAFETY: the caller promises what `reads` and `check` ask.
    let checked = unsafe { call.check_reading([Span::NONE; 3], reads(call, asked)?)? };
    let model = &checked.loaded.model;
    // SAFETY: `reads` checked pointers and lengths; the caller promises readable values that nobody writes.
    let (means, groups) = unsafe { arguments(call, asked) };
    let means = means.or_else(|| model.means()).ok_or(DAB_ERR_NO_MEANS)?;
    let found = model.assess_without_on(Widest, checked.input, means, groups, group, checked.scratch);
    let found = found.map_err(|e| status::of_input(&e))?;
    checked.put(&found);
    Ok(())
}

/// [`Call::end`], which does not know means and groups: a result that lies over them is left alone.
///
/// # Safety
/// As [`Call::end`].
unsafe fn end(call: &Call, asked: (*const f32, *const u32), result: Result<()>) -> Status {
    let over = |place: Result<Span>| {
        // SAFETY: the caller of this function promises what `writes_over` asks.
        place.is_ok_and(|place| unsafe { call.writes_over(place) })
    };
    if places(call, asked).into_iter().any(over) {
        return status::of(result);
    }
    // SAFETY: the caller of this function promises what `end` asks.
    unsafe { call.end(1, result) }
}

/// Where means and groups lie; nothing for NULL.
fn places(call: &Call, (means, groups): (*const f32, *const u32)) -> [Result<Span>; 2] {
    let count = |null: bool| if null { 0 } else { call.inputs() };
    [span(means, count(means.is_null())), span(groups, count(groups.is_null()))]
}

/// Memory that such a call reads besides its input.
fn reads(call: &Call, asked: (*const f32, *const u32)) -> Result<[Span; 2]> {
    let [means, groups] = places(call, asked);
    Ok([means?, groups?])
}

/// Means and groups as the core takes them.
///
/// # Safety
/// [`reads`] checked both, and if not NULL they are readable and written by nobody during the call.
unsafe fn arguments<'a>(
    call: &Call,
    (means, groups): (*const f32, *const u32),
) -> (Option<Means<'a>>, Groups<'a>) {
    // SAFETY: the caller of this function promises it.
    let values = || unsafe { ptr::slice(means, call.inputs()) };
    // SAFETY: the caller of this function promises it.
    let numbers = || unsafe { ptr::slice(groups, call.inputs()) };
    (
        (!means.is_null()).then(|| Means::new(values())),
        if groups.is_null() { Groups::Each } else { Groups::Of(numbers()) },
    )
}

/// The training means of the inputs, that dab_attribute goes by unless it is given others: `inputs` floats.
/// Returns DAB_OK, DAB_ERR_NO_MEANS, DAB_ERR_OUTPUT_LENGTH, or -1 to -6 for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_means(model: *const Handle, means: *mut f32, inputs: usize) -> Status {
    // SAFETY: `own_numbers` checks both pointers; the caller promises a model that nobody writes to, and writable floats.
    status::of(unsafe {
        own_numbers(model, (means, inputs), |model| {
            let own = model.means().ok_or(DAB_ERR_NO_MEANS);
            (model.shape().inputs, own.map(|own| move |input| own.get(input)))
        })
    })
}

/// Copies numbers of a model's file into `count` floats at `to`; `own` gives how many there are, and what reads each of them.
///
/// # Safety
/// `model` points to memory as [`loaded`] asks it, and `to`, if not NULL, to `count` writable floats that are this call's alone.
pub(crate) unsafe fn own_numbers<F: Fn(usize) -> Option<f32>>(
    model: *const Handle,
    (to, count): (*mut f32, usize),
    own: impl FnOnce(&Model<'static>) -> (usize, Result<F>),
) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises a model that nobody writes to.
    let (loaded, places) = unsafe { loaded(model)? };
    ptr::disjoint(&[span(to, count)?], &places)?;
    let (right, own) = own(&loaded.model);
    if count != right {
        return Err(DAB_ERR_OUTPUT_LENGTH);
    }
    let own = own?;
    // SAFETY: `span` checked pointer and length, `disjoint` that it lies apart from the model; the caller promises writable
    // memory that is this call's alone.
    let places = unsafe { ptr::slice_mut(to, count) };
    for (i, to) in places.iter_mut().enumerate() {
        *to = own(i).unwrap_or(0.0);
    }
    Ok(())
}

/// The name of an input, counting from 0, as UTF-8 with a NUL at the end, into `bytes` bytes at `name`.
/// Returns DAB_OK, DAB_ERR_NO_NAME if the artifact does not name its inputs or has fewer, DAB_ERR_TOO_SMALL, or -1 to -6
/// for bad pointers. After an error `name` is empty, if it has room for a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_input_name(
    model: *const Handle,
    input: usize,
    name: *mut c_char,
    bytes: usize,
) -> Status {
    // SAFETY: `copy_name` checks both pointers; the caller promises a model that nobody writes to, and writable bytes.
    status::of(unsafe { copy_name(model, true, input, name.cast(), bytes) })
}

/// dab_input_name of an output: of a class, or of a regression's target. A model whose labels were 0, 1, 2 ... has no
/// names: then the class is its number. Returns as dab_input_name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_output_name(
    model: *const Handle,
    output: usize,
    name: *mut c_char,
    bytes: usize,
) -> Status {
    // SAFETY: `copy_name` checks both pointers; the caller promises a model that nobody writes to, and writable bytes.
    status::of(unsafe { copy_name(model, false, output, name.cast(), bytes) })
}

/// # Safety
/// As [`dab_input_name`].
unsafe fn copy_name(
    model: *const Handle,
    of_input: bool,
    index: usize,
    name: *mut u8,
    bytes: usize,
) -> Result<()> {
    // SAFETY: `loaded` checks pointer and tag; the caller promises a model that nobody writes to.
    let found = unsafe { loaded(model) };
    if bytes == 0 {
        return Err(found.err().unwrap_or(DAB_ERR_TOO_SMALL));
    }
    let places = found.as_ref().map_or([Span::NONE; 2], |(_, places)| *places);
    ptr::disjoint(&[span(name, bytes)?], &places)?;
    // SAFETY: `span` checked pointer and length, `disjoint` that it lies apart from the model; the caller promises writable
    // memory that is this call's alone.
    let out = unsafe { ptr::slice_mut(name, bytes) };
    let result = found.and_then(|(loaded, _)| {
        let model = &loaded.model;
        let name = if of_input { model.input_name(index) } else { model.output_name(index) };
        fill(out, name.ok_or(DAB_ERR_NO_NAME)?.bytes())
    });
    if result.is_err()
        && let Some(first) = out.first_mut()
    {
        *first = 0;
    }
    result
}

/// Writes bytes and a NUL.
fn fill(out: &mut [u8], bytes: impl Iterator<Item = u8>) -> Result<()> {
    let mut places = out.iter_mut();
    for byte in bytes.chain([0]) {
        *places.next().ok_or(DAB_ERR_TOO_SMALL)? = byte;
    }
    Ok(())
}
