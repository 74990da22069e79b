//! `dab teach`: what was strange becomes familiar, what is far from all stays strange, and the file says what happened.

use dab_train::internals::support::random::Random;
use serde_json::Value;

use crate::{column, dab, dab_reading, folder, refusal, text, with_model};

#[test]
fn a_taught_model_knows_the_rows_and_says_where_they_came_from() {
    let folder = with_model("teach");
    let rows = |at: f32| (0..12).map(|i| format!("{},{}\n", at + 0.1 * i as f32, at)).collect::<String>();
    for (file, at) in [("new.csv", 9.0), ("more.csv", -20.0), ("fault.csv", 60.0), ("old.csv", 0.3)] {
        std::fs::write(folder.join(file), rows(at)).unwrap();
    }
    let said = text(dab(&folder, &["teach", "model.dab", "new.csv", "-o", "taught.dab"]));
    assert!(
        said.contains("taught 12 of 12 rows") && said.contains("not familiar: 12 before, 0 now"),
        "{said}"
    );
    let scores = |model: &str, file: &str| {
        let table = text(dab(&folder, &["score", model, file]));
        (column(&table, "uncertainty"), column(&table, "p_value"))
    };
    for file in ["new.csv", "fault.csv", "old.csv"] {
        let ((before, p), (after, q)) = (scores("model.dab", file), scores("taught.dab", file));
        assert!(before.iter().zip(&after).all(|(a, b)| b <= a) && p.iter().zip(&q).all(|(p, q)| q >= p));
        match file {
            "new.csv" => assert!(q.iter().all(|&q| q > 0.5), "{q:?}"),
            "fault.csv" => assert_eq!(p, q, "what is far from both alarms as before"),
            _ => assert_eq!(before, after, "what was familiar stays as it was"),
        }
    }
    text(dab(&folder, &["self-test", "taught.dab"]));
    text(dab(&folder, &["teach", "taught.dab", "more.csv", "-o", "twice.dab"]));
    let json: Value = serde_json::from_str(&text(dab(&folder, &["inspect", "twice.dab", "--json"]))).unwrap();
    let told = |key: &str| json["info"][key].as_str().unwrap().to_owned();
    assert!(told("taught").contains("`new.csv`") && told("taught").contains("before: model "));
    assert!(told("taught.2").contains("`more.csv`") && json["taught"].as_u64().unwrap() >= 2);
    assert!(text(dab(&folder, &["inspect", "twice.dab"])).contains("taught       "));
    assert!(text(dab(&folder, &["explain", "twice.dab", "new.csv"])).contains("was taught more"));

    assert!(!said.contains("STILL NOT FAMILIAR"), "{said}");
    // One code for rows that are far from one another.
    std::fs::write(folder.join("wide.csv"), "9,9\n9.1,9\n-60,80\n40,-40\n").unwrap();
    let wide = text(dab(&folder, &["teach", "model.dab", "wide.csv", "-o", "wide.dab", "--spawn", "1e6"]));
    let last = wide.lines().last().unwrap();
    assert!(last.contains("of 4 rows") && last.contains("STILL NOT FAMILIAR: they are too far"), "{wide}");
    assert!(last.contains("--spawn") && last.contains("fit again"), "{wide}");

    let piped = dab_reading(&folder, &["teach", "model.dab", "-", "-o", "piped.dab"], rows(9.0).as_bytes());
    assert!(text(piped).contains("taught 12 of 12 rows"));
    for (args, words) in [
        (&["old.csv"][..], "nothing to teach"),
        (&["none.csv"], "none.csv"),
        (&["new.csv", "--codes", "0"], "--codes 0"),
        (&["new.csv", "--spawn=-1"], "--spawn -1"),
        (&["new.csv", "--spawn", "0", "--codes", "2"], "raise --codes"),
    ] {
        let args = [&["teach", "model.dab"], args, &["-o", "no.dab"]].concat();
        assert!(refusal(&dab(&folder, &args), 1).contains(words), "{args:?}");
    }
    std::fs::write(folder.join("broken.csv"), "1,2\n3,x\n").unwrap();
    assert!(
        refusal(&dab(&folder, &["teach", "model.dab", "broken.csv", "-o", "no.dab"]), 1)
            .contains("nothing was taught")
    );
    assert!(!folder.join("no.dab").exists());
}

/// Forty inputs and room for fewer axes: what they leave out cannot be taught, and finer codes are no way out.
#[test]
fn rows_outside_of_the_axes_are_not_taught_and_the_only_advice_is_to_fit_again() {
    let folder = folder("teach-outside");
    let mut random = Random::new(1, "teach");
    let (mut rows, mut labels) = (String::new(), String::new());
    for row in 0..600 {
        let class = row % 4;
        let at = |i: usize| if i < 4 && i % 2 == class / 2 { 4.0 } else { 0.0 };
        let values: Vec<String> = (0..40).map(|i| (at(i) + random.normal()).to_string()).collect();
        rows += &(values.join(",") + "\n");
        labels += &format!("{class}\n");
    }
    std::fs::write(folder.join("rows.csv"), rows).unwrap();
    std::fs::write(folder.join("labels.csv"), labels).unwrap();
    let far: Vec<&str> = (0..40).map(|i| if i % 5 == 0 { "60" } else { "-60" }).collect();
    std::fs::write(folder.join("far.csv"), far.join(",") + "\n").unwrap();
    let fit =
        ["fit", "--features", "rows.csv", "--labels", "labels.csv", "--flash", "8192", "--fast", "--quiet"];
    text(dab(&folder, &[&fit[..], &["--out", "out"]].concat()));
    assert!(
        text(dab(&folder, &["inspect", "out/model.dab"])).contains("the last is what the others leave out")
    );
    let said = text(dab(&folder, &["teach", "out/model.dab", "far.csv", "-o", "taught.dab"]));
    let last = said.lines().last().unwrap();
    assert!(last.contains("1 of 1 row is STILL NOT FAMILIAR: what lies outside of the axes"), "{said}");
    assert!(last.contains("fit again") && !last.contains("--spawn"), "{said}");
}
