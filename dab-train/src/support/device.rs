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
        let (feature, built) = match self {
            Self::Auto if cuda_count() > 0 => return Self::Cuda(0).open(),
            Self::Auto | Self::Cpu => return Ok(Device::flex()),
            Self::Cuda(_) => ("cuda", cfg!(feature = "cuda")),
            Self::Wgpu => ("wgpu", cfg!(feature = "wgpu")),
            Self::Ndarray => ("ndarray", cfg!(feature = "ndarray")),
        };
        let Some(device) = self.found() else {
            let why = match built {
                true => "this machine has none".to_owned(),
                false => format!("this build lacks the cargo feature `{feature}`"),
            };
            bail!("device `{self}` is not there ({why}); available here: {}", available())
        };
        if matches!(self, Self::Cuda(_)) {
            libdevice().with_context(|| format!("device `{self}` cannot be used"))?;
        }
        Ok(device)
    }

    /// The device, where this build and this machine have it.
    fn found(self) -> Option<Device> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => (index < cuda_count()).then(|| Device::cuda(index)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => {
                let any = !Device::enumerate(burn::tensor::DeviceType::Wgpu).into_vec().is_empty();
                any.then(|| Device::wgpu(burn::tensor::DeviceKind::DefaultDevice))
            }
            #[cfg(feature = "ndarray")]
            #[expect(deprecated, reason = "the older CPU backend stays selectable while burn ships it")]
            Self::Ndarray => Some(Device::ndarray()),
            _ => None,
        }
    }
}

/// GPUs that CUDA has here.
pub(crate) fn cuda_count() -> usize {
    #[cfg(feature = "cuda")]
    let count = Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec().len();
    #[cfg(not(feature = "cuda"))]
    let count = 0;
    count
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

/// `count` devices from `first` on: GPUs that follow it, or one CPU several times.
///
/// # Errors
/// When there are fewer GPUs.
pub fn replicas(first: &Device, count: usize) -> Result<Vec<Device>> {
    let gpus: Vec<Device> = (0..cuda_count()).filter_map(|index| DeviceChoice::Cuda(index).found()).collect();
    match gpus.iter().position(|gpu| gpu == first) {
        Some(at) if at + count <= gpus.len() => Ok(gpus[at..at + count].to_vec()),
        Some(at) => {
            bail!("training.replicas = {count}, but there are {} GPUs from this one on", gpus.len() - at)
        }
        None => Ok(vec![first.clone(); count]),
    }
}

/// The names that [`DeviceChoice::open`] accepts on this machine.
pub fn available() -> String {
    let gpus = (0..cuda_count()).map(DeviceChoice::Cuda);
    let others = gpus.chain([DeviceChoice::Wgpu, DeviceChoice::Ndarray]);
    let others = others.filter(|choice| choice.found().is_some()).map(|choice| choice.to_string());
    ["auto".to_owned(), "cpu".to_owned()].into_iter().chain(others).collect::<Vec<_>>().join(", ")
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
