//! A file of any bytes is refused with words, or answers everything soundly.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::info::read_info;
use dab_core::artifact::schema::MAGIC;
use dab_core::monitor::Monitor;
use dab_core::{Model, Rates};

use crate::patch::{HEADER, Parts, seal, word};
use crate::total::answers;

/// Reads `data` as an artifact and asks it everything.
///
/// # Panics
/// When an answer is unsound, or a file is accepted that is not the one encoding of its contents.
pub fn check(data: &[u8]) {
    // The fuzzer's own copy of an input is aligned, and a second one takes as long as many a refusal.
    let copy = (!data.as_ptr().cast::<u32>().is_aligned()).then(|| AlignedBytes::from(data));
    let bytes = copy.as_ref().map_or(data, AlignedBytes::as_slice);
    // Both read the checksums first, which take most of the time of a refusal: one file in eight, as a byte of its own checksum
    // says, is asked for its strings as well.
    if data.get(60).is_none_or(|byte| byte.is_multiple_of(8)) {
        let _ = read_info(bytes);
    }
    match Model::from_bytes(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(mut model) => {
            ask(&mut model, data);
            canonical(data);
        }
    }
}

/// A file that is accepted is the one encoding of its contents, but for what a later minor version may add: its number, and
/// feature bits that every reader may ignore.
fn canonical(data: &[u8]) {
    let parts = Parts::of(data);
    // Weights of one byte and whole numbers of a monitor lie behind the numbers, and may look like any.
    let whole = if parts.monitor { parts.params.len().saturating_sub(8) } else { parts.params.len() };
    let numbers = if parts.meta.int8 { &[][..] } else { &parts.params[..whole] };
    assert!(numbers.iter().all(|x| x.to_bits() != (-0f32).to_bits()), "-0 is a second encoding of 0");
    let mut again = parts.unsealed(&parts.meta_bytes());
    // The checksums of an accepted file are right.
    for free in [10..12, 20..24, 56..64] {
        again[free.clone()].copy_from_slice(&data[free]);
    }
    assert_eq!(again, data, "two encodings of one model");
}

fn ask(model: &mut Model<'_>, data: &[u8]) {
    let shape = model.shape();
    assert_eq!(shape.codes, model.codebook().len());
    assert!(model.multiply_adds() > 0 && model.tails().all(|t| t.u.b > 0.0));
    let mut scratch = vec![f32::NAN; model.scratch_len()];
    let _ = model.self_test(&mut scratch);
    if let Some(config) = model.monitor_config() {
        assert!(Monitor::new(config).is_ok() && model.monitor_tick().is_some_and(|tick| tick > 0.0));
    }
    // The last bytes of the file choose the input: extremes, or bits of the file.
    let last = data.last_chunk::<8>().copied().unwrap_or_default();
    let extreme = [0.0, 1.0, -3.5, f32::MAX, -f32::MAX, f32::from_bits(1), 1e20, -1e-20];
    let value = |i: usize| {
        let chosen = extreme[usize::from(last[i % 8]) % 8];
        let own = f32::from_le_bytes([last[i % 8], last[(i + 1) % 8], last[(i + 3) % 8], last[(i + 6) % 8]]);
        if last[0] % 2 == 0 && own.is_finite() { own } else { chosen }
    };
    let input: Vec<f32> = (0..shape.inputs).map(value).collect();
    let first = answers(model, &input, f32::NAN);
    assert_eq!(first, answers(model, &input, 0.0), "scratch decides an answer");
    if let Ok(rates) = Rates::new(0.5, 0.25) {
        let _ = model.set_rates(rates);
    }
    let _ = model.set_ambiguity_rate(0.5);
    let again = model.assess(&input, &mut scratch).expect("an input");
    assert!(again.uncertainty.is_finite());
}

/// Makes what a change broke whole again, as far as `seed` says: nothing, the checksums, or the header as well.
pub fn repair(data: &mut [u8], seed: u32) {
    if data.len() < HEADER || seed.is_multiple_of(8) {
        return;
    }
    let put = |data: &mut [u8], at: usize, value: usize| {
        data[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
    };
    let total = data.len();
    put(data, 12, total);
    if seed.is_multiple_of(3) {
        data[..8].copy_from_slice(&MAGIC);
        let meta = (word(data, 28) as usize).min(total - HEADER);
        let params_at = (HEADER + meta).next_multiple_of(16).min(total);
        let info = (word(data, 44) as usize).min(total - params_at);
        let params = (total - params_at - info) / 4 * 4;
        let places = [HEADER, meta, params_at, params, params_at + params, total - params_at - params];
        for (i, place) in places.into_iter().enumerate() {
            put(data, 24 + 4 * i, place);
        }
        data[HEADER + meta..params_at].fill(0);
    }
    seal(data);
}
