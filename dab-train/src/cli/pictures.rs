//! Pictures on a command line: which image network sees them, and their features in the order in which they were named.
//!
//! ```text
//! RUN, or MODEL.dab with --backbone, or --network with --backbone → Eye        cat.png, folder/, file.npz:images → ImageSet
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::{Device, Tensor, TensorData};

use super::score::is_named_parquet;
use crate::{
    config::{Experiment, ImageBackbone},
    data::{
        self, DataConfig, Normalise, Preprocessing,
        files::{FilePart, Npz},
        images::{
            ImageSet,
            sources::{self, How, is_picture},
        },
    },
    export::backbone::{self, Backbone},
    learn::images::{digest, frozen},
    model::{
        network::as_images,
        resnet::{Architecture, ResNet},
        weights::Weights,
    },
    report::folder::{BACKBONE, EXPERIMENT},
    support::device::DeviceChoice,
};

/// Numbers of the images that go through the network together: 256 of CIFAR's, 8 of ImageNet's.
const NUMBERS: usize = 256 * 3 * 32 * 32;
/// Images that go through it together at least.
const FEWEST: usize = 8;
/// Digits of a digest that tell two networks apart.
const DIGITS: usize = 12;

/// Which image network sees pictures.
#[derive(Debug, clap::Args)]
pub struct NetworkArgs {
    /// Numbers of the image network: a run's backbone.safetensors, or a PyTorch file [default: the run's]
    #[arg(long, value_name = "FILE")]
    backbone: Option<PathBuf>,

    /// The image network where no run or model tells: resnet50, cifar-resnet-20, wide-resnet-28-10 …
    #[arg(long, value_name = "NAME", requires = "backbone")]
    network: Option<Architecture>,

    /// With --network: height and width of what it sees [default: its own]
    #[arg(long, value_name = "PIXELS", requires = "network")]
    side: Option<usize>,

    /// With --network: shorter side of a picture before its centre is cut out [default: its own]
    #[arg(long, value_name = "PIXELS", requires = "network")]
    resize: Option<usize>,

    /// With --network: what is subtracted from the colours, which are 0 to 1 [default: ImageNet's]
    #[arg(long, value_name = "R,G,B", requires = "network", value_parser = colours)]
    mean: Option<[f32; 3]>,

    /// With --network: what divides them then [default: ImageNet's]
    #[arg(long, value_name = "R,G,B", requires = "network", value_parser = colours)]
    std: Option<[f32; 3]>,

    /// Where the image network computes: auto, cpu, cuda[:N], wgpu or ndarray
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
}

fn colours(text: &str) -> Result<[f32; 3], String> {
    let numbers: Option<Vec<f32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    let three = numbers.and_then(|numbers| <[f32; 3]>::try_from(numbers).ok());
    three.filter(|three| three.iter().all(|x| x.is_finite())).ok_or("three numbers, as in 0.5,0.5,0.5".into())
}

/// Whether inputs are pictures: files, folders, or arrays of images.
pub fn are_pictures(inputs: &[PathBuf]) -> Result<bool> {
    for input in inputs {
        let FilePart { path, part, .. } = FilePart::parse(&input.to_string_lossy());
        let npz = path.to_string_lossy().to_lowercase().ends_with(".npz");
        let key = part.as_deref().map(|part| part.split(',').next().unwrap_or(part));
        if (input.is_dir() && !holds_parquet(input))
            || is_picture(input)
            || (npz && path.is_file() && Npz::open(&path)?.has_images(key)?)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a folder or one inside it holds Parquet files, which are rows.
fn holds_parquet(folder: &Path) -> bool {
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| {
        let path = entry.path();
        is_named_parquet(&path) || (entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds_parquet(&path))
    })
}

/// An image network, and what happens to a picture before it.
pub struct Eye {
    network: ResNet,
    pub preprocessing: Preprocessing,
    device: Device,
}

impl NetworkArgs {
    /// The network in front of a model: `info` is the model's, `folder` the one that it is in.
    pub fn open(&self, info: Option<&[(String, String)]>, folder: Option<&Path>) -> Result<Eye> {
        let of_run = folder.map(|folder| folder.join(EXPERIMENT)).filter(|file| file.is_file());
        let of_run = of_run.map(|file| Experiment::read(&file)).transpose()?;
        self.of(info, of_run.as_ref(), folder)
    }

    /// The network that is said by these arguments, by a model's `info`, or by an experiment, in this order.
    pub fn of(
        &self,
        info: Option<&[(String, String)]>,
        experiment: Option<&Experiment>,
        folder: Option<&Path>,
    ) -> Result<Eye> {
        let named = info.map(backbone::of_info).transpose()?.flatten();
        let configured =
            experiment.and_then(|experiment| match (&experiment.data, &experiment.backbone.images) {
                (DataConfig::Images(data), Some(images)) => Some((images, data.preprocessing())),
                _ => None,
            });
        let (network, preprocessing, wanted) = match (self.network, named, configured) {
            (Some(network), ..) => (network, self.preprocessing(network)?, None),
            (None, Some((Backbone { network, sha256 }, preprocessing)), _) => {
                (network, preprocessing, Some(sha256))
            }
            (None, None, Some((images, preprocessing))) => (images.network, preprocessing, None),
            (None, None, None) => bail!(
                "nothing says which image network sees pictures and folders: give a run that was trained on images, or \
                 --network and --backbone"
            ),
        };
        let path = self.weights(folder, configured.map(|(images, _)| images))?;
        let device = self.device.open()?;
        let weights = Weights::read(&path)?;
        let config = ImageBackbone { network, weights: None, frozen: true, rate_share: 1.0 };
        let network = frozen(&config, &weights, &device)?;
        if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
            let found = digest(&network);
            ensure!(
                found == wanted,
                "{} is not the image network of this model: its SHA-256 is {}…, the model was made behind {}…; give the \
                 backbone.safetensors of the same run",
                path.display(),
                &found[..DIGITS],
                wanted.get(..DIGITS).unwrap_or(&wanted)
            );
        }
        Ok(Eye { network, preprocessing, device })
    }

    /// Where the network's numbers are.
    fn weights(&self, folder: Option<&Path>, images: Option<&ImageBackbone>) -> Result<PathBuf> {
        if let Some(path) = &self.backbone {
            return Ok(path.clone());
        }
        if let Some(path) = folder.map(|folder| folder.join(BACKBONE)).filter(|path| path.is_file()) {
            return Ok(path);
        }
        // A frozen network is where its experiment says.
        let stored = images.filter(|images| images.frozen).and_then(|images| images.weights.as_ref());
        let path = stored.context("where are the numbers of the image network? give --backbone FILE")?;
        data::stored(&data::data_root(), path)
            .context("the image network's numbers (--backbone names another file)")
    }

    fn preprocessing(&self, network: Architecture) -> Result<Preprocessing> {
        let side = self.side.unwrap_or(network.side());
        let resize = self.resize.unwrap_or(network.resize(side));
        ensure!(
            side > 0 && resize >= side,
            "--resize {resize} is less than --side {side}, which is cut out of it"
        );
        let plain = Normalise::default();
        let normalise =
            Normalise { mean: self.mean.unwrap_or(plain.mean), std: self.std.unwrap_or(plain.std) };
        ensure!(normalise.std.iter().all(|&std| std > 0.0), "--std: three positive numbers");
        Ok(Preprocessing { side, resize, always_resize: self.resize.is_some(), normalise })
    }
}

impl Eye {
    /// Width of a row of features.
    pub fn features(&self) -> usize {
        self.network.architecture().features()
    }

    /// How many images to give at a time.
    pub fn chunk(&self) -> usize {
        (NUMBERS / (3 * self.preprocessing.side.pow(2))).max(FEWEST)
    }

    /// Pictures, folders of them and arrays of images, as sets in the order of `inputs`; neighbouring files are one set.
    pub fn sets(&self, inputs: &[PathBuf]) -> Result<Vec<ImageSet>> {
        let how = How { preprocessing: self.preprocessing, ..How::default() };
        let mut sets = Vec::new();
        let picture = |input: &PathBuf| input.is_file() && is_picture(input);
        for inputs in inputs.chunk_by(|a, b| picture(a) && picture(b)) {
            if picture(&inputs[0]) {
                sets.push(ImageSet::all("pictures", sources::pictures(inputs.to_vec(), how).images));
                continue;
            }
            let source = inputs[0].to_string_lossy();
            let file = FilePart::parse(&source).path;
            ensure!(
                file.exists() || source.rsplit_once(':').is_some_and(|(path, _)| Path::new(path).exists()),
                "cannot read `{source}`: there is no such file or folder"
            );
            sets.push(
                self.fits(ImageSet::all(&source, sources::read(&source, Path::new(""), how, false)?.images))?,
            );
        }
        Ok(sets)
    }

    /// Arrays are not resized: they must have the network's size.
    pub fn fits(&self, set: ImageSet) -> Result<ImageSet> {
        let (found, wanted) = (set.images.side(), self.preprocessing.side);
        ensure!(
            found == wanted,
            "{} has images of {found} × {found}, the network sees {wanted} × {wanted}: resize them, or give files, which \
             are resized",
            set.source
        );
        Ok(set)
    }

    /// Features of the images at `indices`, one row each; a row of zeros, and why, for one that cannot be read.
    pub fn see(&self, set: &ImageSet, indices: &[usize]) -> (Vec<f32>, Vec<Option<anyhow::Error>>) {
        let (numbers, faults) = set.readable(indices, &self.preprocessing.normalise, None);
        let x = Tensor::from_data(TensorData::new(numbers, [indices.len(), set.cols()]), &self.device);
        (self.network.forward(as_images(x), None).into_data().iter::<f32>().collect(), faults)
    }
}
