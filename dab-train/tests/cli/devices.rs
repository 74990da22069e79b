//! `--device`: what is not there is said in one line, and what is there gives the same model.

use std::path::Path;
use std::process::Command;

use crate::{column, dab, folder, refusal, stored::skipped, text};

fn demo() -> String {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/regression-two-clusters.toml");
    demo.to_str().unwrap().to_owned()
}

#[test]
fn an_absent_device_is_one_line_that_lists_what_there_is() {
    let folder = folder("devices");
    let (cuda, wgpu, ndarray) = (cfg!(feature = "cuda"), cfg!(feature = "wgpu"), cfg!(feature = "ndarray"));
    let demo = demo();
    let mut absent = vec![("cuda:4096", cuda, "cuda")];
    // With the feature it depends on the machine whether the first one is there.
    absent.extend(
        [("cuda", cuda, "cuda"), ("cuda:0", cuda, "cuda"), ("wgpu", wgpu, "wgpu")]
            .into_iter()
            .filter(|d| !d.1),
    );
    absent.extend((!ndarray).then_some(("ndarray", false, "ndarray")));
    for (device, built, feature) in absent {
        for command in [
            vec!["train", &demo, "--out", "out", "--device", device],
            vec!["fit", "--features", "x.npy", "--labels", "y.npy", "--out", "out", "--device", device],
        ] {
            let said = refusal(&dab(&folder, &command), 1);
            assert!(said.contains(&format!("device `{feature}")), "{said}");
            assert!(said.contains("available here: auto, cpu"), "{said}");
            let reason =
                if built { "this machine has none".to_owned() } else { format!("cargo feature `{feature}`") };
            assert!(said.contains(&reason), "{said}");
            assert!(!folder.join("out").exists());
        }
    }
    for device in ["tpu", "cuda:x", "cuda:-1", ""] {
        let said = refusal(&dab(&folder, &["train", &demo, "--device", device]), 2);
        assert!(said.contains("available here: auto, cpu"), "{said}");
    }
}

/// `tests/accelerators` builds with `ndarray`; the default build is without it.
#[cfg(feature = "ndarray")]
#[test]
fn every_cpu_backend_trains_the_demo_to_nearly_the_same_model() {
    /// The backends add up in different orders: 1e-4 of u after 300 epochs, a hundredth of what is allowed.
    const RELATIVE: f64 = 1e-2;
    let folder = folder("devices-agree");
    let scores = |device: &str| {
        let args = ["train", &demo(), "--set", "training.epochs=150", "--no-baselines", "--quiet"];
        text(dab(&folder, &[&args[..], &["--device", device, "--out", device]].concat()));
        let csv = std::fs::read_to_string(folder.join(device).join("scores.csv")).unwrap();
        (column(&csv, "uncertainty"), column(&csv, "output"))
    };
    let (flex, ndarray) = (scores("cpu"), scores("ndarray"));
    assert!(flex.0.len() > 100 && flex.0.len() == ndarray.0.len());
    for (a, b) in flex.0.iter().zip(&ndarray.0).chain(flex.1.iter().zip(&ndarray.1)) {
        assert!((a - b).abs() <= RELATIVE * a.abs().max(1.0), "{a} on the CPU, {b} with ndarray");
    }
    if !cfg!(feature = "cuda") {
        assert_eq!(scores("auto"), flex, "auto is the CPU when there is nothing else");
    }
}

/// Instructions are chosen when the command runs: products have AVX-512, AVX2 and plain ones.
#[cfg(target_arch = "x86_64")]
#[test]
fn processors_without_wide_instructions_learn_the_same() {
    /// Sums in another order, fifteen epochs long, relative to the size of a score or one nat: 4e-5 when it was written.
    const RELATIVE: f64 = 1e-3;
    const EMULATOR: &str = "qemu-x86_64";
    let test = "processors_without_wide_instructions_learn_the_same";
    if Command::new(EMULATOR).arg("-version").output().is_err() {
        return skipped(test, "there is no qemu-x86_64 (Debian: apt-get install qemu-user)");
    }
    let folder = folder("old-processors");
    let demo = demo();
    let short = ["--set", "training.epochs=15", "--set", "codebook.warmup=5", "--no-baselines", "--quiet"];
    let args = [&["train", &demo][..], &short, &["--out"]].concat();
    let scores = |out: &str| {
        let csv = std::fs::read_to_string(folder.join(out).join("scores.csv")).unwrap();
        column(&csv, "uncertainty")
    };
    text(dab(&folder, &[&args[..], &["native"]].concat()));
    let native = scores("native");
    assert!(native.len() > 100);
    // The first has nothing beyond SSE3, the second AVX2 and fused multiply-adds.
    for processor in ["qemu64", "Haswell"] {
        let mut command = Command::new(EMULATOR);
        command.args(["-cpu", processor, env!("CARGO_BIN_EXE_dab")]).args(&args).arg(processor);
        text(command.current_dir(&folder).output().unwrap());
        for (a, b) in native.iter().zip(scores(processor)) {
            assert!((a - b).abs() <= RELATIVE * a.abs().max(1.0), "{a} here, {b} on {processor}");
        }
    }
}
