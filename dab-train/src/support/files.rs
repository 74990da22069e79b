//! Files that are written whole or not at all.
//!
//! The bytes go to a file beside the target, which takes the target's name when they are all on disk. A
//! failure on the way leaves the target as it was and nothing behind.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Names that are tried for the file beside the target.
const ATTEMPTS: u32 = 100;

/// A file in the making. Dropped without [`AtomicFile::commit`], it disappears.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once committed.
    file: Option<BufWriter<File>>,
    /// `None` when the target is a device or a pipe, which is written directly.
    draft: Option<PathBuf>,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `target`.
    ///
    /// # Errors
    /// When nothing can be created beside it.
    pub fn create(target: &Path) -> io::Result<Self> {
        // A link stays a link: its destination is replaced.
        let target = target.canonicalize().unwrap_or_else(|_| target.into());
        if target.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let file = File::options().write(true).open(&target)?;
            return Ok(Self { file: Some(BufWriter::new(file)), draft: None, target });
        }
        if target.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let mut attempt = 0;
        loop {
            let draft = target.with_file_name(format!(".{name}.{}-{attempt}.part", std::process::id()));
            match File::options().write(true).create_new(true).open(&draft) {
                Ok(file) => return Ok(Self { file: Some(BufWriter::new(file)), draft: Some(draft), target }),
                // Another thread's, or left by a process that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                    attempt += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes `bytes` as the whole of `target`.
    ///
    /// # Errors
    /// When they cannot be written; `target` is then untouched.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = Self::create(target)?;
        file.write_all(bytes)?;
        file.commit()
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When the bytes cannot be brought to disk, or the target cannot be replaced.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Some(draft) = &self.draft {
            file.sync_all()?;
            std::fs::rename(draft, &self.target)?;
            self.draft = None;
        }
        Ok(())
    }
}

/// Refuses a folder that cannot be written into, without a trace: training may take long.
///
/// # Errors
/// When nothing can be created there.
pub fn check_writable(folder: &Path) -> anyhow::Result<()> {
    let here = Path::new(".");
    let above = |path: &&Path| path.exists() || path.as_os_str().is_empty();
    let existing = folder.ancestors().find(above).filter(|path| path.exists()).unwrap_or(here);
    AtomicFile::create(&existing.join("model.dab"))
        .map(drop)
        .with_context(|| format!("cannot write into {}", folder.display()))
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        self.file = None;
        if let Some(draft) = &self.draft {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("dab-whole-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let target = folder.join("out");
        let mut abandoned = AtomicFile::create(&target).unwrap();
        abandoned.write_all(b"half").unwrap();
        drop((abandoned, AtomicFile::create(&target).unwrap()));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        AtomicFile::write(&target, b"first").unwrap();
        AtomicFile::write(&target, b"second").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
