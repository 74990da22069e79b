//! Runs that end too early: killed, or without a place for the next checkpoint. The last good one stays, and a resumed run
//! gives the same bytes as one that nobody disturbed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::light::light;
use crate::{dab, folder, refusal, text};

/// Epochs of the run.
const EPOCHS: usize = 6;

fn arguments<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["train", "light.toml", "--no-baselines", "--json-lines", "--out", out];
    [&fixed[..], more].concat()
}

/// Starts a run, and kills it (SIGKILL) in the epoch after `epochs`.
fn killed(folder: &Path, out: &str, epochs: usize) {
    let mut child: Child = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(arguments(out, &[]))
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (0..epochs).for_each(|_| drop(lines.next().unwrap().unwrap()));
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "the run ended before it was killed");
}

/// Epochs that a run told about, and all that it said of them but the time.
fn history(lines: &str) -> Vec<serde_json::Value> {
    let epoch = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["epoch"].clone();
    lines.lines().map(epoch).collect()
}

fn checkpoint(folder: &Path, out: &str) -> PathBuf {
    folder.join(out).join("checkpoint.safetensors")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = (std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // A process that was killed leaves its lock, the next one removes it.
        .filter(|name| name != ".lock")
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_killed_within_an_epoch_loses_that_epoch_alone() {
    let folder = folder("killed");
    light(&folder, EPOCHS);
    let whole = history(&text(dab(&folder, &arguments("whole", &[]))));
    assert_eq!(whole.len(), EPOCHS);
    killed(&folder, "run", 3);
    assert!(checkpoint(&folder, "run").is_file() && !folder.join("run/model.dab").exists());
    let rest = history(&text(dab(&folder, &arguments("run", &["--resume"]))));
    // The third epoch was told before its checkpoint was written.
    assert!(rest.len() == EPOCHS - 3 || rest.len() == EPOCHS - 2, "{} epochs were left", rest.len());
    assert_eq!(rest, whole[EPOCHS - rest.len()..]);
    for file in ["model.dab", "backbone.safetensors", "scores.csv", "metrics.json", "checkpoint.safetensors"]
    {
        let read = |out: &str| std::fs::read(folder.join(out).join(file)).unwrap();
        assert!(read("run") == read("whole"), "{file} differs");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_checkpoint_of_the_last_whole_epoch_and_code_130() {
    let folder = folder("ctrl-c");
    light(&folder, EPOCHS);
    // The experiment asks for no checkpoint before its end.
    let seldom = ["--set", "training.checkpoint_every=0"];
    text(dab(&folder, &arguments("whole", &seldom)));
    let mut child = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(arguments("run", &seldom))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (0..2).for_each(|_| drop(lines.next().unwrap().unwrap()));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.contains(&format!("of {EPOCHS}; the same command with --resume goes on from run/checkpoint")),
        "{said}"
    );
    assert_eq!(names(&folder.join("run")), ["checkpoint.safetensors"], "and nothing else");
    text(dab(&folder, &arguments("run", &[&seldom[..], &["--resume"]].concat())));
    for file in ["model.dab", "backbone.safetensors", "scores.csv", "metrics.json", "checkpoint.safetensors"]
    {
        let read = |out: &str| std::fs::read(folder.join(out).join(file)).unwrap();
        assert!(read("run") == read("whole"), "{file} differs");
    }
}

#[test]
fn a_full_disk_and_a_damaged_checkpoint_leave_the_last_good_one() {
    let folder = folder("disk");
    light(&folder, EPOCHS);
    killed(&folder, "run", 3);
    let path = checkpoint(&folder, "run");
    let good = std::fs::read(&path).unwrap();
    let before = std::fs::read(folder.join("run/checkpoint.before.safetensors")).unwrap();
    let found = names(&folder.join("run"));
    // No file may grow beyond 8 blocks: to the program this is a disk without space.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dab")])
        .args(arguments("run", &["--resume"]))
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = refusal(&limited, 1);
    assert!(said.contains("cannot write") && said.contains("the last checkpoint is as it was"), "{said}");
    assert!(std::fs::read(&path).unwrap() == good, "the last good checkpoint changed");
    assert_eq!(names(&folder.join("run")), found, "nothing is left behind");

    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut header = good.clone();
    header[20] ^= 0x80;
    for bad in [&flipped[..], &header, &good[..good.len() / 2], &good[..5], b""] {
        std::fs::write(&path, bad).unwrap();
        let said = refusal(&dab(&folder, &arguments("run", &["--resume"])), 1);
        assert!(said.contains("it is damaged") && said.contains("checkpoint.before.safetensors"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), bad, "a refused checkpoint stays as it is");
    }
    // Either of the good ones leads to the same model.
    let mut models = Vec::new();
    for bytes in [good, before] {
        std::fs::write(&path, bytes).unwrap();
        text(dab(&folder, &arguments("run", &["--resume"])));
        models.push(std::fs::read(folder.join("run/model.dab")).unwrap());
        std::fs::remove_file(folder.join("run/model.dab")).unwrap();
        assert!(!folder.join("run/checkpoint.before.safetensors").exists(), "a finished run keeps one");
    }
    assert!(models[0] == models[1]);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_told_before_the_first_epoch() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("read-only");
    light(&folder, EPOCHS);
    let shut = folder.join("shut");
    std::fs::create_dir(&shut).unwrap();
    std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write into every folder, but not into the kernel's.
    let root = std::fs::write(shut.join("file"), "").is_ok();
    let out = if root { "/proc/dab/run" } else { "shut/run" };
    let output = dab(&folder, &arguments(out, &[]));
    let said = refusal(&output, 1);
    assert!(said.contains(&format!("cannot write into {out}")), "{said}");
    assert_eq!(history(&String::from_utf8(output.stdout).unwrap()), [] as [serde_json::Value; 0]);
}
