//! `dab verify`: a model is compared with the network of its run.

use std::path::{Path, PathBuf};

use crate::light::light;
use crate::weights::Weights;
use crate::{dab, folder, refusal, text};

/// The demo for a moment: enough for a codebook of its own.
fn trained(folder: &Path, seed: &str, out: &str) {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/regression-two-clusters.toml");
    let short = ["--set", "training.epochs=20", "--set", "codebook.warmup=5"];
    let fixed = ["--no-baselines", "--quiet", "--seed", seed, "--out", out];
    text(dab(folder, &[&["train", demo.to_str().unwrap()], &short[..], &fixed[..]].concat()));
}

fn with_run(test: &str) -> PathBuf {
    let folder = folder(test);
    trained(&folder, "0", "run");
    folder
}

#[test]
fn a_model_agrees_with_its_own_run() {
    let folder = with_run("verify");
    let said = text(dab(&folder, &["verify", "run/model.dab"]));
    for word in ["held-out", "test", "gap", "rank correlation", "1.000000", "AUROC of u, gap", "allowed 1e-4"]
    {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    std::fs::copy(folder.join("run/model.dab"), folder.join("deployed.dab")).unwrap();
    let said = text(dab(&folder, &["verify", "deployed.dab", "--run", "run"]));
    assert!(said.contains("agree on"), "{said}");
    if cfg!(feature = "ndarray") {
        assert!(text(dab(&folder, &["verify", "run/model.dab", "--device", "ndarray"])).contains("agree on"));
    }
}

#[test]
fn a_model_of_another_seed_is_found_out() {
    let folder = with_run("verify-tampered");
    trained(&folder, "1", "other");
    std::fs::copy(folder.join("other/model.dab"), folder.join("run/model.dab")).unwrap();
    let output = dab(&folder, &["verify", "run/model.dab"]);
    let said = refusal(&output, 1);
    assert!(said.contains("`run/model.dab` is not the model of the run in run"), "{said}");
    assert!(said.contains("allowed: 1e-2") && said.contains("--run"), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("held-out") && !table.contains("agree on"), "{table}");
}

#[test]
fn a_quantised_model_is_recognised_beside_its_run_and_no_other() {
    let folder = with_run("verify-quantised");
    trained(&folder, "1", "other");
    std::fs::write(folder.join("rows.csv"), "1\n2\n-1\n0.5\n").unwrap();
    for (file, table) in [("small.dab", &[][..]), ("anew.dab", &["--calibration", "rows.csv"])] {
        let quantise = ["quantise", "run/model.dab", "--data", "rows.csv", "-o", file];
        text(dab(&folder, &[&quantise[..], table].concat()));
        let said = text(dab(&folder, &["verify", file, "--run", "run"]));
        assert!(said.contains(&format!("`{file}` was quantised from `run/model.dab`")), "{said}");
        assert!(said.contains("moves u by up to ") && said.contains("`dab quantise run/model.dab"), "{said}");
        let said = refusal(&dab(&folder, &["verify", file, "--run", "other"]), 1);
        assert!(said.contains(&format!("`{file}` is not the model of the run in other")), "{said}");
    }
}

#[test]
fn without_its_run_a_model_cannot_be_verified() {
    let folder = with_run("verify-lonely");
    assert!(refusal(&dab(&folder, &["verify", "no.dab"]), 1).contains("no.dab"));
    Weights::tiny().pack(&folder);
    let said = refusal(&dab(&folder, &["verify", "model.dab"]), 1);
    assert!(said.contains("no experiment.toml") && said.contains("dab self-test"), "{said}");
    let said = refusal(&dab(&folder, &["verify", "model.dab", "--run", "run"]), 1);
    assert!(said.contains("the model takes 2 numbers, the run's inputs have 1"), "{said}");
    let checkpoint = folder.join("run/checkpoint.safetensors");
    std::fs::write(&checkpoint, b"not tensors").unwrap();
    assert!(refusal(&dab(&folder, &["verify", "run/model.dab"]), 1).contains("cannot resume from"));
    std::fs::remove_file(&checkpoint).unwrap();
    let said = refusal(&dab(&folder, &["verify", "run/model.dab"]), 1);
    assert!(said.contains("checkpoint.safetensors: the network that was trained is not kept here"), "{said}");
}

#[test]
fn a_model_of_images_agrees_with_its_own_run() {
    let folder = folder("verify-images");
    light(&folder, 2);
    let run = |out: &str, more: &[&str]| {
        let fixed = ["train", "light.toml", "--no-baselines", "--quiet", "--out", out];
        text(dab(&folder, &[&fixed[..], more].concat()));
        let said = text(dab(&folder, &["verify", &format!("{out}/model.dab")]));
        assert!(said.contains("agree on 80 inputs") && said.contains("AUROC of u, same"), "{said}");
    };
    run("learnt", &[]);
    let weights = format!("backbone.images.weights={}/learnt/backbone.safetensors", folder.display());
    let frozen = ["--set", "backbone.images.frozen=true", "--set", &weights];
    run("frozen", &frozen);
    run("scaled", &[&frozen[..], &["--set", "backbone.standardise=columns"]].concat());
    std::fs::copy(folder.join("learnt/model.dab"), folder.join("frozen/model.dab")).unwrap();
    let said = refusal(&dab(&folder, &["verify", "frozen/model.dab"]), 1);
    assert!(said.contains("is not the model of the run in frozen"), "{said}");
}
