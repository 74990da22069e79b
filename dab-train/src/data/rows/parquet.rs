//! Rows from a Parquet file: the model's inputs by name, from columns of numbers or from one column of lists of them.
//!
//! file → [`ParquetTable`] (which columns) → batches of some row groups → rows of f32. Only the columns that hold inputs are read.
//! A value that is absent, or no finite 32-bit number, makes its row a [`BadRow`].

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};

use super::{
    BadRow, Blocks, Fault, Layout, Parse, ParsedRows, RawRows, ReadProgress, TextFormat, csv::choose,
    placed::PlacedFile,
};

/// Rows that the stream of rows decodes at a time: few enough for the processor's caches.
const BATCH: usize = 8192;
/// Rows that are turned from columns into rows together, so that they stay in the fastest cache.
const TILE: usize = 64;

/// Where the inputs of the model are in a batch.
enum Place {
    /// One column for each, by its place among the columns that are read.
    Columns(Vec<usize>),
    /// All in the lists of the only column that is read.
    List,
}

/// A Parquet file, and which of its columns are inputs.
pub struct ParquetTable {
    file: PlacedFile,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    place: Place,
    /// For messages: where each input is in the file, and what the column is called.
    columns: Vec<(usize, String)>,
    width: usize,
}

impl ParquetTable {
    /// Opens a file and finds the inputs in it.
    pub fn open(path: &Path, layout: &Layout) -> Result<Self> {
        let metadata = open(path)?;
        let fields = metadata.schema().fields();
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let width = layout.inputs;
        let list = match &layout.names {
            Some(wanted) if wanted.len() == 1 && width != 1 => Some(wanted),
            _ => None,
        };
        let chosen = match list {
            Some(wanted) => {
                choose(&names, &Layout { inputs: 1, names: Some(wanted.clone()), ..layout.clone() })?
            }
            None => choose(&names, layout)?,
        };
        let chosen = chosen.unwrap_or_else(|| (0..names.len()).collect());
        for &column in &chosen {
            let (found, name) = (fields[column].data_type(), &names[column]);
            match (list, inner(found)) {
                (None, None) if is_number(found) => {}
                (Some(_), Some(inner)) if is_number(inner) => {}
                (None, Some(inner)) if is_number(inner) => {
                    bail!(
                        "column `{name}` holds lists: name it alone, --columns {name}, if they are the inputs"
                    )
                }
                (Some(_), None) if is_number(found) => {
                    bail!(
                        "--columns names 1 column, the model takes {width} values: name one for each of them"
                    )
                }
                _ => bail!("column `{name}` holds {found}, which is no number: convert it, or leave it out"),
            }
        }
        let mut read = chosen.clone();
        read.sort_unstable();
        // `choose` refuses a name twice, so that each column is read for one input.
        let place = |column: &usize| read.binary_search(column).unwrap_or_default();
        let place = match list {
            Some(_) => Place::List,
            None => Place::Columns(chosen.iter().map(place).collect()),
        };
        let mask = ProjectionMask::roots(metadata.parquet_schema(), chosen.iter().copied());
        let columns = chosen.iter().map(|&column| (column, names[column].clone())).collect();
        Ok(Self { file: PlacedFile::open(path)?, metadata, mask, place, columns, width })
    }

    /// What the file says about itself.
    pub fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// The file itself.
    pub fn file(&self) -> &PlacedFile {
        &self.file
    }

    /// The inputs of some row groups, at most `rows` at a time.
    pub fn batches(&self, groups: Vec<usize>, rows: usize) -> Result<ParquetRecordBatchReader> {
        let (file, metadata) = (self.file.clone(), self.metadata.clone());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        Ok(builder
            .with_projection(self.mask.clone())
            .with_row_groups(groups)
            .with_batch_size(rows)
            .build()?)
    }

    /// Some rows of a batch, one behind the other in `inputs`; returns which of them are bad. `first` is the number of the
    /// batch's first row in the file.
    pub fn read(
        &self,
        batch: &RecordBatch,
        rows: Range<usize>,
        first: u64,
        inputs: &mut Vec<f32>,
    ) -> Vec<(usize, BadRow)> {
        inputs.clear();
        inputs.resize(rows.len() * self.width, 0.0);
        match &self.place {
            Place::Columns(columns) => {
                for (tile, out) in inputs.chunks_mut(TILE * self.width).enumerate() {
                    let start = rows.start + tile * TILE;
                    for (input, &column) in columns.iter().enumerate() {
                        fill(batch.column(column), start, &mut out[input..], self.width);
                    }
                }
            }
            Place::List => {
                for (row, out) in rows.clone().zip(inputs.chunks_mut(self.width)) {
                    match list(batch.column(0), row).filter(|values| values.len() == self.width) {
                        Some(values) => fill(&values, 0, out, 1),
                        None => out.fill(f32::NAN),
                    }
                }
            }
        }
        if inputs.iter().all(|value| value.is_finite()) {
            return Vec::new();
        }
        let bad = |(at, row): (usize, &[f32])| {
            let input = row.iter().position(|value| !value.is_finite())?;
            let row = first + (rows.start + at) as u64 + 1;
            Some((at, self.bad_row(batch, rows.start + at, input, row)))
        };
        inputs.chunks(self.width).enumerate().filter_map(bad).collect()
    }

    /// What is wrong with an input of a row.
    fn bad_row(&self, batch: &RecordBatch, at: usize, input: usize, row: u64) -> BadRow {
        let (values, at, (column, name)) = match &self.place {
            Place::Columns(columns) => (Some(batch.column(columns[input]).clone()), at, &self.columns[input]),
            Place::List => (list(batch.column(0), at), input, &self.columns[0]),
        };
        let fault = match values {
            None => Fault::Missing,
            Some(values) if matches!(self.place, Place::List) && values.len() != self.width => {
                Fault::Width { expected: self.width, found: values.len(), delimiter: None }
            }
            Some(values) if values.is_null(at) => Fault::Missing,
            Some(values) => Fault::NonFinite(wide(&values, at)),
        };
        BadRow { row, line: None, column: Some(column + 1), name: Some(name.clone()), fault }
    }
}

/// What a list holds.
fn inner(found: &DataType) -> Option<&DataType> {
    match found {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type())
        }
        _ => None,
    }
}

/// Whether [`fill`] knows the type.
fn is_number(found: &DataType) -> bool {
    use DataType::{Boolean, Decimal32, Decimal64, Decimal128};
    found.is_integer()
        || found.is_floating()
        || matches!(found, Boolean | Decimal32(..) | Decimal64(..) | Decimal128(..))
}

/// The values of one list, if it is there.
fn list(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::LargeList(_) => array.as_list::<i64>().value(row),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().value(row),
        _ => array.as_list::<i32>().value(row),
    })
}

/// A value that is no finite f32, as it is in the file.
fn wide(array: &ArrayRef, at: usize) -> String {
    match array.data_type() {
        DataType::Float64 => array.as_primitive::<Float64Type>().value(at).to_string(),
        _ => {
            let mut one = [0.0];
            fill(array, at, &mut one, 1);
            one[0].to_string()
        }
    }
}

/// Values from `start` on into every `stride`-th place of `out`, until either ends. What is absent becomes NaN.
fn fill(array: &ArrayRef, start: usize, out: &mut [f32], stride: usize) {
    fn put<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        start: usize,
        out: &mut [f32],
        stride: usize,
        number: impl Fn(T::Native) -> f32,
    ) {
        let array = array.as_primitive::<T>();
        let values = array.values().get(start..).unwrap_or_default();
        for (to, &value) in out.iter_mut().step_by(stride).zip(values) {
            *to = number(value);
        }
        if array.null_count() > 0 {
            for (at, to) in (start..array.len()).zip(out.iter_mut().step_by(stride)) {
                if array.is_null(at) {
                    *to = f32::NAN;
                }
            }
        }
    }
    // Whole numbers and decimals are rounded once, from f64.
    let scaled = |scale: i8| 10f64.powi(-i32::from(scale));
    match *array.data_type() {
        DataType::Float32 => put::<Float32Type>(array, start, out, stride, |x| x),
        DataType::Float64 => put::<Float64Type>(array, start, out, stride, |x| x as f32),
        DataType::Float16 => put::<Float16Type>(array, start, out, stride, f32::from),
        DataType::Int8 => put::<Int8Type>(array, start, out, stride, f32::from),
        DataType::Int16 => put::<Int16Type>(array, start, out, stride, f32::from),
        DataType::Int32 => put::<Int32Type>(array, start, out, stride, |x| x as f32),
        DataType::Int64 => put::<Int64Type>(array, start, out, stride, |x| x as f32),
        DataType::UInt8 => put::<UInt8Type>(array, start, out, stride, f32::from),
        DataType::UInt16 => put::<UInt16Type>(array, start, out, stride, f32::from),
        DataType::UInt32 => put::<UInt32Type>(array, start, out, stride, |x| x as f32),
        DataType::UInt64 => put::<UInt64Type>(array, start, out, stride, |x| x as f32),
        DataType::Decimal32(_, scale) => {
            put::<Decimal32Type>(array, start, out, stride, |x| (f64::from(x) * scaled(scale)) as f32);
        }
        DataType::Decimal64(_, scale) => {
            put::<Decimal64Type>(array, start, out, stride, |x| (x as f64 * scaled(scale)) as f32);
        }
        DataType::Decimal128(_, scale) => {
            put::<Decimal128Type>(array, start, out, stride, |x| (x as f64 * scaled(scale)) as f32);
        }
        DataType::Boolean => {
            let array = array.as_boolean();
            for (at, to) in (start..array.len()).zip(out.iter_mut().step_by(stride)) {
                *to = if array.is_null(at) { f32::NAN } else { f32::from(u8::from(array.value(at))) };
            }
        }
        // `is_number` lets nothing else through.
        _ => out.iter_mut().step_by(stride).for_each(|to| *to = f32::NAN),
    }
}

impl Parse for ParquetTable {
    fn add(&self, raw: &RawRows, rows: &mut ParsedRows) {
        if let Some(batch) = &raw.batch {
            rows.count = batch.num_rows();
            rows.bad = self.read(batch, 0..rows.count, 0, &mut rows.inputs);
        }
    }
}

/// A stream of the rows of a file.
struct ParquetRows {
    table: Arc<ParquetTable>,
    batches: ParquetRecordBatchReader,
    /// Rows so far, and of how many.
    row: u64,
    total: u64,
}

impl ParquetRows {
    fn new(path: &Path, layout: &Layout) -> Result<Self> {
        let table = ParquetTable::open(path, layout)?;
        let groups = (0..table.metadata().num_row_groups()).collect();
        let batches = table.batches(groups, BATCH)?;
        let total = u64::try_from(table.metadata().file_metadata().num_rows()).unwrap_or_default();
        Ok(Self { table: Arc::new(table), batches, row: 0, total })
    }
}

pub(super) fn blocks(path: &Path, layout: &Layout) -> Result<Box<dyn Blocks>> {
    Ok(Box::new(ParquetRows::new(path, layout)?))
}

impl Blocks for ParquetRows {
    fn parser(&self) -> Arc<dyn Parse> {
        self.table.clone()
    }

    /// A batch, however many bytes it has.
    fn cut(&mut self, raw: &mut RawRows, _: usize) -> Result<bool> {
        let batch = self.batches.next().transpose().context("cannot read on: is the file complete?")?;
        self.row += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        raw.batch = batch;
        Ok(raw.batch.is_some())
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress { done: self.row, total: Some(self.total), bytes: false }
    }
}

/// What every reader of this file starts with.
fn open(path: &Path) -> Result<ArrowReaderMetadata> {
    // Types as the format has them; what a writer noted about its own types (categories, durations) does not matter here.
    let options = ArrowReaderOptions::new()
        .with_skip_arrow_metadata(true)
        .with_page_index_policy(PageIndexPolicy::Optional);
    ArrowReaderMetadata::load(&File::open(path)?, options)
        .context("this Parquet file cannot be read: is it complete?")
}

/// The names of a file's columns.
pub(crate) fn columns(path: &Path) -> Result<Vec<String>> {
    Ok(open(path)?.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// All numbers of a file, row by row, or those of one column, with the columns' names and their number; a column of lists is as
/// wide as its first list. `without` leaves columns out.
pub(crate) fn table(
    path: &Path,
    part: Option<&str>,
    without: &[&str],
) -> Result<(Vec<f32>, Vec<String>, usize)> {
    let metadata = open(path)?;
    let all = metadata.schema().fields().iter().map(|field| field.name().clone());
    let names: Vec<String> = match part {
        Some(part) => vec![part.to_owned()],
        None => all.filter(|name| !without.contains(&name.as_str())).collect(),
    };
    let mut inputs = names.len();
    if let [name] = names.as_slice()
        && let Some((at, field)) = metadata.schema().fields().find(name)
        && inner(field.data_type()).is_some()
    {
        let mask = ProjectionMask::roots(metadata.parquet_schema(), [at]);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(File::open(path)?, metadata.clone());
        let first = builder.with_projection(mask).with_batch_size(1).build()?.next().transpose()?;
        inputs = first.and_then(|row| list(row.column(0), 0)).map_or(0, |values| values.len());
        if inputs == 0 {
            bail!("column `{name}` begins with an empty list");
        }
    }
    let layout = Layout { inputs, names: Some(names.clone()), text: TextFormat::default() };
    let rows = ParquetRows::new(path, &layout)?;
    let (mut values, mut some, mut before) = (Vec::new(), Vec::new(), 0);
    for batch in rows.batches {
        let batch = batch.context("cannot read on: is the file complete?")?;
        let bad = rows.table.read(&batch, 0..batch.num_rows(), before, &mut some);
        if let Some((_, bad)) = bad.into_iter().next() {
            return Err(bad.into());
        }
        values.append(&mut some);
        before += batch.num_rows() as u64;
    }
    let names = if names.len() == inputs { names } else { Vec::new() };
    Ok((values, names, inputs))
}

/// A column of texts or whole numbers, as text.
pub(crate) fn words(path: &Path, part: Option<&str>) -> Result<Vec<String>> {
    let metadata = open(path)?;
    let fields = metadata.schema().fields();
    let at = match part {
        Some(part) => fields.iter().position(|field| field.name() == part),
        None => (fields.len() == 1).then_some(0),
    };
    let Some(at) = at else {
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        bail!("say which column holds the labels, as in file.parquet:label; there are {}", names.join(", "));
    };
    let found = fields[at].data_type().clone();
    let name = fields[at].name().clone();
    let mask = ProjectionMask::roots(metadata.parquet_schema(), [at]);
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(File::open(path)?, metadata);
    let mut words = Vec::new();
    for batch in builder.with_projection(mask).with_batch_size(BATCH).build()? {
        let batch = batch.context("cannot read on: is the file complete?")?;
        let column = batch.column(0);
        for row in 0..column.len() {
            if column.is_null(row) {
                bail!("row {}, column `{name}`: the label is missing", words.len() + 1);
            }
            words.push(match found {
                DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
                DataType::LargeUtf8 => column.as_string::<i64>().value(row).to_owned(),
                DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
                DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
                _ if is_number(&found) => wide(column, row),
                _ => bail!("column `{name}` holds {found}: labels are texts or whole numbers"),
            });
        }
    }
    Ok(words)
}
