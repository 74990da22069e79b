//! Parquet: `dab score` with columns by name, the file's own columns untouched, folders, and files that are damaged; `dab fit` and
//! `dab features`.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray, Float32Array,
    Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt8Array,
};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::light::light;
use crate::weights::Weights;
use crate::{dab, dab_reading, folder, refusal, table, text};

/// Inputs in no order.
fn value(i: usize) -> f32 {
    (i as f32 * 0.7).sin() * 3.0
}

fn floats(values: impl IntoIterator<Item = f32>) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(values))
}

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, group: usize, codec: Compression) {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(group)).set_compression(codec).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// All rows of a file that has some.
fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.with_batch_size(1 << 20).build().unwrap().next().unwrap().unwrap()
}

/// A column as `dab score` writes it into a table.
fn words(batch: &RecordBatch, name: &str) -> Vec<String> {
    let column = batch.column_by_name(name).unwrap();
    let word = |at: usize| match column.data_type() {
        _ if column.is_null(at) => String::new(),
        DataType::Utf8 => column.as_string::<i32>().value(at).to_owned(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(at).to_string(),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(at).to_string(),
        other => panic!("{other}"),
    };
    (0..column.len()).map(word).collect()
}

/// Whether a file's scores are the table that the same rows give as CSV.
fn assert_scores(batch: &RecordBatch, csv: &str) {
    let rows = table(csv);
    assert_eq!(batch.num_rows() + 1, rows.len());
    for (at, name) in rows[0].iter().enumerate() {
        let found = words(batch, name);
        for (found, row) in found.iter().zip(&rows[1..]) {
            let same = found == &row[at] || found.parse::<f32>().ok() == row[at].parse::<f32>().ok();
            assert!(same && found.is_empty() == row[at].is_empty(), "{name}: {found} {}", row[at]);
        }
    }
}

/// A folder with a model of the inputs `speed` and `load`, and 9,000 rows of them in five row groups among other columns.
fn fleet(test: &str) -> (std::path::PathBuf, Vec<(&'static str, ArrayRef)>, String) {
    let folder = folder(test);
    // The band of the torque is 0.5 for each nat.
    let model = Weights::tiny().meta("input_names", "speed,load").meta("output_names", "torque");
    model.meta("output_bands", "3f000000").pack(&folder);
    let rows = 9000;
    let zoned = TimestampMicrosecondArray::from_iter_values((0..rows).map(|i| i as i64))
        .with_timezone("Europe/Berlin");
    let kinds: DictionaryArray<Int32Type> = (0..rows).map(|i| ["pump", "fan"][i % 2]).collect();
    let lists = (0..rows).map(|i| (i % 3 > 0).then(|| vec![Some(i as i32); i % 4]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("load", floats((0..rows).map(|i| value(2 * i + 1)))),
        (
            "machine",
            Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 7 > 0).then(|| format!("m{i}"))))),
        ),
        ("time", Arc::new(zoned)),
        ("kind", Arc::new(kinds)),
        ("speed", floats((0..rows).map(|i| value(2 * i)))),
        ("events", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
    ];
    write(&folder.join("in.parquet"), columns.clone(), 2000, Compression::SNAPPY);
    let csv: String = (0..rows).map(|i| format!("{},{}\n", value(2 * i), value(2 * i + 1))).collect();
    let scores = text(dab_reading(&folder, &["score", "model.dab", "-"], csv.as_bytes()));
    (folder, columns, scores)
}

#[test]
fn parquet_scores_stand_behind_the_files_own_columns() {
    let (folder, columns, scores) = fleet("parquet-columns");
    let said = dab(&folder, &["score", "model.dab", "in.parquet", "-o", "out.parquet"]);
    assert_eq!(text(said), "");
    let found = read(&folder.join("out.parquet"));
    for (name, column) in &columns {
        // Type and values: also the time zone and the categories, which only Arrow's note in the file has.
        assert_eq!(found.column_by_name(name).unwrap(), column, "{name}");
    }
    assert_scores(&found, &scores);
    assert!(scores.lines().next().unwrap().ends_with(",torque,torque_band"), "{scores}");
    let groups =
        ParquetRecordBatchReaderBuilder::try_new(File::open(folder.join("out.parquet")).unwrap()).unwrap();
    assert_eq!(groups.metadata().num_row_groups(), 5);

    // As text, the same; and text into Parquet has the scores alone.
    assert_eq!(text(dab(&folder, &["score", "model.dab", "in.parquet"])), scores);
    std::fs::write(
        folder.join("in.csv"),
        (0..9000).map(|i| format!("{},{}\n", value(2 * i), value(2 * i + 1))).collect::<String>(),
    )
    .unwrap();
    text(dab(&folder, &["score", "model.dab", "in.csv", "-o", "csv.parquet"]));
    let alone = read(&folder.join("csv.parquet"));
    assert_scores(&alone, &scores);
    assert_eq!(alone.num_columns(), table(&scores)[0].len());
}

#[test]
fn parquet_of_every_codec_is_read() {
    let (folder, columns, scores) = fleet("parquet-codecs");
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        write(&folder.join("in.parquet"), columns.clone(), 5000, codec);
        text(dab(&folder, &["score", "model.dab", "in.parquet", "-o", "out.parquet"]));
        assert_scores(&read(&folder.join("out.parquet")), &scores);
    }
}

#[test]
fn parquet_columns_of_every_number_and_of_lists_are_read() {
    let folder = folder("parquet-types");
    Weights::tiny().meta("input_names", "speed,load").pack(&folder);
    let expected = text(dab_reading(&folder, &["score", "model.dab", "-"], b"1,0\n1,1\n"));
    let decimal = Decimal128Array::from(vec![10, 10]).with_precision_and_scale(10, 1).unwrap();
    let speeds: [ArrayRef; 6] = [
        Arc::new(Float64Array::from(vec![1.0, 1.0])),
        Arc::new(Int64Array::from(vec![1, 1])),
        Arc::new(Int32Array::from(vec![1, 1])),
        Arc::new(UInt8Array::from(vec![1, 1])),
        Arc::new(BooleanArray::from(vec![true, true])),
        Arc::new(decimal),
    ];
    let path = folder.join("in.parquet");
    for speed in speeds {
        let kind = speed.data_type().clone();
        write(&path, vec![("speed", speed), ("load", floats([0.0, 1.0]))], 100, Compression::SNAPPY);
        assert_eq!(text(dab(&folder, &["score", "model.dab", "in.parquet"])), expected, "{kind}");
    }
    let rows = [vec![1.0, 0.0], vec![1.0, 1.0]].map(|row| Some(row.into_iter().map(Some)));
    let fixed = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows.clone(), 2);
    let lists: [ArrayRef; 2] =
        [Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows)), Arc::new(fixed)];
    for list in lists {
        write(&path, vec![("id", floats([7.0, 8.0])), ("both", list)], 1, Compression::SNAPPY);
        let score = |columns: &str| dab(&folder, &["score", "model.dab", "in.parquet", "--columns", columns]);
        assert_eq!(text(score("both")), expected);
        assert!(refusal(&score("both,id"), 1).contains("`both` holds lists"));
        assert!(refusal(&score("id"), 1).contains("the model takes 2 values"));
    }
    let time = Arc::new(
        TimestampMicrosecondArray::from(vec![1, 2])
            .with_data_type(DataType::Timestamp(TimeUnit::Microsecond, None)),
    );
    write(&path, vec![("speed", time), ("load", floats([0.0, 1.0]))], 100, Compression::SNAPPY);
    let line = refusal(&dab(&folder, &["score", "model.dab", "in.parquet"]), 1);
    assert!(line.contains("`speed` holds Timestamp") && line.contains("no number"), "{line}");
    write(&path, vec![("speed", floats([0.0]))], 100, Compression::SNAPPY);
    let line = refusal(&dab(&folder, &["score", "model.dab", "in.parquet"]), 1);
    assert!(line.contains("no column is called `load`"), "{line}");
}

#[test]
fn bad_rows_of_parquet_are_named_or_marked() {
    let folder = folder("parquet-bad");
    Weights::tiny().meta("input_names", "speed,load").meta("output_bands", "3f000000").pack(&folder);
    let good = |i: usize| Some(value(i));
    let mut speed: Vec<Option<f32>> = (0..5000).map(good).collect();
    (speed[4100], speed[4999]) = (None, Some(f32::INFINITY));
    let columns: Vec<(&str, ArrayRef)> =
        vec![("load", floats((0..5000).map(value))), ("speed", Arc::new(Float32Array::from(speed)))];
    write(&folder.join("in.parquet"), columns, 1000, Compression::SNAPPY);
    let score = |more: &[&str]| {
        dab(&folder, &[&["score", "model.dab", "in.parquet", "-o", "out.parquet"], more].concat())
    };
    let line = refusal(&score(&[]), 1);
    assert!(
        line.contains("row 4101, column 2 `speed`: the value is missing: correct it, or use --skip-bad"),
        "{line}"
    );
    assert!(!folder.join("out.parquet").exists());
    let marked = score(&["--skip-bad"]);
    assert!(String::from_utf8_lossy(&marked.stderr).contains("marked 2 of 5,000 rows"), "{marked:?}");
    let found = read(&folder.join("out.parquet"));
    for bad in [4100, 4999] {
        assert_eq!(words(&found, "verdict")[bad], "invalid");
        assert!(
            ["uncertainty", "nearest", "output_0", "output_0_band"]
                .map(|name| words(&found, name)[bad].is_empty())
                == [true; 4]
        );
    }
    assert_eq!(words(&found, "verdict").iter().filter(|word| *word == "invalid").count(), 2);
}

#[test]
fn a_folder_of_parquet_is_scored_once_file_by_file() {
    let (folder, columns, scores) = fleet("parquet-folder");
    std::fs::create_dir_all(folder.join("fleet/day=1")).unwrap();
    std::fs::rename(folder.join("in.parquet"), folder.join("fleet/day=1/a.parquet")).unwrap();
    write(&folder.join("fleet/b.parquet"), columns, 9000, Compression::SNAPPY);
    std::fs::write(folder.join("fleet/_SUCCESS"), "").unwrap();
    let score =
        |more: &[&str]| dab(&folder, &[&["score", "model.dab", "fleet", "-o", "scored"], more].concat());
    assert_eq!(text(score(&[])), "2 files, 18,000 rows into scored\n");
    assert_scores(&read(&folder.join("scored/day=1/a.parquet")), &scores);
    assert_scores(&read(&folder.join("scored/b.parquet")), &scores);

    let written = || std::fs::metadata(folder.join("scored/b.parquet")).unwrap().modified().unwrap();
    let first = written();
    std::fs::remove_file(folder.join("scored/day=1/a.parquet")).unwrap();
    assert_eq!(text(score(&[])), "1 file, 9,000 rows into scored; 1 were scored before\n");
    assert_eq!(written(), first);
    // Other settings are other scores.
    assert!(text(score(&["--unfamiliar", "0.3", "--doubtful", "0.4"])).starts_with("2 files, 18,000 rows"));

    write(&folder.join("scored/b.parquet"), vec![("mine", floats([1.0]))], 9, Compression::SNAPPY);
    assert!(refusal(&score(&[]), 1).contains("dab score did not write it"));
    let inside = dab(&folder, &["score", "model.dab", "fleet", "-o", "fleet/scored"]);
    assert!(refusal(&inside, 1).contains("is inside"));
    std::fs::remove_file(folder.join("scored/b.parquet")).unwrap();
    let already = dab(&folder, &["score", "model.dab", "scored", "-o", "again"]);
    assert!(refusal(&already, 1).contains("a column `uncertainty` already"), "{already:?}");
    text(dab(&folder, &["score", "model.dab", "scored", "-o", "again", "--prefix", "new_"]));
    let again = read(&folder.join("again/day=1/a.parquet"));
    assert_eq!(words(&again, "new_uncertainty"), words(&again, "uncertainty"));
}

#[test]
fn damaged_parquet_is_refused_in_one_line() {
    let (folder, ..) = fleet("parquet-damaged");
    let whole = std::fs::read(folder.join("in.parquet")).unwrap();
    let score = |bytes: &[u8]| {
        std::fs::write(folder.join("bad.parquet"), bytes).unwrap();
        dab(&folder, &["score", "model.dab", "bad.parquet", "-o", "out.parquet"])
    };
    for keep in [4, 8, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let line = refusal(&score(&whole[..keep]), 1);
        assert!(line.contains("bad.parquet"), "{line}");
    }
    // One bit at a time, in pages and in the footer: an answer, or one line.
    for step in 0..60 {
        let mut bytes = whole.clone();
        let at = if step % 2 == 0 { step * whole.len() / 60 } else { whole.len() - 9 - step * 37 };
        bytes[at] ^= 1 << (step % 8);
        let output = score(&bytes);
        if !output.status.success() {
            refusal(&output, 1);
        }
    }
    assert!(
        std::fs::read_dir(&folder).unwrap().all(|f| !f
            .unwrap()
            .file_name()
            .to_string_lossy()
            .ends_with(".part"))
    );
}

#[test]
fn dab_fit_learns_the_same_from_parquet_as_from_text() {
    let folder = folder("parquet-fit");
    let rows = 400;
    let label = |i: usize| ["pump", "fan"][i % 2];
    let speed = |i: usize| value(2 * i) + (i % 2) as f32 * 9.0;
    let load = |i: usize| value(2 * i + 1);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("speed", floats((0..rows).map(speed))),
        ("kind", Arc::new(StringArray::from_iter_values((0..rows).map(label)))),
        ("load", floats((0..rows).map(load))),
    ];
    write(&folder.join("in.parquet"), columns, 100, Compression::SNAPPY);
    let line = |i: usize| format!("{},{},{}\n", speed(i), label(i), load(i));
    let csv: String = std::iter::once("speed,kind,load\n".to_owned()).chain((0..rows).map(line)).collect();
    std::fs::write(folder.join("in.csv"), csv).unwrap();
    for file in ["in.csv", "in.parquet"] {
        let labels = format!("{file}:kind");
        let out = format!("{file}-out");
        let args = ["fit", "--features", file, "--labels", &labels, "--out", &out, "--quiet"];
        text(dab(&folder, &args));
    }
    // A row is named after its file.
    let scores = |out: &str| {
        let scores = std::fs::read_to_string(folder.join(out).join("scores.csv")).unwrap();
        scores.replace("in.parquet:", "in.csv:")
    };
    assert_eq!(scores("in.csv-out"), scores("in.parquet-out"));
    let unknown = dab(&folder, &["fit", "--features", "in.parquet", "--labels", "in.parquet", "--out", "x"]);
    assert!(refusal(&unknown, 1).contains("file.parquet:label"), "{unknown:?}");
}

#[test]
fn features_in_parquet_are_those_in_npz() {
    let folder = folder("parquet-features");
    light(&folder, 2);
    let say = |words: &str| dab(&folder, &words.split(' ').collect::<Vec<_>>());
    text(say("train light.toml --no-baselines --quiet --out run"));
    let source = format!("{}:test", folder.display());
    for file in ["f.npz", "f.parquet"] {
        let said = text(say(&format!("features {source} --run run -o {file}")));
        assert_eq!(said, format!("{file} (features, names, labels): 40 rows of 64 features\n"));
    }
    let found = read(&folder.join("f.parquet"));
    let columns: Vec<String> = found
        .schema()
        .fields()
        .iter()
        .map(|field| format!("{} {}", field.name(), field.data_type()))
        .collect();
    assert_eq!(columns[0], "names Utf8");
    assert!(columns[2].starts_with("features FixedSizeList(64"), "{columns:?}");
    assert_eq!(words(&found, "names")[39], format!("{source}:40"));
    let scores = text(say("score run f.npz:features"));
    assert_eq!(text(say("score run f.parquet --columns features")), scores);
    assert_eq!(scores.lines().count(), 41);
    // What `dab fit` learns from either file is the same.
    for (file, out) in [("f.npz", "from-npz"), ("f.parquet", "from-parquet")] {
        let fit =
            format!("fit --features {file}:features --labels {file}:labels --fast --no-baselines --quiet");
        text(say(&format!("{fit} --out {out}")));
    }
    let scores = |out: &str| {
        let scores = std::fs::read_to_string(folder.join(out).join("scores.csv")).unwrap();
        scores.replace("f.parquet", "f.npz")
    };
    assert_eq!(scores("from-parquet"), scores("from-npz"));
}
