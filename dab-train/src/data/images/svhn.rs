//! SVHN's cropped digits: a MATLAB file of version 5.
//!
//! ```text
//! 128 bytes of header, then elements: type u32, length u32, data padded to 8 bytes
//! X  uint8 32 × 32 × 3 × n, first index fastest     y  n labels 1…10, where 10 is the digit 0
//! ```
//!
//! An element may be compressed (zlib), and a short one keeps its data beside its tag.

use std::{fs, io::Read, path::Path};

use anyhow::{Context, Result, bail, ensure};
use flate2::read::ZlibDecoder;

use super::cifar::SIDE;

/// Length of the text and version at the start.
const HEADER: usize = 128;
/// Type of a matrix.
const MATRIX: u32 = 14;
/// Type of a compressed element.
const COMPRESSED: u32 = 15;
/// Types of the numbers that labels come in, with their sizes.
const UINT8: u32 = 2;
const DOUBLE: u32 = 9;

/// An array: its name, dimensions, type of its numbers, and their bytes.
struct Array<'a> {
    name: &'a [u8],
    shape: Vec<usize>,
    kind: u32,
    bytes: &'a [u8],
}

/// Bytes of all images, colour by colour, and their labels: the digits.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Vec<u32>)> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&bytes).with_context(|| format!("{} is no SVHN file", path.display()))
}

fn parse(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u32>)> {
    let mut rest = bytes.get(HEADER..).context("it ends within its header")?;
    let (mut images, mut labels) = (None, None);
    while !rest.is_empty() {
        let (kind, data) = element(&mut rest)?;
        let mut inflated = Vec::new();
        let matrix = if kind == COMPRESSED {
            ZlibDecoder::new(data).read_to_end(&mut inflated).context("a compressed part is damaged")?;
            let mut inner = inflated.as_slice();
            element(&mut inner)?
        } else {
            (kind, data)
        };
        if matrix.0 != MATRIX {
            continue;
        }
        let array = array(matrix.1)?;
        match array.name {
            b"X" => images = Some(pixels(&array)?),
            b"y" => labels = Some(digits(&array)?),
            _ => {}
        }
    }
    let images = images.context("it has no array X")?;
    let labels = labels.context("it has no array y")?;
    ensure!(images.len() == labels.len() * 3 * SIDE * SIDE, "X and y are of different lengths");
    Ok((images, labels))
}

/// Takes one element: its type and its data.
fn element<'a>(bytes: &mut &'a [u8]) -> Result<(u32, &'a [u8])> {
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (tag, rest) = bytes.split_at_checked(8).context("it ends within a tag")?;
    let (kind, length) = (word(tag), word(&tag[4..]) as usize);
    if kind >> 16 != 0 {
        // A short element: its length shares the first word with its type.
        let data = tag.get(4..4 + (kind >> 16) as usize).context("a short element is too long")?;
        *bytes = rest;
        return Ok((kind & 0xFFFF, data));
    }
    let (data, rest) = rest.split_at_checked(length).context("it ends within an element")?;
    // All but compressed elements are padded.
    let padding = if kind == COMPRESSED { 0 } else { length.next_multiple_of(8) - length };
    *bytes = rest.get(padding..).unwrap_or_default();
    Ok((kind, data))
}

/// A matrix's parts: flags, dimensions, name, numbers.
fn array(mut bytes: &[u8]) -> Result<Array<'_>> {
    element(&mut bytes)?;
    let (_, shape) = element(&mut bytes)?;
    let shape = shape.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word) as usize).collect();
    let (_, name) = element(&mut bytes)?;
    let (kind, bytes) = element(&mut bytes)?;
    Ok(Array { name, shape, kind, bytes })
}

/// Columns first → colour by colour, rows first.
fn pixels(array: &Array) -> Result<Vec<u8>> {
    let [SIDE, SIDE, 3, count] = array.shape[..] else {
        bail!("X has dimensions {:?}, expected 32 × 32 × 3 × n", array.shape)
    };
    let plane = SIDE * SIDE;
    ensure!(array.kind == UINT8 && array.bytes.len() == 3 * plane * count, "X holds no bytes of that size");
    let mut images = vec![0; array.bytes.len()];
    for (from, to) in array.bytes.chunks_exact(plane).zip(images.chunks_exact_mut(plane)) {
        (0..plane).for_each(|at| to[at] = from[at % SIDE * SIDE + at / SIDE]);
    }
    Ok(images)
}

fn digits(array: &Array) -> Result<Vec<u32>> {
    let labels: Vec<f64> = match array.kind {
        UINT8 => array.bytes.iter().map(|&byte| byte.into()).collect(),
        DOUBLE => array.bytes.as_chunks::<8>().0.iter().map(|&word| f64::from_le_bytes(word)).collect(),
        other => bail!("y holds numbers of MATLAB type {other}"),
    };
    let digit = |&label: &f64| match label {
        l if (1.0..=10.0).contains(&l) && l.fract() == 0.0 => Ok(l as u32 % 10),
        other => bail!("a label is {other}; expected 1 to 10"),
    };
    labels.iter().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{super::cifar::reference, *};

    fn tagged(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
        bytes.extend_from_slice(data);
        if kind != COMPRESSED {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }

    fn matrix(name: &[u8], shape: &[u32], kind: u32, data: &[u8]) -> Vec<u8> {
        let dims: Vec<u8> = shape.iter().flat_map(|n| n.to_le_bytes()).collect();
        // A short name lies beside its tag, as MATLAB writes it.
        let mut short = (1 | (name.len() as u32) << 16).to_le_bytes().to_vec();
        short.extend_from_slice(name);
        short.resize(8, 0);
        tagged(MATRIX, &[tagged(6, &[0; 8]), tagged(5, &dims), short, tagged(kind, data)].concat())
    }

    fn file(compress: bool) -> Vec<u8> {
        let plane = |image: usize| {
            let cell = move |at: usize| (at / SIDE + 2 * (at % SIDE) + 7 * image) as u8;
            (0..3).flat_map(move |_| (0..SIDE * SIDE).map(cell))
        };
        let bytes: Vec<u8> = (0..2).flat_map(plane).collect();
        let labels: Vec<u8> = [10.0_f64, 3.0].iter().flat_map(|y| y.to_le_bytes()).collect();
        let mut file = vec![b' '; HEADER];
        for part in [matrix(b"X", &[32, 32, 3, 2], UINT8, &bytes), matrix(b"y", &[2, 1], DOUBLE, &labels)] {
            if compress {
                let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
                zlib.write_all(&part).unwrap();
                file.extend(tagged(COMPRESSED, &zlib.finish().unwrap()));
            } else {
                file.extend(part);
            }
        }
        file
    }

    #[test]
    fn images_are_turned_and_ten_is_zero() {
        for compress in [false, true] {
            let (images, labels) = parse(&file(compress)).unwrap();
            assert_eq!(labels, [0, 3]);
            // In the file the row is the fastest index: at row r, column c stands c + 2 r.
            let pixel = |image: usize, row: usize, column: usize| images[image * 3072 + row * SIDE + column];
            assert_eq!([pixel(0, 0, 0), pixel(0, 5, 1), pixel(1, 0, 3)], [0, 11, 10]);
        }
    }

    #[test]
    fn files_of_scipy_are_read() {
        let files: [(&[u8], &[u32]); 2] = [
            (include_bytes!("../../../tests/reference/images/svhn.mat"), &[0, 3]),
            (include_bytes!("../../../tests/reference/images/svhn-plain.mat"), &[0]),
        ];
        for (bytes, wanted) in files {
            assert_eq!(parse(bytes).unwrap(), (reference(wanted.len(), SIDE), wanted.to_vec()));
        }
    }

    #[test]
    fn every_prefix_and_flipped_header_byte_is_an_answer() {
        let whole = file(false);
        for end in (0..whole.len()).step_by(97) {
            assert!(parse(&whole[..end]).is_err(), "{end}");
        }
        for at in HEADER..HEADER + 64 {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x81;
            let _ = parse(&bytes);
        }
    }
}
