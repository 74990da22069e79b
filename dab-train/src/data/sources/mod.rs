//! Where examples come from, one file per `kind` of an experiment's `[data]` table; images have a room of their own.

pub mod cifar10;
pub mod clinc150;
pub mod clusters;
pub mod features;
pub mod uci;
