//! What the fuzz targets do with their bytes. Each module has a function `check`, which panics where a claim of dab is
//! broken; libFuzzer calls it with bytes that reach new code (docs/testing.md, "Fuzzing").

pub mod artifact;
pub mod calls;
pub mod float64;
pub mod lies;
pub mod pool;
pub mod states;

// Models, the layout of the file and the questions are those of the tests.
#[path = "../../tests/src/patch.rs"]
pub mod patch;
#[path = "../../tests/src/specs.rs"]
pub mod specs;
#[path = "../../tests/src/total.rs"]
pub mod total;
