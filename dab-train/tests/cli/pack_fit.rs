//! `dab pack --fit`: a network without codes, and rows.

use crate::npy::{f32s, npy};
use crate::weights::Weights;
use crate::{column, dab, folder, refusal, table, text};

/// Rows of two classes, 5 apart, in three columns: numbers that look random and are always the same.
fn rows(count: usize, shift: f32) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        // The sum of four uniform numbers is nearly normal.
        (0..4)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32 - 0.5
            })
            .sum::<f32>()
    };
    (0..count).flat_map(|row| [(); 3].map(|()| next() + shift + 5.0 * (row % 2) as f32)).collect()
}

fn save(folder: &std::path::Path, name: &str, columns: usize, values: &[f32]) {
    let shape = [values.len() / columns, columns];
    std::fs::write(folder.join(name), npy("<f4", false, &shape, &f32s(values))).unwrap();
}

fn verdicts(folder: &std::path::Path, rows: &str) -> Vec<String> {
    let scored = table(&text(dab(folder, &["score", "model.dab", rows])));
    let at = scored[0].iter().position(|name| name == "verdict").unwrap();
    scored[1..].iter().map(|row| row[at].clone()).collect()
}

/// Three inputs, four features, two classes; no head, no codes.
fn network() -> Weights {
    Weights::default()
        .set(
            "layers.0.weight",
            &[4, 3],
            &[0.5, -1.0, 0.25, 0.75, -0.5, 1.0, 1.0, 0.5, -0.25, 0.125, 0.5, 0.25],
        )
        .set("layers.0.bias", &[4], &[0.125, 0.0, -0.25, 0.5])
        .set("decoder.weight", &[2, 4], &[0.5, -1.0, 0.25, 0.75, -0.5, 1.0, -0.5, 0.25])
        .set("decoder.bias", &[2], &[0.5, -0.5])
        .meta("layers.0.activation", "relu")
        .meta("task", "classification")
}

/// What the network gives, in float64.
fn logits(row: &[f32]) -> Vec<f64> {
    let network = network();
    let values = |name: &str| network.tensors[name].values.clone();
    let affine = |weight: Vec<f64>, bias: Vec<f64>, x: &[f64]| -> Vec<f64> {
        weight
            .chunks(x.len())
            .zip(bias)
            .map(|(row, b)| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + b)
            .collect()
    };
    let x: Vec<f64> = row.iter().map(|&x| x.into()).collect();
    let hidden = affine(values("layers.0.weight"), values("layers.0.bias"), &x);
    let hidden: Vec<f64> = hidden.into_iter().map(|x| x.max(0.0)).collect();
    affine(values("decoder.weight"), values("decoder.bias"), &hidden)
}

#[test]
fn a_network_without_codes_keeps_its_logits_and_finds_strangers() {
    let folder = folder("pack-fit");
    let inputs = rows(400, 0.0);
    save(&folder, "rows.npy", 3, &inputs);
    network().save(&folder.join("network.safetensors"));
    let said = text(dab(&folder, &["pack", "network.safetensors", "--fit", "rows.npy", "-o", "model.dab"]));
    for word in ["4 constant dimensions", "2 codes", "80 held-out scores", "activations: relu"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    let scored = text(dab(&folder, &["score", "model.dab", "rows.npy"]));
    let outputs = [column(&scored, "output_0"), column(&scored, "output_1")];
    for (i, row) in inputs.chunks(3).enumerate() {
        for (found, wanted) in outputs.iter().zip(logits(row)) {
            let found = found[i];
            assert!((found - wanted).abs() <= 1e-5 * wanted.abs().max(1.0), "row {i}: {found}, {wanted}");
        }
    }
    save(&folder, "strangers.npy", 3, &[50.0, 10.0, -30.0, 30.0, -20.0, 30.0]);
    assert_eq!(verdicts(&folder, "strangers.npy"), ["unfamiliar", "unfamiliar"]);
    text(dab(&folder, &["self-test", "model.dab"]));
    let first = std::fs::read(folder.join("model.dab")).unwrap();
    text(dab(&folder, &["pack", "network.safetensors", "--fit", "rows.npy", "-o", "model.dab"]));
    assert_eq!(std::fs::read(folder.join("model.dab")).unwrap(), first, "the same rows, the same bytes");
}

#[test]
fn an_encoder_without_codes_gets_them_from_rows() {
    let folder = folder("pack-fit-head");
    save(&folder, "rows.npy", 3, &rows(400, 0.0));
    let labels: Vec<u8> = (0..400i64).flat_map(|row| (row % 2).to_le_bytes()).collect();
    std::fs::write(folder.join("labels.npy"), npy("<i8", false, &[400], &labels)).unwrap();
    let head = |kind: &str, raw: usize| {
        let weight: Vec<f64> = (0..raw * 3).map(|i| [0.5, -0.25, 0.75, 0.125, 0.5][i % 5]).collect();
        Weights::default().set("head.weight", &[raw, 3], &weight).meta("covariance", kind)
    };
    for (kind, raw) in [("diagonal", 4), ("cholesky", 5), ("spectral", 5)] {
        head(kind, raw).save(&folder.join("encoder.safetensors"));
        let pack = ["pack", "encoder.safetensors", "--fit", "rows.npy", "--labels", "labels.npy"];
        let said = text(dab(&folder, &[&pack[..], &["--codes", "2", "-o", "model.dab"]].concat()));
        for word in [&*format!("2 {kind} dimensions"), "4 codes", "80 held-out scores"] {
            assert!(said.contains(word), "no `{word}` in {said}");
        }
        save(&folder, "strangers.npy", 3, &[-9.0, 9.0, -9.0, 30.0, -20.0, 30.0]);
        assert_eq!(verdicts(&folder, "strangers.npy"), ["unfamiliar", "unfamiliar"], "{kind}");
    }
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let folder = folder("pack-fit-refused");
    save(&folder, "rows.npy", 3, &rows(100, 0.0));
    save(&folder, "wide.npy", 5, &rows(100, 0.0));
    save(&folder, "few.npy", 3, &rows(10, 0.0));
    let short: Vec<u8> = (0..7i64).flat_map(i64::to_le_bytes).collect();
    std::fs::write(folder.join("short.npy"), npy("<i8", false, &[7], &short)).unwrap();
    let cases: Vec<(Weights, &[&str], &[&str])> = vec![
        (network(), &["--fit", "wide.npy"], &["5 columns", "3 inputs", "4 features"]),
        (network(), &["--fit", "few.npy"], &["10 rows are too few", "at least 20"]),
        (network(), &["--fit", "none.npy"], &["none.npy"]),
        (network(), &["--fit", "rows.npy", "--labels", "short.npy"], &["100 rows but 7 labels"]),
        (network(), &["--fit", "rows.npy", "--codes", "0"], &["at least one code"]),
        (Weights::tiny(), &["--fit", "rows.npy"], &["`codes.mean` is there", "--fit computes it"]),
        (Weights::default().fill("normalize.mean", &[3], 0.0), &["--fit", "rows.npy"], &["dab fit"]),
        (network().fill("head.weight", &[5, 4], 0.1), &["--fit", "rows.npy"], &["`head.weight`", "2 d"]),
        (network(), &[], &["`head.weight` is missing", "--fit"]),
    ];
    for (weights, arguments, words) in cases {
        weights.save(&folder.join("network.safetensors"));
        let line =
            refusal(&dab(&folder, &[&["pack", "network.safetensors", "-o", "m.dab"], arguments].concat()), 1);
        for word in words {
            assert!(line.contains(word), "{arguments:?}: no `{word}` in {line}");
        }
    }
    assert!(!folder.join("m.dab").exists());
}

#[test]
fn the_help_says_how_raw_outputs_become_spreads() {
    let said = text(dab(&folder("pack-help"), &["pack", "--help"]));
    for word in ["ln(1 + e^(t - 5))", "lower triangle", "symmetric matrix", "--fit", "first d values"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
}

#[test]
fn weights_of_one_byte_are_a_quarter_and_calibrate_with_themselves() {
    let folder = folder("pack-int8");
    save(&folder, "rows.npy", 3, &rows(400, 0.0));
    save(&folder, "strangers.npy", 3, &rows(50, 9.0));
    // A wide layer, so that weights are what the file is made of.
    let weight: Vec<f64> = (0..256 * 4).map(|i| f64::from((i * 37 % 101) as u8) / 50.0 - 1.0).collect();
    let wide = network()
        .set("layers.1.weight", &[256, 4], &weight)
        .set("layers.2.weight", &[4, 256], &weight)
        .meta("layers.1.activation", "relu")
        .meta("layers.2.activation", "tanh");
    wide.save(&folder.join("network.safetensors"));
    let pack = |file: &str, more: &[&str]| {
        let all = ["pack", "network.safetensors", "--fit", "rows.npy", "-o", file];
        text(dab(&folder, &[&all[..], more].concat()))
    };
    pack("floats.dab", &[]);
    pack("bytes.dab", &["--weights", "int8"]);
    let size = |file: &str| std::fs::metadata(folder.join(file)).unwrap().len();
    assert!(size("bytes.dab") * 2 < size("floats.dab"), "{} {}", size("bytes.dab"), size("floats.dab"));
    text(dab(&folder, &["self-test", "bytes.dab"]));
    assert!(text(dab(&folder, &["inspect", "bytes.dab"])).contains("one byte each"));
    let quantise = |more: &[&str]| {
        let all = ["quantise", "floats.dab", "--data", "rows.npy", "--ood", "far=strangers.npy"];
        dab(&folder, &[&all[..], more].concat())
    };
    let said = text(quantise(&["-o", "again.dab"]));
    for word in ["bytes, ", "|ΔU|", "of 400 rows change", "AUROC far", "see --calibration"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    assert!(size("again.dab") * 2 < size("floats.dab"));
    let said = text(quantise(&["--calibration", "rows.npy"]));
    assert!(said.contains("made anew"), "{said}");
    let twice = refusal(&dab(&folder, &["quantise", "bytes.dab", "--data", "rows.npy"]), 1);
    assert!(twice.contains("one byte already"), "{twice}");
    save(&folder, "wide.npy", 5, &rows(100, 0.0));
    let line = refusal(&dab(&folder, &["quantise", "floats.dab", "--data", "wide.npy"]), 1);
    assert!(line.contains("expected [rows, 3]"), "{line}");
}

#[test]
fn a_norm_is_packed_and_what_it_lacks_is_named() {
    let folder = folder("pack-norm");
    let normed = || {
        network()
            .set("layers.1.weight", &[4], &[1.0, 0.5, 2.0, 1.0])
            .set("layers.1.bias", &[4], &[0.0, 0.5, -0.5, 0.25])
            .meta("layers.1.kind", "layernorm")
            .meta("layers.1.activation", "identity")
    };
    save(&folder, "rows.npy", 3, &rows(100, 0.0));
    normed().meta("layers.1.epsilon", "1e-5").save(&folder.join("n.safetensors"));
    text(dab(&folder, &["pack", "n.safetensors", "--fit", "rows.npy", "-o", "model.dab"]));
    let said = text(dab(&folder, &["inspect", "model.dab"]));
    assert!(said.contains("layernorm") && said.contains("format 1.2"), "{said}");
    text(dab(&folder, &["self-test", "model.dab"]));
    for (weights, words) in [
        (normed(), ["`layers.1.epsilon` is missing", "1e-5"]),
        (normed().meta("layers.1.epsilon", "0"), ["`layers.1.epsilon` is `0`", "positive"]),
        (normed().meta("layers.1.kind", "batchnorm"), ["`layers.1.kind` is `batchnorm`", "layernorm"]),
        (
            normed()
                .meta("layers.1.epsilon", "1e-5")
                .fill("layers.1.weight", &[3], 1.0)
                .remove("layers.1.bias"),
            ["`layers.1.weight`", "[4]"],
        ),
        (
            normed().meta("layers.1.epsilon", "1e-5").fill("layers.1.weight", &[4, 4], 1.0),
            ["`layers.1.weight`", "one weight per value"],
        ),
        (normed().meta("layers.0.epsilon", "1e-5"), ["`layers.0.epsilon`", "only a layernorm"]),
    ] {
        weights.save(&folder.join("n.safetensors"));
        let line = refusal(&dab(&folder, &["pack", "n.safetensors", "--fit", "rows.npy", "-o", "m.dab"]), 1);
        for word in words {
            assert!(line.contains(word), "no `{word}` in {line}");
        }
    }
}
