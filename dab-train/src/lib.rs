//! The host side of dab: everything behind the `dab` command.
//!
//! ```text
//! weights.safetensors → pack → model.dab → score, inspect, explain, self-test
//! ```
//!
//! The mathematics lives in `dab-core`; here are files, tables and words. [`pack`] builds an artifact from
//! tensors trained anywhere, [`io`] streams rows and writes files whole or not at all, [`dispatch`] runs the
//! core's kernels on the widest instructions of this processor, [`cli`] is the command line.

pub mod cli;
pub mod dispatch;
pub mod io;
pub mod pack;
