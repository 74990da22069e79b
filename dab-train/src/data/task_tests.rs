//! What a task refuses and warns about, and how the sources of data are named.

use super::*;

fn classes(labels: &[u32], count: usize) -> Split {
    let rows: Vec<[f32; 2]> = (0..labels.len()).map(|i| [i as f32, 1.0]).collect();
    Split {
        inputs: Table::from_rows(&rows).unwrap(),
        targets: Targets::Classes { labels: labels.to_vec(), count },
    }
}

fn task(train: Split, test: Split) -> Task {
    Task { name: "t".into(), held_out: test.clone(), train, test, ood: Vec::new() }
}

fn refusal(task: &Task) -> String {
    task.check().unwrap_err().to_string()
}

#[test]
fn one_class_and_untrained_classes_are_refused() {
    assert!(refusal(&task(classes(&[1, 1], 2), classes(&[1], 2))).contains("one class only"));
    assert!(refusal(&task(classes(&[0, 1], 3), classes(&[2], 3))).contains("class 2 occurs in held-out"));
    assert!(refusal(&task(classes(&[0, 5], 3), classes(&[0], 3))).contains("label 5"));
}

#[test]
fn targets_that_never_change_are_refused_or_told() {
    let regression = |first: f32, rows: &[[f32; 2]]| Split {
        inputs: Table::from_rows(&[[first], [first + 1.0], [first + 2.0]]).unwrap(),
        targets: Targets::Regression(Table::from_rows(rows).unwrap()),
    };
    let flat = |first| regression(first, &[[3.5, 1.0]; 3]);
    let half = |first| regression(first, &[[3.5, 1.0], [3.5, 2.0], [3.5, 3.0]]);
    let said = refusal(&task(flat(0.0), flat(3.0)));
    assert!(
        said.contains("the target is 3.5 in all of 3 training rows: there is nothing to predict"),
        "{said}"
    );
    let half = task(half(0.0), half(3.0));
    half.check().unwrap();
    let short = "only 3 held-out rows for the band of the predictions: it holds 75 % of fresh targets, on average, not 95 %";
    assert_eq!(half.warnings(), ["target column 1 is constant: nothing is learnt from it", short]);
}

#[test]
fn numbers_beyond_the_device_s_are_refused_and_outliers_told() {
    let mut huge = task(classes(&[0, 1], 2), classes(&[1], 2));
    huge.train.inputs.values[2] = 1e30;
    let said = refusal(&huge);
    assert!(said.contains("train inputs: 1e30 in row 2, column 1 is beyond ±1.1e15"), "{said}");
    assert!(said.contains("correct or remove this row, or give the column in another unit"), "{said}");
    let mut far = task(classes(&[0, 1, 0, 1], 2), classes(&[1], 2));
    far.train.inputs.values[4] = 1e12;
    let told = far.warnings().join("\n");
    assert!(
        told.contains("1000000000000 in training row 3, column 1 is more than 1e6 times as far out"),
        "{told}"
    );
    // Rows as the file counts them, columns by name.
    let mut named = described(&["time", "speed"]);
    named.rows.train = vec![2, 3, 7, 8];
    let told = far.warnings_of(&named).join("\n");
    assert!(told.contains("in row 7 of the training file, column 1 `time` is more than"), "{told}");
    far.train.inputs.values[4] = 1e3;
    assert_eq!(far.warnings().len(), 1, "a far row is no broken one: {:?}", far.warnings());
}

#[test]
fn shapes_and_nan_are_refused() {
    let good = task(classes(&[0, 1], 2), classes(&[1], 2));
    good.check().unwrap();
    let mut wide = good.clone();
    wide.ood.push(("far".into(), Table::new(1, 3, vec![0.0; 3]).unwrap()));
    assert!(refusal(&wide).contains("OOD set far has 3 columns"));
    let mut nan = good.clone();
    nan.train.inputs.values[0] = f32::NAN;
    assert!(refusal(&nan).contains("train inputs: NaN"));
    let mut short = good;
    short.test.targets = Targets::Classes { labels: vec![], count: 2 };
    assert!(refusal(&short).contains("1 input but 0 targets"));
}

#[test]
fn absent_classes_and_constant_columns_warn() {
    let warnings = task(classes(&[0, 2], 4), classes(&[0], 4)).warnings();
    assert_eq!(warnings.len(), 2);
    assert!(warnings[0].contains("class 1, 3") && warnings[1].contains("column 2"), "{warnings:?}");
}

fn described(inputs: &[&str]) -> Description {
    Description {
        input_names: inputs.iter().map(|&name| name.to_owned()).collect(),
        ..Description::default()
    }
}

#[test]
fn columns_are_told_by_their_names() {
    let odd = task(classes(&[0, 1], 2), classes(&[0], 2));
    assert_eq!(
        odd.warnings_of(&described(&["time", "bias"])),
        ["constant input column 2 `bias` carries no information"]
    );
    let mut both = odd.clone();
    both.train.inputs.values = vec![1.0; 4];
    assert_eq!(both.warnings(), ["constant input columns 1, 2 carry no information"]);
}

#[test]
fn targets_of_different_sizes_and_a_short_band_are_told() {
    let targets = |first: usize, rows: usize, size: f32| {
        let row = |row: usize| [row as f32, size * (5 * (row % 3)) as f32];
        let table = Table::from_rows(&(0..rows).map(row).collect::<Vec<_>>()).unwrap();
        let inputs = Table::column((first..first + rows).map(|row| row as f32).collect());
        Split { inputs, targets: Targets::Regression(table) }
    };
    let warned = |held_out: usize, size: f32| {
        let mut task = task(targets(0, 30, size), targets(30, 5, size));
        task.held_out = targets(35, held_out, size);
        task.warnings()
    };
    assert!(warned(19, 1.0).is_empty(), "{:?}", warned(19, 1.0));
    // 18 of 19 are less than 95 %.
    assert!(
        matches!(&warned(9, 1.0)[..], [band] if band.contains("9 held-out rows") && band.contains("holds 90 %"))
    );
    assert_eq!(warned(18, 1.0).len(), 1);
    let uneven = warned(30, 1e-4);
    assert!(
        matches!(&uneven[..], [one] if one.contains("the 2 targets share one RMSE, and one varies")),
        "{uneven:?}"
    );
}

#[test]
fn copies_of_training_rows_are_told() {
    let split = |first: u32, rows: u32| {
        let inputs: Vec<[f32; 2]> =
            (first..first + rows).map(|row| [row as f32, 1.0 + (row % 7) as f32]).collect();
        let labels = (0..rows).map(|row| row % 2).collect();
        Split { inputs: Table::from_rows(&inputs).unwrap(), targets: Targets::Classes { labels, count: 2 } }
    };
    let warned = |copied: u32| {
        let mut task = task(split(0, 100), split(100 - copied, 40));
        task.held_out = split(200, 20);
        task.warnings()
    };
    assert!(warned(0).is_empty() && warned(4).is_empty(), "{:?}", warned(4));
    assert!(matches!(&warned(5)[..], [one] if one.starts_with("5 of 60 held-out and test rows are copies")));
    let fresh = task(split(0, 100), split(200, 40));
    let calibrated = |copied: u32| {
        let calibration = Some(split(100 - copied, 40).inputs);
        fresh.warnings_of(&Description { calibration, ..Description::default() })
    };
    assert!(matches!(&calibrated(5)[..], [one] if one.starts_with("5 of 40 calibration rows are copies")));
    assert_eq!(calibrated(4), Vec::<String>::new());
}

#[test]
fn a_large_offset_is_told_and_small_noise_is_none() {
    let with = |values: [f32; 4]| {
        let mut task = task(classes(&[0, 1, 0, 1], 2), classes(&[0], 2));
        task.train.inputs.values.iter_mut().step_by(2).zip(values).for_each(|(x, value)| *x = value);
        task.warnings_of(&described(&["time", "bias"]))
    };
    for far in [[1.7e9; 4], [1.7e9, 1.7e9, 1.700_000_1e9, 1.7e9], [-1.7e9, -1.7e9 - 128.0, -1.7e9, -1.7e9]] {
        let said = with(far).join("\n");
        assert!(
            said.contains("input column 1 `time` is about") && said.contains("subtract the offset"),
            "{said}"
        );
        assert!(!said.contains("column 1 `time` carries"), "{said}");
    }
    for near in [[1.0, 1.000_001, 1.0, 1.0], [1e6, 1e6 + 4.0, 1e6 - 4.0, 1e6], [20.0; 4]] {
        assert!(!with(near).join("\n").contains("offset"), "{near:?}");
    }
    // What explains a model that float32 cannot compute.
    let why = |values: [f32; 4]| {
        let mut task = task(classes(&[0, 1, 0, 1], 2), classes(&[0], 2));
        task.train.inputs.values.iter_mut().step_by(2).zip(values).for_each(|(x, value)| *x = value);
        task.inexact(&["time".to_owned(), "bias".to_owned()])
    };
    assert!(why([1e6, 1e6 + 4.0, 1e6 - 4.0, 1e6]).unwrap().contains("column 1 `time` is about 1e6"));
    assert!(why([1e4, 1e4 + 4.0, 1e4 - 4.0, 1e4]).is_none() && why([20.0; 4]).is_none());
}

#[test]
fn configs_are_tagged_and_strict() {
    let config: DataConfig = toml::from_str("kind = \"regression-clusters\"\nclusters = 2").unwrap();
    assert!(matches!(config, DataConfig::RegressionClusters(_)));
    let text = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<DataConfig>(&text).unwrap(), config);
    for bad in ["kind = \"uci\"\nfoo = 1", "kind = \"moon\"", "clusters = 1"] {
        assert!(toml::from_str::<DataConfig>(bad).is_err(), "{bad}");
    }
}

#[test]
fn missing_data_says_what_and_where() {
    let config: DataConfig = toml::from_str("kind = \"clinc150\"").unwrap();
    let message = load(&config, 0, Path::new("/nowhere")).unwrap_err().to_string();
    assert!(message.contains("clinc150/clinc150_minilm_f16.npz: looked for /nowhere/clinc150/"), "{message}");
    assert!(message.contains(DATA_VARIABLE) && message.contains("`dab data clinc150`"), "{message}");
    let own = stored(Path::new("/nowhere"), "own.npz").unwrap_err().to_string();
    assert!(own.contains("/nowhere/own.npz") && !own.contains("dab data"), "{own}");
}
