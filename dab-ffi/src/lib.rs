#![doc = include_str!("../README.md")]
//!
//! # How the crate is built up
//!
//! ```text
//! bytes + caller's memory → dab_model → dab_assess(model, input, scratch) → dab_assessment
//! ```
//!
//! `dab.h` is generated from this crate, so the documentation of functions and types is written for the C programmer
//! who reads it there. [`ptr`] has the raw-pointer code and the order of the checks. Nothing allocates (but
//! `dab_model_open`), blocks, prints or panics.
#![no_std]
#![expect(
    clippy::missing_safety_doc,
    reason = "the contract is one for all: dab.h, \"MEMORY\" and \"THREADS\""
)]

#[cfg(feature = "host")]
extern crate std;

pub mod status;
pub mod version;

pub mod model;

pub mod assess;
pub mod attribute;
pub mod band;
pub mod explain;
pub mod guard;
pub mod monitor;
pub mod tuned;

pub mod explore;

pub mod ellipse;
pub mod memory;
pub mod saved;
pub mod slots;
pub mod taught;

#[cfg(feature = "host")]
pub mod host;

pub mod isa;

#[cfg(all(feature = "panic-handler", not(feature = "host")))]
mod panic;
pub mod ptr;
