//! A writer that lies: sound artifacts are taken apart, some fields are changed to what the fuzzer says, and all is put
//! together again with valid checksums.

use dab_core::Activation;
use dab_core::artifact::schema::{
    AmbiguityMeta, CalibrationMeta, ChannelsMeta, CovarianceKind, DecoderMeta, DecoderReads, Form, LayerMeta,
    MONITOR_WORDS, Residual, Task, ViewDecoderMeta, ViewMeta,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::patch::{Parts, seal};
use crate::{artifact, pool};

/// Most floats of a lie.
const MOST: usize = 4096;

/// Values that sit on the edges of the rules.
const EDGES: [f32; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    0.999_999_94,
    1.000_000_1,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
    1e-45,
    (1u64 << 50) as f32,
    (1u64 << 51) as f32,
    1.0 / (1u64 << 50) as f32,
    1.0 / (1u64 << 51) as f32,
    1e15,
    -1e-15,
];

/// Writes the lies that `data` tells, and reads them.
///
/// # Panics
/// As [`artifact::check`].
pub fn check(data: &[u8]) {
    if let Ok(bytes) = write(&mut Unstructured::new(data)) {
        artifact::check(&bytes);
    }
}

/// The artifact that these choices make.
///
/// # Errors
/// When there are too few of them.
pub fn write(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let (_, sound) = u.choose(pool::models())?;
    let mut parts = Parts::of(sound);
    for _ in 0..u.int_in_range(1..=5)? {
        change(&mut parts, u)?;
    }
    // A lie about sizes is believed as long as the parameters are as many as it says.
    if u.ratio(3, 4)?
        && let Some(total) = parts.meta.param_counts(parts.channels.as_ref()).and_then(|c| c.total())
        && total <= MOST
    {
        // What was taught and a monitor lie behind all others; a monitor keeps its words.
        let words = if parts.monitor { parts.params.len().min(MONITOR_WORDS) } else { 0 };
        let monitor = parts.params.split_off(parts.params.len() - words);
        let old = if parts.params.is_empty() { vec![1.0] } else { parts.params.clone() };
        parts.params = old.iter().copied().cycle().take(total).chain(monitor).collect();
        (parts.taught, parts.rest, parts.local) = (false, false, false);
        for _ in 0..u.int_in_range(0..=3)? {
            part(&mut parts, u)?;
        }
    }
    let mut meta = parts.meta_bytes();
    if u.ratio(1, 8)? && !meta.is_empty() {
        let at = u.choose_index(meta.len())?;
        match u.int_in_range(0..=2u8)? {
            0 => meta[at] = u.arbitrary()?,
            1 => meta.insert(at, u.arbitrary()?),
            _ => drop(meta.remove(at)),
        }
    }
    let mut bytes = parts.join_with(&meta).as_slice().to_vec();
    if u.ratio(1, 8)? {
        let at = u.int_in_range(0..=59)?;
        bytes[at] = u.arbitrary()?;
        seal(&mut bytes);
    }
    Ok(bytes)
}

fn float(u: &mut Unstructured<'_>) -> Result<f32> {
    Ok(match u.int_in_range(0..=3u8)? {
        0 => f32::from_bits(u.arbitrary()?),
        1 => f32::from(u.arbitrary::<i8>()?) / 16.0,
        _ => *u.choose(&EDGES)?,
    })
}

fn size(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=7u8)? {
        0 => u.arbitrary()?,
        1 => *u.choose(&[0, 65535, 65536, 65537, 1024, 1025, 64, 65, u32::MAX])?,
        _ => u.int_in_range(1..=12)?,
    })
}

/// Other values for one part of the parameters.
fn part(parts: &mut Parts, u: &mut Unstructured<'_>) -> Result<()> {
    let words = if parts.monitor { MONITOR_WORDS } else { 0 };
    let places = match parts.meta.param_counts(parts.channels.as_ref()).and_then(|c| c.total()) {
        Some(total) if total + words == parts.params.len() && !parts.taught => parts.places(),
        _ => return Ok(()),
    };
    if places.is_empty() {
        return Ok(());
    }
    let (_, range) = &places[u.choose_index(places.len())?];
    let values = &mut parts.params[range.clone()];
    let at = u.choose_index(values.len())?;
    match u.int_in_range(0..=4u8)? {
        0 => values.fill(float(u)?),
        1 => values.reverse(),
        2 => values[at] = f32::from_bits(values[at].to_bits() ^ 1 << u.int_in_range(0..=31u8)?),
        _ => values[at] = float(u)?,
    }
    Ok(())
}

fn change(parts: &mut Parts, u: &mut Unstructured<'_>) -> Result<()> {
    let meta = &mut parts.meta;
    match u.int_in_range(0..=21u8)? {
        0 => meta.inputs = size(u)?,
        1 => meta.normalized = u.arbitrary()?,
        2 => {
            let layer = LayerMeta {
                outputs: size(u)?,
                bias: u.arbitrary()?,
                activation: *u.choose(&Activation::ALL)?,
                residual: residual(u)?,
            };
            let _ = meta.layers.push(layer);
        }
        3 => drop(meta.layers.pop()),
        4 if !meta.layers.is_empty() => {
            let at = u.choose_index(meta.layers.len())?;
            let layer = &mut meta.layers[at];
            match u.int_in_range(0..=3u8)? {
                0 => layer.outputs = size(u)?,
                1 => layer.bias = u.arbitrary()?,
                2 => layer.activation = *u.choose(&Activation::ALL)?,
                _ => layer.residual = residual(u)?,
            }
        }
        5 => meta.head.covariance = *u.choose(&CovarianceKind::ALL)?,
        6 => meta.head.activation = *u.choose(&Activation::ALL)?,
        7 => meta.head.bias = u.arbitrary()?,
        8 => meta.dim = size(u)?,
        9 => meta.codes = size(u)?,
        10 => meta.alpha = float(u)?.to_le_bytes(),
        11 => {
            let task = *u.choose(&[Task::Regression, Task::Classification])?;
            meta.decoder = match u.ratio(1, 3)? {
                true => None,
                false => Some(DecoderMeta { task, outputs: size(u)?, bias: u.arbitrary()? }),
            };
        }
        12 => {
            meta.calibration = match u.ratio(1, 3)? {
                true => None,
                false => Some(CalibrationMeta {
                    points: size(u)? as u16,
                    held_out: size(u)?,
                    doubtful: float(u)?.to_le_bytes(),
                    unfamiliar: float(u)?.to_le_bytes(),
                }),
            };
        }
        13 => meta.self_test.vectors = u.int_in_range(0..=9)?,
        14 => parts.channels = if u.arbitrary()? { Some(ChannelsMeta::default()) } else { None },
        15 => {
            if let Some(channels) = &mut parts.channels {
                channel(channels, u)?;
            }
        }
        16 => {
            let len = u.int_in_range(0..=2 * parts.params.len().min(MOST / 2))?;
            parts.params.resize(len, 0.25);
        }
        17 => monitor(parts, u)?,
        18 => parts.taught = u.arbitrary()?,
        19 => rest(parts, u)?,
        20 => local(parts, u)?,
        _ => {
            for _ in 0..u.int_in_range(1..=6)? {
                part(parts, u)?;
            }
        }
    }
    Ok(())
}

/// Another word of the monitor, with the bits of a float or a whole number; or one where there was none.
fn monitor(parts: &mut Parts, u: &mut Unstructured<'_>) -> Result<()> {
    if !parts.monitor {
        parts.monitor = true;
        parts.params.resize(parts.params.len() + MONITOR_WORDS, 1.0);
    }
    let len = parts.params.len();
    for _ in 0..u.int_in_range(1..=4)? {
        let back = u.int_in_range(1..=MONITOR_WORDS)?;
        let word = if u.arbitrary()? { float(u)? } else { f32::from_bits(size(u)?) };
        if let Some(to) = len.checked_sub(back).and_then(|at| parts.params.get_mut(at)) {
            *to = word;
        }
    }
    Ok(())
}

/// Another word of the rests, the one that says whose they are among them; or a block of them where there was none.
fn rest(parts: &mut Parts, u: &mut Unstructured<'_>) -> Result<()> {
    if !parts.rest {
        let (dim, views) = (parts.meta.dim.min(64) as usize, u.int_in_range(0..=4)?);
        parts.rest = true;
        parts.params.resize(parts.params.len() + dim, 0.5);
        parts.params.push(f32::from_bits(views));
    }
    let (len, dim) = (parts.params.len(), parts.meta.dim.min(64) as usize);
    let back = u.int_in_range(1..=dim + 1)?;
    if let Some(to) = len.checked_sub(back).and_then(|at| parts.params.get_mut(at)) {
        *to = float(u)?;
    }
    Ok(())
}

/// The same of the local precisions.
fn local(parts: &mut Parts, u: &mut Unstructured<'_>) -> Result<()> {
    let codes = parts.meta.codes.min(64) as usize;
    if !parts.local {
        let views = u.int_in_range(0..=4)?;
        parts.local = true;
        parts.params.resize(parts.params.len() + codes, 0.5);
        parts.params.push(f32::from_bits(views));
    }
    let back = u.int_in_range(1..=codes + 1)?;
    if let Some(to) = parts.params.len().checked_sub(back).and_then(|at| parts.params.get_mut(at)) {
        *to = if back == 1 { f32::from_bits(size(u)?) } else { float(u)? };
    }
    Ok(())
}

fn residual(u: &mut Unstructured<'_>) -> Result<Option<Residual>> {
    Ok(match u.arbitrary()? {
        false => None,
        true => Some(Residual { source: u.int_in_range(0..=18)?, before_activation: u.arbitrary()? }),
    })
}

fn channel(channels: &mut ChannelsMeta, u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=6u8)? {
        0 => channels.base.l2 = u.arbitrary()?,
        1 => channels.base.form = *u.choose(&Form::ALL)?,
        2 => channels.base.decoder_reads = *u.choose(&[DecoderReads::Latent, DecoderReads::Input])?,
        3 => drop(channels.views.pop()),
        4 => {
            let view = ViewMeta {
                normalized: u.arbitrary()?,
                l2: u.arbitrary()?,
                dim: size(u)?,
                codes: size(u)?,
                alpha: float(u)?.to_le_bytes(),
                form: *u.choose(&Form::ALL)?,
                decoder: match u.arbitrary()? {
                    false => None,
                    true => Some(ViewDecoderMeta { outputs: size(u)?, bias: u.arbitrary()? }),
                },
            };
            let _ = channels.views.push(view);
        }
        5 if !channels.views.is_empty() => {
            let at = u.choose_index(channels.views.len())?;
            let view = &mut channels.views[at];
            match u.int_in_range(0..=4u8)? {
                0 => view.dim = size(u)?,
                1 => view.codes = size(u)?,
                2 => view.alpha = float(u)?.to_le_bytes(),
                3 => view.form = *u.choose(&Form::ALL)?,
                _ => view.normalized = u.arbitrary()?,
            }
        }
        _ => {
            channels.ambiguity = match u.ratio(1, 3)? {
                true => None,
                false => Some(AmbiguityMeta {
                    points: size(u)? as u16,
                    held_out: size(u)?,
                    rate: float(u)?.to_le_bytes(),
                }),
            };
        }
    }
    Ok(())
}
