//! MPI: `mpirun -n 4 dab train X.toml --mpi`, or `srun` in the place of `mpirun`.
//!
//! [`join`] → [`Machines`]; then either [`finish`] or [`abort`]. MPI's own rule decides how a job ends: a process that leaves
//! without a word lets the others wait for ever, so every error and every panic ends in `MPI_Abort`, which ends all of them.

use anyhow::{Result, bail};

use super::machines::Machines;

/// Names under which launchers tell a process its number and how many there are: Open MPI, MPICH and Intel MPI, SLURM.
const LAUNCHERS: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
];
/// The same, for its number among the processes of this machine.
const LOCAL: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Number of this process among those of its machine, if a launcher started it: the GPU that it takes.
pub fn local_index() -> Option<usize> {
    LOCAL.into_iter().find_map(variable)
}

/// The number of this process and how many there are, if a launcher says so.
fn launched() -> Option<(usize, usize)> {
    LAUNCHERS.into_iter().find_map(|[index, count]| Some((variable(index)?, variable(count)?)))
}

/// Refuses a process that a launcher started as one of several, without `--mpi`: all of them would write one folder.
pub fn refuse_uninvited() -> Result<()> {
    match launched() {
        Some((index, count)) if count > 1 => bail!(
            "this is process {index} of {count} that mpirun or srun started, and all of them would write the same folder: \
             add --mpi to share one run among them"
        ),
        _ => Ok(()),
    }
}

/// Refuses a process that finds fewer processes by MPI than its launcher started: that happens where the launcher belongs to
/// another MPI library, and each process, or each group of them, would run the whole training by itself. More than the launcher
/// says is no fault: of a heterogeneous job, SLURM tells each process about its own part.
#[cfg_attr(not(any(feature = "mpi", test)), expect(dead_code, reason = "without MPI nobody is met"))]
fn refuse_alone(met: usize, launched: Option<(usize, usize)>) -> Result<()> {
    match launched {
        Some((index, count)) if met < count => bail!(
            "process {index} of {count} that were started finds {met} by MPI, so each would train alone: start dab with the \
             mpirun of the MPI library that it was built with (`dab doctor` names it), or with the srun --mpi=… that fits it"
        ),
        _ => Ok(()),
    }
}

pub use library::{abort, finish, join, version};

/// Without MPI there is nobody to meet.
#[cfg(not(feature = "mpi"))]
mod library {
    use super::{Machines, Result, bail};

    /// Says what is missing.
    ///
    /// # Errors
    /// Always.
    pub fn join() -> Result<Option<Machines>> {
        bail!(
            "--mpi: this build lacks the cargo feature `mpi`; install MPI and libclang (apt-get install libopenmpi-dev \
             libclang-dev), then `cargo install --locked --path dab-train --features mpi`"
        )
    }

    /// Nothing was begun.
    pub fn finish() {}

    /// There is no other process.
    pub fn abort() {}

    /// There is no library.
    pub fn version() -> Option<String> {
        None
    }
}

#[cfg(feature = "mpi")]
mod library {
    use std::{
        backtrace::{Backtrace, BacktraceStatus},
        io::Write,
        sync::{
            Mutex, PoisonError,
            atomic::{AtomicBool, Ordering},
        },
    };

    use anyhow::Context;
    use mpi::{
        Threading,
        environment::Universe,
        topology::SimpleCommunicator,
        traits::{Communicator, CommunicatorCollectives, Root},
    };

    use super::{Machines, Result};
    use crate::learn::machines::{Place, Wire};

    /// Ends MPI when it is dropped, which only [`finish`] may do.
    static UNIVERSE: Mutex<Option<Universe>> = Mutex::new(None);

    /// All processes of the job.
    #[derive(Debug)]
    struct World;

    impl Wire for World {
        fn place(&self) -> Place {
            let world = SimpleCommunicator::world();
            Place { index: world.rank() as usize, count: world.size() as usize }
        }

        fn all_to_all(&self, sent: &[f32], received: &mut [f32]) {
            SimpleCommunicator::world().all_to_all_into(sent, received);
        }

        fn all_gather(&self, own: &[f32], all: &mut [f32]) {
            SimpleCommunicator::world().all_gather_into(own, all);
        }

        fn broadcast(&self, from: usize, bytes: &mut [u8]) {
            SimpleCommunicator::world().process_at_rank(from as i32).broadcast_into(bytes);
        }
    }

    /// Meets the other processes of the job; none if this one is alone.
    ///
    /// # Errors
    /// When MPI cannot be started, or finds fewer processes than the launcher started.
    pub fn join() -> Result<Option<Machines>> {
        // One thread at a time calls MPI, but it need not be the one that began.
        let (universe, _) =
            mpi::initialize_with_threading(Threading::Serialized).context("MPI cannot be started")?;
        let place = World.place();
        super::refuse_alone(place.count, super::launched())?;
        *UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner) = Some(universe);
        abort_on_panic(place.index);
        Ok((place.count > 1).then(|| Machines::new(Box::new(World))))
    }

    /// Lets a panic, in whichever thread, tell its process and end the job.
    fn abort_on_panic(index: usize) {
        static PANICKED: AtomicBool = AtomicBool::new(false);
        std::panic::set_hook(Box::new(move |panic| {
            // Threads that share a step may panic together. The first one tells; the others wait for the end that it brings.
            while PANICKED.swap(true, Ordering::SeqCst) {
                std::thread::park();
            }
            let said = panic.to_string();
            let said: Vec<&str> = said.split_whitespace().collect();
            let mut message = format!("dab: process {index}: {}\n", said.join(" "));
            let trace = Backtrace::capture();
            if trace.status() == BacktraceStatus::Captured {
                message += &trace.to_string();
            }
            // At once, so that no other process's line comes between. If standard error is closed there is nobody to tell.
            let _ = std::io::stderr().write_all(message.as_bytes());
            abort();
        }));
    }

    /// Leaves MPI, after a success.
    pub fn finish() {
        let _ = UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Ends all processes of the job; it does not return.
    pub fn abort() {
        SimpleCommunicator::world().abort(1);
    }

    /// What the MPI library calls itself.
    pub fn version() -> Option<String> {
        let version = mpi::environment::library_version().ok()?;
        version.lines().next().map(|line| line.trim_end_matches('\0').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::refuse_alone;

    #[test]
    fn a_process_that_meets_fewer_than_were_started_is_refused() {
        for (met, launched) in [(1, None), (4, None), (1, Some((0, 1))), (4, Some((3, 4))), (6, Some((1, 4)))]
        {
            refuse_alone(met, launched).unwrap();
        }
        for met in [1, 2] {
            let said = refuse_alone(met, Some((3, 4))).unwrap_err().to_string();
            let words = format!("process 3 of 4 that were started finds {met} by MPI");
            assert!(said.starts_with(&words) && said.contains("dab doctor"), "{said}");
        }
    }
}
