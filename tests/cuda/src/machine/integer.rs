//! Whole numbers and bits.

use super::{Block, Outcome, operand};
use crate::ptx::{
    Instruction, Op,
    types::{Type, cut, signed},
};

/// a · b with both as wide as they can get.
fn product(a: u64, b: u64, ty: Type) -> i128 {
    let width = ty.width();
    match ty.is_signed() {
        true => i128::from(signed(a, width)) * i128::from(signed(b, width)),
        false => (u128::from(cut(a, width)) * u128::from(cut(b, width))) as i128,
    }
}

/// Division by zero gives all bits; the smallest number divided by −1 gives itself.
fn quotient(a: u64, b: u64, ty: Type) -> u64 {
    let width = ty.width();
    if cut(b, width) == 0 {
        return cut(u64::MAX, width);
    }
    match ty.is_signed() {
        true => cut(signed(a, width).wrapping_div(signed(b, width)) as u64, width),
        false => cut(a, width) / cut(b, width),
    }
}

fn remainder(a: u64, b: u64, ty: Type) -> u64 {
    let width = ty.width();
    if cut(b, width) == 0 {
        return cut(a, width);
    }
    match ty.is_signed() {
        true => cut(signed(a, width).wrapping_rem(signed(b, width)) as u64, width),
        false => cut(a, width) % cut(b, width),
    }
}

/// `bfe`: `length` bits from `position` on, filled with the field's sign bit if signed.
fn extract(a: u64, position: u64, length: u64, ty: Type) -> u64 {
    let (bits, position, length) = (8 * ty.width() as u64, position & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let a = cut(a, ty.width());
    let last = (position + length - 1).min(bits - 1);
    let fill = ty.is_signed() && a >> last & 1 == 1;
    let bit = |at: u64| {
        let from = position + at;
        if at < length && from < bits { a >> from & 1 == 1 } else { fill }
    };
    (0..bits).fold(0, |all, at| all | u64::from(bit(at)) << at)
}

/// `bfi`: the low bits of `a` in the place of `b`'s.
fn insert(a: u64, b: u64, position: u64, length: u64, width: usize) -> u64 {
    let bits = 8 * width as u64;
    let (position, length) = (position & 255, length & 255);
    let is_new = |at: u64| at >= position && at < position + length;
    let bit = |at: u64| if is_new(at) { a >> (at - position) & 1 } else { b >> at & 1 };
    (0..bits).fold(0, |all, at| all | bit(at) << at)
}

/// `prmt` without a mode: each of four bytes of the result is one of eight, or its sign.
fn permute(a: u64, b: u64, selector: u64) -> u64 {
    let bytes = cut(a, 4) | b << 32;
    (0..4).fold(0, |all, at| {
        let choice = selector >> (4 * at) & 15;
        let byte = bytes >> (8 * (choice & 7)) & 255;
        let byte = if choice & 8 == 0 { byte } else { 255 * (byte >> 7) };
        all | byte << (8 * at)
    })
}

/// `bfind`: the highest bit that differs from the sign; all bits when there is none.
fn highest(a: u64, ty: Type, as_shift: bool) -> u64 {
    let width = ty.width();
    let a = if ty.is_signed() && signed(a, width) < 0 { !a } else { a };
    match cut(a, width).checked_ilog2() {
        None => 0xffff_ffff,
        Some(at) if as_shift => 8 * width as u64 - 1 - u64::from(at),
        Some(at) => at.into(),
    }
}

/// `lop3`: bit by bit, the entry of the table that a, b and c select.
fn table(a: u64, b: u64, c: u64, table: u64) -> u64 {
    let of = |value: u64, chosen: bool| if chosen { value } else { !value };
    let entry = |k: u64| of(a, k & 4 != 0) & of(b, k & 2 != 0) & of(c, k & 1 != 0);
    cut((0..8).filter(|k| table >> k & 1 == 1).fold(0, |all, k| all | entry(k)), 4)
}

impl Block<'_> {
    pub(super) fn integer(&mut self, i: &Instruction) -> Outcome {
        let (m, ty, width) = (&i.modifiers, i.ty, i.ty.width());
        let bits = 8 * width as u64;
        // The half of a product that is kept, or all of it.
        let kept = move |product: i128| match (m.wide, m.hi) {
            (true, _) => cut(product as u64, 2 * width),
            (_, true) => cut((product >> bits) as u64, width),
            _ => cut(product as u64, width),
        };
        let wider = if m.wide { 2 * width } else { width };
        let saturates = matches!(i.op, Op::Add | Op::Subtract) && ty == Type::Signed(4);
        if m.relu || m.ftz || (m.sat && !saturates) {
            return Err("has a modifier that is not known for this type".to_owned());
        }
        match i.op {
            Op::Add | Op::Subtract if m.sat => {
                let sign = if i.op == Op::Add { 1 } else { -1 };
                self.map2(i, |a, b| {
                    let sum = signed(a, 4) + sign * signed(b, 4);
                    cut(sum.clamp(i32::MIN.into(), i32::MAX.into()) as u64, 4)
                })
            }
            Op::Add => self.map2(i, |a, b| cut(a.wrapping_add(b), width)),
            Op::Subtract => self.map2(i, |a, b| cut(a.wrapping_sub(b), width)),
            Op::Multiply => self.map2(i, |a, b| kept(product(a, b, ty))),
            Op::MultiplyAdd => self.map3(i, |a, b, c| cut(kept(product(a, b, ty)).wrapping_add(c), wider)),
            Op::Divide => self.map2(i, |a, b| quotient(a, b, ty)),
            Op::Remainder => self.map2(i, |a, b| remainder(a, b, ty)),
            Op::Negate => self.map1(i, |a| cut(a.wrapping_neg(), width)),
            Op::Absolute => self.map1(i, |a| cut(signed(a, width).unsigned_abs(), width)),
            Op::Minimum | Op::Maximum => {
                let smaller = i.op == Op::Minimum;
                self.map2(i, |a, b| {
                    let less = match ty.is_signed() {
                        true => signed(a, width) < signed(b, width),
                        false => cut(a, width) < cut(b, width),
                    };
                    cut(if less == smaller { a } else { b }, width)
                })
            }
            Op::And => self.map2(i, |a, b| a & b),
            Op::Or => self.map2(i, |a, b| a | b),
            Op::Xor => self.map2(i, |a, b| a ^ b),
            Op::Not if ty == Type::Predicate => self.map1(i, |a| u64::from(a == 0)),
            Op::Not => self.map1(i, |a| cut(!a, width)),
            Op::Lop3 => {
                let lookup = self.fetch(operand(i, 4)?)?;
                let lookup = lookup[self.active[0]];
                self.map3(i, |a, b, c| table(a, b, c, lookup))
            }
            Op::ShiftLeft => self.map2(i, |a, b| {
                let by = cut(b, 4);
                if by >= bits { 0 } else { cut(a << by, width) }
            }),
            Op::ShiftRight => self.map2(i, |a, b| {
                let by = cut(b, 4);
                match ty.is_signed() {
                    true => cut((signed(a, width) >> by.min(bits - 1)) as u64, width),
                    false if by >= bits => 0,
                    false => cut(a, width) >> by,
                }
            }),
            Op::Funnel => {
                let (left, wraps) = (m.has("l"), m.has("wrap"));
                self.map3(i, |a, b, c| {
                    let by = if wraps { c & 31 } else { cut(c, 4).min(32) };
                    let both = u128::from(cut(a, 4) | b << 32);
                    cut(if left { both << by >> 32 } else { both >> by } as u64, 4)
                })
            }
            Op::PopCount => self.map1(i, |a| cut(a, width).count_ones().into()),
            Op::LeadingZeros => self.map1(i, |a| u64::from(cut(a, width).leading_zeros()) - (64 - bits)),
            Op::Reverse => self.map1(i, |a| a.reverse_bits() >> (64 - bits)),
            Op::FindBit => {
                let as_shift = m.has("shiftamt");
                self.map1(i, |a| highest(a, ty, as_shift))
            }
            Op::Extract => self.map3(i, |a, b, c| extract(a, b, c, ty)),
            Op::Insert => {
                let lengths = self.fetch(operand(i, 4)?)?;
                let positions = self.fetch(operand(i, 3)?)?;
                let (a, b) = (self.fetch(operand(i, 1)?)?, self.fetch(operand(i, 2)?)?);
                self.write(operand(i, 0)?, |t| insert(a[t], b[t], positions[t], lengths[t], width))
            }
            Op::Permute if m.words.len() == 1 => self.map3(i, permute),
            _ => Err("is not known for this type".to_owned()),
        }
    }
}
