//! Floating-point formats and roundings.
//!
//! Results of f16, bf16 and f32 operations are computed in f64 "rounded to odd" and then rounded once to their format, in the
//! direction that the instruction asks for. Rounding to odd keeps one sticky bit: with 53 bits, two more than twice 24, the
//! second rounding gives what a single rounding of the exact result would give (Boldo and Melquiond, 2008).

use half::{bf16, f16};

use crate::ptx::types::Type;

/// PTX's modifiers `.rn .rz .rm .rp .rna`, and those of conversions to whole numbers, `.rni` and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to even.
    #[default]
    Nearest,
    Zero,
    Down,
    Up,
    /// To the nearest, ties away from zero.
    NearestAway,
}

/// What a format can hold.
struct Format {
    /// Explicit bits of the mantissa.
    mantissa: i32,
    /// Exponent of the smallest normal number.
    least: i32,
    /// Exponent of the largest number.
    largest: i32,
}

fn format(ty: Type) -> Format {
    match ty {
        Type::F16 => Format { mantissa: 10, least: -14, largest: 15 },
        Type::Bf16 => Format { mantissa: 7, least: -126, largest: 127 },
        Type::Tf32 => Format { mantissa: 10, least: -126, largest: 127 },
        _ => Format { mantissa: 23, least: -126, largest: 127 },
    }
}

fn whole(x: f64, how: Rounding) -> f64 {
    match how {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
        Rounding::NearestAway => x.round(),
    }
}

/// `x` as a whole number, rounded as asked.
#[must_use]
pub fn to_whole(x: f64, how: Rounding) -> f64 {
    whole(x, how)
}

/// 2^exponent, which may be below f64's normal range only for formats that we do not have.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `x`, an exact result or one rounded to odd, as the nearest value of a format in the direction asked for.
#[must_use]
pub fn round(x: f64, ty: Type, how: Rounding) -> f64 {
    if ty == Type::F64 || x == 0.0 || !x.is_finite() {
        return x;
    }
    let format = format(ty);
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let quantum = power(exponent.max(format.least) - format.mantissa);
    let rounded = whole(x / quantum, how) * quantum;
    let limit = power(format.largest) * (2.0 - power(-format.mantissa));
    if rounded.abs() <= limit {
        return rounded.copysign(x);
    }
    let stays = match how {
        Rounding::Nearest | Rounding::NearestAway => false,
        Rounding::Zero => true,
        Rounding::Down => x > 0.0,
        Rounding::Up => x < 0.0,
    };
    if stays { limit.copysign(x) } else { f64::INFINITY.copysign(x) }
}

/// Subnormal numbers of a format become zero, with their sign (`.ftz`); f64 has no such modifier.
#[must_use]
pub fn flushed(x: f64, ty: Type) -> f64 {
    if ty != Type::F64 && x.abs() < power(format(ty).least) { 0.0_f64.copysign(x) } else { x }
}

/// A whole number in a format, rounded once, in the direction asked for.
#[must_use]
pub fn of_whole(x: i128, ty: Type, how: Rounding) -> f64 {
    let nearest = x as f64;
    // What f64 leaves out. Whole numbers of PTX have 64 bits, so neither conversion saturates.
    let error = x - nearest as i128;
    if ty != Type::F64 {
        return round(odd(nearest, error as f64), ty, how);
    }
    let up = match how {
        Rounding::Nearest | Rounding::NearestAway => return nearest,
        Rounding::Up => true,
        Rounding::Down => false,
        Rounding::Zero => x < 0,
    };
    match error.signum() {
        1 if up => nearest.next_up(),
        -1 if !up => nearest.next_down(),
        _ => nearest,
    }
}

/// Bits of a register as a number.
#[must_use]
pub fn value(bits: u64, ty: Type) -> f64 {
    match ty {
        Type::F16 => f16::from_bits(bits as u16).to_f64(),
        Type::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        Type::F64 => f64::from_bits(bits),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

/// A number that a format holds, as the bits of a register. NaN becomes the format's canonical one.
#[must_use]
pub fn bits(x: f64, ty: Type) -> u64 {
    match (ty, x.is_nan()) {
        (Type::F64, _) => x.to_bits(),
        (Type::F16 | Type::Bf16, true) => 0x7fff,
        (_, true) => 0x7fff_ffff,
        (Type::F16, _) => f16::from_f64(x).to_bits().into(),
        (Type::Bf16, _) => bf16::from_f64(x).to_bits().into(),
        _ => (x as f32).to_bits().into(),
    }
}

/// `sum` with its last bit set if `error`, the rest of the exact result, is not zero.
fn odd(sum: f64, error: f64) -> f64 {
    if error == 0.0 || error.is_nan() || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

/// a + b, rounded to odd.
#[must_use]
pub fn add(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let other = sum - a;
    odd(sum, (a - (sum - other)) + (b - other))
}

/// a · b, rounded to odd.
#[must_use]
pub fn multiply(a: f64, b: f64) -> f64 {
    let product = a * b;
    odd(product, a.mul_add(b, -product))
}

/// a · b + c, rounded to odd; a · b is exact for factors of 24 bits.
#[must_use]
pub fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    add(a * b, c)
}

/// a / b, rounded to odd.
#[must_use]
pub fn divide(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    odd(quotient, (-quotient).mul_add(b, a) * b.signum())
}

/// √a, rounded to odd.
#[must_use]
pub fn root(a: f64) -> f64 {
    let root = a.sqrt();
    odd(root, (-root).mul_add(root, a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_is_what_the_processor_does() {
        let values = [1.0_f32, -3.1, 1e-30, 7e37, 1.000_000_1, 0.1, -1e-41, 3e-45, f32::MAX];
        for a in values {
            for b in values {
                for (exact, native) in [
                    (add(a.into(), b.into()), a + b),
                    (multiply(a.into(), b.into()), a * b),
                    (divide(a.into(), b.into()), a / b),
                    (multiply_add(a.into(), b.into(), 0.3_f32.into()), a.mul_add(b, 0.3)),
                ] {
                    let found = bits(round(exact, Type::F32, Rounding::Nearest), Type::F32);
                    assert_eq!(found, u64::from(native.to_bits()), "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn directions_enclose_the_exact_result() {
        let (a, b) = (f64::from(0.1_f32), f64::from(-0.7_f32));
        for exact in [add(a, b), multiply(a, b), divide(a, b), root(a), -root(a)] {
            let down = round(exact, Type::F32, Rounding::Down);
            let up = round(exact, Type::F32, Rounding::Up);
            assert!(down < exact && exact < up, "{exact}");
            assert_eq!(round(exact, Type::F32, Rounding::Zero), if exact > 0.0 { down } else { up });
            assert_eq!((up as f32).to_bits().abs_diff((down as f32).to_bits()), 1, "neighbours");
        }
        // The exact sum is below 1 by less than f64 can tell: rounding down must see it.
        let tiny = f64::from(-1e-30_f32);
        assert_eq!(round(add(1.0, tiny), Type::F32, Rounding::Down), f64::from(1.0_f32.next_down()));
        assert_eq!(round(add(1.0, tiny), Type::F32, Rounding::Nearest), 1.0);
    }

    #[test]
    fn formats_have_their_ends() {
        let f16 = |x, how| bits(round(x, Type::F16, how), Type::F16);
        assert_eq!(f16(65519.0, Rounding::Nearest), 0x7bff);
        assert_eq!(f16(65520.0, Rounding::Nearest), 0x7c00);
        assert_eq!(f16(1e9, Rounding::Zero), 0x7bff);
        assert_eq!(f16(-1e9, Rounding::Up), 0xfbff);
        assert_eq!(f16(6e-8, Rounding::Nearest), 1);
        assert_eq!(bits(round(1.0 + 1.0 / 256.0, Type::Bf16, Rounding::Nearest), Type::Bf16), 0x3f80);
        assert_eq!(round(1.0 + 1.0 / 2048.0, Type::Tf32, Rounding::NearestAway), 1.0 + 1.0 / 1024.0);
        assert_eq!(round(1.0 + 1.0 / 2048.0, Type::Tf32, Rounding::Nearest), 1.0);
        assert_eq!(flushed(-1e-40, Type::F32).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(flushed(6e-5, Type::F16), 0.0, "below 2^-14");
        assert_eq!([flushed(6.2e-5, Type::F16), flushed(1e-310, Type::F64)], [6.2e-5, 1e-310]);
    }
}
