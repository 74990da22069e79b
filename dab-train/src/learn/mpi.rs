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

/// Refuses a process that a launcher started as one of several, without `--mpi`: all of them would write one folder.
pub fn refuse_uninvited() -> Result<()> {
    let found = LAUNCHERS.into_iter().find_map(|[index, count]| Some((variable(index)?, variable(count)?)));
    match found {
        Some((index, count)) if count > 1 => bail!(
            "this is process {index} of {count} that mpirun or srun started, and all of them would write the same folder: \
             add --mpi to share one run among them"
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
    use std::sync::{Mutex, PoisonError};

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
    pub fn join() -> Result<Option<Machines>> {
        // One thread at a time calls MPI, but it need not be the one that began.
        let (universe, _) =
            mpi::initialize_with_threading(Threading::Serialized).context("MPI cannot be started")?;
        *UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner) = Some(universe);
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            default(panic);
            abort();
        }));
        let place = World.place();
        Ok((place.count > 1).then(|| Machines::new(Box::new(World))))
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
