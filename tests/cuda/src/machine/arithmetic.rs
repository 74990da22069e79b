//! Arithmetic on f16, bf16, f32 and f64, pairs of 16 bits, and comparisons.
//!
//! Approximate instructions (`.approx`, `.full`, `ex2`, `lg2`, `sin`, `cos`, `tanh`) give the correctly rounded result: the
//! manual bounds their error and does not say their bits.

use std::cmp::Ordering;

use super::{Block, Outcome, list, operand};
use crate::{
    float::{self, Rounding},
    ptx::{
        Instruction, Modifiers, Op,
        types::{Type, cut, signed},
    },
};

/// Subnormal numbers become zero where the instruction says so.
fn taken(x: f64, modifiers: &Modifiers, ty: Type) -> f64 {
    if modifiers.ftz { float::flushed(x, ty) } else { x }
}

/// The exact result as the instruction stores it.
fn stored(exact: f64, modifiers: &Modifiers, ty: Type) -> u64 {
    let mut x = taken(float::round(exact, ty, modifiers.rounding), modifiers, ty);
    if modifiers.sat {
        x = if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) };
    }
    if modifiers.relu && x < 0.0 {
        x = 0.0;
    }
    float::bits(x, ty)
}

/// The smaller or larger of two; −0 is below +0. NaN loses, or wins with `.NaN`.
fn extreme(a: f64, b: f64, smaller: bool, nan: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) | (_, true) if nan => f64::NAN,
        (true, _) => b,
        (_, true) => a,
        _ if (a.total_cmp(&b) == Ordering::Less) == smaller => a,
        _ => b,
    }
}

/// A function of one number.
fn one(op: Op, a: f64, ty: Type) -> Option<f64> {
    let exact = ty != Type::F64;
    Some(match op {
        Op::Negate => -a,
        Op::Absolute => a.abs(),
        Op::Root if exact => float::root(a),
        Op::Root => a.sqrt(),
        Op::InverseRoot => 1.0 / a.sqrt(),
        Op::Reciprocal if exact => float::divide(1.0, a),
        Op::Reciprocal => 1.0 / a,
        Op::Exp2 => a.exp2(),
        Op::Log2 => a.log2(),
        Op::Sine => a.sin(),
        Op::Cosine => a.cos(),
        Op::Tanh => a.tanh(),
        _ => return None,
    })
}

/// A function of two numbers.
fn two(op: Op, a: f64, b: f64, ty: Type, nan: bool) -> Option<f64> {
    let exact = ty != Type::F64;
    Some(match op {
        Op::Add if exact => float::add(a, b),
        Op::Add => a + b,
        Op::Subtract if exact => float::add(a, -b),
        Op::Subtract => a - b,
        Op::Multiply if exact => float::multiply(a, b),
        Op::Multiply => a * b,
        Op::Divide if exact => float::divide(a, b),
        Op::Divide => a / b,
        Op::Minimum => extreme(a, b, true, nan),
        Op::Maximum => extreme(a, b, false, nan),
        Op::CopySign => b.copysign(a),
        _ => return None,
    })
}

/// What the processor computes itself: f32 to the nearest, subnormal numbers kept.
fn is_plain(i: &Instruction) -> bool {
    let m = &i.modifiers;
    i.ty == Type::F32 && m.rounding == Rounding::Nearest && !m.ftz && !m.sat && !m.relu
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn plain(x: f32) -> u64 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits().into() }
}

impl Block<'_> {
    pub(super) fn float(&mut self, i: &Instruction) -> Outcome {
        let (m, ty) = (&i.modifiers, i.ty);
        if ty == Type::F64 && m.rounding != Rounding::Nearest {
            return Err("rounds f64 in a direction, which this machine does not know".to_owned());
        }
        if is_plain(i) {
            match i.op {
                Op::Add => return self.map2(i, |a, b| plain(f32_of(a) + f32_of(b))),
                Op::Subtract => return self.map2(i, |a, b| plain(f32_of(a) - f32_of(b))),
                Op::Multiply => return self.map2(i, |a, b| plain(f32_of(a) * f32_of(b))),
                Op::MultiplyAdd => {
                    return self.map3(i, |a, b, c| plain(f32_of(a).mul_add(f32_of(b), f32_of(c))));
                }
                _ => (),
            }
        }
        // Signs are bits, also those of NaN.
        let sign = |width: usize| 1 << (8 * width - 1);
        match i.op {
            Op::Negate | Op::Absolute if !m.ftz => {
                let mask = match ty.half() {
                    Some(_) => 0x8000_8000,
                    None => sign(ty.width()),
                };
                let flip = i.op == Op::Negate;
                return self.map1(i, |a| if flip { a ^ mask } else { a & !mask });
            }
            Op::Test => return self.test(i),
            _ => (),
        }
        let unit = ty.half().unwrap_or(ty);
        let read = |bits: u64| taken(float::value(bits, unit), m, unit);
        let shifts: &[u32] = if ty.half().is_some() { &[0, 16] } else { &[0] };
        let each = |f: &dyn Fn(u32) -> Option<f64>| -> Option<u64> {
            let part = |&shift: &u32| Some(stored(f(shift)?, m, unit) << shift);
            shifts.iter().map(part).try_fold(0, |all, part| Some(all | part?))
        };
        // Whether the operation is known does not depend on the numbers.
        let unknown = || Err("is not known for this type".to_owned());
        match i.operands.len() {
            2 => match one(i.op, 1.0, ty) {
                None => unknown(),
                Some(_) => self.map1(i, |a| each(&|s| one(i.op, read(a >> s), ty)).unwrap_or(0)),
            },
            3 => match two(i.op, 1.0, 1.0, ty, m.nan) {
                None => unknown(),
                Some(_) => self
                    .map2(i, |a, b| each(&|s| two(i.op, read(a >> s), read(b >> s), ty, m.nan)).unwrap_or(0)),
            },
            _ if i.op == Op::MultiplyAdd && ty == Type::F64 => self
                .map3(i, |a, b, c| f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits()),
            _ if i.op == Op::MultiplyAdd => self.map3(i, |a, b, c| {
                each(&|s| Some(float::multiply_add(read(a >> s), read(b >> s), read(c >> s)))).unwrap_or(0)
            }),
            _ => unknown(),
        }
    }

    /// `testp`.
    fn test(&mut self, i: &Instruction) -> Outcome {
        let ty = i.ty;
        let test: fn(f64) -> bool = match i.modifiers.words.first().map(String::as_str) {
            Some("finite") => f64::is_finite,
            Some("infinite") => f64::is_infinite,
            Some("notanumber") => f64::is_nan,
            Some("number") => |x| !x.is_nan(),
            _ => return Err("is a test that is not known".to_owned()),
        };
        self.map1(i, |a| test(float::value(a, ty)).into())
    }

    /// Whether the comparison of an instruction holds for two registers of a type.
    fn compared(i: &Instruction, ty: Type) -> Outcome<impl Fn(u64, u64) -> bool> {
        let compare = i.modifiers.compare.ok_or("is a comparison that is not known")?;
        if ty.half().is_some() {
            return Err("compares pairs, which this machine does not know".to_owned());
        }
        let (width, ftz) = (ty.width(), i.modifiers.ftz);
        let number = move |bits: u64| {
            let x = float::value(bits, ty);
            if ftz { float::flushed(x, ty) } else { x }
        };
        Ok(move |a: u64, b: u64| {
            let order = if ty.is_float() {
                number(a).partial_cmp(&number(b))
            } else if ty.is_signed() {
                Some(signed(a, width).cmp(&signed(b, width)))
            } else {
                Some(cut(a, width).cmp(&cut(b, width)))
            };
            compare.holds(order)
        })
    }

    /// `setp`: the comparison, and its opposite, each combined with a third predicate if there is one.
    pub(super) fn set_predicate(&mut self, i: &Instruction) -> Outcome {
        let holds = Self::compared(i, i.ty)?;
        let (a, b) = (self.fetch(operand(i, 1)?)?, self.fetch(operand(i, 2)?)?);
        let third = i.operands.get(3).map(|third| self.fetch(third)).transpose()?;
        if third.is_some() != i.modifiers.combine.is_some() {
            return Err(
                "has a third predicate and no word how to combine it, or the other way round".to_owned()
            );
        }
        let combined = |holds: bool, thread: usize| match (&third, i.modifiers.combine) {
            (Some(third), Some(logic)) => logic.of(holds, third[thread] != 0),
            _ => holds,
        };
        for (index, to) in list(operand(i, 0)?).iter().enumerate() {
            self.write(to, |t| combined(holds(a[t], b[t]) == (index == 0), t).into())?;
        }
        self.give(a);
        self.give(b);
        Ok(())
    }

    /// `set`: 1.0 or all bits, where the comparison holds.
    pub(super) fn set(&mut self, i: &Instruction) -> Outcome {
        let holds = Self::compared(i, i.from)?;
        let yes = match i.ty {
            Type::F32 => 1.0_f32.to_bits(),
            Type::Unsigned(4) | Type::Signed(4) => u32::MAX,
            _ => return Err("sets a type that this machine does not know".to_owned()),
        };
        if i.operands.len() != 3 {
            return Err("combines its result, which this machine does not know".to_owned());
        }
        self.map2(i, |a, b| if holds(a, b) { yes.into() } else { 0 })
    }
}
