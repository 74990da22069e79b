//! The host side of dab: everything behind the `dab` command.
