//! The info section: names, units, provenance. It never changes an assessment.
//!
//! A list of key–value strings in postcard, keys in the writer's order. Unlike the other sections it may
//! grow freely: an unknown key is shown, not refused. A device reads two kinds of keys from it, where they lie: the names
//! of inputs and outputs, and the training means of the inputs. A section that is damaged has neither.

#[cfg(feature = "alloc")]
use alloc::string::String;
#[cfg(feature = "alloc")]
use alloc::vec::Vec;

#[cfg(feature = "alloc")]
use super::error::ArtifactError;
use super::names::digit;
#[cfg(feature = "alloc")]
use super::reader::sections;

/// Key of the inputs' names.
pub const INPUT_NAMES: &str = "input_names";
/// Key of the outputs' names.
pub const OUTPUT_NAMES: &str = "output_names";
/// Key of the inputs' training means: the bits of each f32 as eight hexadecimal digits, with one blank between them.
pub const INPUT_MEANS: &str = "input_means";

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

/// The string of [`INPUT_MEANS`].
#[cfg(feature = "alloc")]
#[must_use]
pub fn means_text(means: &[f32]) -> String {
    let words: Vec<String> = means.iter().map(|m| alloc::format!("{:08x}", m.to_bits())).collect();
    words.join(" ")
}

/// What an input has in [`INPUT_MEANS`]; `None` when the text does not have it, or it is no finite number.
pub(crate) fn mean(text: &[u8], input: usize) -> Option<f32> {
    const DIGITS: usize = 8;
    let word = text.get(input.checked_mul(DIGITS + 1)?..)?.get(..DIGITS)?;
    let bits = word.iter().try_fold(0u32, |bits, &byte| Some(bits << 4 | digit(byte)?))?;
    Some(f32::from_bits(bits)).filter(|m| m.is_finite())
}

/// Whether a text of [`INPUT_MEANS`] has exactly `count` means.
pub(crate) fn has_means(text: &[u8], count: usize) -> bool {
    text.len().checked_add(1) == count.checked_mul(9) && (0..count).all(|i| mean(text, i).is_some())
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
    fn means_come_back_with_their_bits() {
        let means = [0.0, -1.5, 1e-30, f32::MAX];
        let text = means_text(&means);
        let text = text.as_bytes();
        assert!(has_means(text, 4) && !has_means(text, 3) && !has_means(text, 5) && !has_means(b"", 1));
        for (i, m) in means.iter().enumerate() {
            assert_eq!(mean(text, i).map(f32::to_bits), Some(m.to_bits()));
        }
        assert!(
            !has_means(b"7fc00000", 1) && !has_means(b"3f80000x", 1) && !has_means("ä234567".as_bytes(), 1)
        );
    }
}
