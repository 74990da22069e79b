//! One process at a time in a folder of results.
//!
//! The file `.lock` says whose folder it is; the operating system's lock on it says whether that process still lives. A process
//! that was killed leaves the file and loses the lock, so nobody has to clear away what it left.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail};

use super::text::plural;

const NAME: &str = ".lock";
/// Most bytes of it that are read.
const LONGEST: u64 = 1024;
/// Tries before a file that is always replaced is given up.
const TRIES: usize = 100;

/// A folder that is ours until this is dropped.
#[derive(Debug)]
pub struct FolderLock {
    file: PathBuf,
    /// Holds the operating system's lock.
    _held: File,
    /// Folders that were made for it, the innermost first: they go with it if nothing was put into them.
    made: Vec<PathBuf>,
}

impl FolderLock {
    /// Makes `folder` and takes it.
    pub fn take(folder: &Path) -> Result<Self> {
        let made = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let made: Vec<PathBuf> = made.map(Path::to_owned).collect();
        let here = || format!("cannot write into {}", folder.display());
        fs::create_dir_all(folder).with_context(here)?;
        let path = folder.join(NAME);
        for _ in 0..TRIES {
            let mut options = File::options();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).open(&path).with_context(here)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => bail!(in_use(folder, &mut file)),
                // A file system without locks cannot tell.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // Its owner may have removed it between the two calls above: then the lock is on a file without a name.
            if !is_at(&file, &path) {
                continue;
            }
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            file.set_len(0).with_context(here)?;
            write!(file, "{}\n{seconds}\n{}\n", std::process::id(), machine()).with_context(here)?;
            return Ok(Self { file: path, _held: file, made });
        }
        bail!("cannot take {}: others take it all the time", path.display())
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A file or a folder that stays does no harm.
        let _ = fs::remove_file(&self.file);
        let _ = self.made.iter().try_for_each(fs::remove_dir);
    }
}

/// Who has the folder, and what to do.
fn in_use(folder: &Path, file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.take(LONGEST).read_to_string(&mut text);
    let mut lines = text.lines();
    let (process, since, machine) = (lines.next(), lines.next(), lines.next().unwrap_or_default());
    let owner =
        process.map_or_else(|| "another process".to_owned(), |id| format!("process {id} ({machine})"));
    let since = since.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    // A clock that was set back meanwhile, or a file that anybody wrote: then there is no age.
    let since = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    let age = since.and_then(|since| SystemTime::now().duration_since(since).ok());
    let age = age.map_or_else(String::new, |age| format!(" for {}", words(age)));
    format!(
        "{} is in use: {owner} has been writing into it{age}; wait until it ends, or give another folder with --out",
        folder.display()
    )
}

/// A time in one unit.
fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    plural(count, unit)
}

/// The name of this machine: a folder may be on several.
fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    name.map_or_else(|| "this machine".to_owned(), |name| name.trim().to_owned())
}

/// Whether an open file still has this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().ok().map(id) == fs::metadata(path).ok().map(id)
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_and_a_file_that_was_left_behind_is_none() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().join("runs");
        let folder = root.join("one");
        let lock = FolderLock::take(&folder).unwrap();
        let said = FolderLock::take(&folder).unwrap_err().to_string();
        let own = format!("process {} (", std::process::id());
        assert!(
            said.contains("is in use") && said.contains(&own) && said.contains("for 0 seconds; wait"),
            "{said}"
        );
        // Clocks jump, and anybody may have written the file.
        for since in ["99999999999", "18446744073709551615", "yesterday"] {
            fs::write(folder.join(NAME), format!("7\n{since}\nhere\n")).unwrap();
            let said = FolderLock::take(&folder).unwrap_err().to_string();
            assert!(said.contains("process 7 (here) has been writing into it; wait"), "{said}");
        }
        drop(lock);
        assert!(!root.exists(), "nothing was put into it");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(NAME), "1\n0\nelsewhere\n").unwrap();
        drop(FolderLock::take(&folder).unwrap());
        assert!(folder.exists() && !folder.join(NAME).exists());
    }

    #[test]
    fn ages_are_read_in_one_unit() {
        let told = [1, 90, 150, 8000, 200_000].map(|seconds| words(Duration::from_secs(seconds)));
        assert_eq!(told, ["1 second", "90 seconds", "2 minutes", "2 hours", "2 days"]);
    }
}
