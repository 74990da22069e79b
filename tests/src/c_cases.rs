//! Artifacts and expected bits as C source, for the programs of `tests/c`.

use std::fmt::Write;

use dab_core::artifact::info::{OUTPUT_BANDS, numbers_text, set_info};
use dab_core::artifact::monitor::set_monitor;
use dab_core::artifact::schema::Form;
use dab_core::artifact::{AlignedBytes, ArtifactError, Part};
use dab_core::{Model, Verdict};

use crate::attack::{CHOLESKY, MLP, SPECTRAL, VIEWS, parts};
use crate::patch::{Parts, seal, word};
use crate::specs::{Random, monitors, real};

/// Rows of input per model.
const ROWS: usize = 5;

/// An artifact that is refused, by name.
pub type Refused = (&'static str, Vec<u8>);

fn patched(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = parts(MLP).join().as_slice().to_vec();
    change(&mut bytes);
    seal(&mut bytes);
    bytes
}

fn changed(index: usize, change: impl FnOnce(&mut Parts)) -> Vec<u8> {
    let mut parts = parts(index);
    change(&mut parts);
    parts.join().as_slice().to_vec()
}

fn with_meta(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let sound = parts(MLP);
    let mut meta = postcard::to_allocvec(&sound.meta).expect("memory");
    change(&mut meta);
    sound.join_with(&meta).as_slice().to_vec()
}

/// One artifact for every way of being wrong, but for the address and the info.
///
/// # Panics
/// When the models of the tests cannot be taken apart.
#[must_use]
pub fn refused() -> Vec<Refused> {
    let sound = parts(MLP).join().as_slice().to_vec();
    let unsealed = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    vec![
        ("not an artifact", unsealed(0)),
        ("truncated", sound[..sound.len() - 1].to_vec()),
        ("trailing bytes", [&sound[..], &[0]].concat()),
        ("header checksum", unsealed(13)),
        ("version", patched(|b| b[8] = 9)),
        ("features", patched(|b| b[16] = 0x80)),
        ("schema", patched(|b| b[48] ^= 1)),
        ("body checksum", unsealed(100)),
        ("section layout", patched(|b| b[24] = 0)),
        ("meta encoding", with_meta(Vec::clear)),
        ("meta trailing bytes", with_meta(|m| m.push(0))),
        ("meta not canonical", with_meta(|m| drop(m.splice(0..1, [0x84, 0])))),
        ("limit", changed(MLP, |p| p.meta.inputs = 0)),
        ("residual", changed(MLP, |p| p.meta.layers[2].residual.as_mut().expect("a residual").source = 9)),
        ("parameter count", changed(MLP, |p| p.params.truncate(p.params.len() - 1))),
        (
            "padding",
            patched(|b| {
                let params = word(b, 32) as usize;
                b[params - 1] = 1;
            }),
        ),
        ("parameter not finite", changed(MLP, |p| p.part(Part::Layers)[0] = f32::NAN)),
        ("parameter out of range", changed(MLP, |p| p.part(Part::Layers)[0] = 1e30)),
        ("not positive definite", changed(CHOLESKY, |p| p.part(Part::CodePrecisions)[0] = -1.0)),
        ("prior sum", changed(MLP, |p| p.part(Part::CodePriors).fill(0.25))),
        ("alpha", changed(MLP, |p| p.meta.alpha = (-1f32).to_le_bytes())),
        ("calibration", changed(MLP, |p| p.part(Part::CalibrationScores).reverse())),
        ("channels", changed(VIEWS, |p| p.channels.as_mut().expect("channels").views[1].form = Form::Sum)),
        ("monitor", {
            let mut parts = Parts::of(&with_monitor());
            // The window, behind 18 floats and two votes.
            parts.part(Part::Monitor)[20] = 0.0;
            parts.join().as_slice().to_vec()
        }),
        ("rates", changed(MLP, |p| p.meta.calibration.as_mut().expect("a table").doubtful = [0; 4])),
    ]
}

/// A sound artifact with a monitor, whose ticks are of 10 ms.
///
/// # Panics
/// When the models of the tests cannot be taken apart.
#[must_use]
pub fn with_monitor() -> Vec<u8> {
    let [_, (_, whole)] = monitors();
    set_monitor(parts(MLP).join().as_slice(), &whole, 0.01, &[]).expect("a monitor")
}

/// A sound artifact of a regression, whose one output has a band of 0.75 for each nat.
///
/// # Panics
/// When the models of the tests cannot be taken apart.
#[must_use]
pub fn with_band() -> Vec<u8> {
    let info = (OUTPUT_BANDS.to_owned(), numbers_text(&[0.75]));
    set_info(parts(SPECTRAL).join().as_slice(), &[info]).expect("a model")
}

/// Sound artifacts whose known answers are wrong: an uncertainty, and the digest.
#[must_use]
pub fn wrong_answers() -> [Vec<u8>; 2] {
    let answer = |p: &mut Parts| {
        let answer = &mut p.part(Part::SelfTestAnswers)[0];
        *answer = f32::from_bits(answer.to_bits() ^ 1);
    };
    [changed(MLP, answer), changed(MLP, |p| p.meta.self_test.digest[0] ^= 1)]
}

/// An artifact that a device takes and whose info section is damaged.
#[must_use]
pub fn damaged_info() -> Vec<u8> {
    changed(MLP, |p| p.info = vec![1])
}

/// Why dab-core refuses `bytes`.
///
/// # Panics
/// When it does not.
#[must_use]
pub fn reason(bytes: &[u8]) -> ArtifactError {
    AlignedBytes::from(bytes).model().expect_err("a refused artifact")
}

/// C source under construction.
#[derive(Default)]
pub struct Source {
    text: String,
}

impl Source {
    /// A source that includes `cases.h`.
    #[must_use]
    pub fn new() -> Self {
        Self { text: "#include \"dab.h\"\n#include \"cases.h\"\n".into() }
    }

    fn words(&mut self, kind: &str, name: &str, words: impl IntoIterator<Item = String>) {
        let words: Vec<String> = words.into_iter().collect();
        // An array of nothing is not C.
        let list = if words.is_empty() { "0".into() } else { words.join(",") };
        writeln!(self.text, "static const {kind} {name}[] = {{{list}}};").expect("memory");
    }

    fn bits(&mut self, name: &str, values: &[f32]) {
        self.words("uint32_t", name, values.iter().map(|x| format!("{:#x}u", x.to_bits())));
    }

    fn bytes(&mut self, name: &str, bytes: &[u8]) {
        let padded = bytes.chunks(4).map(|c| {
            let mut word = [0; 4];
            word[..c.len()].copy_from_slice(c);
            format!("{:#x}u", u32::from_le_bytes(word))
        });
        self.words("uint32_t", name, padded);
    }

    /// A table of artifacts with the status that each gives.
    ///
    /// # Panics
    /// Without memory.
    pub fn statuses(&mut self, table: &str, size: &str, cases: &[(&str, &[u8], i32)]) {
        for (i, (_, bytes, _)) in cases.iter().enumerate() {
            self.bytes(&format!("{table}_{i}"), bytes);
        }
        writeln!(self.text, "const refused_case {table}[{size}] = {{").expect("memory");
        for (i, (name, bytes, status)) in cases.iter().enumerate() {
            writeln!(self.text, "{{\"{name}\", {table}_{i}, {}, {status}}},", bytes.len()).expect("memory");
        }
        self.text.push_str("};\n");
        if size.is_empty() {
            writeln!(self.text, "const size_t {table}_COUNT = {};", cases.len()).expect("memory");
        }
    }

    /// The list of all numbers that must be provoked.
    ///
    /// # Panics
    /// Without memory.
    pub fn numbers(&mut self, numbers: &[i32]) {
        let list: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let (list, count) = (list.join(","), numbers.len());
        writeln!(self.text, "const int32_t STATUSES[] = {{{list}}};\nconst size_t STATUS_COUNT = {count};")
            .expect("memory");
    }

    /// The real models with inputs and the bits that dab-core gives.
    ///
    /// # Panics
    /// When one cannot be built.
    pub fn models(&mut self) {
        let mut rows = String::new();
        for (name, spec) in real() {
            let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
            self.bytes(&format!("artifact_{name}"), bytes.as_slice());
            let model = bytes.model().expect("a model");
            let shape = model.shape();
            self.answers(name, &model);
            writeln!(
                rows,
                "{{\"{name}\", artifact_{name}, {}, {}, {}, {}, {}, {ROWS}, input_{name}, assessment_{name}, \
                 outputs_{name}, explained_{name}}},",
                bytes.as_slice().len(),
                shape.inputs,
                shape.outputs,
                shape.codes,
                shape.dim
            )
            .expect("memory");
        }
        writeln!(
            self.text,
            "const model_case MODELS[] = {{\n{rows}}};\nconst size_t MODEL_COUNT = {};",
            real().len()
        )
        .expect("memory");
    }

    fn answers(&mut self, name: &str, model: &Model<'_>) {
        let shape = model.shape();
        let mut random = Random(7);
        let mut scratch = vec![0.0; model.scratch_len()];
        let (mut inputs, mut assessments) = (Vec::new(), Vec::new());
        let (mut outputs, mut explained) = (Vec::new(), Vec::new());
        for row in 0..ROWS {
            let input = random.floats(shape.inputs, 10f64.powi(row as i32 - 1));
            let mut out = vec![0.0; shape.outputs];
            let a = model.predict_into(&input, &mut out, &mut scratch).expect("an input");
            let (mut d, mut w) = (vec![0.0; shape.codes], vec![0.0; shape.codes]);
            let mut parts = vec![0.0; shape.dim];
            model.explain_into(&input, &mut d, &mut w, &mut parts, &mut scratch).expect("an input");
            let verdict = match a.verdict {
                None => "DAB_NO_VERDICT",
                Some(Verdict::Familiar) => "DAB_FAMILIAR",
                Some(Verdict::Ambiguous) => "DAB_AMBIGUOUS",
                Some(Verdict::Doubtful) => "DAB_DOUBTFUL",
                Some(Verdict::Unfamiliar) => "DAB_UNFAMILIAR",
            };
            let hex = |x: f32| format!("{:#x}u", x.to_bits());
            assessments.extend([hex(a.uncertainty), hex(a.p_value.unwrap_or(-1.0)), verdict.into()]);
            assessments.extend([a.nearest.to_string(), hex(a.nearest_distance), hex(a.score())]);
            assessments.extend([hex(a.unfamiliarity.unwrap_or(-1.0)), hex(a.ambiguity.unwrap_or(0.0))]);
            assessments.push(hex(a.ambiguity_p.unwrap_or(-1.0)));
            let place = |place: Option<usize>| place.map_or("DAB_NONE".into(), |p: usize| p.to_string());
            assessments.extend([a.class, a.runner_up, a.view].map(place));
            inputs.extend(input);
            outputs.extend(out);
            explained.extend([d, w, parts].concat());
        }
        self.words("float", &format!("input_{name}"), inputs.iter().map(|x| format!("{x:e}f")));
        self.words("uint32_t", &format!("assessment_{name}"), assessments);
        self.bits(&format!("outputs_{name}"), &outputs);
        self.bits(&format!("explained_{name}"), &explained);
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}
