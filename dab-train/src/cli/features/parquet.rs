//! Features as a Parquet file: columns `names` and `labels`, and `features`, a list of f32 per picture.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::each_chunk;
use crate::{
    cli::pictures::Eye,
    data::{files::Labels, images::ImageSet},
};

/// Numbers of a row group, 64 MB: so much is kept in memory until it is written.
const GROUP: usize = 1 << 24;

/// A Parquet file of all features; `labels` has one entry for each picture.
pub fn write(eye: &Eye, sets: &[ImageSet], labels: Option<&Labels>, out: impl Write + Send) -> Result<()> {
    let (width, length) = (eye.features(), i32::try_from(eye.features())?);
    let item = Arc::new(Field::new("element", DataType::Float32, false));
    let kind = labels.map(|labels| match labels {
        Labels::Words(_) => DataType::Utf8,
        Labels::Numbers(_) => DataType::Int64,
    });
    let mut fields = vec![Field::new("names", DataType::Utf8, false)];
    fields.extend(kind.map(|kind| Field::new("labels", kind, false)));
    fields.push(Field::new("features", DataType::FixedSizeList(item.clone(), length), false));
    let schema = Arc::new(Schema::new(fields));
    // Features and names hardly ever come twice, labels always do.
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some((GROUP / width.max(1)).max(1)))
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(ColumnPath::from("labels"), true);
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties.build()))?;
    let mut before = 0;
    each_chunk(eye, sets, |set, indices, features| {
        let rows = before..before + indices.len();
        before = rows.end;
        let names = indices.iter().map(|&index| set.name(index));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(names))];
        columns.extend(labels.map(|labels| -> ArrayRef {
            match labels {
                Labels::Words(words) => Arc::new(StringArray::from_iter_values(&words[rows])),
                Labels::Numbers(numbers) => Arc::new(Int64Array::from(numbers[rows].to_vec())),
            }
        }));
        let values = Arc::new(Float32Array::from(features.to_vec()));
        columns.push(Arc::new(FixedSizeListArray::try_new(item.clone(), length, values, None)?));
        Ok(writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?)
    })?;
    writer.close()?;
    Ok(())
}
