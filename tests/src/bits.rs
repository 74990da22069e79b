//! Expected bits: a committed file per set, one hexadecimal f32 per line.

use crate::repository;

/// Compares `values` with `tests/golden/<name>.bits`, bit by bit; with `DAB_BLESS=1` writes the file
/// instead.
///
/// # Panics
/// At the first bit that differs.
pub fn assert_bits(name: &str, values: &[f32]) {
    let path = repository().join("tests/golden").join(format!("{name}.bits"));
    let found: Vec<String> = values.iter().map(|v| format!("{:08x}", v.to_bits())).collect();
    if std::env::var_os("DAB_BLESS").is_some() {
        std::fs::write(&path, found.join("\n") + "\n").expect("writable golden file");
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let expected: Vec<&str> = text.lines().collect();
    assert_eq!(expected.len(), found.len(), "{name}: number of values");
    for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert_eq!(expected, found, "{name}: bits of value {i}; DAB_BLESS=1 accepts new ones");
    }
}
