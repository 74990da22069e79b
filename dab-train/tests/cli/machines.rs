//! `mpirun -n N dab train --mpi`: several processes, one run. `tests/mpi` builds with the feature `mpi` and runs these.

use std::process::Command;

use crate::light::light;
use crate::{dab, folder, refusal};

#[test]
fn processes_of_a_launcher_are_refused_without_mpi_and_mpi_without_the_feature() {
    let folder = folder("uninvited");
    light(&folder, 2);
    for [index, count] in [
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["PMI_RANK", "PMI_SIZE"],
        ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_dab"))
            .args(["train", "light.toml", "--out", "out"])
            .env(index, "1")
            .env(count, "4")
            .current_dir(&folder)
            .output()
            .unwrap();
        let said = refusal(&output, 1);
        assert!(said.contains("process 1 of 4") && said.contains("add --mpi"), "{said}");
        assert!(!folder.join("out").exists());
    }
    if !cfg!(feature = "mpi") {
        let said = refusal(&dab(&folder, &["train", "light.toml", "--mpi"]), 1);
        assert!(said.contains("cargo feature `mpi`") && said.contains("libopenmpi-dev"), "{said}");
    }
}

#[cfg(feature = "mpi")]
mod with_mpi {
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::{Command, Output, Stdio};
    use std::time::{Duration, Instant};

    use dab_train::internals::learn::mpi;

    use crate::light::light;
    use crate::{dab, folder, refusal, text};

    const EPOCHS: usize = 3;
    /// How long a job may live on after one of its processes was killed, failed or panicked. It is promised, so it is asserted by
    /// the clock, which no other test does.
    const PATIENCE: Duration = Duration::from_secs(10);

    const AS_ROOT: [(&str, &str); 2] =
        [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

    /// `mpirun` of so many processes of the program that follows; root and more processes than cores are allowed.
    fn launcher(processes: usize) -> Command {
        let mut command = Command::new("mpirun");
        command
            .args(["-n", &processes.to_string(), "--oversubscribe"])
            .envs(AS_ROOT)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// `mpirun` with `processes` of `dab train light.toml --mpi`.
    fn job(folder: &Path, processes: usize, arguments: &[&str]) -> Command {
        let mut command = launcher(processes);
        command
            .arg(env!("CARGO_BIN_EXE_dab"))
            .args(["train", "light.toml", "--no-baselines", "--json-lines", "--mpi"])
            .args(arguments)
            .current_dir(folder);
        command
    }

    fn losses(output: &Output) -> Vec<serde_json::Value> {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["epoch"].clone();
        said.lines().map(line).collect()
    }

    fn same_files(folder: &Path, [a, b]: [&str; 2]) {
        for file in ["model.dab", "backbone.safetensors", "scores.csv"] {
            let read = |out: &str| std::fs::read(folder.join(out).join(file)).unwrap();
            assert!(read(a) == read(b), "{file} differs between {a} and {b}");
        }
    }

    #[test]
    fn processes_write_the_bytes_that_as_many_replicas_write() {
        let folder = folder("processes");
        light(&folder, EPOCHS);
        // Two of them learn by E9, whose means are over the examples of both.
        let calibrated = ["--set", "objective.calibrated={ least = 50.0, weight = 0.1 }"];
        for (count, more) in [(2, &calibrated[..]), (4, &[])] {
            let (one, several) = (format!("replicas-{count}"), format!("processes-{count}"));
            let replicas = format!("training.replicas={count}");
            let arguments =
                ["train", "light.toml", "--no-baselines", "--quiet", "--out", &one, "--set", &replicas];
            text(dab(&folder, &[&arguments[..], more].concat()));
            let output = job(&folder, count, &[&["--out", &several], more].concat()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(losses(&output).len(), EPOCHS, "the first process alone tells");
            same_files(&folder, [&one, &several]);
        }
        // A resumed run begins with the first process's checkpoint everywhere.
        let resumed = [&["--out", "processes-2", "--resume"], &calibrated[..]].concat();
        let output = job(&folder, 2, &resumed).output().unwrap();
        assert!(output.status.success() && losses(&output).is_empty(), "nothing was left to do");
    }

    #[test]
    fn processes_that_differ_are_refused_before_the_first_step() {
        let folder = folder("processes-odd");
        light(&folder, EPOCHS);
        let program = env!("CARGO_BIN_EXE_dab");
        let output = job(&folder, 1, &["--out", "odd"])
            .args([":", "-n", "1", program, "train", "light.toml", "--mpi", "--seed", "7", "--out", "odd"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("process 1 has another experiment"), "{said}");
        assert!(!folder.join("odd/checkpoint.safetensors").exists());
    }

    #[test]
    fn an_error_in_one_process_ends_the_job_and_is_told_once() {
        let folder = folder("processes-error");
        light(&folder, EPOCHS);
        // Before the data are read, and before the experiment is.
        for (file, device, words) in [
            ("light.toml", "cuda:4096", "dab: process 1: device `cuda:4096` is not there"),
            ("nowhere.toml", "cpu", "dab: process 1: cannot read nowhere.toml"),
        ] {
            let begun = Instant::now();
            let other = ["train", file, "--mpi", "--device", device, "--out", "out"];
            let output = job(&folder, 1, &["--out", "out", "--force"])
                .args([":", "-n", "1", env!("CARGO_BIN_EXE_dab")])
                .args(other)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.matches(words).count() == 1, "{said}");
            assert!(begun.elapsed() < PATIENCE, "the others waited");
        }
        assert!(
            text(dab(&folder, &["doctor"]))
                .lines()
                .any(|line| line.starts_with("MPI ") && line.contains("MPI v"))
        );
    }

    /// This test is also each process of its job: the launcher starts the program of the tests again, for this test alone.
    #[test]
    fn a_panic_in_one_process_ends_the_job_and_is_told_once() {
        const PANICS: usize = 1;
        if std::env::var_os("OMPI_COMM_WORLD_SIZE").is_some() {
            let machines = mpi::join().unwrap().unwrap();
            if machines.place.index == PANICS {
                // Not in the thread that joined, as in a training; and this one does not end by itself.
                let _ = std::thread::spawn(|| panic!("broken\non purpose")).join();
                std::thread::sleep(2 * PATIENCE);
            }
            return machines.agree("waits for everybody").unwrap();
        }
        let test = "machines::with_mpi::a_panic_in_one_process_ends_the_job_and_is_told_once";
        let begun = Instant::now();
        let output = launcher(2)
            .arg(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env_remove("RUST_BACKTRACE")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let told: Vec<&str> = said.lines().filter(|line| line.contains("broken")).collect();
        assert!(!output.status.success() && told.len() == 1, "{said}");
        assert!(told[0].starts_with("dab: process 1: panicked at "), "{said}");
        assert!(told[0].ends_with(": broken on purpose"), "{said}");
        assert!(begun.elapsed() < PATIENCE, "the other process waited");
    }

    /// What a launcher of another MPI library does: each process finds itself alone.
    #[test]
    fn processes_that_do_not_find_one_another_are_refused() {
        let folder = folder("processes-alone");
        light(&folder, EPOCHS);
        let output = Command::new(env!("CARGO_BIN_EXE_dab"))
            .args(["train", "light.toml", "--mpi", "--out", "out"])
            .envs([("PMI_RANK", "1"), ("PMI_SIZE", "2")])
            .envs(AS_ROOT)
            .current_dir(&folder)
            .output()
            .unwrap();
        let said = refusal(&output, 1);
        assert!(said.contains("process 1 of 2 that were started finds 1 by MPI"), "{said}");
        assert!(!folder.join("out").exists());
    }

    /// Processes of the job that `launcher` started, by Linux's list of children.
    fn children(launcher: u32) -> Vec<u32> {
        let list =
            std::fs::read_to_string(format!("/proc/{launcher}/task/{launcher}/children")).unwrap_or_default();
        list.split_whitespace().filter_map(|id| id.parse().ok()).collect()
    }

    /// Whether a process runs; one that has ended but that nobody has asked about is listed as a zombie (Z).
    fn is_alive(id: u32) -> bool {
        let line = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        line.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
    }

    #[test]
    fn a_killed_process_ends_the_job_and_the_run_can_be_resumed() {
        let folder = folder("processes-killed");
        light(&folder, EPOCHS);
        let whole = job(&folder, 2, &["--out", "whole"]).output().unwrap();
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let mut launcher = job(&folder, 2, &["--out", "killed"]).spawn().unwrap();
        let mut told = BufReader::new(launcher.stdout.take().unwrap()).lines();
        // After the second line, the first epoch's checkpoint is written.
        (0..2).for_each(|_| drop(told.next().unwrap().unwrap()));
        let processes = children(launcher.id());
        assert_eq!(processes.len(), 2, "{processes:?}");
        let killed = Instant::now();
        assert!(Command::new("kill").args(["-9", &processes[1].to_string()]).status().unwrap().success());
        let status = loop {
            let status = launcher.try_wait().unwrap();
            let orphans = processes.iter().filter(|&&id| is_alive(id)).count();
            if let (Some(status), 0) = (status, orphans) {
                break status;
            }
            if killed.elapsed() >= PATIENCE {
                let _ = launcher.kill();
                panic!("after {PATIENCE:?} the launcher is {status:?}, {orphans} processes live on");
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        assert!(!status.success());
        let rest = job(&folder, 2, &["--out", "killed", "--resume"]).output().unwrap();
        assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
        let (all, rest) = (losses(&whole), losses(&rest));
        assert!(!rest.is_empty() && rest.len() < EPOCHS && all.ends_with(&rest), "{rest:?}");
        same_files(&folder, ["whole", "killed"]);
    }
}
