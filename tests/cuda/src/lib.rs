//! A CUDA driver that runs kernels on the processor: what `dab train --device cuda` computes, on a machine without a GPU.
//!
//! ```text
//! program → cuModuleLoadData(PTX) → ptx: text → Module → Entry → Instructions
//!         → cuLaunchKernel       → machine: block by block, all threads of a block in step, lowest program counter first
//! ```
//!
//! Build it as a shared library, put its folder first in `LD_LIBRARY_PATH`, and a program finds one GPU. `tests/accelerators`
//! does that. Environment variables choose what the GPU is and what is recorded:
//!
//! | variable | meaning |
//! |---|---|
//! | `DAB_CUDA_SM` | compute capability times ten, as in 75, 80 (default), 90 |
//! | `DAB_CUDA_GB` | memory in GiB, 16 by default |
//! | `DAB_CUDA_DIR` | a folder for every module (`0001.ptx` …), and `launches.txt` with launches, bytes and the largest use of memory |
//! | `DAB_CUDA_THREADS` | worker threads, 2 by default |
//! | `DAB_CUDA_RUN` | 0: kernels are counted and not run, for networks that are too large here: results mean nothing then; `now.txt` has the totals after every wait |
//!
//! What it checks beyond the results: an access outside of every allocation, or one that is not aligned, ends the launch with the
//! kernel, the instruction and the address. Memory that nobody has written is full of NaN. What it cannot tell: time, races between
//! threads, and the order in which matrix units add.
//!
//! Every instruction follows the PTX manual (ISA 8.8). One that is not known, or that has a modifier which is not known for it, is an
//! error with its text when the module is loaded; one that is not known for its type ends the launch. [`ptx::modifiers`] lists what
//! is known.

#![expect(missing_docs, reason = "a test tool: names follow the PTX manual and the driver's header")]

pub mod driver;
pub mod float;
pub mod machine;
pub mod memory;
pub mod ptx;
pub mod record;
#[cfg(test)]
mod tests;
