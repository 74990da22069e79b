//! Calls on monitors, explorations, memories and ellipses.

use dab::ellipse::{
    dab_ellipse_bytes, dab_ellipse_clear, dab_ellipse_init, dab_ellipse_observe, dab_random_features,
};
use dab::explore::{
    DAB_EXPLORATION_SAVED_BYTES, ExplorationConfig, dab_exploration_compute, dab_exploration_init,
    dab_exploration_restore, dab_exploration_save, dab_exploration_update,
};
use dab::memory::{
    MemoryConfig, MemoryStatistics, Novelty, dab_memory_assess, dab_memory_bytes, dab_memory_clear,
    dab_memory_code, dab_memory_init, dab_memory_observe, dab_memory_observe_batch, dab_memory_remove,
    dab_memory_stats, dab_memory_teach,
};
use dab::monitor::{
    Monitor, MonitorConfig, MonitorStatistics, dab_monitor_init, dab_monitor_observe, dab_monitor_poll,
    dab_monitor_stats,
};
use dab::saved::{dab_memory_restore, dab_memory_save};
use dab::status::{
    DAB_ERR_CONFIG, DAB_ERR_LENGTH, DAB_ERR_MEMORY_FULL, DAB_ERR_MISALIGNED, DAB_ERR_NON_FINITE,
    DAB_ERR_NULL, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_SATURATED, DAB_ERR_SAVED_STATE, DAB_ERR_TOO_LARGE,
    DAB_ERR_TOO_SMALL, DAB_ERR_UNKNOWN_MEMBER,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::Caller;
use super::rules::{END, Rules, count};
use super::world::{ELLIPSE, EXPLORATION, MEMORY, MONITOR, Span, UNLAWFUL, World};

/// Bytes of the saved state that the fuzzer may use.
const SAVED: usize = 512;

/// Puts a configuration into memory; members that the library does not know are sometimes set.
fn config(
    r: &mut Rules,
    w: &mut World,
    words: &[u32],
    align: usize,
    u: &mut Unstructured<'_>,
) -> Result<usize> {
    let own = 4 * words.len() + 4;
    let at = w.address(u)?;
    let ground = w.span(super::world::GROUND);
    let place = Span { start: at, bytes: own };
    if at != 0 && at.is_multiple_of(4) && place.start >= ground.start && place.end() <= ground.end() {
        for (i, word) in words.iter().enumerate() {
            w.write(at + 4 + 4 * i, &word.to_le_bytes());
        }
    } else if at != 0 && at.is_multiple_of(align) {
        return Err(UNLAWFUL);
    }
    let span = r.structs(w, at, 1, own, align, u)?;
    if span.bytes > own {
        let rest = w.floats(Span { start: at + own, bytes: span.bytes - own });
        r.fault(DAB_ERR_UNKNOWN_MEMBER, rest.iter().any(|x| x.to_bits() != 0));
    }
    r.keeps(span);
    Ok(at)
}

fn float(u: &mut Unstructured<'_>) -> Result<f32> {
    Ok(if u.ratio(1, 16)? { f32::from_bits(u.arbitrary()?) } else { f32::from(u.arbitrary::<u8>()?) / 16.0 })
}

/// Whether a mean or the square of a deviation lies at the end of the domain.
fn saturated(w: &World, means: Span, deviations: Span) -> bool {
    w.floats(means).iter().any(|x| x.abs() >= END) || w.floats(deviations).iter().any(|x| *x >= END.sqrt())
}

impl Caller {
    pub(super) fn watch(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        if !self.monitor || u.ratio(1, 8)? {
            let (exit, gap) = (float(u)?, float(u)?);
            let (window, enter, back): (u32, u32, u32) =
                (u.int_in_range(0..=34)?, u.int_in_range(0..=34)?, u.int_in_range(0..=34)?);
            let (dwell, timeout) = (u.arbitrary::<u8>()?.into(), u.arbitrary::<u8>()?.into());
            let top = exit + gap;
            let own = [top.to_bits(), exit.to_bits(), window, enter, back, dwell, timeout];
            // Without a drift channel: votes for rejected inputs, block, alarm, flag, levels and p-values are 0.
            let words: Vec<u32> = own.into_iter().chain([0; 18]).collect();
            let at = config(&mut r, w, &words, 4, u)?;
            let finite = top.is_finite() && exit.is_finite() && exit <= top;
            let votes = |n: u32| (1..=window).contains(&n);
            r.fault(
                DAB_ERR_CONFIG,
                !(finite && (1..=2_097_120).contains(&window) && votes(enter) && votes(back)),
            );
            // A member of a later version may be set, or lie over what follows.
            let monitor = w.span(MONITOR).start;
            r.changes(w.span(MONITOR));
            // After an error it is no monitor any more.
            r.empties(Span { start: monitor, bytes: 4 }, 0);
            let done = r.judge(w, "dab_monitor_init", |w| {
                let (monitor, config) = (w.pointer::<Monitor>(monitor), w.pointer::<MonitorConfig>(at));
                // SAFETY: as the rules describe.
                unsafe { dab_monitor_init(monitor, config) }
            })?;
            self.monitor = done.is_some();
            return Ok(());
        }
        if u.ratio(1, 4)? {
            let monitor = r.object(w, MONITOR, true, false, u)?;
            let out = w.address(u)?;
            r.results(w, out, 1, 128, 8, u)?;
            r.judge(w, "dab_monitor_stats", |w| {
                let (monitor, out) = (w.pointer(monitor), w.pointer::<MonitorStatistics>(out));
                // SAFETY: as the rules describe.
                unsafe { dab_monitor_stats(monitor, out) }
            })?;
            return Ok(());
        }
        let monitor = r.object(w, MONITOR, true, true, u)?;
        let (now, score, observe) = (u.arbitrary()?, float(u)?, u.arbitrary()?);
        r.judge(w, "dab_monitor_observe", |w| {
            let monitor = w.pointer(monitor);
            // SAFETY: as the rules describe.
            let state = unsafe {
                match observe {
                    true => dab_monitor_observe(monitor, now, score),
                    false => dab_monitor_poll(monitor, now),
                }
            };
            assert!(state <= 2, "no such state: {state}");
            state.min(0)
        })?;
        Ok(())
    }

    pub(super) fn explore(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        if !self.exploration || u.ratio(1, 8)? {
            let (schedule, start, end): (u32, f32, f32) = (u.int_in_range(0..=3)?, float(u)?, float(u)?);
            let (steps, warmup): (u32, u32) = (u.int_in_range(0..=9)?, u.int_in_range(0..=4)?);
            let (clip, centered): (f32, u32) = (float(u)?, u.int_in_range(0..=2)?);
            let words =
                [schedule, start.to_bits(), end.to_bits(), steps, 0, warmup, 0, clip.to_bits(), centered];
            let at = config(&mut r, w, &words, 8, u)?;
            let most = (1u64 << 50) as f32;
            let weight = |x: f32| x.abs() <= most;
            let used = schedule == 0 || (weight(end) && steps > 0);
            let sound = schedule <= 2 && weight(start) && used && clip > 0.0 && clip <= most;
            r.fault(DAB_ERR_CONFIG, !(sound && warmup >= 2 && centered <= 1));
            let exploration = w.span(EXPLORATION).start;
            r.changes(w.span(EXPLORATION));
            let done = r.judge(w, "dab_exploration_init", |w| {
                let (to, config) = (w.pointer(exploration), w.pointer::<ExplorationConfig>(at));
                // SAFETY: as the rules describe.
                unsafe { dab_exploration_init(to, config) }
            })?;
            self.exploration |= done.is_some();
            return Ok(());
        }
        let (values, n) = (w.address(u)?, count(u, 4)?);
        match u.int_in_range(0..=3u8)? {
            0 => {
                let object = r.object(w, EXPLORATION, true, true, u)?;
                let given = r.reads(w, values, n, false)?;
                r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
                r.judge(w, "dab_exploration_update", |w| {
                    let (object, values) = (w.pointer(object), w.pointer::<f32>(values));
                    // SAFETY: as the rules describe.
                    unsafe { dab_exploration_update(object, values, n) }
                })?;
            }
            1 => {
                let object = r.object(w, EXPLORATION, true, false, u)?;
                let given = r.reads(w, values, n, false)?;
                r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
                let (out, step) = (w.address(u)?, u.arbitrary()?);
                let place = r.writes(w, out, n, 4, 4)?;
                let done = r.judge(w, "dab_exploration_compute", |w| {
                    let (object, values, out) = (w.pointer(object), w.pointer::<f32>(values), w.pointer(out));
                    // SAFETY: as the rules describe.
                    unsafe { dab_exploration_compute(object, values, n, step, out) }
                })?;
                assert!(done.is_none() || w.floats(place).iter().all(|x| x.is_finite()));
            }
            2 => {
                let object = r.object(w, EXPLORATION, true, false, u)?;
                let bytes = count(u, DAB_EXPLORATION_SAVED_BYTES)?;
                r.fault(DAB_ERR_TOO_SMALL, bytes < DAB_EXPLORATION_SAVED_BYTES);
                r.writes(w, values, DAB_EXPLORATION_SAVED_BYTES, 1, 1)?;
                r.judge(w, "dab_exploration_save", |w| {
                    let (object, values) = (w.pointer(object), w.pointer(values));
                    // SAFETY: as the rules describe.
                    unsafe { dab_exploration_save(object, values, bytes) }
                })?;
            }
            _ => {
                let object = r.object(w, EXPLORATION, true, true, u)?;
                let bytes = count(u, DAB_EXPLORATION_SAVED_BYTES)?;
                r.fault(DAB_ERR_TOO_SMALL, bytes < DAB_EXPLORATION_SAVED_BYTES);
                r.read_bytes(w, values, DAB_EXPLORATION_SAVED_BYTES, true)?;
                r.maybe = &[DAB_ERR_SAVED_STATE];
                r.judge(w, "dab_exploration_restore", |w| {
                    let (object, values) = (w.pointer(object), w.pointer::<std::ffi::c_void>(values));
                    // SAFETY: as the rules describe.
                    unsafe { dab_exploration_restore(object, values, bytes) }
                })?;
            }
        }
        Ok(())
    }

    fn new_memory(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let (codes, dim): (u32, u32) = (u.int_in_range(0..=6)?, u.int_in_range(0..=5)?);
        let (std, spawn) = (float(u)?, float(u)?);
        let words = [codes, dim, std.to_bits(), spawn.to_bits(), 0, 0, 0, u.int_in_range(0..=9)?];
        let at = config(&mut r, w, &words, 4, u)?;
        let needed = dab_memory_bytes(codes, dim);
        let domain = |x: f32| x == 0.0 || (x.abs() >= 2f32.powi(-50) && x.abs() <= 2f32.powi(50));
        let sound = needed > 0 && std > 0.0 && std.is_finite() && domain(spawn) && spawn >= 0.0;
        r.fault(DAB_ERR_CONFIG, !sound);
        let block = w.span(MEMORY);
        if needed > block.bytes {
            return Err(UNLAWFUL);
        }
        let bytes = if u.ratio(1, 8)? { u.int_in_range(0..=block.bytes)? } else { block.bytes };
        let shift = if u.ratio(1, 16)? { u.int_in_range(0..=7)? } else { 0 };
        r.fault(DAB_ERR_TOO_SMALL, bytes < needed);
        r.fault(DAB_ERR_MISALIGNED, shift > 0);
        r.changes(Span { start: block.start, bytes: needed });
        // Where the handle goes: a local variable, or any place.
        let own = u.ratio(1, 2)?;
        let out = w.address(u)?;
        let place = if own { Span::NONE } else { r.writes(w, out, 1, 8, 8)? };
        r.counts(place);
        let mut handle = std::ptr::dangling_mut();
        let done = r.judge(w, "dab_memory_init", |w| {
            let (to, config) = (w.pointer(block.start + shift), w.pointer::<MemoryConfig>(at));
            let out = if own { &raw mut handle } else { w.pointer(out) };
            // SAFETY: as the rules describe.
            unsafe { dab_memory_init(to, bytes, config, out) }
        })?;
        assert!(!own || done.is_some() || handle.is_null(), "an old handle after an error");
        if done.is_some() {
            self.memory = Some((codes as usize, dim as usize));
            self.world.used[MEMORY] = needed;
        } else if place.overlaps(block) {
            // The NULL of a refused call lies over what was a memory.
            self.memory = None;
        }
        Ok(())
    }

    pub(super) fn remember(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Some((codes, right)) = self.memory.filter(|_| u.ratio(15, 16).unwrap_or(true)) else {
            return self.new_memory(u);
        };
        let mut r = Rules::default();
        r.memory_scratch(&self.world, (codes, right));
        let w = &mut self.world;
        let memory = r.object(w, MEMORY, true, true, u)?;
        match u.int_in_range(0..=9u8)? {
            0 => {
                let (forget, index) = (u.arbitrary()?, u.int_in_range(0..=7)?);
                r.maybe = &[DAB_ERR_CONFIG];
                r.judge(w, "dab_memory_remove", |w| {
                    let memory = w.pointer(memory);
                    // SAFETY: as the rules describe.
                    unsafe {
                        if forget { dab_memory_clear(memory) } else { dab_memory_remove(memory, index) }
                    }
                })?;
            }
            1 => {
                let (mean, std, n) = (w.address(u)?, w.address(u)?, w.address(u)?);
                let (dim, index) = (count(u, right)?, u.int_in_range(0..=7)?);
                r.writes(w, mean, dim, 4, 4)?;
                r.writes(w, std, dim, 4, 4)?;
                r.writes(w, n, 1, 4, 4)?;
                r.fault(DAB_ERR_OUTPUT_LENGTH, dim != right);
                r.maybe = &[DAB_ERR_CONFIG];
                r.judge(w, "dab_memory_code", |w| {
                    let (memory, mean) = (w.pointer(memory), w.pointer(mean));
                    let (std, n) = (w.pointer(std), w.pointer(n));
                    // SAFETY: as the rules describe.
                    unsafe { dab_memory_code(memory, index, mean, std, dim, n) }
                })?;
            }
            2 => {
                let out = w.address(u)?;
                r.results(w, out, 1, 28, 4, u)?;
                r.judge(w, "dab_memory_stats", |w| {
                    let (memory, out) = (w.pointer(memory), w.pointer::<MemoryStatistics>(out));
                    // SAFETY: as the rules describe.
                    unsafe { dab_memory_stats(memory, out) }
                })?;
            }
            3 => {
                let (to, bytes) = (w.address(u)?, count(u, SAVED)?);
                // How much is written depends on how full the memory is: room for the most is needed.
                r.writes(w, to, SAVED, 1, 1)?;
                r.fault(DAB_ERR_TOO_SMALL, bytes < SAVED);
                if r.faults.len() > 1 || bytes > isize::MAX as usize {
                    return Err(UNLAWFUL);
                }
                let small = bytes < SAVED;
                let mut seen = 0;
                let call = |w: &mut World| {
                    let (memory, to) = (w.pointer(memory), w.pointer(to));
                    // SAFETY: as the rules describe.
                    seen = unsafe { dab_memory_save(memory, to, bytes) };
                    if small && seen == 0 { DAB_ERR_TOO_SMALL } else { seen }
                };
                if !small {
                    r.judge(w, "dab_memory_save", call)?;
                }
            }
            4 => {
                let (from, bytes) = (w.address(u)?, count(u, SAVED)?);
                r.read_bytes(w, from, bytes, true)?;
                r.maybe = &[DAB_ERR_SAVED_STATE];
                r.judge(w, "dab_memory_restore", |w| {
                    let (memory, from) = (w.pointer(memory), w.pointer::<std::ffi::c_void>(from));
                    // SAFETY: as the rules describe.
                    unsafe { dab_memory_restore(memory, from, bytes) }
                })?;
            }
            call => {
                let rows = if call == 5 { count(u, 2)? } else { 1 };
                let (mean, dim, out) = (w.address(u)?, count(u, right)?, w.address(u)?);
                let std = if u.ratio(1, 4)? { w.address(u)? } else { 0 };
                let values = rows.checked_mul(dim);
                r.fault(DAB_ERR_TOO_LARGE, values.is_none());
                let values = values.unwrap_or(0);
                let given = r.reads(w, mean, values, true)?;
                let widths = if std == 0 { Span::NONE } else { r.reads(w, std, values, false)? };
                r.results(w, out, rows, 28, 4, u)?;
                r.fault(DAB_ERR_LENGTH, dim != right);
                r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
                let wide = |x: &f32| *x > 0.0 && x.is_finite();
                r.fault(DAB_ERR_CONFIG, !w.floats(widths).iter().all(wide));
                r.fault(DAB_ERR_SATURATED, call == 9 && saturated(w, given, widths));
                r.maybe = if call == 9 { &[DAB_ERR_MEMORY_FULL, DAB_ERR_SATURATED] } else { &[] };
                r.judge(w, "dab_memory_observe", |w| {
                    let (memory, mean) = (w.pointer(memory), w.pointer::<f32>(mean));
                    let (std, out) = (w.pointer::<f32>(std), w.pointer::<Novelty>(out));
                    // SAFETY: as the rules describe.
                    unsafe {
                        match call {
                            5 => dab_memory_observe_batch(memory, mean, std, rows, dim, out),
                            6 => dab_memory_assess(memory, mean, std, dim, out),
                            9 => dab_memory_teach(memory, mean, std, dim, out),
                            _ => dab_memory_observe(memory, mean, std, dim, out),
                        }
                    }
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn ellipses(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut r = Rules::default();
        let w = &mut self.world;
        let Some(right) = self.ellipse.filter(|_| u.ratio(7, 8).unwrap_or(true)) else {
            let (dim, ridge): (u32, f32) = (u.int_in_range(0..=5)?, float(u)?);
            let block = w.span(ELLIPSE);
            let needed = dab_ellipse_bytes(dim);
            if needed > block.bytes {
                return Err(UNLAWFUL);
            }
            let bytes = if u.ratio(1, 8)? { u.int_in_range(0..=block.bytes)? } else { block.bytes };
            let domain = ridge >= 2f32.powi(-50) && ridge <= 2f32.powi(50);
            r.fault(DAB_ERR_CONFIG, needed == 0 || !domain);
            r.fault(DAB_ERR_TOO_SMALL, bytes < needed);
            r.changes(Span { start: block.start, bytes: needed });
            let null = u.ratio(1, 16)?;
            r.fault(DAB_ERR_NULL, null);
            let mut handle = std::ptr::dangling_mut();
            let done = r.judge(w, "dab_ellipse_init", |w| {
                let to = w.pointer(block.start);
                let out = if null { std::ptr::null_mut() } else { &raw mut handle };
                // SAFETY: as the rules describe.
                unsafe { dab_ellipse_init(to, bytes, dim, ridge, out) }
            })?;
            assert!(null || done.is_some() || handle.is_null(), "an old handle after an error");
            if done.is_some() {
                self.ellipse = Some(dim as usize);
                self.world.used[ELLIPSE] = needed;
            }
            return Ok(());
        };
        if u.ratio(1, 4)? {
            let (input, features) = (w.address(u)?, w.address(u)?);
            let (inputs, dim, scale) = (count(u, 4)?, count(u, 3)?, float(u)?);
            let given = r.reads(w, input, inputs, false)?;
            r.writes(w, features, dim, 4, 4)?;
            let domain = scale >= 2f32.powi(-50) && scale <= 2f32.powi(50);
            r.fault(DAB_ERR_CONFIG, inputs == 0 || !domain);
            r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
            r.judge(w, "dab_random_features", |w| {
                let (input, features) = (w.pointer::<f32>(input), w.pointer(features));
                // SAFETY: as the rules describe.
                unsafe { dab_random_features(7, scale, input, inputs, features, dim) }
            })?;
            return Ok(());
        }
        let ellipse = r.object(w, ELLIPSE, true, true, u)?;
        r.ellipse_scratch(w, right);
        if u.ratio(1, 16)? {
            r.judge(w, "dab_ellipse_clear", |w| {
                let ellipse = w.pointer(ellipse);
                // SAFETY: as the rules describe.
                unsafe { dab_ellipse_clear(ellipse) }
            })?;
            return Ok(());
        }
        let (features, dim, square) = (w.address(u)?, count(u, right)?, w.address(u)?);
        let learn: u32 = u.int_in_range(0..=2)?;
        let given = r.reads(w, features, dim, true)?;
        let place = r.writes(w, square, 1, 4, 4)?;
        r.fault(DAB_ERR_LENGTH, dim != right);
        r.fault(DAB_ERR_CONFIG, learn > 1);
        r.fault(DAB_ERR_NON_FINITE, w.has_non_finite(given));
        let done = r.judge(w, "dab_ellipse_observe", |w| {
            let (ellipse, features, square) =
                (w.pointer(ellipse), w.pointer::<f32>(features), w.pointer(square));
            // SAFETY: as the rules describe.
            unsafe { dab_ellipse_observe(ellipse, features, dim, learn, square) }
        })?;
        assert!(done.is_none() || w.floats(place).iter().all(|x| x.is_finite() && *x >= 0.0));
        Ok(())
    }
}
