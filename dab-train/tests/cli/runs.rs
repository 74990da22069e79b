//! The folder of a run: one owner at a time, nothing replaced unasked, every input by its name.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::light::light;
use crate::{dab, folder, refusal, table, text};

/// `dab` with these words, split at spaces.
pub(crate) fn say(folder: &Path, words: &str) -> std::process::Output {
    dab(folder, &words.split(' ').collect::<Vec<_>>())
}

/// Two classes of 150 rows, by name.
pub(crate) fn rows(folder: &Path) {
    let line = |i: usize| {
        let (class, x) = (i % 2, (i * 37 % 101) as f64 / 50.0);
        format!("{},{},{}\n", x + 5.0 * class as f64, 1.5 - x * x, ["left", "right"][class])
    };
    let text = std::iter::once("a,b,kind\n".to_owned()).chain((0..300).map(line)).collect::<String>();
    std::fs::write(folder.join("rows.csv"), text).unwrap();
    std::fs::write(folder.join("far.csv"), "a,b\n90,90\n-80,70\n").unwrap();
}

pub(crate) const FIT: &str =
    "fit --features rows.csv --labels rows.csv:kind --ood far=far.csv --fast --no-baselines --quiet";

#[test]
fn results_are_replaced_only_when_asked_for() {
    let folder = folder("runs-force");
    rows(&folder);
    text(say(&folder, &format!("{FIT} --out out")));
    let said = refusal(&say(&folder, &format!("{FIT} --out out")), 1);
    assert!(
        said.contains("out holds the results of an earlier run: give another folder with --out"),
        "{said}"
    );
    assert!(said.contains("or replace them with --force"), "{said}");
    text(say(&folder, &format!("{FIT} --out other")));
    text(say(&folder, &format!("{FIT} --out out --force --set data.held_out=0.3")));
    assert!(!folder.join("out/.lock").exists(), "a run that ended has no lock");
    text(say(&folder, &format!("{FIT} --out seeds --seeds 2")));
    let said = refusal(&say(&folder, &format!("{FIT} --out seeds --seeds 3")), 1);
    assert!(said.contains("seeds holds the results"), "{said}");
    assert!(refusal(&say(&folder, &format!("{FIT} --out out --force --resume")), 2).contains("--resume"));
}

#[test]
fn a_second_process_is_told_who_has_the_folder_and_a_dead_owner_has_none() {
    let folder = folder("runs-lock");
    light(&folder, 1000);
    let train = "train light.toml --no-baselines --json-lines --out run";
    let mut first = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(train.split(' '))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    (0..2).for_each(|_| drop(lines.next().unwrap().unwrap()));
    for more in ["", " --force", " --resume"] {
        let said = refusal(&say(&folder, &format!("{train}{more}")), 1);
        assert!(said.contains(&format!("run is in use: process {} (", first.id())), "{said}");
        assert!(said.contains("has been writing into it for ") && said.contains("--out"), "{said}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let said = refusal(&say(&folder, train), 1);
    assert!(
        said.contains("run holds the checkpoint of a run that did not end: go on with --resume"),
        "{said}"
    );
    text(say(&folder, &format!("{train} --force --set training.epochs=2 --set training.checkpoint_every=0")));
    assert!(folder.join("run/model.dab").is_file());
}

#[test]
fn a_fit_takes_its_folder_before_it_chooses() {
    let folder = folder("runs-choosing");
    let line = |i: usize| {
        let [a, b, c] = [37, 53, 71].map(|step| (i * step % 997) as f64 / 100.0);
        format!("{a},{b},{c},{}\n", (a * b).sin() + c * c)
    };
    let rows: String = std::iter::once("a,b,c,y\n".to_owned()).chain((0..3000).map(line)).collect();
    std::fs::write(folder.join("rows.csv"), rows).unwrap();
    let fit = "fit --features rows.csv --targets rows.csv:y --no-baselines --out out";
    let mut first = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(fit.split(' '))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It tells why it chose as it did as soon as it has.
    let chosen = Arc::new(AtomicBool::new(false));
    let (output, seen) = (first.stdout.take().unwrap(), Arc::clone(&chosen));
    let reader = std::thread::spawn(move || {
        BufReader::new(output).lines().take(1).for_each(|_| seen.store(true, Ordering::SeqCst));
    });
    let lock = folder.join("out/.lock");
    while !lock.exists() && first.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    let early = !chosen.load(Ordering::SeqCst);
    let said = refusal(&say(&folder, &format!("{fit} --fast --quiet")), 1);
    first.kill().unwrap();
    first.wait().unwrap();
    reader.join().unwrap();
    assert!(early, "the folder was free while the fit chose");
    assert!(said.contains("out is in use: process "), "{said}");
}

#[test]
fn resuming_without_a_checkpoint_says_so_and_starts() {
    let folder = folder("runs-resume");
    light(&folder, 2);
    let output = say(&folder, "train light.toml --no-baselines --quiet --out run --resume");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(
        said.contains("--resume: there is no checkpoint in run (checkpoint.safetensors), so this run starts at the first"),
        "{said}"
    );
    text(output);
    let again = say(&folder, "train light.toml --no-baselines --quiet --out run --resume");
    assert!(!String::from_utf8_lossy(&again.stderr).contains("no checkpoint"));
    text(again);
}

#[test]
fn scores_name_every_row_and_judge_it() {
    let folder = folder("runs-scores");
    rows(&folder);
    text(say(&folder, &format!("{FIT} --out out --set data.held_out=0.3")));
    let scores = table(&std::fs::read_to_string(folder.join("out/scores.csv")).unwrap());
    let head = "split row name uncertainty unfamiliarity p_value verdict code target output";
    assert_eq!(scores[0].join(" "), head);
    let csv = std::fs::read_to_string(folder.join("rows.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    let mut seen = std::collections::BTreeSet::new();
    for row in scores[1..].iter().filter(|row| row[0] != "far") {
        let at: usize = row[2].rsplit_once("rows.csv:").unwrap().1.parse().unwrap();
        assert!(lines[at - 1].ends_with(&row[8]), "row {at} is {}, not {}", lines[at - 1], row[8]);
        assert!(seen.insert(at), "no row is in two parts");
        let p: f64 = row[5].parse().unwrap();
        assert!((0.0..=1.0).contains(&p) && ["left", "right"].contains(&row[9].as_str()), "{row:?}");
        assert!(["familiar", "ambiguous", "doubtful", "unfamiliar"].contains(&row[6].as_str()), "{row:?}");
    }
    let far: Vec<_> = scores.iter().filter(|row| row[0] == "far").collect();
    assert!(
        far.len() == 2 && far[0][2].ends_with("far.csv:1") && far[1][2].ends_with("far.csv:2"),
        "{far:?}"
    );
    assert!(text(say(&folder, "train --help")).contains("backbone.safetensors"));
}
