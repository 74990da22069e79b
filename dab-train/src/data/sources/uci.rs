//! One UCI regression set against others (method.md, "measured").
//!
//! csv.gz → rows cut 80/20 by seed → standardised → `Task`; an OOD set goes through the same cut, and
//! its test part is what counts.
//!
//! ```text
//! z = (x − mean) / std of the set's own training part; OOD sets keep their first columns
//! ```
//!
//! Scaling an OOD set by its own statistics hides its units, and that is the point: by the training
//! set's statistics ("trivial") any distance sees it at once, and raw only asks for finite scores.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    data::{
        Description, Scale, Split, Table, Targets, Task,
        files::{self, FilePart},
        split, stored,
    },
    support::random::Random,
};

/// Share of the rows that is tested, of the set and of each OOD set.
const TEST_SHARE: f64 = 0.2;

/// The sets stored under `data/uci`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Boston housing, 506 × 13.
    Boston,
    /// Concrete strength, 1030 × 8.
    Concrete,
    /// Energy efficiency (heating load), 768 × 8.
    Energy,
    /// Forward kinematics of a robot arm, 8192 × 8.
    Kin8nm,
    /// Combined-cycle power plant, 9568 × 4.
    Power,
    /// Protein tertiary structure, 45730 × 9.
    Protein,
    /// Red wine quality, 1599 × 11.
    Wine,
    /// Yacht hydrodynamics, 308 × 6.
    Yacht,
}

impl Set {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Boston => ("boston", "boston_housing"),
            Self::Concrete => ("concrete", "concrete_strength"),
            Self::Energy => ("energy", "energy_efficiency"),
            Self::Kin8nm => ("kin8nm", "kin8nm"),
            Self::Power => ("power", "power_plant"),
            Self::Protein => ("protein", "protein_structure"),
            Self::Wine => ("wine", "wine_red"),
            Self::Yacht => ("yacht", "yacht"),
        }
    }
}

/// By what an OOD set is standardised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Its own statistics: the protocol.
    Own,
    /// The training set's statistics: trivial, and labelled so.
    Training,
    /// Not at all: a check for NaN, labelled so.
    Raw,
}

impl Scaling {
    fn label(self) -> &'static str {
        match self {
            Self::Own => "",
            Self::Training => " (trivial: training scale)",
            Self::Raw => " (unscaled)",
        }
    }
}

/// Settings of a UCI experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UciConfig {
    /// What is learnt.
    pub set: Set,
    /// What it is told from.
    pub ood: Vec<Set>,
    /// How the OOD sets are scaled; each entry gives one OOD set per set in `ood`.
    pub scaling: Vec<Scaling>,
    /// Share of the training rows kept aside for calibration.
    pub held_out: f64,
}

impl Default for UciConfig {
    fn default() -> Self {
        Self {
            set: Set::Energy,
            ood: vec![Set::Kin8nm, Set::Concrete, Set::Protein, Set::Boston],
            scaling: vec![Scaling::Own, Scaling::Training, Scaling::Raw],
            held_out: 0.1,
        }
    }
}

/// Training and test rows of one set, cut by seed, in raw units, and the names of the columns.
fn read(set: Set, seed: u64, root: &Path) -> Result<(Table, Table, Vec<String>)> {
    let (name, file) = set.names();
    let path = stored(root, format!("uci/{file}.csv.gz"))?;
    let (table, names) = files::table(&FilePart::parse(&path.to_string_lossy()), &[])?;
    let (train, test) =
        split::fraction(table.rows, TEST_SHARE, &mut Random::new(seed, &format!("uci/{name}")));
    Ok((table.select(&train), table.select(&test), names))
}

impl UciConfig {
    pub(crate) fn load(&self, seed: u64, root: &Path) -> Result<(Task, Description)> {
        ensure!((0.0..1.0).contains(&self.held_out), "held_out = {}: a share below 1", self.held_out);
        let (rows, test, names) = read(self.set, seed, root)?;
        let target = rows.cols.checked_sub(1).context("the set has no columns")?;
        let features: Vec<usize> = (0..target).collect();
        let (kept, aside) = split::fraction(rows.rows, self.held_out, &mut Random::new(seed, "uci/held-out"));
        let train = rows.select(&kept);
        let inputs = Scale::fit(&train.columns(&features));
        let targets = Scale::fit(&train.columns(&[target]));
        let standard = |rows: &Table| Split {
            inputs: inputs.apply(&rows.columns(&features)),
            targets: Targets::Regression(targets.apply(&rows.columns(&[target]))),
        };
        let mut ood = Vec::new();
        for &set in &self.ood {
            let (other, test, _) = read(set, seed, root)?;
            let name = set.names().0;
            ensure!(other.cols > target, "{name} has fewer columns than the {target} that are needed");
            let own = Scale::fit(&other.columns(&features));
            let raw = test.columns(&features);
            for &scaling in &self.scaling {
                let inputs = match scaling {
                    Scaling::Own => own.apply(&raw),
                    Scaling::Training => inputs.apply(&raw),
                    Scaling::Raw => raw.clone(),
                };
                ood.push((format!("{name}{}", scaling.label()), inputs));
            }
        }
        let task = Task {
            name: format!("uci-{}", self.set.names().0),
            train: standard(&train),
            held_out: standard(&rows.select(&aside)),
            test: standard(&test),
            ood,
        };
        let description = Description {
            input_scale: Some(inputs),
            target_scale: Some(targets),
            input_names: names[..target].to_vec(),
            output_names: names[target..].to_vec(),
            ..Description::default()
        };
        Ok((task, description))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_of_energy() {
        let Some(root) = crate::stored::data("the_protocol_of_energy", "uci/energy_efficiency.csv.gz") else {
            return;
        };
        let (task, description) = UciConfig::default().load(1, &root).unwrap();
        task.check().unwrap();
        assert_eq!(
            (task.train.inputs.rows, task.held_out.inputs.rows, task.test.inputs.rows),
            (553, 61, 154)
        );
        assert_eq!(task.ood.len(), 12);
        assert_eq!((task.ood[0].0.as_str(), task.ood[0].1.rows), ("kin8nm", 1638));
        assert!(task.ood[1].0.contains("trivial") && task.ood[2].0.contains("unscaled"));
        assert!(task.ood.iter().all(|(_, inputs)| inputs.cols == 8));
        assert_eq!(description.output_names, ["heating_load"]);
        let Targets::Regression(y) = &task.train.targets else { panic!("regression") };
        let stats = y.column_stats()[0];
        assert!(stats.mean.abs() < 1e-5 && (stats.std - 1.0).abs() < 1e-5);
        let again = UciConfig::default().load(1, &root).unwrap().0;
        assert_eq!(again, task);
    }
}
