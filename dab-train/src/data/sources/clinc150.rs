//! Sentence features of 150 intents, with out-of-scope questions and far-away text as OOD.
//!
//! npz (MiniLM, 384 columns, unit length, f16) → `Task`: 15 000 train, 3 000 held out, 4 500 test.
//!
//! ```text
//! ood = oos (1 000 near misses), trec, sst2, agnews, wiki (about 2 000 each, far)
//! ```
//!
//! The set brings its own split, so the seed changes nothing here. Two of the 384 columns (128 and 224, counted from 1)
//! are zero throughout: a covariance of these features has no inverse without a ridge.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::data::{
    Description, Split, Targets, Task,
    files::{Labels, Npz, number_classes},
    stored,
};

/// The far-away sets, by their names in the file.
const FAR: [&str; 4] = ["trec", "sst2", "agnews", "wiki"];

/// Settings of the intent experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Clinc150Config {
    /// Whether far-away text joins the out-of-scope questions.
    pub far: bool,
}

impl Default for Clinc150Config {
    fn default() -> Self {
        Self { far: true }
    }
}

impl Clinc150Config {
    pub(crate) fn load(&self, root: &Path) -> Result<(Task, Description)> {
        let mut npz = Npz::open(&stored(root, "clinc150/clinc150_minilm_f16.npz")?)?;
        let parts = ["train", "val", "test"];
        let labels = parts.iter().map(|p| npz.labels(&format!("y_{p}"))).collect::<Result<Vec<_>>>()?;
        let (labels, numbers) = number_classes(&labels)?;
        let mut splits = Vec::new();
        for (part, labels) in parts.iter().zip(labels) {
            let inputs = npz.table(&format!("x_{part}"))?;
            splits.push(Split { inputs, targets: Targets::Classes { labels, count: numbers.len() } });
        }
        let mut ood = vec![("oos".to_string(), npz.table("x_oos_test")?)];
        if self.far {
            let mut text = Npz::open(&stored(root, "text_ood/text_ood_minilm_f16.npz")?)?;
            for name in FAR {
                ood.push((name.into(), text.table(&format!("x_{name}"))?));
            }
        }
        let output_names = match npz.labels("intent_names")? {
            Labels::Words(words) => words,
            Labels::Numbers(_) => numbers,
        };
        let [train, held_out, test]: [Split; 3] =
            splits.try_into().map_err(|_| anyhow::anyhow!("three parts give three splits"))?;
        let task = Task { name: "clinc150".into(), train, held_out, test, ood };
        Ok((task, Description { output_names, ..Description::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_set_has_its_published_shape() {
        let Some(root) =
            crate::stored::data("the_stored_set_has_its_published_shape", "clinc150/clinc150_minilm_f16.npz")
        else {
            return;
        };
        let (task, description) = Clinc150Config::default().load(&root).unwrap();
        task.check().unwrap();
        assert_eq!((task.train.inputs.rows, task.train.inputs.cols), (15_000, 384));
        assert_eq!((task.held_out.inputs.rows, task.test.inputs.rows), (3_000, 4_500));
        assert_eq!(task.ood.iter().map(|(_, t)| t.rows).collect::<Vec<_>>(), [1000, 2000, 1821, 2000, 2000]);
        assert_eq!(description.output_names.len(), 150);
        assert!(task.warnings()[0].contains("columns 128, 224"));
    }
}
