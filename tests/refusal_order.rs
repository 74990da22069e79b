//! docs/format.md, "Checks, in order": for every two checks that one file can fail, a file that fails both is
//! refused by the check that the page has first.
//!
//! The order comes from the page alone: its table of checks, and for sizes and parameters its tables of limits
//! and of parts. The faults are here, one or more for every check.

use std::collections::BTreeSet;

use dab_core::artifact::ArtifactError as E;
use dab_core::artifact::schema::{
    AmbiguityMeta, ChannelsMeta, CovarianceKind, DecoderReads, Form, MAX_CALIBRATION, MAX_CODES,
    MAX_DIM_DIAGONAL, MAX_DIM_FULL, MAX_LAYERS, MAX_SELF_TESTS, MAX_WIDTH, Residual, Task, ViewMeta,
};
use dab_core::artifact::writer::{AmbiguitySpec, BaseSpec, ChannelsSpec};
use dab_core::artifact::{AlignedBytes, Part};
use dab_core::parts::LARGEST;
use dab_core::{Activation, Model};
use dab_tests::markdown::{names, table};
use dab_tests::patch::{HEADER, Parts, crc32c, seal, word};
use dab_tests::specs::{Random, norm, real, view};

const PAGE: &str = include_str!("../docs/format.md");

/// Entries of each part that get a wrong value: of two in one part the first counts.
const ENTRIES: usize = 2;

/// A file of format 1.2 with every part of the first two formats, and a norm.
fn sound() -> Parts {
    let [(_, mut spec), ..] = real();
    let random = &mut Random(11);
    let mut full = view(random, spec.inputs, 3, Form::Joined, 1.0);
    while full.normalization.is_none()
        || full.dim < 3
        || full.priors.len() < 8
        || full.decoder.iter().any(|d| d.bias.is_none())
    {
        full = view(random, spec.inputs, 3, Form::Joined, 1.0);
    }
    let plain = view(random, spec.inputs, 0, Form::Distance, 1.0);
    let ambiguity = Some(AmbiguitySpec { scores: random.floats(40, 4.0), rate: 0.1 });
    spec.channels = Some(ChannelsSpec { base: BaseSpec::default(), views: vec![full, plain], ambiguity });
    let width = spec.layers.last().map_or(spec.inputs, |layer| layer.outputs);
    spec.layers.push(norm(random, width, Activation::Identity));
    Parts::of(&spec.to_bytes().expect("a model"))
}

/// When a fault is put in: a file is made in these steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Into the parameters, while the sizes still say where they lie.
    Values,
    /// Into what the meta section says.
    Shape,
    /// Into the bytes of the meta section.
    Meta,
    /// Into the padding.
    Padding,
    /// Into the header.
    Header,
    /// After the checksum of the body, before that of the header.
    BodySealed,
    /// After both.
    Sealed,
}

const STAGES: [Stage; 7] = [
    Stage::Values,
    Stage::Shape,
    Stage::Meta,
    Stage::Padding,
    Stage::Header,
    Stage::BodySealed,
    Stage::Sealed,
];

/// A file in the making.
struct Draft {
    parts: Parts,
    meta: Vec<u8>,
    bytes: Vec<u8>,
    /// Whether the buffer starts one byte too late.
    shifted: bool,
}

impl Draft {
    fn add(&mut self, at: usize, value: i32) {
        let sum = word(&self.bytes, at).wrapping_add_signed(value);
        self.bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }

    fn channels(&mut self) -> &mut ChannelsMeta {
        self.parts.channels.as_mut().expect("channels")
    }

    fn view(&mut self) -> &mut ViewMeta {
        &mut self.channels().views[0]
    }

    fn ambiguity(&mut self) -> &mut AmbiguityMeta {
        self.channels().ambiguity.as_mut().expect("a table")
    }

    /// Takes the classes away from the decoder.
    fn regression(&mut self) {
        if let Some(decoder) = self.parts.meta.decoder.as_mut() {
            decoder.task = Task::Regression;
        }
    }

    /// Where the meta section has `normalized`: behind the varint of `inputs`.
    fn normalized(&self) -> usize {
        1 + self.meta.iter().position(|byte| byte & 0x80 == 0).expect("the end of a varint")
    }
}

/// One way to fail one check.
struct Fault {
    /// The check, as [`checks`] names it.
    check: String,
    /// What the reader says of it, as [`place`] has it.
    says: String,
    stage: Stage,
    change: Box<dyn Fn(&mut Draft)>,
}

fn fault(check: &str, says: &str, stage: Stage, change: impl Fn(&mut Draft) + 'static) -> Fault {
    Fault { check: check.to_owned(), says: says.to_owned(), stage, change: Box::new(change) }
}

/// A refusal without the numbers that depend on the other fault: its name, and what it points at.
fn place(error: E) -> String {
    match error {
        E::Truncated { expected: HEADER, .. } => "Truncated in the header".into(),
        E::Limit { field, .. } => format!("Limit {field}"),
        E::Channels { field } => format!("Channels {field}"),
        E::Residual { layer } => format!("Residual {layer}"),
        E::NonFinite { part, index } => format!("NonFinite {part}[{index}]"),
        E::OutOfRange { part, index } => format!("OutOfRange {part}[{index}]"),
        E::NotPositiveDefinite { code } => format!("NotPositiveDefinite {code}"),
        E::CalibrationOrder { index } => format!("CalibrationOrder {index}"),
        other => format!("{other:?}").split(' ').next().unwrap_or_default().to_owned(),
    }
}

/// All checks of a page, first one first. A row that speaks of several things in a stated order is several checks.
fn checks(page: &str) -> Vec<String> {
    let parts = table(page, "part");
    let parts: Vec<&str> = parts.iter().flat_map(|row| names(row[0])).collect();
    let mut checks = Vec::new();
    for row in table(page, "check") {
        let errors: Vec<&str> = names(row[1]).collect();
        let of_row: Vec<String> = match errors[..] {
            // The first row of that name; the second one has two.
            ["Truncated"] => vec!["Truncated in the header".into()],
            ["Limit"] => {
                let limits = table(page, "limit");
                // Too many layers or views cannot be decoded: they fail an earlier check.
                let sizes =
                    limits.iter().map(|row| row[0]).filter(|&name| name != "layers" && name != "views");
                sizes.map(|name| format!("Limit {name}")).collect()
            }
            ["Residual"] => (0..2).map(|layer| format!("Residual {layer}")).collect(),
            ["NotPositiveDefinite"] => (0..2).map(|code| format!("NotPositiveDefinite {code}")).collect(),
            ["NonFinite", "OutOfRange"] => {
                let entries = |part| (0..ENTRIES).map(move |index| format!("{part}[{index}]"));
                listed(row[0], &parts).into_iter().flat_map(entries).collect()
            }
            ["Channels"] => names(row[0]).map(|field| format!("Channels {field}")).collect(),
            ["PriorSum", "Alpha"] => vec!["PriorSum of a view".into(), "Alpha of a view".into()],
            ["CalibrationOrder", "Rates"] => ["CalibrationOrder", "CalibrationOrder of the last p", "Rates"]
                .map(|c| format!("{c}, ambiguity"))
                .into(),
            ["CalibrationOrder"] => vec!["CalibrationOrder".into(), "CalibrationOrder of the last p".into()],
            _ => errors.iter().map(|&error| error.to_owned()).collect(),
        };
        assert!(!of_row.is_empty(), "what does this row check? {row:?}");
        checks.extend(of_row);
    }
    checks
}

/// The parts that a row names: `a`, `b`, or all of `a` … `b`.
fn listed<'a>(cell: &str, parts: &[&'a str]) -> Vec<&'a str> {
    let find = |name| parts.iter().position(|&part| part == name).expect("a part of the table");
    let mut found: Vec<&str> = Vec::new();
    let mut until = false;
    for (i, text) in cell.split('`').enumerate() {
        if i % 2 == 0 {
            until = text.trim() == "…";
            continue;
        }
        let end = find(text);
        let start = found.last().filter(|_| until).map_or(end, |last| find(last) + 1);
        found.extend(&parts[start..=end]);
    }
    found
}

fn faults() -> Vec<Fault> {
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
        named("IncompatibleFeatures", Stage::Header, |d| d.bytes[16] = 8),
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

/// Why no file fails both checks, if that is so.
fn exclusive(a: &Fault, b: &Fault) -> Option<&'static str> {
    let both = |x: &str, y: &str| (a.check == x && b.check == y) || (a.check == y && b.check == x);
    if both("Truncated", "TrailingBytes") {
        return Some("a file does not have both fewer and more bytes than it says");
    }
    if both("Limit dim (diagonal, constant)", "Limit dim (spectral, Cholesky)") {
        return Some("a model has one kind of covariance");
    }
    if a.says == b.says {
        return Some("the reader says the same of both");
    }
    if both("Channels base.decoder_reads", "Limit decoder.outputs") {
        return Some("a model without a decoder has no outputs");
    }
    if both("Norm", "Limit norms") {
        return Some("one field has one value");
    }
    let cut = |x: &Fault, y: &Fault| x.check == "Truncated in the header" && y.stage <= Stage::Padding;
    (cut(a, b) || cut(b, a)).then_some("a file that ends within its header has no sections")
}

/// What the reader says of a sound file with these faults put in.
fn read(sound: &Parts, faults: &[&Fault]) -> Option<String> {
    let mut draft = Draft { parts: sound.clone(), meta: vec![], bytes: vec![], shifted: false };
    for stage in STAGES {
        match stage {
            Stage::Values | Stage::Shape | Stage::Header => {}
            Stage::Meta => {
                draft.meta = draft.parts.meta_bytes();
            }
            Stage::Padding => draft.bytes = draft.parts.join_with(&draft.meta).as_slice().to_vec(),
            Stage::BodySealed => seal(&mut draft.bytes),
            Stage::Sealed => {
                let header = crc32c(&draft.bytes[..60]);
                draft.bytes[60..64].copy_from_slice(&header.to_le_bytes());
            }
        }
        for fault in faults.iter().filter(|fault| fault.stage == stage) {
            (fault.change)(&mut draft);
        }
    }
    let shift = usize::from(draft.shifted);
    let buffer = AlignedBytes::from(&*[&vec![0; shift][..], &draft.bytes].concat());
    Model::from_bytes(&buffer.as_slice()[shift..]).err().map(place)
}

/// What the reader says of every two faults of different checks that a file can have.
struct Refusals {
    faults: Vec<Fault>,
    /// Two faults, and which of them was reported; `None` for something else.
    pairs: Vec<(usize, usize, Option<usize>)>,
}

impl Refusals {
    fn of_the_reader() -> Self {
        let (mut sound, faults) = (sound(), faults());
        // Some faults make the meta section longer; without this residual there is padding left all the same.
        sound.meta.layers[2].residual = None;
        assert_eq!(read(&sound, &[]), None);
        for fault in &faults {
            assert_eq!(read(&sound, &[fault]), Some(fault.says.clone()), "{} alone", fault.check);
        }
        let mut pairs = Vec::new();
        for (i, a) in faults.iter().enumerate() {
            for (j, b) in faults.iter().enumerate().skip(i + 1) {
                if a.check == b.check || exclusive(a, b).is_some() {
                    continue;
                }
                let found = read(&sound, &[a, b]).unwrap_or_default();
                pairs.push((i, j, [i, j].into_iter().find(|&k| faults[k].says == found)));
            }
        }
        Self { faults, pairs }
    }

    /// Where `page` and the reader disagree.
    fn disagreements(&self, page: &str) -> Vec<String> {
        let checks = checks(page);
        let mut wrong = Vec::new();
        let on_page: BTreeSet<&str> = checks.iter().map(String::as_str).collect();
        let in_test: BTreeSet<&str> = self.faults.iter().map(|fault| &*fault.check).collect();
        wrong.extend(on_page.difference(&in_test).map(|check| format!("no file fails {check}")));
        wrong.extend(in_test.difference(&on_page).map(|check| format!("the page does not have {check}")));
        let rank = |fault: usize| checks.iter().position(|check| *check == self.faults[fault].check);
        for &(a, b, reported) in &self.pairs {
            let first = if rank(a) < rank(b) { a } else { b };
            if reported != Some(first) {
                let says = |fault: usize| &*self.faults[fault].says;
                let found = reported.map_or("something else", says);
                wrong.push(format!("{} and {}: the reader says {found}", says(a), says(b)));
            }
        }
        wrong
    }
}

/// `page` with two neighbouring rows of the table that starts with `first` exchanged, for every two neighbours.
fn exchanged(page: &str, first: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = page.lines().collect();
    let head = lines.iter().position(|line| line.starts_with(&format!("| {first} |"))).expect("a table");
    let rows = lines[head + 2..].iter().take_while(|line| line.starts_with('|')).count();
    let exchange = |row: usize| {
        let mut lines = lines.clone();
        lines.swap(row, row + 1);
        (format!("{}\n{}", lines[row + 1], lines[row]), lines.join("\n"))
    };
    (head + 2..head + 1 + rows).map(exchange).collect()
}

#[test]
fn of_two_faults_the_page_and_the_reader_name_the_same() {
    let refusals = Refusals::of_the_reader();
    let wrong = refusals.disagreements(PAGE);
    assert!(wrong.is_empty(), "{} disagreements:\n{}", wrong.len(), wrong.join("\n"));
    println!("{} faults, {} files with two of them", refusals.faults.len(), refusals.pairs.len());

    // The comparison sees every exchange of two rows.
    for (rows, page) in exchanged(PAGE, "check").into_iter().chain(exchanged(PAGE, "part")) {
        assert!(!refusals.disagreements(&page).is_empty(), "nothing tells these rows apart:\n{rows}");
    }
    for (rows, page) in exchanged(PAGE, "limit") {
        // Layers and views are not sizes here (see `checks`), and a model has one kind of covariance.
        let layers = rows.contains("| layers |") || rows.contains("| views |");
        let kinds = rows.contains("(diagonal, constant)") && rows.contains("(spectral");
        let apart = !(layers || kinds);
        assert_eq!(!refusals.disagreements(&page).is_empty(), apart, "{rows}");
    }
}
