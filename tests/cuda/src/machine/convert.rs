//! `cvt`.

use super::{Block, Outcome, operand};
use crate::{
    float,
    ptx::{
        Instruction, Modifiers,
        types::{Type, cut, signed},
    },
};

/// The least and the largest whole number of a type.
fn range(ty: Type) -> (i128, i128) {
    let bits = 8 * ty.width() as u32;
    match ty.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// A float as a whole number, which saturates. NaN is 0, or, where f64 or 64 bits are involved, the highest bit alone.
fn to_integer(x: f64, from: Type, ty: Type) -> u64 {
    if x.is_nan() {
        let wide = from == Type::F64 || ty.width() == 8;
        return if wide { 1 << (8 * ty.width() - 1) } else { 0 };
    }
    let (least, largest) = range(ty);
    // Casts of Rust saturate, so infinities are the ends of i128.
    cut((x as i128).clamp(least, largest) as u64, ty.width())
}

fn of_float(bits: u64, ty: Type, from: Type, m: &Modifiers) -> u64 {
    let mut x = float::value(bits, from);
    if m.ftz && from == Type::F32 {
        x = float::flushed(x, from);
    }
    if let Some(how) = m.to_whole {
        x = float::to_whole(x, how);
    }
    if !ty.is_float() {
        return to_integer(x, from, ty);
    }
    kept(float::round(x, ty, m.rounding), ty, m)
}

/// A number that the format holds, as the modifiers leave it.
fn kept(mut x: f64, ty: Type, m: &Modifiers) -> u64 {
    if m.ftz && ty == Type::F32 {
        x = float::flushed(x, ty);
    }
    if m.sat {
        x = if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) };
    }
    if m.relu && x < 0.0 {
        x = 0.0;
    }
    float::bits(x, ty)
}

fn of_integer(bits: u64, ty: Type, from: Type, m: &Modifiers) -> u64 {
    let width = from.width();
    let value = match from.is_signed() {
        true => i128::from(signed(bits, width)),
        false => i128::from(cut(bits, width)),
    };
    if ty.is_float() {
        return kept(float::of_whole(value, ty, m.rounding), ty, m);
    }
    let (least, largest) = range(ty);
    cut(if m.sat { value.clamp(least, largest) } else { value } as u64, ty.width())
}

impl Block<'_> {
    pub(super) fn convert(&mut self, i: &Instruction) -> Outcome {
        let (ty, from, m) = (i.ty, i.from, &i.modifiers);
        if let Some(half) = ty.half() {
            // The first operand becomes the upper half.
            operand(i, 2)?;
            return self.map2(i, |a, b| of_float(a, half, from, m) << 16 | of_float(b, half, from, m));
        }
        if from.is_float() && !ty.is_float() && m.to_whole.is_none() {
            return Err("does not say how it rounds to a whole number".to_owned());
        }
        match from.is_float() {
            true => self.map1(i, |a| of_float(a, ty, from, m)),
            false => self.map1(i, |a| of_integer(a, ty, from, m)),
        }
    }
}
