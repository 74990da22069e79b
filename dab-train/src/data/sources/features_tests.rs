//! Rows of files that are read, cut and refused.

use super::*;
use crate::data::{DataConfig, load_described};
use std::path::Path;

fn file(name: &str, text: &str) -> String {
    let dir = std::env::temp_dir().join(format!("dab-features-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().into()
}

fn trees(name: &str, species: &[&str]) -> String {
    let rows: Vec<String> =
        (0..100).map(|i| format!("{},{},{}", i, i * i % 7, species[i % species.len()])).collect();
    file(name, &format!("w,h,species\n{}\n", rows.join("\n")))
}

fn run(config: FeaturesConfig) -> Result<(Task, Description), crate::Error> {
    load_described(&DataConfig::Features(config), 3, Path::new("unused"))
}

#[test]
fn rates_that_were_raised_are_told() {
    let said = few_to_calibrate(24, HELD_OUT_ROWS, &hold_out_more(240, CALIBRATED)).unwrap();
    assert!(said.contains("`unfamiliar` means p ≤ 0.04 instead of 0.01"), "{said}");
    assert!(said.contains("--set data.held_out=0.45"), "{said}");
    let said = few_to_calibrate(4, HELD_OUT_ROWS, &hold_out_more(190, CALIBRATED)).unwrap();
    assert!(said.contains("`doubtful` and `unfamiliar` mean p ≤ 0.2 instead of 0.05 and 0.01"), "{said}");
    assert!(said.ends_with("give more rows, or rows that calibrate (--calibration FILE)"), "{said}");
    assert_eq!(few_to_calibrate(99, HELD_OUT_ROWS, ""), None);
}

#[test]
fn where_a_part_of_the_held_out_rows_calibrates_more_are_to_be_held_out() {
    let inputs = |rows| Table::column(vec![0.0; rows]);
    let split = |rows| Split { inputs: inputs(rows), targets: Targets::Regression(inputs(rows)) };
    let task =
        Task { name: "few".into(), train: split(480), held_out: split(120), test: split(1), ood: Vec::new() };
    let said = |calibration| {
        let mut description = Description { calibration, ..Description::default() };
        description.calibrated_by(90, "rows that calibrate", 132, &task);
        description.warnings.join("")
    };
    // 99 are three quarters of 132, and these are more than a fifth of 600.
    assert!(said(None).contains("--set data.held_out=0.25"), "{}", said(None));
    let given = said(Some(inputs(120)));
    assert!(given.ends_with("give at least 132, not 120") && !given.contains("--set"), "{given}");
}

#[test]
fn one_csv_is_enough() {
    let csv = trees("trees.csv", &["oak", "elm"]);
    let mut config = FeaturesConfig::new(&csv, &format!("{csv}:species"));
    config.ood.push(Ood { name: "far".into(), file: file("far.csv", "h,w,species\n1,2,palm\n") });
    let (task, description) = run(config).unwrap();
    assert_eq!((task.train.inputs.rows, task.held_out.inputs.rows, task.test.inputs.rows), (72, 8, 20));
    assert_eq!(
        (description.input_names.join(" "), description.output_names.join(" ")),
        ("w h".into(), "elm oak".into())
    );
    assert_eq!(task.ood[0].1.values, [2.0, 1.0], "columns follow their names");
}

#[test]
fn columns_that_are_no_inputs_are_left_out_everywhere() {
    let rows: Vec<String> = (0..100).map(|i| format!("{i},{},{},oak{}", i % 7, i * i % 11, i % 2)).collect();
    let csv = file("ids.csv", &format!("id,w,h,species\n{}\n", rows.join("\n")));
    let mut config = FeaturesConfig::new(&csv, &format!("{csv}:species"));
    config.without = vec!["id".into()];
    config.ood.push(Ood { name: "far".into(), file: file("far-ids.csv", "h,w,species\n1,2,palm\n") });
    config.calibration = Some(file("unseen.csv", "w,id,h\n1,2,3\n"));
    let (task, description) = run(config.clone()).unwrap();
    assert_eq!((description.input_names.join(" "), task.train.inputs.cols), ("w h".into(), 2));
    assert_eq!((&task.ood[0].1.values[..], task.test.inputs.cols), (&[2.0, 1.0][..], 2));
    assert_eq!(description.calibration.unwrap().values, [1.0, 3.0]);
    config.without.push("hight".into());
    let message = run(config).unwrap_err().to_string();
    assert!(
        message.contains("--without hight:") && message.contains("it has id, w, h, species"),
        "{message}"
    );
    let bare = file("bare.csv", &"1,2\n3,4\n".repeat(20));
    let without = vec!["w".into()];
    let config = FeaturesConfig { without, ..FeaturesConfig::new(&bare, &format!("{csv}:species")) };
    let message = run(config).unwrap_err().to_string();
    assert!(message.contains("bare.csv names no columns"), "{message}");
}

#[test]
fn what_cannot_work_is_said() {
    let csv = trees("one.csv", &["oak"]);
    let message = run(FeaturesConfig::new(&csv, &format!("{csv}:species"))).unwrap_err().to_string();
    assert!(message.contains("one class only"), "{message}");
    let short = file("short.csv", "0\n1\n");
    let csv = trees("two.csv", &["oak", "elm"]);
    let features = file("f.csv", "1,2\n3,4\n5,6\n");
    let message = run(FeaturesConfig::new(&features, &short)).unwrap_err().to_string();
    assert!(message.contains("f.csv has 3 rows but") && message.contains("short.csv has 2"), "{message}");
    let mut both = FeaturesConfig::new(&csv, &format!("{csv}:species"));
    both.targets = Some(csv.clone());
    assert!(run(both).unwrap_err().to_string().contains("either"));
    let mut half = FeaturesConfig::new(&csv, &format!("{csv}:species"));
    half.test_features = Some(csv);
    assert!(run(half).unwrap_err().to_string().contains("go together"));
}

#[test]
fn regression_targets_keep_their_units() {
    let csv = file("r.csv", "x,y\n1,10\n2,20\n3,30\n4,40\n5,50\n");
    let mut config = FeaturesConfig::new(&csv, "");
    (config.labels, config.targets) = (None, Some(format!("{csv}:y")));
    let (task, description) = run(config).unwrap();
    let Targets::Regression(y) = &task.train.targets else { panic!("regression") };
    assert!(y.values.iter().zip(&task.train.inputs.values).all(|(y, x)| *y == 10.0 * x));
    assert_eq!(description.output_names, ["y"]);
}
