//! A Parquet file that many threads read at once, each from a place of its own.
//!
//! file → [`PlacedFile`] → pages to decode, columns to copy. The library's way of reading a plain file asks the system six times for a
//! page, and takes new memory for it, which the system has to clear first. Here a page is one call, into memory that was used
//! before.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// What a page's header hardly ever exceeds.
const HEADER: usize = 1 << 10;
/// Bytes of what follows that are read at once.
const PIECE: usize = 1 << 18;

/// A file, and memory for what is read from it.
#[derive(Clone)]
pub struct PlacedFile {
    file: Arc<File>,
    length: u64,
    pool: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// The bytes of a file from a place on.
pub struct Reading {
    source: PlacedFile,
    /// Where the next piece begins.
    place: u64,
    piece: Lent,
    /// What was handed out of it.
    taken: usize,
}

/// Memory that goes back when it is dropped.
struct Lent {
    /// Never shorter than `length`; it keeps its length, so that it is cleared once.
    memory: Vec<u8>,
    length: usize,
    pool: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl PlacedFile {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length, pool: Arc::default() })
    }

    /// Up to `length` bytes from a place on: fewer where the file ends.
    fn read(&self, place: u64, length: usize) -> io::Result<Lent> {
        let left = self.length.saturating_sub(place);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(length);
        let memory = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let mut lent = Lent { memory, length, pool: self.pool.clone() };
        if lent.memory.len() < length {
            lent.memory.resize(length, 0);
        }
        let mut filled = 0;
        while filled < length {
            match read_at(&self.file, &mut lent.memory[filled..length], place + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        lent.length = filled;
        Ok(lent)
    }
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], place: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, place)
}

#[cfg(windows)]
fn read_at(file: &File, out: &mut [u8], place: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, place)
}

impl Length for PlacedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for PlacedFile {
    type T = Reading;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Reading> {
        let piece = self.read(start, HEADER)?;
        Ok(Reading { source: self.clone(), place: start + piece.length as u64, piece, taken: 0 })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let lent = self.read(start, length)?;
        if lent.length < length {
            let words = format!("{length} bytes were promised at {start}, there are {}", lent.length);
            return Err(ParquetError::EOF(words));
        }
        Ok(Bytes::from_owner(lent))
    }
}

impl Read for Reading {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.length {
            self.piece = self.source.read(self.place, PIECE)?;
            (self.place, self.taken) = (self.place + self.piece.length as u64, 0);
        }
        let left = &self.piece.as_ref()[self.taken..];
        let count = out.len().min(left.len());
        out[..count].copy_from_slice(&left[..count]);
        self.taken += count;
        Ok(count)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_and_length_gives_the_bytes_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let bytes: Vec<u8> = (0..600_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = PlacedFile::open(&path).unwrap();
        assert_eq!(file.len(), 600_000);
        for (start, length) in [(0, 600_000), (1, 5), (599_999, 1), (600_000, 0), (77, 300_000)] {
            let found = file.get_bytes(start as u64, length).unwrap();
            // Memory that is lent twice is not the same.
            let again = file.get_bytes(0, 10).unwrap();
            assert!(found[..] == bytes[start..start + length] && again[..] == bytes[..10]);
            let mut rest = Vec::new();
            file.get_read(start as u64).unwrap().read_to_end(&mut rest).unwrap();
            assert!(rest == bytes[start..]);
        }
        let error = file.get_bytes(599_990, 11).unwrap_err();
        assert!(error.to_string().contains("11 bytes were promised at 599990, there are 10"), "{error}");
        assert!(file.get_bytes(u64::MAX, usize::MAX).is_err() && file.get_bytes(700_000, 1).is_err());
        // All memory came back, and was used again: at most two at a time were lent.
        assert!(file.pool.lock().unwrap().len() <= 3);
    }
}
