//! CIFAR-10 and CIFAR-100 as distributed: the binary version and the Python version.
//!
//! ```text
//! cifar-10-batches-bin     data_batch_1.bin … test_batch.bin      label, 3072 bytes colour by colour, 10 000 times
//! cifar-100-binary         train.bin test.bin                     coarse label, fine label, 3072 bytes
//! cifar-10-batches-py      data_batch_1 … test_batch              a pickle: data, labels
//! cifar-100-python         train test                             a pickle: data, fine_labels
//! ```

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};

use super::pickle;

/// Height and width.
pub(super) const SIDE: usize = 32;
/// Bytes of one image.
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
        let (binary, python) = (folder.join(format!("{name}.bin")), folder.join(&name));
        let here = |path: &Path| format!("cannot read {}", path.display());
        if binary.is_file() {
            let bytes = fs::read(&binary).with_context(|| here(&binary))?;
            // The first label of CIFAR-100 is the coarse one.
            let label = if name.contains("batch") { 1 } else { 2 };
            records(&bytes, label, &mut images, &mut labels).with_context(|| here(&binary))?;
        } else if python.is_file() {
            let bytes = fs::read(&python).with_context(|| here(&python))?;
            pickled(&bytes, &mut images, &mut labels).with_context(|| here(&python))?;
        }
    }
    ensure!(!labels.is_empty(), "{} holds no CIFAR images of `{part}`", folder.display());
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

fn pickled(bytes: &[u8], images: &mut Vec<u8>, labels: &mut Vec<u32>) -> Result<()> {
    let value = pickle::read(bytes)?;
    let own = value.get("fine_labels").or_else(|_| value.get("labels"))?.labels()?;
    let data = value.get("data")?.bytes().context("`data`")?;
    ensure!(
        data.len() == own.len() * IMAGE,
        "{} labels do not fit {} bytes of images",
        own.len(),
        data.len()
    );
    images.extend_from_slice(&data);
    labels.extend(own);
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

    /// Files of tests/reference/images/make.py, written by Python's own pickle.
    macro_rules! python {
        ($name:literal) => {
            include_bytes!(concat!("../../../tests/reference/images/", $name))
        };
    }

    #[test]
    fn pickles_of_python_2_and_3_are_read() {
        let files: [(&[u8], &[u32]); 6] = [
            (python!("cifar10-python2.pickle"), &[6, 9]),
            (python!("cifar100-python2.pickle"), &[19]),
            (python!("cifar10-python3-2.pickle"), &[3]),
            (python!("cifar10-python3-4.pickle"), &[3]),
            (python!("cifar10-python3-5.pickle"), &[3]),
            (python!("cifar10-columns.pickle"), &[1, 2]),
        ];
        for (file, (bytes, wanted)) in files.into_iter().enumerate() {
            let (mut images, mut labels) = (Vec::new(), Vec::new());
            pickled(bytes, &mut images, &mut labels).unwrap();
            assert_eq!(labels, wanted, "file {file}");
            assert_eq!(images, reference(wanted.len(), SIDE), "file {file}");
        }
    }
}
