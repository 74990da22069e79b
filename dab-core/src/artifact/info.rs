//! The info section: names, units, provenance. It never changes an assessment.
//!
//! A list of key–value strings in postcard, keys in the writer's order. Unlike the other sections it may
//! grow freely: an unknown key is shown, not refused. A device reads three kinds of keys from it, where they lie: the names
//! of inputs and outputs, the training means of the inputs, and the widths of a regression's bands. A section that is damaged
//! has none of them.

#[cfg(feature = "alloc")]
use alloc::string::String;
#[cfg(feature = "alloc")]
use alloc::vec::Vec;

#[cfg(feature = "alloc")]
use super::aligned::AlignedBytes;
#[cfg(feature = "alloc")]
use super::error::ArtifactError;
use super::names::digit;
#[cfg(feature = "alloc")]
use super::reader::sections;
#[cfg(feature = "alloc")]
use super::taught::seal;

/// Key of the inputs' names.
pub const INPUT_NAMES: &str = "input_names";
/// Key of the outputs' names.
pub const OUTPUT_NAMES: &str = "output_names";
/// Key of the inputs' training means, a text of numbers ([`numbers_text`]).
pub const INPUT_MEANS: &str = "input_means";
/// Key of the [bands](crate::band) of a regression's outputs, a text of numbers ([`numbers_text`]).
pub const OUTPUT_BANDS: &str = "output_bands";

/// Reads the info section of an artifact.
///
/// # Errors
/// When the container is damaged, or the section is not the canonical encoding of a list of strings.
#[cfg(feature = "alloc")]
pub fn read_info(bytes: &[u8]) -> Result<Vec<(String, String)>, ArtifactError> {
    let info = sections(bytes)?.info;
    let (entries, rest) =
        postcard::take_from_bytes::<Vec<(String, String)>>(info).map_err(|_| ArtifactError::Info)?;
    let canonical = postcard::to_allocvec(&entries).is_ok_and(|canonical| canonical == info);
    if rest.is_empty() && canonical { Ok(entries) } else { Err(ArtifactError::Info) }
}

/// The artifact with `info` in place of its info. Nothing else changes: every assessment keeps its bits.
///
/// # Errors
/// When `artifact` is no model.
#[cfg(feature = "alloc")]
pub fn set_info(artifact: &[u8], info: &[(String, String)]) -> Result<Vec<u8>, ArtifactError> {
    let bytes = AlignedBytes::from(artifact);
    bytes.model()?;
    let parts = sections(bytes.as_slice())?;
    let info = postcard::to_allocvec(info).map_err(|_| ArtifactError::Info)?;
    let file = seal(bytes.as_slice(), parts.meta, parts.params, &info, parts.features);
    file.model()?;
    Ok(file.as_slice().into())
}

/// The value of the first `key` in a section; `None` when there is no such key, or the section is damaged before it.
pub(crate) fn find<'a>(section: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut rest = section;
    for _ in 0..varint(&mut rest)? {
        let (found, value) = (string(&mut rest)?, string(&mut rest)?);
        // Byte by byte: a comparison of slices would need one more function of the platform.
        if found.len() == key.len() && found.iter().zip(key.as_bytes()).all(|(a, b)| a == b) {
            return Some(value);
        }
    }
    None
}

/// A number as postcard writes it: seven bits a byte, lowest first.
fn varint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = varint(rest)? as usize;
    let (string, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(string)
}

/// Numbers as a string: the bits of each f32 as eight hexadecimal digits, with one blank between them.
#[cfg(feature = "alloc")]
#[must_use]
pub fn numbers_text(numbers: &[f32]) -> String {
    let words: Vec<String> = numbers.iter().map(|x| alloc::format!("{:08x}", x.to_bits())).collect();
    words.join(" ")
}

/// Number `index` of a text of [`numbers_text`]; `None` when the text does not have it, or it is no finite number.
pub(crate) fn number(text: &[u8], index: usize) -> Option<f32> {
    const DIGITS: usize = 8;
    let word = text.get(index.checked_mul(DIGITS + 1)?..)?.get(..DIGITS)?;
    let bits = word.iter().try_fold(0u32, |bits, &byte| Some(bits << 4 | digit(byte)?))?;
    Some(f32::from_bits(bits)).filter(|x| x.is_finite())
}

/// Whether a text of [`numbers_text`] has exactly `count` numbers, all of which are `allowed`.
pub(crate) fn has_numbers(text: &[u8], count: usize, allowed: impl Fn(f32) -> bool) -> bool {
    text.len().checked_add(1) == count.checked_mul(9)
        && (0..count).all(|i| number(text, i).is_some_and(&allowed))
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_where_it_lies_and_damage_is_no_key() {
        let entries = [("name", "tiny"), (INPUT_NAMES, "a, b"), ("name", "second")];
        let section = postcard::to_allocvec(&entries.to_vec()).unwrap();
        assert_eq!(find(&section, "name"), Some("tiny".as_bytes()));
        assert_eq!(find(&section, INPUT_NAMES), Some("a, b".as_bytes()));
        assert_eq!(find(&section, "other"), None);
        for end in 0..section.len() {
            let found = find(&section[..end], INPUT_NAMES);
            assert!(found.is_none() || found == Some("a, b".as_bytes()), "{end}");
        }
        assert_eq!(find(&[0xff; 20], "name"), None);
    }

    #[test]
    fn numbers_come_back_with_their_bits() {
        let numbers = [0.0, -1.5, 1e-30, f32::MAX];
        let text = numbers_text(&numbers);
        let text = text.as_bytes();
        let has = |text, count| has_numbers(text, count, |_| true);
        assert!(has(text, 4) && !has(text, 3) && !has(text, 5) && !has(b"", 1));
        assert!(has_numbers(text, 4, |x| x >= -1.5) && !has_numbers(text, 4, |x| x >= 0.0));
        for (i, x) in numbers.iter().enumerate() {
            assert_eq!(number(text, i).map(f32::to_bits), Some(x.to_bits()));
        }
        for damaged in ["7fc00000", "3f80000x", "ä234567"] {
            assert!(!has(damaged.as_bytes(), 1), "{damaged}");
        }
    }
}
