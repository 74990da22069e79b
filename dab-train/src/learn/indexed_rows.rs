//! Rows of numbers that are too many for the device: read, or mapped from disk, when a mini-batch needs them.

use std::{fmt, fs::File, path::Path, sync::Arc};

use anyhow::{Context, Result, ensure};
use memmap2::Mmap;

use crate::{
    data::{
        Table,
        images::{ImageSet, Normalise},
    },
    support::parallel::map_blocks,
};

/// Marks a file of features.
const MAGIC: [u8; 8] = *b"dabfeat1";
/// Magic, rows, columns.
const HEADER: usize = 24;
/// Rows that one thread copies at a time.
const BLOCK: usize = 64;

/// Rows of numbers.
pub trait IndexedRows: fmt::Debug + Send + Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers in a row.
    fn cols(&self) -> usize;

    /// The rows at `indices`, one after the other; `change` names the random streams of rows that change while learning.
    fn numbers(&self, indices: &[usize], change: Option<(u64, &str)>) -> Result<Vec<f32>>;
}

/// Images as rows.
#[derive(Clone, Debug)]
pub struct ImageRows {
    /// The images.
    pub set: ImageSet,
    /// Bytes → numbers.
    pub normalise: Normalise,
}

impl IndexedRows for ImageRows {
    fn len(&self) -> usize {
        self.set.len()
    }

    fn cols(&self) -> usize {
        self.set.cols()
    }

    fn numbers(&self, indices: &[usize], change: Option<(u64, &str)>) -> Result<Vec<f32>> {
        self.set.numbers(indices, &self.normalise, change)
    }
}

/// Features in a file: `MAGIC`, rows and columns as u64, then f32, all little-endian.
#[derive(Clone, Debug)]
pub struct Features {
    map: Arc<Mmap>,
    cols: usize,
    rows: Vec<usize>,
}

impl Features {
    /// The first bytes of a file of features.
    pub fn header(rows: usize, cols: usize) -> Vec<u8> {
        [MAGIC, (rows as u64).to_le_bytes(), (cols as u64).to_le_bytes()].concat()
    }

    /// Maps a file.
    pub fn open(path: &Path) -> Result<Self> {
        let here = || format!("cannot read features from {}", path.display());
        let file = File::open(path).with_context(here)?;
        // SAFETY: the file is written whole under another name and renamed; nobody changes it afterwards
        // (images::cached). Another process that truncates it all the same would end this one.
        let map = unsafe { Mmap::map(&file) }.with_context(here)?;
        let word =
            |at: usize| map.get(at..at + 8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
        let (rows, cols) = (word(8).unwrap_or(0) as usize, word(16).unwrap_or(0) as usize);
        let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(size_of::<f32>()));
        let sound = map.starts_with(&MAGIC) && bytes.and_then(|n| n.checked_add(HEADER)) == Some(map.len());
        ensure!(sound, "{} is damaged; delete it and it is computed anew", path.display());
        Ok(Self { map: Arc::new(map), cols, rows: (0..rows).collect() })
    }

    /// The rows at `indices`.
    pub fn select(&self, indices: &[usize]) -> Self {
        let rows = indices.iter().map(|&index| self.rows[index]).collect();
        Self { map: self.map.clone(), cols: self.cols, rows }
    }

    /// All rows in memory.
    pub fn table(&self) -> Result<Table> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        Ok(Table::new(self.rows.len(), self.cols, self.numbers(&all, None)?)?)
    }
}

impl IndexedRows for Features {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cols(&self) -> usize {
        self.cols
    }

    fn numbers(&self, indices: &[usize], _: Option<(u64, &str)>) -> Result<Vec<f32>> {
        let size = self.cols * size_of::<f32>();
        let blocks = map_blocks(indices.len(), BLOCK, |range| {
            let mut numbers = Vec::with_capacity(range.len() * self.cols);
            for &index in &indices[range] {
                let at = HEADER + self.rows[index] * size;
                let words = self.map[at..at + size].as_chunks::<4>().0;
                numbers.extend(words.iter().map(|&word| f32::from_le_bytes(word)));
            }
            numbers
        });
        Ok(blocks.concat())
    }
}
