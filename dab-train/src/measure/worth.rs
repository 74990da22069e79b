//! Whether a model predicts anything: better than always saying the commonest class, or the mean.
//!
//! answers + test targets → [`Worth`] → the warning of a fit, and the cards of its report: one judgement for both.

use super::metrics::classification;
use crate::{
    config::retrofit::Retrofit,
    data::{Table, Targets, Task, count_labels},
    model::snapshot::Scores,
    support::text::{counted, decimal},
};

/// Standard deviations that count as clear.
const CLEARLY: f64 = 2.0;
/// Test rows without which nobody can tell; of classes, rows of others than the commonest.
const LEAST: usize = 5;

/// What predictions are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// They are clearly better than what knows no inputs.
    Clear,
    /// Too few test rows: even good predictions might not be clearly better.
    Unknown,
    /// They are not clearly better, although good ones would have been.
    Nothing,
}

impl Worth {
    /// Rows from elsewhere say nothing about predictions for rows like the training rows: where most test rows are, `elsewhere` is
    /// their share, and what seemed worth nothing is unknown.
    pub const fn unless_from(self, elsewhere: Option<f64>) -> Self {
        match (self, elsewhere) {
            (Self::Nothing, Some(_)) => Self::Unknown,
            (worth, _) => worth,
        }
    }
}

/// What classes are worth, beside always saying the commonest class of the test rows; and how many rows have that class.
pub fn of_classes(labels: &[u32], count: usize, correct: &[bool]) -> (Worth, usize) {
    let counts = count_labels(labels, count);
    let (common, common_rows) =
        counts.into_iter().enumerate().max_by_key(|&(_, rows)| rows).unwrap_or_default();
    let is_common = labels.iter().map(|&label| label as usize == common);
    // Rows that only one of the two gets right.
    let gained = is_common.clone().zip(correct).filter(|&(common, &right)| right && !common).count();
    let lost = is_common.zip(correct).filter(|&(common, &right)| common && !right).count();
    let (rows, common) = (labels.len() as f64, common_rows as f64);
    let gain = gained as f64 - lost as f64;
    // More right answers than its share explains; or, where one class is nearly all, rows of the others that are found.
    let above = gain > CLEARLY * (common * (1.0 - common / rows.max(1.0))).sqrt();
    let found = gain > 0.0 && gain >= CLEARLY * ((gained + lost) as f64).sqrt();
    let worth = match labels.len() - common_rows {
        _ if above || found => Worth::Clear,
        others if others < LEAST => Worth::Unknown,
        _ => Worth::Nothing,
    };
    (worth, common_rows)
}

/// What numbers are worth, beside always saying the mean of the test rows; and the root mean square error of that.
pub fn of_numbers(given: &Table, wanted: &Table) -> (Worth, f64) {
    let (gains, trivial) = gains(given, wanted);
    let worth = match clear(&gains) {
        true => Worth::Clear,
        // Perfect predictions gain all that the mean loses.
        false if gains.len() >= LEAST && clear(&trivial) && but_for_few(&gains).is_none() => Worth::Nothing,
        false => Worth::Unknown,
    };
    (worth, (trivial.iter().sum::<f64>() / wanted.values.len().max(1) as f64).sqrt())
}

/// How much smaller the squared error of each row is than that of the mean, and the latter.
fn gains(given: &Table, wanted: &Table) -> (Vec<f64>, Vec<f64>) {
    let square = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    let means: Vec<f32> = wanted.column_stats().iter().map(|column| column.mean as f32).collect();
    let trivial: Vec<f64> = wanted.iter().map(|wanted| square(&means, wanted)).collect();
    let rows = trivial.iter().zip(given.iter().zip(wanted.iter()));
    (rows.map(|(trivial, (given, wanted))| trivial - square(given, wanted)).collect(), trivial)
}

/// Whether the mean of some gains is above 0 by more than chance.
fn clear(gains: &[f64]) -> bool {
    let rows = gains.len().max(1) as f64;
    let mean = gains.iter().sum::<f64>() / rows;
    let noise = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>().sqrt() / rows;
    mean > CLEARLY * noise
}

/// How many rows, a hundredth of all, hide that the others gain clearly; `None` where they do not. They are those that count most,
/// on either side.
fn but_for_few(gains: &[f64]) -> Option<usize> {
    let few = gains.len().div_ceil(100);
    let mut sorted = gains.to_vec();
    sorted.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    let others = sorted.get(few..).filter(|others| others.len() >= LEAST)?;
    (!clear(gains) && clear(others)).then_some(few)
}

/// What tells the classes apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classifier {
    /// A network that learnt with the codes.
    #[default]
    Learnt,
    /// Softmax regression, computed with the views.
    Linear,
    /// The last layer of the user's own network.
    Own,
}

impl Classifier {
    /// That of an experiment with these views, if there are any.
    pub fn of(retrofit: Option<&Retrofit>) -> Self {
        match retrofit {
            None => Self::Learnt,
            Some(retrofit) if retrofit.head.is_some() => Self::Own,
            Some(_) => Self::Linear,
        }
    }

    /// What else may be the reason where its classes are useless; begins with a space.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Learnt => "",
            Self::Linear => LINEAR,
            Self::Own => OWN,
        }
    }
}

/// A warning when the decoder does not beat what knows no inputs. `elsewhere` is the share of test rows that raise an alarm, where
/// that is most of them.
pub fn useless(
    task: &Task,
    scores: &Scores,
    classifier: Classifier,
    elsewhere: Option<f64>,
) -> Option<String> {
    let (worth, measured, question, few) = match &task.test.targets {
        Targets::Classes { labels, count } => {
            let correct = classification::correct_of(&scores.outputs, &task.test.targets)?;
            let (worth, common) = of_classes(labels, *count, &correct);
            let share = |n: usize| n as f64 / labels.len().max(1) as f64;
            let (accuracy, chance) = (share(correct.iter().filter(|&&right| right).count()), share(common));
            let measured = format!(
                "its accuracy is {accuracy:.3} on test rows, and always saying the commonest class gives {chance:.3}"
            );
            let others = labels.len() - common;
            let are = if others == 1 { "is" } else { "are" };
            let few =
                format!("only {others} of {} {are} of another class", counted(labels.len(), "test row"));
            (worth, measured, "are the labels those of the rows?", few)
        }
        Targets::Regression(wanted) => {
            let (worth, trivial) = of_numbers(&scores.outputs, wanted);
            let squares = scores.outputs.iter().zip(wanted.iter());
            let squares = squares.flat_map(|(g, w)| g.iter().zip(w).map(|(g, w)| f64::from(g - w).powi(2)));
            let rmse = (squares.sum::<f64>() / wanted.values.len().max(1) as f64).sqrt();
            let measured = format!(
                "its error (RMSE) is {} on test rows, and always saying the mean gives {}",
                decimal(rmse),
                decimal(trivial)
            );
            let few = match but_for_few(&gains(&scores.outputs, wanted).0) {
                Some(few) => format!(
                    "without {} of {}, the farthest out, it is clearly better: are they broken?",
                    counted(few, "row"),
                    wanted.rows
                ),
                None => format!("there are only {}", counted(wanted.rows, "test row")),
            };
            (worth, measured, "are the targets those of the rows?", few)
        }
    };
    let few = match (worth, elsewhere) {
        (Worth::Nothing, Some(share)) => format!(
            "{:.0} % of the test rows raise an alarm: they are unlike the training rows",
            100.0 * share
        ),
        _ => few,
    };
    match worth.unless_from(elsewhere) {
        Worth::Clear => None,
        Worth::Unknown => {
            Some(format!("whether the model predicts anything cannot be told: {measured}, but {few}"))
        }
        Worth::Nothing => {
            let classes = matches!(task.test.targets, Targets::Classes { .. });
            let hint = if classes { classifier.hint() } else { "" };
            Some(format!("THE MODEL PREDICTS NOTHING: {measured}; {question}{hint}"))
        }
    }
}

/// What else may be the reason where the classifier was computed.
const LINEAR: &str = " If they are, the inputs may need more than this classifier, which is linear (softmax regression): \
                      --learn trains a network, --head takes your network's own last layer. Finding strangers does not depend \
                      on it.";
const OWN: &str = " If they are, the layer of --head is another network's, or it reads other features than these rows, or its \
                   classes have another order. Finding strangers depends on it where a view takes the energy of its logits.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::Split, support::random::Random};

    fn column(random: &mut Random) -> Table {
        Table::column((0..200).map(|_| 5.0 + random.normal() as f32).collect())
    }

    fn warned(known: Targets, wanted: Targets, outputs: Table) -> Option<String> {
        let inputs = Table::column(vec![0.0; 200]);
        let split = |targets| Split { inputs: inputs.clone(), targets };
        let (train, held_out, test) = (split(known), split(wanted.clone()), split(wanted));
        let task = Task { name: "worth".into(), train, held_out, test, ood: Vec::new() };
        let scores = Scores {
            uncertainty: (0..200).map(|row| 1.0 + row as f32).collect(),
            outputs,
            ..Scores::default()
        };
        useless(&task, &scores, Classifier::Learnt, None)
    }

    #[test]
    fn numbers_that_the_inputs_say_nothing_about_are_announced() {
        let mut random = Random::new(2, "worth");
        let (known, wanted, other) = (column(&mut random), column(&mut random), column(&mut random));
        let numbers = |table: &Table| Targets::Regression(table.clone());
        // Noise, the mean with a little noise, and near the truth.
        let shy = Table::column(other.values.iter().map(|y| 5.0 + 0.01 * (y - 5.0)).collect());
        for useless in [other, shy] {
            let warning = warned(numbers(&known), numbers(&wanted), useless).unwrap();
            assert!(warning.contains("THE MODEL PREDICTS NOTHING"), "{warning}");
        }
        let near = Table::column(wanted.values.iter().map(|y| y + 0.1).collect());
        assert_eq!(warned(numbers(&known), numbers(&wanted), near), None);
    }

    #[test]
    fn one_broken_row_is_no_useless_model() {
        let mut random = Random::new(4, "worth");
        let (known, wanted, other) = (column(&mut random), column(&mut random), column(&mut random));
        let numbers = |table: &Table| Targets::Regression(table.clone());
        let broken = |mut outputs: Table, value: f32| {
            outputs.values[7] = value;
            warned(numbers(&known), numbers(&wanted), outputs)
        };
        let near = Table::column(wanted.values.iter().map(|y| y + 0.1).collect());
        assert_eq!(broken(near.clone(), 6.0), None);
        let said = broken(near, 500.0).unwrap();
        assert!(said.contains("cannot be told") && said.contains("without 2 rows of 200"), "{said}");
        assert!(broken(other, 500.0).unwrap().contains("THE MODEL PREDICTS NOTHING"));
    }

    #[test]
    fn predictions_for_rows_from_elsewhere_say_nothing() {
        let labels: Vec<u32> = (0..150).map(|row| u32::from(row < 30)).collect();
        let targets = Targets::Classes { labels, count: 2 };
        let split = || Split { inputs: Table::column(vec![0.0; 150]), targets: targets.clone() };
        let task =
            Task { name: "far".into(), train: split(), held_out: split(), test: split(), ood: Vec::new() };
        let outputs = Table { rows: 150, cols: 2, values: [1.0, 0.0].repeat(150) };
        let scores = Scores { outputs, ..Scores::default() };
        let said = useless(&task, &scores, Classifier::Linear, Some(0.98)).unwrap();
        assert!(said.contains("cannot be told") && said.contains("98 % of the test rows"), "{said}");
        assert!(!said.contains("NOTHING") && !said.contains("--learn"), "{said}");
    }

    #[test]
    fn random_labels_are_announced() {
        let mut random = Random::new(3, "worth");
        let labels: Vec<u32> = (0..200).map(|_| u32::from(random.uniform() < 0.4)).collect();
        let classes = || Targets::Classes { labels: labels.clone(), count: 2 };
        let guess = Table { rows: 200, cols: 2, values: (0..400).map(|_| random.normal() as f32).collect() };
        assert!(warned(classes(), classes(), guess).unwrap().contains("THE MODEL PREDICTS NOTHING"));
        let values = labels.iter().flat_map(|&label| [-(label as f32), label as f32]).collect();
        assert_eq!(warned(classes(), classes(), Table { rows: 200, cols: 2, values }), None);
    }
    #[test]
    fn a_shout_needs_rows_of_other_classes() {
        let of = |others: usize, found: usize, lost: usize| {
            let labels: Vec<u32> = (0..150).map(|row| u32::from(row < others)).collect();
            let correct: Vec<bool> =
                (0..150).map(|row| row < found || (others..150 - lost).contains(&row)).collect();
            of_classes(&labels, 2, &correct)
        };
        assert_eq!(of(1, 0, 0), (Worth::Unknown, 149), "one row of another class says nothing");
        assert_eq!(of(1, 1, 0).0, Worth::Unknown);
        assert_eq!(of(5, 4, 0).0, Worth::Clear, "four of five rare rows are found");
        assert_eq!(of(5, 0, 0).0, Worth::Nothing);
        assert_eq!(of(40, 10, 10).0, Worth::Nothing);
        assert_eq!(of(40, 10, 0).0, Worth::Clear);
    }

    #[test]
    fn numbers_of_few_rows_are_not_judged() {
        let wanted = Table::column(vec![1.0, 2.0, 9.0]);
        assert_eq!(of_numbers(&Table::column(vec![9.0, 1.0, 2.0]), &wanted).0, Worth::Unknown);
        let wanted = Table::column((0..100).map(|i| (i % 10) as f32).collect());
        assert_eq!(of_numbers(&Table::column(vec![4.5; 100]), &wanted).0, Worth::Nothing);
        assert_eq!(of_numbers(&wanted, &wanted), (Worth::Clear, 8.25_f64.sqrt()));
    }

    #[test]
    fn a_calm_sentence_says_what_is_missing_and_a_shout_names_the_classifier() {
        let one = |classifier: Classifier, rare: usize| {
            let labels: Vec<u32> = (0..150).map(|row| u32::from(row < rare)).collect();
            let targets = Targets::Classes { labels, count: 2 };
            let split = || Split { inputs: Table::column(vec![0.0; 150]), targets: targets.clone() };
            let task = Task {
                name: "one".into(),
                train: split(),
                held_out: split(),
                test: split(),
                ood: Vec::new(),
            };
            let outputs = Table { rows: 150, cols: 2, values: [1.0, 0.0].repeat(150) };
            useless(&task, &Scores { outputs, ..Scores::default() }, classifier, None).unwrap()
        };
        let said = one(Classifier::Linear, 1);
        assert!(
            said.contains("cannot be told") && said.contains("only 1 of 150 test rows is of another class"),
            "{said}"
        );
        assert!(!said.contains("NOTHING"), "{said}");
        let said = one(Classifier::Linear, 30);
        for words in
            ["THE MODEL PREDICTS NOTHING", "are the labels those", "linear", "--learn", "--head", "strangers"]
        {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!one(Classifier::Learnt, 30).contains("linear"));
        let said = one(Classifier::Own, 30);
        assert!(
            said.contains("the layer of --head is another network's") && !said.contains("linear"),
            "{said}"
        );
    }
}
