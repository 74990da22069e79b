//! `dab verify`: does the model file still say what the trained network says?

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};

use super::{place::Place, text};
use crate::{
    config::Experiment,
    data::{self, Loaded, Task},
    experiment,
    export::{int8, model_file::ModelFile},
    learn::{self, run::Setting},
    measure::{
        assessed::assess,
        evaluate::TaskScores,
        parity::{PARITY, Parity, REFUSED, Twice},
    },
    report::folder::{CHECKPOINT, EXPERIMENT, MODEL},
    support::device::DeviceChoice,
};

/// Compare a model with the network that it was made from
///
/// Reads the run that `dab train` or `dab fit` left beside the model (experiment.toml for the data,
/// checkpoint.safetensors for the network), scores every held-out, test and OOD input twice, with the
/// trainer's network and with the model as a device runs it, and shows how far the two differ. A model that
/// was computed and not trained is computed again, and its distances in double precision. Training ends
/// with the same comparison; this repeats it later, on another machine or device. Differences
/// up to 1e-4 of max(u, 1 nat) are rounding, larger ones are told, and above 1e-2 it fails.
///
/// A file that `dab quantise` made of the run's model is recognised, and said to be one.
///
/// A model without its run has no network to compare with: `dab self-test` checks such a file.
/// Exit code 0 if the two agree, 1 if not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab verify runs/regression-two-clusters/model.dab
  dab verify deployed.dab --run runs/fit
  dab verify runs/fit/model.dab --device cuda")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,
    /// The folder of its run [default: the model's folder]
    #[arg(long, value_name = "FOLDER")]
    run: Option<PathBuf>,
    /// Where the network computes: auto, cpu, cuda[:N], wgpu or ndarray
    #[arg(long, default_value = "auto")]
    device: DeviceChoice,
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    let artifact = ModelFile::open(&place.model)?;
    let folder = args.run.as_deref().unwrap_or(&place.folder);
    let Found { twice, computed, rounded } =
        score_twice(&artifact, folder, args.device).with_context(|| {
            format!("`{}` cannot be compared with the run in {}", args.model.display(), folder.display())
        })?;
    let parity = twice.parity()?;
    let bytes = artifact.model()?.meta().int8;
    if rounded == Some(true) {
        super::print(&rows(&twice, &parity)?)?;
        let (model, own) = (args.model.display(), folder.join(MODEL));
        return super::print(&format!(
            "`{model}` was quantised from `{own}`: it has the same weights in one byte each, which moves u by up to {:.1e} of u; \
             `dab quantise {own} --data ROWS` says what that changes\n",
            parity.largest_relative,
            own = own.display()
        ));
    }
    if bytes && computed {
        super::print("both have weights of one byte; the device rounds inputs to 16 bits, too\n")?;
    }
    super::print(&table(&twice, &parity)?)?;
    if bytes && !computed && rounded.is_none() {
        return super::print("the model has weights of one byte: differences are those of rounding them\n");
    }
    parity.check().map_err(|error| {
        let (model, folder) = (args.model.display(), folder.display());
        anyhow!(
            "`{model}` is not the model of the run in {folder}: {error}; name its own run with --run, or train again"
        )
    })
}

/// What became of a comparison.
struct Found {
    /// Every input of the run, scored by its network and by the artifact.
    twice: Twice,
    /// Whether the model was computed and not trained.
    computed: bool,
    /// Of an artifact with weights of one byte beside a run's model with floats: whether it is that model, quantised.
    rounded: Option<bool>,
}

fn score_twice(artifact: &ModelFile, folder: &Path, device: DeviceChoice) -> Result<Found> {
    let device = device.open()?;
    let file = folder.join(EXPERIMENT);
    ensure!(
        file.exists(),
        "there is no {EXPERIMENT}: name the folder that `dab train` or `dab fit` wrote with --run; a model \
         without its run is checked by `dab self-test`"
    );
    let experiment = Experiment::read(&file)?;
    let setting = Setting {
        seed: experiment.seed,
        device: device.clone(),
        checkpoint: Some(folder.join(CHECKPOINT)),
        resume: true,
        machines: None,
    };
    let loaded = experiment.data.load(experiment.seed, &data::data_root())?;
    if let (Some(_), Loaded::Rows(task, _)) = (&experiment.retrofit, &loaded) {
        let twice = experiment::twice(&experiment, (**task).clone(), artifact.bytes())?;
        return Ok(Found { twice, computed: true, rounded: is_rounded(artifact, folder, task)? });
    }
    let (task, learnt) = learn::restore(&experiment, loaded, &setting)?;
    let (takes, has) = (artifact.model()?.shape().inputs, task.train.inputs.cols);
    ensure!(takes == has, "the model takes {takes} numbers, the run's inputs have {has}");
    let scores = TaskScores::of(&task, |inputs| learnt.trained.score(inputs, &device))?;
    let twice = Twice::new(&scores, &assess(artifact.bytes(), &task)?);
    Ok(Found { twice, computed: false, rounded: is_rounded(artifact, folder, &task)? })
}

/// Whether an artifact with weights of one byte says of every input, bit for bit, what the run's own model says when its floats are
/// rounded to bytes. p-values may differ: `dab quantise --calibration` makes another table. `None` where there are no such two.
fn is_rounded(artifact: &ModelFile, folder: &Path, task: &Task) -> Result<Option<bool>> {
    let own = folder.join(MODEL);
    if !artifact.model()?.meta().int8 || !own.is_file() {
        return Ok(None);
    }
    let own = ModelFile::open(&own)?;
    if own.model()?.meta().int8 {
        return Ok(None);
    }
    let own = ModelFile::from_bytes(&int8::quantised(own.bytes(), None)?)?;
    let shapes = [&own, artifact].map(|file| file.model().map(|model| model.shape()));
    let [Ok(one), Ok(other)] = shapes else { return Ok(Some(false)) };
    if (one.inputs, one.outputs) != (other.inputs, other.outputs) {
        return Ok(Some(false));
    }
    let said = |file: &ModelFile| -> Result<Vec<_>> {
        let said = assess(file.bytes(), task)?;
        let sets = [said.held_out, said.test].into_iter().chain(said.ood);
        let rows = sets.flat_map(|set| set.rows);
        Ok(rows
            .map(|row| (row.said.uncertainty, row.said.unfamiliarity, row.said.ambiguity, row.outputs))
            .collect())
    };
    Ok(Some(said(&own)? == said(artifact)?))
}

/// One line a set, then the AUROCs.
fn rows(twice: &Twice, parity: &Parity) -> Result<String> {
    let mut out = String::new();
    let row = |name: &str, p: &Parity| {
        format!(
            "{name:16} {:>8} {:>14.1e} {:>10.1e} {:>17.6}\n",
            p.inputs, p.largest_difference, p.largest_relative, p.rank_correlation
        )
    };
    writeln!(
        out,
        "{:16} {:>8} {:>14} {:>10} {:>17}",
        "", "inputs", "max |Δu| nats", "relative", "rank correlation"
    )?;
    for pair in &twice.0 {
        out += &row(&pair.name, &pair.parity()?);
    }
    out += &row("all", parity);
    for (name, [trainer, device]) in twice.aurocs()? {
        let difference = (trainer - device).abs();
        writeln!(
            out,
            "AUROC of u, {name}: trainer {trainer:.6}, device {device:.6}, difference {difference:.1e}"
        )?;
    }
    Ok(out)
}

/// [`rows`], and what they amount to.
fn table(twice: &Twice, parity: &Parity) -> Result<String> {
    let mut out = rows(twice, parity)?;
    if parity.largest_relative <= PARITY {
        let inputs = text::plural(parity.inputs as u64, "input");
        let largest = parity.largest_relative;
        writeln!(out, "agree on {inputs}: at most {largest:.1e} of u apart, allowed {PARITY:.0e}")?;
    } else if parity.largest_relative <= REFUSED {
        let largest = parity.largest_relative;
        writeln!(
            out,
            "nearly agree: at most {largest:.1e} of u apart; rounding is {PARITY:.0e}, refused {REFUSED:.0e}"
        )?;
    }
    Ok(out)
}
