//! docs/format.md, "Checks, in order": for every two checks that one file can fail, a file that fails both is
//! refused by the check that the page has first.
//!
//! The order comes from the page alone: its table of checks, and for sizes and parameters its tables of limits
//! and of parts. The faults are in `refusal_order/faults.rs`.

#[path = "refusal_order/faults.rs"]
mod faults;

use std::collections::BTreeSet;

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::ArtifactError as E;
use dab_core::artifact::monitor::set_monitor;
use dab_core::artifact::schema::{AmbiguityMeta, ChannelsMeta, Form, Task, ViewMeta};
use dab_core::artifact::writer::{AmbiguitySpec, BaseSpec, ChannelsSpec};
use dab_core::{Activation, Model};
use dab_tests::markdown::{names, table};
use dab_tests::patch::{HEADER, Parts, crc32c, seal, word};
use dab_tests::specs::{Random, monitors, norm, real, view};

use self::faults::{ENTRIES, faults};

const PAGE: &str = include_str!("../docs/format.md");

/// A file of format 1.2 with every part of the first two formats, a norm, and a monitor.
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
    spec.channels = Some(ChannelsSpec {
        base: BaseSpec::default(),
        views: vec![full, plain],
        ambiguity,
        ..ChannelsSpec::default()
    });
    let width = spec.layers.last().map_or(spec.inputs, |layer| layer.outputs);
    spec.layers.push(norm(random, width, Activation::Identity));
    let [_, (_, monitor)] = monitors();
    Parts::of(&set_monitor(&spec.to_bytes().expect("a model"), &monitor, 0.01, &[]).expect("a monitor"))
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
