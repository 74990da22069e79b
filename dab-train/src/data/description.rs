//! What the data say beside their numbers: names, scales, and what is odd about them.

use super::{Scale, Table};

/// What a `Task` does not carry but an artifact or a report needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Description {
    /// The scale already applied to the inputs, if any.
    pub input_scale: Option<Scale>,
    /// The scale already applied to regression targets, if any: invert it for errors in raw units.
    pub target_scale: Option<Scale>,
    /// One name per input column, or none.
    pub input_names: Vec<String>,
    /// One name per output: class names, or the target's; or none.
    pub output_names: Vec<String>,
    /// Rows that calibrate in place of the held-out ones: those that the user's network has not seen.
    pub calibration: Option<Table>,
    /// What the rows are called.
    pub rows: RowNames,
    /// What is allowed but worth a line to the user.
    pub warnings: Vec<String>,
}

/// What rows are called: the file of a picture, or a file and the row in it, counting from 1. A list is empty where rows have no
/// names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowNames {
    /// Of training rows, the row in the file alone.
    pub train: Vec<usize>,
    /// Of held-out rows.
    pub held_out: Vec<String>,
    /// Of test rows.
    pub test: Vec<String>,
    /// Of each OOD set's rows.
    pub ood: Vec<Vec<String>>,
}
