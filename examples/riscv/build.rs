//! Says where memory is, and that `riscv-rt` lays out the program.
use std::{env, fs, path::Path};

fn main() {
    // A copy beside the other results: a target folder that several checkouts share then names none of them.
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::copy("memory.x", Path::new(&out).join("memory.x")).expect("memory.x is copied");
    println!("cargo:rerun-if-changed=memory.x");
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rustc-link-arg-bins=-Tmemory.x");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
}
