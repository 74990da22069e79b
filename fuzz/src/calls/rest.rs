//! The other calls on a model, and those on a monitor that has one.

use dab::assess::{Assessment, dab_predict_batch};
use dab::attribute::{
    dab_assess_without, dab_attribute, dab_attribution_bytes, dab_input_name, dab_model_means,
    dab_output_name,
};
use dab::band::dab_model_bands;
use dab::guard::dab_guard;
use dab::monitor::{
    DAB_MONITOR_SAVED_BYTES, DAB_NOMINAL, DAB_WHY_STARTING, Event, MonitorConfig, MonitorStatistics,
    dab_monitor_event, dab_monitor_init, dab_monitor_reset, dab_monitor_restore, dab_monitor_save,
    dab_monitor_stats, dab_monitor_why,
};
use dab::slots::{DAB_SLOT_HEAD_BYTES, dab_slot_newest, dab_slot_seal};
use dab::status::{
    DAB_ERR_LENGTH, DAB_ERR_NO_BANDS, DAB_ERR_NO_MEANS, DAB_ERR_NO_MONITOR, DAB_ERR_NO_NAME,
    DAB_ERR_NON_FINITE, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_SAVED_STATE, DAB_ERR_SCRATCH, DAB_ERR_TOO_LARGE,
    DAB_ERR_TOO_SMALL, DAB_OK,
};
use dab::tuned::dab_model_monitor;
use dab_core::{Model, slots};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::Caller;
use super::rules::{Rules, count};
use super::world::{ARTIFACT, MONITOR, STORAGE, Span, UNLAWFUL, World};

/// Bytes of a dab_monitor_config.
const CONFIG: usize = 104;

/// What a monitor says of itself: how many inputs it rejected, and why the last one.
fn rejections(w: &mut World) -> (u64, i32) {
    let monitor = w.span(MONITOR).start;
    let mut seen = std::mem::MaybeUninit::<MonitorStatistics>::zeroed();
    // SAFETY: a whole monitor, and a struct of this function whose first word is its size.
    let seen = unsafe {
        seen.as_mut_ptr().cast::<u32>().write(size_of::<MonitorStatistics>() as u32);
        assert_eq!(dab_monitor_stats(w.pointer(monitor), seen.as_mut_ptr()), DAB_OK);
        seen.assume_init()
    };
    (seen.rejected, seen.last_rejection)
}

/// The handle of the model. Without a right one the library cannot know the artifact, so nothing may be written to it.
pub(super) fn asked(r: &mut Rules, w: &World, live: bool, u: &mut Unstructured<'_>) -> Result<usize> {
    let model = r.object(w, STORAGE, live, false, u)?;
    if r.faults.is_empty() {
        r.keeps(w.extent(ARTIFACT));
    }
    Ok(model)
}

impl Caller {
    pub(super) fn rest(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=8u8)? {
            0..=1 => self.guard(reference, u),
            2 => self.tuned(reference, u),
            3 => self.predict_batch(reference, u),
            4 => self.attribute(reference, u),
            5 => self.numbers(reference, u),
            6 => self.name(reference, u),
            7 => self.keep(u),
            _ => self.slots(u),
        }
    }

    /// dab_guard: what is refused becomes a rejected input of the monitor, never trust.
    fn guard(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        if !self.monitor {
            return Err(UNLAWFUL);
        }
        let mut r = Rules::default();
        let right = reference.shape().outputs;
        let monitor = r.object(&self.world, MONITOR, true, true, u)?;
        let whole = r.faults.is_empty();
        let (now, outputs) = (u.arbitrary()?, self.world.address(u)?);
        let asked = if u.ratio(1, 4)? { 0 } else { count(u, right)? };
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, 1, u)?;
        r.writes(&self.world, outputs, asked, 4, 4)?;
        r.fault(DAB_ERR_OUTPUT_LENGTH, asked != 0 && asked != right);
        let (before, _) = rejections(&mut self.world);
        // Every input changes the monitor, and a refused one as well.
        r.always.push(self.world.extent(MONITOR));
        let done = r.judge(&mut self.world, "dab_guard", |w| {
            let (model, monitor) = (w.pointer(model), w.pointer(monitor));
            let (input, outputs) = (w.pointer::<f32>(input), w.pointer(outputs));
            let (scratch, result) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            // SAFETY: as the rules describe.
            let state = unsafe {
                dab_guard(model, monitor, now, input, inputs, outputs, asked, scratch, bytes, result)
            };
            assert!(state <= 2 && (state < 0) != whole, "no such state: {state}");
            if !whole {
                return state;
            }
            let (after, why) = rejections(w);
            assert!(after == before || state != DAB_NOMINAL, "a refused input is trusted");
            if after == before { DAB_OK } else { why }
        })?;
        if done.is_some() {
            self.compare(reference, &self.input(input, inputs), out, 0);
        }
        Ok(())
    }

    /// dab_model_monitor: the monitor of the artifact, or one that dab_monitor_init refuses.
    fn tuned(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let model = asked(&mut r, w, self.model, u)?;
        let out = w.address(u)?;
        let place = r.results(w, out, 1, CONFIG, 4, u)?;
        let tick = if u.ratio(1, 4)? { 0 } else { w.address(u)? };
        let seconds = if tick == 0 { Span::NONE } else { r.writes(w, tick, 1, 4, 4)? };
        r.fault(DAB_ERR_NO_MONITOR, reference.monitor_config().is_none());
        // After an error both say so, where they can be written.
        r.empties(place, 4);
        r.empties(seconds, 0);
        let done = r.judge(w, "dab_model_monitor", |w| {
            let (model, out) = (w.pointer(model), w.pointer::<MonitorConfig>(out));
            let tick = w.pointer(tick);
            // SAFETY: as the rules describe.
            unsafe { dab_model_monitor(model, out, tick) }
        })?;
        if done.is_some() {
            let found = reference.monitor_config().expect("a monitor");
            let floats = w.floats(Span { start: out, bytes: CONFIG });
            assert_eq!(floats[1..3].to_vec(), [found.enter, found.exit]);
            assert_eq!(w.word(out + 12), Some(found.window));
            assert_eq!(floats[12..19].to_vec(), found.drift.levels);
            let expected: Vec<f32> = reference.monitor_tick().into_iter().collect();
            assert!(seconds.bytes == 0 || w.floats(seconds) == expected);
            // What lies in an artifact starts a monitor. It goes to memory of its own here.
            let mut own = [0u64; 88];
            let config = w.pointer::<MonitorConfig>(out);
            // SAFETY: `own` has the size of a monitor; the configuration was just written.
            assert_eq!(unsafe { dab_monitor_init(own.as_mut_ptr().cast(), config) }, DAB_OK);
        }
        Ok(())
    }

    fn predict_batch(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let right = reference.shape().outputs;
        let (rows, outputs, width) = (count(u, 3)?, self.world.address(u)?, count(u, right)?);
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, rows, u)?;
        let values = width.checked_mul(rows);
        r.fault(DAB_ERR_TOO_LARGE, values.is_none());
        r.writes(&self.world, outputs, values.unwrap_or(0), 4, 4)?;
        r.fault(DAB_ERR_OUTPUT_LENGTH, width != right);
        let done = r.judge(&mut self.world, "dab_predict_batch", |w| {
            let (model, input) = (w.pointer(model), w.pointer::<f32>(input));
            let (scratch, result) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            let to = w.pointer(outputs);
            // SAFETY: as the rules describe.
            unsafe { dab_predict_batch(model, input, rows, inputs, to, width, scratch, bytes, result) }
        })?;
        if done.is_some() {
            for row in 0..rows {
                let given = self.input(input + 4 * row * inputs, inputs);
                self.compare(reference, &given, out, row);
                let (mut expected, mut scratch) = (vec![0.0; right], vec![f32::NAN; reference.scratch_len()]);
                reference.predict_into(&given, &mut expected, &mut scratch).expect("a sound input");
                let found = self.world.floats(Span { start: outputs + 4 * row * width, bytes: 4 * width });
                assert_eq!(found, expected);
            }
        }
        Ok(())
    }

    /// dab_attribute and dab_assess_without.
    fn attribute(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let right = reference.shape().inputs;
        let w = &mut self.world;
        let model = asked(&mut r, w, self.model, u)?;
        let (input, inputs) = (w.address(u)?, count(u, right)?);
        let [means, groups] = [w.address(u)?, w.address(u)?].map(|at| if at % 3 == 0 { 0 } else { at });
        let given = r.reads(w, input, inputs, true)?;
        r.fault(DAB_ERR_LENGTH, inputs != right);
        let read =
            |r: &mut Rules, at: usize| if at == 0 { Ok(Span::NONE) } else { r.reads(w, at, inputs, false) };
        let (others, numbers) = (read(&mut r, means)?, read(&mut r, groups)?);
        r.fault(DAB_ERR_NO_MEANS, means == 0 && reference.means().is_none());
        let without: bool = u.arbitrary()?;
        let needed = 4 * reference.attribution_scratch_len();
        let (scratch, bytes) = (w.address(u)?, count(u, needed)?);
        r.scratch(w, scratch, bytes)?;
        r.fault(DAB_ERR_SCRATCH, bytes < needed);
        let places = [w.address(u)?, w.address(u)?];
        let (group, groups_of) = (u.int_in_range(0..=9u32)?, count(u, right)?);
        if !without {
            for place in places {
                if place != 0 {
                    r.writes(w, place, groups_of, 4, 4)?;
                }
            }
            r.fault(DAB_ERR_OUTPUT_LENGTH, places == [0, 0] || groups_of == 0);
            r.fault(DAB_ERR_OUTPUT_LENGTH, groups == 0 && groups_of != right);
        }
        let out = w.address(u)?;
        r.assessments(w, out, 1, u)?;
        // What the memory holds decides these; the size of the result may lie in it.
        let (values, others) = (w.floats(given), w.floats(others));
        let numbers: Vec<u32> = w.floats(numbers).into_iter().map(f32::to_bits).collect();
        let group_of =
            |i: usize| if groups == 0 { i as u32 } else { numbers.get(i).copied().unwrap_or(u32::MAX) };
        let no_place = |g: u32| g != u32::MAX && g as usize >= groups_of;
        // Groups of inputs that the model does not have may be looked at before their number.
        let asked = inputs.min(right).max(numbers.len());
        r.fault(DAB_ERR_OUTPUT_LENGTH, !without && (0..asked).any(|i| no_place(group_of(i))));
        let strange = values.iter().enumerate().any(|(i, x)| {
            let mean = others.get(i).is_some_and(|m| !m.is_finite());
            match without {
                true if group_of(i) == group => mean,
                true => !x.is_finite(),
                false => !x.is_finite() || (group_of(i) != u32::MAX && mean),
            }
        });
        r.fault(DAB_ERR_NON_FINITE, strange);
        r.judge(w, "dab_attribute", |w| {
            let handle = w.pointer(model);
            let (input, scratch) = (w.pointer::<f32>(input), w.pointer(scratch));
            let (means, groups) = (w.pointer::<f32>(means), w.pointer::<u32>(groups));
            let [first, second] = places.map(|at| w.pointer::<f32>(at));
            let out = w.pointer::<Assessment>(out);
            // SAFETY: as the rules describe.
            unsafe {
                match without {
                    true => {
                        dab_assess_without(handle, input, inputs, means, groups, group, scratch, bytes, out)
                    }
                    false => dab_attribute(
                        handle, input, inputs, means, groups, first, second, groups_of, scratch, bytes, out,
                    ),
                }
            }
        })?;
        // SAFETY: the model of this caller.
        let found = unsafe { dab_attribution_bytes(self.world.pointer(self.world.span(STORAGE).start)) };
        assert!(!self.model || found == needed);
        Ok(())
    }

    /// dab_model_means and dab_model_bands.
    fn numbers(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let bands: bool = u.arbitrary()?;
        let shape = reference.shape();
        let right = if bands { shape.outputs } else { shape.inputs };
        let model = asked(&mut r, w, self.model, u)?;
        let (to, asked) = (w.address(u)?, count(u, right)?);
        let place = r.writes(w, to, asked, 4, 4)?;
        r.fault(DAB_ERR_OUTPUT_LENGTH, asked != right);
        let own: Option<Vec<f32>> = match bands {
            true => reference.bands().map(|own| (0..right).filter_map(|i| own.get(i)).collect()),
            false => reference.means().map(|own| (0..right).filter_map(|i| own.get(i)).collect()),
        };
        r.fault(if bands { DAB_ERR_NO_BANDS } else { DAB_ERR_NO_MEANS }, own.is_none());
        let done = r.judge(w, "dab_model_means", |w| {
            let (model, to) = (w.pointer(model), w.pointer(to));
            // SAFETY: as the rules describe.
            unsafe {
                if bands { dab_model_bands(model, to, asked) } else { dab_model_means(model, to, asked) }
            }
        })?;
        if let (Some(()), Some(own)) = (done, own) {
            assert_eq!(w.floats(place), own);
        }
        Ok(())
    }

    fn name(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let model = asked(&mut r, w, self.model, u)?;
        let (of_input, index): (bool, usize) = (u.arbitrary()?, u.int_in_range(0..=9)?);
        let (name, bytes) = (w.address(u)?, count(u, 8)?);
        let place = r.writes(w, name, bytes, 1, 1)?;
        let own = if of_input { reference.input_name(index) } else { reference.output_name(index) };
        let own = own.map(|name| name.bytes().chain([0]).collect::<Vec<u8>>());
        r.fault(DAB_ERR_NO_NAME, own.is_none());
        r.fault(DAB_ERR_TOO_SMALL, bytes == 0 || own.as_ref().is_some_and(|name| name.len() > bytes));
        r.empties(Span { bytes: place.bytes.min(1), ..place }, 0);
        // A name that is too long is written as far as it goes.
        r.counts(place);
        let done = r.judge(w, "dab_input_name", |w| {
            let (model, name) = (w.pointer(model), w.pointer(name));
            // SAFETY: as the rules describe.
            unsafe {
                if of_input {
                    dab_input_name(model, index, name, bytes)
                } else {
                    dab_output_name(model, index, name, bytes)
                }
            }
        })?;
        if let (Some(()), Some(own)) = (done, own) {
            assert_eq!(w.bytes(Span { bytes: own.len(), ..place }), Some(&own[..]));
        }
        Ok(())
    }

    /// A state in two slots of flash.
    fn slots(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let (slot, bytes) = (w.address(u)?, count(u, 40)?);
        if u.arbitrary()? {
            let (sequence, length) = (u.arbitrary()?, count(u, 20)?);
            let place = r.writes(w, slot, bytes, 1, 1)?;
            let whole = length.checked_add(DAB_SLOT_HEAD_BYTES).filter(|whole| *whole <= bytes);
            r.fault(DAB_ERR_TOO_SMALL, whole.is_none());
            let done = r.judge(w, "dab_slot_seal", |w| {
                let slot = w.pointer(slot);
                // SAFETY: as the rules describe.
                unsafe { dab_slot_seal(slot, bytes, sequence, length) }
            })?;
            if done.is_some() {
                let slot = w.bytes(place).expect("a slot");
                let found = slots::newest(slot, &[]).expect("a whole slot");
                assert_eq!((found.sequence, found.state.len()), (sequence, length));
            }
            return Ok(());
        }
        let (second, sequence, length) = (w.address(u)?, w.address(u)?, w.address(u)?);
        let places = [r.read_bytes(w, slot, bytes, false)?, r.read_bytes(w, second, bytes, false)?];
        r.writes(w, sequence, 1, 4, 4)?;
        r.writes(w, length, 1, 8, 8)?;
        r.maybe = &[DAB_ERR_SAVED_STATE];
        let [first, other] = places.map(|place| w.bytes(place).unwrap_or_default().to_vec());
        let expected = slots::newest(&first, &other);
        let mut found = 0;
        let done = r.judge(w, "dab_slot_newest", |w| {
            let [a, b] = [slot, second].map(|at| w.pointer::<std::ffi::c_void>(at));
            let (sequence, length) = (w.pointer(sequence), w.pointer(length));
            // SAFETY: as the rules describe.
            found = unsafe { dab_slot_newest(a, b, bytes, sequence, length) };
            found.min(0)
        })?;
        if done.is_some() {
            let expected = expected.expect("a whole slot");
            assert_eq!(found, i32::from(expected.slot == slots::Slot::Second));
            assert_eq!(w.word(sequence), Some(expected.sequence));
            assert_eq!(w.word(length), Some(expected.state.len() as u32));
        } else {
            assert!(found != DAB_ERR_SAVED_STATE || expected.is_none(), "a whole slot is not found");
        }
        Ok(())
    }

    /// What a monitor saved, its events, and a start from nothing.
    fn keep(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if !self.monitor {
            return Err(UNLAWFUL);
        }
        let mut r = Rules::default();
        let w = &mut self.world;
        let what = u.int_in_range(0..=3u8)?;
        let monitor = r.object(w, MONITOR, true, what < 2, u)?;
        match what {
            0 => {
                r.judge(w, "dab_monitor_reset", |w| {
                    let monitor = w.pointer(monitor);
                    // SAFETY: as the rules describe.
                    unsafe { dab_monitor_reset(monitor) }
                })?;
                let own = w.pointer(w.span(MONITOR).start);
                // SAFETY: a whole monitor, or NULL.
                let why = unsafe { [dab_monitor_why(own), dab_monitor_why(std::ptr::null())] };
                assert!(why[0] < 32 && why[1] == DAB_WHY_STARTING);
            }
            3 => {
                let (back, out) = (u.int_in_range(0..=10)?, w.address(u)?);
                r.results(w, out, 1, 24, 4, u)?;
                r.judge(w, "dab_monitor_event", |w| {
                    let (monitor, out) = (w.pointer(monitor), w.pointer::<Event>(out));
                    // SAFETY: as the rules describe.
                    unsafe { dab_monitor_event(monitor, back, out) }
                })?;
            }
            _ => {
                let (saved, bytes) = (w.address(u)?, count(u, DAB_MONITOR_SAVED_BYTES)?);
                r.fault(DAB_ERR_TOO_SMALL, bytes < DAB_MONITOR_SAVED_BYTES);
                if what == 1 {
                    r.read_bytes(w, saved, DAB_MONITOR_SAVED_BYTES, true)?;
                    r.maybe = &[DAB_ERR_SAVED_STATE];
                } else {
                    r.writes(w, saved, DAB_MONITOR_SAVED_BYTES, 1, 1)?;
                }
                r.judge(w, "dab_monitor_save", |w| {
                    let (monitor, saved) = (w.pointer(monitor), w.pointer::<std::ffi::c_void>(saved));
                    // SAFETY: as the rules describe.
                    unsafe {
                        match what {
                            1 => dab_monitor_restore(monitor, saved, bytes),
                            _ => dab_monitor_save(monitor, saved, bytes),
                        }
                    }
                })?;
            }
        }
        Ok(())
    }
}
