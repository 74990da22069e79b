//! Which sensor? How an answer changes when some inputs are set to what they are on average in the training data.
//!
//! ```text
//! a_g = s(x) − s(x with every input of group g at its training mean),   s = u or the score
//! ```
//!
//! A large a_g says that the input would be familiar, or nearly so, but for the inputs of g. It is no derivative: a
//! derivative says what a small change would do, and a broken sensor is no small change. Numbers of several groups do not
//! add up to the score. One pass of [`Model::assess`] for the input as it is and one for each group; with
//! [`Model::assess_without`] a loop does one group at a time, and spends as many passes in all.

use crate::artifact::info::{self, INPUT_MEANS, INPUT_NAMES, OUTPUT_NAMES};
use crate::artifact::names::{self, Name};
use crate::error::InputError;
use crate::isa::{Baseline, Isa};
use crate::model::{Assessment, Model, check_len};

/// What inputs are on average in the training data.
#[derive(Clone, Copy, Debug)]
pub struct Means<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Values(&'a [f32]),
    /// The text of [`INPUT_MEANS`], which has as many as the model has inputs.
    Text(&'a [u8]),
}

impl<'a> Means<'a> {
    /// Means that the caller knows, one for each input.
    #[must_use]
    pub const fn new(values: &'a [f32]) -> Self {
        Self(Source::Values(values))
    }

    /// The mean of one input; `None` when there are fewer.
    #[must_use]
    pub fn get(&self, input: usize) -> Option<f32> {
        match self.0 {
            Source::Values(values) => values.get(input).copied(),
            Source::Text(text) => info::number(text, input),
        }
    }

    /// How many there are.
    fn len(&self, inputs: usize) -> usize {
        match self.0 {
            Source::Values(values) => values.len(),
            Source::Text(_) => inputs,
        }
    }
}

/// Which inputs are set to their means together.
#[derive(Clone, Copy, Debug)]
pub enum Groups<'a> {
    /// Every input is a group of its own.
    Each,
    /// The group of each input, counting from 0: one number for each input. [`NO_GROUP`] is an input that is never changed.
    Of(&'a [u32]),
}

/// The number of an input that belongs to no group.
pub const NO_GROUP: u32 = u32::MAX;

impl Groups<'_> {
    fn has(&self, input: usize, group: usize) -> bool {
        match self {
            Self::Each => input == group,
            Self::Of(groups) => groups.get(input).is_some_and(|&g| g != NO_GROUP && g as usize == group),
        }
    }

    fn check(&self, inputs: usize) -> Result<(), InputError> {
        match self {
            Self::Each => Ok(()),
            Self::Of(groups) => check_len(inputs, groups.len(), wrong_length),
        }
    }
}

const fn wrong_length(expected: usize, found: usize) -> InputError {
    InputError::Length { expected, found }
}

impl<'a> Model<'a> {
    /// What the info section has under `key`.
    #[must_use]
    pub fn info(&self, key: &str) -> Option<&'a str> {
        core::str::from_utf8(info::find(self.info, key)?).ok()
    }

    /// The name of an input, counting from 0; `None` where the artifact names none, or not exactly all.
    #[must_use]
    pub fn input_name(&self, input: usize) -> Option<Name<'a>> {
        names::nth(info::find(self.info, INPUT_NAMES)?, input, self.meta.inputs as usize)
    }

    /// The name of an output, counting from 0; `None` where the artifact names none, or not exactly all.
    #[must_use]
    pub fn output_name(&self, output: usize) -> Option<Name<'a>> {
        names::nth(info::find(self.info, OUTPUT_NAMES)?, output, self.decoder.map_or(0, |d| d.outputs))
    }

    /// The training means of the inputs: those of the info section, of the base's normalisation, or of the first other
    /// view's that has one; `None` where the artifact has none of them.
    #[must_use]
    pub fn means(&self) -> Option<Means<'a>> {
        if let Some(text) = info::find(self.info, INPUT_MEANS)
            && info::has_numbers(text, self.meta.inputs as usize, |_| true)
        {
            return Some(Means(Source::Text(text)));
        }
        if !self.normalize_mean.is_empty() {
            return Some(Means::new(self.normalize_mean));
        }
        let mut views = self.channels()?.views(&self.meta).map(|view| view.normalize_mean);
        views.find(|mean| !mean.is_empty()).map(Means::new)
    }

    /// Floats of scratch for [`Model::assess_without`] and [`Model::attribute_into`]: an input more than for
    /// [`Model::assess`].
    #[must_use]
    pub fn attribution_scratch_len(&self) -> usize {
        self.scratch_len() + self.meta.inputs as usize
    }

    /// The assessment of `input` with one group of inputs at their means. Inputs of that group may be NaN.
    ///
    /// # Errors
    /// As [`Model::assess`], and when means or groups do not have the length of the input.
    pub fn assess_without(
        &self,
        input: &[f32],
        means: Means<'_>,
        groups: Groups<'_>,
        group: usize,
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        self.assess_without_on(Baseline, input, means, groups, group, scratch)
    }

    /// [`Model::assess_without`] on the instructions of `isa`: the same bits.
    ///
    /// # Errors
    /// As [`Model::assess_without`].
    pub fn assess_without_on(
        &self,
        isa: impl Isa,
        input: &[f32],
        means: Means<'_>,
        groups: Groups<'_>,
        group: usize,
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        let inputs = self.meta.inputs as usize;
        check_len(inputs, input.len(), wrong_length)?;
        check_len(inputs, means.len(inputs), wrong_length)?;
        groups.check(inputs)?;
        let short = InputError::Scratch { needed: self.attribution_scratch_len(), found: scratch.len() };
        let (changed, scratch) = scratch.split_at_mut_checked(inputs).ok_or(short)?;
        for (i, (to, x)) in changed.iter_mut().zip(input).enumerate() {
            *to = if groups.has(i, group) { means.get(i).unwrap_or(f32::NAN) } else { *x };
        }
        match self.assess_on(isa, changed, scratch) {
            Err(InputError::Scratch { .. }) => Err(short),
            found => found,
        }
    }

    /// What each group of inputs adds: how much smaller the uncertainty (nats) and the [score](Assessment::score) are with
    /// the group at its means. A negative number says that the group speaks for a familiar input. Either slice may be empty;
    /// otherwise its length is the number of groups, and of [`Groups::Each`] that of the inputs. As many passes as groups,
    /// and one.
    ///
    /// # Errors
    /// As [`Model::assess_without`], and when the two slices differ in length and neither is empty, or an input's group has
    /// no place in them.
    pub fn attribute_into(
        &self,
        input: &[f32],
        means: Means<'_>,
        groups: Groups<'_>,
        uncertainty: &mut [f32],
        score: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        self.attribute_on(Baseline, input, means, groups, uncertainty, score, scratch)
    }

    /// [`Model::attribute_into`] on the instructions of `isa`: the same bits.
    ///
    /// # Errors
    /// As [`Model::attribute_into`].
    #[expect(clippy::too_many_arguments, reason = "what is asked, of what, and memory for the answers")]
    pub fn attribute_on(
        &self,
        isa: impl Isa + Copy,
        input: &[f32],
        means: Means<'_>,
        groups: Groups<'_>,
        uncertainty: &mut [f32],
        score: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<Assessment, InputError> {
        let count = uncertainty.len().max(score.len());
        let wrong = |expected, found| InputError::OutputLength { expected, found };
        for found in [uncertainty.len(), score.len()] {
            check_len(count, if found == 0 { count } else { found }, wrong)?;
        }
        let needed = match groups {
            Groups::Each => self.meta.inputs as usize,
            Groups::Of(groups) => groups
                .iter()
                .filter(|&&g| g != NO_GROUP)
                .fold(0, |most, &g| most.max((g as usize).saturating_add(1))),
        };
        if count < needed || matches!(groups, Groups::Each) && count != needed {
            return Err(wrong(needed, count));
        }
        // Whatever is wrong with the arguments is found before anything is written.
        let found = self.assess_on(isa, input, scratch)?;
        for group in 0..count {
            let without = self.assess_without_on(isa, input, means, groups, group, scratch)?;
            if let Some(to) = uncertainty.get_mut(group) {
                *to = found.uncertainty - without.uncertainty;
            }
            if let Some(to) = score.get_mut(group) {
                *to = found.score() - without.score();
            }
        }
        Ok(found)
    }
}
