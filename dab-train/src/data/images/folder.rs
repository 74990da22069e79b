//! Folders of images, one per class: ImageNet's layout.
//!
//! ```text
//! train/n01440764/*.JPEG …      class = place of the folder's name in sorted order
//! learning: a random part of the image, resized, perhaps mirrored      otherwise: shorter side to 8/7, centre cut out
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use image::{DynamicImage, imageops::FilterType};

use super::pixels::{Augment, Images, deinterleave};
use crate::support::random::Random;

/// Endings of the files that count, in lower case.
const ENDINGS: [&str; 3] = ["jpeg", "jpg", "png"];
/// The shorter side is resized to this multiple of the part cut out: 256 to 224.
const MARGIN: (usize, usize) = (8, 7);
/// Share of the area that a random part has.
const AREA: (f64, f64) = (0.08, 1.0);
/// Its aspect ratio.
const ASPECT: (f64, f64) = (3.0 / 4.0, 4.0 / 3.0);
/// Draws before the centre is taken instead.
const DRAWS: usize = 10;

/// Files of images.
#[derive(Debug)]
pub(super) struct Folder {
    side: usize,
    augment: Augment,
    files: Vec<PathBuf>,
}

/// The images below `root`, their classes and the classes' names.
pub(super) fn open(root: &Path, side: usize, augment: Augment) -> Result<(Folder, Vec<u32>, Vec<String>)> {
    ensure!(side > 0, "side = 0: images need pixels");
    let list = |folder: &Path| -> Result<Vec<PathBuf>> {
        let here = || format!("cannot read the folder {}", folder.display());
        let entries = fs::read_dir(folder).with_context(here)?;
        let mut paths: Vec<_> =
            entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>().with_context(here)?;
        paths.sort();
        Ok(paths)
    };
    let (mut files, mut labels, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for folder in list(root)?.into_iter().filter(|path| path.is_dir()) {
        let label = names.len() as u32;
        names.push(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
        for file in list(&folder)? {
            let ending = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            if ENDINGS.contains(&ending.as_str()) {
                files.push(file);
                labels.push(label);
            }
        }
    }
    ensure!(!files.is_empty(), "{} holds no folder with .jpeg or .png files", root.display());
    Ok((Folder { side, augment, files }, labels, names))
}

impl Images for Folder {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn side(&self) -> usize {
        self.side
    }

    fn read(&self, index: usize, change: Option<&mut Random>, into: &mut [u8]) -> Result<()> {
        let image = decode(&self.files[index])?;
        let Some(random) = change else {
            deinterleave(centre(&image, self.side).to_rgb8().as_raw(), into);
            return Ok(());
        };
        deinterleave(random_part(&image, self.side, random).to_rgb8().as_raw(), into);
        self.augment.finish(self.side, into, random);
        Ok(())
    }
}

/// An image may take this many times the bytes of its file, and 16 MB: photographs take 10 to 30 times, an image of one
/// colour as PNG about 1000 times.
const LARGEST_FACTOR: u64 = 2048;
const SMALLEST_LIMIT: u64 = 1 << 24;

fn decode(path: &Path) -> Result<DynamicImage> {
    let here = || format!("cannot read the image {}", path.display());
    let bytes = std::fs::metadata(path).with_context(here)?.len();
    // Endings lie: some of ImageNet's .JPEG files are PNG.
    let mut reader =
        image::ImageReader::open(path).with_context(here)?.with_guessed_format().with_context(here)?;
    let mut limits = image::Limits::no_limits();
    limits.max_alloc = Some(SMALLEST_LIMIT + LARGEST_FACTOR * bytes);
    reader.limits(limits);
    reader.decode().with_context(here)
}

/// A random part of random size and aspect, resized to `side`.
fn random_part(image: &DynamicImage, side: usize, random: &mut Random) -> DynamicImage {
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    let mut between = |(low, high): (f64, f64)| low + (high - low) * random.uniform();
    for _ in 0..DRAWS {
        let area = width * height * between(AREA);
        let aspect = between((ASPECT.0.ln(), ASPECT.1.ln())).exp();
        let (w, h) = ((area * aspect).sqrt().round(), (area / aspect).sqrt().round());
        if (1.0..=width).contains(&w) && (1.0..=height).contains(&h) {
            let (x, y) = (between((0.0, width - w + 1.0)).floor(), between((0.0, height - h + 1.0)).floor());
            let part = image.crop_imm(x as u32, y as u32, w as u32, h as u32);
            return part.resize_exact(side as u32, side as u32, FilterType::Triangle);
        }
    }
    centre(image, side)
}

/// The middle of the image after its shorter side became 8/7 · `side`.
fn centre(image: &DynamicImage, side: usize) -> DynamicImage {
    let target = (side * MARGIN.0 / MARGIN.1) as f64;
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    let factor = target / width.min(height);
    let scaled = |length: f64| ((length * factor).round() as u32).max(side as u32);
    let (w, h) = (scaled(width), scaled(height));
    let side = side as u32;
    image.resize_exact(w, h, FilterType::Triangle).crop_imm((w - side) / 2, (h - side) / 2, side, side)
}

#[cfg(test)]
mod tests {
    use super::{super::cifar::reference, *};

    #[test]
    fn a_small_file_cannot_ask_for_the_memory_of_a_huge_image() {
        let chunk = |kind: &[u8; 4], data: &[u8]| {
            let mut sum = flate2::Crc::new();
            sum.update(kind);
            sum.update(data);
            let length = (data.len() as u32).to_be_bytes();
            [&length[..], kind, data, &sum.sum().to_be_bytes()].concat()
        };
        // 30 000 × 30 000 pixels of three colours: 2.7 GB, from 57 bytes.
        let size = 30_000u32.to_be_bytes();
        let header = chunk(b"IHDR", &[&size[..], &size, &[8, 2, 0, 0, 0]].concat());
        let end = [chunk(b"IDAT", &[]), chunk(b"IEND", &[])].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge.png");
        fs::write(&path, [b"\x89PNG\r\n\x1a\n", &header[..], &end].concat()).unwrap();
        let error = format!("{:#}", decode(&path).unwrap_err());
        assert!(error.contains("huge.png") && error.to_lowercase().contains("limit"), "{error}");
    }

    #[test]
    fn classes_are_folders_and_a_damaged_file_is_named() {
        let root = std::env::temp_dir().join(format!("dab-folder-{}", std::process::id()));
        let paint = |class: &str, name: &str, colour: [u8; 3], size: (u32, u32)| {
            let folder = root.join(class);
            fs::create_dir_all(&folder).unwrap();
            image::RgbImage::from_pixel(size.0, size.1, image::Rgb(colour)).save(folder.join(name)).unwrap();
        };
        paint("b", "one.png", [10, 20, 30], (40, 64));
        paint("a", "two.png", [200, 100, 50], (64, 40));
        fs::write(root.join("a").join("notes.txt"), "no image").unwrap();
        let (folder, labels, names) = open(&root, 28, Augment { flip: true, ..Augment::default() }).unwrap();
        assert_eq!((labels, names), (vec![0, 1], vec!["a".to_owned(), "b".to_owned()]));
        let mut bytes = vec![0; 3 * 28 * 28];
        for change in [None, Some(Random::new(1, "part"))] {
            folder.read(1, change.clone().as_mut(), &mut bytes).unwrap();
            assert!(bytes.chunks_exact(28 * 28).zip([10, 20, 30]).all(|(p, c)| p.iter().all(|&b| b == c)));
        }
        fs::write(root.join("b").join("one.png"), b"\x89PNG\r\n").unwrap();
        let error = format!("{:#}", folder.read(1, None, &mut bytes).unwrap_err());
        assert!(error.contains("one.png"), "{error}");
        fs::remove_dir_all(&root).unwrap();
    }

    /// Of a JPEG against its source: what Pillow, which wrote it, loses itself, and rounding.
    const LOSS: [(&str, i16); 3] = [("colour.JPEG", 14 + 2), ("cmyk.JPEG", 5 + 2), ("png.JPEG", 0)];

    #[test]
    fn pictures_of_another_encoder_are_read() {
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/images");
        let side = 16;
        let wanted = &reference(2, side)[3 * side * side..];
        let read = |name: &str| {
            let image = decode(&stored.join(name)).unwrap();
            let mut bytes = vec![0; 3 * side * side];
            deinterleave(image.to_rgb8().as_raw(), &mut bytes);
            bytes
        };
        for (name, allowed) in LOSS {
            let far = |(&a, &b): (&u8, &u8)| (i16::from(a) - i16::from(b)).abs();
            let worst = read(name).iter().zip(wanted).map(far).max().unwrap();
            assert!(worst <= allowed, "{name}: {worst}");
        }
        let grey = read("grey.JPEG");
        let (red, rest) = grey.split_at(side * side);
        assert!(
            rest.chunks_exact(side * side).all(|plane| plane == red),
            "grey has one value for all colours"
        );
    }
}
