//! `dab score`: both formats, from files and pipes, good rows and bad ones.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::npy::{f32s, npy, transposed};
use crate::weights::Weights;
use crate::{column, dab, dab_reading, folder, refusal, table, text, with_model};

/// Some rows of two inputs.
fn rows(count: usize) -> Vec<f32> {
    (0..2 * count).map(|i| (i as f32 * 0.7).sin() * 3.0).collect()
}

/// The same rows as text.
fn csv(rows: &[f32]) -> String {
    rows.chunks(2).map(|row| format!("{},{}\n", row[0], row[1])).collect()
}

#[test]
fn text_and_numpy_give_the_same_table() {
    let folder = with_model("score-formats");
    let rows = rows(2500);
    std::fs::write(folder.join("in.csv"), csv(&rows)).unwrap();
    std::fs::write(folder.join("in.npy"), npy("<f4", false, &[2500, 2], &f32s(&rows))).unwrap();
    let fortran = npy("<f4", true, &[2500, 2], &f32s(&transposed(&rows, 2)));
    std::fs::write(folder.join("fortran.npy"), &fortran).unwrap();
    let double: Vec<u8> = rows.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect();
    std::fs::write(folder.join("double.npy"), npy("<f8", false, &[2500, 1, 2], &double)).unwrap();
    let big: Vec<u8> = rows.iter().flat_map(|x| x.to_be_bytes()).collect();
    std::fs::write(folder.join("big.npy"), npy(">f4", false, &[2500, 2], &big)).unwrap();

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(csv(&rows).as_bytes()).unwrap();
    std::fs::write(folder.join("in.csv.gz"), gzip.finish().unwrap()).unwrap();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, values) in [("other", &rows[..2]), ("x", &rows[..])] {
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&npy("<f4", false, &[values.len() / 2, 2], &f32s(values))).unwrap();
    }
    std::fs::write(folder.join("in.npz"), archive.finish().unwrap().into_inner()).unwrap();

    let expected = text(dab(&folder, &["score", "model.dab", "in.csv"]));
    assert_eq!(expected.lines().count(), 2501);
    assert_eq!(table(&expected)[0], ["uncertainty", "p_value", "verdict", "nearest", "output_0"]);
    for file in ["in.npy", "fortran.npy", "double.npy", "big.npy", "in.csv.gz", "in.npz:x"] {
        assert_eq!(text(dab(&folder, &["score", "model.dab", file])), expected, "{file}");
    }
    let piped = |stdin: &[u8]| dab_reading(&folder, &["score", "model.dab", "-"], stdin);
    assert_eq!(text(piped(csv(&rows).as_bytes())), expected);
    assert_eq!(text(piped(&npy("<f4", false, &[2500, 2], &f32s(&rows)))), expected);
    assert!(refusal(&piped(&fortran), 1).contains("ascontiguousarray"));

    assert_eq!(text(dab(&folder, &["score", "model.dab", "in.csv", "-o", "-"])), expected);
    text(dab(&folder, &["score", "model.dab", "in.csv", "-o", "out.csv"]));
    assert_eq!(std::fs::read_to_string(folder.join("out.csv")).unwrap(), expected);
}

#[test]
fn fortran_order_is_right_across_blocks() {
    let folder = with_model("score-fortran");
    // More rows than one block of the reader holds.
    let count = (1 << 19) + 1000;
    let rows = rows(count);
    std::fs::write(folder.join("c.npy"), npy("<f4", false, &[count, 2], &f32s(&rows))).unwrap();
    let fortran = npy("<f4", true, &[count, 2], &f32s(&transposed(&rows, 2)));
    std::fs::write(folder.join("fortran.npy"), fortran).unwrap();
    text(dab(&folder, &["score", "model.dab", "c.npy", "-o", "c.csv"]));
    text(dab(&folder, &["score", "model.dab", "fortran.npy", "-o", "fortran.csv"]));
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read("c.csv") == read("fortran.csv"));
}

#[test]
fn integers_halves_and_single_rows_are_read() {
    let folder = with_model("score-types");
    let expected = text(dab_reading(&folder, &["score", "model.dab", "-"], b"-3,7\n"));
    let files: [(&str, &[usize], &[u8]); 8] = [
        ("|i1", &[1, 2], &[253, 7]),
        ("<i2", &[1, 2], &[253, 255, 7, 0]),
        (">i2", &[1, 2], &[255, 253, 0, 7]),
        ("<i4", &[2], &[253, 255, 255, 255, 7, 0, 0, 0]),
        ("<i8", &[1, 2], &[253, 255, 255, 255, 255, 255, 255, 255, 7, 0, 0, 0, 0, 0, 0, 0]),
        ("<f2", &[1, 2], &[0, 0xc2, 0, 0x47]),
        (">f2", &[1, 2], &[0xc2, 0, 0x47, 0]),
        (">f8", &[1, 2], &[0xc0, 8, 0, 0, 0, 0, 0, 0, 0x40, 0x1c, 0, 0, 0, 0, 0, 0]),
    ];
    for (descr, shape, data) in files {
        std::fs::write(folder.join("in.npy"), npy(descr, false, shape, data)).unwrap();
        assert_eq!(text(dab(&folder, &["score", "model.dab", "in.npy"])), expected, "{descr}");
    }
    let unsigned = text(dab_reading(&folder, &["score", "model.dab", "-"], b"255,1\n"));
    for descr in ["|u1", "|b1"] {
        let data = if descr == "|b1" { [1, 0] } else { [255, 1] };
        let wanted = dab_reading(&folder, &["score", "model.dab", "-"], b"1,0\n");
        let wanted = if descr == "|b1" { text(wanted) } else { unsigned.clone() };
        std::fs::write(folder.join("in.npy"), npy(descr, false, &[1, 2], &data)).unwrap();
        assert_eq!(text(dab(&folder, &["score", "model.dab", "in.npy"])), wanted, "{descr}");
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let folder = with_model("score-arrays");
    let nan = f32s(&[1.0, 2.0, 3.0, f32::NAN]);
    let cases: [(Vec<u8>, &[&str]); 7] = [
        (npy("<f4", false, &[2, 3], &f32s(&[0.0; 6])), &["[2, 3]", "[rows, 2]"]),
        (npy("<f4", false, &[3], &f32s(&[0.0; 3])), &["[3]", "[rows, 2]"]),
        (npy("<c8", false, &[2, 2], &[0; 32]), &["c8", "float32"]),
        (npy("<f4", false, &[3, 2], &f32s(&[0.0; 5])), &["row 3 of 3", "complete"]),
        (npy("<f4", true, &[3, 2], &f32s(&[0.0; 5])), &["row 1 of 3", "complete"]),
        (npy("<f4", false, &[2, 2], &nan), &["row 2, column 2", "NaN", "--skip-bad"]),
        (b"\x93NUMPY\x01\x00\xff\xff{".to_vec(), &["header"]),
    ];
    for (bytes, words) in cases {
        std::fs::write(folder.join("in.npy"), bytes).unwrap();
        let line = refusal(&dab(&folder, &["score", "model.dab", "in.npy"]), 1);
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} {line}");
    }
}

#[test]
fn a_header_is_told_from_data() {
    let folder = with_model("score-header");
    let score = |args: &[&str], stdin: &str| {
        let args: Vec<&str> = ["score", "model.dab", "-"].iter().chain(args).copied().collect();
        dab_reading(&folder, &args, stdin.as_bytes())
    };
    let two = text(score(&[], "1,2\n3,4\n"));
    assert_eq!(two.lines().count(), 3);
    for stdin in [
        "a,b\n1,2\n3,4\n",
        "\u{feff}a,b\r\n1, 2\r\n3 ,4\r\n",
        "a,\n1,2\n\n3,4",
        "\"a\",\"b\"\n\"1\",2\n3,4\n",
    ] {
        assert_eq!(text(score(&[], stdin)), two, "{stdin:?}");
    }
    assert_eq!(text(score(&["--header", "yes"], "0,1\n1,2\n3,4\n")), two);
    assert_eq!(text(score(&["--header", "no"], "1,2\n3,4\n")), two);
    assert_eq!(text(score(&["--delimiter", ";"], "a;b\n1;2\n3;4\n")), two);
    assert_eq!(text(score(&["--delimiter", "tab"], "1\t2\n3\t4\n")), two);
    // A first row that could be either is not silently dropped.
    assert!(refusal(&score(&[], "1,two\n3,4\n"), 1).contains("--header"));
    assert!(refusal(&score(&["--header", "no"], "1,two\n3,4\n"), 1).contains("`two` is not a number"));
    assert!(refusal(&score(&[], "a,b,c\n1,2,3\n"), 1).contains("3 columns, the model takes 2"));
    assert!(refusal(&score(&[], "a;b\n1;2\n"), 1).contains("--delimiter"));
    assert!(refusal(&score(&[], "1;2\n"), 1).contains("--delimiter"));
}

#[test]
fn columns_are_found_by_name() {
    let folder = folder("score-names");
    Weights::tiny().meta("input_names", "speed,load").meta("output_names", "torque").pack(&folder);
    let score = |args: &[&str], stdin: &str| {
        let args: Vec<&str> = ["score", "model.dab", "-"].iter().chain(args).copied().collect();
        dab_reading(&folder, &args, stdin.as_bytes())
    };
    let expected = text(score(&[], "1,2\n"));
    assert_eq!(table(&expected)[0][4], "torque");
    assert_eq!(text(score(&[], "time,load,speed\nnoon,2,1\n")), expected);
    assert_eq!(text(score(&["--by-position"], "load,speed\n1,2\n")), expected);
    let line = refusal(&score(&[], "time,load\n1,2\n"), 1);
    assert!(
        line.contains("no column is called `speed`, which the model takes: rename the columns"),
        "{line}"
    );
    let line = refusal(&score(&[], "time,torque\n1,2\n"), 1);
    let words =
        "no column is called `speed`, `load`, which the model takes (2 of its 2 inputs are missing): rename";
    assert!(line.contains(words), "{line}");
    assert!(refusal(&score(&[], "load,speed,load\n1,2,3\n"), 1).contains("two columns are called `load`"));
    let line = refusal(&score(&[], "time,load,speed\n1,2,3\n4,x,6\n"), 1);
    assert!(line.contains("row 2 (line 3), column 2 `load`: `x`"), "{line}");
}

#[test]
fn the_mark_that_excel_writes_is_no_part_of_a_name() {
    let folder = folder("score-mark");
    Weights::tiny().meta("input_names", "speed,load").pack(&folder);
    let score = |bytes: &str| text(dab_reading(&folder, &["score", "model.dab", "-"], bytes.as_bytes()));
    assert_eq!(score("\u{feff}speed,load\n1,2\n"), score("speed,load\n1,2\n"));
    assert_eq!(score("\u{feff}1,2\n"), score("1,2\n"));
}

#[test]
fn bad_rows_are_named_or_marked() {
    let folder = with_model("score-bad");
    let faults = [
        ("1,", "row 2, column 2: the value is missing"),
        ("x,1", "row 2, column 1: `x` is not a number"),
        ("1,nan", "row 2, column 2: nan is not a finite"),
        ("-inf,1", "row 2, column 1: -inf is not a finite"),
        ("1,1e39", "row 2, column 2: 1e39 is not a finite"),
        ("1", "row 2: 1 value, expected 2"),
        ("1,2,3", "row 2: 3 values, expected 2"),
    ];
    let good = text(dab_reading(&folder, &["score", "model.dab", "-"], b"1,2\n3,4\n"));
    let good: Vec<&str> = good.lines().collect();
    for (row, words) in faults {
        let stdin = format!("1,2\n{row}\n3,4\n");
        let line = refusal(&dab_reading(&folder, &["score", "model.dab", "-"], stdin.as_bytes()), 1);
        assert!(line.contains(words) && line.contains("--skip-bad"), "{line}");

        let marked = dab_reading(&folder, &["score", "model.dab", "-", "--skip-bad"], stdin.as_bytes());
        let said = String::from_utf8(marked.stderr.clone()).unwrap();
        assert!(said.contains("1 of 3 rows") && said.contains(words), "{said}");
        assert_eq!(text(marked).lines().collect::<Vec<_>>(), [good[0], good[1], ",,invalid,,", good[2]]);

        let json =
            dab_reading(&folder, &["score", "model.dab", "-", "--skip-bad", "--json"], stdin.as_bytes());
        let line: Value = serde_json::from_str(text(json).lines().nth(1).unwrap()).unwrap();
        assert_eq!(line["verdict"], "invalid");
        assert!(line["error"].as_str().unwrap().contains(words));
    }
    // A file that stops half-way leaves nothing under the name that was asked for.
    dab_reading(&folder, &["score", "model.dab", "-", "-o", "out.csv"], b"1,2\n3,x\n");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn blocks_over_threads_are_rows_one_by_one() {
    let folder = with_model("score-blocks");
    let mut lines: Vec<String> = csv(&rows(9000)).lines().map(Into::into).collect();
    for bad in [0, 511, 512, 1023, 1024, 4097, 8999] {
        lines[bad] = "1,bad".into();
    }
    let text_of = |lines: &[String]| format!("a,b\n{}\n", lines.join("\n"));
    std::fs::write(folder.join("in.csv"), text_of(&lines)).unwrap();
    for json in [&[][..], &["--json"]] {
        let args = [&["score", "model.dab", "in.csv", "--skip-bad"], json].concat();
        let one_by_one = dab(&folder, &[&args[..], &["--flush"]].concat());
        let blocks = dab(&folder, &args);
        assert_eq!(blocks.stderr, one_by_one.stderr);
        assert!(text(blocks) == text(one_by_one));
    }
    // Without --skip-bad the rows before the first bad one are written, then it ends.
    std::fs::write(folder.join("in.csv"), text_of(&lines[513..])).unwrap();
    let stopped = dab(&folder, &["score", "model.dab", "in.csv"]);
    assert!(refusal(&stopped, 1).contains("row 511"), "{stopped:?}");
    let written = String::from_utf8(stopped.stdout).unwrap();
    assert_eq!(written.lines().count(), 1 + 1023 - 513);
}

#[test]
fn json_lines_say_what_the_table_says() {
    let folder = with_model("score-json");
    let stdin = csv(&rows(50)) + "1e30,-1e30\n";
    let csv = text(dab_reading(&folder, &["score", "model.dab", "-"], stdin.as_bytes()));
    let json = text(dab_reading(&folder, &["score", "model.dab", "-", "--json"], stdin.as_bytes()));
    let rows = table(&csv);
    assert_eq!(json.lines().count() + 1, rows.len());
    for (line, row) in json.lines().zip(&rows[1..]) {
        let value: Value = serde_json::from_str(line).unwrap();
        let number = |text: &str| text.parse::<f64>().unwrap();
        assert_eq!(value["uncertainty"].as_f64().unwrap(), number(&row[0]));
        assert_eq!(value["p_value"].as_f64().unwrap(), number(&row[1]));
        assert_eq!(value["verdict"], row[2]);
        assert_eq!(value["nearest"].as_u64().unwrap().to_string(), row[3]);
        assert_eq!(value["outputs"][0].as_f64().unwrap(), number(&row[4]));
        let scored: f32 = row[0].parse().unwrap();
        assert!(scored.is_finite() && scored >= 0.0);
    }
    assert!(column(&csv, "uncertainty").iter().all(|u| u.is_finite()));
    assert_eq!(rows.last().unwrap()[2], "unfamiliar");
}

#[test]
fn rates_and_probabilities_can_be_chosen() {
    let folder = with_model("score-options");
    let far = b"40,40\n";
    let verdict = |args: &[&str]| {
        let args: Vec<&str> = ["score", "model.dab", "-"].iter().chain(args).copied().collect();
        dab_reading(&folder, &args, far)
    };
    assert_eq!(table(&text(verdict(&[])))[1][2], "unfamiliar");
    assert_eq!(table(&text(verdict(&["--unfamiliar", "0.3", "--doubtful", "0.4"])))[1][2], "unfamiliar");
    assert!(
        refusal(&verdict(&["--unfamiliar", "0.1"]), 1).contains("needs 9 held-out inputs, the model has 4")
    );
    assert!(refusal(&verdict(&["--unfamiliar", "0.9"]), 1).contains("unfamiliar <= doubtful"));
    assert!(refusal(&verdict(&["--probabilities"]), 1).contains("classification"));

    let classes = Weights::tiny()
        .set("decoder.weight", &[3, 2], &[1.0, 0.0, 0.0, 1.0, -1.0, 0.5])
        .remove("decoder.bias")
        .meta("task", "classification");
    classes.pack(&folder);
    let probabilities = table(&text(verdict(&["--probabilities"])));
    let sum: f64 = probabilities[1][4..].iter().map(|p| p.parse::<f64>().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    assert_eq!(probabilities[1].len(), 7);
}

#[test]
fn no_rows_are_no_error() {
    let folder = with_model("score-none");
    let none = npy("<f4", false, &[0, 2], &[]);
    for stdin in [&b""[..], b"a,b\n", &none] {
        let output = dab_reading(&folder, &["score", "model.dab", "-"], stdin);
        assert!(String::from_utf8_lossy(&output.stderr).contains("no rows"));
        assert_eq!(text(output).lines().count(), 1);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_get_it() {
    let folder = with_model("score-without-parquet");
    std::fs::write(folder.join("in.parquet"), b"PAR1....").unwrap();
    std::fs::write(folder.join("in.csv"), "1,2\n").unwrap();
    for args in [&["in.parquet"][..], &["in.csv", "-o", "out.parquet"], &[".", "-o", "out"]] {
        let line = refusal(&dab(&folder, &[&["score", "model.dab"], args].concat()), 1);
        assert!(line.contains("--features parquet"), "{line}");
    }
    let piped = refusal(&dab_reading(&folder, &["score", "model.dab", "-"], b"PAR1...."), 1);
    assert!(piped.contains("name a file"), "{piped}");
    assert_eq!(text(dab_reading(&folder, &["score", "model.dab", "-"], b"PA,R1\n1,2\n")).lines().count(), 2);
}

#[test]
fn columns_can_be_named_by_the_user() {
    let folder = with_model("score-columns");
    let score = |args: &[&str], stdin: &str| {
        let args: Vec<&str> = ["score", "model.dab", "-"].iter().chain(args).copied().collect();
        dab_reading(&folder, &args, stdin.as_bytes())
    };
    let expected = text(score(&[], "1,2\n"));
    assert_eq!(text(score(&["--columns", "a,b"], "b,c,a\n2,x,1\n")), expected);
    assert!(refusal(&score(&["--columns", "a"], "a,b\n1,2\n"), 1).contains("the model takes 2 values"));
    assert!(refusal(&score(&["--columns", "a,c"], "a,b\n1,2\n"), 1).contains("no column is called `c`"));
    assert!(
        refusal(&score(&["--columns", "a,b", "--by-position"], "a,b\n1,2\n"), 2).contains("--by-position")
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = with_model("score-pipe");
    std::fs::write(folder.join("in.csv"), csv(&rows(200_000))).unwrap();
    for args in [["in.csv", "--delimiter", ","], ["in.csv", "--json", "--flush"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dab"))
            .args(["score", "model.dab"])
            .args(args)
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(line.contains("uncertainty"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
    }
}

/// Runs `dab score model.dab -` with more arguments, standard input and output at our end.
fn live(folder: &std::path::Path, args: &[&str]) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_dab"))
        .args(["score", "model.dab", "-"])
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_live_stream_is_answered_row_by_row() {
    let folder = with_model("score-live");
    let mut child = live(&folder, &["--json", "--flush"]);
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for row in 0..5 {
        writeln!(input, "{row},1").unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert!(answer["uncertainty"].is_number());
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_million_rows_take_no_more_memory_than_one() {
    /// Far below the 20 MB that pass through, far above what the program itself needs.
    const LIMIT_KB: u64 = 12_000;
    let folder = with_model("score-memory");
    let mut child = live(&folder, &["-o", "/dev/null"]);
    let mut input = child.stdin.take().unwrap();
    let block = csv(&rows(10_000));
    let mut sent = 0;
    for _ in 0..100 {
        input.write_all(block.as_bytes()).unwrap();
        sent += block.len();
    }
    assert!(sent > 16_000_000, "{sent}");
    // Everything but a last pipe-full has been scored by now.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("peak of a million rows: {peak} kB");
    assert!(peak < LIMIT_KB, "{peak} kB");
    drop(input);
    assert!(child.wait().unwrap().success());
}
