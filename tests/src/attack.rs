//! Changed artifacts with valid checksums, handed to the reader.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dab_core::Model;
use dab_core::artifact::{AlignedBytes, ArtifactError};

use crate::patch::{Parts, seal};
use crate::specs::real;
use crate::total::answers;

/// Index of the diagonal network with every optional part.
pub const MLP: usize = 0;
/// Index of the spectral model.
pub const SPECTRAL: usize = 1;
/// Index of the Cholesky model.
pub const CHOLESKY: usize = 2;
/// Index of the model with channels and three views.
pub const VIEWS: usize = 3;

/// Reads `bytes`: the reason of a refusal, or `None`. What is accepted must give sound answers for extreme
/// inputs.
///
/// # Panics
/// When reading or answering panics, or an answer is unsound.
#[must_use]
pub fn read(bytes: &AlignedBytes) -> Option<ArtifactError> {
    let outcome = catch_unwind(AssertUnwindSafe(|| match bytes.model() {
        Err(error) => Some(error),
        Ok(model) => {
            answer_extremes(&model);
            None
        }
    }));
    outcome.unwrap_or_else(|_| panic!("a panic; the file: {:02x?}", bytes.as_slice()))
}

fn answer_extremes(model: &Model<'_>) {
    let inputs = model.shape().inputs;
    for x in [0.0, 1.0, f32::MAX, -f32::MAX, f32::from_bits(1)] {
        let _ = answers(model, &vec![x; inputs], f32::NAN);
    }
    let mixed: Vec<f32> = (0..inputs).map(|i| if i % 2 == 0 { f32::MAX } else { -1e20 }).collect();
    let _ = answers(model, &mixed, f32::NAN);
    let _ = model.self_test(&mut vec![f32::NAN; model.scratch_len()]);
}

/// One of the real artifacts, in pieces.
#[must_use]
pub fn parts(index: usize) -> Parts {
    Parts::of(&real()[index].1.to_bytes().expect("a model"))
}

/// What the reader says of model `index` after `change`.
#[must_use]
pub fn changed(index: usize, change: impl FnOnce(&mut Parts)) -> Option<ArtifactError> {
    let mut parts = parts(index);
    change(&mut parts);
    read(&parts.join())
}

/// What the reader says of the first model after its bytes were changed and sealed again.
#[must_use]
pub fn patched(change: impl FnOnce(&mut Vec<u8>)) -> Option<ArtifactError> {
    let mut bytes = parts(MLP).join().as_slice().to_vec();
    change(&mut bytes);
    seal(&mut bytes);
    read(&AlignedBytes::from(&*bytes))
}
