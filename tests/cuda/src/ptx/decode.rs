//! One statement → one [`Instruction`].

use super::{
    Instruction, Op, Operand, modifiers,
    parse::{Names, split},
    types::Type,
};

/// A number as PTX writes it: decimal, hexadecimal, or the bits of a float (`0f…`, `0d…`).
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    if text == "WARP_SZ" {
        return Some(32);
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let digits = digits.strip_suffix('U').unwrap_or(digits);
    let value = match digits.get(..2) {
        Some("0x" | "0X" | "0f" | "0F" | "0d" | "0D") => u64::from_str_radix(&digits[2..], 16).ok()?,
        _ => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}

fn op(name: &str, words: &[&str]) -> Option<Op> {
    let second = words.first().copied().unwrap_or("");
    Some(match name {
        "mov" | "cvta" => Op::Move,
        "ld" | "ldu" => Op::Load,
        "st" => Op::Store,
        "cvt" => Op::Convert,
        "add" => Op::Add,
        "sub" => Op::Subtract,
        "mul" => Op::Multiply,
        "mad" | "fma" => Op::MultiplyAdd,
        "div" => Op::Divide,
        "rem" => Op::Remainder,
        "neg" => Op::Negate,
        "abs" => Op::Absolute,
        "min" => Op::Minimum,
        "max" => Op::Maximum,
        "sqrt" => Op::Root,
        "rsqrt" => Op::InverseRoot,
        "rcp" => Op::Reciprocal,
        "ex2" => Op::Exp2,
        "lg2" => Op::Log2,
        "sin" => Op::Sine,
        "cos" => Op::Cosine,
        "tanh" => Op::Tanh,
        "copysign" => Op::CopySign,
        "testp" => Op::Test,
        "and" => Op::And,
        "or" => Op::Or,
        "xor" => Op::Xor,
        "not" => Op::Not,
        "lop3" => Op::Lop3,
        "shl" => Op::ShiftLeft,
        "shr" => Op::ShiftRight,
        "shf" => Op::Funnel,
        "popc" => Op::PopCount,
        "clz" => Op::LeadingZeros,
        "brev" => Op::Reverse,
        "bfind" => Op::FindBit,
        "bfe" => Op::Extract,
        "bfi" => Op::Insert,
        "prmt" => Op::Permute,
        "setp" => Op::SetPredicate,
        "set" => Op::Set,
        "selp" => Op::Select,
        "bra" => Op::Branch,
        "ret" | "exit" => Op::Return,
        "bar" | "barrier" if second != "warp" => Op::Barrier,
        "bar" | "membar" | "fence" | "nanosleep" | "prefetch" | "griddepcontrol" => Op::Nothing,
        "shfl" => Op::Shuffle,
        "vote" => Op::Vote,
        "activemask" => Op::ActiveMask,
        "redux" => Op::Reduce,
        "atom" | "red" => Op::Atomic,
        "trap" => Op::Trap,
        "mma" => Op::MatrixMultiply,
        "wmma" => match second {
            "load" => Op::FragmentLoad,
            "store" => Op::FragmentStore,
            _ => Op::FragmentMultiply,
        },
        "ldmatrix" => Op::LoadMatrix,
        "stmatrix" => Op::StoreMatrix,
        _ => return None,
    })
}

/// The instruction, and the label that it jumps to.
///
/// # Errors
/// An instruction, modifier or operand that is not known, with its text.
pub fn instruction(text: &str, names: &mut Names) -> Result<(Instruction, Option<String>), String> {
    let mut rest = text;
    let mut guard = None;
    if let Some(after) = rest.strip_prefix('@') {
        let (predicate, after) =
            after.split_once(char::is_whitespace).ok_or("a guard without instruction")?;
        let (negated, predicate) = predicate.strip_prefix('!').map_or((false, predicate), |p| (true, p));
        guard = Some((names.register(predicate), negated));
        rest = after.trim_start();
    }
    let end = rest.find(|c: char| c.is_whitespace() || c == '{').unwrap_or(rest.len());
    let (full, arguments) = (&rest[..end], rest[end..].trim());
    let mut words = full.split('.');
    let name = words.next().unwrap_or("");
    let words: Vec<&str> = words.collect();
    let op = op(name, &words).ok_or_else(|| format!("instruction `{text}` is not known"))?;
    let mut types = words.iter().filter_map(|word| Type::parse(word));
    let ty = types.next().unwrap_or_default();
    let from = types.next().unwrap_or(ty);
    let mut label = None;
    let mut operands = Vec::new();
    if op == Op::Branch {
        label = Some(arguments.to_owned());
    } else {
        for one in split(arguments, ',') {
            match one.split_once('|').filter(|_| !one.starts_with(['{', '['])) {
                Some((a, b)) => operands.push(Operand::Vector(vec![names.operand(a)?, names.operand(b)?])),
                None => operands.push(names.operand(one)?),
            }
        }
    }
    // The machine holds all threads of a block at a barrier, whatever its number.
    if op == Op::Barrier && operands.len() != 1 {
        return Err(format!("a barrier for some threads of a block is not known: `{text}`"));
    }
    let modifiers = modifiers::read(op, &words).map_err(|error| format!("{error}: `{text}`"))?;
    let instruction =
        Instruction { op, ty, from, modifiers, operands, guard, target: 0, text: full.to_owned() };
    Ok((instruction, label))
}
