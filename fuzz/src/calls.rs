//! The C interface: calls in any order, with any sizes, alignments and overlaps, against the rules of dab.h.

mod model;
mod others;
mod rest;
mod world;

use dab_core::artifact::AlignedBytes;
use dab_core::{Model, Rates};
use libfuzzer_sys::arbitrary::{Error, Unstructured};

use crate::pool;
use world::World;

/// What the caller has: memory, and which objects were started in it.
struct Caller {
    world: World,
    model: bool,
    monitor: bool,
    exploration: bool,
    /// Places and dimension of the memory.
    memory: Option<(usize, usize)>,
    /// Dimension of the ellipse.
    ellipse: Option<usize>,
    /// The false-alarm rates of the artifact.
    rates: Rates,
}

/// Makes the calls that `data` says.
///
/// # Panics
/// When a call breaks a rule of dab.h.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    // Those of the tests, which have names, means and tables; and the last, which has a monitor.
    let models = pool::models();
    let Ok(index) = u.int_in_range(0..=8usize) else { return };
    let (_, artifact) = if index < 8 { &models[index] } else { &models[models.len() - 1] };
    let aligned = AlignedBytes::from(&**artifact);
    let mut reference: Model<'_> = aligned.model().expect("a model of the pool");
    let mut caller = Caller {
        world: World::new(artifact, [dab::model::DAB_MODEL_BYTES, 1024, 704, 128, 160]),
        model: false,
        monitor: false,
        exploration: false,
        memory: None,
        ellipse: None,
        rates: reference.rates(),
    };
    caller.start(artifact.len());
    while !u.is_empty() {
        match caller.step(&mut reference, artifact.len(), u) {
            // A call that the caller may not make is left out.
            Ok(_) | Err(Error::IncorrectFormat) => {}
            Err(_) => return,
        }
    }
}
