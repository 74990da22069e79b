//! The words after an instruction's name: which of them this machine knows, and what they ask for.
//!
//! A word that is not in the list of its instruction is an error, because to leave it out could change the result. What the
//! lists hold is either followed by the machine or has no meaning for it: hints for caches, the order of memory accesses and
//! who sees them (the threads of a block run in step), and names of memory spaces, whose addresses do not overlap here.

use super::{
    Modifiers, Op,
    types::{Compare, Logic, Type},
};
use crate::float::Rounding;

const SPACES: &[&str] = &["global", "shared", "shared::cta", "local", "param", "param::entry", "const"];
/// Who sees an access, and in which order.
const ORDER: &[&str] =
    &["weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys"];
/// What caches should do.
const CACHES: &[&str] = &[
    "nc",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::64B",
    "L2::128B",
    "L2::256B",
];
const VECTORS: &[&str] = &["v2", "v4"];
/// Roundings of results. That of `.approx` and `.full` is the machine's choice.
const ROUNDINGS: &[&str] = &["rn", "rz", "rm", "rp", "ftz"];
const APPROXIMATE: &[&str] = &["approx", "full", "ftz"];
/// A matrix instruction is for a whole warp.
const WARP: &[&str] = &["sync", "aligned"];

/// The words that an instruction may have, beside types, comparisons and shapes.
fn known(op: Op) -> [&'static [&'static str]; 4] {
    let one = |words: &'static [&'static str]| [words, &[], &[], &[]];
    match op {
        // `cvta`: an address is the same in its space as in all memory.
        Op::Move => [&["to"], SPACES, &[], &[]],
        Op::Load | Op::Store => [SPACES, ORDER, CACHES, VECTORS],
        Op::Atomic => [
            &["add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec", "noftz"],
            SPACES,
            ORDER,
            &[],
        ],
        Op::Convert => [ROUNDINGS, &["rna", "rni", "rzi", "rmi", "rpi"], &["sat", "relu"], &[]],
        Op::Add | Op::Subtract => [ROUNDINGS, &["sat"], &[], &[]],
        Op::Multiply => [ROUNDINGS, &["sat", "lo", "hi", "wide"], &[], &[]],
        Op::MultiplyAdd => [ROUNDINGS, &["sat", "relu", "lo", "hi", "wide"], &[], &[]],
        Op::Divide | Op::Root | Op::Reciprocal => [ROUNDINGS, APPROXIMATE, &[], &[]],
        Op::InverseRoot | Op::Exp2 | Op::Log2 | Op::Sine | Op::Cosine | Op::Tanh => one(APPROXIMATE),
        Op::Negate | Op::Absolute | Op::SetPredicate | Op::Set => one(&["ftz"]),
        Op::Minimum | Op::Maximum => one(&["ftz", "NaN"]),
        Op::Test => one(&["finite", "infinite", "number", "notanumber"]),
        Op::Funnel => one(&["l", "r", "clamp", "wrap"]),
        Op::FindBit => one(&["shiftamt"]),
        Op::Branch | Op::Return => one(&["uni"]),
        // `.arrive` would not wait, and `.red` has a result.
        Op::Barrier => one(&["sync", "cta", "aligned"]),
        Op::Nothing => [
            ORDER,
            SPACES,
            &["warp", "sync", "sc", "gl", "wait", "launch_dependents"],
            &["L1", "L2", "L2::evict_last", "L2::evict_normal"],
        ],
        Op::Shuffle => one(&["sync", "up", "down", "bfly", "idx"]),
        Op::Vote => one(&["sync", "all", "any", "uni", "ballot"]),
        Op::Reduce => one(&["sync", "add", "min", "max", "and", "or", "xor"]),
        // `row` and `col` matter in memory, so to loads and stores; that `mma` has no others, the machine checks.
        Op::MatrixMultiply => [WARP, &["row", "col"], &[], &[]],
        Op::FragmentLoad => [WARP, &["load", "a", "b", "c", "row", "col"], SPACES, &[]],
        Op::FragmentStore => [WARP, &["store", "d", "row", "col"], SPACES, &[]],
        Op::FragmentMultiply => [WARP, &["mma", "row", "col"], &[], &[]],
        Op::LoadMatrix | Op::StoreMatrix => [WARP, &["m8n8", "x1", "x2", "x4", "trans"], SPACES, &[]],
        Op::Remainder
        | Op::CopySign
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Not
        | Op::Lop3
        | Op::ShiftLeft
        | Op::ShiftRight
        | Op::PopCount
        | Op::LeadingZeros
        | Op::Reverse
        | Op::Extract
        | Op::Insert
        | Op::Permute
        | Op::Select
        | Op::ActiveMask
        | Op::Trap => one(&[]),
    }
}

/// Rows, columns and inner dimension, from a word as `m16n8k8`.
#[must_use]
pub fn shape(word: &str) -> Option<[usize; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

fn is_known(op: Op, index: usize, word: &str) -> bool {
    let has_shape =
        matches!(op, Op::MatrixMultiply | Op::FragmentLoad | Op::FragmentStore | Op::FragmentMultiply);
    let compares = matches!(op, Op::SetPredicate | Op::Set);
    Type::parse(word).is_some()
        || known(op).iter().any(|words| words.contains(&word))
        || has_shape && shape(word).is_some()
        || compares && index == 0 && Compare::parse(word).is_some()
        || compares && index > 0 && Logic::parse(word).is_some()
}

/// What the words of an instruction ask for.
///
/// # Errors
/// The first word that this machine does not know for this instruction.
pub fn read(op: Op, words: &[&str]) -> Result<Modifiers, String> {
    let mut found =
        Modifiers { words: words.iter().map(|&word| word.to_owned()).collect(), ..Modifiers::default() };
    let compares = matches!(op, Op::SetPredicate | Op::Set);
    for (index, &word) in words.iter().enumerate() {
        if !is_known(op, index, word) {
            return Err(format!("`.{word}` is not known"));
        }
        match word {
            "rn" => found.rounding = Rounding::Nearest,
            "rz" => found.rounding = Rounding::Zero,
            "rm" => found.rounding = Rounding::Down,
            "rp" => found.rounding = Rounding::Up,
            "rna" => found.rounding = Rounding::NearestAway,
            "rni" => found.to_whole = Some(Rounding::Nearest),
            "rzi" => found.to_whole = Some(Rounding::Zero),
            "rmi" => found.to_whole = Some(Rounding::Down),
            "rpi" => found.to_whole = Some(Rounding::Up),
            "ftz" => found.ftz = true,
            "sat" => found.sat = true,
            "relu" => found.relu = true,
            "wide" => found.wide = true,
            "hi" if !compares => found.hi = true,
            "NaN" => found.nan = true,
            word if compares && index == 0 => found.compare = Compare::parse(word),
            word if compares => found.combine = found.combine.or(Logic::parse(word)),
            // Instructions ask for the others by name.
            _ => (),
        }
    }
    Ok(found)
}
