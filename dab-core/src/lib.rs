//! Distance Aware Bottleneck inference: bytes → checked model → features → Gaussian → verdict.
#![no_std]
#![forbid(unsafe_code)]
