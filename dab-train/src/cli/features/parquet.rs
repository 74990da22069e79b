//! Features as a Parquet file: columns `names` and `labels`, and `features`, a list of f32 per picture.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use crate::data::files::Labels;

/// Numbers of a row group, 64 MB: so much is kept in memory until it is written.
const GROUP: usize = 1 << 24;

/// A Parquet file in the making.
pub struct FeatureWriter<'a, W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: SchemaRef,
    width: usize,
    labels: Option<&'a Labels>,
    /// Rows that were written.
    rows: usize,
}

impl<'a, W: Write + Send> FeatureWriter<'a, W> {
    /// Starts a file of rows with `width` features each; `labels` has one entry for each row that will come.
    pub fn new(to: W, width: usize, labels: Option<&'a Labels>) -> Result<Self> {
        let length = i32::try_from(width)?;
        let item = Arc::new(Field::new("element", DataType::Float32, false));
        let mut fields = vec![Field::new("names", DataType::Utf8, false)];
        fields.extend(labels.map(|labels| {
            let kind = match labels {
                Labels::Words(_) => DataType::Utf8,
                Labels::Numbers(_) => DataType::Int64,
            };
            Field::new("labels", kind, false)
        }));
        fields.push(Field::new("features", DataType::FixedSizeList(item, length), false));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        // Features and names hardly ever come twice, labels always do.
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some((GROUP / width.max(1)).max(1)))
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled(ColumnPath::from("labels"), true);
        let writer = ArrowWriter::try_new(to, schema.clone(), Some(properties.build()))?;
        Ok(Self { writer, schema, width, labels, rows: 0 })
    }

    /// Appends one row for each name: `features` has their numbers, row by row.
    pub fn write(&mut self, names: &[String], features: &[f32]) -> Result<()> {
        let rows = self.rows..self.rows + names.len();
        self.rows = rows.end;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(names))];
        columns.extend(self.labels.map(|labels| -> ArrayRef {
            match labels {
                Labels::Words(words) => Arc::new(StringArray::from_iter_values(&words[rows])),
                Labels::Numbers(numbers) => {
                    Arc::new(Int64Array::from_iter_values(numbers[rows].iter().copied()))
                }
            }
        }));
        let item = Arc::new(Field::new("element", DataType::Float32, false));
        let values = Arc::new(Float32Array::from(features.to_vec()));
        columns.push(Arc::new(FixedSizeListArray::try_new(item, i32::try_from(self.width)?, values, None)?));
        Ok(self.writer.write(&RecordBatch::try_new(self.schema.clone(), columns)?)?)
    }

    pub fn finish(self) -> Result<()> {
        self.writer.close()?;
        Ok(())
    }
}
