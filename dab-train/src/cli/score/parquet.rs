//! `dab score` into Parquet: the columns of a Parquet file, as they are, and the scores behind them.
//!
//! ```text
//! one file      row groups → all cores: decode the inputs, score, encode the scores → one writer, in the file's order
//! a folder      one file after the other; a file that was scored before is left alone
//! ```
//!
//! The columns of the file are copied as bytes, neither decoded nor encoded again, so they keep their types, codecs and statistics.
//! A row group of the output is one of the input. In memory are the scores of a few row groups, and of each a page per input.

mod folder;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use dab_core::Model;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter, add_encoded_arrow_schema_to_metadata,
    parquet_to_arrow_schema,
};
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::ChunkReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use rayon::prelude::*;

use self::folder::MADE_OF;
use super::columns::{ColumnScorer, Columns};
use super::{Args, Count};
use crate::data::rows::{
    BadRow, Layout, ParsedRows, RawRows, ReadProgress, RowReader, is_parquet, parquet::ParquetTable,
};
use crate::export::model_file::ModelFile;
use crate::support::{files::AtomicFile, parallel::in_order};

/// Rows that are decoded together: their inputs stay in a core's second cache until they are scored.
const BATCH: usize = 1 << 13;
/// Rows that one core scores together.
const SHARE: usize = 1 << 11;
/// Bytes of a block of rows of another format.
const BLOCK: usize = 1 << 17;
/// Blocks that are under way, for each core.
const BLOCKS: usize = 4;
/// Rows of a row group that is made of rows that had none.
const GROUP: usize = 1 << 18;

/// What all files of a run share.
struct Run<'a> {
    args: &'a Args,
    model: &'a Model<'a>,
    columns: Columns,
    layout: Layout,
    /// The model and the settings, for [`MADE_OF`].
    settings: String,
}

pub fn run(args: &Args, artifact: &ModelFile, model: &Model<'_>, output: &Path) -> Result<()> {
    let (inputs, layout) = (args.input.path(), args.input.layout(artifact, model));
    let outputs = model.shape().outputs;
    let columns = Columns::new(
        model,
        &artifact.output_names(outputs),
        &artifact.class_names(outputs),
        args.prefix.as_deref().unwrap_or_default(),
    );
    let rates = model.rates();
    let settings = serde_json::json!({
        "model": format!("{:08x}", artifact.identity()),
        "doubtful": rates.doubtful(), "unfamiliar": rates.unfamiliar(),
        "probabilities": args.probabilities, "columns": layout.names,
    });
    let run = Run { args, model, columns, layout, settings: settings.to_string() };
    if !inputs.is_dir() {
        return run.file(inputs, output).map(|count| count.tell(&args.input.source().to_string(), "row"));
    }
    run.folder(inputs, output)
}

impl Run<'_> {
    fn file(&self, input: &Path, output: &Path) -> Result<Count> {
        let here = || format!("`{}`", input.display());
        let write_error = || format!("cannot write `{}`", output.display());
        let draft = || AtomicFile::create(output).with_context(write_error);
        if !is_parquet(input) {
            let rows = RowReader::open(&self.args.input.source(), &self.layout)?;
            return self.rows(rows, draft()?).with_context(here);
        }
        let table = ParquetTable::open(input, &self.layout).with_context(here)?;
        let schema = self.schema(table.metadata()).with_context(here)?;
        let properties = self.properties(input, table.metadata())?;
        let mut writer = SerializedFileWriter::new(draft()?, schema, Arc::new(properties))?;
        let count = self.groups(&table, &mut writer).with_context(here)?;
        writer.into_inner().with_context(write_error)?.commit().with_context(write_error)?;
        Ok(count)
    }

    /// The columns of the file, then those of the scores.
    fn schema(&self, metadata: &ParquetMetaData) -> Result<TypePtr> {
        let root = metadata.file_metadata().schema();
        let scores = ArrowSchemaConverter::new().convert(&self.columns.schema)?;
        let mut fields = root.get_fields().to_vec();
        for field in scores.root_schema().get_fields() {
            if fields.iter().any(|known| known.name() == field.name()) {
                let name = field.name();
                bail!(
                    "it has a column `{name}` already: put something before the new names, as in --prefix dab_"
                );
            }
            fields.push(field.clone());
        }
        Ok(Arc::new(Type::group_type_builder(root.name()).with_fields(fields).build()?))
    }

    /// The notes of the file, with what the new columns change in them.
    fn properties(&self, input: &Path, metadata: &ParquetMetaData) -> Result<WriterProperties> {
        let notes = metadata.file_metadata().key_value_metadata();
        let mut own: Vec<KeyValue> = notes.cloned().unwrap_or_default();
        let typed = own.iter().any(|pair| pair.key == ARROW_SCHEMA_META_KEY);
        own.retain(|pair| pair.key != ARROW_SCHEMA_META_KEY && pair.key != MADE_OF);
        own.push(KeyValue::new(MADE_OF.to_owned(), self.made_of(input)?));
        let mut properties = WriterProperties::builder().set_key_value_metadata(Some(own)).build();
        // Arrow's own note lists all columns. Where it cannot be read, the format's types have to do.
        let schema = parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), notes);
        if let (true, Ok(schema)) = (typed, schema) {
            let all = schema.fields().iter().chain(self.columns.schema.fields());
            let all: Vec<Arc<Field>> = all.cloned().collect();
            let all = Schema::new_with_metadata(all, schema.metadata().clone());
            add_encoded_arrow_schema_to_metadata(&all, &mut properties);
        }
        Ok(properties)
    }

    /// All row groups, in parallel, written in their order.
    fn groups(&self, table: &ParquetTable, writer: &mut SerializedFileWriter<AtomicFile>) -> Result<Count> {
        let metadata = table.metadata();
        let (mut firsts, mut total) = (Vec::new(), 0);
        for group in metadata.row_groups() {
            firsts.push(total);
            total += u64::try_from(group.num_rows()).unwrap_or_default();
        }
        let progress = super::progress_bar(true, ReadProgress { done: 0, total: Some(total), bytes: false });
        let (stop, mut count) = (AtomicBool::new(false), Count::default());
        // One more than can be worked on, so that writing does not make anyone wait.
        let window = rayon::current_num_threads() + 1;
        let score = |(group, first)| (group, self.group(table, group, first, &stop));
        let mut write = |(group, scored): (usize, Result<Scored>)| -> Result<()> {
            let scored = scored?;
            // A row group without rows has no scores, and is left out.
            if scored.count.rows > 0 {
                let mut out = writer.next_row_group()?;
                append(table.file(), metadata, group, &mut out)?;
                append(&scored.bytes, &scored.metadata, 0, &mut out)?;
                out.close()?;
            }
            count.add(scored.count, "");
            progress.set_position(count.rows);
            Ok(())
        };
        let give_up = |_: &_| stop.store(true, Ordering::Relaxed);
        in_order(firsts.into_iter().enumerate(), window, score, |scored| write(scored).inspect_err(give_up))?;
        progress.finish_and_clear();
        Ok(count)
    }

    /// The scores of one row group, encoded.
    fn group(&self, table: &ParquetTable, group: usize, first: u64, stop: &AtomicBool) -> Result<Scored> {
        let rows = table.metadata().row_group(group).num_rows();
        let mut scores = self.writer(Vec::new(), None)?;
        let mut count = Count::default();
        for batch in table.batches(vec![group], BATCH)? {
            ensure!(!stop.load(Ordering::Relaxed), "scoring was given up");
            let batch = batch.context("cannot be read: is the file complete?")?;
            let (all, start) = (batch.num_rows(), first + count.rows);
            let scored: Vec<_> = (0..all.div_ceil(SHARE))
                .into_par_iter()
                .map_init(
                    || (self.scorer(), Vec::new()),
                    |(scorer, inputs), share| {
                        let rows = share * SHARE..all.min((share + 1) * SHARE);
                        let bad = table.read(&batch, rows, start, inputs);
                        self.share(scorer, inputs, bad)
                    },
                )
                .collect();
            for share in scored {
                take(share, 0, &mut scores, &mut count)?;
            }
        }
        let found = i64::try_from(count.rows).ok();
        ensure!(found == Some(rows), "row group {group} has {} rows and promises {rows}", count.rows);
        let metadata = scores.finish()?;
        Ok(Scored { bytes: std::mem::take(scores.inner_mut()).into(), metadata, count })
    }

    /// Scores rows that follow one another.
    fn share(
        &self,
        scorer: &mut ColumnScorer<'_>,
        inputs: &[f32],
        bad: Vec<(usize, BadRow)>,
    ) -> Result<Share> {
        let mut marked = Vec::new();
        let mut bad = bad.into_iter().peekable();
        for (at, input) in inputs.chunks(self.layout.inputs).enumerate() {
            match bad.next_if(|(place, _)| *place == at) {
                Some((_, row)) if self.args.skip_bad => {
                    scorer.mark();
                    marked.push(row);
                }
                Some((_, row)) => return Err(row.into()),
                None => scorer.push(input)?,
            }
        }
        Ok(Share { batch: scorer.take()?, bad: marked })
    }

    fn scorer(&self) -> ColumnScorer<'_> {
        ColumnScorer::new(self.model, &self.columns, self.args.probabilities)
    }

    /// A writer of scores alone.
    fn writer<W: std::io::Write + Send>(&self, to: W, group: Option<usize>) -> Result<ArrowWriter<W>> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(group);
        for field in self.columns.schema.fields() {
            // Numbers hardly ever come twice; texts always do.
            let texts = field.data_type() == &arrow_schema::DataType::Utf8;
            let path = ColumnPath::from(field.name().as_str());
            properties = properties.set_column_dictionary_enabled(path, texts);
        }
        // Texts are strings in the file, however they are handed over.
        let options =
            ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        Ok(ArrowWriter::try_new_with_options(to, self.columns.coded(), options)?)
    }

    /// Rows of another format, into scores alone.
    fn rows(&self, mut rows: RowReader, to: AtomicFile) -> Result<Count> {
        let mut writer = self.writer(to, Some(GROUP))?;
        let (parser, mut count, mut end) = (rows.parser(), Count::default(), Ok(false));
        let cut = std::iter::from_fn(|| {
            let mut raw = RawRows::default();
            end = rows.cut(&mut raw, BLOCK);
            matches!(end, Ok(true)).then_some(raw)
        });
        let score = |raw: RawRows| {
            let mut rows = ParsedRows::default();
            parser.parse(&raw, &mut rows);
            self.share(&mut self.scorer(), &rows.inputs, rows.bad)
        };
        in_order(cut, BLOCKS * rayon::current_num_threads(), score, |share| {
            let before = count.rows;
            take(share, before, &mut writer, &mut count)
        })?;
        end?;
        writer.into_inner()?.commit()?;
        Ok(count)
    }
}

/// The scores of some rows.
struct Share {
    batch: RecordBatch,
    /// Those that were marked.
    bad: Vec<BadRow>,
}

/// Writes scores and counts their rows. Bad rows are counted from the row behind `before`.
fn take<W: std::io::Write + Send>(
    share: Result<Share>,
    before: u64,
    writer: &mut ArrowWriter<W>,
    count: &mut Count,
) -> Result<()> {
    let in_file = |row: BadRow| BadRow { row: row.row + before, ..row };
    let share = share.map_err(|error| match error.downcast() {
        Ok(row) => super::refuse(&in_file(row)),
        Err(other) => other,
    })?;
    writer.write(&share.batch)?;
    count.rows += share.batch.num_rows() as u64;
    share.bad.into_iter().for_each(|row| count.bad(&in_file(row)));
    Ok(())
}

/// The scores of a row group, as a file of their own.
struct Scored {
    bytes: Bytes,
    metadata: ParquetMetaData,
    count: Count,
}

/// Appends the columns of a row group to another one, byte by byte.
fn append<R: ChunkReader>(
    source: &R,
    metadata: &ParquetMetaData,
    group: usize,
    out: &mut SerializedRowGroupWriter<'_, AtomicFile>,
) -> Result<()> {
    let rows = metadata.row_group(group);
    let index = metadata.page_index();
    for (at, column) in rows.columns().iter().enumerate() {
        out.append_column(
            source,
            ColumnCloseResult {
                bytes_written: u64::try_from(column.compressed_size())?,
                rows_written: u64::try_from(rows.num_rows())?,
                metadata: column.clone(),
                bloom_filter: Sbbf::read_from_column_chunk(column, source)?,
                column_index: index.and_then(|index| index.column_index(group, at)).cloned(),
                offset_index: index.and_then(|index| index.offset_index(group, at)).cloned(),
            },
        )?;
    }
    Ok(())
}
