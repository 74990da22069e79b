//! The C ABI of dab: pointer checks around `dab-core`, and nothing else.
//!
//! ```text
//! bytes + caller's memory → dab_model → dab_assess(model, input, scratch) → dab_assessment
//! ```
//!
//! `include/dab.h` is the manual and is generated from this crate; documentation here is written for the C
//! programmer who reads it there. [`ptr`] has the raw-pointer code and the order of the checks.
//! Nothing allocates (but `dab_model_open`), blocks, prints or panics.
#![no_std]
#![expect(
    clippy::missing_safety_doc,
    reason = "the contract is one for all: dab.h, \"Memory\" and \"Threads\""
)]

#[cfg(feature = "host")]
extern crate std;

pub mod status;
pub mod version;

pub mod model;

pub mod assess;
pub mod monitor;

pub mod explore;

#[cfg(feature = "host")]
pub mod host;

pub mod isa;

#[cfg(all(feature = "panic-handler", not(feature = "host")))]
mod panic;
pub mod ptr;
