//! Everything that has a state: any sequence of calls keeps its promises, and a refused call changes nothing.

use dab_core::ellipse::{self, EllipseView};
use dab_core::explore::{self, Exploration, SAVED_BYTES, Schedule};
use dab_core::memory::{self, Head, MemoryView, Width};
use dab_core::monitor::{self, Monitor, State};
use dab_core::random::RandomEncoder;
use dab_core::slots;
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::patch::crc32c;

/// Drives one of the machines with `data`.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let u = &mut Unstructured::new(rest);
    // Too few bytes are a short sequence.
    let _ = match first % 8 {
        0 | 1 => watch(u),
        2 => explore(u),
        3..=5 => remember(u),
        6 => ellipse(u),
        _ => slot(u),
    };
}

/// Saving and restoring, whose checksums take longer than the call between them, are tried where so many bytes of the input are
/// left, or twice as many, and so on; at its end always.
const RARELY: usize = 8;

/// Whether an assessment can have this score: one that failed has the largest.
fn measured(score: f32) -> bool {
    score.is_finite() && score < f32::MAX
}

/// Small numbers often, any bits sometimes.
fn float(u: &mut Unstructured<'_>) -> Result<f32> {
    Ok(match u.int_in_range(0..=7u8)? {
        0 => f32::from_bits(u.arbitrary()?),
        1 => *u.choose(&[0.0, -0.0, f32::MAX, f32::MIN, f32::INFINITY, f32::NAN, 1e-45, 1e15, 1e-15])?,
        _ => f32::from(u.arbitrary::<i8>()?) / 16.0,
    })
}

/// The monitor beside one that remembers everything and has a clock of 64 bits; and beside itself, started elsewhere on
/// the clock.
fn watch(u: &mut Unstructured<'_>) -> Result<()> {
    let config = monitor::Config {
        enter: float(u)?,
        exit: float(u)?,
        enter_votes: u.int_in_range(0..=34)?,
        exit_votes: u.int_in_range(0..=34)?,
        window: u.int_in_range(0..=34)?,
        min_dwell: u32::from(u.arbitrary::<u8>()?),
        timeout: if u.ratio(1, 16)? { u.arbitrary()? } else { u.arbitrary::<u8>()?.into() },
        ..monitor::Config::plain(0.0)
    };
    let Ok(mut monitor) = Monitor::new(config) else { return Ok(()) };
    let shift: u32 = u.arbitrary()?;
    let mut shifted = Monitor::new(config).expect("the same configuration");
    let start: u32 = u.arbitrary()?;
    let (mut now, mut last, mut since) = (u64::from(start), None, 0u64);
    let (mut before, mut state) = (None, State::Stale);
    let mut history: Vec<f32> = Vec::new();
    while !u.is_empty() {
        let ticks = match u.int_in_range(0..=15u8)? {
            0 => u.arbitrary()?,
            1 => u32::MAX,
            _ => u.int_in_range(0..=40)?,
        };
        let score = float(u)?;
        let observe = u.ratio(7, 8)?;
        // More than half of the counter's range is a step back: for the words, time stands still and trust is lost.
        let back = before.is_some() && ticks > i32::MAX as u32;
        let wrapped = (now as u32).wrapping_add(if before.is_some() { ticks } else { 0 });
        let clock = if back { now } else { now + if before.is_some() { u64::from(ticks) } else { 0 } };
        before = Some(());
        let silent = config.timeout > 0 && last.is_some_and(|at| clock - at > u64::from(config.timeout));
        if (back || silent) && state != State::Stale {
            (state, since) = (State::Stale, clock);
            history.clear();
        }
        if observe {
            if state == State::Stale {
                (state, since) = (State::Fallback, clock);
            }
            last = Some(clock);
            history.push(score);
            // Above 32 inputs a window covers its full buckets, and what is in the youngest one.
            let bucket = config.window.div_ceil(32) as usize;
            let full = ((config.window as usize).div_ceil(bucket) - 1) * bucket;
            let covered = full + (history.len() - 1) % bucket + 1;
            let count = |vote: &dyn Fn(f32) -> bool| {
                history.iter().rev().take(covered).filter(|&&u| vote(u)).count() as u32
            };
            // What no assessment gives is rejected: it is neither high nor calm, and a quarter of the window alarms by itself.
            let high = count(&|u| measured(u) && u > config.enter);
            let rejected = count(&|u| !measured(u));
            let alarm = high + rejected >= config.enter_votes || rejected >= config.window.div_ceil(4);
            let calm = count(&|u| measured(u) && u <= config.exit) >= config.exit_votes && measured(score);
            let dwelt = clock - since >= u64::from(config.min_dwell);
            if state == State::Nominal && alarm {
                (state, since) = (State::Fallback, clock);
            } else if state == State::Fallback && !alarm && calm && dwelt {
                (state, since) = (State::Nominal, clock);
            }
        }
        let step = |m: &mut Monitor, at: u32| if observe { m.observe(at, score) } else { m.poll(at) };
        let found = step(&mut monitor, wrapped);
        // A rejected input is not driven on until the next one.
        let held = state == State::Nominal && history.last().is_some_and(|&u| !measured(u));
        let said = if held { State::Fallback } else { state };
        assert_eq!(found, said, "{config:?} at {clock}");
        assert_eq!(monitor.why().is_empty(), said == State::Nominal);
        assert_eq!(step(&mut shifted, wrapped.wrapping_add(shift)), said, "the clock's zero decides");
        if u.len() % RARELY == 0 {
            let mut restored = Monitor::new(config).expect("the same configuration");
            assert_eq!(restored.restore(&monitor.save()), Ok(()));
            assert_eq!(restored, monitor, "a restored monitor is the one that was saved");
        }
        // The two clocks agree modulo 2³² from here on.
        let offset = u64::from(wrapped.wrapping_sub(clock as u32));
        (now, since, last) = (clock + offset, since + offset, last.map(|at| at + offset));
        let s = monitor.statistics();
        assert!(s.votes <= s.inputs && s.alarms <= s.inputs && s.uncertainty.count() <= s.inputs);
    }
    Ok(())
}

fn explore(u: &mut Unstructured<'_>) -> Result<()> {
    let (start, end, steps) = (float(u)?, float(u)?, u.arbitrary::<u16>()?.into());
    let schedule = match u.int_in_range(0..=2u8)? {
        0 => Schedule::Constant { start },
        1 => Schedule::Linear { start, end, steps },
        _ => Schedule::Exponential { start, end, steps },
    };
    let config = explore::Config {
        schedule,
        clip: float(u)?,
        centered: u.arbitrary()?,
        warmup: u.int_in_range(0..=6)?,
    };
    let Ok(mut bonus) = Exploration::new(config) else { return Ok(()) };
    while !u.is_empty() {
        match u.int_in_range(0..=3u8)? {
            0 => {
                let mut bytes: [u8; SAVED_BYTES] = bonus.save();
                for _ in 0..u.int_in_range(0..=4)? {
                    bytes[u.int_in_range(0..=SAVED_BYTES - 1)?] = u.arbitrary()?;
                }
                let sum = crc32c(&bytes[8..]);
                bytes[4..8].copy_from_slice(&sum.to_le_bytes());
                let before = bonus;
                match bonus.restore(&bytes) {
                    Ok(()) => assert_eq!(bonus.save(), bytes, "a restored state is saved as it was"),
                    Err(_) => assert_eq!(bonus.save(), before.save(), "a refused state changes nothing"),
                }
            }
            1 => {
                let (score, step) = (float(u)?, u.arbitrary()?);
                let found = bonus.compute(score, step);
                assert!(found.is_finite(), "{found} of {score} at {step}, {config:?}");
            }
            _ => bonus.update(float(u)?),
        }
        let r = bonus.running();
        assert!(r.mean().is_finite() && r.std().is_finite() && r.min() <= r.max(), "{r:?}");
    }
    Ok(())
}

/// What a memory saves of itself: all that it knows.
fn saved(memory: &MemoryView<'_>) -> Vec<u8> {
    let mut bytes = vec![0; memory.saved_len()];
    assert_eq!(memory.save(&mut bytes), Ok(bytes.len()));
    bytes
}

fn remember(u: &mut Unstructured<'_>) -> Result<()> {
    let config = memory::Config {
        alpha: float(u)?.abs(),
        spawn: float(u)?.abs(),
        widen: 1.0 + float(u)?.abs(),
        keep: if u.arbitrary()? { 1.0 } else { u.int_in_range(1..=64u8)? as f32 / 64.0 },
        horizon: u.int_in_range(0..=20)?,
    };
    let Ok(mut head) = Head::new(config) else { return Ok(()) };
    let (codes, dim) = (u.int_in_range(1..=5)?, u.int_in_range(1..=3)?);
    let mut storage = vec![f32::NAN; memory::storage_len(codes, dim)];
    let mut known = None;
    while !u.is_empty() {
        let mut view = MemoryView::new(&mut head, codes, dim, &mut storage).expect("a memory");
        let before = known.take().unwrap_or_else(|| saved(&view));
        let (mut mean, mut std) = (vec![0.0; dim], vec![0.0; dim]);
        for x in mean.iter_mut().chain(&mut std) {
            *x = float(u)?;
        }
        if u.ratio(15, 16)? {
            std.iter_mut().for_each(|s| *s = s.abs());
        }
        let found = match u.int_in_range(0..=9u8)? {
            0 => {
                view.clear();
                assert!(view.len() == view.pinned());
                continue;
            }
            1 => {
                let index = u.int_in_range(0..=6)?;
                let pinned = view.pinned();
                assert_eq!(view.remove(index).is_ok(), index < pinned);
                continue;
            }
            2 => {
                restore(&mut view, &before, u)?;
                continue;
            }
            3 | 4 => view.teach(&mean, Width::Std(&std), None),
            5 => view.assess(&mean, Width::Std(&std)),
            _ => view.observe(&mean, Width::Std(&std)),
        };
        match found {
            Err(_) => assert_eq!(saved(&view), before, "a refused call changes nothing"),
            Ok(n) => {
                assert!(n.bonus > 0.0 && n.bonus <= 1.0 && n.visits >= 0.0 && n.visits.is_finite(), "{n:?}");
                assert!(n.uncertainty >= 0.0 && n.uncertainty.is_finite(), "{n:?}");
                assert!(n.nearest_distance >= 0.0 && n.nearest_distance.is_finite(), "{n:?}");
            }
        }
        assert!(view.pinned() <= view.len() && view.len() <= codes);
        assert!(view.total().is_finite() && view.total() >= 0.0);
        let state = known.insert(saved(&view));
        if u.len() % RARELY != 0 {
            continue;
        }
        // The same state, restored elsewhere, is the same state, and goes on alike.
        let mut other = Head::new(memory::Config::DEFAULT).expect("the defaults");
        let mut room = vec![0.5; memory::storage_len(codes + 1, dim)];
        let mut other = MemoryView::new(&mut other, codes + 1, dim, &mut room).expect("a memory");
        other.restore(state).expect("what was saved");
        assert_eq!(saved(&other), *state);
        if view.len() < codes {
            assert_eq!(view.assess(&mean, Width::EveryStd(1.0)), other.assess(&mean, Width::EveryStd(1.0)));
        }
    }
    Ok(())
}

/// Changed bytes with a valid checksum are refused without a trace, or are the memory's state from then on.
fn restore(view: &mut MemoryView<'_>, before: &[u8], u: &mut Unstructured<'_>) -> Result<()> {
    let mut bytes = before.to_vec();
    for _ in 0..u.int_in_range(0..=4)? {
        let at = u.choose_index(bytes.len())?;
        bytes[at] = u.arbitrary()?;
    }
    if u.ratio(1, 8)? {
        bytes.truncate(u.int_in_range(0..=bytes.len())?);
    }
    if bytes.len() >= 8 {
        let sum = crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    }
    match view.restore(&bytes) {
        Ok(()) => assert_eq!(saved(view), bytes[..view.saved_len()], "a restored state is saved as it was"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(saved(view), before, "a refused state changes nothing");
        }
    }
    Ok(())
}

fn ellipse(u: &mut Unstructured<'_>) -> Result<()> {
    let dim = u.int_in_range(1..=5)?;
    let mut storage = vec![f32::NAN; ellipse::storage_len(dim)];
    let Ok(mut view) = EllipseView::new(float(u)?, dim, &mut storage) else { return Ok(()) };
    view.clear();
    let encoder = RandomEncoder::new(u.arbitrary()?, dim, float(u)?);
    while !u.is_empty() {
        let mut features = vec![0.0; dim];
        for x in &mut features {
            *x = float(u)?;
        }
        let wrong = features.iter().any(|x| !x.is_finite());
        if u.ratio(1, 16)? {
            view.clear();
        }
        let learn = u.arbitrary()?;
        let found = if learn { view.observe(&features) } else { view.assess(&features) };
        assert_eq!(found.is_err(), wrong);
        if let Ok(square) = found {
            assert!(square >= 0.0 && square.is_finite(), "{square}");
            assert!(EllipseView::information(square).is_finite());
        }
        for i in 0..dim {
            assert!(view.factor().diagonal(i) > 0.0 && view.factor().row(i).iter().all(|x| x.is_finite()));
        }
        if let Some(encoder) = encoder {
            let mut out = [0.0; 4];
            assert_eq!(encoder.encode_into(&features, &mut out).is_err(), wrong);
            assert!(out.iter().all(|x| x.abs() <= 1.0), "{out:?}");
        }
    }
    Ok(())
}

fn slot(u: &mut Unstructured<'_>) -> Result<()> {
    let (mut flash, mut written) = ([[0xffu8; 48]; 2], None::<(u32, Vec<u8>)>);
    let mut sequence: u32 = u.arbitrary()?;
    while !u.is_empty() {
        let state: [u8; 7] = u.arbitrary()?;
        let length = u.int_in_range(0..=7usize)?;
        let target = match slots::newest(&flash[0], &flash[1]) {
            Some(found) if found.slot == slots::Slot::First => 1,
            _ => 0,
        };
        let mut slot = [0u8; 48];
        slot[slots::HEAD_BYTES..slots::HEAD_BYTES + length].copy_from_slice(&state[..length]);
        sequence = sequence.wrapping_add(1);
        let bytes = slots::seal(&mut slot, sequence, length).expect("room");
        // A cut of the power at any byte.
        let cut = u.int_in_range(0..=bytes)?;
        flash[target][..cut].copy_from_slice(&slot[..cut]);
        if cut == bytes {
            written = Some((sequence, state[..length].to_vec()));
        } else if u.ratio(1, 4)? {
            let at = u.int_in_range(0..=47)?;
            flash[target][at] ^= u.arbitrary::<u8>()?;
        }
        let found = slots::newest(&flash[0], &flash[1]).map(|n| (n.sequence, n.state.to_vec()));
        if cut == bytes || found.is_none() {
            assert_eq!(found, written, "the newest whole state");
        }
        if let Some((number, _)) = found {
            sequence = number;
        }
    }
    Ok(())
}
