//! The `dab` command.
fn main() {}
