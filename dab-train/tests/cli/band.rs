//! The band of a regression: made by `dab fit` with held-out rows, in the file, in what `dab score` and `dab inspect` say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dab_train::internals::support::random::Random;
use serde_json::Value;

use crate::runs::say;
use crate::{dab_reading, folder, table, text};

/// Rows that are held out of a fit.
const HELD_OUT: &str = "held_out";
/// serde_json may read a number one bit beside the one that was written.
const READ: f64 = 1e-12;

/// Two targets of inputs a and b, whose sizes and errors differ by four decades.
fn fitted(test: &str, how: &str) -> PathBuf {
    let folder = folder(test);
    let mut random = Random::new(8, "two targets");
    let (mut inputs, mut targets) = ("a,b\n".to_owned(), "force,torque\n".to_owned());
    for _ in 0..1500 {
        let [a, b, near, far] = [(); 4].map(|()| random.normal());
        inputs.push_str(&format!("{a},{b}\n"));
        targets.push_str(&format!("{},{}\n", a - b + 0.1 * near, 3e4 * b + 2e3 * far));
    }
    std::fs::write(folder.join("x.csv"), inputs).unwrap();
    std::fs::write(folder.join("t.csv"), targets).unwrap();
    text(say(
        &folder,
        &format!("fit --features x.csv --targets t.csv --no-baselines --quiet --out out {how}"),
    ));
    folder
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn floats(list: &Value) -> Vec<f32> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// The rows of a table with names, each by its columns.
fn records(text: &str) -> Vec<BTreeMap<String, String>> {
    let rows = table(text);
    rows[1..].iter().map(|row| rows[0].iter().cloned().zip(row.iter().cloned()).collect()).collect()
}

#[test]
fn each_target_has_a_band_that_holds_95_percent_of_its_own() {
    // Ridge regression; a network whose weights are rounded, so that u and predictions are those of the bytes.
    for (test, how) in [("band-fast", "--fast"), ("band-bytes", "--epochs 3 --weights int8")] {
        let folder = fitted(test, how);
        let metrics = json(&folder.join("out/metrics.json"));
        let interval = &metrics["dab"]["interval"];
        let inspected: Value =
            serde_json::from_str(&text(say(&folder, "inspect out/model.dab --json"))).unwrap();
        let widths = floats(&inspected["bands"]);
        let twice: Vec<f32> = floats(&interval["scales"]).iter().map(|s| 2.0 * s).collect();
        assert_eq!((widths.len(), &widths), (2, &twice), "{how}");
        assert!(widths[1] > 100.0 * widths[0], "{how}: {widths:?}");

        let scored = text(say(&folder, "score out/model.dab x.csv"));
        let names = "force,torque,force_band,torque_band";
        assert!(scored.lines().next().unwrap().ends_with(names), "{how}: {scored}");
        let (said, true_ones) =
            (records(&scored), records(&std::fs::read_to_string(folder.join("t.csv")).unwrap()));
        let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<f32>().unwrap();
        for row in &said {
            let u = number(row, "uncertainty");
            let found = ["force_band", "torque_band"].map(|column| number(row, column));
            assert_eq!(found.to_vec(), widths.iter().map(|w| w * u).collect::<Vec<f32>>(), "{how}: w u");
        }
        let splits = records(&std::fs::read_to_string(folder.join("out/scores.csv")).unwrap());
        let of = |split: &str| -> Vec<usize> {
            let rows = splits.iter().filter(|row| row["split"] == split);
            rows.map(|row| row["name"].rsplit_once(':').unwrap().1.parse::<usize>().unwrap() - 1).collect()
        };
        let inside = |row: usize, target: &str, width: f32| {
            let error = (number(&said[row], target) - number(&true_ones[row], target)).abs();
            error <= width * number(&said[row], "uncertainty")
        };
        let held_out = of(HELD_OUT);
        assert!(held_out.len() > 100, "{how}: {}", held_out.len());
        // Counted as for a p-value: the width is the one that so many rows need, and no smaller one holds as many.
        let rank = (0.95 * (held_out.len() + 1) as f64).ceil() as usize;
        for (target, &width) in ["force", "torque"].into_iter().zip(&widths) {
            let count = |width| held_out.iter().filter(|&&row| inside(row, target, width)).count();
            assert_eq!((count(width), count(width * (1.0 - 1e-6))), (rank, rank - 1), "{how}: {target}");
        }
        let test = of("test");
        let shares = ["force", "torque"].into_iter().zip(&widths).map(|(target, &width)| {
            test.iter().filter(|&&row| inside(row, target, width)).count() as f64 / test.len() as f64
        });
        let shares: Vec<f64> = shares.collect();
        let coverages = floats(&interval["coverages"]);
        assert_eq!(coverages, shares.iter().map(|&share| share as f32).collect::<Vec<_>>(), "{how}");
        let mean = f64::midpoint(shares[0], shares[1]);
        assert!((interval["coverage"].as_f64().unwrap() - mean).abs() < READ, "{how}: {mean}");
        assert!(shares.iter().all(|share| (0.9..1.0).contains(share)), "{how}: {shares:?}");
        let shown = text(say(&folder, "inspect out/model.dab"));
        assert!(shown.contains("output_bands = force ±") && shown.contains(" for each nat of u"), "{shown}");
    }
}

#[test]
fn json_and_marked_rows_have_bands_as_the_table_has() {
    let folder = fitted("band-json", "--fast");
    let stdin = b"a,b\n1,2\n1,x\n3,4\n";
    let ask = |more: &[&str]| {
        text(dab_reading(&folder, &[&["score", "out/model.dab", "-", "--skip-bad"], more].concat(), stdin))
    };
    let rows = table(&ask(&[]));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    assert!(rows[2].iter().all(|cell| cell.is_empty() || cell == "invalid"), "{rows:?}");
    let lines: Vec<Value> =
        ask(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (line, row) in lines.iter().zip(&rows[1..]) {
        let last: Vec<f32> = row[row.len() - 2..].iter().filter_map(|cell| cell.parse().ok()).collect();
        assert_eq!(floats(&line["bands"]), last);
    }
    assert_eq!((floats(&lines[0]["bands"]).len(), &lines[1]["bands"]), (2, &Value::Array(Vec::new())));
    // An input whose distance is no number of 32 bits any more.
    let far = text(dab_reading(&folder, &["score", "out/model.dab", "-", "--json"], b"a,b\n1e30,-1e30\n"));
    let far: Value = serde_json::from_str(&far).unwrap();
    assert!(floats(&far["bands"]).iter().all(|half| half.is_finite() && *half > 1e9), "{far}");
}
