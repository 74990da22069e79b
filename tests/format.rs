//! docs/format.md is normative: its worked example, its schema and its tables are held to the code.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::info::read_info;
use dab_core::artifact::schema::{
    CHANNELS, CHANNELS_SCHEMA, CHANNELS_SCHEMA_KEY, CovarianceKind, DecoderReads, Form, HEADER_LEN,
    INT8_SCHEMA, LOCAL_SCHEMA, MAGIC, MAJOR, MAX_CALIBRATION, MAX_CODES, MAX_DIM_DIAGONAL, MAX_DIM_FULL,
    MAX_EXTRA_VIEWS, MAX_LAYERS, MAX_SELF_TESTS, MAX_WIDTH, MONITOR_SCHEMA, MONITOR_WORDS, NORMS_SCHEMA,
    PARAMS_ALIGN, REST_SCHEMA, SCHEMA, SCHEMA_KEY, SCHEMA_KEYS, TAUGHT_SCHEMA, Task,
};
use dab_core::artifact::writer::{Codes, Head, Spec};
use dab_core::monitor::MAX_WINDOW;
use dab_core::{Activation, Model};
use dab_tests::markdown::{block, table};
use dab_tests::patch::{Parts, crc32c};

const PAGE: &str = include_str!("../docs/format.md");

/// The model of the worked example: one input, which is the latent mean; one standard normal code.
fn tiny() -> Spec {
    let head = Head {
        weight: vec![1.0, 0.5],
        bias: None,
        activation: Activation::Identity,
        covariance: CovarianceKind::Diagonal,
        dim: 1,
    };
    let codes = Codes { means: vec![0.0], covs: vec![1.0], priors: vec![1.0], alpha: 1.0 };
    let info = vec![("name".into(), "tiny".into())];
    Spec { self_test: vec![vec![2.0]], info, ..Spec::new(1, head, codes) }
}

#[test]
fn the_worked_example_is_a_real_file() {
    let mut bytes = Vec::new();
    for line in block(PAGE, "hex").lines() {
        // `offset  bytes  | meaning`
        let (left, meaning) = line.split_once('|').expect("a meaning for every line");
        assert!(!meaning.trim().is_empty(), "{line}");
        let mut words = left.split_whitespace();
        let offset = words.next().expect("an offset").parse::<usize>().expect("an offset in decimal");
        assert_eq!(offset, bytes.len(), "{line}");
        bytes.extend(words.map(|w| u8::from_str_radix(w, 16).expect("two hexadecimal digits")));
    }
    let expected = tiny().to_bytes().expect("a model");
    assert_eq!(bytes, expected, "the page, then the writer: {expected:02x?}");

    let aligned = AlignedBytes::from(&*bytes);
    let model = aligned.model().expect("a model");
    let mut scratch = vec![0.0; model.scratch_len()];
    assert_eq!(model.self_test(&mut scratch), Ok(()));
    assert_eq!(read_info(&bytes), Ok(vec![("name".to_owned(), "tiny".to_owned())]));
    let digest = u32::from_le_bytes(model.meta().self_test.digest);
    let distance = model.assess(&[2.0], &mut scratch).expect("an input").uncertainty;
    assert_eq!(digest, crc32c(&distance.to_le_bytes()), "one code: its distance is the uncertainty");
}

#[test]
fn the_schema_is_the_codes() {
    assert_eq!(block(PAGE, "schema").split_whitespace().collect::<Vec<_>>().join(" "), SCHEMA);
    assert!(PAGE.contains(&format!("`0x{SCHEMA_KEY:016x}`")), "the key is 0x{SCHEMA_KEY:016x}");
    let words = block(PAGE, "schema-1.1").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, CHANNELS_SCHEMA);
    let key = format!("`0x{CHANNELS_SCHEMA_KEY:016x}`");
    assert!(PAGE.contains(&key), "the key of 1.1 is {key}");
    for text in [NORMS_SCHEMA, INT8_SCHEMA, REST_SCHEMA, LOCAL_SCHEMA, TAUGHT_SCHEMA, MONITOR_SCHEMA] {
        assert!(PAGE.contains(&format!("`{text}`")), "{text}");
    }
    assert!(
        PAGE.contains(&format!("the last {MONITOR_WORDS} words of the section")),
        "{MONITOR_WORDS} words"
    );
    assert!(PAGE.contains(&format!("| 1 to {MAX_WINDOW} |")), "a window of at most {MAX_WINDOW}");
    for (features, key) in SCHEMA_KEYS.iter().enumerate() {
        assert!(
            PAGE.contains(&format!("`0x{key:016x}`")),
            "the key of the features {features} is 0x{key:016x}"
        );
    }
}

#[test]
fn channels_show_in_the_header_alone() {
    let bytes = dab_tests::specs::views().to_bytes().expect("a model");
    assert_eq!(bytes[8..12], [1, 0, 1, 0], "format 1.1");
    assert_eq!(bytes[16..24], [CHANNELS as u8, 0, 0, 0, 0, 0, 0, 0], "one incompatible bit");
    assert_eq!(bytes[48..56], CHANNELS_SCHEMA_KEY.to_le_bytes());
    // Without channels the same model is a file of format 1.0.
    let bytes = tiny().to_bytes().expect("a model");
    assert_eq!((&bytes[8..12], &bytes[16..20]), (&[1, 0, 0, 0][..], &[0; 4][..]));
    // A constant covariance is not in format 1.0: an old reader does not know the number either.
    let mut parts = Parts::of(&bytes);
    parts.meta.head.covariance = CovarianceKind::Constant;
    assert_eq!(parts.join().model().err(), Some(dab_core::ArtifactError::MetaEncoding));
    let mut spec = tiny();
    spec.head = Head { weight: vec![1.0], covariance: CovarianceKind::Constant, ..spec.head };
    spec.codes.covs.clear();
    let words = spec.to_bytes().expect_err("no channels").to_string();
    assert_eq!(words, "a constant covariance needs a model with channels (format 1.1)");
}

#[test]
fn the_header_table_is_the_writers() {
    let bytes = tiny().to_bytes().expect("a model");
    let len = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("a header"));
    let (meta, params) = (len(28), len(36));
    let params_at = (HEADER_LEN + meta as usize).next_multiple_of(PARAMS_ALIGN) as u32;
    let mut end = 0;
    for row in table(PAGE, "offset") {
        let [offset, size, name, ..] = row[..] else { panic!("{row:?}") };
        let (offset, size): (usize, usize) = (offset.parse().expect("offset"), size.parse().expect("size"));
        assert_eq!(offset, end, "the fields follow each other");
        end += size;
        let mut field = [0; 8];
        field[..size].copy_from_slice(&bytes[offset..end]);
        let expected = match name {
            "magic" => u64::from_le_bytes(MAGIC),
            "major" => MAJOR.into(),
            // Only a file with a feature bit says more.
            "minor" => 0,
            "total length" => bytes.len() as u64,
            "incompatible" | "compatible" => 0,
            "meta offset" => HEADER_LEN as u64,
            "meta length" => meta.into(),
            "params offset" => params_at.into(),
            "params length" => params.into(),
            "info offset" => (params_at + params).into(),
            "info length" => bytes.len() as u64 - u64::from(params_at + params),
            "schema key" => SCHEMA_KEY,
            "body CRC" => crc32c(&bytes[HEADER_LEN..]).into(),
            "header CRC" => crc32c(&bytes[..60]).into(),
            other => panic!("what is {other}?"),
        };
        assert_eq!(u64::from_le_bytes(field), expected, "{name}");
    }
    assert_eq!(end, HEADER_LEN);
}

#[test]
fn the_limits_and_numbers_of_enums_are_the_codes() {
    let limits = [
        ("inputs", MAX_WIDTH),
        ("layers", MAX_LAYERS as u32),
        ("layers.outputs", MAX_WIDTH),
        ("dim (diagonal, constant)", MAX_DIM_DIAGONAL),
        ("dim (spectral, Cholesky)", MAX_DIM_FULL),
        ("codes", MAX_CODES),
        ("decoder.outputs", MAX_WIDTH),
        ("calibration.points", MAX_CALIBRATION.into()),
        ("calibration.held_out", u32::MAX),
        ("self_test.vectors", MAX_SELF_TESTS.into()),
        ("views", MAX_EXTRA_VIEWS as u32),
        ("views.dim", MAX_DIM_DIAGONAL),
        ("views.codes", MAX_CODES),
        ("views.decoder.outputs", MAX_WIDTH),
        ("ambiguity.points", MAX_CALIBRATION.into()),
        ("ambiguity.held_out", u32::MAX),
        ("norms", u16::MAX.into()),
    ];
    let rows = table(PAGE, "limit");
    for (name, max) in limits {
        let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("no limit of {name}"));
        assert_eq!(row[2].replace(' ', "").parse(), Ok(max), "{name}");
    }
    let enums = table(PAGE, "enum");
    let numbers = |name: &str| enums.iter().find(|row| row[0] == name).expect("an enum")[1];
    let listed = |names: &[&str]| {
        let items = names.iter().enumerate().map(|(i, name)| format!("{i} {name}"));
        items.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(numbers("activation"), listed(&Activation::ALL.map(Activation::name)));
    assert_eq!(numbers("covariance"), listed(&CovarianceKind::ALL.map(CovarianceKind::name)));
    assert_eq!(numbers("form"), listed(&Form::ALL.map(Form::name)));
    assert_eq!(numbers("decoder_reads"), listed(&DecoderReads::ALL.map(DecoderReads::name)));
    assert_eq!(numbers("task"), "0 regression, 1 classification");
    assert_eq!([Task::Regression as u8, Task::Classification as u8], [0, 1]);
}

/// The names of all refusals, from the source: the compiler does not list an enum that may grow.
fn refusals() -> Vec<&'static str> {
    let source = include_str!("../dab-core/src/artifact/error.rs");
    let (_, rest) = source.split_once("pub enum ArtifactError {\n").expect("the enum");
    let (body, _) = rest.split_once("\n}\n").expect("its end");
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = variants.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let names: Vec<_> = variants.map(|line| line.trim_end_matches([' ', '{', ','])).collect();
    assert!(names.contains(&"NotAnArtifact") && names.contains(&"Info") && names.len() >= 25, "{names:?}");
    names
}

#[test]
fn the_page_names_every_refusal() {
    for name in refusals() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
    let _: fn(&'static [u8]) -> Result<Model<'static>, dab_core::ArtifactError> = Model::from_bytes;
}

#[test]
fn c_has_a_number_for_every_refusal() {
    let source = include_str!("../dab-ffi/src/status.rs");
    for name in refusals() {
        let arm = source.split(&format!("ArtifactError::{name} ")).nth(1);
        assert!(
            arm.is_some_and(|arm| arm.trim_start_matches("{ .. } ").starts_with("=> DAB_ERR_")),
            "{name}"
        );
    }
}
