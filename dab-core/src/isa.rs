//! Which instructions the kernels are compiled for.
//!
//! The core is compiled for its target's baseline and contains no `unsafe`. A host that knows more about
//! its processor implements [`Isa`] by calling the closure from a function with wider target features
//! (the `pulp` crate does it in one line); the kernels are inlined into it and use the wider registers.
//! The bits cannot change: the order of every sum is fixed ([`linalg::dot`](crate::linalg::dot)).

/// Runs a kernel on some set of instructions.
pub trait Isa: Copy {
    /// Calls `kernel`, once, and returns what it returns.
    fn run<R>(self, kernel: impl FnOnce() -> R) -> R;
}

/// The instructions that the crate is compiled for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline;

impl Isa for Baseline {
    #[inline(always)]
    fn run<R>(self, kernel: impl FnOnce() -> R) -> R {
        kernel()
    }
}
