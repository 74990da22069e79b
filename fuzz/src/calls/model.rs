//! Calls on a model.

use dab::assess::{Assessment, dab_assess, dab_assess_batch, dab_predict};
use dab::explain::dab_explain;
use dab::model::{
    DAB_MODEL_BYTES, Shape, dab_model_check, dab_model_init, dab_model_shape, dab_scratch_bytes,
    dab_self_test, dab_set_rates, dab_threshold,
};
use dab::status::{
    DAB_ERR_ARTIFACT_MISALIGNED, DAB_ERR_LENGTH, DAB_ERR_MEMORY_FULL, DAB_ERR_NON_FINITE,
    DAB_ERR_NOT_CALIBRATED, DAB_ERR_NULL, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_RATES, DAB_ERR_SATURATED,
    DAB_ERR_SCRATCH, DAB_ERR_TOO_SMALL, DAB_OK, dab_status_string,
};
use dab::taught::{dab_assess_taught, dab_encode, dab_teach};
use dab_core::{Model, Rates};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::Caller;
use super::rest::asked;
use super::rules::{END, Rules, count};
use super::world::{ARTIFACT, GROUND, MEMORY, STORAGE, Span, UNLAWFUL, World};

/// The model, as a program starts it.
pub(super) fn start(world: &mut World, bytes: usize) {
    let (storage, artifact) = (world.span(STORAGE).start, world.span(ARTIFACT).start);
    let mut handle = std::ptr::null_mut();
    let (to, from) = (world.pointer(storage), world.pointer::<std::ffi::c_void>(artifact));
    // SAFETY: storage and artifact are blocks of the world, which live as long as the model is called.
    let status = unsafe { dab_model_init(to, DAB_MODEL_BYTES, from, bytes, &mut handle) };
    assert_eq!(status, DAB_OK);
}

impl Caller {
    pub(super) fn step(
        &mut self,
        reference: &mut Model<'_>,
        bytes: usize,
        u: &mut Unstructured<'_>,
    ) -> Result<()> {
        match u.int_in_range(0..=26u8)? {
            0 => self.init(reference, bytes, u),
            1 => self.shape(reference, u),
            2 => self.self_test(reference, u),
            3 => self.rates(reference, u),
            4..=6 => self.assess(reference, u),
            7 => self.batch(reference, u),
            8 => self.predict(reference, u),
            9 => self.explain(reference, u),
            10 => self.encode(reference, u),
            11 => self.taught(reference, u),
            12 => {
                // Other values where inputs are read from.
                let at = self.world.span(GROUND).start + u.int_in_range(0..=950usize)? * 4;
                let value = match u.int_in_range(0..=3u8)? {
                    0 => f32::from_bits(u.arbitrary()?),
                    _ => f32::from(u.arbitrary::<i8>()?) / 16.0,
                };
                self.world.write(at, &value.to_le_bytes());
                Ok(())
            }
            13 => {
                // SAFETY: the text is static.
                let words = unsafe { std::ffi::CStr::from_ptr(dab_status_string(u.arbitrary()?)) };
                assert!(!words.is_empty());
                Ok(())
            }
            14..=15 => self.watch(u),
            16 => self.explore(u),
            17..=18 => self.remember(u),
            19..=20 => self.ellipses(u),
            _ => self.rest(reference, u),
        }
    }

    fn init(&mut self, reference: &mut Model<'_>, bytes: usize, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let (storage, artifact) = (w.span(STORAGE).start, w.span(ARTIFACT).start);
        let shift = if u.ratio(1, 8)? { u.int_in_range(0..=7)? } else { 0 };
        let size = if u.ratio(1, 8)? { u.int_in_range(0..=DAB_MODEL_BYTES)? } else { DAB_MODEL_BYTES };
        let from = if u.ratio(1, 8)? { u.int_in_range(0..=3usize)? } else { 0 };
        let length = if u.ratio(1, 8)? { u.int_in_range(0..=bytes - from)? } else { bytes - from };
        if shift > 0 {
            r.fault(dab::status::DAB_ERR_MISALIGNED, true);
        }
        r.fault(DAB_ERR_TOO_SMALL, size < DAB_MODEL_BYTES);
        r.fault(DAB_ERR_ARTIFACT_MISALIGNED, from % 4 != 0);
        if from != 0 || length != bytes {
            // What is wrong with bytes that are no artifact is another target's question.
            (-199..=-100).for_each(|status| r.fault(status, true));
        }
        r.changes(w.span(STORAGE));
        r.keeps(Span { start: artifact, bytes });
        let null = u.ratio(1, 16)?;
        r.fault(DAB_ERR_NULL, null);
        let mut handle = std::ptr::dangling_mut();
        let done = r.judge(w, "dab_model_init", |w| {
            let (to, from) = (w.pointer(storage + shift), w.pointer::<std::ffi::c_void>(artifact + from));
            let out = if null { std::ptr::null_mut() } else { &raw mut handle };
            // SAFETY: the memory is the world's; sizes and pointers are those that the rules describe.
            unsafe { dab_model_init(to, size, from, length, out) }
        })?;
        assert!(null || done.is_some() || handle.is_null(), "an old handle after an error");
        if done.is_some() {
            // A model that is started anew has the rates of its artifact again.
            let _ = reference.set_rates(self.rates);
        }
        Ok(())
    }

    fn shape(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let model = asked(&mut r, w, self.model, u)?;
        let out = w.address(u)?;
        r.results(w, out, 1, 44, 4, u)?;
        let done = r.judge(w, "dab_model_shape", |w| {
            let (model, out) = (w.pointer(model), w.pointer::<Shape>(out));
            // SAFETY: as the rules describe.
            unsafe { dab_model_shape(model, out) }
        })?;
        if done.is_some() {
            assert_eq!(w.word(out + 4), Some(reference.shape().inputs as u32));
            assert_eq!(w.word(out + 16), Some(reference.shape().dim as u32));
            let handle = w.pointer(w.span(STORAGE).start);
            // SAFETY: a model.
            let needed = unsafe { dab_scratch_bytes(handle) };
            assert_eq!(needed, 4 * reference.scratch_len());
            // SAFETY: a model.
            assert_eq!(unsafe { dab_model_check(handle) }, DAB_OK);
        }
        Ok(())
    }

    fn self_test(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let model = asked(&mut r, w, self.model, u)?;
        let needed = 4 * reference.scratch_len();
        let (scratch, bytes) = (w.address(u)?, count(u, needed)?);
        r.scratch(w, scratch, bytes)?;
        r.fault(DAB_ERR_SCRATCH, bytes < needed);
        r.judge(w, "dab_self_test", |w| {
            let (model, scratch) = (w.pointer(model), w.pointer(scratch));
            // SAFETY: as the rules describe.
            unsafe { dab_self_test(model, scratch, bytes) }
        })?;
        Ok(())
    }

    fn rates(&mut self, reference: &mut Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let rate = |u: &mut Unstructured<'_>| -> Result<f32> {
            Ok(*u.choose(&[0.01, 0.05, 0.2, 0.5, 0.9, 0.0, 1.0, -1.0, f32::NAN, 1e-9])?)
        };
        if u.arbitrary()? {
            let model = r.object(w, STORAGE, self.model, true, u)?;
            let (doubtful, unfamiliar) = (rate(u)?, rate(u)?);
            let rates = Rates::new(doubtful, unfamiliar);
            r.fault(DAB_ERR_RATES, rates.is_err());
            let taken = rates.is_ok_and(|rates| reference.clone().set_rates(rates).is_ok());
            r.fault(DAB_ERR_NOT_CALIBRATED, rates.is_ok() && !taken);
            let done = r.judge(w, "dab_set_rates", |w| {
                let model = w.pointer(model);
                // SAFETY: as the rules describe.
                unsafe { dab_set_rates(model, doubtful, unfamiliar) }
            })?;
            if let (Some(()), Ok(rates)) = (done, rates) {
                reference.set_rates(rates).expect("the same rule");
            }
            return Ok(());
        }
        let model = asked(&mut r, w, self.model, u)?;
        let rate = rate(u)?;
        let out = w.address(u)?;
        let place = r.writes(w, out, 1, 4, 4)?;
        r.fault(DAB_ERR_RATES, Rates::new(rate, rate).is_err());
        let found = reference.calibration().and_then(|table| table.threshold(rate));
        r.fault(DAB_ERR_NOT_CALIBRATED, found.is_none());
        // After an error the threshold is −FLT_MAX, which is a write as well.
        let threshold = |w: &mut World| {
            let (model, out) = (w.pointer(model), w.pointer(out));
            // SAFETY: as the rules describe.
            unsafe { dab_threshold(model, rate, out) }
        };
        if r.faults.is_empty() {
            if r.judge(w, "dab_threshold", threshold)?.is_some() {
                assert_eq!(w.floats(place), [found.expect("a threshold")]);
            }
        } else if place.bytes > 0 && place.start.is_multiple_of(4) && GROUND == self.block(place) {
            assert!(r.faults.contains(threshold(&mut self.world)));
            assert_eq!(self.world.floats(place), [-f32::MAX]);
        }
        Ok(())
    }

    fn block(&self, span: Span) -> usize {
        let inside = |b: &usize| self.world.span(*b).overlaps(span);
        (GROUND..=super::world::ELLIPSE).find(inside).unwrap_or(usize::MAX)
    }

    /// What every call on one input has: model, input, scratch, result.
    pub(super) fn call(
        &mut self,
        r: &mut Rules,
        reference: &Model<'_>,
        rows: usize,
        u: &mut Unstructured<'_>,
    ) -> Result<[usize; 6]> {
        let w = &mut self.world;
        let model = asked(r, w, self.model, u)?;
        let right = reference.shape().inputs;
        let (input, inputs) = (w.address(u)?, count(u, right)?);
        let values = match inputs.checked_mul(rows) {
            Some(values) => values,
            None => {
                r.fault(dab::status::DAB_ERR_TOO_LARGE, true);
                0
            }
        };
        let given = r.reads(w, input, values, true)?;
        r.fault(DAB_ERR_LENGTH, inputs != right);
        r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
        let needed = 4 * reference.scratch_len();
        let (scratch, bytes) = (w.address(u)?, count(u, needed)?);
        r.scratch(w, scratch, bytes)?;
        r.fault(DAB_ERR_SCRATCH, bytes < needed);
        let out = w.address(u)?;
        r.assessments(w, out, rows, u)?;
        // The size of a result may lie in the input.
        let again = w.has_non_finite(given);
        r.fault(DAB_ERR_NON_FINITE, again);
        Ok([model, input, inputs, scratch, bytes, out])
    }

    /// Row `row` of the results is what dab-core says.
    pub(super) fn compare(&self, reference: &Model<'_>, input: &[f32], out: usize, row: usize) {
        let mut scratch = vec![f32::NAN; reference.scratch_len()];
        let found = reference.assess(input, &mut scratch).expect("a sound input");
        let w = &self.world;
        let at = out + row * w.word(out).unwrap_or(0) as usize;
        assert_eq!(w.word(at + 8), Some(found.uncertainty.to_bits()));
        assert_eq!(w.word(at + 12), Some(found.p_value.unwrap_or(-1.0).to_bits()));
        let verdict = found.verdict.map_or(0, |v| match v {
            dab_core::Verdict::Familiar => 1,
            dab_core::Verdict::Ambiguous => 2,
            dab_core::Verdict::Doubtful => 3,
            dab_core::Verdict::Unfamiliar => 4,
        });
        assert_eq!(w.word(at + 16), Some(verdict));
        assert_eq!(w.word(at + 28), Some(found.score().to_bits()));
    }

    pub(super) fn input(&self, input: usize, inputs: usize) -> Vec<f32> {
        self.world.floats(Span { start: input, bytes: 4 * inputs })
    }

    fn assess(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, 1, u)?;
        let done = r.judge(&mut self.world, "dab_assess", |w| {
            let (model, input) = (w.pointer(model), w.pointer::<f32>(input));
            let (scratch, out) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            // SAFETY: as the rules describe.
            unsafe { dab_assess(model, input, inputs, scratch, bytes, out) }
        })?;
        if done.is_some() {
            self.compare(reference, &self.input(input, inputs), out, 0);
        }
        Ok(())
    }

    fn batch(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let rows = count(u, 3)?;
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, rows, u)?;
        let done = r.judge(&mut self.world, "dab_assess_batch", |w| {
            let (model, input) = (w.pointer(model), w.pointer::<f32>(input));
            let (scratch, out) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            // SAFETY: as the rules describe.
            unsafe { dab_assess_batch(model, input, rows, inputs, scratch, bytes, out) }
        })?;
        if done.is_some() {
            for row in 0..rows {
                self.compare(reference, &self.input(input + 4 * row * inputs, inputs), out, row);
            }
        }
        Ok(())
    }

    fn predict(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let right = reference.shape().outputs;
        let (outputs, found) = (self.world.address(u)?, count(u, right)?);
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, 1, u)?;
        r.writes(&self.world, outputs, found, 4, 4)?;
        r.fault(DAB_ERR_OUTPUT_LENGTH, found != right);
        let done = r.judge(&mut self.world, "dab_predict", |w| {
            let (model, input, outputs) = (w.pointer(model), w.pointer::<f32>(input), w.pointer(outputs));
            let (scratch, out) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            // SAFETY: as the rules describe.
            unsafe { dab_predict(model, input, inputs, outputs, found, scratch, bytes, out) }
        })?;
        if done.is_some() {
            self.compare(reference, &self.input(input, inputs), out, 0);
        }
        Ok(())
    }

    fn explain(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let shape = reference.shape();
        let [distances, assignment, dimensions] =
            [self.world.address(u)?, self.world.address(u)?, self.world.address(u)?];
        let (codes, dim) = (count(u, shape.codes)?, count(u, shape.dim)?);
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, 1, u)?;
        for (place, n) in [(distances, codes), (assignment, codes), (dimensions, dim)] {
            r.writes(&self.world, place, n, 4, 4)?;
        }
        r.fault(DAB_ERR_OUTPUT_LENGTH, codes != shape.codes || dim != shape.dim);
        let done = r.judge(&mut self.world, "dab_explain", |w| {
            let (model, input) = (w.pointer(model), w.pointer::<f32>(input));
            let (scratch, out) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            let [a, b, c] = [distances, assignment, dimensions].map(|p| w.pointer(p));
            // SAFETY: as the rules describe.
            unsafe { dab_explain(model, input, inputs, a, b, codes, c, dim, scratch, bytes, out) }
        })?;
        if done.is_some() {
            self.compare(reference, &self.input(input, inputs), out, 0);
        }
        Ok(())
    }

    fn encode(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let right = reference.shape().dim;
        let (mean, std, dim) = (self.world.address(u)?, self.world.address(u)?, count(u, right)?);
        let w = &mut self.world;
        let model = asked(&mut r, w, self.model, u)?;
        let (input, inputs) = (w.address(u)?, count(u, reference.shape().inputs)?);
        let given = r.reads(w, input, inputs, true)?;
        r.fault(DAB_ERR_LENGTH, inputs != reference.shape().inputs);
        r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
        let needed = 4 * reference.scratch_len();
        let (scratch, bytes) = (w.address(u)?, count(u, needed)?);
        r.scratch(w, scratch, bytes)?;
        r.fault(DAB_ERR_SCRATCH, bytes < needed);
        r.writes(w, mean, dim, 4, 4)?;
        r.writes(w, std, dim, 4, 4)?;
        r.fault(DAB_ERR_OUTPUT_LENGTH, dim != right);
        r.judge(w, "dab_encode", |w| {
            let (model, input, scratch) = (w.pointer(model), w.pointer::<f32>(input), w.pointer(scratch));
            let (mean, std) = (w.pointer(mean), w.pointer(std));
            // SAFETY: as the rules describe.
            unsafe { dab_encode(model, input, inputs, mean, std, dim, scratch, bytes) }
        })?;
        Ok(())
    }

    fn taught(&mut self, reference: &Model<'_>, u: &mut Unstructured<'_>) -> Result<()> {
        let Some((codes, dim)) = self.memory else { return Err(UNLAWFUL) };
        let mut r = Rules::default();
        r.memory_scratch(&self.world, (codes, dim));
        let teach: bool = u.arbitrary()?;
        let memory = r.object(&self.world, MEMORY, true, true, u)?;
        let [model, input, inputs, scratch, bytes, out] = self.call(&mut r, reference, 1, u)?;
        r.fault(DAB_ERR_LENGTH, dim != reference.shape().dim);
        let large = || self.input(input, inputs).iter().any(|x| x.abs() >= END);
        r.fault(DAB_ERR_SATURATED, teach && inputs == reference.shape().inputs && large());
        r.maybe = if teach { &[DAB_ERR_MEMORY_FULL, DAB_ERR_SATURATED] } else { &[] };
        r.judge(&mut self.world, "dab_teach", |w| {
            let (model, memory, input) = (w.pointer(model), w.pointer(memory), w.pointer::<f32>(input));
            let (scratch, out) = (w.pointer(scratch), w.pointer::<Assessment>(out));
            match teach {
                // SAFETY: as the rules describe.
                true => unsafe { dab_teach(model, memory, input, inputs, scratch, bytes, out) },
                // SAFETY: as the rules describe.
                false => unsafe { dab_assess_taught(model, memory, input, inputs, scratch, bytes, out) },
            }
        })?;
        Ok(())
    }
}
