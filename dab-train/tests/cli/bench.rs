//! `dab bench`: measurements that add up, and what it refuses.

use crate::{dab, folder, refusal, text};

#[test]
fn steps_add_up_to_an_epoch_as_json_and_as_a_table() {
    let folder = folder("bench");
    let quick = ["bench", "--shape", "small", "--threads", "1", "--rounds", "1", "--seconds", "0"];
    let table = text(dab(&folder, &quick));
    for word in ["1 network", "2 assignment", "3 codes", "4 priors", "epoch", "samples/s", "100.0 %"] {
        assert!(table.contains(word), "{table}");
    }
    let json = text(dab(&folder, &[&quick[..], &["--json"]].concat()));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let own = &json[0]["dab"];
    let steps: f64 = own["steps"].as_array().unwrap().iter().map(|step| step.as_f64().unwrap()).sum();
    assert!((steps - own["seconds"].as_f64().unwrap()).abs() < 1e-9, "{json}");
    assert_eq!(own["parts"].as_object().unwrap().len(), 8);
    assert!(json[0]["pytorch"].is_null() && json[0]["threads"] == 1);
}

#[test]
fn a_python_without_pytorch_is_one_line_that_says_how_to_get_it() {
    let folder = folder("bench-python");
    let line = refusal(&dab(&folder, &["bench", "--pytorch=no-such-python"]), 1);
    assert!(line.contains("no-such-python") && line.contains("pip install torch"), "{line}");
    assert!(refusal(&dab(&folder, &["bench", "--threads", "0"]), 1).contains("--threads"));
}
