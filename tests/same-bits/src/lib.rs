//! The same bits everywhere: one workload that every machine runs, and the hash of all that comes out.
//!
//! ```text
//! 100 000 pseudo-random inputs × diagonal, spectral, Cholesky, three views, bytes → assess, decode → bits → hash
//! ```
//!
//! Seven inputs in eight are ordinary numbers; the eighth is made of random bits, so that huge, tiny,
//! subnormal and non-finite values are among them, and the refusals are hashed like the answers.
//! `tests/same-bits/hash` holds what every machine must print; `hash-of-few` the same of a tenth of the inputs.
#![no_std]
#![forbid(unsafe_code)]

use dab_core::{InputError, Model, SelfTestError, Verdict, aligned_artifact};

/// Inputs for each model.
pub const INPUTS: u32 = 100_000;
/// Inputs for each model where a processor is emulated and time is short: the first of them.
pub const FEW_INPUTS: u32 = 10_000;
/// Floats of scratch that is enough for each model.
pub const SCRATCH: usize = 128;
/// Most inputs and outputs of a model.
const WIDTH: usize = 8;

/// One model of each kind, by name: written by `DAB_BLESS=1 cargo test -p dab-tests --test same_bits`.
pub static MODELS: [(&str, &[u8]); 5] = [
    ("diagonal", aligned_artifact!("../models/diagonal.dab")),
    ("spectral", aligned_artifact!("../models/spectral.dab")),
    ("cholesky", aligned_artifact!("../models/cholesky.dab")),
    ("views", aligned_artifact!("../models/views.dab")),
    ("bytes", aligned_artifact!("../models/bytes.dab")),
];

/// Why there is no hash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// The artifact is refused.
    Artifact,
    /// The artifact's own known answers do not come out.
    SelfTest(SelfTestError),
    /// The model does not fit this workload.
    Shape,
}

/// A running hash of 32-bit words (FNV-1a, a word at a time).
#[derive(Clone, Copy)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Takes in one word.
    pub const fn word(&mut self, word: u32) {
        self.0 = (self.0 ^ word as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// The hash so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// Marsaglia's xorshift: 32 bits of state, cheap where 64-bit products are not.
pub struct Random(u32);

impl Random {
    /// The sequence that every machine runs.
    #[must_use]
    pub const fn new() -> Self {
        Self(0x9e37_79b9)
    }

    /// Another sequence; the seed is not 0.
    #[must_use]
    pub const fn seeded(seed: u32) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// Fills `input`, every eighth time with random bits, else with numbers in [−4, 4).
    pub fn fill(&mut self, input: &mut [f32]) {
        let wild = self.bits().is_multiple_of(8);
        for x in input {
            let bits = self.bits();
            *x =
                if wild { f32::from_bits(bits) } else { (bits.cast_signed() >> 8) as f32 / (1 << 21) as f32 };
        }
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs `inputs` inputs through the model of `artifact` and takes the bits of every answer into `hash`.
///
/// # Errors
/// When the artifact is refused, does not pass its self-test, or is larger than the workload's memory.
pub fn run(artifact: &[u8], inputs: u32, hash: &mut Hash) -> Result<(), Failure> {
    let model = Model::from_bytes(artifact).map_err(|_| Failure::Artifact)?;
    let mut scratch = [0.0; SCRATCH];
    model.self_test(&mut scratch).map_err(Failure::SelfTest)?;
    let (mut input, mut outputs) = ([0.0; WIDTH], [0.0; WIDTH]);
    let input = input.get_mut(..model.shape().inputs).ok_or(Failure::Shape)?;
    let outputs = outputs.get_mut(..model.shape().outputs).ok_or(Failure::Shape)?;
    let mut random = Random::new();
    for _ in 0..inputs {
        random.fill(input);
        match model.predict_into(input, outputs, &mut scratch) {
            Ok(a) => {
                hash.word(a.uncertainty.to_bits());
                hash.word(a.p_value.map_or(u32::MAX, f32::to_bits));
                hash.word(match a.verdict {
                    None => u32::MAX,
                    Some(Verdict::Familiar) => 0,
                    Some(Verdict::Doubtful) => 1,
                    Some(Verdict::Unfamiliar) => 2,
                    Some(Verdict::Ambiguous) => 3,
                });
                hash.word(a.nearest as u32);
                hash.word(a.nearest_distance.to_bits());
                hash.word(a.saturated.into());
                for x in [a.unfamiliarity, a.ambiguity, a.ambiguity_p].into_iter().flatten() {
                    hash.word(x.to_bits());
                }
                for place in [a.class, a.runner_up, a.view].into_iter().flatten() {
                    hash.word(place as u32);
                }
                for y in &*outputs {
                    hash.word(y.to_bits());
                }
            }
            Err(InputError::NonFinite { index }) => hash.word(!(index as u32)),
            Err(_) => return Err(Failure::Shape),
        }
    }
    Ok(())
}

/// The hash of all models over `inputs` inputs each: `tests/same-bits/hash` holds that of [`INPUTS`], `hash-of-few` that of
/// [`FEW_INPUTS`].
///
/// # Errors
/// As [`run`].
pub fn hash_of(inputs: u32) -> Result<u64, Failure> {
    let mut hash = Hash::default();
    for (_, artifact) in MODELS {
        run(artifact, inputs, &mut hash)?;
    }
    Ok(hash.value())
}

/// Prints the hash of `inputs` inputs, without formatting, for machines that have no `std`. Whether there is one.
pub fn print_hash_of(inputs: u32, print: fn(&str)) -> bool {
    let Ok(hash) = hash_of(inputs) else { return false };
    for place in (0..16).rev() {
        let digit = (hash >> (4 * place)) as usize % 16;
        print("0123456789abcdef".get(digit..).and_then(|s| s.get(..1)).unwrap_or(""));
    }
    print("\n");
    true
}
