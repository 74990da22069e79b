//! Rows that a person should look at: the strangest, the most ambiguous, and the strangers that nobody noticed.
//!
//! judged rows → a few [`Example`]s, each with the reason in words.

use dab_core::Verdict;

use super::{
    subject::Subject,
    words::{percent, rounded},
};
use crate::{
    data::Targets,
    measure::assessed::{Judged, JudgedSet},
};

/// Rows in each list.
const SHOWN: usize = 5;

/// One row and why it is here.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Which row of the set, counting from 1.
    pub row: usize,
    /// What it is called, where rows have names: of a file's path the last two parts.
    pub name: Option<String>,
    pub score: f32,
    pub p_value: Option<f32>,
    pub verdict: Option<&'static str>,
    /// The reason.
    pub words: String,
}

/// A headed list of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Examples {
    pub title: String,
    pub advice: String,
    pub rows: Vec<Example>,
}

/// All lists that have a row.
pub fn examples(subject: &Subject) -> Vec<Examples> {
    let strangeness = |row: &Judged| (row.said.score(), row.said.p_value);
    let ambiguous = subject.test.rows.iter().any(|row| row.said.ambiguity.is_some());
    let (test, names) = (&subject.test, &subject.names.test);
    let mut lists = vec![Examples {
        title: "Strangest test rows".into(),
        advice: "Broken sensors, wrong labels and rare cases show up here.".into(),
        rows: top(test, names, 1.0, strangeness, |index, row| strange(subject, Some(index), row)),
    }];
    if ambiguous {
        let of = |row: &Judged| (row.said.ambiguity.unwrap_or(f32::NEG_INFINITY), row.said.ambiguity_p);
        lists.push(Examples {
            title: "Most ambiguous test rows".into(),
            advice: "Between two classes: the label, or the classes themselves, may be in doubt.".into(),
            rows: top(test, names, 1.0, of, |index, row| between(subject, index, row)),
        });
    }
    for (at, set) in subject.ood.iter().enumerate() {
        let names = subject.names.ood.get(at).map_or(&[][..], Vec::as_slice);
        let missed = set.rows.iter().filter(|row| !row.alarms()).count();
        let advice = match missed {
            0 => "Even these raise an alarm.".into(),
            _ if missed < SHOWN.min(set.rows.len()) => format!("Only the first {missed} raise no alarm."),
            _ => "These strangers raise no alarm.".into(),
        };
        lists.push(Examples {
            title: format!("Most familiar rows of {}", set.name),
            advice,
            rows: top(set, names, -1.0, strangeness, |_, row| strange(subject, None, row)),
        });
    }
    lists.retain(|list| !list.rows.is_empty());
    lists
}

/// The rows with the largest score times `sign`, each with the score and the p-value that it is here for, and its words.
fn top(
    set: &JudgedSet,
    names: &[String],
    sign: f32,
    shown: impl Fn(&Judged) -> (f32, Option<f32>),
    words: impl Fn(usize, &Judged) -> String,
) -> Vec<Example> {
    let key = |row: usize| sign * shown(&set.rows[row]).0;
    let mut order: Vec<usize> = (0..set.rows.len()).collect();
    order.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
    order
        .into_iter()
        .take(SHOWN)
        .map(|index| {
            let row = &set.rows[index];
            let (score, p_value) = shown(row);
            Example {
                row: index + 1,
                name: names.get(index).map(|name| last_parts(name)),
                score,
                p_value,
                verdict: row.said.verdict.map(Verdict::name),
                words: words(index, row),
            }
        })
        .collect()
}

/// The last two parts of a path: of a picture its class and file.
fn last_parts(path: &str) -> String {
    let parts: Vec<&str> = path.rsplitn(3, '/').take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

/// What a row is nearest to.
fn strange(subject: &Subject, index: Option<usize>, row: &Judged) -> String {
    let (code, distance) = (row.said.nearest, rounded(f64::from(row.said.nearest_distance)));
    let mut words = format!("nearest to code {code}, at {distance} nats");
    if let Some([(class, share), _]) = row.classes().filter(|_| subject.classifies()) {
        words += &format!("; would be called {} ({})", subject.classes[class], percent(f64::from(share)));
    }
    if let Some(view) = row.said.view.and_then(|view| subject.views.get(view)) {
        words += &format!("; most surprised: {view}");
    }
    words + &truth(subject, index)
}

/// Which classes a row lies between.
fn between(subject: &Subject, index: usize, row: &Judged) -> String {
    let Some([first, second]) = row.classes() else { return String::new() };
    let [a, b] = [first, second]
        .map(|(class, share)| format!("{} ({})", subject.classes[class], percent(f64::from(share))));
    format!("between {a} and {b}{}", truth(subject, Some(index)))
}

/// What a test row should have given.
fn truth(subject: &Subject, index: Option<usize>) -> String {
    let (Some(Targets::Classes { labels, .. }), Some(index)) = (&subject.targets, index) else {
        return String::new();
    };
    labels
        .get(index)
        .map_or_else(String::new, |&label| format!("; labelled {}", subject.classes[label as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_called_by_its_class_and_file() {
        assert_eq!(last_parts("data/test/big cross/11.jpg"), "big cross/11.jpg");
        assert_eq!(last_parts("/a/rows.npz:x:3"), "a/rows.npz:x:3");
        assert_eq!(last_parts("rows.csv:3"), "rows.csv:3");
    }
}
