//! CUDA kernels on a machine without a GPU: `tests/accelerators` puts the folder of a driver that runs them on the
//! processor (`tests/cuda`) into `DAB_STAND_IN`, and libdevice into `CUDA_PATH`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dab_train::internals::support::random::Random;
use serde_json::Value;

use crate::light::light;
use crate::{dab, folder, refusal, text};

/// Losses relative to themselves or to one nat: f32 sums in another order, over two epochs.
const AGREE: f64 = 1e-5;
/// One without matrix units for f32, one with (TF32): what burn does with them must not change a result. The first one's driver is the
/// oldest that dab takes, for which burn writes other PTX.
const GPUS: [Gpu; 2] = [Gpu { sm: "75", driver: "11040" }, Gpu { sm: "80", driver: "12090" }];

/// A GPU that is not there.
#[derive(Clone, Copy)]
struct Gpu {
    /// Compute capability times ten.
    sm: &'static str,
    /// The version of CUDA that its driver can do.
    driver: &'static str,
}

/// The stand-in's folder, unless there is none.
fn stand_in(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os("DAB_STAND_IN").map(PathBuf::from);
    if found.is_none() {
        println!("SKIPPED {test}: DAB_STAND_IN names no driver (tests/accelerators does)");
    }
    found
}

/// Runs `dab` on the CPU, or on a GPU that is not there.
fn run(folder: &Path, driver: &Path, gpu: Option<Gpu>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dab"));
    command.args(arguments).current_dir(folder).args(["--no-baselines", "--json-lines"]);
    match gpu {
        None => command.args(["--device", "cpu", "--out", "cpu"]),
        Some(gpu) => command
            .args(["--device", "cuda", "--out", gpu.sm])
            .env("LD_LIBRARY_PATH", driver)
            .env("DAB_CUDA_SM", gpu.sm)
            .env("DAB_CUDA_DRIVER", gpu.driver)
            .env("DAB_CUDA_DIR", folder.join(format!("sm_{}", gpu.sm))),
    };
    command.output().unwrap()
}

/// NLL, distortion and rate of each epoch.
fn losses(output: &Output) -> Vec<[f64; 3]> {
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complaint}");
    let line = |line: &str| {
        let epoch = serde_json::from_str::<Value>(line).unwrap()["epoch"].clone();
        ["nll", "distortion", "rate"].map(|name| epoch[name].as_f64().unwrap())
    };
    said.lines().map(line).collect()
}

/// The run on both GPUs against the run on the CPU; that `dab` ends well includes the comparison of model and network.
fn agree(name: &str, folder: &Path, driver: &Path, arguments: &[&str]) {
    let cpu = losses(&run(folder, driver, None, arguments));
    assert!(cpu.len() >= 2 && cpu.iter().flatten().all(|loss| loss.is_finite()), "{cpu:?}");
    for gpu in GPUS {
        let sm = gpu.sm;
        let gpu = losses(&run(folder, driver, Some(gpu), arguments));
        assert_eq!(gpu.len(), cpu.len());
        let both = cpu.iter().flatten().zip(gpu.iter().flatten());
        // Not f64::max, which passes over NaN.
        let largest = both
            .map(|(a, b)| (a - b).abs() / a.abs().max(1.0))
            .fold(0.0, |most: f64, new| if new <= most { most } else { new });
        let metrics: Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join(sm).join("metrics.json")).unwrap())
                .unwrap();
        let parity = metrics["parity"]["largest_relative"].as_f64().unwrap();
        let record = std::fs::read_to_string(folder.join(format!("sm_{sm}/launches.txt"))).unwrap();
        let record: Vec<&str> = record.lines().take(3).collect();
        println!(
            "sm_{sm} {name}: losses differ by {largest:.1e}, model and network by {parity:.1e}; {}",
            record.join(", ")
        );
        assert!(largest < AGREE, "sm_{sm} {name}: {cpu:?} on the CPU, {gpu:?} on the GPU");
        assert!(parity < 1e-4, "sm_{sm} {name}: {parity}");
    }
}

#[test]
fn a_stand_in_gpu_learns_the_demo_as_the_cpu_does() {
    let Some(driver) = stand_in("a_stand_in_gpu_learns_the_demo_as_the_cpu_does") else { return };
    let folder = folder("stand-in-demo");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/regression-two-clusters.toml");
    let demo = demo.to_str().unwrap();
    let arguments = ["train", demo, "--set", "training.epochs=3", "--set", "codebook.warmup=1"];
    agree("demo, spectral", &folder, &driver, &arguments);
}

#[test]
fn a_stand_in_gpu_learns_a_classifier_as_the_cpu_does() {
    let Some(driver) = stand_in("a_stand_in_gpu_learns_a_classifier_as_the_cpu_does") else { return };
    let folder = folder("stand-in-classifier");
    let mut random = Random::new(3, "stand-in");
    let (mut rows, mut labels) = (String::new(), String::new());
    for row in 0..96 {
        let centre = 3.0 * f64::from(row % 3);
        let row = [centre, 0.0, -centre, 0.0].map(|middle| (middle + 0.5 * random.normal()).to_string());
        rows += &(row.join(",") + "\n");
    }
    (0..96).for_each(|row| labels += &format!("{}\n", row % 3));
    std::fs::write(folder.join("x.csv"), rows).unwrap();
    std::fs::write(folder.join("y.csv"), labels).unwrap();
    let experiment = "
        name = 'classifier'
        data = { kind = 'features', features = 'x.csv', labels = 'y.csv' }
        backbone = { layers = [{ units = 8, activation = 'relu' }] }
        bottleneck = { dim = 3, codes = 3, covariance = 'spectral' }
        objective = { alpha = 1.0, beta = 0.01 }
        codebook = { warmup = 1 }
        optimiser = { rule = 'adam', learning_rate = 0.01 }
        training = { epochs = 2, batch = 32 }";
    std::fs::write(folder.join("classifier.toml"), experiment).unwrap();
    let arguments = ["train", "classifier.toml"];
    agree("classifier, spectral", &folder, &driver, &arguments);
}

/// Post-hoc: an image network that somebody else trained stays as it is, and the bottleneck learns from its features, which the first
/// run, on the CPU, has kept in a file.
#[test]
fn a_stand_in_gpu_learns_from_kept_features_as_the_cpu_does() {
    let Some(driver) = stand_in("a_stand_in_gpu_learns_from_kept_features_as_the_cpu_does") else { return };
    let folder = folder("stand-in-features");
    light(&folder, 2);
    text(dab(
        &folder,
        &["train", "light.toml", "--device", "cpu", "--no-baselines", "--quiet", "--out", "network"],
    ));
    let weights =
        format!("backbone.images.weights={}", folder.join("network/backbone.safetensors").display());
    let settings = ["backbone.images.frozen=true", &weights, "bottleneck.covariance=cholesky"];
    let arguments: Vec<&str> = ["train", "light.toml"]
        .into_iter()
        .chain(settings.into_iter().flat_map(|setting| ["--set", setting]))
        .collect();
    agree("kept features, Cholesky", &folder, &driver, &arguments);
    let kept = std::fs::read_dir(folder.join("features")).unwrap().count();
    assert_eq!(kept, 2, "training and test images; a GPU that had computed its own would have kept more");
}

#[test]
fn a_driver_that_is_too_old_is_one_line_that_says_what_is_needed() {
    let Some(driver) = stand_in("a_driver_that_is_too_old_is_one_line_that_says_what_is_needed") else {
        return;
    };
    let folder = folder("stand-in-driver");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/regression-two-clusters.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(["train", demo.to_str().unwrap(), "--device", "cuda"])
        .env("LD_LIBRARY_PATH", driver)
        .env("DAB_CUDA_DRIVER", "11030")
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = refusal(&output, 1);
    assert!(said.contains("it is one for CUDA 11.3, needed is CUDA 11.4"), "{said}");
    assert!(!folder.join("runs").exists());
}

#[test]
fn a_gpu_without_libdevice_is_one_line_that_says_what_to_install() {
    let Some(driver) = stand_in("a_gpu_without_libdevice_is_one_line_that_says_what_to_install") else {
        return;
    };
    let folder = folder("stand-in-libdevice");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/regression-two-clusters.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(["train", demo.to_str().unwrap(), "--device", "cuda"])
        .env("LD_LIBRARY_PATH", driver)
        .env("CUDA_PATH", "/nowhere")
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = refusal(&output, 1);
    assert!(said.contains("nvidia-cuda-nvcc-cu12") && said.contains("CUDA_PATH is /nowhere"), "{said}");
}
