//! Matrix units: `mma.sync` and `ldmatrix` with the layouts of the manual, `wmma` with one of our own.
//!
//! ```text
//! mma m16n8kK: lane l, group g = l / 4, member q = l % 4
//!   A register r: rows g + 8 (r % 2), columns of its half of K: 16 bits 2q, 2q + 1 (+ 8 (r / 2)), TF32 q (+ 4 (r / 2))
//!   B register r: column g, rows as A's columns          C, D register r: row g + 8 (r / 2), column 2q + r % 2
//! ```
//!
//! How `wmma` spreads a fragment over a warp is not documented, and programs may not rely on it: here element e of a matrix in
//! row order is in lane e % 32, place e / 32; two places share a register of 16-bit numbers.
//!
//! Products are summed in f64 and rounded once. The order and rounding of a real unit are not documented. TF32 operands lose
//! their 13 low bits, as on a GPU.

use super::{Block, LANES, Outcome, list, operand, space::aligned};
use crate::{
    float::{self, Rounding},
    ptx::{Instruction, Operand, modifiers, types::Type},
};

/// Low bits of a register that a TF32 unit does not read.
const TF32_IGNORED: u64 = 0x1fff;

/// Rows, columns and inner dimension, as in `m16n8k8`.
fn shape(i: &Instruction) -> Outcome<[usize; 3]> {
    i.modifiers.words.iter().find_map(|word| modifiers::shape(word)).ok_or_else(|| "has no shape".to_owned())
}

/// Factors and sums of `wmma`: others, as whole numbers and f64, have other arithmetic.
fn is_known(shape: [usize; 3], factor: Type, sums: [Type; 2]) -> bool {
    let inner = if factor == Type::Tf32 { 8 } else { 16 };
    let shapes: &[[usize; 2]] =
        if factor == Type::Tf32 { &[[16, 16]] } else { &[[16, 16], [32, 8], [8, 32]] };
    let is_sum = |ty: &Type| *ty == Type::F32 || *ty == Type::F16 && factor == Type::F16;
    matches!(factor, Type::F16 | Type::Bf16 | Type::Tf32)
        && shape[2] == inner
        && shapes.contains(&[shape[0], shape[1]])
        && sums.iter().all(is_sum)
}

/// Types in the order of the text.
fn types(i: &Instruction) -> Vec<Type> {
    i.modifiers.words.iter().filter_map(|word| Type::parse(word)).collect()
}

/// One number of a register that holds one or two.
fn part(register: u64, ty: Type, index: usize) -> f64 {
    match ty {
        Type::Tf32 => float::value(register & !TF32_IGNORED, Type::F32),
        Type::F16 | Type::Bf16 => float::value(register >> (16 * index), ty),
        _ => float::value(register, ty),
    }
}

/// D = A B + C, each rounded once to `ty`.
fn multiply([m, n, k]: [usize; 3], a: &[f64], b: &[f64], c: &[f64], ty: Type) -> Vec<f64> {
    let one = |at: usize| {
        let (row, column) = (at / n, at % n);
        let sum: f64 = (0..k).map(|inner| a[row * k + inner] * b[inner * n + column]).sum();
        float::round(c[at] + sum, ty, Rounding::Nearest)
    };
    (0..m * n).map(one).collect()
}

impl Block<'_> {
    /// Whole warps of the active threads: a matrix instruction is for all lanes at once.
    fn warps(&self) -> Outcome<Vec<usize>> {
        let mut warps: Vec<usize> = self.active.iter().map(|thread| thread / LANES).collect();
        warps.dedup();
        match warps.len() * LANES == self.active.len() {
            true => Ok(warps),
            false => Err("runs in a part of a warp".to_owned()),
        }
    }

    fn register(&self, operand: &Operand, thread: usize) -> Outcome<u64> {
        match operand {
            Operand::Register(register) => Ok(self.registers[register * self.threads + thread]),
            Operand::Number(number) => Ok(*number),
            _ => Err(format!("has no such operand: {operand:?}")),
        }
    }

    fn set_register(&mut self, operand: &Operand, thread: usize, value: u64) {
        if let Operand::Register(register) = operand {
            self.registers[register * self.threads + thread] = value;
        }
    }

    pub(super) fn matrix_multiply(&mut self, i: &Instruction) -> Outcome {
        let ([m, n, k], types) = (shape(i)?, types(i));
        let [d_type, a_type, b_type, c_type] = types[..] else { return Err("lacks types".to_owned()) };
        let pairs = matches!(a_type, Type::F16 | Type::Bf16);
        let places: Vec<&String> =
            i.modifiers.words.iter().filter(|word| ["row", "col"].contains(&word.as_str())).collect();
        let is_sum = |ty: Type| ty == Type::F32 || ty == Type::F16 && a_type == Type::F16;
        let known = m == 16
            && n == 8
            && places == ["row", "col"]
            && a_type == b_type
            && is_sum(c_type)
            && is_sum(d_type)
            && match a_type {
                Type::Tf32 => k == 4 || k == 8,
                _ => pairs && (k == 8 || k == 16),
            };
        if !known {
            return Err("is a shape or type that this machine does not know".to_owned());
        }
        let (count, step) = if pairs { (2, 8) } else { (1, 4) };
        // Place of a lane's number along K: register r of the inner dimension, number x of the register.
        let inner = |lane: usize, r: usize, x: usize| lane % 4 * count + x + r * step;
        let [d, a, b, c] = [0, 1, 2, 3].map(|index| operand(i, index).map(list));
        let (d, a, b, c) = (d?, a?, b?, c?);
        for warp in self.warps()? {
            let (mut va, mut vb, mut vc) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
            for lane in 0..LANES {
                let (thread, group) = (warp * LANES + lane, lane / 4);
                for x in 0..count {
                    for (r, one) in a.iter().enumerate() {
                        let at = (group + 8 * (r % 2)) * k + inner(lane, r / 2, x);
                        va[at] = part(self.register(one, thread)?, a_type, x);
                    }
                    for (r, one) in b.iter().enumerate() {
                        vb[inner(lane, r, x) * n + group] = part(self.register(one, thread)?, a_type, x);
                    }
                }
                for (at, index) in accumulators(lane, n).into_iter().zip(0..) {
                    let (register, x) = if c_type == Type::F16 { (index / 2, index % 2) } else { (index, 0) };
                    vc[at] = part(self.register(&c[register], thread)?, c_type, x);
                }
            }
            let result = multiply([m, n, k], &va, &vb, &vc, d_type);
            for lane in 0..LANES {
                let (thread, places) = (warp * LANES + lane, accumulators(lane, n));
                let value = |index: usize| float::bits(result[places[index]], d_type);
                for (index, to) in d.iter().enumerate() {
                    let bits = match d_type {
                        Type::F16 => value(2 * index) | value(2 * index + 1) << 16,
                        _ => value(index),
                    };
                    self.set_register(to, thread, bits);
                }
            }
        }
        Ok(())
    }

    /// `wmma.load`: a fragment from memory, by rows or by columns, with a stride.
    pub(super) fn fragment_load(&mut self, i: &Instruction) -> Outcome {
        let fragment = Fragment::new(i)?;
        let (registers, address) = (list(operand(i, 0)?), operand(i, 1)?);
        let (addresses, strides) = (self.fetch(address)?, self.stride(i, fragment)?);
        for warp in self.warps()? {
            let first = warp * LANES;
            for element in 0..fragment.rows * fragment.columns {
                let at = addresses[first] + fragment.offset(element, strides[first]);
                let value = self.read(at, fragment.ty.width(), first)?;
                let (lane, register, shift) = fragment.home(element);
                let to = registers.get(register).ok_or("has too few registers")?;
                let thread = first + lane;
                let before = if shift == 0 { 0 } else { self.register(to, thread)? };
                self.set_register(to, thread, before | value << shift);
            }
        }
        Ok(())
    }

    /// `wmma.store`.
    pub(super) fn fragment_store(&mut self, i: &Instruction) -> Outcome {
        let fragment = Fragment::new(i)?;
        let (address, registers) = (operand(i, 0)?, list(operand(i, 1)?));
        let (addresses, strides) = (self.fetch(address)?, self.stride(i, fragment)?);
        for warp in self.warps()? {
            let first = warp * LANES;
            for element in 0..fragment.rows * fragment.columns {
                let (lane, register, shift) = fragment.home(element);
                let from = registers.get(register).ok_or("has too few registers")?;
                let value = self.register(from, first + lane)? >> shift;
                let at = addresses[first] + fragment.offset(element, strides[first]);
                self.put(at, fragment.ty.width(), first, value)?;
            }
        }
        Ok(())
    }

    /// Elements from one row (or column) to the next, in each thread.
    fn stride(&mut self, i: &Instruction, fragment: Fragment) -> Outcome<Vec<u64>> {
        let dense = if fragment.by_rows { fragment.columns } else { fragment.rows };
        match i.operands.get(2) {
            Some(stride) => self.fetch(stride),
            None => Ok(vec![dense as u64; self.threads]),
        }
    }

    /// `wmma.mma`.
    pub(super) fn fragment_multiply(&mut self, i: &Instruction) -> Outcome {
        let ([m, n, k], types) = (shape(i)?, types(i));
        // f16 factors are not named: the two types are D's and C's.
        let (d_type, a_type, c_type) = match types[..] {
            [d, c] => (d, Type::F16, c),
            [d, a, b, c] if a == b => (d, a, c),
            _ => return Err("lacks types".to_owned()),
        };
        if !is_known([m, n, k], a_type, [d_type, c_type]) {
            return Err("is a shape or type that this machine does not know".to_owned());
        }
        let [d, a, b, c] = [0, 1, 2, 3].map(|index| operand(i, index).map(list));
        let (d, a, b, c) = (d?, a?, b?, c?);
        for warp in self.warps()? {
            let read = |registers: &[Operand], ty: Type, count: usize| -> Outcome<Vec<f64>> {
                let one = |element: usize| {
                    let (lane, register, shift) = home(element, ty);
                    let from = registers.get(register).ok_or("has too few registers")?;
                    Ok(part(self.register(from, warp * LANES + lane)? >> shift, ty, 0))
                };
                (0..count).map(one).collect()
            };
            let (va, vb, vc) = (read(a, a_type, m * k)?, read(b, a_type, k * n)?, read(c, c_type, m * n)?);
            for (element, value) in multiply([m, n, k], &va, &vb, &vc, d_type).into_iter().enumerate() {
                let (lane, register, shift) = home(element, d_type);
                let to = d.get(register).ok_or("has too few registers")?;
                let thread = warp * LANES + lane;
                let before = if shift == 0 { 0 } else { self.register(to, thread)? };
                self.set_register(to, thread, before | float::bits(value, d_type) << shift);
            }
        }
        Ok(())
    }

    /// `ldmatrix`: 8×8 matrices of 16 bits; lanes 8k … 8k + 7 give the rows' addresses of matrix k.
    pub(super) fn load_matrix(&mut self, i: &Instruction) -> Outcome {
        let registers = list(operand(i, 0)?);
        let (addresses, transposed) = (self.fetch(operand(i, 1)?)?, i.modifiers.has("trans"));
        for warp in self.warps()? {
            let first = warp * LANES;
            rows(i, &addresses[first..first + LANES], registers.len())?;
            for (k, to) in registers.iter().enumerate() {
                for lane in 0..LANES {
                    let mut value = 0;
                    for x in 0..2 {
                        let (row, column) = matrix_place(lane, x, transposed);
                        let at = addresses[first + 8 * k + row] + 2 * column as u64;
                        value |= self.read(at, 2, first)? << (16 * x);
                    }
                    self.set_register(to, first + lane, value);
                }
            }
        }
        Ok(())
    }

    /// `stmatrix`: the way back.
    pub(super) fn store_matrix(&mut self, i: &Instruction) -> Outcome {
        let registers = list(operand(i, 1)?);
        let (addresses, transposed) = (self.fetch(operand(i, 0)?)?, i.modifiers.has("trans"));
        for warp in self.warps()? {
            let first = warp * LANES;
            rows(i, &addresses[first..first + LANES], registers.len())?;
            for (k, from) in registers.iter().enumerate() {
                for lane in 0..LANES {
                    let value = self.register(from, first + lane)?;
                    for x in 0..2 {
                        let (row, column) = matrix_place(lane, x, transposed);
                        let at = addresses[first + 8 * k + row] + 2 * column as u64;
                        self.put(at, 2, first, value >> (16 * x))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether there is a register for each 8×8 matrix, and the address of each row is a multiple of its 16 bytes.
fn rows(i: &Instruction, addresses: &[u64], registers: usize) -> Outcome {
    let count = [1, 2, 4].into_iter().find(|count| i.modifiers.has(&format!("x{count}")));
    let count = count.filter(|&count| count == registers).ok_or("has not one register for each matrix")?;
    (0..8 * count).try_for_each(|lane| aligned(addresses[lane], 16, lane))
}

/// Places of a lane's four numbers in C and D.
fn accumulators(lane: usize, n: usize) -> [usize; 4] {
    [0, 1, 2, 3].map(|r| (lane / 4 + 8 * (r / 2)) * n + lane % 4 * 2 + r % 2)
}

/// Row and column of number `x` of a lane in an 8×8 matrix.
fn matrix_place(lane: usize, x: usize, transposed: bool) -> (usize, usize) {
    let (row, column) = (lane / 4, lane % 4 * 2 + x);
    if transposed { (column, row) } else { (row, column) }
}

/// Lane, register and shift of an element of a fragment.
fn home(element: usize, ty: Type) -> (usize, usize, u32) {
    let (lane, place) = (element % LANES, element / LANES);
    match ty {
        Type::F16 | Type::Bf16 => (lane, place / 2, 16 * (place % 2) as u32),
        _ => (lane, place, 0),
    }
}

/// A matrix of `wmma` in memory.
#[derive(Clone, Copy)]
struct Fragment {
    rows: usize,
    columns: usize,
    ty: Type,
    by_rows: bool,
}

impl Fragment {
    fn new(i: &Instruction) -> Outcome<Self> {
        let [m, n, k] = shape(i)?;
        let (rows, columns) = match () {
            () if i.modifiers.has("a") => (m, k),
            () if i.modifiers.has("b") => (k, n),
            () => (m, n),
        };
        Ok(Self { rows, columns, ty: i.ty, by_rows: i.modifiers.has("row") })
    }

    /// Bytes from the first element.
    fn offset(self, element: usize, stride: u64) -> u64 {
        let (row, column) = ((element / self.columns) as u64, (element % self.columns) as u64);
        let place = if self.by_rows { row * stride + column } else { column * stride + row };
        place * self.ty.width() as u64
    }

    fn home(self, element: usize) -> (usize, usize, u32) {
        home(element, self.ty)
    }
}
