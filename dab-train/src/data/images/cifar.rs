//! CIFAR-10 and CIFAR-100 as distributed, in the binary version. (The Python version holds the same images.)
//!
//! ```text
//! cifar-10-batches-bin     data_batch_1.bin … test_batch.bin      label, 3072 bytes colour by colour, 10 000 times
//! cifar-100-binary         train.bin test.bin                     coarse label, fine label, 3072 bytes
//! ```

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};

/// Height and width.
pub(super) const SIDE: usize = 32;
const IMAGE: usize = 3 * SIDE * SIDE;

/// Bytes of all images of `part` ("train" or "test"), colour by colour, and their labels.
pub(super) fn read(folder: &Path, part: &str) -> Result<(Vec<u8>, Vec<u32>)> {
    let names: Vec<String> = match part {
        "train" => (1..=5).map(|i| format!("data_batch_{i}")).chain(["train".to_owned()]).collect(),
        "test" => vec!["test_batch".to_owned(), "test".to_owned()],
        _ => bail!("{}: expected :train or :test after it", folder.display()),
    };
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for name in names {
        let path = folder.join(format!("{name}.bin"));
        if path.is_file() {
            let here = || format!("cannot read {}", path.display());
            let bytes = fs::read(&path).with_context(here)?;
            // The first label of CIFAR-100 is the coarse one.
            let label = if name.contains("batch") { 1 } else { 2 };
            records(&bytes, label, &mut images, &mut labels).with_context(here)?;
        }
    }
    ensure!(
        !labels.is_empty(),
        "{} holds no .bin file of CIFAR's `{part}` images: take the binary version (`dab data cifar10`, `dab data cifar100`)",
        folder.display()
    );
    Ok((images, labels))
}

/// Records of `head` label bytes, of which the last counts, and an image.
fn records(bytes: &[u8], head: usize, images: &mut Vec<u8>, labels: &mut Vec<u32>) -> Result<()> {
    let size = head + IMAGE;
    ensure!(bytes.len().is_multiple_of(size), "its length {} is no multiple of {size}", bytes.len());
    for record in bytes.chunks_exact(size) {
        labels.push(record[head - 1].into());
        images.extend_from_slice(&record[head..]);
    }
    Ok(())
}

/// The pixels of tests/reference/images/make.py, colour by colour.
#[cfg(test)]
pub(super) fn reference(count: usize, side: usize) -> Vec<u8> {
    let pixel = |image: usize, c: usize, r: usize, x: usize| (40 * image + 60 * c + 5 * r + 3 * x) as u8;
    let plane = |i: usize, c: usize| (0..side * side).map(move |at| pixel(i, c, at / side, at % side));
    (0..count).flat_map(|i| (0..3).flat_map(move |c| plane(i, c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_cut_and_a_torn_file_is_refused() {
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        let mut bytes = vec![7; 2 * (2 + IMAGE)];
        (bytes[1], bytes[2 + IMAGE + 1]) = (41, 99);
        records(&bytes, 2, &mut images, &mut labels).unwrap();
        assert_eq!((labels, images.len()), (vec![41, 99], 2 * IMAGE));
        let torn = records(&bytes[1..], 2, &mut Vec::new(), &mut Vec::new()).unwrap_err();
        assert!(torn.to_string().contains("no multiple of 3074"));
    }

    #[test]
    fn a_folder_of_the_python_version_says_which_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("data_batch_1"), b"pickled").unwrap();
        let said = read(folder.path(), "train").unwrap_err().to_string();
        assert!(said.contains("no .bin file") && said.contains("`dab data cifar10`"), "{said}");
    }
}
