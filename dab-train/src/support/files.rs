//! Files that are written whole or not at all.
//!
//! The bytes go to a file beside the target, which takes the target's name when they are all on disk. A
//! failure on the way leaves the target as it was and nothing behind.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::Context;
use tempfile::TempPath;

/// Bytes of a write: each one that ends within a page costs the system the clearing of the rest of it.
const BUFFER: usize = 1 << 18;

/// Bytes after which the disk begins to write: a large file then is hardly waited for at its end.
const AHEAD: usize = if cfg!(test) { 1 << 19 } else { 1 << 26 };

/// A file in the making. Dropped without [`AtomicFile::commit`], it disappears.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    /// Bytes since the disk was last told to write, and who waits for it.
    ahead: usize,
    waiting: Option<JoinHandle<io::Result<()>>>,
    /// Its name until it takes the target's. A device or a pipe is written at once and has none.
    draft: Option<TempPath>,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `target`.
    pub fn create(target: &Path) -> io::Result<Self> {
        // A link stays a link: its destination is replaced.
        let target = target.canonicalize().unwrap_or_else(|_| target.into());
        if target.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let file = File::options().write(true).open(&target)?;
            return Ok(Self::of(file, None, target));
        }
        if target.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let folder =
            target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (mut draft, prefix) = (tempfile::Builder::new(), format!(".{name}."));
        draft.prefix(&prefix).suffix(".part");
        // Others may read it as the user's settings (umask) say: a temporary file is the user's alone by default.
        #[cfg(unix)]
        draft.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let (file, draft) = draft.tempfile_in(folder)?.into_parts();
        Ok(Self::of(file, Some(draft), target))
    }

    fn of(file: File, draft: Option<TempPath>, target: PathBuf) -> Self {
        Self { file: BufWriter::with_capacity(BUFFER, file), ahead: 0, waiting: None, draft, target }
    }

    /// Lets the disk write what it has, beside what is done here, unless it still does. The system tells of a failure once, so that
    /// of the call before is passed on.
    fn write_ahead(&mut self) -> io::Result<()> {
        if self.draft.is_none() || self.waiting.as_ref().is_some_and(|waiting| !waiting.is_finished()) {
            return Ok(());
        }
        self.written()?;
        let file = self.file.get_ref().try_clone()?;
        self.ahead = 0;
        self.waiting = std::thread::Builder::new().spawn(move || file.sync_data()).ok();
        Ok(())
    }

    /// Waits for what the disk was told to write.
    fn written(&mut self) -> io::Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        waiting.join().unwrap_or_else(|_| Err(io::Error::other("writing to the disk stopped")))
    }

    /// Writes `bytes` as the whole of `target`, which stays as it was where that fails.
    pub fn write(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = Self::create(target)?;
        file.write_all(bytes)?;
        file.commit()
    }

    /// Gives the file its name.
    pub fn commit(mut self) -> io::Result<()> {
        self.written()?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let Some(draft) = self.draft else { return Ok(()) };
        file.sync_all()?;
        draft.persist(&self.target).map_err(|refused| refused.error)
    }
}

/// Writes a file, whole or not at all, and names it where that fails.
pub fn save(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    AtomicFile::write(path, bytes.as_ref()).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Whether both are names of one file. What is no file yet is none, and a device may be read and written.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(a), Ok(b)) = (one.metadata(), other.metadata()) else { return false };
    if !a.is_file() || !b.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        // A second name of the same file (a hard link) has another path.
        use std::os::unix::fs::MetadataExt;
        if (a.dev(), a.ino()) == (b.dev(), b.ino()) {
            return true;
        }
    }
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Refuses a folder that cannot be written into, without a trace: training may take long.
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
        let count = self.file.write(bytes)?;
        self.ahead += count;
        if self.ahead >= AHEAD {
            self.write_ahead()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let mut file = AtomicFile::create(&path).unwrap();
        bytes.chunks(100_000).for_each(|piece| file.write_all(piece).unwrap());
        assert!(file.waiting.is_some() && file.ahead < 3_000_000, "the disk began before the end");
        file.commit().unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes);
        // What the disk could not write is told, though it was told to a thread.
        let mut file = AtomicFile::create(&path).unwrap();
        file.waiting = Some(std::thread::spawn(|| Err(io::ErrorKind::StorageFull.into())));
        assert_eq!(file.commit().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(std::fs::read(&path).unwrap() == bytes, "the old file is still there");
    }

    #[test]
    fn one_file_is_known_by_all_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (file, copy) = (folder.join("x.npy"), folder.join("copy.npy"));
        assert!(!is_same(&file, &file), "there is nothing to replace yet");
        std::fs::write(&file, b"1").unwrap();
        std::fs::write(&copy, b"1").unwrap();
        assert!(is_same(&file, &folder.join("./x.npy")) && !is_same(&file, &copy));
        assert!(!is_same(folder, folder), "a folder is no file");
        #[cfg(unix)]
        {
            let (soft, hard) = (folder.join("soft"), folder.join("hard"));
            std::os::unix::fs::symlink(&file, &soft).unwrap();
            std::fs::hard_link(&file, &hard).unwrap();
            assert!(is_same(&soft, &file) && is_same(&file, &hard));
            assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
        }
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let target = folder.join("out");
        let mut abandoned = AtomicFile::create(&target).unwrap();
        abandoned.write_all(b"half").unwrap();
        drop((abandoned, AtomicFile::create(&target).unwrap()));
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
        AtomicFile::write(&target, b"first").unwrap();
        AtomicFile::write(&target, b"second").unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::write(folder.join("other"), b"").unwrap();
            let mode = |name: &str| folder.join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode("out"), mode("other"), "readable by those who may read any other file");
        }
    }
}
