//! Model files: a trained network or tensors from elsewhere in, `model.dab` out, and back.
//!
//! ```text
//! Snapshot → artifact ┐
//!                     ├→ dab-core's writer → model.dab → model_file → c_source
//! safetensors → pack  ┘
//! ```

pub mod artifact;
pub mod c_source;
pub mod model_file;
pub mod names;
pub mod pack;
