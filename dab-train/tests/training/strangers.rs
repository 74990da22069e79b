//! Checkpoints and experiments of strangers: changed at random, but sound as files, they are read or refused in words.

use std::collections::HashMap;

use dab_train::{
    config::Experiment,
    internals::{learn::run, support::random::Random},
};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{experiment, points, setting};

/// Changed files that are tried.
const CHECKPOINTS: usize = 300;
const EXPERIMENTS: usize = 4000;
/// Numbers that break things.
const NUMBERS: [&str; 10] =
    ["0", "-1", "1e308", "-1e-300", "4294967296", "99999999999999999999", "0.5", "nan", "-inf", "7"];

/// A checkpoint taken apart.
#[derive(Clone)]
struct Parts {
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
    state: Value,
}

impl Parts {
    fn of(bytes: &[u8]) -> Self {
        let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
        let state = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["dab"]).unwrap();
        let file = SafeTensors::deserialize(bytes).unwrap();
        let part = |(name, view): (&str, TensorView<'_>)| {
            let values = view.data().as_chunks::<4>().0.iter().map(|&word| f32::from_le_bytes(word));
            (name.to_owned(), view.shape().to_vec(), values.collect())
        };
        let mut tensors: Vec<_> = file.iter().map(part).collect();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        Self { tensors, state }
    }

    /// The file again, with the digest of what it holds now.
    fn join(mut self) -> Vec<u8> {
        self.tensors.sort_by(|a, b| a.0.cmp(&b.0));
        self.tensors.dedup_by(|a, b| a.0 == b.0);
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let tensors: Vec<_> =
            self.tensors.iter().map(|(name, shape, values)| (name, shape.clone(), bytes(values))).collect();
        let mut digest = Sha256::new();
        for (name, _, bytes) in &tensors {
            digest.update(name);
            digest.update(bytes);
        }
        let hex = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.state["digest"] = hex.into();
        let views = tensors
            .iter()
            .map(|(name, shape, bytes)| (*name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
        let metadata = HashMap::from([("dab".to_owned(), self.state.to_string())]);
        safetensors::serialize(views, Some(metadata)).unwrap()
    }

    /// One change to a tensor or to the state.
    fn change(&mut self, random: &mut Random) {
        let at = random.below(self.tensors.len());
        let (name, shape, values) = &mut self.tensors[at];
        match random.below(8) {
            0 => drop(self.tensors.remove(at)),
            1 => name.push('x'),
            2 => {
                values.pop();
                *shape = vec![values.len()];
            }
            3 => *shape = vec![1, values.len(), 1],
            4 => {
                let strange = [f32::NAN, f32::INFINITY, -1.0, 0.0, f32::MAX, f32::MIN_POSITIVE, -f32::MAX];
                let place = random.below(values.len().max(1));
                values
                    .iter_mut()
                    .skip(place)
                    .take(1 + random.below(4))
                    .for_each(|value| *value = strange[random.below(7)]);
            }
            5 => {
                let keys = ["seed", "epoch", "started", "times", "best", "history", "scaling", "experiment"];
                let odd = [
                    json!(null),
                    json!(-1),
                    json!(u64::MAX),
                    json!("x"),
                    json!([u64::MAX, 0]),
                    json!(true),
                    json!([1e300, 5]),
                ];
                self.state[keys[random.below(keys.len())]] = odd[random.below(odd.len())].clone();
            }
            6 => {
                let history = self.state["history"].as_str().unwrap_or_default().to_owned();
                self.state["history"] = changed(&history, random).into();
            }
            _ => self.state["best"] = json!([u64::MAX - random.below(5) as u64, random.below(9)]),
        }
    }
}

/// A text with a number, a line or a character changed.
fn changed(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return "x".to_owned();
    }
    let at = random.below(lines.len());
    let other = lines[random.below(lines.len())].clone();
    match random.below(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, other),
        2 => lines[at] = other,
        3 => {
            let mut characters: Vec<char> = lines[at].chars().collect();
            let place = random.below(characters.len() + 1);
            characters.insert(place, ['"', '[', '=', '.', '\'', '{', '9', '-', '\u{e9}'][random.below(9)]);
            lines[at] = characters.into_iter().collect();
        }
        _ => {
            let number = |word: &str| word.trim_matches(|c| "[]{},".contains(c)).parse::<f64>().is_ok();
            let mut words: Vec<&str> = lines[at].split(' ').collect();
            if let Some(word) = words.iter_mut().find(|word| number(word)) {
                *word = NUMBERS[random.below(NUMBERS.len())];
            }
            lines[at] = words.join(" ");
        }
    }
    lines.join("\n")
}

#[test]
fn changed_checkpoints_are_restored_or_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let split = points(24, true);
    let early = "training = { epochs = 3, batch = 8, early_stopping = { patience = 20, share = 0.2 } }";
    let experiment = experiment("cholesky", early);
    run::train(&experiment, &split, &setting(Some(path.clone()), false), &mut ()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let (parts, mut random) = (Parts::of(&whole), Random::new(0, "checkpoints"));
    assert_eq!(
        Parts::of(&parts.clone().join()).state,
        parts.state,
        "the digest is computed as the writer does"
    );
    let (mut restored, mut refused) = (0, 0);
    for _ in 0..CHECKPOINTS {
        let mut parts = parts.clone();
        (0..1 + random.below(3)).for_each(|_| parts.change(&mut random));
        std::fs::write(&path, parts.join()).unwrap();
        match run::restore(&experiment, &split, &setting(Some(path.clone()), true)) {
            Ok(_) => restored += 1,
            Err(error) => {
                assert!(format!("{error:#}").len() > 20, "{error:#}");
                refused += 1;
            }
        }
    }
    assert!(restored > 20 && refused > 20, "{restored} restored, {refused} refused");
}

#[test]
fn changed_experiments_are_read_or_refused_in_words() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut random = Random::new(0, "experiments");
    let (mut read, mut refused) = (0, 0);
    for _ in 0..EXPERIMENTS {
        let mut text = texts[random.below(texts.len())].clone();
        (0..1 + random.below(4)).for_each(|_| text = changed(&text, &mut random));
        match Experiment::parse(&text).and_then(|experiment| experiment.resolved()) {
            Ok(resolved) => {
                let again = Experiment::parse(&resolved).and_then(|experiment| experiment.resolved());
                assert_eq!(again.unwrap(), resolved, "what is written beside the results is the experiment");
                read += 1;
            }
            Err(error) => {
                assert!(error.to_string().len() > 10, "{error}");
                refused += 1;
            }
        }
    }
    assert!(read > 200 && refused > 200, "{read} read, {refused} refused");
}
