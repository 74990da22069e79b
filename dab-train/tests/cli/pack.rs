//! `dab pack`: what it makes and, one by one, what it refuses.

use safetensors::Dtype;
use serde_json::{Value, json};

use crate::weights::Weights;
use crate::{dab, folder, refusal, text};

/// A name for the test's report, a broken file, and what the refusal must say.
type Case = (&'static str, Weights, &'static [&'static str]);

/// Every case is refused in one line with those words, and leaves no file behind.
fn all_refused(test: &str, cases: Vec<Case>) {
    let folder = folder(test);
    for (name, weights, words) in cases {
        weights.save(&folder.join("weights.safetensors"));
        let line = refusal(&dab(&folder, &["pack", "weights.safetensors", "-o", "model.dab"]), 1);
        for word in words {
            assert!(line.contains(word), "{name}: no `{word}` in {line}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{name} left something behind");
    }
}

#[test]
fn a_summary_says_what_was_made() {
    let folder = folder("pack-summary");
    Weights::tiny().save(&folder.join("weights.safetensors"));
    let said = text(dab(&folder, &["pack", "weights.safetensors", "-o", "model.dab"]));
    for word in [
        "2 inputs",
        "3 features",
        "2 diagonal dimensions",
        "2 codes",
        "multiply-adds",
        "scratch",
        "4 held-out",
        "activations: relu, identity before the head",
    ] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    let bytes = std::fs::metadata(folder.join("model.dab")).unwrap().len();
    assert!(said.contains(&format!("{bytes} bytes of flash")), "{said}");
}

#[test]
fn the_same_tensors_give_the_same_bytes() {
    let folder = folder("pack-same");
    let first = Weights::tiny().pack(&folder);
    for i in 0..8 {
        // Each hash map has its own order of keys.
        assert_eq!(Weights::tiny().pack(&folder), first, "run {i}");
    }
    assert_ne!(Weights::tiny().meta("seed", "8").pack(&folder), first);
}

#[test]
fn all_float_types_are_read() {
    let folder = folder("pack-types");
    // Every number of the tiny model is exact in all four types.
    let first = Weights::tiny().pack(&folder);
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        let names: Vec<String> = Weights::tiny().tensors.into_keys().collect();
        let weights = names.iter().fold(Weights::tiny(), |weights, name| weights.cast(name, dtype));
        assert_eq!(weights.pack(&folder), first, "{dtype:?}");
    }
}

#[test]
fn only_the_head_and_the_codes_are_needed() {
    let folder = folder("pack-least");
    let weights = Weights::default()
        .fill("head.weight", &[4, 5], 0.25)
        .fill("codes.mean", &[3, 2], 0.5)
        .fill("codes.cov", &[3, 2], 1.0)
        .fill("codes.prior", &[3], 1.0 / 3.0);
    weights.pack(&folder);
    let found: Value =
        serde_json::from_str(&text(dab(&folder, &["inspect", "model.dab", "--json"]))).unwrap();
    assert_eq!(found["inputs"], 5);
    assert_eq!(found["covariance"], "diagonal");
    assert_eq!(found["calibration"], Value::Null);
    let scored = text(crate::dab_reading(&folder, &["score", "model.dab", "-"], b"1,2,3,4,5\n"));
    assert_eq!(crate::table(&scored)[0], ["uncertainty", "p_value", "verdict", "nearest"]);
    assert!(crate::table(&scored)[1][1].is_empty());
}

#[test]
fn metadata_becomes_the_model_or_its_remarks() {
    let folder = folder("pack-metadata");
    let weights = Weights::tiny()
        .fill("layers.0.weight", &[2, 2], 0.5)
        .fill("layers.0.bias", &[2], 0.0)
        .fill("layers.1.weight", &[2, 2], 0.5)
        .fill("layers.2.weight", &[2, 2], 0.5)
        .fill("head.weight", &[4, 2], 0.5)
        .meta("layers.0.activation", "tanh")
        .meta("layers.0.residual", "input")
        .meta("layers.0.residual_before_activation", "true")
        .meta("layers.1.activation", "identity")
        .meta("layers.2.activation", "gelu")
        .meta("layers.2.residual", "layers.0")
        .meta("head.activation", "elu")
        .meta("alpha", "2.5")
        .meta("input_names", "speed, load")
        .meta("output_names", r#"["torque, Nm"]"#);
    weights.pack(&folder);
    let found: Value =
        serde_json::from_str(&text(dab(&folder, &["inspect", "model.dab", "--json"]))).unwrap();
    let layer = |activation: &str, bias: bool, residual: Value, before: bool| {
        json!({"activation": activation, "bias": bias, "outputs": 2, "residual": residual,
               "residual_before_activation": before})
    };
    assert_eq!(found["layers"][0], layer("tanh", true, json!("input"), true));
    assert_eq!(found["layers"][1], layer("identity", false, Value::Null, false));
    assert_eq!(found["layers"][2], layer("gelu", false, json!("layers.0"), false));
    assert_eq!(found["head"]["activation"], "elu");
    assert_eq!(found["alpha"], 2.5);
    assert_eq!(found["input_names"], json!(["speed", "load"]));
    assert_eq!(found["output_names"], json!(["torque, Nm"]));
    assert_eq!(found["info"]["seed"], "7");
    assert_eq!(found["info"].as_object().unwrap().len(), 4);
    assert_eq!(found["calibration"]["doubtful"], json!({"rate": 0.5, "above": 1.5}));
    assert_eq!(found["calibration"]["unfamiliar"], json!({"rate": 0.25, "above": 2.0}));
}

#[test]
fn variances_serve_a_full_model_too() {
    let folder = folder("pack-full");
    let full = |cov: Weights| {
        cov.fill("head.weight", &[5, 3], 0.5).fill("head.bias", &[5], 0.25).meta("covariance", "cholesky")
    };
    let variances = full(Weights::tiny()).pack(&folder);
    let covariances =
        full(Weights::tiny().set("codes.cov", &[2, 2, 2], &[0.5, 0.0, 0.0, 0.5, 0.25, 0.0, 0.0, 1.0]));
    assert_eq!(covariances.pack(&folder), variances);
}

#[test]
fn missing_tensors_are_named() {
    let tiny = Weights::tiny;
    let cases: Vec<Case> = vec![
        ("head", tiny().remove("head.weight"), &["`head.weight` is missing", "[raw, features]"]),
        ("means", tiny().remove("codes.mean"), &["`codes.mean` is missing", "[k, d]"]),
        ("covariances", tiny().remove("codes.cov"), &["`codes.cov` is missing", "[2, 2]"]),
        ("priors", tiny().remove("codes.prior"), &["`codes.prior` is missing", "[2]"]),
        ("std", tiny().remove("normalize.std"), &["`normalize.std` is missing", "both or neither"]),
        ("mean", tiny().remove("normalize.mean"), &["`normalize.mean` is missing", "both or neither"]),
        ("layer", tiny().remove("layers.0.weight"), &["`layers.0.weight` is missing", "without gaps"]),
        (
            "gap",
            tiny().fill("layers.2.weight", &[3, 3], 0.1),
            &["`layers.1.weight` is missing", "last here is 2"],
        ),
        ("decoder", tiny().remove("decoder.weight"), &["`decoder.weight` is missing", "task to none"]),
        (
            "decoder of a bias",
            tiny().remove("decoder.weight").remove_meta("task"),
            &["`decoder.weight` is missing", "decoder.bias is there"],
        ),
        ("scores", tiny().remove("calibration.scores"), &["`calibration.scores` is missing", "rates"]),
    ];
    all_refused("pack-missing", cases);
}

#[test]
fn misshapen_tensors_are_named_with_both_shapes() {
    let tiny = Weights::tiny;
    let cases: Vec<Case> = vec![
        (
            "head rows",
            tiny().fill("head.weight", &[6, 3], 0.1),
            &["`head.weight`", "[6, 3]", "[4, 3]", "2 d", "d = 2"],
        ),
        (
            "head columns",
            tiny().fill("head.weight", &[4, 2], 0.1),
            &["`head.weight`", "[4, 2]", "[4, 3]", "last layer gives 3"],
        ),
        (
            "head transposed",
            tiny().fill("head.weight", &[3, 4], 0.1),
            &["`head.weight`", "[4, 3]", "transposed"],
        ),
        ("head rank", tiny().fill("head.weight", &[12], 0.1), &["`head.weight`", "[12]", "[raw, features]"]),
        ("head bias", tiny().fill("head.bias", &[3], 0.1), &["`head.bias`", "[3]", "[4]"]),
        ("means", tiny().fill("codes.mean", &[4], 0.1), &["`codes.mean`", "[4]", "[k, d]"]),
        ("another d", tiny().fill("codes.mean", &[2, 3], 0.1), &["`codes.cov`", "[2, 2]", "[2, 3]"]),
        (
            "full for diagonal",
            tiny().fill("codes.cov", &[2, 2, 2], 0.1),
            &["`codes.cov`", "[2, 2, 2]", "[2, 2]", "diagonal"],
        ),
        (
            "full",
            tiny().meta("covariance", "cholesky").fill("codes.cov", &[2, 2, 3], 0.1),
            &["`codes.cov`", "[2, 2, 3]", "[2, 2, 2]"],
        ),
        ("priors", tiny().fill("codes.prior", &[3], 0.1), &["`codes.prior`", "[3]", "[2]"]),
        ("mean", tiny().fill("normalize.mean", &[3], 0.1), &["`normalize.mean`", "[3]", "[2]"]),
        ("std", tiny().fill("normalize.std", &[1, 2], 0.1), &["`normalize.std`", "[1, 2]", "[2]"]),
        ("layer", tiny().fill("layers.0.weight", &[6], 0.1), &["`layers.0.weight`", "[6]", "[out, in]"]),
        ("layer bias", tiny().fill("layers.0.bias", &[2], 0.1), &["`layers.0.bias`", "[2]", "[3]"]),
        (
            "next layer",
            tiny().fill("layers.1.weight", &[3, 2], 0.1).meta("layers.1.activation", "relu"),
            &["`layers.1.weight`", "[3, 2]", "[3, 3]", "layer 0 gives 3"],
        ),
        ("decoder", tiny().fill("decoder.weight", &[1, 3], 0.1), &["`decoder.weight`", "[1, 3]", "[out, 2]"]),
        ("decoder bias", tiny().fill("decoder.bias", &[2], 0.1), &["`decoder.bias`", "[2]", "[1]"]),
        (
            "scores",
            tiny().fill("calibration.scores", &[2, 2], 0.1),
            &["`calibration.scores`", "[2, 2]", "[n]"],
        ),
        (
            "no scores",
            tiny().fill("calibration.scores", &[0], 0.1),
            &["`calibration.scores`", "[0]", "n > 0"],
        ),
        (
            "self-test",
            tiny().fill("self_test.inputs", &[1, 3], 0.1),
            &["`self_test.inputs`", "[1, 3]", "[m, 2]"],
        ),
        (
            "self-tests",
            tiny().fill("self_test.inputs", &[9, 2], 0.1),
            &["`self_test.inputs`", "[9, 2]", "m <= 8"],
        ),
    ];
    all_refused("pack-shapes", cases);
}

#[test]
fn impossible_numbers_are_named() {
    let tiny = Weights::tiny;
    let full = || tiny().fill("head.weight", &[5, 3], 0.1).remove("head.bias").meta("covariance", "spectral");
    let mut cases: Vec<Case> = vec![
        ("too large", tiny().poke("head.weight", 4, 1e300), &["`head.weight`", "[1, 1]", "too large"]),
        ("out of range", tiny().poke("head.weight", 4, 1e20), &["head.weight[4]", "out of range", "2^50"]),
        ("type", tiny().cast("head.weight", Dtype::I64), &["`head.weight`", "I64", "F32"]),
        ("std", tiny().poke("normalize.std", 1, 0.0), &["normalize.std[1]", "positive"]),
        ("variance", tiny().poke("codes.cov", 3, -1.0), &["codes.cov[1]", "positive definite"]),
        (
            "asymmetric",
            full().set("codes.cov", &[2, 2, 2], &[1.0, 0.5, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]),
            &["codes.cov[0]", "not symmetric"],
        ),
        (
            "indefinite",
            full().set("codes.cov", &[2, 2, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 1.0]),
            &["codes.cov[1]", "positive definite"],
        ),
        ("prior", tiny().set("codes.prior", &[2], &[1.5, -0.5]), &["codes.prior[1]"]),
        ("prior sum", tiny().set("codes.prior", &[2], &[0.5, 0.25]), &["codes.prior", "0.75", "divide"]),
        ("score", tiny().poke("calibration.scores", 2, -1.0), &["calibration.scores[2]", "never negative"]),
    ];
    for name in tiny().tensors.into_keys() {
        let value = if name.ends_with("bias") { f64::INFINITY } else { f64::NAN };
        cases.push(("not finite", tiny().poke(&name, 0, value), &["holds", "at [0", "finite"]));
        cases.push((
            "not finite",
            tiny().cast(&name, Dtype::F16).poke(&name, 0, value),
            &["holds", "finite"],
        ));
    }
    all_refused("pack-numbers", cases);
    // The loop above cannot name its tensor in a constant: once more for the name.
    let folder = folder("pack-numbers-names");
    for name in tiny().tensors.into_keys() {
        tiny().poke(&name, 0, f64::NAN).save(&folder.join("weights.safetensors"));
        let line = refusal(&dab(&folder, &["pack", "weights.safetensors", "-o", "model.dab"]), 1);
        assert!(line.contains(&format!("`{name}` holds NaN")), "{line}");
    }
}

#[test]
fn unknown_names_and_settings_are_refused() {
    let tiny = Weights::tiny;
    let unknown = |name: &str| tiny().fill(name, &[1], 0.1);
    let full = || tiny().fill("head.weight", &[5, 3], 0.1).fill("codes.cov", &[2, 2, 2], 1.0);
    let cases: Vec<Case> = vec![
        ("tensor", unknown("encoder.weight"), &["unknown tensor `encoder.weight`", "head.weight"]),
        ("layer part", unknown("layers.0.gamma"), &["unknown tensor `layers.0.gamma`"]),
        ("layer number", unknown("layers.00.weight"), &["unknown tensor `layers.00.weight`"]),
        ("covariance", tiny().meta("covariance", "full"), &["`covariance` is `full`", "spectral"]),
        ("no covariance", full().remove_meta("covariance"), &["`covariance` is missing", "cholesky"]),
        ("alpha", tiny().meta("alpha", "hot"), &["`alpha` is `hot`", "usually 1"]),
        ("negative alpha", tiny().meta("alpha", "-1"), &["`alpha` is `-1`"]),
        ("task", tiny().meta("task", "ranking"), &["`task` is `ranking`", "classification"]),
        ("no task", tiny().remove_meta("task"), &["`task` is missing", "regression or classification"]),
        ("task none", tiny().meta("task", "none"), &["`task` is `none`", "decoder.weight"]),
        (
            "activation",
            tiny().meta("layers.0.activation", "selu"),
            &["`layers.0.activation` is `selu`", "relu"],
        ),
        ("head activation", tiny().meta("head.activation", "ReLU"), &["`head.activation` is `ReLU`", "relu"]),
        (
            "no such layer",
            tiny().meta("layers.1.activation", "relu"),
            &["`layers.1.activation`", "no layer 1"],
        ),
        (
            "typing error",
            tiny().meta("layers.0.activaton", "relu"),
            &["`layers.0.activaton`", "no such setting"],
        ),
        (
            "no activation",
            tiny().remove_meta("layers.0.activation"),
            &["`layers.0.activation` is missing", "identity, relu, elu, gelu, silu, tanh"],
        ),
        (
            "misspelt activation",
            tiny().remove_meta("layers.0.activation").meta("layer.0.activation", "relu"),
            &["`layer.0.activation`", "did you mean `layers.0.activation`"],
        ),
        ("misspelt covariance", tiny().meta("covarience", "diagonal"), &["`covarience`", "`covariance`"]),
        ("misspelt alpha", tiny().meta("Alpha", "2"), &["`Alpha` is `2`", "did you mean `alpha`"]),
        ("misspelt names", tiny().meta("input-names", "a,b"), &["`input-names`", "`input_names`"]),
        ("misspelt task", tiny().meta("tasks", "regression"), &["`tasks`", "did you mean `task`"]),
        ("residual", tiny().meta("layers.0.residual", "layers.0"), &["`layers.0.residual`", "earlier"]),
        ("residual width", tiny().meta("layers.0.residual", "input"), &["residual of layer 0", "same width"]),
        (
            "residual flag",
            tiny().meta("layers.0.residual_before_activation", "true"),
            &["`layers.0.residual` is missing"],
        ),
        (
            "residual flag's value",
            tiny().meta("layers.0.residual_before_activation", "yes"),
            &["`layers.0.residual_before_activation` is `yes`", "true, false"],
        ),
        ("rates", tiny().meta("rates.doubtful", "0.1"), &["rates.doubtful", "unfamiliar <= doubtful"]),
        ("rate", tiny().meta("rates.unfamiliar", "rare"), &["`rates.unfamiliar` is `rare`"]),
        ("names", tiny().meta("input_names", "a,b,c"), &["`input_names`", "3 names", "the model has 2"]),
    ];
    all_refused("pack-unknown", cases);
}

#[test]
fn a_failed_pack_leaves_the_old_file_alone() {
    let folder = folder("pack-atomic");
    let first = Weights::tiny().pack(&folder);
    Weights::tiny().remove("head.weight").save(&folder.join("weights.safetensors"));
    refusal(&dab(&folder, &["pack", "weights.safetensors", "-o", "model.dab"]), 1);
    assert_eq!(std::fs::read(folder.join("model.dab")).unwrap(), first);

    Weights::tiny().save(&folder.join("weights.safetensors"));
    assert!(
        refusal(&dab(&folder, &["pack", "weights.safetensors", "-o", "no/model.dab"]), 1)
            .contains("no/model")
    );
    assert!(refusal(&dab(&folder, &["pack", "weights.safetensors", "-o", "."]), 1).contains("cannot write"));
    assert!(refusal(&dab(&folder, &["pack", "model.dab", "-o", "other.dab"]), 1).contains("safetensors"));
    assert!(refusal(&dab(&folder, &["pack", "none", "-o", "other.dab"]), 1).contains("`none`"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}
