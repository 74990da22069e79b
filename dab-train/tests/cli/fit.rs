//! `dab fit`: anybody's files in, a model out, or one line that says what is wrong and nothing written.

use std::path::Path;

use dab_train::{Error, Fit, internals::support::random::Random};
use serde_json::Value;

use crate::npy::{f32s, npy};
use crate::{dab, folder, refusal, text};

/// Rows of the training file.
const ROWS: usize = 300;
/// Columns of it.
const COLUMNS: usize = 4;

/// Three classes, 4 apart in the first column; `far` moves every row.
fn features(rows: usize, far: f32) -> Vec<f32> {
    let mut random = Random::new(1, "fit");
    let mut value = |i: usize| {
        let centre = if i.is_multiple_of(COLUMNS) { 4.0 * (i / COLUMNS % 3) as f32 } else { 0.0 };
        far + centre + 0.5 * random.normal() as f32
    };
    (0..rows * COLUMNS).map(&mut value).collect()
}

fn i64s(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// A folder with x.npy, y.npy and far.npy.
fn with_data(test: &str) -> std::path::PathBuf {
    let folder = folder(test);
    save_floats(&folder, "x.npy", &[ROWS, COLUMNS], &features(ROWS, 0.0));
    save_labels(&folder, "y.npy", |row| row % 3);
    save_floats(&folder, "far.npy", &[60, COLUMNS], &features(60, 20.0));
    folder
}

fn save_floats(folder: &Path, name: &str, shape: &[usize], values: &[f32]) {
    std::fs::write(folder.join(name), npy("<f4", false, shape, &f32s(values))).unwrap();
}

fn save_labels(folder: &Path, name: &str, label: impl Fn(i64) -> i64) {
    let labels = i64s((0..ROWS as i64).map(label));
    std::fs::write(folder.join(name), npy("<i8", false, &[ROWS], &labels)).unwrap();
}

/// `dab fit` with these arguments, split at spaces, into `out`.
fn fit(folder: &Path, args: &str) -> std::process::Output {
    let mut all = vec!["fit", "--out", "out", "--force", "--no-baselines", "--quiet"];
    all.extend(args.split(' '));
    dab(folder, &all)
}

fn json(path: &Path) -> Value {
    json_text(&std::fs::read_to_string(path).unwrap())
}

fn json_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn features_and_labels_become_a_model_that_finds_what_is_far() {
    let folder = with_data("fit");
    let output = dab(
        &folder,
        &[
            "fit",
            "--features",
            "x.npy",
            "--labels",
            "y.npy",
            "--ood",
            "far=far.npy",
            "--out",
            "out",
            "--quiet",
        ],
    );
    assert!(text(output).contains("results in out"));
    let out = folder.join("out");
    for file in ["report.html", "scores.csv", "experiment.toml", "roc.svg"] {
        assert!(out.join(file).exists(), "{file}");
    }
    let metrics = json(&out.join("metrics.json"));
    assert!(metrics["dab"]["classification"]["accuracy"].as_f64().unwrap() > 0.95, "{metrics}");
    assert!(metrics["dab"]["report"]["ood"]["far"]["auroc"].as_f64().unwrap() > 0.99, "{metrics}");
    assert!(metrics["parity"]["auroc_difference"].is_number() && metrics["baselines"]["scores"].is_array());

    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("The test rows were cut from the training file") && page.contains("opened once"));
    text(dab(&folder, &["self-test", "out/model.dab"]));
    let scored = text(dab(&folder, &["score", "out/model.dab", "far.npy"]));
    let begins =
        "uncertainty,p_value,verdict,nearest,unfamiliarity,ambiguity,ambiguity_p,class,runner_up,output_0,";
    assert!(scored.starts_with(begins), "{scored}");
    let familiar = scored.lines().skip(1).filter(|line| line.contains(",familiar,")).count();
    assert_eq!(familiar, 0, "{scored}");
    let strange = text(dab(&folder, &["explain", "out/model.dab", "far.npy"]));
    assert!(
        strange.contains("unlike the training data") && strange.contains("the most surprised"),
        "{strange}"
    );
    assert!(text(dab(&folder, &["verify", "out/model.dab"])).contains("agree on"));
    let shown = json_text(&text(dab(&folder, &["inspect", "out/model.dab", "--json"])));
    let views = shown["views"].as_array().unwrap();
    let bytes: u64 = views.iter().map(|view| view["bytes"].as_u64().unwrap()).sum();
    assert!(bytes < shown["flash_bytes"].as_u64().unwrap() && shown["format"] == "1.1", "{shown}");
    assert!(text(dab(&folder, &["inspect", "out/model.dab"])).contains("view 0"));
    let choice = &metrics["choice"];
    // A third of the strangers are mixed rows, which cannot be told from others where columns are independent: these, by chance
    // (.5), and nearly all hidden classes (.95) are .8.
    assert!(choice["auroc"].as_f64().unwrap() > 0.8 && choice["bytes"] == shown["flash_bytes"], "{choice}");
    assert!(choice["curve"].as_array().unwrap().iter().any(|point| point["chosen"] == true), "{choice}");

    // The experiment that was written gives the same model again, from any folder.
    let elsewhere = crate::folder("fit-elsewhere");
    let file = out.join("experiment.toml");
    let again = ["train", file.to_str().unwrap(), "--out", "again", "--no-baselines", "--quiet"];
    text(dab(&elsewhere, &again));
    let bytes = |path: &Path| std::fs::read(path.join("model.dab")).unwrap();
    assert_eq!(bytes(&out), bytes(&elsewhere.join("again")));
}

#[test]
fn the_flash_limits_the_file_and_fast_tries_nothing() {
    let folder = with_data("fit-flash");
    let size = |args: &str| {
        text(fit(&folder, &format!("--features x.npy --labels y.npy {args}")));
        let choice = json(&folder.join("out/metrics.json"))["choice"].take();
        let bytes = std::fs::metadata(folder.join("out/model.dab")).unwrap().len();
        assert_eq!(choice["bytes"], bytes);
        (bytes, choice)
    };
    let (small, tried) = size("--flash 6000");
    assert!(small <= 6000 && tried["folds"] == 12, "{tried}");
    let (fast, untried) = size("--flash 16K --fast");
    assert!(fast <= 16 << 10 && untried["folds"] == 0 && untried["auroc"].is_null(), "{untried}");
    let (_, limited) = size("--flash none --time 0.000001");
    assert_eq!(limited["folds"], 1);
    let said =
        refusal(&fit(&folder, "--features x.npy --labels y.npy --set data.held_out=0.45 --flash 1K"), 1);
    let least =
        said.split_once("hold no model of 4 inputs and 3 classes: allow at least ").expect("a size").1;
    let least = least.split_once(" with --flash").expect("where it is said").0;
    // What is said suffices, with tables of calibration at their largest.
    assert!(least == "5K" && size(&format!("--flash {least}")).0 <= 5 << 10, "{said}");
    assert!(
        refusal(&fit(&folder, "--features x.npy --labels y.npy --flash big"), 2).contains("16K, 1M or none")
    );
}

#[test]
fn a_network_that_was_trained_on_the_rows_is_told_and_calibration_rows_mend_it() {
    let folder = with_data("fit-calibration");
    // What a network makes of rows that it has not seen lies farther from its classes than what it was trained on.
    let mut random = Random::new(2, "unseen");
    let mut unseen = |rows: usize| -> Vec<f32> {
        features(rows, 0.0).into_iter().map(|x| x + random.normal() as f32).collect()
    };
    save_floats(&folder, "test.npy", &[ROWS, COLUMNS], &unseen(ROWS));
    save_floats(&folder, "unseen.npy", &[ROWS, COLUMNS], &unseen(ROWS));
    let args = "--features x.npy --labels y.npy --test test.npy --test-labels y.npy --fast";
    let output = fit(&folder, args);
    let warned = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(text(output).contains("false alarms among 300 test rows: doubtful"), "{warned}");
    assert!(
        warned.contains("do not hold for the test rows: doubtful") && warned.contains("--calibration FILE"),
        "{warned}"
    );
    let alarm = |verdict: &str| {
        let metrics = json(&folder.join("out/metrics.json"));
        let alarms = metrics["dab"]["alarms"].as_array().unwrap().clone();
        alarms.into_iter().find(|alarm| alarm["verdict"] == verdict).unwrap()
    };
    assert_eq!(alarm("doubtful")["kept"], false);
    let output = fit(&folder, &format!("{args} --calibration unseen.npy"));
    let warned = String::from_utf8(output.stderr.clone()).unwrap();
    text(output);
    assert!(warned.is_empty(), "{warned}");
    for verdict in ["doubtful", "unfamiliar", "ambiguous"] {
        let alarm = alarm(verdict);
        assert!(alarm["kept"] == true && alarm["held_out"] == 225, "{alarm}");
    }
    save_floats(&folder, "wide.npy", &[ROWS / 2, 2 * COLUMNS], &features(ROWS, 0.0));
    let said = refusal(&fit(&folder, &format!("{args} --calibration wide.npy")), 1);
    assert!(said.contains("the calibration rows have 8 columns, train has 4"), "{said}");
}

#[test]
fn the_users_own_last_layer_gives_the_logits() {
    use safetensors::{Dtype, tensor::TensorView};

    let folder = with_data("fit-head");
    // Classes at 0, 4 and 8 of the first column: the middle of each pair is torn.
    let weight: Vec<f32> = [0.0, 4.0, 8.0].iter().flat_map(|c| [*c, 0.0, 0.0, 0.0]).collect();
    let bias: Vec<f32> = [0.0, 4.0, 8.0].iter().map(|c: &f32| -0.5 * c * c).collect();
    let (weight, bias) = (f32s(&weight), f32s(&bias));
    let file = [
        ("fc.weight", TensorView::new(Dtype::F32, vec![3, COLUMNS], &weight).unwrap()),
        ("fc.bias", TensorView::new(Dtype::F32, vec![3], &bias).unwrap()),
    ];
    std::fs::write(folder.join("last.safetensors"), safetensors::serialize(file, None).unwrap()).unwrap();
    let args =
        "fit --out out --quiet --features x.npy --labels y.npy --head last.safetensors --ood far=far.npy";
    text(dab(&folder, &args.split(' ').collect::<Vec<_>>()));
    let baselines = json(&folder.join("out/metrics.json"))["baselines"]["scores"].take();
    assert!(baselines.to_string().contains("\"MSP (own)\""), "{baselines}");
    save_floats(&folder, "between.npy", &[1, COLUMNS], &[2.1, 0.0, 0.0, 0.0]);
    let scored = text(dab(&folder, &["score", "out/model.dab", "between.npy"]));
    let fields: Vec<&str> = scored.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(fields[7..9], ["1", "0"], "{scored}");
    // Logits 0, 4 · 2.1 − 8 and 8 · 2.1 − 32, less their mean: the same probabilities, and an energy that means something.
    let logits: Vec<f32> = fields[9..].iter().map(|x| x.parse().unwrap()).collect();
    let mean = (0.4 - 15.2) / 3.0;
    for (found, own) in logits.iter().zip([0.0, 0.4, -15.2]) {
        assert!((found - (own - mean)).abs() < 1e-4, "{scored}");
    }
    let said = text(dab(&folder, &["explain", "out/model.dab", "between.npy"]));
    assert!(said.contains("between 1 and 0"), "{said}");
    std::fs::write(folder.join("none.safetensors"), b"words").unwrap();
    let said = refusal(
        &fit(&folder, "--features x.npy --labels y.npy --set data.held_out=0.45 --head none.safetensors"),
        1,
    );
    assert!(said.contains("none.safetensors is no last layer"), "{said}");
}

#[test]
fn rows_in_memory_give_the_bytes_of_the_command() {
    let folder = with_data("fit-memory");
    let values = features(ROWS, 0.0);
    let rows: Vec<&[f32]> = values.chunks(COLUMNS).collect();
    let labels: Vec<u32> = (0..ROWS as u32).map(|row| row % 3).collect();
    let same = || Fit::classes(&rows, &labels).unwrap().name("x").seed(5).without_baselines();
    text(fit(&folder, "--features x.npy --labels y.npy --seed 5"));
    assert_eq!(same().run().unwrap().model, std::fs::read(folder.join("out/model.dab")).unwrap());
    text(fit(&folder, "--features x.npy --labels y.npy --seed 5 --epochs 3"));
    let run = same().epochs(3).run().unwrap();
    assert_eq!(run.model, std::fs::read(folder.join("out/model.dab")).unwrap());
    assert_eq!(run.scores.test.uncertainty.len(), run.task.test.inputs.rows);

    let short = Fit::classes(&rows, &labels[1..]).err().unwrap();
    assert!(
        matches!(short, Error::Data(_)) && short.to_string().contains("300 rows but 299 labels"),
        "{short}"
    );
    let none = Fit::classes(&rows, &labels).unwrap().codes(0).run().unwrap_err();
    assert!(matches!(none, Error::Experiment(_)) && none.to_string().contains("bottleneck.codes"), "{none}");
}

#[test]
fn csv_and_npz_and_given_test_files_do_as_well() {
    let folder = with_data("fit-formats");
    let x = features(ROWS, 0.0);
    let rows: Vec<String> = (0..ROWS)
        .map(|i| format!("{},{},{}", x[i * COLUMNS], x[i * COLUMNS + 1], ["oak", "elm", "fir"][i % 3]))
        .collect();
    std::fs::write(folder.join("trees.csv"), format!("width,height,species\n{}\n", rows.join("\n"))).unwrap();
    text(fit(&folder, "--features trees.csv --labels trees.csv:species --epochs 3"));
    let shown: Value =
        serde_json::from_str(&text(dab(&folder, &["inspect", "out/model.dab", "--json"]))).unwrap();
    let shown = shown.to_string();
    assert!(shown.contains("elm, fir, oak") && shown.contains("width, height"), "{shown}");

    let mut archive = zip::ZipWriter::new(std::fs::File::create(folder.join("all.npz")).unwrap());
    for (name, shape, values) in [
        ("x", vec![ROWS as u64, COLUMNS as u64], x.clone()),
        ("y", vec![ROWS as u64], (0..ROWS).map(|row| (row % 3) as f32).collect()),
    ] {
        use npyz::WriterBuilder;
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        let mut array =
            npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut archive).begin_nd().unwrap();
        array.extend(values).unwrap();
        array.finish().unwrap();
    }
    archive.finish().unwrap();
    let said = text(fit(
        &folder,
        "--features all.npz:x --labels all.npz:y --test x.npy --test-labels y.npy --epochs 3",
    ));
    assert!(said.contains("accuracy"), "{said}");
    let metrics = json(&folder.join("out/metrics.json"));
    assert_eq!(metrics["experiment"], "all");
}

#[test]
fn targets_make_a_regression() {
    let folder = with_data("fit-regression");
    let targets: Vec<f32> = features(ROWS, 0.0).chunks(COLUMNS).map(|row| 10.0 * row[0] + row[1]).collect();
    save_floats(&folder, "t.npy", &[ROWS], &targets);
    text(fit(&folder, "--features x.npy --targets t.npy --ood far=far.npy --epochs 60"));
    let metrics = json(&folder.join("out/metrics.json"));
    // The targets' standard deviation is about 33.
    assert!(metrics["dab"]["regression"]["rmse"].as_f64().unwrap() < 10.0, "{metrics}");
    // Why it learns is on the page as well.
    assert!(metrics["reasons"][0].as_str().unwrap().contains("because that was asked for"), "{metrics}");
    let page = std::fs::read_to_string(folder.join("out/report.html")).unwrap();
    assert!(page.contains("Why this model") && page.contains("because that was asked for"));
    assert!(metrics["dab"]["report"]["ood"]["far"]["auroc"].as_f64().unwrap() > 0.95, "{metrics}");
}

/// A laboratory's tables: a handful of rows, most of whose columns are 0, and a label that somebody forgot.
#[test]
fn settings_of_learning_are_those_of_the_network_that_is_judged() {
    let folder = with_data("fit-learn-settings");
    let model = |args: &str| {
        text(fit(&folder, &format!("--features x.npy --labels y.npy {args}")));
        (
            std::fs::read(folder.join("out/model.dab")).unwrap(),
            json(&folder.join("out/metrics.json"))["reasons"].clone(),
        )
    };
    let (asked, reasons) = model("--epochs 2");
    assert!(reasons.to_string().contains("negative log-likelihood"), "{reasons}");
    for same in ["--learn --epochs 2", "--learn --set training.epochs=2"] {
        assert!((asked.clone(), reasons.clone()) == model(same), "{same}: {reasons} and {}", model(same).1);
    }
}

#[test]
fn a_network_that_learns_nothing_is_left_out_unless_it_is_told_to_learn() {
    let folder = with_data("fit-learn-nothing");
    // Labels that inputs know nothing of.
    for classes in [2, 3] {
        save_labels(&folder, "y.npy", |row| (row * row * 7919 / 13) % classes);
        text(fit(&folder, "--features x.npy --labels y.npy --learn"));
        let experiment = std::fs::read_to_string(folder.join("out/experiment.toml")).unwrap();
        let reasons = json(&folder.join("out/metrics.json"))["reasons"].to_string();
        assert!(
            experiment.contains("[retrofit]") && reasons.contains("so the model is computed"),
            "{classes}: {reasons}"
        );
        text(fit(&folder, "--features x.npy --labels y.npy --learn --epochs 2"));
        let experiment = std::fs::read_to_string(folder.join("out/experiment.toml")).unwrap();
        assert!(!experiment.contains("[retrofit]"), "{experiment}");
    }
}

#[test]
fn small_tables_are_fitted_or_refused_in_words() {
    let folder = folder("small-tables");
    let mut random = Random::new(3, "small");
    std::fs::write(folder.join("tiny.csv"), "x,y\n1,2.1\n2,3.9\n3,6.2\n4,7.8\n5,10.1\n").unwrap();
    text(fit(&folder, "--features tiny.csv --targets tiny.csv:y"));
    // Nothing was held out: no band.
    let metrics = json(&folder.join("out/metrics.json"));
    assert!(metrics.pointer("/dab/interval").is_none_or(Value::is_null), "{metrics}");
    assert!(!text(dab(&folder, &["inspect", "out/model.dab"])).contains("output_bands"));
    assert!(
        metrics["reasons"][0].as_str().unwrap().starts_with("ridge regression: 4 training rows"),
        "{metrics}"
    );
    let said = text(dab(&folder, &["compare", "out", "out"]));
    assert!(said.contains("RMSE") && said.contains("no plot"), "{said}");
    // Of 90 columns about ten are not 0 in a row, and rows are fewer than columns.
    let row = |class: usize, random: &mut Random| -> Vec<f32> {
        let value = |column: usize| match random.below(9) == 0 || column % 7 == class {
            true => random.below(17) as f32,
            false => 0.0,
        };
        (0..90).map(value).collect()
    };
    let rows: Vec<f32> = (0..66).flat_map(|at| row(at % 6, &mut random)).collect();
    save_floats(&folder, "x.npy", &[66, 90], &rows);
    let labels = i64s((0..66).map(|at| at % 6));
    std::fs::write(folder.join("y.npy"), npy("<i8", false, &[66], &labels)).unwrap();
    text(fit(&folder, "--features x.npy --labels y.npy"));
    // Fresh rows are about as far from the codes as rows were that a fit had not seen.
    let median = json(&folder.join("out/metrics.json"))["dab"]["median_uncertainty"].as_f64().unwrap();
    assert!(median < 1e3, "{median}");
    std::fs::write(folder.join("blank.csv"), "a,kind\n1,cat\n2,dog\n3,\n4,dog\n5,cat\n6,cat\n").unwrap();
    let said = refusal(&fit(&folder, "--features blank.csv --labels blank.csv:kind"), 1);
    assert!(said.contains("the label of row 3 is missing"), "{said}");
}

#[test]
fn what_was_asked_for_is_what_runs() {
    let folder = with_data("fit-wishes");
    let wish = "--features x.npy --labels y.npy --codes 5 --dim 3 --epochs 2 --seed 7 --name mine \
                --set objective.beta=0.5";
    text(fit(&folder, wish));
    let experiment = std::fs::read_to_string(folder.join("out/experiment.toml")).unwrap();
    for line in ["name = \"mine\"", "seed = 7", "dim = 3", "codes = 5", "beta = 0.5", "epochs = 2"] {
        assert!(experiment.contains(line), "no `{line}` in {experiment}");
    }
    let args = ["fit", "--features", "x.npy", "--labels", "y.npy", "--epochs", "2", "--json-lines"];
    let lines = text(dab(&folder, &args));
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap()["epoch"]["nll"].is_number(), "{line}");
    }
    assert!(folder.join("runs/x/model.dab").exists(), "the default folder is named after the features");
}

#[test]
fn what_is_odd_but_usable_is_said_and_done() {
    let folder = with_data("fit-warnings");
    let warned = |args: &str| {
        let output = fit(&folder, args);
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        text(output);
        assert!(stderr.lines().all(|line| line.starts_with("dab: ")), "{stderr}");
        stderr
    };
    let usual = warned("--features x.npy --labels y.npy --epochs 1");
    // Views stand beside the network, and a quarter of the 24 held-out rows shapes their scores.
    assert!(usual.contains("`unfamiliar` mean p ≤ 0.053 instead of 0.05 and 0.01"), "{usual}");
    assert!(usual.contains("only 18 rows that calibrate") && usual.lines().count() == 1, "{usual}");
    save_labels(&folder, "gaps.npy", |row| [-1, 4, 70_000][(row % 3) as usize]);
    let gaps = warned("--features x.npy --labels gaps.npy --epochs 1");
    assert!(gaps.contains("labels do not run from 0 to 2") && gaps.contains("-1, 4, 70000"), "{gaps}");
    let header = text(dab(&folder, &["score", "out/model.dab", "far.npy"]));
    let (scores, classes) =
        ("unfamiliarity,ambiguity,ambiguity_p,class,runner_up", "class_-1,class_4,class_70000");
    assert!(
        header.starts_with(&format!("uncertainty,p_value,verdict,nearest,{scores},{classes}")),
        "{header}"
    );
    save_labels(&folder, "rare.npy", |row| if row < 3 { 9 } else { row % 2 });
    let rare = warned("--features x.npy --labels rare.npy --epochs 1");
    assert!(rare.contains("class 9 has only 2 training rows"), "{rare}");
    let mut constant = features(ROWS, 0.0);
    constant.iter_mut().skip(2).step_by(COLUMNS).for_each(|x| *x = 5.0);
    save_floats(&folder, "constant.npy", &[ROWS, COLUMNS], &constant);
    let constant = warned("--features constant.npy --labels y.npy --epochs 1");
    assert!(constant.contains("constant input column 3 carries no information"), "{constant}");
}

#[test]
fn files_that_cannot_be_used_are_refused_and_nothing_is_written() {
    let folder = with_data("fit-refusals");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let floats = |name: &str, shape: &[usize], values: &[f32]| save_floats(&folder, name, shape, values);
    let good = features(ROWS, 0.0);
    for (name, bad) in [("nan.npy", f32::NAN), ("inf.npy", f32::INFINITY)] {
        let mut values = good.clone();
        values[5 * COLUMNS + 2] = bad;
        floats(name, &[ROWS, COLUMNS], &values);
    }
    floats("cube.npy", &[ROWS / 2, 2, COLUMNS], &good);
    floats("wide.npy", &[ROWS / 2, 2 * COLUMNS], &good);
    floats("constant.npy", &[ROWS, COLUMNS], &[1.5; ROWS * COLUMNS]);
    floats("nothing.npy", &[0, COLUMNS], &[]);
    floats("four.npy", &[4, COLUMNS], &good[..4 * COLUMNS]);
    floats("one-hot.npy", &[ROWS, 3], &[0.0; ROWS * 3]);
    floats("real.npy", &[ROWS], &good[..ROWS]);
    floats("short.npy", &[150], &[0.0; 150]);
    write("complex.npy", &npy("<c8", false, &[ROWS, COLUMNS], &[0; ROWS * COLUMNS * 8]));
    write("cut.npy", &npy("<f4", false, &[ROWS, COLUMNS], &f32s(&good[..99])));
    write("empty.npy", b"");
    write("empty.csv", b"");
    write("words.npy", b"these are words");
    write("words.npz", b"these are words");
    write("ragged.csv", b"1,2\n3\n");
    write("text.csv", b"a,b,k\n1,2,x\n3,oops,y\n");
    write("mixed.csv", b"w,2020\n1,2\n3,4\n");
    save_labels(&folder, "one.npy", |_| 3);
    save_labels(&folder, "ids.npy", |row| row);
    save_labels(&folder, "four-classes.npy", |row| row % 4);
    write("four-labels.npy", &npy("<i8", false, &[4], &i64s([0, 1, 0, 1])));

    let cases = [
        ("--features nan.npy --labels y.npy", "nan.npy: NaN in row 6, column 3"),
        ("--features inf.npy --labels y.npy", "inf.npy: inf in row 6, column 3"),
        ("--features cube.npy --labels y.npy", "cube.npy: shape [150, 2, 4]; expected rows × columns"),
        ("--features constant.npy --labels y.npy", "every input column is constant"),
        ("--features nothing.npy --labels y.npy", "nothing.npy: 0 rows of 4 columns"),
        ("--features complex.npy --labels y.npy", "complex.npy: values of type"),
        ("--features cut.npy --labels y.npy", "cut.npy: its numbers end too early"),
        ("--features empty.npy --labels y.npy", "empty.npy is empty (0 bytes)"),
        ("--features empty.csv --labels y.npy", "empty.csv is empty (0 bytes)"),
        ("--features words.npy --labels y.npy", "words.npy is no npy file"),
        ("--features words.npz --labels y.npy", "words.npz is no npz file"),
        ("--features missing.npy --labels y.npy", "missing.npy: No such file"),
        ("--features x.orc --labels y.npy", "expected a file named .npy, .npz, .csv"),
        ("--features ragged.csv --labels y.npy", "ragged.csv"),
        ("--features text.csv --labels text.csv:k", "column 2 `b`: `oops` is not a number"),
        ("--features text.csv --labels text.csv:z", "no column z"),
        (
            "--features mixed.csv --labels y.npy",
            "mixed.csv: the first row has numbers and text (column 1: `w`): say --header",
        ),
        ("--features mixed.csv --labels y.npy --header no", "row 1, column 1: `w` is not a number"),
        ("--features mixed.csv --labels y.npy --header yes", "mixed.csv has 2 rows but"),
        ("--features x.npy --labels short.npy", "x.npy has 300 rows but"),
        ("--features x.npy --labels one-hot.npy", "save y.argmax(1)"),
        ("--features x.npy --labels real.npy", "numbers to predict are targets (--targets)"),
        ("--features x.npy --labels one.npy", "one class only"),
        ("--features x.npy --labels ids.npy", "300 different labels in 300 rows are no classes"),
        ("--features x.npy --labels y.npy --test wide.npy --test-labels short.npy", "test has 8 columns"),
        (
            "--features x.npy --labels y.npy --test x.npy --test-labels four-classes.npy",
            "class 3 has 75 rows in",
        ),
        ("--features four.npy --labels four-labels.npy", "4 rows: too few to set some aside"),
        ("--features x.npy --labels y.npy --ood w=wide.npy", "OOD set w has 8 columns, train has 4"),
        ("--features x.npy --labels y.npy --ood n=nan.npy", "nan.npy: NaN in row 6"),
        ("--features x.npy --labels y.npy --ood test=far.npy", "the name test is taken"),
        ("--features x.npy --labels y.npy --ood =far.npy", "expected NAME=FILE"),
        ("--features x.npy --labels y.npy --codes 0", "bottleneck.codes is 0"),
        ("--features x.npy --labels y.npy --dim 5000", "bottleneck.dim is 5000, allowed are 1 to 1024"),
        ("--features x.npy --labels y.npy --epochs 0", "training.epochs"),
        ("--features x.npy --labels y.npy --set training.frob=1", "frob"),
    ];
    for (args, words) in cases {
        let said = refusal(&fit(&folder, args), 1);
        assert!(said.contains(words), "{args}: {said}");
        assert!(!folder.join("out").exists(), "{args} left something behind");
    }
    std::fs::create_dir(folder.join("out")).unwrap();
    write("out/model.dab", b"from before");
    assert!(refusal(&fit(&folder, "--features nan.npy --labels y.npy"), 1).contains("NaN"));
    assert_eq!(std::fs::read(folder.join("out/model.dab")).unwrap(), b"from before");
    assert_eq!(std::fs::read_dir(folder.join("out")).unwrap().count(), 1);
    for (args, words) in [
        ("--features x.npy", "--labels <FILE>|--targets <FILE>"),
        ("--features x.npy --labels y.npy --targets y.npy", "--targets"),
        ("--features x.npy --labels y.npy --test x.npy", "--test-labels"),
    ] {
        assert!(refusal(&fit(&folder, args), 2).contains(words), "{args}");
    }
}

#[test]
fn an_output_folder_that_cannot_be_is_refused_before_the_training() {
    let folder = with_data("fit-out");
    let args =
        ["fit", "--features", "x.npy", "--labels", "y.npy", "--epochs", "100000", "--out", "y.npy/sub"];
    let output = dab(&folder, &args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write into y.npy/sub"), "{stderr}");
}
