//! `dab doctor`: what this build and this machine have.

use std::fmt::Write;

use anyhow::Result;

use crate::{
    data,
    learn::mpi,
    support::{cuda, device, simd::Widest},
};

/// Show what this build and this machine have
///
/// Prints the version and its features, the processor's instructions, the devices that --device accepts,
/// what CUDA and MPI need and where it was found, and the data folder. Nothing is computed and nothing is
/// sent anywhere. Put it into a report of a defect.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab doctor
  CUDA_PATH=/opt/cuda dab doctor")]
pub struct Args {}

pub fn run(_: &Args) -> Result<()> {
    super::print(&report())
}

/// Features that change what a build can do.
fn features() -> String {
    let all = [
        ("cuda", cfg!(feature = "cuda")),
        ("mpi", cfg!(feature = "mpi")),
        ("ndarray", cfg!(feature = "ndarray")),
        ("parquet", cfg!(feature = "parquet")),
        ("pictures", cfg!(feature = "pictures")),
        ("pytorch", cfg!(feature = "pytorch")),
        ("wgpu", cfg!(feature = "wgpu")),
    ];
    let on: Vec<&str> = all.into_iter().filter_map(|(name, on)| on.then_some(name)).collect();
    if on.is_empty() { "none".to_owned() } else { on.join(", ") }
}

fn report() -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:12} {text}");
    };
    let debug = if cfg!(debug_assertions) { ", without optimisation" } else { "" };
    line("dab", &format!("{}{debug}; features: {}", env!("CARGO_PKG_VERSION"), features()));
    line("system", &format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    line("processor", &format!("{threads} threads, {} instructions", Widest::detect().name()));
    line("devices", &device::available());
    line("CUDA", &cuda());
    line("MPI", &mpi::version().unwrap_or_else(|| "not in this build (cargo feature `mpi`)".to_owned()));
    line("data", &data::data_root().display().to_string());
    out
}

fn cuda() -> String {
    let driver = match (cfg!(feature = "cuda"), device::cuda_count()) {
        (false, _) => return "not in this build (cargo feature `cuda`)".to_owned(),
        (true, 0) => "no driver or no GPU".to_owned(),
        (true, count) => {
            let most =
                cuda::driver().map_or_else(String::new, |most| format!(", for CUDA {}", cuda::words(most)));
            format!("GPUs: {count}, {}{most}", driver())
        }
    };
    // What is missing, of the driver first, is why a GPU is refused.
    match cuda::check().and_then(|()| cuda::libdevice()) {
        Ok(path) => format!("{driver}; libdevice: {}", path.display()),
        Err(error) => format!("{driver}; {error}"),
    }
}

/// NVIDIA's driver as it names itself to Linux, in the first line of its file.
fn driver() -> String {
    let told = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let version = told.lines().next().and_then(|line| line.strip_prefix("NVRM version:"));
    version
        .map_or_else(|| "a driver that does not tell its version".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_what_a_reader_of_a_defect_asks_for() {
        let report = report();
        for word in
            [env!("CARGO_PKG_VERSION"), "features:", "instructions", "auto, cpu", "CUDA", "MPI", "data"]
        {
            assert!(report.contains(word), "{word}: {report}");
        }
        assert_eq!(report.lines().count(), 7, "{report}");
    }
}
