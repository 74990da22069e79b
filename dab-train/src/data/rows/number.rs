//! Decimal text → f32, rounded once: the number that `str::parse` gives, several times as fast for what files are full of.
//!
//! ```text
//! -12.3456789  →  digits 123456789, scale 7  →  f64: digits / 10^scale  →  f32
//! ```
//!
//! With at most 19 digits and a scale up to 22, that quotient is off by no more than two roundings of f64. Rounding it to f32 is then
//! right unless it lies that near to the middle between two neighbours; such numbers, and those with an exponent, are left to the
//! standard library.

/// Powers of ten that f64 has exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// Digits that always fit a u64.
const DIGITS: usize = 19;
/// Bits of an f64 that an f32 does not have.
const MORE: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;
/// Steps of an f64 that two roundings are less than.
const NEAR: u64 = 4;

/// The finite number that a text is; if it is none, what it is instead: infinite, not a number, or `None`, text.
pub(super) fn finite(text: &[u8]) -> Result<f32, Option<f32>> {
    if let Some((number, length)) = prefix(text)
        && length == text.len()
    {
        return Ok(number);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f32>().ok());
    number.filter(|number| number.is_finite()).ok_or(number)
}

/// The number that a text begins with, if it has digits, maybe a sign and a point, and can be read quickly; and its length.
/// What stands behind it is for the caller to look at: an exponent, say.
#[inline]
pub(super) fn prefix(text: &[u8]) -> Option<(f32, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut number = 0;
    let whole = digits(&text[start..], &mut number);
    let mut at = start + whole;
    let mut scale = 0;
    if text.get(at) == Some(&b'.') {
        scale = digits(&text[at + 1..], &mut number);
        at += 1 + scale;
    }
    let count = whole + scale;
    if count == 0 || count > DIGITS {
        return None;
    }
    let wide = number as f64 / POWERS.get(scale)?;
    let middle = (wide.to_bits() & ((1 << MORE) - 1)).abs_diff(1 << (MORE - 1));
    // Below the smallest normal f32, the middles are elsewhere.
    if middle <= NEAR || (number != 0 && wide < f64::from(f32::MIN_POSITIVE)) {
        return None;
    }
    Some((if negative { -wide } else { wide } as f32, at))
}

/// Appends the digits that a text begins with to a number, and returns how many there are; beyond [`DIGITS`] the number means nothing.
#[inline]
fn digits(text: &[u8], number: &mut u64) -> usize {
    let mut at = 0;
    while let Some(eight) = text[at..].first_chunk().and_then(eight) {
        *number = number.wrapping_mul(100_000_000).wrapping_add(eight);
        at += 8;
    }
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    at
}

/// Eight digits at once: pairs, then fours, then all are put together by one multiplication each.
#[inline]
fn eight(text: &[u8; 8]) -> Option<u64> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(*text);
    // Of '0' to '9' the upper half is 3, and stays 3 when 6 is added.
    let upper = ONES * 0xf0;
    if word & upper | (word.wrapping_add(ONES * 6) & upper) >> 4 != ONES * 0x33 {
        return None;
    }
    let pairs = (word & (ONES * 0x0f)).wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(100 << 16 | 1) >> 16;
    Some((fours & 0x0000_ffff_0000_ffff).wrapping_mul(10_000 << 32 | 1) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::random::Random;

    /// What the standard library says.
    fn standard(text: &str) -> Result<f32, Option<f32>> {
        let number = text.parse::<f32>().ok();
        number.filter(|number| number.is_finite()).ok_or(number)
    }

    #[track_caller]
    fn assert_standard(text: &str) {
        let bits = |found: Result<f32, Option<f32>>| found.map(f32::to_bits).map_err(|e| e.map(f32::to_bits));
        assert_eq!(bits(finite(text.as_bytes())), bits(standard(text)), "{text}");
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut random = Random::new(1, "numbers");
        for _ in 0..400_000 {
            // As files have them: the shortest digits of an f32 or an f64, and fixed decimals.
            let x = f32::from_bits(random.below(1 << 32) as u32);
            assert_standard(&x.to_string());
            let x = random.normal() * 10f64.powi(random.below(12) as i32 - 6);
            assert_standard(&x.to_string());
            assert_standard(&format!("{x:.*}", random.below(24)));
            assert_standard(&format!("{x:e}"));
            let length = random.below(12);
            let text: String =
                (0..length).map(|_| "0123456789.-+e "[random.below(15)..].chars().next().unwrap()).collect();
            assert_standard(&text);
        }
    }

    #[test]
    fn numbers_in_the_middle_between_two_are_rounded_to_even() {
        let mut random = Random::new(2, "numbers");
        let mut seen = 0;
        for _ in 0..20_000 {
            let x = f32::from_bits(0x3000_0000 + random.below(0x2000_0000) as u32);
            let next = f32::from_bits(x.to_bits() + 1);
            let middle = (f64::from(x) + f64::from(next)) / 2.0;
            for near in [middle.next_down(), middle, middle.next_up()] {
                let text = near.to_string();
                seen += usize::from(text.len() <= DIGITS);
                assert_standard(&text);
                assert_standard(&format!("{text}{}1", if text.contains('.') { "0" } else { ".0" }));
            }
        }
        assert!(seen > 10_000, "{seen}");
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "", "-", ".", "-.", "+1", "1.", ".5", "1e3", "1e", "0x1", "inf", "nan", "1 ", "1..2", "--1",
            "1e400",
        ] {
            assert_standard(text);
        }
        assert_eq!(prefix(b"1.5,2"), Some((1.5, 3)));
        assert_eq!(prefix(b"123456789,"), Some((123_456_789.0, 9)));
        assert_eq!(prefix(b"-0,").map(|(number, _)| number.to_bits()), Some((-0.0_f32).to_bits()));
        assert_eq!(prefix(b"12345678901234567890"), None);
    }
}
