//! Where tensors live: `--device auto|cpu|cuda[:N]|wgpu|ndarray`.
//!
//! `DeviceChoice` (parsed) → `open` → burn's `Device`. burn creates devices lazily and panics much later when
//! there is no such hardware, so a choice is checked against the enumerated devices first.

use std::{fmt, str::FromStr};

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::Device;

use super::cuda;

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
    ///
    /// # Errors
    /// When there are GPUs, but fewer than processes: two of them on one GPU would be slower than one.
    pub fn of_process(self, local: Option<usize>) -> Result<Self> {
        match (self, local) {
            (Self::Auto, Some(index)) => {
                let chosen = std::env::var_os("CUDA_VISIBLE_DEVICES").is_some();
                Ok(gpu_of_process(index, cuda_count(), chosen)?.map_or(self, Self::Cuda))
            }
            _ => Ok(self),
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
            cuda::check().with_context(|| format!("device `{self}` cannot be used"))?;
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

/// Which of `gpus` process number `index` of a machine takes; none where there are none. `chosen` says that somebody has chosen
/// which GPUs this process sees: `srun --gpus-per-task=1` and scripts give each process one, which is then its number 0.
fn gpu_of_process(index: usize, gpus: usize, chosen: bool) -> Result<Option<usize>> {
    match gpus {
        0 => Ok(None),
        1 if chosen => Ok(Some(0)),
        _ => {
            ensure!(
                index < gpus,
                "process {index} of this machine, counted from 0, has no GPU: there are {gpus}; start as many processes as \
                 there are GPUs, or name the device that they share, as in --device cpu"
            );
            Ok(Some(index))
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
    fn processes_of_a_machine_take_one_gpu_each() {
        for (index, gpus, chosen, taken) in [
            (0, 0, false, None),
            (3, 0, false, None),
            (3, 4, false, Some(3)),
            (1, 2, true, Some(1)),
            // By srun --gpus-per-task=1.
            (3, 1, true, Some(0)),
        ] {
            assert_eq!(gpu_of_process(index, gpus, chosen).unwrap(), taken);
        }
        for (index, gpus, chosen) in [(1, 1, false), (2, 2, false), (2, 2, true)] {
            let said = gpu_of_process(index, gpus, chosen).unwrap_err().to_string();
            let words =
                format!("process {index} of this machine, counted from 0, has no GPU: there are {gpus};");
            assert!(said.starts_with(&words), "{said}");
        }
        assert_eq!(DeviceChoice::Cpu.of_process(Some(9)).unwrap(), DeviceChoice::Cpu);
        assert_eq!(DeviceChoice::Auto.of_process(None).unwrap(), DeviceChoice::Auto);
    }

    #[test]
    fn the_cpu_is_always_there() {
        assert_eq!(DeviceChoice::Cpu.open().unwrap(), Device::flex());
        assert!(DeviceChoice::Auto.open().is_ok());
        assert_eq!(DeviceChoice::Ndarray.open().is_ok(), cfg!(feature = "ndarray"));
    }
}
