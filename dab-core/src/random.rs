//! A seeded random encoder: features of an observation where there is no model.
//!
//! ```text
//! φⱼ = tanh( scale/√n Σᵢ Wⱼᵢ xᵢ + bⱼ ),   W uniform with variance 1, b uniform in (−1, 1)
//! ```
//!
//! Near observations have near features, far ones differ in most of them. W is not stored: each weight is made from
//! the seed and its place when it is needed, so that the encoder takes no memory, and the features have the same bits
//! on every machine.

use crate::error::InputError;
use crate::linalg::dot::{LANES, fold};
use crate::scalar::{in_domain, sqrt, tame, tanh};

/// Random features of dimension `dim` from observations of `inputs` values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomEncoder {
    seed: u32,
    inputs: usize,
    scale: f32,
}

impl RandomEncoder {
    /// An encoder of observations of `inputs` values; `None` unless there are some, and `scale` is from 2⁻⁵⁰ to 2⁵⁰.
    /// With values of about 1, a scale of 1 keeps tanh in its middle; a larger one tells nearer observations apart.
    #[must_use]
    pub fn new(seed: u32, inputs: usize, scale: f32) -> Option<Self> {
        let sound = inputs > 0 && in_domain(scale) && scale > 0.0;
        sound.then(|| Self { seed, inputs, scale: tame(scale / sqrt(inputs as f32)) })
    }

    /// Writes the features, each in (−1, 1). `inputs × features` multiply-adds, and as many weights.
    ///
    /// # Errors
    /// When the input has the wrong length or a value is not finite; nothing is written then.
    pub fn encode_into(&self, input: &[f32], features: &mut [f32]) -> Result<(), InputError> {
        if input.len() != self.inputs {
            return Err(InputError::Length { expected: self.inputs, found: input.len() });
        }
        if let Some(index) = input.iter().position(|x| !x.is_finite()) {
            return Err(InputError::NonFinite { index });
        }
        for (j, feature) in features.iter_mut().enumerate() {
            let row = mix(self.seed ^ mix(j as u32));
            let mut lanes = [0.0; LANES];
            for (i, &x) in input.iter().enumerate() {
                lanes[i % LANES] += SQRT_3 * unit(row.wrapping_add(i as u32)) * tame(x);
            }
            *feature = tanh(tame(self.scale * fold(lanes)) + unit(!row));
        }
        Ok(())
    }
}

/// A uniform number in (−1, 1) has variance 1/3.
const SQRT_3: f32 = 1.732_050_8;

/// A number in (−1, 1) from a place: 24 bits, so that it is exact.
fn unit(place: u32) -> f32 {
    const HALF: f32 = (1 << 23) as f32;
    ((mix(place) >> 8) as f32 - (HALF - 0.5)) / HALF
}

/// 32 bits that look random (the finaliser "lowbias32" of Chris Wellons' hash prospector).
const fn mix(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}
