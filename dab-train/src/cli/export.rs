//! `dab export`: artifact → C source.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{
    export::{
        c_source::{c_source, check_name},
        model_file::ModelFile,
    },
    support::files::AtomicFile,
};

/// Write a model as C source, for firmware without files
///
/// The file holds the model's bytes as a constant array, aligned for dab_model_init, and macros for its sizes:
/// everything that a program needs to declare its memory. It compiles as C99 and as C++, by itself or
/// included. If the linked library finds other known answers than this machine did, dab_self_test says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab export model.dab --c model.c
  dab export model.dab --c arm.c --name arm")]
pub struct Args {
    /// The model file
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    /// The C file to write
    #[arg(long, value_name = "MODEL.c")]
    c: PathBuf,

    /// Name of the array; its macros have it in capitals
    #[arg(long, default_value = "dab_artifact", value_name = "NAME")]
    name: String,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let name = &args.name;
    check_name(name)?;
    let artifact = ModelFile::open(&args.model)?;
    let model = artifact.model()?;
    // Firmware must not learn at boot what can be known here.
    model
        .self_test(&mut vec![0.0; model.scratch_len()])
        .with_context(|| format!("`{}`", args.model.display()))?;
    let text = c_source(name, &artifact, &model)?;
    let output = args.c.display();
    AtomicFile::write(&args.c, text.as_bytes()).with_context(|| format!("cannot write `{output}`"))?;
    let (flash, scratch) = (artifact.bytes().len(), 4 * model.scratch_len());
    super::print(&format!("{output}: `{name}`, {flash} bytes of flash, {scratch} bytes of scratch\n"))
}
