//! Known answers: whether file, build and floating-point environment give the bits that were recorded.

use super::Model;
use crate::artifact::crc::Crc;
use crate::error::{InputError, SelfTestError};
use crate::isa::{Baseline, Isa};
use crate::linalg::dot::{dot, take};
use crate::scalar::tame;

impl Model<'_> {
    /// Proves that file, build and floating-point environment agree: every known-answer vector of the
    /// artifact must give its recorded uncertainty, distances and outputs, bit for bit. Call it at boot.
    ///
    /// # Errors
    /// When a result differs, or `scratch` is too short.
    pub fn self_test(&self, scratch: &mut [f32]) -> Result<(), SelfTestError> {
        self.self_test_on(Baseline, scratch)
    }

    /// [`Model::self_test`] on the instructions of `isa`, which must give the same bits.
    ///
    /// # Errors
    /// As [`Model::self_test`].
    pub fn self_test_on(&self, isa: impl Isa + Copy, scratch: &mut [f32]) -> Result<(), SelfTestError> {
        let mut rest = self.self_test.inputs;
        let mut digest = Crc::new();
        for (vector, answer) in self.self_test.answers.iter().enumerate() {
            let (input, after) = take(rest, self.meta.inputs as usize);
            rest = after;
            let found = self.answer(isa, input, scratch, &mut digest).map_err(SelfTestError::Input)?;
            if found.to_bits() != answer.to_bits() {
                return Err(SelfTestError::Uncertainty { vector, expected: *answer, found });
            }
        }
        let (expected, found) = (self.self_test.digest, digest.value());
        if expected == found { Ok(()) } else { Err(SelfTestError::Digest { expected, found }) }
    }

    /// Uncertainty of one known-answer vector; the bits of everything else about it go into `digest`.
    pub(crate) fn answer(
        &self,
        isa: impl Isa,
        input: &[f32],
        scratch: &mut [f32],
        digest: &mut Crc,
    ) -> Result<f32, InputError> {
        let evaluation = self.evaluate(isa, input, scratch)?;
        let mut take_in = |x: f32| digest.update(&x.to_le_bytes());
        for d in evaluation.distances {
            take_in(*d);
        }
        if let Some(found) = evaluation.decoded() {
            for y in found {
                take_in(*y);
            }
        } else if let Some(decoder) = &self.decoder {
            let mut rows = decoder.weight;
            for i in 0..decoder.outputs {
                let (row, after) = take(rows, self.codebook.dim);
                rows = after;
                let bias = decoder.bias.get(i).copied().unwrap_or(0.0);
                take_in(tame(dot(row, evaluation.gaussian.mean) + bias));
            }
        }
        if let Some(joined) = &evaluation.joined {
            for view in joined.views().skip(1) {
                take_in(view.distance);
                if let Some(energy) = view.energy {
                    take_in(energy);
                }
            }
            take_in(joined.unfamiliarity);
            if let Some((_, ambiguity)) = joined.logits.and_then(|l| l.runner_up) {
                take_in(ambiguity);
            }
        }
        Ok(evaluation.expected.uncertainty)
    }
}
