//! A recorded stream as scores, one a tick.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use dab_core::Model;

use crate::{
    cli::place::Place,
    data::rows::{Fault, Layout, RowError, RowReader, RowSource, TextFormat},
    export::model_file::ModelFile,
    support::simd::Widest,
};

/// How streams are read.
#[derive(Debug, clap::Args)]
pub struct StreamArgs {
    /// Assess the rows of the streams, which are then inputs, with this model: its file, or the folder of its run
    #[arg(long, value_name = "MODEL.dab")]
    pub model: Option<PathBuf>,

    /// Without a model: the column of the scores. A model with channels is judged by `unfamiliarity`
    #[arg(long, default_value = "uncertainty", value_name = "NAME", conflicts_with = "model")]
    pub column: String,
}

/// Column of a fault log that is 1 while there is a fault.
const FAULT: &str = "fault";

impl StreamArgs {
    /// The model file, if there is one.
    pub fn model(&self) -> Result<Option<ModelFile>> {
        self.model.as_deref().map(Place::open).transpose()
    }
}

/// Turns files into scores.
pub struct Scores<'a> {
    model: Option<(&'a Model<'a>, Option<Vec<String>>)>,
    column: &'a str,
    scratch: Vec<f32>,
}

impl<'a> Scores<'a> {
    pub fn new(args: &'a StreamArgs, file: Option<&'a ModelFile>, model: Option<&'a Model<'a>>) -> Self {
        let names = |model: &Model<'_>| file.and_then(|file| file.input_names(model.shape().inputs));
        Self {
            model: model.map(|model| (model, names(model))),
            column: &args.column,
            scratch: vec![0.0; model.map_or(0, Model::scratch_len)],
        }
    }

    fn layout(&self, fault: bool) -> Layout {
        let (mut inputs, mut names) = match &self.model {
            Some((model, names)) => (model.shape().inputs, names.clone()),
            None => (1, Some(vec![self.column.to_owned()])),
        };
        if let Some(names) = names.as_mut().filter(|_| fault) {
            names.push(FAULT.into());
            inputs += 1;
        }
        Layout { inputs, names, text: TextFormat::default() }
    }

    fn open(&self, path: &Path, fault: bool) -> Result<RowReader> {
        let opened = RowReader::open(&RowSource::new(path), &self.layout(fault));
        let column = self.column;
        match opened {
            // The reader's words are for the inputs of a model.
            Err(error) if self.model.is_none() && format!("{error:#}").contains("no column is called") => {
                bail!(
                    "{}: no column is called `{column}`: without --model a stream is a CSV file with that column, one row \
                 a tick; --column takes another",
                    RowSource::new(path)
                )
            }
            opened => opened,
        }
    }

    /// Gives every row's score to `each`, NaN for an input that is missing or not finite; and whether there is a fault, if
    /// the file says so.
    fn read(&mut self, path: &Path, fault: bool, mut each: impl FnMut(f32, bool)) -> Result<()> {
        let mut rows = self.open(path, fault)?;
        let width = self.layout(fault).inputs;
        let mut row = vec![0.0; width];
        let isa = Widest::detect();
        let mut any = false;
        loop {
            let score = match rows.next_into(&mut row) {
                Ok(false) => break,
                Ok(true) => match &self.model {
                    None => row[0],
                    Some((model, _)) => {
                        let inputs = model.shape().inputs;
                        let found = model.assess_on(isa, &row[..inputs], &mut self.scratch);
                        found.map(|found| found.score()).unwrap_or(f32::NAN)
                    }
                },
                Err(RowError::Bad(bad)) if matches!(bad.fault, Fault::Missing | Fault::NonFinite(_)) => {
                    f32::NAN
                }
                Err(RowError::Bad(bad)) => return Err(anyhow!("{}: {bad}", RowSource::new(path))),
                Err(RowError::End(error)) => return Err(error.context(RowSource::new(path).to_string())),
            };
            any = true;
            each(score, fault && row.last().is_some_and(|&x| x != 0.0));
        }
        if !any {
            bail!("{} has no rows", RowSource::new(path));
        }
        Ok(())
    }

    /// Rows of a file, without their scores; counts to `enough` and no further.
    pub fn count(&self, path: &Path, enough: u64) -> Result<u64> {
        let mut rows = self.open(path, false)?;
        let mut row = vec![0.0; self.layout(false).inputs];
        let mut found = 0;
        // A row that cannot be read is refused, by its words, where scores are read.
        while found < enough && !matches!(rows.next_into(&mut row), Ok(false) | Err(RowError::End(_))) {
            found += 1;
        }
        Ok(found)
    }

    /// Gives every row's score to `each`.
    pub fn each(&mut self, path: &Path, mut each: impl FnMut(f32)) -> Result<()> {
        self.read(path, false, |score, _| each(score))
    }

    /// All scores of a file.
    pub fn all(&mut self, path: &Path) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        self.each(path, |score| scores.push(score))?;
        Ok(scores)
    }

    /// The scores of a fault log, and the row at which its column `fault` becomes 1; without such a column, the first.
    pub fn fault(&mut self, path: &Path) -> Result<(Vec<f32>, usize)> {
        if path.as_os_str() == "-" || self.open(path, true).is_err() {
            return Ok((self.all(path)?, 0));
        }
        let (mut scores, mut onset) = (Vec::new(), None);
        self.read(path, true, |score, fault| {
            if fault && onset.is_none() {
                onset = Some(scores.len());
            }
            scores.push(score);
        })?;
        Ok((scores, onset.unwrap_or(0)))
    }
}

/// Seconds of a duration such as 1ms, 0.5s, 250us or 2min; a bare number is refused, since its unit would be a guess.
pub fn duration(text: &str) -> Result<f64, String> {
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        // 1 ms is the number that 0.001 reads as.
        let value = if *seconds < 1.0 { number / (1.0f64 / seconds).round() } else { number * seconds };
        (value > 0.0 && value.is_finite()).then_some(value)
    });
    found.ok_or_else(|| "a number above 0 with a unit: us, ms, s, min or h, such as 1ms".into())
}

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("a number above 0".into()),
    }
}
