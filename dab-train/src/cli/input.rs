//! Arguments that say where rows come from and when to raise an alarm.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use dab_core::{Model, Rates};

use crate::{
    data::{
        Table,
        files::FilePart,
        rows::{Header, Layout, RowError, RowReader, RowSource, TextFormat},
    },
    export::model_file::ModelFile,
    support::files::is_same,
};

/// How CSV files are written.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TextArgs {
    /// Whether the first row of a CSV file holds column names; auto: if it has text and no numbers
    #[arg(long, value_enum, default_value_t, value_name = "WHETHER")]
    header: Header,

    /// What separates the fields of a CSV file: one character, or tab
    #[arg(long, default_value = ",", value_parser = delimiter, value_name = "CHAR")]
    delimiter: u8,
}

impl TextArgs {
    pub const fn format(&self) -> TextFormat {
        TextFormat { header: self.header, delimiter: self.delimiter }
    }
}

/// Where the rows come from.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Rows of inputs: a CSV file (also .csv.gz), a NumPy file (x.npy, x.npz:key), a Parquet file (if dab was built with it),
    /// or - for standard input. Or pictures, folders of them, and arrays of images
    #[arg(value_name = "INPUTS", required = true)]
    pub(super) inputs: Vec<PathBuf>,

    #[command(flatten)]
    text: TextArgs,

    /// Take the columns of a file in their order even if the model knows its inputs by name
    #[arg(long)]
    by_position: bool,

    /// The columns of a CSV or Parquet file that hold the model's inputs, in the model's order, separated by commas.
    /// In a Parquet file it may be one column of lists
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "by_position")]
    columns: Option<Vec<String>>,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\"" | b"\n" | b"\r" => Err("quotes and ends of lines cannot separate fields".into()),
        &[byte] if byte.is_ascii() => Ok(byte),
        _ => Err("one character, or the word tab".into()),
    }
}

impl InputArgs {
    pub fn source(&self) -> RowSource {
        RowSource::new(self.path())
    }

    /// Whether they can be read only once.
    pub fn is_stdin(&self) -> bool {
        self.source() == RowSource::Stdin
    }

    /// The file or folder of rows.
    pub fn path(&self) -> &Path {
        self.inputs.first().map_or(Path::new("-"), PathBuf::as_path)
    }

    /// How this model takes rows.
    pub fn layout(&self, artifact: &ModelFile, model: &Model<'_>) -> Layout {
        let inputs = model.shape().inputs;
        let known = || if self.by_position { None } else { artifact.input_names(inputs) };
        let names = self.columns.clone().or_else(known);
        Layout { inputs, names, text: self.text.format() }
    }

    /// The rows, as this model takes them.
    pub fn open(&self, artifact: &ModelFile, model: &Model<'_>) -> Result<RowReader> {
        ensure!(
            self.inputs.len() == 1,
            "{} files of rows: give one at a time; only pictures may be many",
            self.inputs.len()
        );
        self.open_other(self.path(), artifact, model)
    }

    /// The rows of another file that is read in the same way.
    pub fn open_other(&self, file: &Path, artifact: &ModelFile, model: &Model<'_>) -> Result<RowReader> {
        RowReader::open(&RowSource::new(file), &self.layout(artifact, model))
    }
}

/// Does `then` with every row and its number, which counts from 1. A row that cannot be read is an error; `note` ends its
/// message.
pub fn each_row(
    rows: &mut RowReader,
    source: &RowSource,
    inputs: usize,
    note: &str,
    mut then: impl FnMut(u64, &[f32]) -> Result<()>,
) -> Result<()> {
    let mut row = vec![0.0; inputs];
    for number in 1.. {
        match rows.next_into(&mut row) {
            Ok(true) => then(number, &row)?,
            Ok(false) => break,
            Err(RowError::Bad(bad)) => bail!("{source}: {bad}{note}"),
            Err(RowError::End(error)) => return Err(error.context(source.to_string())),
        }
    }
    Ok(())
}

/// Rows of a file as the model takes them: columns by name where both have names, as `dab score` reads them.
pub fn table(file: &ModelFile, width: usize, source: &str, text: TextFormat) -> Result<Table> {
    let layout = Layout { inputs: width, names: file.input_names(width), text };
    let source = RowSource::new(Path::new(source));
    let mut values = Vec::new();
    each_row(&mut RowReader::open(&source, &layout)?, &source, width, "", |_, row| {
        values.extend_from_slice(row);
        Ok(())
    })?;
    ensure!(!values.is_empty(), "{source} has no rows");
    Ok(Table::new(values.len() / width, width, values)?)
}

/// Refuses an output that is one of the inputs: it would be replaced. An input may name a part of a file (`x.npz:key`).
pub fn check_apart<P: AsRef<Path>>(output: &Path, inputs: impl IntoIterator<Item = P>) -> Result<()> {
    for input in inputs {
        let whole = FilePart::parse(&input.as_ref().to_string_lossy()).path;
        ensure!(
            !is_same(output, &whole),
            "`{}` is an input of this command, which would replace it: give the output another name",
            output.display()
        );
    }
    Ok(())
}

/// False-alarm rates other than the model's.
#[derive(Debug, clap::Args)]
pub struct RateArgs {
    /// Call this share of familiar inputs doubtful or worse, instead of the model's rate
    #[arg(long, value_name = "RATE")]
    doubtful: Option<f32>,

    /// Call this share of familiar inputs unfamiliar, instead of the model's rate
    #[arg(long, value_name = "RATE")]
    unfamiliar: Option<f32>,
}

impl RateArgs {
    /// The model file at the rates that were given.
    pub fn apply(&self, file: ModelFile) -> Result<ModelFile> {
        let own = file.model()?.rates();
        if self.doubtful.or(self.unfamiliar).is_none() {
            return Ok(file);
        }
        let (doubtful, unfamiliar) =
            (self.doubtful.unwrap_or(own.doubtful()), self.unfamiliar.unwrap_or(own.unfamiliar()));
        let rates = Rates::new(doubtful, unfamiliar).ok().with_context(|| {
            format!("--doubtful {doubtful} --unfamiliar {unfamiliar}: use 0 < unfamiliar <= doubtful < 1")
        })?;
        file.at(rates).with_context(|| format!("--doubtful {doubtful} --unfamiliar {unfamiliar}"))
    }
}
