//! `dab report`: the page of an existing model, from files, or one line that says what does not fit.

use std::path::Path;

use dab_train::internals::support::random::Random;

use crate::{dab, folder, refusal, text};

/// `rows` rows of two classes, 6 apart, as CSV; `far` moves all of them.
fn save(folder: &Path, name: &str, rows: usize, far: f64) {
    let mut random = Random::new(3, name);
    let mut csv = "left,right,kind\n".to_owned();
    for row in 0..rows {
        let centre = far + 6.0 * (row % 2) as f64;
        csv += &format!("{},{},{}\n", centre + random.normal(), random.normal(), ["elm", "oak"][row % 2]);
    }
    std::fs::write(folder.join(name), csv).unwrap();
}

fn fitted(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    save(&folder, "train.csv", 2400, 0.0);
    save(&folder, "fresh.csv", 400, 0.0);
    save(&folder, "far.csv", 100, 40.0);
    let fit = "fit --features train.csv --labels train.csv:kind --epochs 3 --out out --no-baselines --quiet";
    text(dab(&folder, &fit.split(' ').collect::<Vec<_>>()));
    folder
}

#[test]
fn an_existing_model_is_reported_on_new_rows() {
    let folder = fitted("report");
    let args =
        "report out/model.dab --data fresh.csv --labels fresh.csv:kind --ood away=far.csv -o page.html";
    let said = text(dab(&folder, &args.split(' ').collect::<Vec<_>>()));
    assert!(
        said.starts_with("Finds 100 % of strangers (away) at 5 % false alarms; trust its p-values: "),
        "{said}"
    );
    assert!(said.contains("report in page.html"), "{said}");
    // On the page no line breaks inside a number or a word.
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    let page = page.replace('\u{a0}', " ").replace('\u{2011}', "-");
    for part in
        [said.lines().next().unwrap(), "labelled elm", "Most familiar rows of away", "id=\"calibration\""]
    {
        assert!(page.contains(part), "{part} is missing");
    }
    // Scores are the device's: those of `dab score`.
    let scored = text(dab(&folder, &["score", "out/model.dab", "fresh.csv"]));
    let alarms = scored.lines().filter(|l| l.contains(",doubtful,") || l.contains(",unfamiliar,")).count();
    let share = format!("{} at 5 %", dab_train::internals::report::words::percent(alarms as f64 / 400.0));
    assert!(said.contains(&share), "{said}, {alarms} alarms of `dab score`");
}

#[test]
fn training_rows_bring_baselines_and_rates_move_the_alarms() {
    let folder = fitted("report-train");
    let args = "report out/model.dab --data fresh.csv --labels fresh.csv:kind --ood away=far.csv --train train.csv \
                --train-labels train.csv:kind --doubtful 0.2";
    let said = text(dab(&folder, &args.split_whitespace().collect::<Vec<_>>()));
    assert!(said.starts_with("Finds 100 % of strangers (away) at 20 % false alarms"), "{said}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap().replace('\u{2011}', "-");
    for part in ["cosine 1-NN", "Mahalanobis", "ViM"] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn training_rows_given_as_data_are_told() {
    let folder = fitted("report-copies");
    let args = "report out/model.dab --data train.csv --labels train.csv:kind --train train.csv --train-labels train.csv:kind";
    let output = dab(&folder, &args.split(' ').collect::<Vec<_>>());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    text(output);
    assert!(told.contains("2400 of 2400 rows of --data are copies of rows of --train"), "{told}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("2400 of 2400 rows") && !page.contains("opened once"), "{page}");
}

#[test]
fn without_labels_and_strangers_the_page_says_what_is_unknown() {
    let folder = fitted("report-bare");
    let said = text(dab(&folder, &["report", "out/model.dab", "--data", "fresh.csv"]));
    assert!(said.starts_with("Nobody has tried whether it finds strangers"), "{said}");
    assert!(folder.join("report.html").exists());
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let folder = fitted("report-refused");
    std::fs::write(folder.join("ash.csv"), "kind\nash\n").unwrap();
    std::fs::write(folder.join("one.csv"), "left,right,kind\n1,2,oak\n").unwrap();
    std::fs::write(folder.join("wide.csv"), "1,2,3\n").unwrap();
    for (args, words) in [
        ("--data one.csv --labels ash.csv:kind", "the model has no class ash (it has elm, oak)"),
        ("--data fresh.csv --labels one.csv:kind", "fresh.csv has 400 rows but one.csv:kind has 1"),
        ("--data wide.csv", "`wide.csv`: row 1: 3 values, expected 2"),
        ("--data ash.csv", "left"),
        ("--data one.csv --targets one.csv:left", "--targets needs a regression"),
        ("--data one.csv --ood =far.csv", "expected NAME=FILE"),
        ("--data one.csv --train train.csv", "--train needs --train-labels"),
        ("--data one.csv --doubtful 0.5 --unfamiliar 0.9", "use 0 < unfamiliar <= doubtful < 1"),
    ] {
        let all = format!("report out/model.dab -o no.html {args}");
        let said = refusal(&dab(&folder, &all.split(' ').collect::<Vec<_>>()), 1);
        assert!(said.contains(words), "{args}: {said}");
        assert!(!folder.join("no.html").exists(), "{args}");
    }
}
