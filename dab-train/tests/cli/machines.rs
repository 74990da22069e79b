//! `dab train --machine I/N`: several processes, one run.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::light::light;
use crate::{dab, folder, refusal, text};

/// A port that was free a moment ago.
fn hub() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn machine(folder: &Path, place: &str, hub: &str, out: &str, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(["train", "light.toml", "--no-baselines", "--json-lines", "--out", out])
        .args(["--machine", place, "--hub", hub])
        .args(more)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What both of two machines say.
fn two(folder: &Path, out: &str, more: [&[&str]; 2]) -> [Output; 2] {
    let hub = hub();
    let [first, second] = more;
    let children =
        [machine(folder, "0/2", &hub, out, first), machine(folder, "1/2", &hub, "nowhere", second)];
    children.map(|child| child.wait_with_output().unwrap())
}

#[test]
fn two_machines_learn_what_two_replicas_learn() {
    let folder = folder("machines");
    light(&folder, 3);
    let parts = ["--set", "training.accumulate=2"];
    let one =
        ["train", "light.toml", "--no-baselines", "--quiet", "--out", "one", "--set", "training.replicas=2"];
    text(dab(&folder, &[&one[..], &parts].concat()));
    let [first, second] = two(&folder, "two", [&parts; 2]);
    let (first, second) = (text(first), text(second));
    let losses = |said: &str| -> Vec<serde_json::Value> {
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["epoch"].clone();
        said.lines().map(line).collect()
    };
    assert_eq!((losses(&first).len(), losses(&first)), (3, losses(&second)), "both tell the same");
    for file in ["model.dab", "backbone.safetensors", "scores.csv"] {
        let read = |out: &str| std::fs::read(folder.join(out).join(file)).unwrap();
        assert!(read("one") == read("two"), "{file} differs");
    }
    assert!(!folder.join("nowhere").exists(), "machine 0 alone writes");
    // A resumed run begins with machine 0's checkpoint on both.
    let [first, second] = two(&folder, "two", [&[&parts[..], &["--resume"]].concat(); 2]);
    assert_eq!((text(first), text(second)), (String::new(), String::new()), "nothing was left to do");
}

#[test]
fn machines_that_differ_or_go_away_are_told() {
    let folder = folder("machines-odd");
    light(&folder, 3);
    let other = two(&folder, "odd", [&[], &["--seed", "7"]]);
    for output in &other {
        assert!(refusal(output, 1).contains("machine 1 runs another experiment or seed"));
    }
    let hub = hub();
    let first = machine(&folder, "0/2", &hub, "lost", &["--set", "training.epochs=400"]);
    let mut second = machine(&folder, "1/2", &hub, "lost", &["--set", "training.epochs=400"]);
    let mut line = String::new();
    let mut said = std::io::BufReader::new(second.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    second.kill().unwrap();
    second.wait().unwrap();
    let said = refusal(&first.wait_with_output().unwrap(), 1);
    assert!(said.contains("machine 1 of 2 went away"), "{said}");
    assert!(folder.join("lost/checkpoint.safetensors").is_file(), "the last checkpoint is kept");
    assert!(
        refusal(&dab(&folder, &["train", "light.toml", "--machine", "2/2", "--hub", &hub]), 2)
            .contains("2/2")
    );
    assert!(refusal(&dab(&folder, &["train", "light.toml", "--machine", "0/2"]), 2).contains("--hub"));
}
