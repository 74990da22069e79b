//! Where tensors live: `--device auto|cpu|cuda[:N]|wgpu|ndarray`.
//!
//! `DeviceChoice` (parsed) → `open` → burn's `Device`. burn creates devices lazily and panics much later when
//! there is no such hardware, so a choice is checked against the enumerated devices first.

use std::{fmt, path::PathBuf, str::FromStr};

use anyhow::{Context, Result, bail};
use burn::tensor::Device;

/// A device as the user names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if there is one, the CPU otherwise.
    #[default]
    Auto,
    /// burn's `flex` on the CPU.
    Cpu,
    /// The CUDA device with this index (cargo feature `cuda`).
    Cuda(usize),
    /// The graphics device that wgpu prefers (cargo feature `wgpu`).
    Wgpu,
    /// The older CPU backend, which burn deprecates (cargo feature `ndarray`).
    Ndarray,
}

impl FromStr for DeviceChoice {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "cuda" => Self::Cuda(0),
            "wgpu" => Self::Wgpu,
            "ndarray" => Self::Ndarray,
            _ => match name.strip_prefix("cuda:").and_then(|index| index.parse().ok()) {
                Some(index) => Self::Cuda(index),
                None => bail!("no device is called `{name}`; available here: {}", available()),
            },
        })
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
            Self::Wgpu => f.write_str("wgpu"),
            Self::Ndarray => f.write_str("ndarray"),
        }
    }
}

impl DeviceChoice {
    /// The device of one of several processes on a machine, by its number among them: `auto` gives each its own GPU.
    #[must_use]
    pub fn of_process(self, local: Option<usize>) -> Self {
        match (self, local) {
            (Self::Auto, Some(index)) if index < cuda_count() => Self::Cuda(index),
            _ => self,
        }
    }

    /// The device, without gradient tracking.
    ///
    /// # Errors
    /// When this build or this machine does not have it; the message lists what there is.
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Auto if cuda_count() > 0 => Self::Cuda(0).open(),
            Self::Auto | Self::Cpu => Ok(Device::flex()),
            Self::Cuda(index) if index < cuda_count() => {
                libdevice().with_context(|| format!("device `{self}` cannot be used"))?;
                Ok(cuda(index))
            }
            Self::Wgpu if has_wgpu() => Ok(wgpu()),
            Self::Cuda(_) if !cfg!(feature = "cuda") => {
                missing(self, "this build lacks the cargo feature `cuda`")
            }
            Self::Wgpu if !cfg!(feature = "wgpu") => {
                missing(self, "this build lacks the cargo feature `wgpu`")
            }
            Self::Cuda(_) | Self::Wgpu => missing(self, "this machine has none"),
            Self::Ndarray if cfg!(feature = "ndarray") => Ok(ndarray()),
            Self::Ndarray => missing(self, "this build lacks the cargo feature `ndarray`"),
        }
    }
}

/// Folders that burn looks for the CUDA toolkit in when `CUDA_PATH` is not set.
const TOOLKITS: [&str; 4] = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"];
/// NVIDIA's mathematical functions, below the toolkit's folder.
const LIBDEVICE: &str = "nvvm/libdevice/libdevice.10.bc";

/// Where the functions are that kernels with `exp` or `tanh` are linked with. burn looks for them when it compiles the first
/// such kernel, and panics without them; so does this, but before the work begins and in words.
///
/// # Errors
/// When they are not there: what to install, and which variable to set.
pub fn libdevice() -> Result<PathBuf> {
    let roots = std::env::var_os("CUDA_PATH")
        .map_or_else(|| TOOLKITS.map(PathBuf::from).to_vec(), |path| vec![PathBuf::from(path)]);
    let found = roots.iter().map(|root| root.join(LIBDEVICE)).find(|path| path.is_file());
    let set = std::env::var_os("CUDA_PATH")
        .map_or("is not set".to_owned(), |path| format!("is {}", path.display()));
    found.with_context(|| format!(
        "CUDA needs {LIBDEVICE} of NVIDIA's toolkit: install the toolkit, or `pip install nvidia-cuda-nvcc-cu12`, and set \
         CUDA_PATH to the folder that has nvvm/ in it (site-packages/nvidia/cuda_nvcc); now CUDA_PATH {set}"
    ))
}

fn missing(choice: DeviceChoice, why: &str) -> Result<Device> {
    bail!("device `{choice}` is not there ({why}); available here: {}", available())
}

/// `count` devices from `first` on: GPUs that follow it, or one CPU several times.
///
/// # Errors
/// When there are fewer GPUs.
pub fn replicas(first: &Device, count: usize) -> Result<Vec<Device>> {
    let gpus: Vec<Device> = (0..cuda_count()).map(cuda).collect();
    match gpus.iter().position(|gpu| gpu == first) {
        Some(at) if at + count <= gpus.len() => Ok(gpus[at..at + count].to_vec()),
        Some(at) => {
            bail!("training.replicas = {count}, but there are {} GPUs from this one on", gpus.len() - at)
        }
        None => Ok(vec![first.clone(); count]),
    }
}

/// The names that [`DeviceChoice::open`] accepts on this machine.
#[must_use]
pub fn available() -> String {
    let mut names = vec!["auto".to_owned(), "cpu".to_owned()];
    names.extend((0..cuda_count()).map(|index| format!("cuda:{index}")));
    if has_wgpu() {
        names.push("wgpu".to_owned());
    }
    if cfg!(feature = "ndarray") {
        names.push("ndarray".to_owned());
    }
    names.join(", ")
}

#[cfg(feature = "ndarray")]
#[expect(deprecated, reason = "the older CPU backend stays selectable while burn ships it")]
fn ndarray() -> Device {
    Device::ndarray()
}

#[cfg(not(feature = "ndarray"))]
fn ndarray() -> Device {
    Device::flex()
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda_count() -> usize {
    Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec().len()
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn cuda_count() -> usize {
    0
}

#[cfg(feature = "cuda")]
fn cuda(index: usize) -> Device {
    Device::cuda(index)
}

#[cfg(not(feature = "cuda"))]
fn cuda(_index: usize) -> Device {
    Device::flex()
}

#[cfg(feature = "wgpu")]
fn has_wgpu() -> bool {
    !Device::enumerate(burn::tensor::DeviceType::Wgpu).into_vec().is_empty()
}

#[cfg(not(feature = "wgpu"))]
fn has_wgpu() -> bool {
    false
}

#[cfg(feature = "wgpu")]
fn wgpu() -> Device {
    Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)
}

#[cfg(not(feature = "wgpu"))]
fn wgpu() -> Device {
    Device::flex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_print_alike() {
        for name in ["auto", "cpu", "cuda:3", "wgpu", "ndarray"] {
            assert_eq!(name.parse::<DeviceChoice>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse::<DeviceChoice>().unwrap(), DeviceChoice::Cuda(0));
    }

    #[test]
    fn an_absent_device_is_one_line_that_says_what_is_there() {
        for error in
            ["tpu".parse::<DeviceChoice>().unwrap_err(), DeviceChoice::Cuda(4096).open().unwrap_err()]
        {
            let text = error.to_string();
            assert!(text.contains("auto, cpu") && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn the_cpu_is_always_there() {
        assert_eq!(DeviceChoice::Cpu.open().unwrap(), Device::flex());
        assert!(DeviceChoice::Auto.open().is_ok());
        assert_eq!(DeviceChoice::Ndarray.open().is_ok(), cfg!(feature = "ndarray"));
    }
}
