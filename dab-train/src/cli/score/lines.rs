//! One line per input: what `dab score` writes, as CSV or JSON.

use std::fmt::Display;
use std::io::Write;

use anyhow::Result;
use dab_core::layers::softmax;
use dab_core::{Assessment, InputError, Model, Task};

use super::super::text::{shortest, verdict, whole};
use crate::{export::model_file::ModelFile, support::simd::Widest};

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
    /// Whether the model has two channels.
    channels: bool,
    /// Whether lines begin with a name, and every classifier tells its class.
    pub named: bool,
    classes: &'a [String],
    isa: Widest,
    json: bool,
    probabilities: bool,
    outputs: Vec<f32>,
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
            scratch: vec![0.0; model.scratch_len()],
            lines: Vec::new(),
        }
    }

    /// Numbers that a row has.
    pub fn inputs(&self) -> usize {
        self.model.shape().inputs
    }

    /// The names of the columns.
    pub fn columns(&self, artifact: &ModelFile) -> Vec<String> {
        let name = self.named.then_some("name");
        let more = if self.channels { &CHANNELS[..] } else { &[] };
        let class = self.tells_class().then_some("class");
        let fixed = name.into_iter().chain(FIXED).chain(more.iter().copied()).chain(class);
        fixed.map(str::to_owned).chain(artifact.output_names(self.outputs.len())).collect()
    }

    /// Whether the class is told although the model has no channels.
    fn tells_class(&self) -> bool {
        self.named && !self.channels && self.model.shape().task == Some(Task::Classification)
    }

    /// The name of the class with the largest output.
    fn likeliest(&self) -> Option<&'a String> {
        let best = self.outputs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.and_then(|(class, _)| self.classes.get(class))
    }

    /// The line of an input that has a name; `Err` says why it could not be read.
    pub fn named_line(&mut self, name: &str, input: Result<&[f32], &dyn Display>) -> Result<(), InputError> {
        let start = self.lines.len();
        if !self.json {
            self.lines.extend(quoted(Some(&name.to_owned())).bytes());
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
        let class = self.likeliest().filter(|_| self.tells_class());
        if self.probabilities {
            softmax(&mut self.outputs);
        }
        if self.json {
            self.json_line(&assessment, class)
        } else {
            self.csv_line(&assessment, class)
        }
        Ok(())
    }

    fn csv_line(&mut self, assessment: &Assessment, class: Option<&String>) {
        let line = &mut self.lines;
        shortest(assessment.uncertainty, line);
        line.push(b',');
        if let Some(p) = assessment.p_value {
            shortest(p, line);
        }
        line.push(b',');
        line.extend(assessment.verdict.map_or("", verdict).bytes());
        line.push(b',');
        whole(assessment.nearest, line);
        if self.channels {
            for number in [assessment.unfamiliarity, assessment.ambiguity, assessment.ambiguity_p] {
                line.push(b',');
                if let Some(number) = number {
                    shortest(number, line);
                }
            }
            for class in [assessment.class, assessment.runner_up] {
                line.push(b',');
                line.extend(quoted(class.and_then(|class| self.classes.get(class))).bytes());
            }
        }
        if class.is_some() {
            line.push(b',');
            line.extend(quoted(class).bytes());
        }
        for &y in &self.outputs {
            line.push(b',');
            shortest(y, line);
        }
        line.push(b'\n');
    }

    fn json_line(&mut self, assessment: &Assessment, class: Option<&String>) {
        let line = &mut self.lines;
        line.extend(br#"{"uncertainty":"#);
        shortest(assessment.uncertainty, line);
        line.extend(br#","p_value":"#);
        match assessment.p_value {
            Some(p) => shortest(p, line),
            None => line.extend(b"null"),
        }
        line.extend(br#","verdict":"#);
        match assessment.verdict {
            Some(v) => {
                line.push(b'"');
                line.extend(verdict(v).bytes());
                line.push(b'"');
            }
            None => line.extend(b"null"),
        }
        line.extend(br#","nearest":"#);
        whole(assessment.nearest, line);
        if self.channels {
            let numbers = [assessment.unfamiliarity, assessment.ambiguity, assessment.ambiguity_p];
            for (name, number) in CHANNELS.iter().zip(numbers) {
                line.extend(format!(r#","{name}":"#).bytes());
                match number {
                    Some(number) => shortest(number, line),
                    None => line.extend(b"null"),
                }
            }
            for (name, class) in [("class", assessment.class), ("runner_up", assessment.runner_up)] {
                let class = serde_json::json!(class.and_then(|class| self.classes.get(class)));
                line.extend(format!(r#","{name}":{class}"#).bytes());
            }
        }
        if let Some(class) = class {
            line.extend(format!(r#","class":{}"#, serde_json::json!(class)).bytes());
        }
        line.extend(br#","outputs":["#);
        for (i, &y) in self.outputs.iter().enumerate() {
            if i > 0 {
                line.push(b',');
            }
            shortest(y, line);
        }
        line.extend(b"]}\n");
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
            self.lines.extend(format!("{record}\n").bytes());
        } else {
            self.lines.extend(format!(",,{INVALID},").bytes());
            let more = if self.channels { CHANNELS.len() } else { usize::from(self.tells_class()) };
            self.lines.extend(std::iter::repeat_n(b',', more + self.outputs.len()));
            self.lines.push(b'\n');
        }
    }
}

/// A name as a field of CSV.
fn quoted(name: Option<&String>) -> String {
    match name {
        Some(name) if name.contains([',', '"', '\n', '\r']) => format!("\"{}\"", name.replace('"', "\"\"")),
        Some(name) => name.clone(),
        None => String::new(),
    }
}
