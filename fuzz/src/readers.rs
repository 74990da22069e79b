//! A file of a stranger, in every format that the host reads, is read or refused in words.
//!
//! The first byte says the format, the others are the file. Archives are checked by sums that a random change breaks, so there are
//! formats in which the archive is sound and its entry is what the bytes say.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dab_core::Model;
use dab_core::artifact::AlignedBytes;
use tempfile::TempDir;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::data::DataConfig;
use crate::data::files::{self, FilePart, Npz};
use crate::data::images::sources::{self, How};
use crate::data::rows::{Layout, RowError, RowReader, RowSource, TextFormat};
use crate::{export::pack, weights};

/// Formats, by the first byte of an input.
pub const FORMATS: [&str; 13] = [
    "npy",
    "npz",
    "npz-entry",
    "csv",
    "csv.gz",
    "png",
    "jpg",
    "cifar",
    "pack",
    "pth",
    "pth-entry",
    "safetensors",
    "toml",
];
/// Rows that are read of a file.
const ROWS: usize = 1 << 12;

/// Where the files are: in memory, where the machine has a folder for that.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.expect("a folder for files")
});

/// Reads a file.
///
/// # Panics
/// When a reader does, or when what it made of a file is unsound.
pub fn check(data: &[u8]) {
    let Some((&format, bytes)) = data.split_first() else { return };
    match FORMATS[usize::from(format) % FORMATS.len()] {
        "npy" => table(&save("x.npy", bytes)),
        "npz" => npz(&save("x.npz", bytes)),
        "npz-entry" => npz(&save("x.npz", &archive(&[("x.npy", bytes)], method(bytes)))),
        "csv" => table(&save("x.csv", bytes)),
        "csv.gz" => table(&save("x.csv.gz", bytes)),
        "png" => picture(&save("x.png", bytes)),
        "jpg" if bytes.len().is_multiple_of(16) || !is_large(bytes) => picture(&save("x.jpg", bytes)),
        "jpg" => {}
        "cifar" => {
            save("test_batch.bin", bytes);
            images(&format!("{}:test", FOLDER.path().display()));
        }
        "pack" => packed(bytes),
        "pth" => tensors(&save("x.pth", bytes)),
        "pth-entry" => {
            let entries = [("x/data.pkl", bytes), ("x/byteorder", &b"little"[..]), ("x/data/0", &[0; 64])];
            tensors(&save("x.pth", &archive(&entries, method(bytes))));
        }
        "safetensors" => tensors(&save("x.safetensors", bytes)),
        _ => drop(std::str::from_utf8(bytes).map(toml::from_str::<DataConfig>)),
    }
}

/// Writes a file into the folder.
fn save(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.path().join(name);
    std::fs::write(&path, bytes).expect("space for a file");
    path
}

/// How an entry is packed: one in sixteen is compressed, which takes longer than everything else.
fn method(bytes: &[u8]) -> CompressionMethod {
    if bytes.len().is_multiple_of(16) { CompressionMethod::Deflated } else { CompressionMethod::Stored }
}

/// A zip archive of these entries.
fn archive(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in entries {
        zip.start_file(*name, options).expect("a short name");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

/// What went wrong is said.
fn told<T>(result: anyhow::Result<T>) -> Option<T> {
    result.map_err(|error| assert!(!format!("{error:#}").trim().is_empty(), "an error without words")).ok()
}

/// A file of rows, as a table, as labels and as a stream.
fn table(path: &Path) {
    let part = FilePart::parse(&path.display().to_string());
    let found = told(files::table(&part, &[]));
    let _ = told(files::labels(&part));
    if let Some((table, names)) = &found {
        assert!(table.rows > 0 && table.cols > 0 && table.iter().flatten().all(|x| x.is_finite()));
        assert!(
            names.is_empty() || names.len() == table.cols,
            "{} names of {} columns",
            names.len(),
            table.cols
        );
    }
    let inputs = found.as_ref().map_or(2, |(table, _)| table.cols);
    let layout = Layout { inputs, names: None, text: TextFormat::default() };
    let Some(mut rows) = told(RowReader::open(&RowSource::new(path), &layout)) else { return };
    let mut row = vec![f32::NAN; inputs];
    for at in 0..ROWS {
        match rows.next_into(&mut row) {
            Ok(true) => {
                assert!(row.iter().all(|x| x.is_finite()), "a row that is no number");
                if let Some((table, _)) = &found {
                    assert_eq!(table.row(at), row, "the stream gives another row {at}");
                }
            }
            Ok(false) => break,
            Err(RowError::Bad(bad)) => assert!(!bad.to_string().is_empty()),
            Err(RowError::End(error)) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
}

/// An archive of arrays: of numbers, labels, bytes, images.
fn npz(path: &Path) {
    table(path);
    let Some(mut npz) = told(Npz::open(path)) else { return };
    let _ = told(npz.has_images(Some("x")));
    if let Some((shape, bytes)) = told(npz.bytes("x")) {
        assert_eq!(shape.iter().product::<usize>(), bytes.len());
    }
    images(&path.display().to_string());
}

/// A source of images, of which one is read.
fn images(source: &str) {
    let Some(read) = told(sources::read(source, Path::new(""), How::default(), true)) else { return };
    if let Some(labels) = &read.labels {
        assert_eq!(labels.len(), read.images.len(), "as many labels as images");
    }
    if read.images.len() > 0 {
        let side = read.images.side();
        let _ = told(read.images.read(read.images.len() - 1, None, &mut vec![0; 3 * side * side]));
    }
}

/// Whether a JPEG has more than 128 × 128 pixels. Of those one in sixteen is decoded: they would take most of the time.
fn is_large(bytes: &[u8]) -> bool {
    let decoder = libjpeg_turbo_rs::Decoder::new(bytes);
    decoder.is_ok_and(|d| usize::from(d.header().width) * usize::from(d.header().height) > 128 * 128)
}

/// A picture, as a network sees it; one of 14 × 14 pixels, because enlarging a small picture to the 224 × 224 of ImageNet takes
/// a hundred times as long as decoding it.
fn picture(path: &Path) {
    let mut how = How::default();
    (how.preprocessing.side, how.preprocessing.resize) = (14, 16);
    let read = sources::pictures(vec![path.into()], how);
    let side = read.images.side();
    let _ = told(read.images.read(0, None, &mut vec![0; 3 * side * side]));
}

/// Tensors for `dab pack`: a model that loads, or a reason.
fn packed(bytes: &[u8]) {
    let said = |error: pack::PackError| assert!(!error.to_string().is_empty());
    if let Err(error) = pack::network_from_safetensors(bytes) {
        said(error);
    }
    match pack::spec_from_safetensors(bytes) {
        Err(error) => said(error),
        Ok(spec) => match spec.to_bytes() {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(file) => {
                let file = AlignedBytes::from(&file[..]);
                let model = Model::from_bytes(file.as_slice()).expect("a packed model loads");
                assert_eq!(model.shape().inputs, spec.inputs);
            }
        },
    }
}

/// Weights of an image network.
fn tensors(path: &Path) {
    for (name, tensor) in told(weights::tensors(path)).into_iter().flatten() {
        let product = tensor.shape.iter().product::<usize>();
        assert_eq!(product, tensor.values.len(), "{name} has another number of values than its shape");
    }
}

/// A sound file of every format, to begin with.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    FORMATS
        .iter()
        .enumerate()
        .map(|(format, name)| {
            let mut data = vec![format as u8];
            data.extend(sound(name));
            (name.replace('.', "-"), data)
        })
        .collect()
}

fn sound(format: &str) -> Vec<u8> {
    let numbers: Vec<u8> = (0..6u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    let rows = "a,b,kind\n1,2,cat\n3.5,-4e2,\"d,og\"\n";
    match format {
        "npy" => npy("<f4", "(2, 3)", &numbers),
        "npz" => {
            let (x, y) = (npy("<f4", "(2, 3)", &numbers), npy("<U2", "(1,)", &[65, 0, 0, 0, 0, 0, 0, 0]));
            archive(&[("x.npy", &x), ("y.npy", &y)], CompressionMethod::Deflated)
        }
        "npz-entry" => npy("|u1", "(1, 2, 2, 3)", &[7; 12]),
        "csv" => rows.into(),
        "csv.gz" => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(rows.as_bytes()).expect("memory");
            gzip.finish().expect("memory")
        }
        "png" => {
            let mut bytes = std::io::Cursor::new(Vec::new());
            let pixel = |x, y| image::Rgb([40 * x as u8, 30 * y as u8, 99]);
            image::RgbImage::from_fn(5, 4, pixel).write_to(&mut bytes, image::ImageFormat::Png).expect("memory");
            bytes.into_inner()
        }
        "jpg" => {
            use libjpeg_turbo_rs::{PixelFormat, Subsampling, compress};
            let pixels: Vec<u8> = (0..3 * 5 * 4).map(|i| 4 * i).collect();
            compress(&pixels, 5, 4, PixelFormat::Rgb, 75, Subsampling::S420).expect("memory")
        }
        "cifar" => (0..3073u32).map(|i| if i == 0 { 3 } else { i as u8 }).collect(),
        "pack" => safetensors(
            &[("head.weight", &[4, 2]), ("codes.mean", &[1, 2]), ("codes.cov", &[1, 2]), ("codes.prior", &[1])],
            &[("covariance", "diagonal")],
        ),
        "safetensors" => safetensors(&[("conv1.weight", &[2, 3])], &[]),
        "pth" => {
            archive(&[("x/data.pkl", &pickle()), ("x/data/0", &numbers[..16])], CompressionMethod::Deflated)
        }
        "pth-entry" => pickle(),
        _ => "kind = 'images'\ntrain = 'a:train'\ntest = 'b'\nheld_out = 0.3\nside = 32\nood = { c = 'd.npz:x' }\n".into(),
    }
}

fn npy(kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), values].concat()
}

/// Tensors of ones.
fn safetensors(tensors: &[(&str, &[usize])], metadata: &[(&str, &str)]) -> Vec<u8> {
    let ones = vec![1f32.to_le_bytes(); 64].concat();
    let view = |&(name, shape): &(&str, &[usize])| {
        let bytes = &ones[..4 * shape.iter().product::<usize>()];
        (
            name.to_owned(),
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.into(), bytes)
                .expect("a shape"),
        )
    };
    let metadata = metadata.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    safetensors::serialize(tensors.iter().map(view), Some(metadata)).expect("small tensors")
}

/// `{"conv1.weight": a tensor of 2 × 2}`, as torch.save pickles it.
fn pickle() -> Vec<u8> {
    let mut bytes = b"\x80\x02}X\x0c\x00\x00\x00conv1.weightctorch._utils\n_rebuild_tensor_v2\n((".to_vec();
    bytes.extend(
        b"X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ",
    );
    bytes.extend(b"K\x00K\x02K\x02\x86K\x02K\x01\x86\x89ccollections\nOrderedDict\n)RtRs.");
    bytes
}
