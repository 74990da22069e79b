//! `dab features`: pictures in, what an image network makes of them out, for any framework.

#[cfg(feature = "parquet")]
mod parquet;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use npyz::{DType, NpyWriter, WriteOptions, WriterBuilder};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{
    input::check_apart,
    pictures::{Eye, NetworkArgs},
    place::Place,
    score::is_named_parquet,
    text::plural,
};
use crate::{
    config::Experiment,
    data::{
        files::Labels,
        images::{
            ImageSet,
            sources::{self, How, is_picture},
        },
    },
    export::model_file::ModelFile,
    support::files::AtomicFile,
};

/// Write features of pictures: what an image network makes of them
///
/// A source is a picture (.jpg, .jpeg, .png), a folder of pictures, a folder with one folder per class, an array of
/// images (x.npz:images or x.npz:images,labels) or CIFAR's binary version (cifar-10-batches-bin:test). The network is
/// a run's (--run: its folder, its model.dab or an experiment file), or --network with --backbone says it. Pictures are
/// decoded, resized and normalised as in training: `dab inspect` of a model prints the rule.
///
/// Into x.npy go the features, one row per picture, in float32. Into x.npz go three arrays: features, names (the files),
/// and labels, if every source has some: the names of class folders, or the labels of an array. Into x.parquet go the same
/// three as columns; features are lists. Parquet needs a dab that was built with it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab features pictures/ --run runs/insects -o features.npy
  dab features train/ --network resnet50 --backbone resnet50-0676ba61.pth -o train.npz
  dab fit --features train.npz:features --labels train.npz:labels
  dab features train/ --run runs/insects -o train.parquet")]
pub struct Args {
    /// Pictures, folders of them, arrays of images
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// Whose image network: the folder of a run, a model file, or an experiment (.toml)
    #[arg(long, value_name = "RUN", required_unless_present = "network")]
    run: Option<PathBuf>,

    #[command(flatten)]
    network: NetworkArgs,

    /// Where to write them: a file named .npy, .npz or .parquet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// What is written, by the name of the file.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Npy,
    Npz,
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => Ok(Self::Npy),
            Some("npz") => Ok(Self::Npz),
            #[cfg(feature = "parquet")]
            _ if is_named_parquet(path) => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            _ if is_named_parquet(path) => bail!("{}", crate::data::rows::parquet::WITHOUT_PARQUET),
            _ => bail!("-o {}: expected a name that ends in .npy, .npz or .parquet", path.display()),
        }
    }
}

pub fn run(args: &Args) -> Result<()> {
    let form = Form::of(&args.output)?;
    check_apart(&args.output, args.sources.iter().chain(&args.run))?;
    let eye = eye(args)?;
    let (sets, labels) = read(args, &eye)?;
    let rows: usize = sets.iter().map(ImageSet::len).sum();
    ensure!(rows > 0, "there is no picture");
    let here = || format!("cannot write `{}`", args.output.display());
    let mut file = AtomicFile::create(&args.output).with_context(here)?;
    let written = match form {
        Form::Npy => npy(&eye, &sets, rows, &mut file),
        Form::Npz => npz(&eye, &sets, rows, labels.as_ref(), &mut file),
        #[cfg(feature = "parquet")]
        Form::Parquet => parquet::write(&eye, &sets, labels.as_ref(), &mut file),
    };
    written.with_context(here)?;
    file.commit().with_context(here)?;
    let arrays = match (form, &labels) {
        (Form::Npy, _) => "",
        (_, None) => " (features, names)",
        (_, Some(_)) => " (features, names, labels)",
    };
    super::print(&format!(
        "{}{arrays}: {} of {}\n",
        args.output.display(),
        plural(rows as u64, "row"),
        plural(eye.features() as u64, "feature")
    ))
}

fn eye(args: &Args) -> Result<Eye> {
    let Some(run) = &args.run else { return args.network.open(None, None) };
    if run.extension().is_some_and(|extension| extension == "toml") {
        return args.network.of(None, Some(&Experiment::read(run)?), None);
    }
    let place = Place::new(run)?;
    let info = ModelFile::open(&place.model)?.info;
    args.network.open(Some(&info), Some(&place.folder)).with_context(|| format!("`{}`", run.display()))
}

/// All sources as sets, and the labels of all, if every source has some of one kind.
fn read(args: &Args, eye: &Eye) -> Result<(Vec<ImageSet>, Option<Labels>)> {
    let how = How { preprocessing: eye.preprocessing, ..How::default() };
    let (mut sets, mut labels) = (Vec::new(), Some(Labels::Words(Vec::new())));
    for path in &args.sources {
        let source = path.to_string_lossy();
        let root = Path::new("");
        let read = match is_picture(path) {
            true => sources::read(&source, root, how, false)?,
            // A folder without class folders is a list.
            false => sources::read(&source, root, how, true).or_else(|error| {
                if path.is_dir() { sources::read(&source, root, how, false) } else { Err(error) }
            })?,
        };
        labels = match (labels, read.labels) {
            (Some(Labels::Words(all)), Some(more)) if all.is_empty() => Some(more),
            (Some(Labels::Words(all)), Some(Labels::Words(more))) => {
                Some(Labels::Words([all, more].concat()))
            }
            (Some(Labels::Numbers(all)), Some(Labels::Numbers(more))) => {
                Some(Labels::Numbers([all, more].concat()))
            }
            _ => None,
        };
        sets.push(eye.fits(ImageSet::all(&source, read.images))?);
    }
    Ok((sets, labels))
}

/// Features of all pictures, in order and some rows at a time.
fn each_chunk(
    eye: &Eye,
    sets: &[ImageSet],
    mut take: impl FnMut(&ImageSet, &[usize], &[f32]) -> Result<()>,
) -> Result<()> {
    for set in sets {
        let indices: Vec<usize> = (0..set.len()).collect();
        for indices in indices.chunks(eye.chunk()) {
            let (features, faults) = eye.see(set, indices);
            if let Some(fault) = faults.into_iter().flatten().next() {
                return Err(fault.context("leave this file out"));
            }
            take(set, indices, &features)?;
        }
    }
    Ok(())
}

/// Begins an npy file of that type and shape.
fn array<T: npyz::Serialize + ?Sized, W: Write>(
    kind: &str,
    shape: &[usize],
    out: W,
) -> Result<NpyWriter<T, W>> {
    let shape: Vec<u64> = shape.iter().map(|&length| length as u64).collect();
    Ok(WriteOptions::new().dtype(DType::Plain(kind.parse()?)).shape(&shape).writer(out).begin_nd()?)
}

/// An npy file of all features.
fn npy(eye: &Eye, sets: &[ImageSet], rows: usize, out: impl Write) -> Result<()> {
    let mut array = array("<f4", &[rows, eye.features()], out)?;
    each_chunk(eye, sets, |_, _, features| Ok(array.extend(features.iter().copied())?))?;
    Ok(array.finish()?)
}

/// An npz file of features, names and labels.
fn npz(
    eye: &Eye,
    sets: &[ImageSet],
    rows: usize,
    labels: Option<&Labels>,
    out: &mut AtomicFile,
) -> Result<()> {
    let mut zip = ZipWriter::new_stream(out);
    let options = SimpleFileOptions::default().large_file(true);
    zip.start_file("features.npy", options)?;
    npy(eye, sets, rows, &mut zip)?;
    let names = sets.iter().flat_map(|set| (0..set.len()).map(|index| set.name(index))).collect::<Vec<_>>();
    zip.start_file("names.npy", options)?;
    words(&names, &mut zip)?;
    if let Some(labels) = labels {
        zip.start_file("labels.npy", options)?;
        match labels {
            Labels::Words(labels) => words(labels, &mut zip)?,
            Labels::Numbers(numbers) => {
                let mut array = array("<i8", &[numbers.len()], &mut zip)?;
                array.extend(numbers.iter().copied())?;
                array.finish()?;
            }
        }
    }
    zip.finish()?;
    Ok(())
}

/// An npy file of texts, as wide as the longest.
fn words(list: &[String], out: impl Write) -> Result<()> {
    let width = list.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1);
    let mut array = array::<str, _>(&format!("<U{width}"), &[list.len()], out)?;
    list.iter().try_for_each(|word| array.push(word))?;
    Ok(array.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::files::{self, FilePart};

    #[test]
    fn arrays_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let save = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            FilePart::parse(&path.to_string_lossy())
        };
        let names = ["a".to_owned(), "größer 犬".to_owned()];
        let mut bytes = Vec::new();
        words(&names, &mut bytes).unwrap();
        assert_eq!(files::labels(&save("names.npy", &bytes)).unwrap(), Labels::Words(names.to_vec()));
        let mut bytes = Vec::new();
        let mut numbers = array("<f4", &[2, 3], &mut bytes).unwrap();
        numbers.extend([1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.5]).unwrap();
        numbers.finish().unwrap();
        let (table, _) = files::table(&save("x.npy", &bytes), &[]).unwrap();
        assert_eq!((table.rows, table.row(1)), (2, &[4.0, 5.0, 6.5][..]));
    }
}
