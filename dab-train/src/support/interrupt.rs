//! Ctrl-C (SIGINT) while a run learns: it ends at the next step and leaves a checkpoint to go on from.
//!
//! ```text
//! first one, while patience is asked for: `wanted` becomes true     second one, or without patience: the process ends, code 130
//! ```
//!
//! On systems without signals an interrupt ends the process, as it does without this.

use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a process that SIGINT ended, as shells have it: 128 + 2.
pub const INTERRUPTED: u8 = 130;

static PATIENT: AtomicBool = AtomicBool::new(false);
static WANTED: AtomicBool = AtomicBool::new(false);

/// Takes care of SIGINT from now on.
pub fn install() {
    #[cfg(unix)]
    unix::install();
}

#[cfg(unix)]
mod unix {
    use super::{INTERRUPTED, Ordering, PATIENT, WANTED};

    const NOTE: &[u8] =
        b"dab: interrupted: the checkpoint is written after this step; once more ends at once\n";

    pub(super) fn install() {
        let handler: extern "C" fn(libc::c_int) = interrupted;
        // SAFETY: `interrupted` has the signature of a handler, and calls only what a handler may call (signal-safety(7)):
        // atomics without locks, write and _exit.
        unsafe { libc::signal(libc::SIGINT, handler as libc::sighandler_t) };
    }

    extern "C" fn interrupted(_: libc::c_int) {
        if !PATIENT.load(Ordering::SeqCst) || WANTED.swap(true, Ordering::SeqCst) {
            // SAFETY: it takes a number and does not return.
            unsafe { libc::_exit(INTERRUPTED.into()) }
        }
        // SAFETY: NOTE has this many readable bytes for ever; whether they can be written does not matter.
        unsafe { libc::write(libc::STDERR_FILENO, NOTE.as_ptr().cast(), NOTE.len()) };
    }
}

/// Whether the run should end.
pub fn wanted() -> bool {
    WANTED.load(Ordering::SeqCst)
}

/// While it lives, an interrupt waits for whoever asks [`wanted`].
#[derive(Debug)]
pub struct Patience(());

impl Patience {
    pub fn begin() -> Self {
        PATIENT.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        PATIENT.store(false, Ordering::SeqCst);
    }
}
