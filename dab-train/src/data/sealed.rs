//! Who may see which rows: learning, choosing and calibrating see training and held-out rows; measuring opens the others.
//!
//! ```text
//! Task → seal → Seen (train, held-out) → learn, export
//!             → Sealed (test, OOD) ────────────────────→ open → Task → measure, report
//! ```
//!
//! [`Sealed`] has no field and no method that shows a row, except [`Sealed::open`], which consumes it: a setting or a
//! weight cannot depend on a test or an OOD row by accident, because the code that makes it has none.

use super::{Split, Table, Task};

/// What a model may be made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Short name for titles and file names.
    pub name: String,
    /// What the model learns from.
    pub train: Split,
    /// What calibrates it and chooses between settings: same law as `train`, never learnt from.
    pub held_out: Split,
}

/// Test and OOD rows that nobody has looked at.
#[derive(Debug, Clone)]
pub struct Sealed {
    test: Split,
    ood: Vec<(String, Table)>,
}

impl Task {
    /// The rows that a model may be made of, and the others under a seal.
    #[must_use]
    pub fn seal(self) -> (Seen, Sealed) {
        let Self { name, train, held_out, test, ood } = self;
        (Seen { name, train, held_out }, Sealed { test, ood })
    }
}

impl Sealed {
    /// The whole task again. The experiment's corridor calls this once, when the model's bytes are final.
    #[must_use]
    pub fn open(self, seen: Seen) -> Task {
        let Seen { name, train, held_out } = seen;
        Task { name, train, held_out, test: self.test, ood: self.ood }
    }
}
