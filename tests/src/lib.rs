//! What the cross-crate tests share.

pub mod attack;
pub mod patch;
pub mod specs;
pub mod total;
