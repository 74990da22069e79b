//! Model files: a trained network or tensors from elsewhere in, `model.dab` out, and back.
//!
//! ```text
//! Snapshot → artifact ┐
//! views → retrofit    ├→ dab-core's writer → model.dab → model_file → c_source
//! safetensors → pack  ┘                                → device: its scores of rows → band: ± around predictions
//! ```

pub mod artifact;
pub mod backbone;
pub mod band;
pub mod c_source;
pub mod device;
pub mod head;
pub mod int8;
pub mod model_file;
pub mod names;
pub mod pack;
pub mod retrofit;
