//! Pictures in files: folders of them, one per class, or any list.
//!
//! ```text
//! train/cat/1.jpg, train/cat/more/2.png …      class = the folder's name
//! learning: a random part of the picture, resized, perhaps mirrored      otherwise: its centre (`preprocess.rs`)
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    decode::decode,
    pixels::{Augment, Images, deinterleave},
    preprocess::Preprocessing,
    resize::Picture,
};
use crate::support::random::Random;

/// Endings of the files that count, in lower case.
const ENDINGS: [&str; 3] = ["jpg", "jpeg", "png"];
/// The same in words.
pub(super) const ENDINGS_IN_WORDS: &str = ".jpg, .jpeg or .png";
/// Folders within folders that are looked into: a link that leads back to its own folder ends here.
const DEEPEST: usize = 16;
/// Share of the area that a random part has.
const AREA: (f64, f64) = (0.08, 1.0);
/// Its aspect ratio.
const ASPECT: (f64, f64) = (3.0 / 4.0, 4.0 / 3.0);
/// Draws before the centre is taken instead.
const DRAWS: usize = 10;

/// Files of pictures.
#[derive(Debug)]
pub(super) struct Folder {
    preprocessing: Preprocessing,
    augment: Augment,
    files: Vec<PathBuf>,
}

/// Whether a name ends as a picture's.
pub fn is_picture(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.contains(&ending.as_str())
}

/// What a folder holds, in the order of names. Hidden files and folders (`.git`, `.ipynb_checkpoints`) do not count.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let here = || format!("cannot read the folder {}", folder.display());
    let entries = fs::read_dir(folder).with_context(here)?;
    let mut paths: Vec<_> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>().with_context(here)?;
    let hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    paths.retain(|path| !hidden(path));
    paths.sort();
    Ok(paths)
}

/// All pictures in a folder and the folders within it.
pub(super) fn pictures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(folder, DEEPEST, &mut files)?;
    Ok(files)
}

fn collect(folder: &Path, deeper: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    for path in entries(folder)? {
        if path.is_dir() {
            ensure!(deeper > 0, "{}: folders within folders, more than {DEEPEST} deep", path.display());
            collect(&path, deeper - 1, files)?;
        } else if is_picture(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// The pictures of a folder with one folder per class, and the class of each. A class folder without a picture is refused:
/// it would be a class that nobody can learn.
pub(super) fn classes(root: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    let mut empty = Vec::new();
    for folder in entries(root)?.into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = pictures(&folder)?;
        if found.is_empty() {
            empty.push(folder.display().to_string());
        }
        labels.extend(std::iter::repeat_n(name, found.len()));
        files.extend(found);
    }
    if files.is_empty() {
        let loose = entries(root)?.iter().filter(|path| is_picture(path)).count();
        let seen = match loose {
            0 => format!("no {ENDINGS_IN_WORDS} file"),
            _ => format!("{loose} pictures, but no folder with pictures"),
        };
        bail!(
            "{0} holds {seen}: give every class a folder of its own, as in {0}/cat/1.jpg and {0}/dog/1.jpg",
            root.display()
        );
    }
    if !empty.is_empty() {
        bail!(
            "the class folder {} holds no {ENDINGS_IN_WORDS} file: put pictures into it, or remove it",
            empty.join(", ")
        );
    }
    Ok((files, labels))
}

impl Folder {
    /// These files, as a network sees them.
    pub fn new(files: Vec<PathBuf>, preprocessing: Preprocessing, augment: Augment) -> Self {
        Self { preprocessing, augment, files }
    }
}

impl Images for Folder {
    fn len(&self) -> usize {
        self.files.len()
    }

    fn side(&self) -> usize {
        self.preprocessing.side
    }

    fn name(&self, index: usize) -> Option<String> {
        Some(self.files[index].display().to_string())
    }

    fn read(&self, index: usize, change: Option<&mut Random>, into: &mut [u8]) -> Result<()> {
        let (side, picture) = (self.preprocessing.side, decode(&self.files[index])?);
        match change.filter(|_| self.augment != Augment::default()) {
            None => deinterleave(&self.preprocessing.centre(&picture).bytes, into),
            Some(random) if self.preprocessing.keeps(&picture) => {
                let mut own = vec![0; into.len()];
                deinterleave(&picture.bytes, &mut own);
                self.augment.apply(side, &own, into, random);
            }
            Some(random) => {
                deinterleave(&random_part(&picture, &self.preprocessing, random).bytes, into);
                self.augment.finish(side, into, random);
            }
        }
        Ok(())
    }
}

/// A random part of random size and aspect, resized.
fn random_part(picture: &Picture, preprocessing: &Preprocessing, random: &mut Random) -> Picture {
    let side = preprocessing.side;
    let (width, height) = (picture.width as f64, picture.height as f64);
    let mut between = |(low, high): (f64, f64)| low + (high - low) * random.uniform();
    for _ in 0..DRAWS {
        let area = width * height * between(AREA);
        let aspect = between((ASPECT.0.ln(), ASPECT.1.ln())).exp();
        let (w, h) = ((area * aspect).sqrt().round(), (area / aspect).sqrt().round());
        if (1.0..=width).contains(&w) && (1.0..=height).contains(&h) {
            let (x, y) = (between((0.0, width - w + 1.0)).floor(), between((0.0, height - h + 1.0)).floor());
            let part = picture.part(x as usize, y as usize, w as usize, h as usize);
            return part.resized(side, side, 0..side, 0..side);
        }
    }
    preprocessing.centre(picture)
}

#[cfg(all(test, feature = "pictures"))]
mod tests {
    use super::*;

    fn preprocessing(side: usize, resize: usize) -> Preprocessing {
        Preprocessing { side, resize, ..Preprocessing::default() }
    }

    fn paint(root: &Path, class: &str, name: &str, colour: [u8; 3], size: (u32, u32)) {
        let folder = root.join(class);
        fs::create_dir_all(&folder).unwrap();
        image::RgbImage::from_pixel(size.0, size.1, image::Rgb(colour)).save(folder.join(name)).unwrap();
    }

    #[test]
    fn classes_are_folders_and_a_damaged_file_is_named() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        paint(root, "b", "one.png", [10, 20, 30], (40, 64));
        paint(root, "a/deeper", "two.png", [200, 100, 50], (64, 40));
        paint(root, ".hidden", "three.png", [0; 3], (4, 4));
        fs::write(root.join("a").join("notes.txt"), "no picture").unwrap();
        let (files, labels) = classes(root).unwrap();
        assert_eq!(labels, ["a", "b"]);
        let augment = Augment { flip: true, ..Augment::default() };
        let folder = Folder::new(files, preprocessing(28, 32), augment);
        let mut bytes = vec![0; 3 * 28 * 28];
        for change in [None, Some(Random::new(1, "part"))] {
            folder.read(1, change.clone().as_mut(), &mut bytes).unwrap();
            assert!(bytes.chunks_exact(28 * 28).zip([10, 20, 30]).all(|(p, c)| p.iter().all(|&b| b == c)));
        }
        fs::write(root.join("b").join("one.png"), b"\x89PNG\r\n").unwrap();
        let error = format!("{:#}", folder.read(1, None, &mut bytes).unwrap_err());
        assert!(error.contains("one.png"), "{error}");
    }

    #[test]
    fn an_empty_class_folder_and_loose_pictures_are_named() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path();
        paint(root, "cat", "one.png", [1; 3], (4, 4));
        fs::create_dir_all(root.join("dog")).unwrap();
        let said = classes(root).unwrap_err().to_string();
        assert!(
            said.contains("dog holds no .jpg, .jpeg or .png file: put pictures into it, or remove it"),
            "{said}"
        );
        fs::remove_dir_all(root.join("cat")).unwrap();
        fs::remove_dir(root.join("dog")).unwrap();
        paint(root, ".", "one.png", [1; 3], (4, 4));
        let said = classes(root).unwrap_err().to_string();
        assert!(
            said.contains("1 pictures, but no folder with pictures: give every class a folder"),
            "{said}"
        );
        assert_eq!(pictures(root).unwrap().len(), 1, "a flat folder is a list of pictures");
    }
}
