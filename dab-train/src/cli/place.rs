//! Where a model is: every command that takes a MODEL.dab also takes the folder of the run that made it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::{export::model_file::ModelFile, report::folder::MODEL};

/// A model file, and the folder of the run that it may be in.
pub struct Place {
    pub model: PathBuf,
    pub folder: PathBuf,
}

impl Place {
    /// `given` is a model file or the folder of a run.
    pub fn new(given: &Path) -> Result<Self> {
        if !given.is_dir() {
            let beside = given.parent().filter(|parent| !parent.as_os_str().is_empty());
            return Ok(Self { model: given.into(), folder: beside.unwrap_or(Path::new(".")).into() });
        }
        let model = given.join(MODEL);
        if !model.is_file() {
            let seeds = std::fs::read_dir(given).into_iter().flatten().flatten().map(|entry| entry.path());
            let seed = seeds.filter(|path| path.join(MODEL).is_file()).min();
            match seed {
                Some(seed) => {
                    bail!("{} holds several runs: name one, as in {}", given.display(), seed.display())
                }
                None => bail!(
                    "{} is a folder without {MODEL}: name a model file, or a run's folder",
                    given.display()
                ),
            }
        }
        Ok(Self { model, folder: given.into() })
    }

    /// The model file that `given` names, or that lies in the folder of the run that it names.
    pub fn open(given: &Path) -> Result<ModelFile> {
        ModelFile::open(&Self::new(given)?.model)
    }
}
