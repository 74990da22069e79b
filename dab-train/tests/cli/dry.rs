//! `dab train --dry-run`: every experiment for GPUs is planned on a machine that has neither its data nor a GPU.

use std::path::Path;
use std::process::Command;

use crate::{folder, text};

/// Experiment, changes, learnt numbers, examples, gradient steps.
const PLANS: [(&str, &[&str], &str, &str, &str); 6] = [
    ("cifar10-wrn28-10", &[], "36501114", "49000", "38400"),
    ("cifar10-wrn28-10", &["--set", "objective.calibrated.least=100"], "36501114", "49000", "38400"),
    ("imagenet-resnet50-frozen", &[], "13077736", "1281167", "87640"),
    ("imagenet-resnet50-frozen-calibrated", &[], "13077736", "1281167", "87640"),
    ("imagenet-resnet50-finetune", &[], "36585768", "1281167", "87640"),
    ("imagenet-resnet50-finetune-calibrated", &[], "36585768", "1281167", "87640"),
];

#[test]
fn every_gpu_experiment_is_planned_without_its_data() {
    let folder = folder("dry");
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    for (name, changes, parameters, examples, steps) in PLANS {
        let output = Command::new(env!("CARGO_BIN_EXE_dab"))
            .arg("train")
            .arg(experiments.join(name).with_extension("toml"))
            .args(changes)
            .arg("--dry-run")
            .current_dir(&folder)
            .env("DAB_DATA", folder.join("nowhere"))
            .output()
            .unwrap();
        let plan = text(output);
        let line = |what: &str| {
            let found = plan.lines().find(|line| line.trim_start().starts_with(what));
            found.unwrap_or_else(|| panic!("{name} has no `{what}`: {plan}")).to_owned()
        };
        assert!(line("parameters").contains(&format!(" {parameters} learnt")), "{plan}");
        assert!(line("examples").contains(examples) && line("examples").contains("as published"), "{plan}");
        assert!(line("steps").contains(&format!("= {steps},")), "{plan}");
        assert!(line("shapes").contains("3×") && line("memory").contains("GiB"), "{plan}");
        assert_eq!(name.contains("frozen"), plan.contains("computed once and kept on disk"), "{plan}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_dab"))
        .arg("train")
        .arg(experiments.join("cifar10-wrn28-10.toml"))
        .args(["--set", "training.precision=tf32", "--dry-run"])
        .current_dir(&folder)
        .env("DAB_DATA", folder.join("nowhere"))
        .output()
        .unwrap();
    assert!(text(output).contains("  convolutions  multiply in tf32: f32 with 10 bits of mantissa"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "a dry run writes nothing");
}
