//! `dab data`: what it says of sets that are missing, here or damaged, and how experiments find them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{folder, refusal, stored, text};

/// Runs `dab` in `folder` with the data folder `data`, or with none named.
fn dab(folder: &Path, data: Option<&Path>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dab"));
    command.args(args).current_dir(folder).env_remove("DAB_DATA");
    if let Some(data) = data {
        command.env("DAB_DATA", data);
    }
    command.output().unwrap()
}

fn experiment(name: &str) -> String {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    experiments.join(name).with_extension("toml").to_str().unwrap().to_owned()
}

#[test]
fn every_set_is_listed_with_a_space_after_its_name() {
    let folder = folder("data-list");
    let listed = text(dab(&folder, None, &["data"]));
    assert!(listed.starts_with("data folder: data\n"), "{listed}");
    for name in ["uci", "clinc150", "text-ood", "cifar10-resnet56", "imagenet-o"] {
        assert!(listed.contains(&format!("\n{name} ")), "{listed}");
    }
    assert!(listed.lines().filter(|line| line.contains("  missing   ")).count() >= 12, "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 140), "{listed}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "listing writes nothing");
}

#[test]
fn a_missing_set_comes_with_the_commands_that_bring_it() {
    let folder = folder("data-missing");
    let output = dab(&folder, None, &["data", "uci", "text-ood"]);
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(refusal(&output, 1).contains("not usable: uci, text-ood"));
    assert!(
        told.contains("uci: missing data/uci\n") && told.contains("after `dab data clinc150`, type"),
        "{told}"
    );
    assert!(told.contains("    python3 dab-train/experiments/prepare/uci.py data\n"), "{told}");
    assert!(
        told.lines().filter(|line| !line.starts_with("    ")).all(|line| line.chars().count() <= 110),
        "{told}"
    );
    let there = dab(&folder, Some(Path::new("/no/where")), &["data", "uci"]);
    let told = String::from_utf8(there.stdout).unwrap();
    assert!(told.contains("prepare/uci.py /no/where\n") && !told.contains("DATA"), "{told}");
    assert!(refusal(&dab(&folder, None, &["data", "uzi"]), 1).contains("there are uci, clinc150"));
    assert!(!text(dab(&folder, None, &["data", "--help"])).is_empty());
}

#[test]
fn every_script_and_experiment_that_a_set_names_exists() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for known in dab_train::internals::data::KNOWN.iter() {
        for word in known.steps.iter().flat_map(|step| step.split(' ')) {
            assert!(
                !word.starts_with("dab-train/") || repository.join(word).is_file(),
                "{}: {word}",
                known.name
            );
        }
        for word in
            known.about.split([' ', ',', ':']).filter(|word| word.ends_with(".toml") && !word.contains('*'))
        {
            assert!(
                Path::new(&experiment(word.trim_end_matches(".toml"))).is_file(),
                "{}: {word}",
                known.name
            );
        }
        for name in &known.after {
            assert!(dab_train::internals::data::Known::named(name).is_some(), "{}: {name}", known.name);
        }
    }
}

#[test]
fn an_experiment_names_the_missing_file_and_what_to_do() {
    let folder = folder("data-train");
    for (name, file, set) in [
        ("uci-energy", "uci/energy_efficiency.csv.gz", "uci"),
        ("clinc150", "clinc150/clinc150_minilm_f16.npz", "clinc150"),
        ("cifar10-resnet56", "cifar10/cifar10_resnet56_feats_f16.npz", "cifar10-resnet56"),
        ("cifar10-resnet20-finetune", "cifar10/cifar10_train6k_test2k.npz", "cifar10-small"),
        ("cifar10-wrn28-10", "cifar-10-batches-bin", "cifar10"),
    ] {
        let said = refusal(&dab(&folder, None, &["train", &experiment(name)]), 1);
        let full = folder.join("data").join(file);
        assert!(said.contains(&format!("missing data file {file}: looked for {}", full.display())), "{said}");
        assert!(said.contains("DAB_DATA") && said.contains(&format!("`dab data {set}`")), "{said}");
    }
}

/// A copy of the UCI sets in `folder/data`, made anew, or nothing where they are not at hand.
fn copied(test: &str, folder: &Path) -> Option<PathBuf> {
    let from = stored::data(test, "uci/energy_efficiency.csv.gz")?.join("uci");
    let to = folder.join("data/uci");
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    Some(to)
}

#[test]
fn a_set_in_the_current_folder_is_verified_used_and_its_damage_told() {
    let folder = folder("data-uci");
    let test = "a_set_in_the_current_folder_is_verified_used_and_its_damage_told";
    let Some(uci) = copied(test, &folder) else { return };
    assert_eq!(text(dab(&folder, None, &["data", "uci"])), "uci: here, verified\n");
    let quick = ["--set", "training.epochs=2", "--set", "codebook.warmup=1", "--no-baselines", "--quiet"];
    let run = dab(&folder, None, &[&["train", &experiment("uci-energy")], &quick[..]].concat());
    assert!(text(run).contains("AUROC kin8nm"));
    std::fs::copy(uci.join("yacht.csv.gz"), uci.join("kin8nm.csv.gz")).unwrap();
    let output = dab(&folder, None, &["data", "uci"]);
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        told.starts_with("uci: data/uci/kin8nm.csv.gz differs: SHA-256 of the unpacked text is d136"),
        "{told}"
    );
    refusal(&output, 1);
    std::fs::write(uci.join("boston_housing.csv.gz"), b"torn").unwrap();
    let told = String::from_utf8(dab(&folder, None, &["data", "uci"]).stdout).unwrap();
    assert!(told.starts_with("uci: data/uci/boston_housing.csv.gz differs: cannot read"), "{told}");
}

#[test]
fn the_stored_sets_pass_their_checks() {
    let test = "the_stored_sets_pass_their_checks";
    let Some(root) = stored::data(test, "cifar10/cifar10_resnet8_feats_f16.npz") else { return };
    let names = [
        "uci",
        "clinc150",
        "text-ood",
        "cifar10-resnets",
        "cifar10-small",
        "cifar10-resnet56",
        "cifar10-resnet8",
    ];
    let said = text(dab(&folder("data-stored"), Some(&root), &[&["data"], &names[..]].concat()));
    assert_eq!(said, names.map(|name| format!("{name}: here, verified\n")).concat());
}
