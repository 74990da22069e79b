//! What an experiment gives for one seed.

use crate::{
    choose::Choice,
    data::{RowNames, Task},
    learn::run::Learnt,
    measure::{
        assessed::Assessments,
        comparison::Comparison,
        evaluate::{Evaluation, TaskScores},
        parity::Parity,
    },
    model::codebook::Codebook,
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
    /// u, nearest code and outputs of every held-out, test and OOD input, as `model` gives them on a device.
    pub scores: TaskScores,
    /// All that `model` says about the same inputs, channel by channel.
    pub assessments: Assessments,
    /// How well the trainer's own scores agree with the device's.
    pub parity: Parity,
    /// The data, as the bottleneck saw them.
    pub task: Task,
    /// What their rows are called.
    pub rows: RowNames,
    /// The codes of the model's base view.
    pub codebook: Codebook,
    /// The trained network and the history of its epochs, where there was one to train.
    pub learnt: Option<Learnt>,
    /// Why the model is of its kind, in sentences: what was found out before its views were chosen or it learnt.
    pub reasons: Vec<String>,
    /// How the views were chosen, where they were.
    pub choice: Option<Choice>,
    /// What is allowed in the data but worth a line to the user.
    pub warnings: Vec<String>,
}
