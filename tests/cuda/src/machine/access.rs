//! `mov`, `ld`, `st`, `atom`, `red`.

use std::sync::{Mutex, PoisonError};

use super::{Block, Outcome, list, operand, space::aligned};
use crate::{
    float,
    ptx::{
        Instruction, Operand,
        types::{Type, cut, signed},
    },
};

/// Atomic operations exclude one another, also between blocks.
static ATOMIC: Mutex<()> = Mutex::new(());

impl Block<'_> {
    /// `mov`, also from and to the parts of a vector, and `cvta`, since all spaces share one range of addresses.
    pub(super) fn copy(&mut self, i: &Instruction) -> Outcome {
        let (to, from) = (operand(i, 0)?, operand(i, 1)?);
        let width = if i.ty == Type::Predicate { 8 } else { i.ty.width() };
        match (to, from) {
            (Operand::Vector(parts), _) => {
                let row = self.fetch(from)?;
                let part = width / parts.len();
                for (index, to) in parts.iter().enumerate() {
                    self.write(to, |thread| cut(row[thread] >> (8 * part * index), part))?;
                }
                self.give(row);
            }
            (_, Operand::Vector(parts)) => {
                let part = width / parts.len();
                let mut all = vec![0; self.threads];
                for (index, from) in parts.iter().enumerate() {
                    let row = self.fetch(from)?;
                    all.iter_mut()
                        .zip(&row)
                        .for_each(|(all, &one)| *all |= cut(one, part) << (8 * part * index));
                    self.give(row);
                }
                self.write(to, |thread| all[thread])?;
            }
            _ => self.map1(i, |a| cut(a, width))?,
        }
        Ok(())
    }

    pub(super) fn load(&mut self, i: &Instruction) -> Outcome {
        let (to, width) = (list(operand(i, 0)?), i.ty.width());
        let addresses = self.fetch(operand(i, 1)?)?;
        // All parts are read before one is written: a part may be the register of the address.
        let mut found = vec![0; self.threads * to.len()];
        let active = std::mem::take(&mut self.active);
        for &thread in &active {
            aligned(addresses[thread], to.len() * width, thread)?;
            for index in 0..to.len() {
                let value = self.read(addresses[thread] + (index * width) as u64, width, thread)?;
                let value = if i.ty.is_signed() { signed(value, width) as u64 } else { value };
                found[index * self.threads + thread] = value;
            }
        }
        self.active = active;
        let threads = self.threads;
        for (index, to) in to.iter().enumerate() {
            self.write(to, |thread| found[index * threads + thread])?;
        }
        self.give(addresses);
        Ok(())
    }

    pub(super) fn store(&mut self, i: &Instruction) -> Outcome {
        let (from, width) = (list(operand(i, 1)?), i.ty.width());
        let addresses = self.fetch(operand(i, 0)?)?;
        let active = std::mem::take(&mut self.active);
        active.iter().try_for_each(|&thread| aligned(addresses[thread], from.len() * width, thread))?;
        for (index, from) in from.iter().enumerate() {
            let row = self.fetch(from)?;
            for &thread in &active {
                self.put(addresses[thread] + (index * width) as u64, width, thread, row[thread])?;
            }
            self.give(row);
        }
        self.active = active;
        self.give(addresses);
        Ok(())
    }

    /// `atom` returns what was there, `red` does not.
    pub(super) fn atomic(&mut self, i: &Instruction) -> Outcome {
        let returns = i.text.starts_with("atom");
        let from = usize::from(returns);
        let (ty, width) = (i.ty, i.ty.width());
        let known = ["add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"];
        let what = known.iter().find(|word| i.modifiers.has(word)).ok_or("is an atomic that is not known")?;
        if ty.is_float() && !["add", "exch"].contains(what) {
            return Err("is an atomic that is not known for this type".to_owned());
        }
        let addresses = self.fetch(operand(i, from)?)?;
        let b = self.fetch(operand(i, from + 1)?)?;
        let c = if *what == "cas" { self.fetch(operand(i, from + 2)?)? } else { Vec::new() };
        let mut before = vec![0; self.threads];
        let active = std::mem::take(&mut self.active);
        let guard = ATOMIC.lock().unwrap_or_else(PoisonError::into_inner);
        for &thread in &active {
            let (address, b) = (addresses[thread], cut(b[thread], width));
            let old = self.read(address, width, thread)?;
            before[thread] = old;
            let less = match ty.is_signed() {
                true => signed(old, width) < signed(b, width),
                false => old < b,
            };
            let new = match *what {
                "add" if ty.is_float() => sum(old, b, ty),
                "add" => old.wrapping_add(b),
                "min" => {
                    if less {
                        old
                    } else {
                        b
                    }
                }
                "max" => {
                    if less {
                        b
                    } else {
                        old
                    }
                }
                "exch" => b,
                "cas" => {
                    if old == b {
                        c[thread]
                    } else {
                        old
                    }
                }
                "and" => old & b,
                "or" => old | b,
                "xor" => old ^ b,
                "inc" => {
                    if old >= b {
                        0
                    } else {
                        old + 1
                    }
                }
                _ => {
                    if old == 0 || old > b {
                        b
                    } else {
                        old - 1
                    }
                }
            };
            self.put(address, width, thread, new)?;
        }
        drop(guard);
        self.active = active;
        if returns {
            self.write(operand(i, 0)?, |thread| before[thread])?;
        }
        Ok(())
    }
}

fn sum(a: u64, b: u64, ty: Type) -> u64 {
    if let Some(half) = ty.half() {
        return sum(a & 0xffff, b & 0xffff, half) | sum(a >> 16, b >> 16, half) << 16;
    }
    let (a, b) = (float::value(a, ty), float::value(b, ty));
    let exact = if ty == Type::F64 { a + b } else { float::add(a, b) };
    float::bits(float::round(exact, ty, float::Rounding::Nearest), ty)
}
