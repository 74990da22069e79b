//! What an experiment gives for one seed.

use crate::{
    data::Task,
    learn::run::Learnt,
    measure::{
        assessed::Assessments,
        comparison::Comparison,
        evaluate::{Evaluation, TaskScores},
        parity::Parity,
    },
};

/// Everything one seed gave.
#[derive(Clone, Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// `model.dab`: the model, calibrated.
    pub model: Vec<u8>,
    /// Its measures.
    pub evaluation: Evaluation,
    /// The baselines' measures on the same data.
    pub comparison: Comparison,
    /// The uncertainty of every held-out, test and OOD input.
    pub scores: TaskScores,
    /// What `model` itself says about the same inputs, channel by channel.
    pub assessments: Assessments,
    /// How `scores` agree with those of `model`, as a device computes them.
    pub parity: Parity,
    /// The data, as the bottleneck saw them.
    pub task: Task,
    /// The trained network and the history of its epochs.
    pub learnt: Learnt,
    /// What is allowed in the data but worth a line to the user.
    pub warnings: Vec<String>,
}
