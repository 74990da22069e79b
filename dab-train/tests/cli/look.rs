//! `dab inspect`, `dab explain` and `dab self-test`.

use serde_json::{Value, json};

use crate::weights::Weights;
use crate::{dab, dab_reading, folder, refusal, text, with_model};

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn inspect_shows_shape_cost_codes_calibration_and_info() {
    let folder = with_model("inspect");
    let said = text(dab(&folder, &["inspect", "model.dab"]));
    for word in [
        "2 → 3, relu, with bias",
        "3 → 4",
        "volume",
        "doubtful   above 1.500 nats",
        "unfamiliar above 2.000 nats",
        "author = nobody",
        "multiply-adds",
        "identity",
    ] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    let json: Value = serde_json::from_str(&text(dab(&folder, &["inspect", "model.dab", "--json"]))).unwrap();
    let bytes = std::fs::read(folder.join("model.dab")).unwrap();
    assert_eq!(json["flash_bytes"], bytes.len());
    assert_eq!(json["identity"], format!("{:08x}", crc32c(&bytes[64..])));
    assert_eq!(json["codes"][0]["prior"], 0.75);
    let volume = json["codes"][0]["volume"].as_f64().unwrap();
    assert!((volume - 0.5f64.ln()).abs() < 1e-6, "{volume}");
}

#[test]
fn inspect_escapes_what_a_file_says_and_ends_on_a_device_that_does_not() {
    let folder = folder("inspect-strange");
    Weights::tiny().meta("author", "\u{1b}[31mred\nsize         0 bytes").pack(&folder);
    let said = text(dab(&folder, &["inspect", "model.dab"]));
    assert!(said.contains("author = \\u{1b}[31mred\\nsize"), "{said}");
    assert!(!said.contains('\u{1b}') && said.matches("\nsize ").count() == 1, "{said}");
    if std::path::Path::new("/dev/zero").exists() {
        let line = refusal(&dab(&folder, &["inspect", "/dev/zero"]), 1);
        assert!(line.contains("make one with `dab pack`"), "{line}");
    }
}

#[test]
fn names_of_a_file_cannot_change_the_terminal() {
    let folder = folder("strange-names");
    let weights = Weights::tiny()
        .set("decoder.weight", &[2, 2], &[1.0, -1.0, 0.0, 0.0])
        .set("decoder.bias", &[2], &[9.0, 0.0])
        .meta("task", "classification")
        .meta("input_names", "a,\u{1b}[31mb")
        .meta("output_names", "\u{1b}[31mred,green");
    weights.pack(&folder);
    let all = |args: &[&str], rows: &[u8]| {
        let out = dab_reading(&folder, args, rows);
        [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
    };
    for (args, rows, said) in [
        (&["score", "model.dab", "-"][..], &b"0.5,-0.5\n"[..], "nearest,\\u{1b}[31mred,green\n"),
        (&["score", "model.dab", "-"], b"a,c\n0.5,-0.5\n", "no column is called `\\u{1b}[31mb`"),
        (&["explain", "model.dab", "-"], b"0.5,-0.5\n", "class \\u{1b}[31mred"),
    ] {
        let found = all(args, rows);
        assert!(found.contains(said) && !found.contains('\u{1b}'), "{found:?}");
    }
}

#[test]
fn a_large_codebook_is_summed_up() {
    let folder = folder("inspect-large");
    let mut priors = vec![1.0 / 99.0; 100];
    priors[3] = 0.0;
    let weights = Weights::tiny()
        .fill("codes.mean", &[100, 2], 0.5)
        .fill("codes.cov", &[100, 2], 0.5)
        .set("codes.prior", &[100], &priors)
        .remove("calibration.scores")
        .remove_meta("rates.doubtful")
        .remove_meta("rates.unfamiliar");
    weights.pack(&folder);
    let few = text(dab(&folder, &["inspect", "model.dab"]));
    assert!(few.contains("1 of prior 0") && few.contains("--all shows 100") && few.contains("no p-values"));
    let all = text(dab(&folder, &["inspect", "model.dab", "--all"]));
    assert!(all.lines().count() > few.lines().count() + 80);
}

#[test]
fn explain_adds_up() {
    let folder = with_model("explain");
    let rows = b"0.5,-0.5\nx,y\n9,9\n";
    let explain = |args: &[&str]| {
        let args: Vec<&str> =
            ["explain", "model.dab", "-", "--header", "no"].iter().chain(args).copied().collect();
        dab_reading(&folder, &args, rows)
    };
    for row in ["1", "3"] {
        let json: Value = serde_json::from_str(&text(explain(&["--row", row, "--json"]))).unwrap();
        let u = json["uncertainty"].as_f64().unwrap();
        let sum = |key: &str, field: &str| {
            json[key].as_array().unwrap().iter().map(|x| x[field].as_f64().unwrap()).sum::<f64>()
        };
        assert!((sum("dimensions", "nats") - u).abs() <= 1e-5 * u.max(1.0), "{json}");
        assert!((sum("codes", "assignment") - 1.0).abs() < 1e-6, "{json}");
        assert_eq!(json["doubtful_above"], 1.5);
        assert_eq!(json["unfamiliar_above"], 2.0);
        let verdict = if u > 2.0 {
            "unfamiliar"
        } else if u > 1.5 {
            "doubtful"
        } else {
            "familiar"
        };
        assert_eq!(json["verdict"], verdict);
        let said = text(explain(&["--row", row]));
        assert!(said.contains(verdict) && said.contains("nearest code") && said.contains("unfamiliar above"));
    }
    assert!(text(explain(&["--row", "3", "--top", "1"])).contains('█'));
    // Which input: those of `far` are 9 in both columns, of which one is at its mean.
    std::fs::write(folder.join("means.csv"), "9,0\n9,1\n").unwrap();
    let asked = ["--row", "3", "--means", "means.csv", "--group", "both=0-1", "--json"];
    let json: Value = serde_json::from_str(&text(explain(&asked))).unwrap();
    let (worst, other) = (&json["inputs"][0], &json["inputs"][1]);
    assert_eq!(
        (&worst["input"], &worst["mean"], &other["score"]),
        (&json!(1), &json!(0.5), &json!(0.0)),
        "{json}"
    );
    assert_eq!(json["groups"][0]["group"], "both");
    assert_eq!(
        json["groups"][0]["uncertainty"], worst["uncertainty"],
        "the other one is at its mean already"
    );
    for (group, words) in
        [("a=2", "inputs 0 to 1"), ("a=x", "no input `x`"), ("a", "NAME=INPUT"), ("a=", "names no input")]
    {
        assert!(
            refusal(&explain(&["--row", "3", "--means", "means.csv", "--group", group]), 1).contains(words)
        );
    }
    assert!(refusal(&explain(&["--row", "2"]), 1).contains("row 2, column 1"));
    assert!(refusal(&explain(&["--row", "4"]), 1).contains("3 rows"));
}

#[test]
fn self_test_passes_and_fails() {
    let folder = with_model("self-test");
    let said = text(dab(&folder, &["self-test", "model.dab"]));
    assert!(said.contains("4 known answers agree"), "{said}");

    // A sound file whose last recorded answer is one bit off.
    let mut bytes = std::fs::read(folder.join("model.dab")).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let info = word(&bytes, 40) as usize;
    bytes[info - 4] ^= 1;
    let body = crc32c(&bytes[64..]);
    bytes[56..60].copy_from_slice(&body.to_le_bytes());
    let header = crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&header.to_le_bytes());
    std::fs::write(folder.join("off.dab"), &bytes).unwrap();
    let line = refusal(&dab(&folder, &["self-test", "off.dab"]), 1);
    assert!(line.contains("known-answer vector 3") && line.contains("baseline"), "{line}");

    bytes[200] ^= 1;
    std::fs::write(folder.join("damaged.dab"), &bytes).unwrap();
    for command in ["self-test", "inspect"] {
        assert!(refusal(&dab(&folder, &[command, "damaged.dab"]), 1).contains("damaged"));
    }
}

#[test]
fn own_known_answers_travel() {
    let folder = folder("self-test-own");
    Weights::tiny().set("self_test.inputs", &[2, 2], &[0.0, 0.0, 5.0, -5.0]).pack(&folder);
    assert!(text(dab(&folder, &["self-test", "model.dab"])).contains("2 known answers"));
}
