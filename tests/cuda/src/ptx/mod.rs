//! PTX: text → [`Module`], with every instruction decoded once.

pub mod decode;
pub mod modifiers;
pub mod parse;
pub mod types;

use std::collections::HashMap;

use crate::float::Rounding;
use types::{Compare, Logic, Type};

/// A loaded module: its kernels by name.
#[derive(Debug, Default)]
pub struct Module {
    pub entries: HashMap<String, Entry>,
}

/// A kernel.
#[derive(Debug, Default)]
pub struct Entry {
    pub name: String,
    pub code: Vec<Instruction>,
    /// Offset and bytes of each parameter.
    pub parameters: Vec<(usize, usize)>,
    /// Bytes of all parameters.
    pub parameter_bytes: usize,
    pub registers: usize,
    /// Bytes of local memory a thread.
    pub local_bytes: usize,
    /// Bytes of shared memory that the text declares; what a launch asks for comes after it.
    pub shared_bytes: usize,
}

/// Registers that the machine sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Of the thread in its block, by dimension.
    Thread(usize),
    /// Threads of a block.
    Threads(usize),
    /// Of the block in the grid.
    Block(usize),
    /// Blocks of the grid.
    Blocks(usize),
    Lane,
    Warp,
    LaneMaskLess,
    LaneMaskEqual,
    Clock,
}

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Register(usize),
    /// A predicate, negated.
    Not(usize),
    Number(u64),
    Special(Special),
    /// `{a, b, …}`.
    Vector(Vec<Operand>),
    /// `[base + offset]`.
    Address(Box<Operand>, i64),
    /// `_`: the result is not wanted.
    Nothing,
}

/// What an instruction does; its types and modifiers are in [`Instruction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Move,
    Load,
    Store,
    Convert,
    Add,
    Subtract,
    Multiply,
    MultiplyAdd,
    Divide,
    Remainder,
    Negate,
    Absolute,
    Minimum,
    Maximum,
    Root,
    InverseRoot,
    Reciprocal,
    Exp2,
    Log2,
    Sine,
    Cosine,
    Tanh,
    CopySign,
    Test,
    And,
    Or,
    Xor,
    Not,
    Lop3,
    ShiftLeft,
    ShiftRight,
    Funnel,
    PopCount,
    LeadingZeros,
    Reverse,
    FindBit,
    Extract,
    Insert,
    Permute,
    SetPredicate,
    Set,
    Select,
    Branch,
    Return,
    Barrier,
    Nothing,
    Shuffle,
    Vote,
    ActiveMask,
    Reduce,
    Atomic,
    Trap,
    MatrixMultiply,
    FragmentLoad,
    FragmentStore,
    FragmentMultiply,
    LoadMatrix,
    StoreMatrix,
}

/// Which of an instruction's families of variants it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modifiers {
    /// `.rn` and so on; to the nearest unless given.
    pub rounding: Rounding,
    /// `.rni` and so on.
    pub to_whole: Option<Rounding>,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    pub wide: bool,
    pub hi: bool,
    /// `.NaN` of minimum and maximum.
    pub nan: bool,
    pub compare: Option<Compare>,
    pub combine: Option<Logic>,
    /// Everything after the name, in order.
    pub words: Vec<String>,
}

impl Modifiers {
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }
}

/// A decoded instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub op: Op,
    /// The first type that it names.
    pub ty: Type,
    /// The second one; of conversions, what is converted.
    pub from: Type,
    pub modifiers: Modifiers,
    /// The result first.
    pub operands: Vec<Operand>,
    /// Runs where this predicate is true (or, with `true`, false).
    pub guard: Option<(usize, bool)>,
    /// Of a branch: the instruction that it goes to.
    pub target: usize,
    /// The name with its modifiers, for messages.
    pub text: String,
}
