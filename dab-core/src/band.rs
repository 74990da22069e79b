//! The band around a regression's prediction: from nats to the unit of the target.
//!
//! ```text
//! ŷ_j ± w_j u(x)          w_j in the target's unit per nat, one for each output j
//! ```
//!
//! w_j ([`Bands::get`]) and uncertainty u → [`half_width`] → half-width of the band. The trainer chooses each w_j with held-out
//! rows, so that the band holds 95 % of their targets, and writes it into the info section ([`OUTPUT_BANDS`]). u is the
//! assessment's [uncertainty](crate::Assessment::uncertainty), also in a model whose verdicts judge another score.

use crate::artifact::info::{self, OUTPUT_BANDS};
use crate::artifact::schema::Task;
use crate::model::Model;
use crate::scalar::{in_domain, saturate};

/// The widths of a model's bands, read where they lie.
#[derive(Clone, Copy, Debug)]
pub struct Bands<'a> {
    /// The text of [`OUTPUT_BANDS`], which has as many numbers as the model has outputs.
    text: &'a [u8],
}

impl Bands<'_> {
    /// w of one output: the half-width of its band for each nat, in the target's unit. `None` when there are fewer outputs.
    #[must_use]
    pub fn get(&self, output: usize) -> Option<f32> {
        info::number(self.text, output)
    }
}

/// Half-width of a band of this `width` per nat: w u, in the target's unit, at most the largest finite number.
#[must_use]
pub fn half_width(width: f32, uncertainty: f32) -> f32 {
    saturate(width * uncertainty)
}

impl<'a> Model<'a> {
    /// The bands of a regression's outputs; `None` where the artifact has none, or not exactly one width for each output that
    /// is 0 or between 2⁻⁵⁰ and 2⁵⁰.
    #[must_use]
    pub fn bands(&self) -> Option<Bands<'a>> {
        let outputs = self.decoder.filter(|decoder| decoder.task == Task::Regression)?.outputs;
        let text = info::find(self.info, OUTPUT_BANDS)?;
        info::has_numbers(text, outputs, |w| w >= 0.0 && in_domain(w)).then_some(Bands { text })
    }
}
