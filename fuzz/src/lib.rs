//! What the fuzz targets do with their bytes. Each module has a function `check`, which panics where a claim of dab is
//! broken; libFuzzer calls it with bytes that reach new code (docs/testing.md, "Fuzzing").

pub mod artifact;
pub mod calls;
pub mod float64;
pub mod lies;
pub mod pool;
#[cfg(feature = "readers")]
pub mod readers;
pub mod states;

// Models, their network in float64, the layout of the file and the questions are those of the tests.
#[path = "../../tests/src/network64.rs"]
pub mod network64;
#[path = "../../tests/src/patch.rs"]
pub mod patch;
#[path = "../../tests/src/specs.rs"]
pub mod specs;
#[path = "../../tests/src/total.rs"]
pub mod total;

// The readers of the host, as they are in dab-train but without burn: with sanitizers everything is compiled anew, and burn would
// take minutes. They name one another from the root of their crate, so they stand at the root of this one.
#[cfg(feature = "readers")]
#[allow(dead_code, unused_imports, reason = "only readers are called")]
#[path = "../../dab-train/src/data/mod.rs"]
mod data;

#[cfg(feature = "readers")]
#[allow(dead_code, reason = "only readers are called")]
#[path = "../../dab-train/src/error.rs"]
mod error;

#[cfg(feature = "readers")]
#[allow(dead_code, reason = "only readers are called")]
#[path = "../../dab-train/src/support"]
mod support {
    pub mod digest;
    pub mod limits;
    pub mod parallel;
    pub mod random;
    pub mod settings;
    pub mod text;
}

#[cfg(feature = "readers")]
#[allow(dead_code, reason = "only readers are called")]
#[path = "../../dab-train/src/export"]
mod export {
    pub mod names;
    pub mod pack;
}

#[cfg(feature = "readers")]
#[path = "../../dab-train/src/model/weights/file.rs"]
mod weights;
