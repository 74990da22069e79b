//! Which sensor? The part of `dab explain` that speaks of inputs and groups of them.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use dab_core::Model;
use dab_core::attribute::{Groups, Means, NO_GROUP};
use serde_json::{Value, json};

use super::{
    input::{InputArgs, each_row},
    text::{bar, number, printable, rounded},
};
use crate::{data::rows::RowSource, export::model_file::ModelFile};

/// Which inputs are looked at together, and what they are set to.
#[derive(Debug, clap::Args)]
pub struct SensorArgs {
    /// Also look at some inputs together: a name for them, and inputs by name, number (from 0) or range; may be repeated
    #[arg(long = "group", value_name = "NAME=INPUTS")]
    groups: Vec<String>,

    /// Set inputs to the column means of these rows instead of the training means in the model
    #[arg(long, value_name = "FILE")]
    means: Option<PathBuf>,
}

/// What one input or one group adds.
struct Adds {
    name: String,
    inputs: Vec<usize>,
    /// Nats less of the uncertainty, and less of the score, with the members at their means.
    uncertainty: f32,
    score: f32,
}

/// What all inputs and groups add.
pub struct Sensors {
    input: Vec<f32>,
    means: Vec<f32>,
    inputs: Vec<Adds>,
    groups: Vec<Adds>,
    channels: bool,
}

impl SensorArgs {
    /// What inputs and groups add to one row; `None` if the model has no training means and none are given.
    pub fn look(
        &self,
        files: &InputArgs,
        artifact: &ModelFile,
        model: &Model<'_>,
        input: &[f32],
    ) -> Result<Option<Sensors>> {
        let count = model.shape().inputs;
        let names = artifact.input_names(count);
        let names = names.unwrap_or_else(|| (0..count).map(|i| format!("input {i}")).collect());
        let groups = self.groups.iter().map(|group| members(group, &names)).collect::<Result<Vec<_>>>()?;
        let means = match &self.means {
            Some(file) => column_means(file, files, artifact, model)?,
            None => match model.means() {
                Some(own) => (0..count).map(|i| own.get(i).unwrap_or(0.0)).collect(),
                None if self.groups.is_empty() => return Ok(None),
                None => bail!("the model has no training means: give training rows with --means FILE"),
            },
        };
        let mut scratch = vec![0.0; model.attribution_scratch_len()];
        let each = names.into_iter().enumerate().map(|(i, name)| (name, vec![i]));
        let mut adds = |(name, inputs): (String, Vec<usize>)| -> Result<Adds> {
            let mut numbers = vec![NO_GROUP; count];
            inputs.iter().for_each(|&i| numbers[i] = 0);
            let (mut uncertainty, mut score) = ([0.0], [0.0]);
            let (means, groups) = (Means::new(&means), Groups::Of(&numbers));
            model.attribute_into(input, means, groups, &mut uncertainty, &mut score, &mut scratch)?;
            Ok(Adds { name, inputs, uncertainty: uncertainty[0], score: score[0] })
        };
        let mut sorted = |asked: &mut dyn Iterator<Item = (String, Vec<usize>)>| -> Result<Vec<Adds>> {
            let mut found = asked.map(&mut adds).collect::<Result<Vec<_>>>()?;
            found.sort_by(|a, b| b.score.total_cmp(&a.score));
            Ok(found)
        };
        let (inputs, groups) = (sorted(&mut each.into_iter())?, sorted(&mut groups.into_iter())?);
        let channels = model.channels_meta().is_some();
        Ok(Some(Sensors { input: input.to_vec(), means, inputs, groups, channels }))
    }
}

/// Name and members of `NAME=INPUTS`.
fn members(group: &str, names: &[String]) -> Result<(String, Vec<usize>)> {
    let what = || format!("--group {group}");
    let (name, list) = group.split_once('=').context("write NAME=INPUT,INPUT,…").with_context(what)?;
    let mut found = Vec::new();
    for member in list.split(',').map(str::trim).filter(|member| !member.is_empty()) {
        if let Some(i) = names.iter().position(|name| name == member) {
            found.push(i);
            continue;
        }
        let place = |text: &str| text.trim().parse::<usize>().ok();
        let (first, last) = match member.split_once('-') {
            Some((first, last)) => (place(first), place(last)),
            None => (place(member), place(member)),
        };
        let (Some(first), Some(last)) = (first, last) else {
            bail!("{}: the model has no input `{}`", what(), printable(member));
        };
        ensure!(first <= last && last < names.len(), "{}: there are inputs 0 to {}", what(), names.len() - 1);
        found.extend(first..=last);
    }
    ensure!(!found.is_empty(), "{}: it names no input", what());
    found.sort_unstable();
    found.dedup();
    Ok((name.trim().to_owned(), found))
}

fn column_means(
    file: &std::path::Path,
    files: &InputArgs,
    artifact: &ModelFile,
    model: &Model<'_>,
) -> Result<Vec<f32>> {
    let source = RowSource::new(file);
    let mut rows = files.open_other(file, artifact, model)?;
    let inputs = model.shape().inputs;
    let (mut sums, mut count) = (vec![0.0f64; inputs], 0.0f64);
    each_row(&mut rows, &source, inputs, "", |_, row| {
        count += 1.0;
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        Ok(())
    })?;
    ensure!(count > 0.0, "{source} has no rows");
    Ok(sums.into_iter().map(|sum| (sum / count) as f32).collect())
}

impl Sensors {
    /// The tables, of at most `top` inputs.
    pub fn describe(&self, top: usize) -> Result<String> {
        let mut t = String::new();
        let score = if self.channels { "unfamiliarity" } else { "uncertainty" };
        let count = self.inputs.len();
        writeln!(
            t,
            "\n{} of {count} inputs, by what they add to the {score} (it is so much less with the input at its training mean):",
            count.min(top)
        )?;
        self.table(&mut t, "input", &self.inputs[..count.min(top)])?;
        if !self.groups.is_empty() {
            writeln!(t, "\ngroups of inputs, in the same way:")?;
            self.table(&mut t, "group", &self.groups)?;
        }
        Ok(t)
    }

    fn table(&self, t: &mut String, kind: &str, rows: &[Adds]) -> Result<()> {
        let names: Vec<String> = rows.iter().map(|row| printable(&row.name)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(kind.len());
        let single = kind == "input";
        let nats = if self.channels { "        nats" } else { "" };
        let values = if single { "       value        mean" } else { "" };
        writeln!(t, "  {kind:<width$}{values}        adds{nats}")?;
        let largest = rows.first().map_or(0.0, |row| row.score).max(f32::MIN_POSITIVE);
        for (name, row) in names.iter().zip(rows) {
            let mut line = format!("  {name:<width$}");
            if single && let Some(&i) = row.inputs.first() {
                line.push_str(&format!("  {:>10}  {:>10}", rounded(self.input[i]), rounded(self.means[i])));
            }
            line.push_str(&format!("  {:>10}", rounded(row.score)));
            if self.channels {
                line.push_str(&format!("  {:>10}", rounded(row.uncertainty)));
            }
            writeln!(t, "{}", format!("{line}  {}", bar(row.score / largest)).trim_end())?;
        }
        Ok(())
    }

    /// All inputs and groups, those that add most first.
    pub fn json(&self) -> (Value, Value) {
        let input = |adds: &Adds| {
            let i = adds.inputs[0];
            json!({ "input": i, "name": adds.name, "value": number(self.input[i]), "mean": number(self.means[i]),
                "score": number(adds.score), "uncertainty": number(adds.uncertainty) })
        };
        let group = |adds: &Adds| {
            json!({ "group": adds.name, "inputs": adds.inputs, "score": number(adds.score),
                "uncertainty": number(adds.uncertainty) })
        };
        (self.inputs.iter().map(input).collect(), self.groups.iter().map(group).collect())
    }
}
