//! One line per input: what `dab score` writes, as CSV or JSON.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

use anyhow::Result;
use dab_core::band::half_width;
use dab_core::layers::softmax;
use dab_core::{Assessment, InputError, Model, Task, Verdict};

use super::super::text::{shortest, whole};
use crate::{
    export::{band, model_file::ModelFile},
    support::simd::Widest,
};

/// Columns of every model.
pub const FIXED: [&str; 4] = ["uncertainty", "p_value", "verdict", "nearest"];
/// Columns of a model with channels, behind those.
pub const CHANNELS: [&str; 5] = ["unfamiliarity", "ambiguity", "ambiguity_p", "class", "runner_up"];

/// What takes the place of a verdict in a row that cannot be read.
pub const INVALID: &str = "invalid";

/// The first line of a CSV file.
pub fn write_names(columns: &[String], out: &mut dyn Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns)?;
    writer.flush()?;
    Ok(())
}

/// One row after another through the model, into lines of text.
pub struct Scorer<'a> {
    model: &'a Model<'a>,
    channels: bool,
    /// Whether lines begin with a name, and every classifier tells its class.
    pub named: bool,
    classes: &'a [String],
    isa: Widest,
    json: bool,
    probabilities: bool,
    outputs: Vec<f32>,
    /// The widths of the bands, where the model has any.
    bands: Option<Vec<f32>>,
    scratch: Vec<f32>,
    /// What was written since it was cleared last.
    pub lines: Vec<u8>,
}

impl<'a> Scorer<'a> {
    /// Lines of CSV or `json`, with logits or `probabilities`.
    pub fn new(model: &'a Model<'a>, classes: &'a [String], json: bool, probabilities: bool) -> Self {
        let shape = model.shape();
        Self {
            model,
            channels: model.channels_meta().is_some(),
            named: false,
            classes,
            isa: Widest::detect(),
            json,
            probabilities,
            outputs: vec![0.0; shape.outputs],
            bands: band::widths(model),
            scratch: vec![0.0; model.scratch_len()],
            lines: Vec::new(),
        }
    }

    pub fn inputs(&self) -> usize {
        self.model.shape().inputs
    }

    pub fn columns(&self, artifact: &ModelFile) -> Vec<String> {
        let name = self.named.then_some("name");
        let more = if self.channels { &CHANNELS[..] } else { &[] };
        let class = self.tells_class().then_some("class");
        let fixed = name.into_iter().chain(FIXED).chain(more.iter().copied()).chain(class);
        let outputs = artifact.output_names(self.outputs.len());
        let bands = self.bands.as_ref().map(|_| band::columns(&outputs)).unwrap_or_default();
        fixed.map(str::to_owned).chain(outputs).chain(bands).collect()
    }

    /// Whether the class is told although the model has no channels.
    fn tells_class(&self) -> bool {
        self.named && !self.channels && self.model.shape().task == Some(Task::Classification)
    }

    /// The line of an input that has a name; `Err` says why it could not be read.
    pub fn named_line(&mut self, name: &str, input: Result<&[f32], &dyn Display>) -> Result<(), InputError> {
        let start = self.lines.len();
        if !self.json {
            self.lines.extend(quoted(name).bytes());
            self.lines.push(b',');
        }
        match input {
            Err(fault) => self.mark(fault),
            Ok(input) => self.line(input)?,
        }
        if self.json {
            let name = format!("\"name\":{},", serde_json::json!(name));
            self.lines.splice(start + 1..start + 1, name.into_bytes());
        }
        Ok(())
    }

    /// The line of an input.
    pub fn line(&mut self, input: &[f32]) -> Result<(), InputError> {
        let assessment = self.model.predict_on(self.isa, input, &mut self.outputs, &mut self.scratch)?;
        let likeliest = self.outputs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let class = likeliest.and_then(|(class, _)| self.classes.get(class)).filter(|_| self.tells_class());
        if self.probabilities {
            softmax(&mut self.outputs);
        }
        self.write(&assessment, class);
        Ok(())
    }

    fn write(&mut self, found: &Assessment, class: Option<&String>) {
        let (json, classes, line) = (self.json, self.classes, &mut self.lines);
        let named = |class: Option<usize>| class.and_then(|class| classes.get(class)).map(String::as_str);
        let fixed = FIXED.into_iter().zip([
            Cell::Number(Some(found.uncertainty)),
            Cell::Number(found.p_value),
            Cell::Text(found.verdict.map(Verdict::name)),
            Cell::Whole(found.nearest),
        ]);
        let channels = CHANNELS.into_iter().zip([
            Cell::Number(found.unfamiliarity),
            Cell::Number(found.ambiguity),
            Cell::Number(found.ambiguity_p),
            Cell::Text(named(found.class)),
            Cell::Text(named(found.runner_up)),
        ]);
        let class = class.map(|class| ("class", Cell::Text(Some(class))));
        let cells = fixed.chain(channels.filter(|_| self.channels)).chain(class);
        for (at, (name, cell)) in cells.enumerate() {
            match (json, at) {
                (false, 0) => {}
                (false, _) => line.push(b','),
                (true, _) => {
                    line.extend(if at == 0 { b"{\"" } else { b",\"" });
                    line.extend(name.bytes());
                    line.extend(b"\":");
                }
            }
            cell.write(json, line);
        }
        list("outputs", self.outputs.iter().copied(), json, line);
        if let Some(bands) = &self.bands {
            list("bands", bands.iter().map(|&width| half_width(width, found.uncertainty)), json, line);
        }
        line.extend(if json { &b"}\n"[..] } else { b"\n" });
    }

    /// The line of a row that could not be read.
    pub fn mark(&mut self, bad: &dyn Display) {
        if self.json {
            let mut record = serde_json::json!({
                "uncertainty": null, "p_value": null, "verdict": INVALID, "nearest": null,
                "outputs": [], "error": bad.to_string(),
            });
            for name in CHANNELS.iter().filter(|_| self.channels) {
                record[name] = serde_json::Value::Null;
            }
            if self.tells_class() {
                record["class"] = serde_json::Value::Null;
            }
            if self.bands.is_some() {
                record["bands"] = serde_json::json!([]);
            }
            self.lines.extend(format!("{record}\n").bytes());
        } else {
            self.lines.extend(format!(",,{INVALID},").bytes());
            let more = if self.channels { CHANNELS.len() } else { usize::from(self.tells_class()) };
            let bands = self.bands.as_ref().map_or(0, Vec::len);
            self.lines.extend(std::iter::repeat_n(b',', more + self.outputs.len() + bands));
            self.lines.push(b'\n');
        }
    }
}

/// Numbers at the end of a line: a list in JSON, one column each in CSV.
fn list(name: &str, numbers: impl Iterator<Item = f32>, json: bool, line: &mut Vec<u8>) {
    if json {
        line.extend(format!(",\"{name}\":[").bytes());
    }
    for (at, number) in numbers.enumerate() {
        if at > 0 || !json {
            line.push(b',');
        }
        shortest(number, line);
    }
    line.extend(if json { &b"]"[..] } else { b"" });
}

/// What stands in a column before the outputs, if anything.
enum Cell<'a> {
    Number(Option<f32>),
    Whole(usize),
    Text(Option<&'a str>),
}

impl Cell<'_> {
    /// Adds it to a line of JSON or of CSV.
    fn write(&self, json: bool, line: &mut Vec<u8>) {
        match *self {
            Self::Number(Some(number)) => shortest(number, line),
            Self::Whole(number) => whole(number, line),
            // Writing to memory cannot fail.
            Self::Text(Some(text)) if json => drop(serde_json::to_writer(line, text)),
            Self::Text(Some(text)) => line.extend_from_slice(quoted(text).as_bytes()),
            _ if json => line.extend(b"null"),
            _ => {}
        }
    }
}

/// A text as a field of CSV.
fn quoted(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}
