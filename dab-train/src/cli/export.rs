//! `dab export`: artifact → C source.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::{input::check_apart, place::Place};
use crate::{
    export::{
        c_source::{c_source, check_name},
        model_file::ModelFile,
    },
    support::files::save,
};

/// Write a model as C source, for firmware without files
///
/// The file holds the model's bytes as a constant array, aligned for dab_model_init, and macros for its sizes:
/// everything that a program needs to declare its memory. It compiles as C99 and as C++. With --header, the
/// macros and the declaration go into a header, and the C file is compiled like any other of the program.
/// Without it, one file of the program includes the C file. If the linked library finds other known answers
/// than this machine did, dab_self_test says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab export model.dab --c model.c --header model.h    cc main.c model.c libdab.a; main.c includes model.h
  dab export model.dab --c model.c                     cc main.c libdab.a; main.c includes model.c
  dab export arm.dab --c arm.c --header arm.h --name arm")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    /// The C file to write
    #[arg(long, value_name = "MODEL.c")]
    c: PathBuf,

    /// The header to write: what other files include
    #[arg(long, value_name = "MODEL.h")]
    header: Option<PathBuf>,

    /// Name of the array; its macros have it in capitals
    #[arg(long, default_value = "dab_artifact", value_name = "NAME")]
    name: String,
}

pub fn run(args: &Args) -> Result<()> {
    let name = &args.name;
    check_name(name)?;
    let place = Place::new(&args.model)?;
    check_apart(&args.c, [&place.model])?;
    args.header.iter().try_for_each(|header| check_apart(header, [&place.model]))?;
    let artifact = ModelFile::open(&place.model)?;
    let model = artifact.model()?;
    // Firmware must not learn at boot what can be known here.
    model
        .self_test(&mut vec![0.0; model.scratch_len()])
        .with_context(|| format!("`{}`", args.model.display()))?;
    let header = match &args.header {
        // The name alone, so that the two may lie in folders of their own (`src`, `include`).
        Some(header) => Some(header.file_name().and_then(|name| name.to_str()).with_context(|| {
            format!("`{}` is not a name for a header: C could not include it", header.display())
        })?),
        None => None,
    };
    let text = c_source(name, header, &artifact, &model)?;
    let mut written = args.c.display().to_string();
    // The header first: a C file that includes one that is not there would be of no use.
    if let (Some(to), Some(text)) = (&args.header, &text.header) {
        if std::path::absolute(to)? == std::path::absolute(&args.c)? {
            bail!(
                "--c and --header name the same file, `{}`: give the header a name of its own",
                to.display()
            );
        }
        save(to, text)?;
        written = format!("{written}, {}", to.display());
    }
    save(&args.c, &text.source)?;
    let (flash, scratch) = (artifact.bytes().len(), 4 * model.scratch_len());
    super::print(&format!("{written}: `{name}`, {flash} bytes of flash, {scratch} bytes of scratch\n"))
}
