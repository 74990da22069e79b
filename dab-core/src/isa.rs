//! Which instructions the kernels are compiled for.
//!
//! The core is compiled for its target's baseline and contains no `unsafe`. A host that knows more about
//! its processor implements [`Isa`] by calling [`Kernel::call`] from a function with wider target features
//! (with the `pulp` crate it takes no `unsafe` either); the kernels are always inlined, so they are
//! compiled for the wider registers there. The bits cannot change: the order of every sum is fixed
//! (`linalg/dot.rs`).

/// Work that is inlined wherever it is called. Implement `call` with `#[inline(always)]`: a closure would
/// be compiled for the baseline and only called from the wider function.
pub trait Kernel {
    /// What it computes.
    type Output;
    /// Does the work.
    fn call(self) -> Self::Output;
}

/// A set of instructions to run kernels on.
pub trait Isa {
    /// Calls `kernel`, once, and returns what it returns.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;
}

/// The instructions that the crate is compiled for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline;

impl Isa for Baseline {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.call()
    }
}
