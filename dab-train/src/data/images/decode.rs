//! One picture file, JPEG or PNG, as the RGB bytes that Pillow makes of it: `open(file).convert("RGB")`.
//!
//! Grey becomes three equal colours, transparency is dropped, and the orientation that a camera noted is not applied. JPEG
//! leaves the rounding of the inverse transform, and how colours of half the resolution are enlarged, to the decoder. Pillow
//! and torchvision have libjpeg-turbo's; `libjpeg-turbo-rs` gives the same bytes.

use std::{fs, io::Cursor, path::Path};

use anyhow::{Context, Result, bail, ensure};
use image::ImageFormat;
use libjpeg_turbo_rs::{DecodeLimits, Decoder, PixelFormat};

use super::resize::Picture;

/// An image may take this many times the bytes of its file, and 16 MB: photographs take 10 to 30 times, an image of one
/// colour as PNG about 1000 times.
const LARGEST_FACTOR: u64 = 2048;
const SMALLEST_LIMIT: u64 = 1 << 24;
/// Parts of a progressive JPEG, each of which passes over the whole picture. Encoders write about ten.
const MOST_SCANS: usize = 500;

/// Reads a file. Its first bytes say what it is, because endings lie: some of ImageNet's .JPEG files are PNG.
pub(super) fn decode(path: &Path) -> Result<Picture> {
    let here = || format!("cannot read the picture {}", path.display());
    let bytes = fs::read(path).with_context(here)?;
    let limit = SMALLEST_LIMIT + LARGEST_FACTOR * bytes.len() as u64;
    let picture = match image::guess_format(&bytes) {
        Ok(ImageFormat::Jpeg) => jpeg(&bytes, limit),
        Ok(ImageFormat::Png) => png(&bytes, limit),
        _ => bail!("{}: it is neither a JPEG nor a PNG file", here()),
    }
    .with_context(here)?;
    ensure!(picture.width > 0 && picture.height > 0, "the picture {} has no pixels", path.display());
    Ok(picture)
}

fn jpeg(bytes: &[u8], limit: u64) -> Result<Picture> {
    let limits = DecodeLimits { max_memory: Some(limit), max_scans: MOST_SCANS, ..DecodeLimits::default() };
    let decoder = Decoder::new_with_limits(bytes, limits)?;
    // What libjpeg-turbo-rs 0.9 panics at: no rows, and four colours of which some have a lower resolution.
    let header = decoder.header();
    ensure!(header.width > 0 && header.height > 0, "it has no pixels");
    let mut sizes = header.components.iter().map(|c| (c.horizontal_sampling, c.vertical_sampling));
    let first = sizes.next();
    ensure!(
        sizes.len() < 3 || sizes.all(|size| Some(size) == first),
        "its four colours differ in resolution"
    );
    let image = decoder.with_output_format(PixelFormat::Rgb).decode_image()?;
    Ok(Picture { width: image.width, height: image.height, bytes: image.data })
}

fn png(bytes: &[u8], limit: u64) -> Result<Picture> {
    let mut reader = image::ImageReader::with_format(Cursor::new(bytes), ImageFormat::Png);
    let mut limits = image::Limits::no_limits();
    limits.max_alloc = Some(limit);
    reader.limits(limits);
    let image = reader.decode()?.into_rgb8();
    Ok(Picture { width: image.width() as usize, height: image.height() as usize, bytes: image.into_raw() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use sha2::{Digest, Sha256};

    use super::{
        super::{cifar::reference, pixels::deinterleave},
        *,
    };
    use crate::support::digest::hex;

    fn stored(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/images").join(name)
    }

    /// What Pillow reads of a file: tests/reference/images/jpegs.py.
    #[derive(Deserialize)]
    struct ByPillow {
        size: (usize, usize),
        sha256: String,
    }

    #[test]
    fn a_jpeg_of_any_kind_gives_the_bytes_of_pillow() {
        let wanted: BTreeMap<String, ByPillow> =
            serde_json::from_slice(&fs::read(stored("jpegs.json")).unwrap()).unwrap();
        assert_eq!(wanted.len(), 15);
        for (name, by_pillow) in wanted {
            let picture = decode(&stored("jpegs").join(&name)).unwrap();
            assert_eq!((picture.width, picture.height), by_pillow.size, "{name}");
            assert_eq!(hex(Sha256::new_with_prefix(&picture.bytes)), by_pillow.sha256, "{name}");
        }
    }

    #[test]
    fn a_damaged_jpeg_is_refused_and_so_is_a_file_of_another_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.jpg");
        let whole = fs::read(stored("jpegs/half-90.jpg")).unwrap();
        let said = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            format!("{:#}", decode(&path).unwrap_err())
        };
        let cut = said(&whole[..whole.len() / 2]);
        assert!(cut.contains("cannot read the picture") && cut.contains("cut.jpg: "), "{cut}");
        // In the frame: its marker and length, bits a colour, height and width, colours, then three bytes for each of them.
        let whole = fs::read(stored("jpegs/ycck.jpg")).unwrap();
        let frame = whole.windows(4).position(|w| w == [0xFF, 0xC0, 0, 20]).unwrap();
        for (at, byte, words) in
            [(11, 0x22, "its four colours differ in resolution"), (6, 0, "it has no pixels")]
        {
            let mut changed = whole.clone();
            changed[frame + at] = byte;
            let changed = said(&changed);
            assert!(changed.ends_with(&format!("cut.jpg: {words}")), "{changed}");
        }
        let text = said(b"no picture");
        assert!(text.ends_with("cut.jpg: it is neither a JPEG nor a PNG file"), "{text}");
    }

    /// 30 000 × 30 000 pixels of three colours: 2.7 GB, from a hundred bytes.
    #[test]
    fn a_small_file_cannot_ask_for_the_memory_of_a_huge_image() {
        let chunk = |kind: &[u8; 4], data: &[u8]| {
            let mut sum = flate2::Crc::new();
            sum.update(kind);
            sum.update(data);
            let length = (data.len() as u32).to_be_bytes();
            [&length[..], kind, data, &sum.sum().to_be_bytes()].concat()
        };
        let size = 30_000u32.to_be_bytes();
        let header = chunk(b"IHDR", &[&size[..], &size, &[8, 2, 0, 0, 0]].concat());
        let end = [chunk(b"IDAT", &[]), chunk(b"IEND", &[])].concat();
        let png = [b"\x89PNG\r\n\x1a\n", &header[..], &end].concat();
        let jpegs = ["half-90.jpg", "half-80-progressive.jpg"].map(|name| {
            let mut bytes = fs::read(stored("jpegs").join(name)).unwrap();
            // The frame: its marker (0xC0, progressive 0xC2), length, bits a colour, height, width.
            let frame = bytes.windows(4).position(|w| matches!(w, [0xFF, 0xC0 | 0xC2, 0, 17])).unwrap();
            bytes[frame + 5..][..4].copy_from_slice(&[size[2], size[3], size[2], size[3]]);
            bytes
        });
        let folder = tempfile::tempdir().unwrap();
        for bytes in [png].into_iter().chain(jpegs) {
            let path = folder.path().join("huge.png");
            fs::write(&path, bytes).unwrap();
            let error = format!("{:#}", decode(&path).unwrap_err());
            assert!(error.contains("huge.png") && error.to_lowercase().contains("limit"), "{error}");
        }
    }

    /// Of a JPEG against its source: what Pillow, which wrote it, loses itself.
    const LOSS: [(&str, i16); 3] = [("colour.JPEG", 14), ("cmyk.JPEG", 5), ("png.JPEG", 0)];

    #[test]
    fn pictures_of_another_encoder_are_read() {
        let side = 16;
        let wanted = &reference(2, side)[3 * side * side..];
        let read = |name: &str| {
            let mut bytes = vec![0; 3 * side * side];
            deinterleave(&decode(&stored(name)).unwrap().bytes, &mut bytes);
            bytes
        };
        for (name, lost) in LOSS {
            let far = |(&a, &b): (&u8, &u8)| (i16::from(a) - i16::from(b)).abs();
            let worst = read(name).iter().zip(wanted).map(far).max().unwrap();
            assert_eq!(worst, lost, "{name}");
        }
        let grey = read("grey.JPEG");
        let (red, rest) = grey.split_at(side * side);
        assert!(
            rest.chunks_exact(side * side).all(|plane| plane == red),
            "grey has one value for all colours"
        );
    }
}
