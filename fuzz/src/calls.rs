//! The C interface: calls in any order, with any sizes, alignments and overlaps, against the rules of dab.h.

mod model;
mod others;
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
    let Ok((_, artifact)) = u.choose(&pool::models()[..8]) else { return };
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
