//! The C interface: calls in any order, with any sizes, alignments and overlaps, against the rules of dab.h.

mod model;
mod others;
mod rest;
mod rules;
mod world;

use std::cell::RefCell;
use std::sync::OnceLock;

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

/// A model of the pool, and memory in which it was started.
struct Started {
    reference: Model<'static>,
    world: World,
}

impl Started {
    fn new(index: usize, artifact: &[u8]) -> Self {
        static ALIGNED: [OnceLock<AlignedBytes>; MODELS] = [const { OnceLock::new() }; MODELS];
        let aligned = ALIGNED[index].get_or_init(|| AlignedBytes::from(artifact));
        let mut world = World::new(artifact, [dab::model::DAB_MODEL_BYTES, 1024, 704, 128, 160]);
        model::start(&mut world, artifact.len());
        world.keep();
        Self { reference: aligned.model().expect("a model of the pool"), world }
    }
}

/// Models that are called: those of the tests, which have names, means and tables; and the last, which has a monitor.
const MODELS: usize = 9;

thread_local! {
    /// What was started for earlier inputs.
    static STARTED: RefCell<[Option<Started>; MODELS]> = const { RefCell::new([const { None }; MODELS]) };
}

/// Makes the calls that `data` says.
///
/// # Panics
/// When a call breaks a rule of dab.h.
pub fn check(data: &[u8]) {
    let u = &mut Unstructured::new(data);
    let models = pool::models();
    let Ok(index) = u.int_in_range(0..=MODELS - 1) else { return };
    let (_, artifact) = if index + 1 < MODELS { &models[index] } else { &models[models.len() - 1] };
    let kept = STARTED.with_borrow_mut(|started| started[index].take());
    let Started { reference, mut world } = kept.unwrap_or_else(|| Started::new(index, artifact));
    world.reset(artifact.len());
    let mut own = reference.clone();
    let mut caller = Caller {
        world,
        model: true,
        monitor: false,
        exploration: false,
        memory: None,
        ellipse: None,
        rates: own.rates(),
    };
    while !u.is_empty() {
        match caller.step(&mut own, artifact.len(), u) {
            // A call that the caller may not make is left out.
            Ok(_) | Err(Error::IncorrectFormat) => {}
            Err(_) => break,
        }
    }
    STARTED.with_borrow_mut(|started| started[index] = Some(Started { reference, world: caller.world }));
}
