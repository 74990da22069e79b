//! What can be wrong with a file: one or more faults for every check of docs/format.md.

use dab_core::Activation;
use dab_core::artifact::Part;
use dab_core::artifact::schema::{
    CovarianceKind, DecoderReads, Form, MAX_CALIBRATION, MAX_CODES, MAX_DIM_DIAGONAL, MAX_DIM_FULL,
    MAX_LAYERS, MAX_SELF_TESTS, MAX_WIDTH, Residual,
};
use dab_core::parts::LARGEST;
use dab_tests::patch::{HEADER, word};

use super::{Draft, Fault, Stage, fault, sound};

/// Entries of each part that get a wrong value: of two in one part the first counts.
pub const ENTRIES: usize = 2;

/// Every fault, one or more for every check.
pub fn faults() -> Vec<Fault> {
    let mut all = container_faults();
    all.extend(meta_faults());
    all.extend(size_faults());
    all.extend(value_faults());
    all
}

/// What is wrong with the header, the checksums, the layout and the buffer.
fn container_faults() -> Vec<Fault> {
    let named = |name: &str, stage, change: fn(&mut Draft)| fault(name, name, stage, change);
    vec![
        named("NotAnArtifact", Stage::Header, |d| d.bytes[0] = b'P'),
        named("Truncated in the header", Stage::Sealed, |d| d.bytes.truncate(HEADER - 1)),
        named("HeaderChecksum", Stage::Sealed, |d| d.bytes[60] ^= 1),
        named("Version", Stage::Header, |d| d.bytes[8] = 2),
        named("IncompatibleFeatures", Stage::Header, |d| d.bytes[16] |= 128),
        named("Schema", Stage::Header, |d| d.bytes[48] ^= 1),
        named("Truncated", Stage::Header, |d| d.add(12, 1)),
        named("TrailingBytes", Stage::Header, |d| d.add(12, -1)),
        named("BodyChecksum", Stage::BodySealed, |d| d.bytes[56] ^= 1),
        // Each moves one border only; what is beyond it still lies where it did.
        named("SectionLayout", Stage::Header, |d| d.add(44, 1)),
        named("SectionLayout", Stage::Header, |d| {
            d.add(24, 4);
            d.add(28, -4);
        }),
        named("SectionLayout", Stage::Header, |d| {
            d.add(32, 16);
            d.add(36, -16);
        }),
        // Parameters of a length that is no multiple of four.
        named("SectionLayout", Stage::Header, |d| {
            d.add(36, -1);
            d.add(40, -1);
            d.add(44, 1);
        }),
        named("Padding", Stage::Padding, |d| {
            let (start, end) = (HEADER + d.meta.len(), word(&d.bytes, 32) as usize);
            assert!(start < end, "there is padding");
            d.bytes[start..end].fill(1);
        }),
        named("Misaligned", Stage::Sealed, |d| d.shifted = true),
    ]
}

/// What is wrong with the encoding of the meta section.
fn meta_faults() -> Vec<Fault> {
    let named = |name: &str, change: fn(&mut Draft)| fault(name, name, Stage::Meta, change);
    vec![
        named("MetaEncoding", |d| {
            let at = d.normalized();
            d.meta[at] = 2;
        }),
        // One layer too many: outputs, bias, activation, no residual.
        named("MetaEncoding", |d| {
            let at = d.normalized() + 1;
            let missing = MAX_LAYERS + 1 - usize::from(d.meta[at]);
            d.meta[at] = MAX_LAYERS as u8 + 1;
            let layers = [6, 1, Activation::Relu as u8, 0].repeat(missing);
            d.meta.splice(at + 1..at + 1, layers);
        }),
        named("MetaTrailingBytes", |d| d.meta.push(0)),
        // `inputs` in one byte more than it needs.
        named("MetaNotCanonical", |d| {
            let at = d.normalized();
            d.meta[at - 1] |= 0x80;
            d.meta.insert(at, 0);
        }),
    ]
}

/// Sizes and residuals that cannot be.
fn size_faults() -> Vec<Fault> {
    fn limit(check: &str, change: impl Fn(&mut Draft) + 'static) -> Fault {
        let field = check.split(' ').next().unwrap_or_default();
        fault(&format!("Limit {check}"), &format!("Limit {field}"), Stage::Shape, change)
    }
    fn channels(field: &str, change: impl Fn(&mut Draft) + 'static) -> Fault {
        let name = format!("Channels {field}");
        fault(&name, &name, Stage::Shape, change)
    }
    let mut all = vec![
        limit("dim (spectral, Cholesky)", |d| {
            (d.parts.meta.head.covariance, d.parts.meta.dim) = (CovarianceKind::Spectral, MAX_DIM_FULL + 1);
        }),
        limit("calibration.held_out", |d| calibration(d).held_out = 0),
        limit("ambiguity.held_out", |d| d.ambiguity().held_out = 0),
        channels("base.form", |d| {
            d.channels().base.form = Form::Energy;
            d.regression();
        }),
        channels("base.decoder_reads", |d| {
            d.channels().base.decoder_reads = DecoderReads::Input;
            d.parts.meta.decoder = None;
        }),
        channels("views.form", |d| d.channels().views[1].form = Form::Sum),
        channels("ambiguity", Draft::regression),
        fault("Residual 0", "Residual 0", Stage::Shape, |d| {
            d.parts.meta.layers[0].residual = Some(Residual { source: 1, before_activation: true });
        }),
        fault("Residual 1", "Residual 1", Stage::Shape, |d| {
            d.parts.meta.layers[1].residual = Some(Residual { source: 0, before_activation: true });
        }),
        fault("Norm", "Norm", Stage::Shape, |d| d.parts.meta.norms |= 1 << 12),
        // The last field: no norm at all, although the header has the bit.
        fault("Limit norms", "Limit norms", Stage::Meta, |d| *d.meta.last_mut().expect("norms") = 0),
        fault("ParamCount", "ParamCount", Stage::Values, |d| d.parts.params.push(0.0)),
    ];
    // None at all, and one too many.
    for wrong in [|_| 0, |most: u32| most + 1] {
        all.extend([
            limit("inputs", move |d| d.parts.meta.inputs = wrong(MAX_WIDTH)),
            limit("layers.outputs", move |d| d.parts.meta.layers[1].outputs = wrong(MAX_WIDTH)),
            limit("dim (diagonal, constant)", move |d| d.parts.meta.dim = wrong(MAX_DIM_DIAGONAL)),
            limit("codes", move |d| d.parts.meta.codes = wrong(MAX_CODES)),
            limit("decoder.outputs", move |d| {
                if let Some(decoder) = d.parts.meta.decoder.as_mut() {
                    decoder.outputs = wrong(MAX_WIDTH);
                }
            }),
            limit("views.dim", move |d| d.view().dim = wrong(MAX_DIM_DIAGONAL)),
            limit("views.codes", move |d| d.view().codes = wrong(MAX_CODES)),
            limit("views.decoder.outputs", move |d| {
                d.view().decoder.as_mut().expect("a decoder").outputs = wrong(MAX_WIDTH);
            }),
            limit("ambiguity.points", move |d| d.ambiguity().points = wrong(MAX_CALIBRATION.into()) as u16),
            limit("calibration.points", move |d| {
                calibration(d).points = wrong(MAX_CALIBRATION.into()) as u16;
            }),
            limit("self_test.vectors", move |d| {
                d.parts.meta.self_test.vectors = wrong(MAX_SELF_TESTS.into()) as u8;
            }),
        ]);
    }
    all
}

fn calibration(draft: &mut Draft) -> &mut dab_core::artifact::schema::CalibrationMeta {
    draft.parts.meta.calibration.as_mut().expect("a table")
}

/// Numbers that cannot be.
fn value_faults() -> Vec<Fault> {
    let mut all = Vec::new();
    let mut seen = Vec::new();
    for (part, range) in sound().places() {
        // The parts of the second view have the names of the first one's.
        if seen.contains(&part) {
            continue;
        }
        seen.push(part);
        assert!(range.len() >= ENTRIES, "{part}");
        let out_of_range = match part {
            Part::NormalizeInverseStd | Part::CalibrationScores | Part::SelfTestAnswers => Some(-0.5),
            Part::ViewNormalizeInverseStd => Some(-0.5),
            Part::CodePriors | Part::CalibrationPValues => Some(1.5),
            Part::ViewCodePriors | Part::AmbiguityPValues => Some(1.5),
            // Any finite number may be an input, or an ambiguity.
            Part::SelfTestInputs | Part::AmbiguityScores => None,
            _ => Some(2.0 * LARGEST),
        };
        for index in 0..ENTRIES {
            let check = format!("{part}[{index}]");
            let wrong = |name: &str, value: f32| {
                let says = format!("{name} {check}");
                fault(&check, &says, Stage::Values, move |d| d.parts.part(part)[index] = value)
            };
            all.push(wrong("NonFinite", f32::NAN));
            all.extend(out_of_range.map(|value| wrong("OutOfRange", value)));
        }
    }
    let dim = sound().meta.dim as usize;
    for code in 0..2 {
        let name = format!("NotPositiveDefinite {code}");
        let last = code * dim + dim - 1;
        assert!(last >= ENTRIES, "the first entries have other faults");
        all.push(fault(&name, &name, Stage::Values, move |d| d.parts.part(Part::CodePrecisions)[last] = 0.0));
    }
    all.extend([
        fault("OutOfRange", "OutOfRange codes.log_det[2]", Stage::Values, |d| {
            d.parts.part(Part::CodeLogDets)[ENTRIES] += 1.0;
        }),
        // Behind its floats, the third whole number: a window of none.
        fault("Monitor", "Monitor", Stage::Values, |d| d.parts.part(Part::Monitor)[20] = 0.0),
        fault("PriorSum", "PriorSum", Stage::Values, |d| d.parts.part(Part::CodePriors)[ENTRIES..].fill(1.0)),
        fault("Alpha", "Alpha", Stage::Shape, |d| d.parts.meta.alpha = (-1.0f32).to_le_bytes()),
        fault("Alpha", "Alpha", Stage::Shape, |d| d.parts.meta.alpha = f32::NAN.to_le_bytes()),
        fault("CalibrationOrder", "CalibrationOrder 4", Stage::Values, |d| {
            d.parts.part(Part::CalibrationScores).swap(3, 4);
        }),
        fault("CalibrationOrder", "CalibrationOrder 7", Stage::Values, |d| {
            d.parts.part(Part::CalibrationPValues).swap(6, 7);
        }),
        fault("CalibrationOrder of the last p", "CalibrationOrder 29", Stage::Values, |d| {
            *d.parts.part(Part::CalibrationPValues).last_mut().expect("a table") *= 0.5;
        }),
        fault("Rates", "Rates", Stage::Shape, |d| calibration(d).doubtful = 1.0f32.to_le_bytes()),
        fault("Rates", "Rates", Stage::Shape, |d| calibration(d).unfamiliar = f32::NAN.to_le_bytes()),
        fault("PriorSum of a view", "PriorSum", Stage::Values, |d| {
            d.parts.part(Part::ViewCodePriors)[ENTRIES..].fill(1.0);
        }),
        fault("Alpha of a view", "Alpha", Stage::Shape, |d| d.view().alpha = (-1.0f32).to_le_bytes()),
        fault("CalibrationOrder, ambiguity", "CalibrationOrder 3", Stage::Values, |d| {
            d.parts.part(Part::AmbiguityScores).swap(2, 3);
        }),
        fault("CalibrationOrder of the last p, ambiguity", "CalibrationOrder 39", Stage::Values, |d| {
            *d.parts.part(Part::AmbiguityPValues).last_mut().expect("a table") *= 0.5;
        }),
        fault("Rates, ambiguity", "Rates", Stage::Shape, |d| d.ambiguity().rate = 1.0f32.to_le_bytes()),
    ]);
    all
}
