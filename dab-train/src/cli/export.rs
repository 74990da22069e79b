//! `dab export`: artifact → C source.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use dab_core::Model;

use crate::io::artifact::Artifact;
use crate::io::whole::WholeFile;

/// Words per line of the array.
const PER_LINE: usize = 8;

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
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(letters) || name.starts_with(|c: char| c.is_ascii_digit()) {
        bail!("`{name}` is not a name in C: use letters, digits and _, and begin with a letter");
    }
    let artifact = Artifact::open(&args.model)?;
    let model = artifact.model()?;
    // Firmware must not learn at boot what can be known here.
    model
        .self_test(&mut vec![0.0; model.scratch_len()])
        .with_context(|| format!("`{}`", args.model.display()))?;
    let text = source(name, &artifact, &model)?;
    let output = args.c.display();
    WholeFile::write(&args.c, text.as_bytes()).with_context(|| format!("cannot write `{output}`"))?;
    let (flash, scratch) = (artifact.bytes().len(), 4 * model.scratch_len());
    super::print(&format!("{output}: `{name}`, {flash} bytes of flash, {scratch} bytes of scratch\n"))
}

fn source(name: &str, artifact: &Artifact, model: &Model<'_>) -> Result<String> {
    let (bytes, shape) = (artifact.bytes(), model.shape());
    let upper = name.to_ascii_uppercase();
    let mut t = String::new();
    writeln!(t, "/* A dab model, identity {:08x}. Written by dab export; C99 and C++.", artifact.identity())?;
    writeln!(t, " *")?;
    writeln!(t, " *     static uint64_t storage[DAB_MODEL_BYTES / 8];")?;
    writeln!(t, " *     static float scratch[{upper}_SCRATCH_FLOATS];")?;
    writeln!(t, " *     dab_model *model;")?;
    writeln!(
        t,
        " *     if (dab_model_init(storage, sizeof storage, {name}, {upper}_BYTES, &model) != DAB_OK) stop();"
    )?;
    writeln!(t, " *     if (dab_self_test(model, scratch, sizeof scratch) != DAB_OK) stop();")?;
    writeln!(t, " *")?;
    writeln!(t, " * Other files see it by: extern const uint32_t {name}[{upper}_BYTES / 4 + 1]; */")?;
    writeln!(t, "#include <stdint.h>\n\n#ifndef {upper}_BYTES")?;
    let macros = [
        ("BYTES", bytes.len()),
        ("INPUTS", shape.inputs),
        ("OUTPUTS", shape.outputs),
        ("CODES", shape.codes),
        ("DIM", shape.dim),
        ("SCRATCH_FLOATS", model.scratch_len()),
    ];
    for (what, value) in macros {
        writeln!(t, "#define {upper}_{what} {value}u")?;
    }
    writeln!(t, "/* CRC-32C of the model: the same for the same model. */")?;
    writeln!(t, "#define {upper}_IDENTITY 0x{:08x}u", artifact.identity())?;
    writeln!(t, "/* What dab_self_test must find: so many answers, with this digest of their bits. */")?;
    let test = model.meta().self_test;
    writeln!(t, "#define {upper}_SELF_TESTS {}u", test.vectors)?;
    writeln!(t, "#define {upper}_SELF_TEST_DIGEST 0x{:08x}u", u32::from_le_bytes(test.digest))?;
    writeln!(t, "#endif\n")?;
    writeln!(t, "#ifdef __cplusplus\nextern \"C\" {{\n#endif")?;
    writeln!(t, "/* Little-endian words: aligned for the reader, whatever the compiler. */")?;
    // In C++ a constant is private to its file unless it was declared.
    writeln!(t, "extern const uint32_t {name}[{upper}_BYTES / 4 + 1];")?;
    writeln!(t, "const uint32_t {name}[{upper}_BYTES / 4 + 1] = {{")?;
    let words: Vec<String> = bytes
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            format!("0x{:08x}u", u32::from_le_bytes(word))
        })
        .collect();
    for line in words.chunks(PER_LINE) {
        writeln!(t, "    {},", line.join(", "))?;
    }
    writeln!(t, "}};\n#ifdef __cplusplus\n}}\n#endif")?;
    Ok(t)
}
