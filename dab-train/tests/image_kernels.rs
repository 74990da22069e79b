//! Image networks on CUDA kernels without a GPU: `tests/accelerators --images SM` runs them on its driver (`tests/cuda`), whose
//! folder of records is in `DAB_CUDA_DIR`.
//!
//! A small network on real pixels learns what it learns on the CPU, in every precision. One step of a published network
//! (`DAB_COUNTED`: resnet50, otherwise WRN-28-10) is counted: for that the driver runs nothing (`DAB_CUDA_RUN=0`), it only keeps the
//! books. What it counts is printed as a row of a table in `docs/images-and-gpus.md`.

#![cfg(feature = "cuda")]

#[path = "stored/mod.rs"]
mod stored;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use burn::tensor::Device;
use dab_train::{
    Experiment, Parity,
    data::{Augment, Description, ImageTask, Preprocessing},
    internals::{
        data::{ImageSet, Labelled, Npz, Pixels},
        export::artifact,
        learn::{
            epoch::Rdfc,
            examples::{Examples, Inputs, Streamed},
            images,
            indexed_rows::ImageRows,
            run::Setting,
        },
        measure::cost::Cost,
        model::{network::Output, resnet::CHANNELS},
        support::device::DeviceChoice,
    },
};

/// Side of the images: the middle of CIFAR's, because every multiplication is interpreted.
const SIDE: usize = 8;
/// Training images: two mini-batches.
const IMAGES: usize = 16;

/// The driver's folder of records.
fn records(test: &str) -> Option<PathBuf> {
    let found = std::env::var_os("DAB_CUDA_DIR").map(PathBuf::from);
    if found.is_none() {
        stored::skipped(test, "DAB_CUDA_DIR names no folder (tests/accelerators --images does)");
    }
    found
}

fn task(root: &Path) -> ImageTask {
    let mut file = Npz::open(&root.join("cifar10/cifar10_train6k_test2k.npz")).unwrap();
    let (shape, bytes) = file.bytes("x_train").unwrap();
    let (whole, from) = (shape[1], (shape[1] - SIDE) / 2);
    let middle = |first: usize| {
        let pixel =
            |(image, y, x): (usize, usize, usize)| ((image * whole + from + y) * whole + from + x) * 3;
        let places = (first..first + IMAGES)
            .flat_map(|image| (0..SIDE).flat_map(move |y| (0..SIDE).map(move |x| (image, y, x))));
        let cut: Vec<u8> = places.flat_map(|at| bytes[pixel(at)..pixel(at) + 3].to_vec()).collect();
        let set = ImageSet::all("middle", Arc::new(Pixels::interleaved(SIDE, &cut, Augment::default())));
        let labels = (0..IMAGES as u32).map(|image| image % 2).collect();
        Labelled { set, labels }
    };
    let [train, held_out, test] = [0, IMAGES, 2 * IMAGES].map(middle);
    let (preprocessing, description) = (Preprocessing::default(), Description::default());
    ImageTask { classes: 2, train, held_out, test, ood: Vec::new(), preprocessing, description }
}

fn experiment(precision: &str) -> Experiment {
    let text = format!(
        r#"
        name = "small images"
        data = {{ kind = "images", train = "a", test = "b" }}
        bottleneck = {{ dim = 2, codes = 2, covariance = "cholesky" }}
        objective = {{ alpha = 1.0, beta = 1e-3 }}
        codebook = {{ start = "normal", warmup = 1 }}
        optimiser = {{ rule = "sgd", learning_rate = 1e-2 }}
        training = {{ epochs = 2, batch = 8, precision = "{precision}" }}
        [backbone]
        standardise = "none"
        initialiser = "he-normal"
        images = {{ network = {{ kind = "cifar-resnet", depth = 8 }} }}
        "#
    );
    Experiment::parse(&text).unwrap()
}

/// NLL, distortion and rate of two epochs; the exported model is compared with the network.
fn losses(precision: &str, device: &Device, task: &ImageTask) -> Result<Vec<f64>> {
    let setting =
        Setting { seed: 1, device: device.clone(), checkpoint: None, resume: false, machines: None };
    let run = images::train(&experiment(precision), task, None, &setting, &mut ())?;
    let network = run.images.as_ref().unwrap();
    let features = images::features(network, &task.held_out.set, &task.preprocessing.normalise, device)?;
    let artifact = artifact::artifact(&run.trained, &features, Vec::new())?;
    let scores = artifact::scores(&artifact, &features)?;
    Parity::new(&run.trained.score(&features, device)?.uncertainty, &scores).unwrap().check()?;
    Ok(run.history.iter().flat_map(|epoch| [epoch.nll, epoch.distortion, epoch.rate]).collect())
}

/// Largest difference of losses, relative to themselves or to one nat; NaN if there is one.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!((a.len(), b.len()), (6, 6));
    let each = a.iter().zip(b).map(|(a, b)| (a - b).abs() / a.abs().max(1.0));
    each.fold(0.0, |most, new| if new <= most { most } else { new })
}

/// Each precision, the CPU's that it is compared with, and how far losses may be apart. In f32 only sums have another order. In 16
/// bits an output of a convolution may be rounded the other way, by one unit of its last place: through seven layers, and as much
/// again for the steps, as in `tests/images.rs`. TF32 has the mantissa of f16, and the CPU's factors are not rounded.
const PRECISIONS: [(&str, &str, f64); 4] = [
    ("f32", "f32", 1e-5),
    ("bf16", "bf16", 14.0 / 256.0),
    ("f16", "f16", 14.0 / 2048.0),
    ("tf32", "f32", 14.0 / 2048.0),
];

#[test]
fn a_small_image_network_agrees_with_the_cpu() {
    let name = "a_small_image_network_agrees_with_the_cpu";
    let Some(folder) = records(name) else { return };
    let Some(root) = stored::data(name, "cifar10/cifar10_train6k_test2k.npz") else { return };
    let (task, gpu) = (task(&root), DeviceChoice::Cuda(0).open().unwrap());
    let old = std::env::var("DAB_CUDA_SM").is_ok_and(|sm| sm == "75");
    let modules = |word: &str| {
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "ptx"));
        files.filter(|path| std::fs::read_to_string(path).unwrap().contains(word)).count()
    };
    for (precision, cpu, allowed) in PRECISIONS {
        if precision == "tf32" {
            assert_eq!(modules(".tf32"), 0, "nobody asked for TF32 before");
        }
        if precision == "tf32" && old {
            let said = format!("{:#}", losses(precision, &gpu, &task).unwrap_err());
            assert!(said.contains("this device has no units for TF32"), "{said}");
            println!("tf32: refused");
            continue;
        }
        let (cpu, gpu) =
            (losses(cpu, &Device::flex(), &task).unwrap(), losses(precision, &gpu, &task).unwrap());
        let largest = apart(&cpu, &gpu);
        println!("{precision}: losses differ by {largest:.1e}, {allowed:.1e} is allowed");
        assert!(largest <= allowed, "{precision}: {cpu:?} on the CPU, {gpu:?} on the GPU");
        if precision == "tf32" {
            println!("tf32: {} of {} modules multiply in it", modules(".tf32"), modules("entry"));
            assert!(modules(".tf32") > 0 && largest > 1e-6, "nothing was rounded: {largest}");
        }
    }
}

/// What the driver has written down when all work is done.
#[derive(Clone, Copy, Debug)]
struct Books {
    launches: u64,
    /// The most bytes that were allocated.
    most: u64,
    /// Bytes that went to the device, and back.
    copied: [u64; 2],
}

impl Books {
    fn now(folder: &Path, device: &Device) -> Self {
        device.sync().unwrap();
        let text = std::fs::read_to_string(folder.join("now.txt")).unwrap();
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
        };
        Self {
            launches: number("launches "),
            most: number("largest use of memory "),
            copied: ["bytes to the device ", "bytes from the device "].map(number),
        }
    }

    fn since(self, before: Self) -> Self {
        let copied = [0, 1].map(|way| self.copied[way] - before.copied[way]);
        Self { launches: self.launches - before.launches, most: self.most, copied }
    }
}

/// One step, and the most memory of some.
fn step(experiment: &Experiment, examples: &Examples, [inputs, classes]: [usize; 2], folder: &Path) -> Books {
    let device = examples.device();
    let mut model = Rdfc::new(experiment, inputs, Output::Classes(classes), 0, &device);
    let mut found = Vec::new();
    let ended = model.epoch_watched(experiment, examples, &mut |_| {
        found.push(Books::now(folder, &device));
        if found.len() == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(ended.is_none());
    // The first step has no momentum to add.
    let (third, fourth) = (found[2].since(found[1]), found[3].since(found[2]));
    assert_eq!(third.launches, fourth.launches, "one step is like another: {found:?}");
    fourth
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|g| std::str::from_utf8(g).unwrap()).collect();
    groups.join(",")
}

#[test]
fn digits_are_grouped_by_three() {
    assert_eq!([7, 999, 1000, 65_536, 3_145_728].map(grouped), ["7", "999", "1,000", "65,536", "3,145,728"]);
}

/// How far the estimate of `--dry-run` may be from the driver's books.
const ESTIMATE: f64 = 0.15;
/// What the bottleneck may have of a step's launches.
const SHARE: f64 = 0.15;

#[test]
fn a_step_of_a_published_network_is_counted() {
    let Some(folder) = records("a_step_of_a_published_network_is_counted") else { return };
    let device = DeviceChoice::Cuda(0).open().unwrap();
    let (name, file, side, classes) = match std::env::var("DAB_COUNTED").as_deref() {
        Ok("resnet50") => {
            let file = include_str!("../experiments/imagenet-resnet50-finetune.toml");
            ("ResNet-50 fine-tuned", file, 224, 1000)
        }
        _ => ("WRN-28-10", include_str!("../experiments/cifar10-wrn28-10.toml"), 32, 10),
    };
    let mut experiment = Experiment::parse(file).unwrap();
    let batch: usize =
        std::env::var("DAB_BATCH").map_or(experiment.training.batch, |text| text.parse().unwrap());
    experiment.training.batch = batch;
    (experiment.training.accumulate, experiment.training.replicas) = (1, 1);
    let rows = 4 * batch;
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % classes).collect();
    // The bottleneck alone, on as many features as the network gives.
    let mut alone = experiment.clone();
    alone.backbone.images = None;
    let features = experiment.backbone.images.as_ref().unwrap().network.features();
    let inputs = burn::tensor::Tensor::<2>::zeros([rows, features], &device);
    let one_hot = burn::tensor::Tensor::<2>::zeros([rows, classes as usize], &device);
    let table = Examples {
        inputs: Inputs::Table { inputs, wanted: one_hot },
        labels: Some(labels.clone()),
        noise: None,
    };
    let bottleneck = step(&alone, &table, [features, classes as usize], &folder);
    drop(table);

    let bytes = vec![0; rows * CHANNELS * side * side];
    let set = ImageSet::all("black", Arc::new(Pixels::planar(side, bytes, Augment::default())));
    let normalise = Preprocessing::default().normalise;
    let inputs = set.cols();
    let streamed = Streamed {
        rows: Arc::new(ImageRows { set, normalise }),
        classes: classes as usize,
        device: device.clone(),
        seed: 0,
        fault: Arc::new(Mutex::new(None)),
    };
    let examples = Examples { inputs: Inputs::Streamed(streamed), labels: Some(labels), noise: None };
    let whole = step(&experiment, &examples, [inputs, classes as usize], &folder);

    let share = bottleneck.launches as f64 / whole.launches as f64;
    let output = Output::Classes(classes as usize);
    let mut model = Rdfc::new(&experiment, inputs, output, 0, &Device::flex());
    let parameters = (model.network.parameter_count() + model.codebook.means.len()) as u64;
    let cost = Cost::of(&experiment, inputs, output.width());
    let estimate: u64 = cost.memory(experiment.optimiser.rule, parameters, inputs, batch).iter().sum();
    let ratio = estimate as f64 / whole.most as f64;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let [to, from] = whole.copied.map(grouped);
    println!(
        "| {name}, {batch} | {} | {}, {:.1} % | {:.2} GiB | {:.2} GiB | {to} | {from} |",
        grouped(whole.launches),
        grouped(bottleneck.launches),
        100.0 * share,
        gib(whole.most),
        gib(estimate)
    );
    assert!(share <= SHARE, "{share}");
    assert!((ratio - 1.0).abs() <= ESTIMATE, "{ratio}");
}
