//! The workload that proves the same bits on every machine (`dab-same-bits`), on this one. `tests/firmware` runs it
//! under QEMU.

use dab_tests::{repository, specs};

/// Compares a committed file of `tests` with what it should hold, or writes it with `DAB_BLESS=1`.
fn committed(path: &str, expected: &[u8]) {
    let file = repository().join("tests").join(path);
    if std::env::var_os("DAB_BLESS").is_some() {
        std::fs::write(&file, expected).expect("writable");
        return;
    }
    let found = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    assert!(found == expected, "{path}: not what this code gives; DAB_BLESS=1 accepts the new one");
}

#[test]
fn the_models_are_what_the_writer_gives() {
    for (name, spec) in specs::same_bits() {
        committed(&format!("same-bits/models/{name}.dab"), &spec.to_bytes().expect("a sound model"));
    }
}

#[test]
fn the_models_of_the_cost_table_are_what_the_writer_gives() {
    for (name, spec) in specs::cost() {
        committed(&format!("cost/{name}.dab"), &spec.to_bytes().expect("a sound model"));
    }
}

#[test]
fn this_machine_gives_the_committed_hash() {
    for (inputs, file) in [(dab_same_bits::INPUTS, "hash"), (dab_same_bits::FEW_INPUTS, "hash-of-few")] {
        let hash = dab_same_bits::hash_of(inputs).expect("sound models");
        committed(&format!("same-bits/{file}"), format!("{hash:016x}\n").as_bytes());
    }
}
