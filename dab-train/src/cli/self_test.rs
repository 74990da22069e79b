//! `dab self-test`: does this machine give the bits that the file records?

use std::path::PathBuf;

use anyhow::{Context, Result};
use dab_core::isa::Baseline;

use super::{place::Place, text};
use crate::support::simd::Widest;

/// Check that a model gives its recorded answers here, bit for bit.
///
/// Every model carries known-answer inputs with the bits of their results. This runs them on the instructions
/// that dab was compiled for and on the widest that this processor has. A device does the same at boot. If
/// it fails, the file, the build or the floating-point environment is not what it should be: do not use
/// the results. Exit code 0 if all bits agree, 1 if not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab self-test model.dab
  dab self-test model.dab && dab score model.dab inputs.csv")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let artifact = Place::open(&args.model)?;
    let model = artifact.model()?;
    let name = args.model.display();
    let mut scratch = vec![0.0; model.scratch_len()];
    let wide = Widest::detect();
    let failed =
        |on: &str| format!("`{name}`: self-test failed on {on} instructions, do not trust its results here");
    model.self_test_on(Baseline, &mut scratch).with_context(|| failed("baseline"))?;
    model.self_test_on(wide, &mut scratch).with_context(|| failed(&wide.name()))?;
    let answers = text::plural(model.meta().self_test.vectors.into(), "known answer");
    super::print(&format!(
        "{name}: {answers} agree, bit for bit, on baseline and {} instructions\n",
        wide.name()
    ))
}
