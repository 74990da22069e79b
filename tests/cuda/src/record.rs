//! What the stand-in writes down: every module, and how often each kernel ran.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::memory;

/// Launches of one kernel.
#[derive(Default)]
struct Kernel {
    launches: u64,
    threads: u64,
}

#[derive(Default)]
struct Record {
    modules: usize,
    kernels: BTreeMap<String, Kernel>,
    /// Bytes copied to, from and within the device.
    copied: [u64; 3],
}

impl Record {
    fn launches(&self) -> u64 {
        self.kernels.values().map(|kernel| kernel.launches).sum()
    }
}

static RECORD: Mutex<Option<Record>> = Mutex::new(None);

fn record() -> MutexGuard<'static, Option<Record>> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A setting of the environment, or its default.
#[must_use]
pub fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("DAB_CUDA_DIR").map(PathBuf::from)
}

/// Keeps a module's text; returns its number, from 1.
pub fn module(text: &str) -> usize {
    let mut record = record();
    let record = record.get_or_insert_default();
    record.modules += 1;
    if let Some(folder) = folder() {
        let _ = fs::create_dir_all(&folder);
        let _ = fs::write(folder.join(format!("{:04}.ptx", record.modules)), text);
    }
    record.modules
}

/// Counts a launch.
pub fn launch(kernel: &str, threads: u64) {
    let mut record = record();
    let kernel = record.get_or_insert_default().kernels.entry(kernel.to_owned()).or_default();
    kernel.launches += 1;
    kernel.threads += threads;
}

/// Where bytes were copied.
#[derive(Clone, Copy)]
pub enum Copied {
    ToDevice,
    FromDevice,
    Within,
}

/// Counts bytes.
pub fn copied(way: Copied, bytes: usize) {
    record().get_or_insert_default().copied[way as usize] += bytes as u64;
}

/// Whether kernels run: with `DAB_CUDA_RUN=0` they are only counted, and every result is what lay in its memory before.
#[must_use]
pub fn runs() -> bool {
    setting("DAB_CUDA_RUN", 1) != 0
}

/// Writes `now.txt`, the totals so far, for a program that has waited for its work and wants to know. Where kernels run, it has
/// other worries.
pub fn now() {
    let (Some(folder), false) = (folder(), runs()) else { return };
    let (launches, [to, from, _]) =
        record().as_ref().map_or((0, [0; 3]), |record| (record.launches(), record.copied));
    let [now, most] = memory::usage();
    let text = format!(
        "launches {launches}\nuse of memory {now}\nlargest use of memory {most}\nbytes to the device {to}\nbytes from the device \
         {from}\n"
    );
    let _ = fs::create_dir_all(&folder);
    let _ = fs::write(folder.join("now.txt"), text);
}

/// Writes `launches.txt`: totals, then kernels, the most frequent first.
pub fn write() {
    let (Some(folder), record) = (folder(), record()) else { return };
    let Some(record) = record.as_ref() else { return };
    let [_, most] = memory::usage();
    let mut text = String::new();
    let total = record.launches();
    let [to, from, within] = record.copied;
    let _ =
        writeln!(text, "modules {}\nlaunches {total}\nlargest use of memory {most} bytes", record.modules);
    let _ = writeln!(text, "bytes to the device {to}\nbytes from the device {from}\nbytes within {within}");
    let mut kernels: Vec<_> = record.kernels.iter().collect();
    kernels.sort_by_key(|(_, kernel)| std::cmp::Reverse(kernel.launches));
    for (name, kernel) in kernels {
        let _ = writeln!(text, "{:8} launches {:12} threads  {name}", kernel.launches, kernel.threads);
    }
    let _ = fs::write(folder.join("launches.txt"), text);
}
