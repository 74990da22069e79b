//! The folder of a run: one owner at a time, nothing replaced unasked, every input by its name.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dab_train::internals::support::random::Random;

use crate::light::light;
use crate::{dab, folder, refusal, table, text};

/// Differences of f32 numbers are exact or rounded once; their sums are in f64.
const ROUNDING: f64 = 1e-5;

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

/// Three classes that overlap, and a number that follows them with noise.
fn blurred(folder: &Path) {
    let mut random = Random::new(6, "blurred");
    let line = |i: usize| {
        let class = i % 3;
        let at = [class as f64, -((class * class) as f64) / 2.0];
        let [a, b, noise] = [at[0], at[1], 0.0].map(|centre| centre + 1.2 * random.normal());
        format!("{a},{b},{},{}\n", ["x", "y", "z"][class], 50.0 * at[0] + noise)
    };
    let text = std::iter::once("a,b,kind,size\n".to_owned()).chain((0..3000).map(line)).collect::<String>();
    std::fs::write(folder.join("rows.csv"), text).unwrap();
}

/// Rows of scores.csv beside what `dab score` says of the same row. Their u and codes must be equal.
struct Shipped {
    scores: Vec<BTreeMap<String, String>>,
    said: Vec<BTreeMap<String, String>>,
    metrics: serde_json::Value,
}

impl Shipped {
    fn new(folder: &Path) -> Self {
        let records = |text: &str| -> Vec<BTreeMap<String, String>> {
            let rows = table(text);
            let record = |row: &Vec<String>| rows[0].iter().cloned().zip(row.iter().cloned()).collect();
            rows[1..].iter().map(record).collect()
        };
        let read = |name: &str| std::fs::read_to_string(folder.join("out").join(name)).unwrap();
        let (scores, all) = (records(&read("scores.csv")), say(folder, "score out/model.dab rows.csv"));
        let all = records(&text(all));
        let row = |name: &str| name.rsplit_once("rows.csv:").unwrap().1.parse::<usize>().unwrap() - 1;
        let said: Vec<_> = scores.iter().map(|one| all[row(&one["name"])].clone()).collect();
        for (one, said) in scores.iter().zip(&said) {
            let columns = |row: &BTreeMap<String, String>, code: &str| {
                (row["uncertainty"].parse::<f32>().unwrap(), row[code].clone())
            };
            assert_eq!(columns(one, "code"), columns(said, "nearest"), "u and code of {}", one["name"]);
        }
        Self { scores, said, metrics: serde_json::from_str(&read("metrics.json")).unwrap() }
    }

    /// A number of metrics.json.
    fn metric(&self, path: &str) -> f64 {
        self.metrics.pointer(path).unwrap().as_f64().unwrap()
    }

    /// What `pick` takes of the rows of a split and of what `dab score` says of them.
    fn each<T>(
        &self,
        split: &str,
        pick: impl Fn(&BTreeMap<String, String>, &BTreeMap<String, String>) -> T,
    ) -> Vec<T> {
        let pairs = self.scores.iter().zip(&self.said).filter(|(one, _)| one["split"] == split);
        pairs.map(|(one, said)| pick(one, said)).collect()
    }

    fn check_median(&self) {
        let mut u: Vec<f32> = self.each("test", |_, said| said["uncertainty"].parse().unwrap());
        u.sort_by(f32::total_cmp);
        let middle = f32::midpoint(u[(u.len() - 1) / 2], u[u.len() / 2]);
        assert_eq!(self.metric("/dab/median_uncertainty") as f32, middle);
    }
}

#[test]
fn classes_and_accuracy_of_a_run_are_those_of_its_file() {
    let folder = folder("runs-shipped-classes");
    blurred(&folder);
    // A network, and views that are computed.
    for how in ["--epochs 3", "--fast"] {
        let fit = "fit --features rows.csv --labels rows.csv:kind --without size --weights int8 --no-baselines --quiet";
        text(say(&folder, &format!("{fit} --out out --force --set data.test=0.5 {how}")));
        let shipped = Shipped::new(&folder);
        let likeliest = |said: &BTreeMap<String, String>| {
            let logit = |class: &&str| said[*class].parse::<f32>().unwrap();
            ["x", "y", "z"].into_iter().max_by(|a, b| logit(a).total_cmp(&logit(b))).unwrap().to_owned()
        };
        let right = shipped.each("test", |one, said| {
            assert_eq!(one["output"], likeliest(said), "{how}: {}", one["name"]);
            one["target"] == likeliest(said)
        });
        let accuracy = right.iter().filter(|&&right| right).count() as f64 / right.len() as f64;
        assert_eq!(shipped.metric("/dab/classification/accuracy"), accuracy, "{how}");
        shipped.check_median();
    }
}

#[test]
fn errors_and_band_of_a_run_are_those_of_its_file() {
    let folder = folder("runs-shipped-numbers");
    blurred(&folder);
    for how in ["--epochs 3", "--fast"] {
        let fit = "fit --features rows.csv --targets rows.csv:size --without kind --weights int8 --no-baselines --quiet";
        text(say(&folder, &format!("{fit} --out out --force {how}")));
        let shipped = Shipped::new(&folder);
        let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f32>().unwrap();
        let errors = |split: &str| {
            shipped.each(split, |one, said| {
                assert_eq!(number(one, "output"), number(said, "size"), "{how}: {}", one["name"]);
                let error = f64::from(number(said, "size") - number(one, "target"));
                (error, error.abs() / (2.0 * f64::from(number(said, "uncertainty"))))
            })
        };
        let test = errors("test");
        let rmse = (test.iter().map(|(error, _)| error * error).sum::<f64>() / test.len() as f64).sqrt();
        assert!((shipped.metric("/dab/regression/rmse") / rmse - 1.0).abs() < ROUNDING, "{how}: {rmse}");
        // s is the smallest with which the band holds 95 % of held-out targets.
        let mut ratios: Vec<f64> = errors("held_out").into_iter().map(|(_, ratio)| ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let scale = ratios[(0.95 * (ratios.len() + 1) as f64).ceil() as usize - 1];
        assert!((shipped.metric("/dab/interval/scales/0") / scale - 1.0).abs() < ROUNDING, "{how}: {scale}");
        assert_eq!(shipped.metrics.pointer("/dab/interval/coverages"), None, "{how}: there is one target");
        let inside = test.iter().filter(|(_, ratio)| *ratio <= scale).count() as f64 / test.len() as f64;
        assert!((shipped.metric("/dab/interval/coverage") - inside).abs() < ROUNDING, "{how}: {inside}");
        shipped.check_median();
    }
}

#[test]
fn an_experiment_runs_again_with_weights_of_one_byte() {
    let folder = folder("runs-again-in-bytes");
    blurred(&folder);
    let fit =
        "fit --features rows.csv --labels rows.csv:kind --without size --epochs 2 --no-baselines --quiet";
    text(say(&folder, &format!("{fit} --weights float32 --out out --force")));
    text(say(&folder, "train out/experiment.toml --weights int8 --no-baselines --quiet --out small --force"));
    let bytes = |run: &str| std::fs::read(folder.join(run).join("model.dab")).unwrap().len();
    assert!(bytes("small") < bytes("out"), "{} and {}", bytes("small"), bytes("out"));
}
