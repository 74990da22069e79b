//! Names of inputs and outputs, read where they lie in the info section.
//!
//! A list in one string: `temperature, pressure`, or the same as a JSON list when a name holds a comma. Everything here goes
//! by bytes: the functions of `str` keep panic paths, and a device does not need to know that a name is UTF-8 to copy it.

use core::fmt;

/// One name of a list. [`Name::bytes`] gives its UTF-8; it can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    text: &'a [u8],
    /// Whether the text is the inside of a JSON string, in which a backslash begins an escape.
    json: bool,
}

impl<'a> Name<'a> {
    /// The bytes, without escapes: UTF-8 if the file is as the format wants it.
    #[must_use]
    pub const fn bytes(&self) -> Bytes<'a> {
        Bytes { rest: self.text, json: self.json, waiting: 0 }
    }
}

/// The bytes of a [`Name`].
#[derive(Clone, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
    json: bool,
    /// Up to three bytes of a character that began, the next one lowest.
    waiting: u32,
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.waiting != 0 {
            let byte = self.waiting as u8;
            self.waiting >>= 8;
            return Some(byte);
        }
        let byte = take_byte(&mut self.rest)?;
        if !self.json || byte != b'\\' {
            return Some(byte);
        }
        Some(match take_byte(&mut self.rest)? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => self.escaped(),
            other => other,
        })
    }
}

impl Bytes<'_> {
    /// The first byte of the character behind `\u`; the others wait. What is no character is U+FFFD.
    fn escaped(&mut self) -> u8 {
        const REPLACEMENT: u32 = 0xfffd;
        let mut code = unit(&mut self.rest).unwrap_or(REPLACEMENT);
        if let 0xd800..0xdc00 = code {
            let mut after = self.rest;
            let pair = (take_byte(&mut after), take_byte(&mut after), unit(&mut after));
            if let (Some(b'\\'), Some(b'u'), Some(low @ 0xdc00..=0xdfff)) = pair {
                self.rest = after;
                code = 0x1_0000 + ((code & 0x3ff) << 10 | low & 0x3ff);
            }
        }
        if let 0xd800..=0xdfff = code {
            code = REPLACEMENT;
        }
        let tail = |shift: u32| 0x80 | code >> shift & 0x3f;
        let (first, waiting) = match code {
            // A NUL would end the name in C.
            0 => return b' ',
            1..0x80 => (code, 0),
            0x80..0x800 => (0xc0 | code >> 6, tail(0)),
            0x800..0x1_0000 => (0xe0 | code >> 12, tail(6) | tail(0) << 8),
            _ => (0xf0 | code >> 18, tail(12) | tail(6) << 8 | tail(0) << 16),
        };
        self.waiting = waiting;
        first as u8
    }
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, after) = rest.split_first()?;
    *rest = after;
    Some(byte)
}

/// Four hexadecimal digits.
fn unit(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for _ in 0..4 {
        value = value << 4 | digit(take_byte(rest)?)?;
    }
    Some(value)
}

/// The value of a hexadecimal digit.
pub(super) const fn digit(byte: u8) -> Option<u32> {
    Some(match byte {
        b'0'..=b'9' => byte as u32 - b'0' as u32,
        b'a'..=b'f' => byte as u32 - b'a' as u32 + 10,
        b'A'..=b'F' => byte as u32 - b'A' as u32 + 10,
        _ => return None,
    })
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.bytes();
        while let Some(first) = bytes.next() {
            let mut character = [first, 0, 0, 0];
            let length =
                1 + usize::from(first >= 0xc0) + usize::from(first >= 0xe0) + usize::from(first >= 0xf0);
            for (to, byte) in character.iter_mut().take(length).skip(1).zip(&mut bytes) {
                *to = byte;
            }
            let text = core::str::from_utf8(character.get(..length).unwrap_or_default());
            f.write_str(text.unwrap_or("\u{fffd}"))?;
        }
        Ok(())
    }
}

/// Name `index` of a list that must have `count` names.
pub(crate) fn nth(list: &[u8], index: usize, count: usize) -> Option<Name<'_>> {
    let mut found = None;
    let json = is_json(list);
    let mut names = Names { rest: Some(list), json };
    let mut number = 0;
    while let Some(text) = names.next() {
        if number == index {
            found = Some(Name { text, json });
        }
        number += 1;
    }
    if number == count { found } else { None }
}

/// The names of a list, as they are written.
struct Names<'a> {
    rest: Option<&'a [u8]>,
    json: bool,
}

impl<'a> Names<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        if self.json {
            let (_, rest) = rest.split_at_checked(rest.iter().position(|&b| b == b'"')?)?;
            let (inside, after) = string(rest)?;
            self.rest = Some(after);
            return Some(inside);
        }
        let Some(comma) = rest.iter().position(|&b| b == b',') else {
            self.rest = None;
            return Some(rest.trim_ascii());
        };
        let (name, after) = rest.split_at_checked(comma)?;
        self.rest = after.split_first().map(|(_, after)| after);
        Some(name.trim_ascii())
    }
}

/// Whether all of `list` is a JSON list of strings.
fn is_json(list: &[u8]) -> bool {
    let Some((b'[', inside)) = list.trim_ascii().split_first() else { return false };
    let mut rest = inside.trim_ascii_start();
    if let [b']'] = rest {
        return true;
    }
    while let Some((_, after)) = string(rest) {
        match after.trim_ascii_start().split_first() {
            Some((b',', next)) => rest = next.trim_ascii_start(),
            Some((b']', [])) => return true,
            _ => return false,
        }
    }
    false
}

/// The inside of the string that `text` begins with, and what follows it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (b'"', inside) = text.split_first()? else { return None };
    let mut escaped = false;
    let end = inside.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let (inside, after) = inside.split_at_checked(end?)?;
    Some((inside, after.split_first()?.1))
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn all(list: &str, count: usize) -> Option<Vec<alloc::string::String>> {
        (0..count).map(|i| nth(list.as_bytes(), i, count).map(|n| n.to_string())).collect()
    }

    #[test]
    fn lists_are_split_at_commas_or_read_as_json() {
        assert_eq!(all("a, b ,c", 3).unwrap(), ["a", "b", "c"]);
        assert_eq!(all("a, b", 3), None, "a list of another length names nothing");
        assert_eq!(all(r#"["x, in mm", "y"]"#, 2).unwrap(), ["x, in mm", "y"]);
        assert_eq!(
            all(r#" [ "a\"b\\" ,"\u00e9\ud83d\ude00\n", "\ud800" ] "#, 3).unwrap(),
            ["a\"b\\", "é😀\n", "\u{fffd}"]
        );
        assert_eq!(
            all(r#"["\u004A\u00E9", "\u0000x"]"#, 2).unwrap(),
            ["Jé", " x"],
            "a NUL would end a name in C"
        );
        for broken in ["[broken", "[\"a\"", "[\"a\" \"b\"]", "[\"a\",]"] {
            assert_eq!(
                nth(broken.as_bytes(), 0, broken.split(',').count()).unwrap().to_string(),
                broken.split(',').next().unwrap()
            );
        }
        assert_eq!(nth(b"[]", 0, 0), None);
        assert_eq!(nth(b"a", 1, 1), None);
    }
}
