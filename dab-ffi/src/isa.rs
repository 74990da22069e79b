//! Which instructions the calls run on: on an x86-64 host (feature `host`) those of AVX2 where the processor has
//! them, else the ones that the library is compiled for. The bits are the same (`dab_core::isa`).

#[cfg(all(feature = "host", target_arch = "x86_64"))]
use dab_core::isa::{Isa, Kernel};

/// AVX2 if the processor has it.
#[cfg(all(feature = "host", target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub struct Widest;

#[cfg(all(feature = "host", target_arch = "x86_64"))]
impl Isa for Widest {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2")]
        fn on_avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.call()
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor was asked, one line above, and has the instructions.
            unsafe { on_avx2(kernel) }
        } else {
            kernel.call()
        }
    }
}

// One type with the calls of dab-core that take none: one copy of the kernels.
#[cfg(not(all(feature = "host", target_arch = "x86_64")))]
pub use dab_core::isa::Baseline as Widest;
