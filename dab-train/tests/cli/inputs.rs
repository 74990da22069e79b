//! Files that commands read: found by the same names everywhere, and never replaced by what is written.

use crate::runs::{FIT, rows, say};
use crate::{folder, refusal, text};

#[test]
fn quantise_finds_columns_by_name_as_score_does() {
    let folder = folder("inputs-names");
    rows(&folder);
    text(say(&folder, &format!("{FIT} --out out --set data.held_out=0.3")));
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("plain.csv", "a,b\n1,0.5\n6,-2\n5.2,1.4\n");
    write("other.csv", "id,b,a\n7,0.5,1\n8,-2,6\n9,1.4,5.2\n");
    write("semicolons.csv", "b;a\n0.5;1\n-2;6\n1.4;5.2\n");
    let plain = text(say(&folder, "quantise out/model.dab --data plain.csv"));
    assert_eq!(plain, text(say(&folder, "quantise out/model.dab --data other.csv")));
    assert_eq!(plain, text(say(&folder, "quantise out/model.dab --data semicolons.csv --delimiter ;")));
    let ood =
        |file: &str| text(say(&folder, &format!("quantise out/model.dab --data plain.csv --ood far={file}")));
    assert_eq!(ood("plain.csv"), ood("other.csv"));
}

#[test]
fn an_output_never_replaces_an_input() {
    let folder = folder("inputs-replaced");
    rows(&folder);
    text(say(&folder, &format!("{FIT} --out out --set data.held_out=0.3")));
    std::fs::write(folder.join("x.npz"), b"pictures").unwrap();
    std::fs::write(folder.join("monitor.toml"), b"a monitor").unwrap();
    let files = ["far.csv", "x.npz", "monitor.toml", "out/model.dab"];
    let read = || files.map(|file| std::fs::read(folder.join(file)).unwrap());
    let before = read();
    for words in [
        "score out/model.dab far.csv -o far.csv",
        "score out/model.dab far.csv -o ./out/../far.csv",
        "score out far.csv -o out/model.dab",
        "teach out/model.dab far.csv -o out/model.dab",
        "teach out/model.dab far.csv -o far.csv",
        "quantise out/model.dab --data far.csv -o out/model.dab",
        "quantise out/model.dab --data rows.csv --ood far=far.csv -o far.csv",
        "quantise out/model.dab --data rows.csv --calibration far.csv -o far.csv",
        "features x.npz:images --run out -o x.npz",
        "export out/model.dab --c out/model.dab",
        "export out/model.dab --c model.c --header out/model.dab",
        "monitor embed out/model.dab --config monitor.toml -o out/model.dab",
        "monitor embed out/model.dab --config monitor.toml -o monitor.toml",
        "monitor tune far.csv --model out/model.dab --tick 1s --false-alarms-per-hour 1 --into out/model.dab",
    ] {
        let said = refusal(&say(&folder, words), 1);
        assert!(said.contains("is an input of this command"), "{words}: {said}");
        assert!(read() == before, "{words} changed a file");
    }
    text(say(&folder, "score out/model.dab far.csv -o scores.csv"));
    text(say(&folder, "score out/model.dab far.csv -o scores.csv"));
}

#[test]
fn a_table_of_semicolons_is_told_to_fit() {
    let folder = folder("inputs-semicolons");
    std::fs::write(folder.join("rows.csv"), "a;b;kind\n1;2;x\n3;4;y\n").unwrap();
    let said = refusal(&say(&folder, "fit --features rows.csv --labels rows.csv:kind"), 1);
    assert!(said.contains("are the fields separated by ';'? see --delimiter"), "{said}");
}

#[test]
fn a_column_far_from_zero_is_told_by_name() {
    let folder = folder("inputs-offset");
    let line = |i: usize| {
        let (class, x) = (i % 2, (i * 37 % 101) as f64 / 50.0);
        let time = 1.7e9 + (i % 9) as f64 - 4.0;
        format!("{},{},{time},{}\n", x + 5.0 * class as f64, 1.5 - x * x, ["left", "right"][class])
    };
    let rows: String = std::iter::once("a,b,time,kind\n".to_owned()).chain((0..300).map(line)).collect();
    std::fs::write(folder.join("rows.csv"), rows).unwrap();
    let output =
        say(&folder, "fit --features rows.csv --labels rows.csv:kind --no-baselines --quiet --out out");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("input column 3 `time` is about 1.7e9") && said.contains("subtract the offset"),
        "{said}"
    );
    assert!(!said.contains("trainer's"), "{said}");
}

#[test]
fn the_folder_of_a_run_stands_for_its_model() {
    let folder = folder("inputs-folder");
    rows(&folder);
    text(say(&folder, &format!("{FIT} --out out --set data.held_out=0.3")));
    std::fs::write(folder.join("plain.csv"), "a,b\n1,0.5\n6,-2\n5.2,1.4\n").unwrap();
    let calls = [
        "inspect MODEL",
        "self-test MODEL",
        "verify MODEL",
        "score MODEL plain.csv",
        "explain MODEL plain.csv",
        "report MODEL --data plain.csv -o page.html",
        "export MODEL --c model.c",
        "quantise MODEL --data plain.csv -o small.dab",
        "teach MODEL far.csv -o taught.dab",
    ];
    for call in calls {
        let [by_file, by_folder] =
            ["out/model.dab", "out"].map(|model| text(say(&folder, &call.replace("MODEL", model))));
        assert_eq!(by_file.replace("out/model.dab", "out"), by_folder, "{call}");
    }
    std::fs::create_dir(folder.join("empty")).unwrap();
    for call in calls {
        let said = refusal(&say(&folder, &call.replace("MODEL", "empty")), 1);
        assert!(
            said.contains("empty is a folder without model.dab: name a model file, or a run's folder"),
            "{call}: {said}"
        );
    }
    let said = refusal(&say(&folder, "monitor tune plain.csv --model out --tick 1s"), 1);
    assert!(said.contains("record at least"), "{said}");
    std::fs::write(folder.join("monitor.toml"), b"no monitor").unwrap();
    let said = refusal(&say(&folder, "monitor embed out --config monitor.toml -o out/model.dab"), 1);
    assert!(said.contains("is an input of this command"), "{said}");
    for output in ["quantise out --data plain.csv -o", "teach out far.csv -o", "export out --c"] {
        let said = refusal(&say(&folder, &format!("{output} out/model.dab")), 1);
        assert!(said.contains("is an input of this command"), "{said}");
    }
}

#[test]
fn quantise_tells_what_the_weights_change_apart_from_a_new_table() {
    let folder = folder("inputs-quantise");
    rows(&folder);
    text(say(&folder, &format!("{FIT} --out out --set data.held_out=0.3")));
    let said = |args: &str| text(say(&folder, format!("quantise out --data rows.csv {args}").trim_end()));
    // Strangers as the held-out rows: then everything is familiar.
    let (plain, anew) = (said(""), said("--calibration far.csv -o small.dab"));
    let line = |text: &str, start: &str| {
        text.lines().find(|line| line.starts_with(start)).map(ToOwned::to_owned).expect(start)
    };
    let by_weights = line(&plain, "verdicts        ").replacen("verdicts        ", "", 1);
    assert_eq!(line(&anew, "verdicts "), format!("verdicts        by the weights alone: {by_weights}"));
    assert!(plain.contains("table           the old one: see --calibration"), "{plain}");
    let table = line(&anew, "table           made anew of --calibration; by it alone: ");
    assert!(!table.contains(": 0 of 300 rows change"), "{anew}");
    let verified = text(say(&folder, "verify small.dab --run out"));
    assert!(verified.contains("`small.dab` was quantised from `out/model.dab`"), "{verified}");
}
