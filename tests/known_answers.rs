//! The committed models of the examples and the playground give the answers that they carry.
//!
//! After a change of bits they do not. With `DAB_BLESS=1` the test computes the answers of the same known inputs
//! again and writes them, the digest and the checksums into the files. Weights, codes and the calibration table stay
//! as they were trained: a last bit of a score moves no false-alarm rate.

use dab_core::SelfTestError;
use dab_core::artifact::{AlignedBytes, Part};
use dab_tests::patch::{Parts, word};
use dab_tests::repository;

/// Where the checksum of the sections lies, which `dab export` calls the identity of the model.
const IDENTITY_AT: usize = 56;

/// The self-test of an artifact's bytes.
fn self_test(artifact: &AlignedBytes) -> Result<(), SelfTestError> {
    let model = artifact.model().expect("a readable artifact");
    model.self_test(&mut vec![0.0; model.scratch_len()])
}

/// The same model with the answers that this code gives.
fn renewed(artifact: &[u8]) -> AlignedBytes {
    let mut parts = Parts::of(artifact);
    loop {
        match self_test(&parts.join()) {
            Ok(()) => return parts.join(),
            Err(SelfTestError::Uncertainty { vector, found, .. }) => {
                parts.part(Part::SelfTestAnswers)[vector] = found;
            }
            Err(SelfTestError::Digest { found, .. }) => parts.meta.self_test.digest = found.to_le_bytes(),
            Err(SelfTestError::Input(error)) => panic!("{error}"),
        }
    }
}

/// Fails when the model does not give its answers; with `DAB_BLESS=1` writes what `text` makes of the renewed one.
fn check(path: &str, artifact: &[u8], text: impl Fn(&[u8]) -> Vec<u8>) {
    if std::env::var_os("DAB_BLESS").is_some() {
        std::fs::write(repository().join(path), text(renewed(artifact).as_slice())).expect("a writable file");
    } else if let Err(error) = self_test(&AlignedBytes::from(artifact)) {
        panic!("{path}: {error}; DAB_BLESS=1 accepts the new answers");
    }
}

fn read(path: &str) -> Vec<u8> {
    let path = repository().join(path);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The bytes of the array in a file of `dab export --c`, and where its words stand in the text.
fn array(source: &str) -> (Vec<u8>, std::ops::Range<usize>) {
    let start = source.rfind("= {\n").expect("an array") + 4;
    let end = start + source[start..].find("};").expect("the end of the array");
    let number = |word: &str| u32::from_str_radix(word.trim_start_matches("0x").trim_end_matches('u'), 16);
    let words = source[start..end].split(',').map(str::trim).filter(|text| !text.is_empty());
    let bytes: Vec<u8> = words.flat_map(|w| number(w).expect("a word").to_le_bytes()).collect();
    let length = word(&bytes, 12) as usize;
    (bytes[..length].to_vec(), start..end)
}

/// `source` with another artifact of the same length: words, identity and digest.
fn with_array(source: &str, artifact: &[u8]) -> String {
    let (old, place) = array(source);
    let mut padded = artifact.to_vec();
    padded.resize(artifact.len().next_multiple_of(4), 0);
    let words: Vec<String> =
        (0..padded.len()).step_by(4).map(|at| format!("{:#010x}", word(&padded, at))).collect();
    let lines: Vec<String> = words.chunks(8).map(|line| format!("    {}u,\n", line.join("u, "))).collect();
    let digest = |bytes: &[u8]| format!("{:08x}", u32::from_le_bytes(Parts::of(bytes).meta.self_test.digest));
    let identity = |bytes: &[u8]| format!("{:08x}", word(bytes, IDENTITY_AT));
    let head = source[..place.start]
        .replace(&identity(&old), &identity(artifact))
        .replace(&digest(&old), &digest(artifact));
    format!("{head}{}{}", lines.concat(), &source[place.end..])
}

#[test]
fn the_models_of_the_examples_give_the_answers_that_they_carry() {
    for path in ["examples/motor/model.dab", "docs/playground/demo/model.dab"] {
        check(path, &read(path), <[u8]>::to_vec);
    }
}

#[test]
fn the_models_of_the_c_examples_give_the_answers_that_they_carry() {
    for path in ["examples/cortex-m-c/model.c", "examples/c-controller/model.c"] {
        let source = String::from_utf8(read(path)).expect("text");
        let (artifact, _) = array(&source);
        assert!(with_array(&source, &artifact) == source, "{path}: read and written again");
        check(path, &artifact, |renewed| with_array(&source, renewed).into());
    }
}

#[test]
fn the_motor_is_the_same_in_rust_and_in_c() {
    let source = String::from_utf8(read("examples/cortex-m-c/model.c")).expect("text");
    assert!(array(&source).0 == read("examples/motor/model.dab"), "dab export makes model.c of model.dab");
}
