//! `dab monitor`: what it writes, what it counts, what it refuses.

use std::fmt::Write;
use std::path::Path;
use std::process::Output;

use super::{dab, folder, refusal, text, with_model};

#[path = "../streams/mod.rs"]
mod streams;

use streams::Ar1;

/// A CSV file of scores, with a column that is not theirs.
fn stream(folder: &Path, name: &str, seed: u64, ticks: usize, change: impl Fn(usize, f32) -> String) {
    let mut scores = Ar1::new(seed, 0.9);
    let mut text = String::from("tick,uncertainty\n");
    for tick in 0..ticks {
        writeln!(text, "{tick},{}", change(tick, scores.next())).unwrap();
    }
    std::fs::write(folder.join(name), text).unwrap();
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_tuned_monitor_is_replayed_by_its_file() {
    let folder = folder("monitor");
    // Four hours at 0.2 s.
    stream(&folder, "normal.csv", 1, 72_000, |_, u| u.to_string());
    stream(&folder, "fresh.csv", 2, 72_000, |_, u| u.to_string());
    stream(&folder, "drift.csv", 3, 18_000, |tick, u| (u + 1.5 * tick as f32 / 18_000.0).to_string());
    stream(&folder, "nan.csv", 4, 3000, |tick, u| {
        if tick > 1000 && tick % 2 == 0 { "nan".into() } else { u.to_string() }
    });
    stream(
        &folder,
        "fault.csv",
        5,
        3000,
        |tick, u| if tick < 1000 { u.to_string() } else { (u + 9.0).to_string() },
    );
    let tune =
        ["monitor", "tune", "normal.csv", "--tick", "200ms", "--false-alarms-per-hour", "1", "-o", "m.toml"];
    let (out, err) = said(&dab(&folder, &tune));
    assert!(err.is_empty(), "{err}");
    assert!(
        out.starts_with("4.00 hours of normal operation: 0 alarms, 0.000 an hour, at most 0.749 with 95 %"),
        "{out}"
    );
    assert!(out.contains("drift: ") && out.contains("wrote m.toml, m.h, m.rs, m.svg"), "{out}");
    for (file, word) in [
        ("m.toml", "drift_levels = ["),
        ("m.h", "#define DAB_MONITOR_CONFIG"),
        ("m.rs", "pub const MONITOR"),
        ("m.svg", "<svg"),
    ] {
        assert!(std::fs::read_to_string(folder.join(file)).unwrap().contains(word), "{file}");
    }
    let replay = |name: &str, more: &[&str]| -> serde_json::Value {
        let all = [&["monitor", "replay", name, "--config", "m.toml", "--json"], more].concat();
        let (out, err) = said(&dab(&folder, &all));
        assert!(err.is_empty(), "{err}");
        serde_json::from_str(&out).unwrap()
    };
    let fresh = replay("fresh.csv", &[]);
    assert_eq!((fresh["ticks"].as_u64(), fresh["hours"].as_f64()), (Some(72_000), Some(4.0)));
    assert!(fresh["alarms_per_hour"].as_f64().unwrap() <= 1.0, "{fresh}");
    let states: u64 =
        ["nominal", "fallback", "stale"].iter().map(|s| fresh["states"][s].as_u64().unwrap()).sum();
    assert_eq!(states, 72_000);
    let drift = replay("drift.csv", &["--plot", "drift.html"]);
    assert!(drift["reasons"]["drift"].as_u64().unwrap() > 0, "{drift}");
    assert!(std::fs::read_to_string(folder.join("drift.html")).unwrap().contains("fallback: drift"));
    let nan = replay("nan.csv", &["--plot", "nan.svg"]);
    assert_eq!((nan["alarms"].as_u64(), nan["rejected_inputs"].as_u64()), (Some(1), Some(999)), "{nan}");
    assert!(nan["states"]["fallback"].as_u64().unwrap() > 1900, "{nan}");
    // A recorded fault decides, and its delay is told.
    let (out, _) = said(&dab(&folder, &[&tune[..], &["--faults", "fault.csv"]].concat()));
    assert!(out.contains("fault fault.csv: found after"), "{out}");
}

#[test]
fn what_cannot_be_tuned_or_replayed_is_refused_in_words() {
    let folder = folder("monitor-refused");
    stream(&folder, "short.csv", 1, 3600, |_, u| u.to_string());
    stream(&folder, "text.csv", 1, 10, |tick, u| if tick == 5 { "abc".into() } else { u.to_string() });
    stream(&folder, "nothing.csv", 1, 20_000, |_, _| "nan".into());
    std::fs::write(folder.join("other.csv"), "score\n1\n2\n").unwrap();
    std::fs::write(folder.join("empty.csv"), "uncertainty\n").unwrap();
    std::fs::write(folder.join("bad.toml"), "[stream]\ntick_seconds = 1.0\n[monitor]\nenter = 1.0\n")
        .unwrap();
    std::fs::write(
        folder.join("votes.toml"),
        "[stream]\ntick_seconds = 1.0\n[monitor]\nenter = 1.0\nexit = 2.0\nwindow = 1\nenter_votes = 1\nexit_votes = 1\n",
    )
    .unwrap();
    let tune = |file: &str, more: &[&str]| {
        said(&dab(&folder, &[&["monitor", "tune", file, "--tick", "1s"], more].concat())).1
    };
    let short = tune("short.csv", &[]);
    assert!(
        short.contains("the log has 1.000 hours")
            && short.contains("record at least 3.00 hours (10785 rows)"),
        "{short}"
    );
    assert!(tune("short.csv", &["--false-alarms-per-hour", "0"]).contains("a number above 0"));
    assert!(said(&dab(&folder, &["monitor", "tune", "short.csv", "--tick", "5"])).1.contains("with a unit"));
    assert!(tune("other.csv", &[]).contains("no column is called `uncertainty`: without --model"));
    assert!(tune("empty.csv", &[]).contains("has no rows"));
    assert!(tune("text.csv", &[]).contains("`abc` is not a number"));
    assert!(tune("nothing.csv", &[]).contains("no finite score"));
    assert!(tune("missing.csv", &[]).contains("missing.csv"));
    let replay =
        |config: &str| said(&dab(&folder, &["monitor", "replay", "short.csv", "--config", config])).1;
    assert!(replay("bad.toml").contains("missing field"), "{}", replay("bad.toml"));
    assert!(replay("votes.toml").contains("exit at most enter"));
    assert!(replay("none.toml").contains("none.toml"));
}

#[test]
fn a_monitor_travels_in_the_file_of_its_model() {
    let folder = with_model("monitor-into");
    // Four hours of inputs at a second.
    for (name, seed) in [("normal.csv", 1), ("fresh.csv", 2)] {
        let (mut a, mut b) = (Ar1::new(seed, 0.9), Ar1::new(seed + 10, 0.5));
        let rows: String = (0..14_400).map(|_| format!("{},{}\n", a.next() - 3.0, b.next() - 3.0)).collect();
        std::fs::write(folder.join(name), rows).unwrap();
    }
    let tune =
        ["monitor", "tune", "normal.csv", "--model", "model.dab", "--tick", "1s", "--into", "tuned.dab"];
    let said = text(dab(&folder, &tune));
    assert!(said.contains("wrote tuned.dab: the model and its monitor, "), "{said}");
    // The file and the .toml say the same, of the same stream.
    let replay = |more: &[&str]| {
        let all = [&["monitor", "replay", "fresh.csv", "--json"], more].concat();
        serde_json::from_str::<serde_json::Value>(&text(dab(&folder, &all))).unwrap()
    };
    let by_file = replay(&["--model", "tuned.dab"]);
    assert_eq!(by_file, replay(&["--model", "model.dab", "--config", "monitor.toml"]));
    assert_eq!(by_file["hours"].as_f64(), Some(4.0));
    let toml: toml::Table = std::fs::read_to_string(folder.join("monitor.toml")).unwrap().parse().unwrap();
    let inspect = |model: &str| text(dab(&folder, &["inspect", model, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&inspect("tuned.dab")).unwrap();
    assert_eq!((json["format"].as_str(), &json["monitor"]["tick_seconds"]), (Some("1.2"), &1.0.into()));
    for (key, value) in toml["monitor"].as_table().unwrap() {
        assert_eq!(json["monitor"][key], serde_json::to_value(value).unwrap(), "{key}");
    }
    let info = json["info"]["monitor"].as_str().unwrap();
    assert!(
        info.starts_with(
            "tuned on 4.00 hours of `normal.csv` at a tick of 1.0 s; false alarms an hour: budget 1,"
        ),
        "{info}"
    );
    let shown = text(dab(&folder, &["inspect", "tuned.dab"]));
    assert!(shown.contains("monitor      spike: ") && shown.contains("ticks of 1.0 s"), "{shown}");
    // Every answer keeps its bits, also of a model that is taught and tuned again.
    let scores = |model: &str| text(dab(&folder, &["score", model, "fresh.csv"]));
    assert_eq!(scores("model.dab"), scores("tuned.dab"));
    text(dab(&folder, &["self-test", "tuned.dab"]));
    let embed = ["monitor", "embed", "model.dab", "--config", "monitor.toml", "-o", "embedded.dab"];
    let (done, warned) = self::said(&dab(&folder, &embed));
    assert!(done.contains("wrote embedded.dab") && warned.is_empty(), "{done}{warned}");
    assert_eq!(by_file, replay(&["--model", "embedded.dab"]));
    // The monitor of another model is taken with a warning; a file that does not know its model without one.
    let identity = toml["tuned"]["model"].as_str().unwrap();
    let plain: serde_json::Value = serde_json::from_str(&inspect("model.dab")).unwrap();
    assert_eq!(plain["identity"].as_str(), Some(identity));
    let written = std::fs::read_to_string(folder.join("monitor.toml")).unwrap();
    let line = format!("model = \"{identity}\"\n");
    for (file, replaced, words) in [
        ("other.toml", "model = \"00c0ffee\"\n", "tuned on scores of model 00c0ffee, and this is model "),
        ("old.toml", "", ""),
    ] {
        std::fs::write(folder.join(file), written.replace(&line, replaced)).unwrap();
        for command in [
            &["embed", "model.dab", "--config", file, "-o", "other.dab"][..],
            &["replay", "fresh.csv", "--model", "model.dab", "--config", file],
        ] {
            let (done, warned) = self::said(&dab(&folder, &[&["monitor"], command].concat()));
            assert!(!done.is_empty() && warned.contains(words), "{warned}");
            assert_eq!(warned.is_empty(), words.is_empty(), "{warned}");
        }
    }
    std::fs::write(folder.join("bad.toml"), written.replace(&line, "model = 7\n")).unwrap();
    let bad = ["monitor", "embed", "model.dab", "--config", "bad.toml", "-o", "no.dab"];
    assert!(refusal(&dab(&folder, &bad), 1).contains("model = 7 is not the identity of a model"));
    // A recording that is too short is refused before its rows are scored, which would find the one that is not a number.
    std::fs::write(folder.join("short.csv"), "0,0\n".repeat(100) + "0,abc\n").unwrap();
    let short = ["monitor", "tune", "short.csv", "--model", "model.dab", "--tick", "1s", "-o", "short.toml"];
    let short = refusal(&dab(&folder, &short), 1);
    assert!(short.contains("`short.csv`") && short.contains("(10785 rows)"), "{short}");
    std::fs::write(folder.join("new.csv"), "9,9\n9.1,9\n").unwrap();
    text(dab(&folder, &["teach", "tuned.dab", "new.csv", "-o", "both.dab"]));
    let both: serde_json::Value = serde_json::from_str(&inspect("both.dab")).unwrap();
    assert_eq!((&both["monitor"], both["taught"].as_u64()), (&json["monitor"], Some(1)));
    let quantise = ["quantise", "both.dab", "--data", "new.csv", "-o", "small.dab"];
    assert!(text(dab(&folder, &quantise)).contains("monitor         the old one"));
    let small: serde_json::Value = serde_json::from_str(&inspect("small.dab")).unwrap();
    assert_eq!(small["monitor"], json["monitor"]);

    let none = refusal(&dab(&folder, &["monitor", "replay", "fresh.csv", "--model", "model.dab"]), 1);
    assert!(none.contains("the file of --model has no monitor"), "{none}");
    let which = refusal(&dab(&folder, &["monitor", "replay", "fresh.csv"]), 1);
    assert!(which.contains("which monitor? Give --config"), "{which}");
    let alone = ["monitor", "tune", "normal.csv", "--tick", "1s", "--into", "no.dab"];
    assert!(refusal(&dab(&folder, &alone), 2).contains("--model"));
    assert!(!folder.join("no.dab").exists());
}
