//! How fast `dab score` is beside the model alone:
//!
//! ```text
//! cargo bench --profile release -p dab-train --features parquet --bench scoring -- [--rows N] [--folder FOLDER] [--keep]
//! ```
//!
//! Makes rows of 26 inputs in Parquet, NumPy and CSV; Parquet as the engines that people have write such rows by default
//! ([`WRITERS`]). Two models score them: one that `dab fit` makes of such rows with its defaults, and the small network of
//! `examples/motor/model.dab`, beside which reading and writing weigh most. For each the rows are assessed in memory on all cores;
//! then the command runs. The tables have rows per second, their share of assess alone, the same share by processor time (for a
//! machine that has other work) and by the program's own part of that, without what the system spends on reading and writing files,
//! and the most memory that the command had. Each command runs twice, and the second run counts. With `--rows` below ten million,
//! CSV and NumPy have as many; else a tenth.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use dab_core::artifact::AlignedBytes;
use dab_train::internals::support::simd::Widest;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Inputs of the models.
const INPUTS: usize = 26;
/// Rows that `dab fit` has, and their classes.
const FITTED: usize = 10_000;
const CLASSES: usize = 4;
/// Rows that are made together.
const BLOCK: usize = 1 << 18;
/// Rows that one core assesses together.
const SHARE: usize = 1 << 11;

/// Rows that look like measurements: each input swings with its own period, with noise in the last bits.
fn block(first: usize, rows: usize) -> Vec<f32> {
    let mut values = vec![0.0; rows * INPUTS];
    values.par_chunks_mut(INPUTS).enumerate().for_each(|(at, row)| {
        let time = (first + at) as u64;
        for (input, value) in row.iter_mut().enumerate() {
            let mixed = (time * INPUTS as u64 + input as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let noise = (mixed >> 40) as f32 / (1 << 24) as f32 - 0.5;
            *value = (time as f32 * 0.001 * (input + 1) as f32).sin() + 0.1 * noise;
        }
    });
    values
}

/// How a Parquet file is written: rows of a row group, and whether values come from a dictionary as long as that has at most 1 MiB. All use
/// Snappy. With pyarrow a fourth of the values of a row group fills its dictionary; what follows is plain. DuckDB writes no dictionary where
/// values hardly repeat. The last is the worst case, which no engine has by default: a dictionary holds every value of a row group,
/// once, and the file is 1.6 times as long as the numbers.
const WRITERS: [(&str, usize, bool); 3] = [
    ("parquet, as by pyarrow", 1 << 20, true),
    ("parquet, as by DuckDB", 122_880, false),
    ("parquet, all in dictionaries", 1 << 18, true),
];

fn names() -> Vec<String> {
    (0..INPUTS).map(|input| format!("x{input}")).collect()
}

/// A file of rows, and how it is written.
struct Case {
    name: &'static str,
    ending: &'static str,
    rows: usize,
    make: Make,
}

/// Writes so many rows.
type Make = Box<dyn Fn(&Path, usize) -> Result<()>>;

impl Case {
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}-{}.{}", self.name.replace([' ', ','], "-"), self.rows, self.ending))
    }
}

/// The blocks of so many rows.
fn blocks(rows: usize) -> impl Iterator<Item = Vec<f32>> {
    (0..rows).step_by(BLOCK).map(move |first| block(first, BLOCK.min(rows - first)))
}

fn make_parquet(path: &Path, rows: usize, group: usize, dictionary: bool) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(group))
        .set_dictionary_enabled(dictionary)
        .build();
    let mut writer = None;
    for values in blocks(rows) {
        let columns = names().into_iter().enumerate().map(|(input, name)| {
            let column = values.iter().skip(input).step_by(INPUTS).copied();
            (name, Arc::new(Float32Array::from_iter_values(column)) as ArrayRef)
        });
        let batch = RecordBatch::try_from_iter(columns)?;
        if writer.is_none() {
            writer =
                Some(ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties.clone()))?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
    }
    writer.ok_or("no rows")?.close()?;
    Ok(())
}

fn make_npy(path: &Path, rows: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {INPUTS}), }}");
    // Magic, version and length are 10 bytes; all together a multiple of 64, as NumPy writes it.
    let length = (header.len() + 1 + 10).next_multiple_of(64) - 10;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&u16::try_from(length)?.to_le_bytes())?;
    writeln!(file, "{header:width$}", width = length - 1)?;
    for values in blocks(rows) {
        for value in values {
            file.write_all(&value.to_le_bytes())?;
        }
    }
    file.flush()?;
    Ok(())
}

/// What `dab fit` makes of such rows with its defaults; where they come from in time is their class.
fn fit(folder: &Path) -> Result<PathBuf> {
    let (path, out) = (folder.join("fitted.csv"), folder.join("fitted"));
    let mut file = BufWriter::new(File::create(&path)?);
    writeln!(file, "{},label", names().join(","))?;
    for (at, row) in block(0, FITTED).chunks(INPUTS).enumerate() {
        let words: Vec<String> = row.iter().map(f32::to_string).collect();
        writeln!(file, "{},{}", words.join(","), at * CLASSES / FITTED)?;
    }
    file.flush()?;
    let label = format!("{}:label", path.display());
    let status = Command::new(env!("CARGO_BIN_EXE_dab"))
        .arg("fit")
        .args(["--features".as_ref(), path.as_os_str(), "--labels".as_ref(), label.as_ref()])
        .args(["--out".as_ref(), out.as_os_str()])
        .args(["--quiet", "--force"])
        .stdout(std::process::Stdio::null())
        .status()?;
    if !status.success() {
        return Err("dab fit failed".into());
    }
    Ok(out.join("model.dab"))
}

fn make_csv(path: &Path, rows: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", names().join(","))?;
    for values in blocks(rows) {
        for row in values.chunks(INPUTS) {
            let words: Vec<String> = row.iter().map(f32::to_string).collect();
            writeln!(file, "{}", words.join(","))?;
        }
    }
    file.flush()?;
    Ok(())
}

/// Seconds that all cores together worked for this program, or for programs that it ran and that have ended: with the system's
/// part, and without.
fn processor_seconds(who: libc::c_int) -> [f64; 2] {
    // SAFETY: a struct of numbers, for which zero is a value; getrusage writes it and nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let own = seconds(usage.ru_utime);
    [own + seconds(usage.ru_stime), own]
}

/// The clock's and the processor's seconds since a moment.
fn since(start: Instant, before: [f64; 2], who: libc::c_int) -> [f64; 3] {
    let [all, own] = processor_seconds(who);
    [start.elapsed().as_secs_f64(), all - before[0], own - before[1]]
}

/// Rows per second of the model alone, on all cores, from memory; and per second of processor time, all and its own. With `predict`
/// it gives outputs too, as the command does.
fn assess_alone(model: &[u8], rows: usize, predict: bool) -> Result<[f64; 3]> {
    let bytes = AlignedBytes::from(model);
    let model = bytes.model().map_err(|error| format!("{error}"))?;
    let values = block(0, BLOCK);
    let (start, before) = (Instant::now(), processor_seconds(libc::RUSAGE_SELF));
    let mut done = 0;
    while done < rows {
        values.par_chunks(SHARE * INPUTS).try_for_each(|share| -> std::result::Result<(), String> {
            let (isa, mut scratch) = (Widest::detect(), vec![0.0; model.scratch_len()]);
            let mut outputs = vec![0.0; model.shape().outputs];
            for row in share.chunks(INPUTS) {
                let found = match predict {
                    true => model.predict_on(isa, row, &mut outputs, &mut scratch),
                    false => model.assess_on(isa, row, &mut scratch),
                };
                std::hint::black_box((found.map_err(|error| error.to_string())?, &outputs));
            }
            Ok(())
        })?;
        done += BLOCK;
    }
    Ok(since(start, before, libc::RUSAGE_SELF).map(|seconds| done as f64 / seconds))
}

/// Seconds of `dab score`, of processor time too, and the most memory that it had, MB.
fn score(model: &Path, input: &Path, output: &Path) -> Result<([f64; 3], u64)> {
    let (start, before) = (Instant::now(), processor_seconds(libc::RUSAGE_CHILDREN));
    let mut child = Command::new(env!("CARGO_BIN_EXE_dab"))
        .arg("score")
        .args([model, input])
        .arg("--by-position")
        .arg("-o")
        .arg(output)
        .spawn()?;
    let mut peak = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // Linux alone tells; elsewhere the column is 0.
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let most = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let most = most.and_then(|most| most.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(most.unwrap_or_default() / 1000);
        std::thread::sleep(Duration::from_millis(5));
    };
    if !status.success() {
        return Err("dab score failed".into());
    }
    Ok((since(start, before, libc::RUSAGE_CHILDREN), peak))
}

/// One table: the model alone, then the command with each file.
fn table(title: &str, model: &Path, folder: &Path, rows: usize, cases: &[Case]) -> Result<()> {
    let bytes = fs::read(model)?;
    // The rate before and after the command: the machine may have other work.
    let alone = assess_alone(&bytes, rows, false)?;
    println!(
        "\n{title}, {} bytes, {:.2} µs of processor time a row:\n\n\
         | what | rows | rows/s | of assess alone | by processor time | without the system's part | most memory |\n\
         |---|---|---|---|---|---|---|\n\
         | assess alone | {rows} | {:.0} | 1.00 | 1.00 | 1.00 | |",
        bytes.len(),
        1e6 / alone[1],
        alone[0]
    );
    for case in cases {
        let (rows, input) = (case.rows, case.path(folder));
        let output = folder.join(if case.ending == "parquet" { "scored.parquet" } else { "scored.csv" });
        if !input.exists() {
            (case.make)(&input, rows)?;
        }
        // The first run is not counted: where the system's cache uses memory for the first time, a virtual machine has to get it from its
        // host, page by page, and that takes ten times as long as copying.
        score(model, &input, &output)?;
        fs::remove_file(&output)?;
        let (seconds, peak) = score(model, &input, &output)?;
        let rate = seconds.map(|seconds| rows as f64 / seconds);
        let [share, all, own] = std::array::from_fn(|which| rate[which] / alone[which]);
        println!(
            "| {} | {rows} | {:.0} | {share:.2} | {all:.2} | {own:.2} | {peak} MB |",
            case.name, rate[0]
        );
        fs::remove_file(&output)?;
    }
    for (name, predict) in [("assess alone, again", false), ("assess and predict alone", true)] {
        let again = assess_alone(&bytes, rows, predict)?;
        let [share, all, own] = std::array::from_fn(|which| again[which] / alone[which]);
        println!("| {name} | {rows} | {:.0} | {share:.2} | {all:.2} | {own:.2} | |", again[0]);
    }
    Ok(())
}

fn run() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let after = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let rows: usize = after("--rows").map_or(Ok(10_000_000), |text| text.parse())?;
    let folder = after("--folder").map_or_else(|| std::env::temp_dir().join("dab-scoring"), PathBuf::from);
    fs::create_dir_all(&folder)?;
    let texts = if rows >= 10_000_000 { rows / 10 } else { rows };
    let mut cases: Vec<Case> = Vec::new();
    for (name, group, dictionary) in WRITERS {
        let make = move |path: &Path, rows| make_parquet(path, rows, group, dictionary);
        cases.push(Case { name, ending: "parquet", rows, make: Box::new(make) });
    }
    cases.push(Case { name: "npy", ending: "npy", rows: texts, make: Box::new(make_npy) });
    cases.push(Case { name: "csv", ending: "csv", rows: texts, make: Box::new(make_csv) });

    println!("{rows} rows of {INPUTS} inputs, {} threads", rayon::current_num_threads());
    let small = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/motor/model.dab");
    table("As `dab fit` makes it", &fit(&folder)?, &folder, rows, &cases)?;
    table("The network of examples/motor", &small, &folder, rows, &cases)?;
    if !args.iter().any(|arg| arg == "--keep") {
        cases.iter().try_for_each(|case| fs::remove_file(case.path(&folder)))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scoring: {error}");
            ExitCode::FAILURE
        }
    }
}
