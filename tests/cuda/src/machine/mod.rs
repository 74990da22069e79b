//! Runs a kernel: block by block, all threads of a block in step.
//!
//! Threads stand at program counters. Those at the lowest one run next, together, as far as they stay together, so that
//! threads that took different branches meet again where the branches do. A barrier holds threads until all others of
//! the block wait or have returned. Registers are rows of one number per thread.

mod access;
mod arithmetic;
mod convert;
mod integer;
mod matrix;
pub mod space;
mod warp;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    memory::{self, Allocations, UNWRITTEN},
    ptx::{Entry, Instruction, Op, Operand, Special},
};

/// What goes wrong in a kernel, in words.
pub type Outcome<T = ()> = Result<T, String>;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// A launch of a kernel.
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of shared memory beyond what the kernel declares.
    pub dynamic: usize,
    pub parameters: Vec<u8>,
    pub allocations: Arc<Allocations>,
}

impl Launch {
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3], dynamic: usize, parameters: Vec<u8>) -> Self {
        Self { grid, block, dynamic, parameters, allocations: memory::allocations() }
    }

    fn threads(&self) -> usize {
        self.block.iter().map(|&side| side as usize).product()
    }

    /// Runs every block, on `workers` threads of the processor.
    ///
    /// # Errors
    /// The first fault: the kernel, the instruction, and what is wrong.
    pub fn run(&self, entry: &Entry, workers: usize) -> Outcome {
        let blocks: u64 = self.grid.iter().map(|&side| u64::from(side)).product();
        let (next, failed, fault) = (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(None));
        let work = || {
            let mut block = Block::new(entry, self);
            while !failed.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= blocks {
                    return;
                }
                if let Err(error) = block.run(index) {
                    failed.store(true, Ordering::Relaxed);
                    fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        };
        if workers <= 1 || blocks <= 1 {
            work();
        } else {
            std::thread::scope(|scope| (0..workers.min(blocks as usize)).for_each(|_| _ = scope.spawn(work)));
        }
        fault.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// At a barrier.
    Waiting,
    Returned,
}

/// One block of threads.
pub struct Block<'a> {
    entry: &'a Entry,
    launch: &'a Launch,
    threads: usize,
    /// Of this block in the grid.
    index: [u32; 3],
    /// Register `r` of thread `t` is number `r · threads + t`.
    registers: Vec<u64>,
    /// Local memory, thread by thread.
    local: Vec<u8>,
    shared: Vec<u8>,
    counters: Vec<usize>,
    states: Vec<State>,
    /// Threads that run the current instruction.
    active: Vec<usize>,
    /// Rows that operands are read into.
    rows: Vec<Vec<u64>>,
    /// The allocation that the last access was in.
    last: (u64, u64),
    steps: u64,
}

impl<'a> Block<'a> {
    #[must_use]
    pub fn new(entry: &'a Entry, launch: &'a Launch) -> Self {
        let threads = launch.threads();
        Self {
            entry,
            launch,
            threads,
            index: [0; 3],
            // `run` fills them.
            registers: vec![0; entry.registers * threads],
            local: vec![0; entry.local_bytes * threads],
            shared: vec![0; entry.shared_bytes + launch.dynamic],
            counters: vec![0; threads],
            states: vec![State::Running; threads],
            active: Vec::with_capacity(threads),
            rows: Vec::new(),
            last: (0, 0),
            steps: 0,
        }
    }

    /// Runs block `index` of the grid, counted along x first.
    ///
    /// # Errors
    /// A fault, with the kernel and the instruction.
    pub fn run(&mut self, index: u64) -> Outcome {
        let [x, y, _] = self.launch.grid.map(u64::from);
        self.index = [index % x, index / x % y, index / x / y].map(|at| at as u32);
        self.registers.fill(u64::from_ne_bytes([UNWRITTEN; 8]));
        self.local.fill(UNWRITTEN);
        self.shared.fill(UNWRITTEN);
        self.counters.fill(0);
        self.states.fill(State::Running);
        while let Some((at, others)) = self.choose() {
            self.go(at, others)?;
        }
        Ok(())
    }

    /// The threads that run next become active: where they are, and the next counter that others wait at.
    fn choose(&mut self) -> Option<(usize, usize)> {
        if !self.states.contains(&State::Running) {
            self.states
                .iter_mut()
                .filter(|state| **state == State::Waiting)
                .for_each(|s| *s = State::Running);
        }
        let mut lowest = (usize::MAX, usize::MAX);
        for (&counter, _) in self.counters.iter().zip(&self.states).filter(|(_, s)| **s == State::Running) {
            if counter < lowest.0 {
                lowest = (counter, lowest.0);
            } else if counter > lowest.0 {
                lowest.1 = lowest.1.min(counter);
            }
        }
        self.active.clear();
        for thread in 0..self.threads {
            if self.states[thread] == State::Running && self.counters[thread] == lowest.0 {
                self.active.push(thread);
            }
        }
        (!self.active.is_empty()).then_some(lowest)
    }

    /// Runs the active threads from `at` on, until they part, wait, return, or reach others at `limit`.
    fn go(&mut self, mut at: usize, limit: usize) -> Outcome {
        let entry = self.entry;
        loop {
            let instruction = &entry.code[at];
            self.steps += 1;
            match instruction.op {
                Op::Branch | Op::Return => {
                    let taken: Vec<bool> =
                        self.active.iter().map(|&thread| self.holds(instruction, thread)).collect();
                    let to = if instruction.op == Op::Return { usize::MAX } else { instruction.target };
                    let whole = taken.iter().all(|&one| one == taken[0]);
                    let next = if taken[0] { to } else { at + 1 };
                    if whole && next < limit {
                        at = next;
                        continue;
                    }
                    for (&thread, taken) in self.active.iter().zip(taken) {
                        match (taken, instruction.op) {
                            (true, Op::Return) => self.states[thread] = State::Returned,
                            (true, _) => self.counters[thread] = to,
                            (false, _) => self.counters[thread] = at + 1,
                        }
                    }
                    return Ok(());
                }
                Op::Barrier => {
                    if instruction.guard.is_some() || instruction.modifiers.has("red") {
                        return Err(self.fault(instruction, "is a barrier that this machine does not know"));
                    }
                    for &thread in &self.active {
                        (self.counters[thread], self.states[thread]) = (at + 1, State::Waiting);
                    }
                    return Ok(());
                }
                _ => {
                    let all = instruction.guard.map(|_| {
                        let kept =
                            self.active.iter().copied().filter(|&t| self.holds(instruction, t)).collect();
                        std::mem::replace(&mut self.active, kept)
                    });
                    if !self.active.is_empty() {
                        self.execute(instruction).map_err(|error| self.fault(instruction, &error))?;
                    }
                    if let Some(all) = all {
                        self.active = all;
                    }
                    at += 1;
                    if at >= limit {
                        self.active.iter().for_each(|&thread| self.counters[thread] = at);
                        return Ok(());
                    }
                }
            }
        }
    }

    fn fault(&self, instruction: &Instruction, what: &str) -> String {
        format!("kernel {}, block {:?}: `{}` {what}", self.entry.name, self.index, instruction.text)
    }

    fn holds(&self, instruction: &Instruction, thread: usize) -> bool {
        instruction.guard.is_none_or(|(register, negated)| {
            (self.registers[register * self.threads + thread] != 0) != negated
        })
    }

    fn execute(&mut self, i: &Instruction) -> Outcome {
        match i.op {
            Op::Nothing => Ok(()),
            Op::Move => self.copy(i),
            Op::Load => self.load(i),
            Op::Store => self.store(i),
            Op::Atomic => self.atomic(i),
            Op::Convert => self.convert(i),
            Op::Shuffle => self.shuffle(i),
            Op::Vote => self.vote(i),
            Op::ActiveMask => self.active_mask(i),
            Op::Reduce => self.reduce(i),
            Op::MatrixMultiply => self.matrix_multiply(i),
            Op::FragmentLoad => self.fragment_load(i),
            Op::FragmentStore => self.fragment_store(i),
            Op::FragmentMultiply => self.fragment_multiply(i),
            Op::LoadMatrix => self.load_matrix(i),
            Op::StoreMatrix => self.store_matrix(i),
            Op::SetPredicate => self.set_predicate(i),
            Op::Set => self.set(i),
            Op::Select => self.map3(i, |a, b, c| if c != 0 { a } else { b }),
            Op::Trap => Err("stops the kernel".to_owned()),
            _ if i.ty.is_float() && !matches!(i.op, Op::And | Op::Or | Op::Xor) => self.float(i),
            _ => self.integer(i),
        }
    }

    /// The operand of every thread.
    fn fetch(&mut self, operand: &Operand) -> Outcome<Vec<u64>> {
        let mut row = self.rows.pop().unwrap_or_default();
        row.resize(self.threads, 0);
        match operand {
            Operand::Register(register) => row.copy_from_slice(self.row(*register)),
            Operand::Not(register) => {
                row.iter_mut().zip(self.row(*register)).for_each(|(to, &from)| *to = u64::from(from == 0));
            }
            Operand::Number(number) => row.fill(*number),
            Operand::Special(special) => {
                for (thread, to) in row.iter_mut().enumerate() {
                    *to = self.special(*special, thread);
                }
            }
            Operand::Address(base, offset) => {
                self.rows.push(row);
                row = self.fetch(base)?;
                row.iter_mut().for_each(|address| *address = address.wrapping_add_signed(*offset));
            }
            Operand::Vector(_) | Operand::Nothing => return Err(format!("has no such operand: {operand:?}")),
        }
        Ok(row)
    }

    /// A row that is no longer needed.
    fn give(&mut self, row: Vec<u64>) {
        self.rows.push(row);
    }

    fn row(&self, register: usize) -> &[u64] {
        &self.registers[register * self.threads..(register + 1) * self.threads]
    }

    fn special(&self, special: Special, thread: usize) -> u64 {
        let [x, y, _] = self.launch.block.map(|side| side as usize);
        let lane = thread % LANES;
        match special {
            Special::Thread(dimension) => [thread % x, thread / x % y, thread / x / y][dimension] as u64,
            Special::Threads(dimension) => self.launch.block[dimension].into(),
            Special::Block(dimension) => self.index[dimension].into(),
            Special::Blocks(dimension) => self.launch.grid[dimension].into(),
            Special::Lane => lane as u64,
            Special::Warp => (thread / LANES) as u64,
            Special::LaneMaskLess => (1 << lane) - 1,
            Special::LaneMaskEqual => 1 << lane,
            Special::Clock => self.steps,
        }
    }

    /// Writes `value(thread)` of the active threads.
    fn write(&mut self, to: &Operand, value: impl Fn(usize) -> u64) -> Outcome {
        let register = match to {
            Operand::Register(register) => *register,
            Operand::Nothing => return Ok(()),
            _ => return Err(format!("cannot write to {to:?}")),
        };
        let row = &mut self.registers[register * self.threads..(register + 1) * self.threads];
        self.active.iter().for_each(|&thread| row[thread] = value(thread));
        Ok(())
    }

    fn map1(&mut self, i: &Instruction, f: impl Fn(u64) -> u64) -> Outcome {
        let a = self.fetch(operand(i, 1)?)?;
        self.write(operand(i, 0)?, |thread| f(a[thread]))?;
        self.give(a);
        Ok(())
    }

    fn map2(&mut self, i: &Instruction, f: impl Fn(u64, u64) -> u64) -> Outcome {
        let (a, b) = (self.fetch(operand(i, 1)?)?, self.fetch(operand(i, 2)?)?);
        self.write(operand(i, 0)?, |thread| f(a[thread], b[thread]))?;
        self.give(a);
        self.give(b);
        Ok(())
    }

    fn map3(&mut self, i: &Instruction, f: impl Fn(u64, u64, u64) -> u64) -> Outcome {
        let (a, b, c) =
            (self.fetch(operand(i, 1)?)?, self.fetch(operand(i, 2)?)?, self.fetch(operand(i, 3)?)?);
        self.write(operand(i, 0)?, |thread| f(a[thread], b[thread], c[thread]))?;
        [a, b, c].into_iter().for_each(|row| self.give(row));
        Ok(())
    }
}

/// An operand that must be there.
fn operand(i: &Instruction, index: usize) -> Outcome<&Operand> {
    i.operands.get(index).ok_or_else(|| format!("lacks operand {index}"))
}

/// The operands of a vector, or the one alone.
fn list(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(list) => list,
        one => std::slice::from_ref(one),
    }
}
