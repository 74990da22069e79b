//! What a model says about rows, as the columns of an Arrow table: the same as the lines of the CSV.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float32Array, Int32Array, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use dab_core::band::half_width;
use dab_core::layers::softmax;
use dab_core::{Assessment, InputError, Model, Verdict};

use super::{CHANNELS, FIXED, INVALID};
use crate::{export::band, support::simd::Widest};

/// The verdicts, and what takes their place in a row that cannot be read.
const VERDICTS: [&str; 5] = [
    Verdict::Familiar.name(),
    Verdict::Ambiguous.name(),
    Verdict::Doubtful.name(),
    Verdict::Unfamiliar.name(),
    INVALID,
];

/// Which columns a model has.
pub struct Columns {
    /// Their names and types.
    pub schema: SchemaRef,
    /// The same, with texts as they are handed to the writer: each once, and which one it is for each row.
    coded: SchemaRef,
    channels: bool,
    /// The widths of the bands, where the model has any.
    bands: Vec<f32>,
    verdicts: ArrayRef,
    classes: ArrayRef,
}

impl Columns {
    /// The columns of a model, with `prefix` before their names.
    pub fn new(model: &Model<'_>, outputs: &[String], classes: &[String], prefix: &str) -> Self {
        let channels = model.channels_meta().is_some();
        let coded = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        let more = if channels { &CHANNELS[..] } else { &[] };
        let fixed = FIXED.iter().chain(more).map(|&name| {
            let kind = match name {
                "verdict" | "class" | "runner_up" => DataType::Utf8,
                "nearest" => DataType::Int32,
                _ => DataType::Float32,
            };
            (name, kind)
        });
        let bands = band::widths(model);
        let halves = bands.as_ref().map(|_| band::columns(outputs)).unwrap_or_default();
        let predicted = outputs.iter().chain(&halves).map(|name| (name.as_str(), DataType::Float32));
        let all = fixed.chain(predicted);
        let fields: Vec<Field> =
            all.map(|(name, kind)| Field::new(format!("{prefix}{name}"), kind, true)).collect();
        let texts = fields.iter().map(|field| match field.data_type() {
            DataType::Utf8 => field.clone().with_data_type(coded.clone()),
            _ => field.clone(),
        });
        Self {
            coded: Arc::new(Schema::new(texts.collect::<Vec<_>>())),
            schema: Arc::new(Schema::new(fields)),
            channels,
            bands: bands.unwrap_or_default(),
            verdicts: Arc::new(StringArray::from_iter_values(VERDICTS)),
            classes: Arc::new(StringArray::from_iter_values(classes)),
        }
    }

    /// Types as they are handed to the writer.
    pub fn coded(&self) -> SchemaRef {
        self.coded.clone()
    }
}

/// One row after another through the model, into columns. NaN, and −1 among whole numbers, stand for what is absent: no model
/// gives either.
pub struct ColumnScorer<'a> {
    model: &'a Model<'a>,
    columns: &'a Columns,
    isa: Widest,
    probabilities: bool,
    scratch: Vec<f32>,
    outputs: Vec<f32>,
    /// Uncertainty, its p-value, unfamiliarity, ambiguity and its p-value.
    scores: [Vec<f32>; 5],
    /// Verdict, nearest code, the likeliest class and the next.
    whole: [Vec<i32>; 4],
    /// One list for each output.
    predicted: Vec<Vec<f32>>,
    /// One list for each band.
    halves: Vec<Vec<f32>>,
}

impl<'a> ColumnScorer<'a> {
    pub fn new(model: &'a Model<'a>, columns: &'a Columns, probabilities: bool) -> Self {
        let outputs = model.shape().outputs;
        Self {
            model,
            columns,
            isa: Widest::detect(),
            probabilities,
            scratch: vec![0.0; model.scratch_len()],
            outputs: vec![0.0; outputs],
            scores: Default::default(),
            whole: Default::default(),
            predicted: vec![Vec::new(); outputs],
            halves: vec![Vec::new(); columns.bands.len()],
        }
    }

    /// Takes in a row.
    pub fn push(&mut self, input: &[f32]) -> Result<(), InputError> {
        let found = self.model.predict_on(self.isa, input, &mut self.outputs, &mut self.scratch)?;
        if self.probabilities {
            softmax(&mut self.outputs);
        }
        let place = |verdict| match verdict {
            Verdict::Familiar => 0,
            Verdict::Ambiguous => 1,
            Verdict::Doubtful => 2,
            _ => 3,
        };
        self.put(Some(&found), found.verdict.map_or(-1, place));
        Ok(())
    }

    /// Takes in a row that cannot be read.
    pub fn mark(&mut self) {
        self.outputs.fill(f32::NAN);
        self.put(None, VERDICTS.len() as i32 - 1);
    }

    // Number by number: lists of options, one for each row, take longer than what is put into them.
    fn put(&mut self, found: Option<&Assessment>, verdict: i32) {
        let [uncertainty, p_value, unfamiliarity, ambiguity, ambiguity_p] = &mut self.scores;
        let [verdicts, nearest, class, runner_up] = &mut self.whole;
        let score = |score: Option<f32>| score.unwrap_or(f32::NAN);
        uncertainty.push(score(found.map(|found| found.uncertainty)));
        p_value.push(score(found.and_then(|found| found.p_value)));
        verdicts.push(verdict);
        nearest.push(whole(found.map(|found| found.nearest)));
        if self.columns.channels {
            unfamiliarity.push(score(found.and_then(|found| found.unfamiliarity)));
            ambiguity.push(score(found.and_then(|found| found.ambiguity)));
            ambiguity_p.push(score(found.and_then(|found| found.ambiguity_p)));
            class.push(whole(found.and_then(|found| found.class)));
            runner_up.push(whole(found.and_then(|found| found.runner_up)));
        }
        self.predicted.iter_mut().zip(&self.outputs).for_each(|(column, &output)| column.push(output));
        for (column, &width) in self.halves.iter_mut().zip(&self.columns.bands) {
            column.push(score(found.map(|found| half_width(width, found.uncertainty))));
        }
    }

    /// The rows so far; there are none afterwards.
    pub fn take(&mut self) -> Result<RecordBatch> {
        let [uncertainty, p_value, channels @ ..] = self.scores.each_mut().map(floats);
        let [verdict, nearest, classes @ ..] = self.whole.each_mut().map(integers);
        let mut arrays =
            vec![uncertainty, p_value, texts(verdict, &self.columns.verdicts)?, Arc::new(nearest)];
        let classes = classes.map(|class| texts(class, &self.columns.classes));
        if self.columns.channels {
            arrays.extend(channels);
            arrays.extend(classes.into_iter().collect::<Result<Vec<_>>>()?);
        }
        arrays.extend(self.predicted.iter_mut().chain(&mut self.halves).map(floats));
        Ok(RecordBatch::try_new(self.columns.coded(), arrays)?)
    }
}

/// A number for a column; no model has as many codes or classes as i32 cannot count.
fn whole(number: Option<usize>) -> i32 {
    number.and_then(|number| i32::try_from(number).ok()).unwrap_or(-1)
}

/// Which of the values are there; nothing if all are.
fn present<T: Copy>(values: &[T], there: impl Fn(T) -> bool) -> Option<NullBuffer> {
    if values.iter().all(|&value| there(value)) {
        return None;
    }
    Some(values.iter().map(|&value| there(value)).collect())
}

fn floats(values: &mut Vec<f32>) -> ArrayRef {
    let nulls = present(values, |value| !value.is_nan());
    Arc::new(Float32Array::new(std::mem::take(values).into(), nulls))
}

fn integers(values: &mut Vec<i32>) -> Int32Array {
    let nulls = present(values, |value| value >= 0);
    Int32Array::new(std::mem::take(values).into(), nulls)
}

fn texts(places: Int32Array, words: &ArrayRef) -> Result<ArrayRef> {
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(places, words.clone())?))
}
