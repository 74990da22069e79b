//! What burn's CUDA backend needs at run time besides a GPU: a driver that is new enough, and libdevice.
//!
//! burn finds out when it calls a function that the driver lacks, or compiles the first kernel with `exp` or `tanh` in it, and
//! panics. [`check`] finds out when the device is opened, and says what to do.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Folders that burn looks for the CUDA toolkit in when `CUDA_PATH` is not set, in its order.
const TOOLKITS: [&str; 4] = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"];
/// Below the toolkit's folder.
const FOLDER: &str = "nvvm/libdevice";
/// NVIDIA's mathematical functions, in that folder.
const LIBDEVICE: &str = "libdevice.10.bc";

/// The oldest version of CUDA that a driver has to be for, as it tells it: 1000 · major + 10 · minor. It is the oldest that cudarc
/// knows, through which burn calls the driver. burn is built against a newer interface, but each function is looked for when it
/// is called first, and training calls none that this version lacks; the newest of those that burn has, for timing kernels, would
/// need 12.8. burn writes PTX for the driver that it finds; `tests/cli/stand_in.rs` runs what it writes for this one.
const OLDEST_CUDA: u32 = 11040;

/// Looks for everything that computing on a GPU needs.
///
/// # Errors
/// What is missing, and what to do.
pub fn check() -> Result<()> {
    if let Some(version) = driver() {
        new_enough(version)?;
    }
    libdevice()?;
    Ok(())
}

/// The newest version of CUDA that NVIDIA's driver here can do, if there is a driver.
pub fn driver() -> Option<u32> {
    #[cfg(feature = "cuda")]
    let version = {
        use cudarc::driver::sys;
        // SAFETY: it only tries to load the library.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        let mut version = 0;
        // SAFETY: `version` is an integer that can be written; the function exists in every driver, and may be called before any other.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().ok()?;
        u32::try_from(version).ok()
    };
    #[cfg(not(feature = "cuda"))]
    let version = None;
    version
}

/// A version of CUDA as people write it.
pub fn words(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn new_enough(version: u32) -> Result<()> {
    ensure!(
        version >= OLDEST_CUDA,
        "NVIDIA's driver is too old: it is one for CUDA {}, needed is CUDA {} (driver 470) or newer: install a newer driver",
        words(version),
        words(OLDEST_CUDA)
    );
    Ok(())
}

/// Where the functions are that kernels with `exp` or `tanh` are linked with.
///
/// # Errors
/// When they are not there: what to install, and which variable to set.
pub fn libdevice() -> Result<PathBuf> {
    // As burn asks: a name that is not UTF-8 counts as not set.
    libdevice_in(std::env::var("CUDA_PATH").ok().map(PathBuf::from), &TOOLKITS.map(Path::new))
}

/// libdevice in the folder that was set, else in the first toolkit that has a folder for it, as burn looks for it: it does not go on
/// to the next toolkit when the file is not in that folder.
fn libdevice_in(set: Option<PathBuf>, toolkits: &[&Path]) -> Result<PathBuf> {
    let first = || toolkits.iter().find(|root| root.join(FOLDER).is_dir()).map(PathBuf::from);
    let found = set.clone().or_else(first);
    let now = match (&set, &found) {
        (Some(set), _) => format!("CUDA_PATH is {}", set.display()),
        (None, Some(found)) => format!("CUDA_PATH is not set, and {}/{FOLDER} lacks it", found.display()),
        (None, None) => "CUDA_PATH is not set".to_owned(),
    };
    found.map(|root| root.join(FOLDER).join(LIBDEVICE)).filter(|path| path.is_file()).with_context(|| {
        format!(
            "CUDA needs {FOLDER}/{LIBDEVICE} of NVIDIA's toolkit: install the toolkit, or `pip install nvidia-cuda-nvcc-cu12`, and \
             set CUDA_PATH to the folder that has nvvm/ in it (site-packages/nvidia/cuda_nvcc); now {now}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_is_too_old_is_told_with_what_is_needed() {
        for version in [OLDEST_CUDA, 11080, 12090, 13040] {
            new_enough(version).unwrap();
        }
        let said = new_enough(10020).unwrap_err().to_string();
        assert!(said.contains("for CUDA 10.2, needed is CUDA 11.4") && !said.contains('\n'), "{said}");
        assert_eq!([words(11040), words(12090), words(13000)], ["11.4", "12.9", "13.0"]);
    }

    #[test]
    fn libdevice_is_looked_for_where_burn_looks() {
        let all = tempfile::tempdir().unwrap();
        let root = |name: &str| all.path().join(name);
        let put = |name: &str, file: bool| {
            std::fs::create_dir_all(root(name).join(FOLDER)).unwrap();
            if file {
                std::fs::write(root(name).join(FOLDER).join(LIBDEVICE), "").unwrap();
            }
        };
        put("empty", false);
        put("first", true);
        put("second", true);
        let [nowhere, empty, first, second] = ["nowhere", "empty", "first", "second"].map(root);
        let file = |root: &Path| root.join(FOLDER).join(LIBDEVICE);
        let found = libdevice_in(None, &[&nowhere, &first, &second]).unwrap();
        assert_eq!(found, file(&first));
        assert_eq!(libdevice_in(Some(second.clone()), &[&first]).unwrap(), file(&second));
        // burn takes the first toolkit that has the folder, whatever is in it, and asks no other than the one that was set.
        let said = libdevice_in(None, &[&empty, &first]).unwrap_err().to_string();
        assert!(said.contains("CUDA_PATH is not set, and ") && said.contains("empty"), "{said}");
        let said = libdevice_in(Some(nowhere.clone()), &[&first]).unwrap_err().to_string();
        assert!(said.contains("now CUDA_PATH is ") && said.contains("nowhere"), "{said}");
        assert!(libdevice_in(None, &[&nowhere]).unwrap_err().to_string().ends_with("CUDA_PATH is not set"));
    }
}
