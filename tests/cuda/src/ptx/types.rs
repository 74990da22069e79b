//! PTX's types, comparisons and logic.

/// A type of PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    #[default]
    None,
    /// Bits without meaning, by their bytes.
    Bits(u8),
    Unsigned(u8),
    Signed(u8),
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    Tf32,
    F32,
    F64,
    Predicate,
}

impl Type {
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "b8" => Self::Bits(1),
            "b16" => Self::Bits(2),
            "b32" => Self::Bits(4),
            "b64" => Self::Bits(8),
            "u8" => Self::Unsigned(1),
            "u16" => Self::Unsigned(2),
            "u32" => Self::Unsigned(4),
            "u64" => Self::Unsigned(8),
            "s8" => Self::Signed(1),
            "s16" => Self::Signed(2),
            "s32" => Self::Signed(4),
            "s64" => Self::Signed(8),
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f16x2" => Self::F16x2,
            "bf16x2" => Self::Bf16x2,
            "tf32" => Self::Tf32,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "pred" => Self::Predicate,
            _ => return None,
        })
    }

    /// Bytes in memory.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Self::Bits(width) | Self::Unsigned(width) | Self::Signed(width) => width.into(),
            Self::F16 | Self::Bf16 => 2,
            Self::F64 => 8,
            Self::Predicate => 1,
            _ => 4,
        }
    }

    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16 | Self::Bf16 | Self::F16x2 | Self::Bf16x2 | Self::Tf32 | Self::F32 | Self::F64
        )
    }

    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Signed(_))
    }

    /// The type of one half of a pair in 32 bits.
    #[must_use]
    pub fn half(self) -> Option<Self> {
        match self {
            Self::F16x2 => Some(Self::F16),
            Self::Bf16x2 => Some(Self::Bf16),
            _ => None,
        }
    }
}

/// `value` without what is above `bytes`.
#[must_use]
pub fn cut(value: u64, bytes: usize) -> u64 {
    if bytes >= 8 { value } else { value & ((1 << (8 * bytes)) - 1) }
}

/// The low `bytes` of `value` as a signed number.
#[must_use]
pub fn signed(value: u64, bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes.min(8);
    ((value << unused) as i64) >> unused
}

/// A comparison; `unordered` ones are true for NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    pub less: bool,
    pub equal: bool,
    pub greater: bool,
    pub unordered: bool,
}

impl Compare {
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let of = |less, equal, greater, unordered| Some(Self { less, equal, greater, unordered });
        match word {
            "eq" => of(false, true, false, false),
            "ne" => of(true, false, true, false),
            "lt" | "lo" => of(true, false, false, false),
            "le" | "ls" => of(true, true, false, false),
            "gt" | "hi" => of(false, false, true, false),
            "ge" | "hs" => of(false, true, true, false),
            "equ" => of(false, true, false, true),
            "neu" => of(true, false, true, true),
            "ltu" => of(true, false, false, true),
            "leu" => of(true, true, false, true),
            "gtu" => of(false, false, true, true),
            "geu" => of(false, true, true, true),
            "num" => of(true, true, true, false),
            "nan" => of(false, false, false, true),
            _ => None,
        }
    }

    #[must_use]
    pub fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        match order {
            Some(std::cmp::Ordering::Less) => self.less,
            Some(std::cmp::Ordering::Equal) => self.equal,
            Some(std::cmp::Ordering::Greater) => self.greater,
            None => self.unordered,
        }
    }
}

/// How `setp` combines its result with another predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "and" => Self::And,
            "or" => Self::Or,
            "xor" => Self::Xor,
            _ => return None,
        })
    }

    #[must_use]
    pub fn of(self, a: bool, b: bool) -> bool {
        match self {
            Self::And => a && b,
            Self::Or => a || b,
            Self::Xor => a != b,
        }
    }
}
