//! The answer in words: measured numbers in, sentences out.
//!
//! [`Facts`] → [`answers`] → the cards at the top of the page; [`headline`] → its first sentence, and the command's line.
//!
//! A sentence claims no more than its numbers do. What was not measured is said to be unknown, together with what would tell.

use super::{
    contest::{Contest, Outcome},
    origin::Origin,
    promise::p_values,
};
use crate::{
    measure::{
        alarms::AlarmRate,
        evaluate::Interval,
        metrics::Positive,
        worth::{Classifier, Worth},
    },
    support::text::counted,
};

/// A set of which less is found is called badly found.
const WELL_FOUND: f64 = 0.8;
/// An error that is smaller than the mean's by less than this share is hardly better.
const SLIGHT: f64 = 0.05;
/// A band is called too wide where it is so many times as wide as a constant one, on average.
const WIDER: f64 = 1.25;
/// Found strangers must be this many times the false alarms to be called found at all; so must errors.
const TIMES: f64 = 2.0;

/// What the band of a regression is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Share of test targets in it.
    pub coverage: f64,
    /// Its mean half-width, in units of that of a band as wide for every input.
    pub against_constant: Option<f64>,
    /// The latter's half-width, where there is one target.
    pub constant: Option<f64>,
}

impl Band {
    /// That of a run.
    pub fn of(interval: &Interval) -> Self {
        let constant = match *interval.constants {
            [one] => Some(one),
            _ => None,
        };
        Self { coverage: interval.coverage, against_constant: interval.against_constant(), constant }
    }

    /// How much wider than a constant band it is on average, where that is clear.
    fn excess(&self) -> Option<f64> {
        self.against_constant.filter(|&ratio| ratio > WIDER)
    }

    fn words(&self) -> String {
        let held = format!(" {} of the targets lie in the band ŷ ± 2su.", percent(self.coverage));
        let Some(ratio) = self.excess() else { return held };
        let constant = self.constant.map_or_else(String::new, |half| format!(" of ±{}", rounded(half)));
        format!(
            "{held} On average it is {ratio:.1} times as wide as a constant band{constant} for the same promise: here u tells \
             strangers, not where errors are large, so take the constant one for familiar inputs."
        )
    }
}

/// How good the predictions are, beside predictions that ignore the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skill {
    /// Share of right classes; share of the commonest class among the same rows; what that is worth.
    Accuracy(f64, f64, Worth),
    /// Root mean square error; that of the best constant on the same rows; the band, if there is one; what
    /// that is worth.
    Error(f64, f64, Option<Band>, Worth),
}

impl Skill {
    const fn worth(self) -> Worth {
        match self {
            Self::Accuracy(.., worth) | Self::Error(.., worth) => worth,
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Held-out rows behind the p-values; `None` without a calibration table.
    pub held_out: Option<usize>,
    /// Fresh familiar rows.
    pub rows: usize,
    /// False alarms among them, at the rates of the model.
    pub alarms: Vec<AlarmRate>,
    /// Each set of strangers, and the share of it that raises an alarm.
    pub found: Vec<(String, f64)>,
    /// How many errors, and which share of all test rows, are called ambiguous, doubtful or unfamiliar.
    pub flagged: Option<(usize, f64)>,
    /// Strangers and errors, beside the baselines.
    pub contests: Vec<Contest>,
    /// How good the predictions are.
    pub skill: Option<Skill>,
    /// What tells the classes apart.
    pub classifier: Classifier,
    /// Where the rows come from.
    pub origin: Origin,
    /// Bytes of flash and multiply-adds of a call.
    pub cost: (usize, u64),
}

/// Whether an answer is what one hopes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It is.
    Good,
    /// In part.
    Mixed,
    /// It is not.
    Bad,
    /// Nobody knows.
    Unknown,
    /// It is neither good nor bad.
    Fact,
}

/// One question, answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What a user asks.
    pub question: &'static str,
    /// Whether the answer is a good one.
    pub tone: Tone,
    /// The answer in a word or a number.
    pub short: String,
    /// The answer in a sentence or two.
    pub words: String,
    /// Its part of the headline; empty if it has none.
    pub clause: String,
}

impl Answer {
    /// An answer that the headline does not have.
    pub(super) fn new(
        question: &'static str,
        tone: Tone,
        short: impl Into<String>,
        words: impl Into<String>,
    ) -> Self {
        Self { question, tone, short: short.into(), words: words.into(), clause: String::new() }
    }

    /// The same with its part of the headline.
    pub(super) fn in_headline(self, clause: impl Into<String>) -> Self {
        Self { clause: clause.into(), ..self }
    }
}

/// `5 %`, `4.8 %`, `97 %`: two digits, three next to 100.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    let fine = value < 9.95 || (99.05..99.95).contains(&value);
    let text = if fine { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// `a`, `a and b`, `a, b and c`.
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect::<String>() + ".")
}

/// The first sentence of the page.
pub fn headline(answers: &[Answer]) -> String {
    let clauses: Vec<&str> = answers.iter().map(|a| a.clause.as_str()).filter(|c| !c.is_empty()).collect();
    sentence(&clauses.join("; "))
}

/// Every question that the facts answer.
pub fn answers(facts: &Facts) -> Vec<Answer> {
    let mut list: Vec<Answer> =
        facts.skill.and_then(|skill| no_skill(skill, facts.classifier)).into_iter().collect();
    list.extend([strangers(facts), baselines(facts), p_values(facts)]);
    list.extend(errors(facts));
    list.extend(facts.skill.map(skill));
    list.push(cost(facts));
    list
}

/// The promised rate of alarms, and whether it is kept.
pub(super) fn doubtful(facts: &Facts) -> Option<&AlarmRate> {
    facts.alarms.first()
}

fn strangers(facts: &Facts) -> Answer {
    let question = "Does it find strangers?";
    if facts.found.is_empty() {
        let words = "No rows from elsewhere were given. Give some with --ood NAME=FILE.";
        return Answer::new(question, Tone::Unknown, "Not tried", words)
            .in_headline("nobody has tried whether it finds strangers (--ood NAME=FILE)");
    }
    let Some(promised) = doubtful(facts) else {
        let auroc: Vec<String> = facts
            .contests
            .iter()
            .filter(|contest| contest.job == Positive::OutOfDistribution)
            .filter_map(|contest| Some(format!("{:.3} for {}", contest.main()?.auroc.mean, contest.name)))
            .collect();
        let auroc = listed(&auroc);
        let words = format!("AUROC {auroc}. Without held-out rows there is no threshold.");
        return Answer::new(question, Tone::Unknown, "No threshold", words)
            .in_headline(format!("ranks strangers with an AUROC of {auroc}, but has no threshold"));
    };
    let by_share = |a: &&(String, f64), b: &&(String, f64)| a.1.total_cmp(&b.1);
    let least = facts.found.iter().min_by(by_share).map_or(0.0, |found| found.1);
    let most = facts.found.iter().max_by(by_share).map_or(0.0, |found| found.1);
    let each: Vec<String> =
        facts.found.iter().map(|(name, share)| format!("{} of {name}", percent(*share))).collect();
    let short = match facts.found.len() {
        _ if percent(least) == percent(most) => percent(least),
        _ => format!("{} to {}", percent(least).trim_end_matches(" %"), percent(most)),
    };
    let tone = match least {
        share if share < TIMES * promised.actual.max(promised.nominal) => Tone::Bad,
        share if share < WELL_FOUND => Tone::Mixed,
        _ => Tone::Good,
    };
    let rate = percent(promised.reached());
    let actual = match promised.kept {
        _ if facts.rows == 0 => String::new(),
        true => format!(" {} of the familiar rows did too.", percent(promised.actual)),
        false => format!(" But so did {} of the familiar rows.", percent(promised.actual)),
    };
    let clause = match promised.kept {
        true => format!("finds {} at {rate} false alarms", strange(&facts.found, &short)),
        false => format!(
            "finds {}, but with {} false alarms instead of {rate}",
            strange(&facts.found, &short).trim_end_matches(','),
            percent(promised.actual)
        ),
    };
    let coarse = match promised.is_coarse() {
        true => format!(
            ", the most that {} allow below {}",
            counted(promised.held_out, "held-out row"),
            percent(promised.nominal)
        ),
        false => String::new(),
    };
    let words =
        format!("{} raised an alarm, at a threshold for {rate} false alarms{coarse}.{actual}", listed(&each));
    Answer::new(question, tone, short, words).in_headline(clause)
}

/// `97 % of strangers (8 and 9)`, or the range over several sets, which ends with a comma where it depends on them.
fn strange(found: &[(String, f64)], short: &str) -> String {
    match found {
        [(name, _)] => format!("{short} of strangers ({name})"),
        _ if !short.contains(" to ") => format!("{short} of strangers in each set"),
        _ => format!("{short} of strangers, depending on the set,"),
    }
}

fn baselines(facts: &Facts) -> Answer {
    let question = "Is it better than simple methods?";
    // Strangers are the model's first job; its errors are a question of their own.
    let jobs = facts.contests.iter().filter(|contest| contest.job == Positive::OutOfDistribution);
    let compared: Vec<(Outcome, &Contest)> =
        jobs.filter_map(|contest| Some((contest.best_rival()?.outcome?, contest))).collect();
    if compared.is_empty() {
        let why = if facts.found.is_empty() {
            "There are no strangers to find."
        } else {
            "This page was made without training rows, which simple methods need; `dab fit` compares them."
        };
        return Answer::new(question, Tone::Unknown, "Not compared", why);
    }
    let of = |wanted: Outcome| compared.iter().filter(move |(outcome, _)| *outcome == wanted);
    let against = |(_, contest): &(Outcome, &Contest)| {
        let rival = contest.best_rival().map_or("", |rival| rival.name.as_str());
        format!("{rival} on {}", contest.name)
    };
    let names = |wanted: Outcome| of(wanted).map(against).collect::<Vec<_>>();
    let (lost, tied, won) = (names(Outcome::Loses), names(Outcome::Ties), of(Outcome::Wins).count());
    let figures: Vec<String> = compared
        .iter()
        .filter_map(|(_, contest)| {
            let (own, rival) = (contest.main()?, contest.best_rival()?);
            let (own, best, name) = (own.auroc.mean, rival.auroc.mean, &rival.name);
            Some(format!("{}: AUROC {own:.3}, the best simple method ({name}) {best:.3}", contest.name))
        })
        .collect();
    let mut clauses = Vec::new();
    if won > 0 && lost.is_empty() && tied.is_empty() {
        clauses.push("beats every simple method".to_owned());
    } else if won > 0 {
        clauses.push(format!("beats every simple method on {won} of {}", counted(compared.len(), "set")));
    }
    if !tied.is_empty() {
        clauses.push(format!("ties with {}", listed(&tied)));
    }
    if !lost.is_empty() {
        clauses.push(format!("loses to {}", listed(&lost)));
    }
    let (tone, short) = match (lost.len(), tied.len(), won) {
        (0, 0, _) => (Tone::Good, "Yes".to_owned()),
        (0, _, 0) => (Tone::Good, "It ties with the best".to_owned()),
        (0, ..) => (Tone::Good, "Never worse".to_owned()),
        (n, ..) if n == compared.len() => (Tone::Bad, "No".to_owned()),
        (n, ..) => (Tone::Mixed, format!("Not on {n} of {}", counted(compared.len(), "set"))),
    };
    Answer::new(question, tone, short, figures.join(". ") + ".").in_headline(listed(&clauses))
}

fn errors(facts: &Facts) -> Option<Answer> {
    let contest = facts.contests.iter().find(|contest| contest.job == Positive::Misclassified)?;
    let own = contest.main()?.auroc.mean;
    let beside = contest.best_rival().map_or_else(String::new, |rival| {
        let verb = match rival.outcome {
            Some(Outcome::Wins) => "better than",
            Some(Outcome::Loses) => "worse than",
            _ => "not clearly better or worse than",
        };
        format!(", {verb} {} ({:.3})", rival.name, rival.auroc.mean)
    });
    let (wrong, right) = contest.counts;
    let (short, share) = match facts.flagged {
        Some((errors, all)) => (
            format!("{errors} of {wrong} flagged"),
            format!(
                "{errors} of its {} raised some alarm, as did {} of all rows. ",
                counted(wrong, "error"),
                percent(all)
            ),
        ),
        None => (format!("AUROC {own:.3}"), String::new()),
    };
    let tone = match contest.best_rival().and_then(|rival| rival.outcome) {
        Some(Outcome::Loses) => Tone::Mixed,
        _ if own < 0.6 => Tone::Bad,
        // Alarms that come as often at right answers say nothing about errors.
        _ if facts.flagged.is_some_and(|(errors, all)| (errors as f64) < TIMES * all * wrong as f64) => {
            Tone::Mixed
        }
        // Most errors are missed.
        _ if facts.flagged.is_some_and(|(errors, _)| 2 * errors < wrong) => Tone::Mixed,
        _ => Tone::Good,
    };
    let rows = counted(wrong + right, "row");
    let words = format!("{share}Wrong before right answers: AUROC {own:.3}{beside}, of {rows}.");
    Some(Answer::new("Does it know its own errors?", tone, short, words))
}

/// What must be said before anything else.
fn no_skill(skill: Skill, classifier: Classifier) -> Option<Answer> {
    let (words, clause) = match skill {
        _ if skill.worth() != Worth::Nothing => return None,
        Skill::Accuracy(accuracy, commonest, _) => (
            format!(
                "Its classes are right for {} of the rows; always answering the commonest class is right for {}. Either \
                 the labels do not belong to these rows, or they cannot be told from these inputs{}. Finding strangers does \
                 not depend on it.",
                percent(accuracy),
                percent(commonest),
                match classifier {
                    Classifier::Linear =>
                        ", or they need more than this classifier, which is linear: dab fit --learn trains a network, \
                         --head takes the last layer of yours",
                    Classifier::Own => ", or the layer of --head is another network's",
                    Classifier::Learnt => "",
                }
            ),
            "its classes are no better than guessing: do not use them",
        ),
        Skill::Error(rmse, trivial, ..) => (
            format!(
                "Its error is {}; always predicting the mean has {}. Either the targets do not belong to these rows, or \
                 they cannot be told from these inputs.",
                rounded(rmse),
                rounded(trivial)
            ),
            "its predictions are no better than the mean: do not use them",
        ),
    };
    Some(Answer::new("Has it learnt anything?", Tone::Bad, "No", words).in_headline(clause))
}

fn skill(skill: Skill) -> Answer {
    let wide = matches!(skill, Skill::Error(_, _, Some(band), _) if band.excess().is_some());
    let slight = matches!(skill, Skill::Error(rmse, trivial, ..) if rmse > (1.0 - SLIGHT) * trivial);
    let tone = match skill.worth() {
        Worth::Clear if slight || wide => Tone::Mixed,
        Worth::Clear => Tone::Good,
        Worth::Unknown => Tone::Unknown,
        Worth::Nothing => Tone::Bad,
    };
    let few = match tone {
        Tone::Unknown => " These test rows cannot tell whether that is better.",
        Tone::Mixed if slight => " That is hardly better.",
        _ => "",
    };
    let (short, words) = match skill {
        Skill::Accuracy(accuracy, commonest, _) => (
            percent(accuracy),
            format!(
                "of the classes are right; always answering the commonest one gives {}.{few}",
                percent(commonest)
            ),
        ),
        Skill::Error(rmse, trivial, band, _) => (
            format!("±{}", rounded(rmse)),
            format!(
                "root mean square error; always predicting the mean has {}.{few}{}",
                rounded(trivial),
                band.map_or_else(String::new, |band| band.words())
            ),
        ),
    };
    Answer::new("Are its predictions right?", tone, short, words)
}

fn cost(facts: &Facts) -> Answer {
    let (bytes, multiply_adds) = facts.cost;
    let size = |n: f64| match n {
        n if n >= 1e6 => format!("{:.1} million", n / 1e6),
        n if n >= 1e4 => format!("{:.0},000", n / 1e3),
        n => format!("{n:.0}"),
    };
    let (short, adds) = (format!("{} KB", (bytes as f64 / 1024.0).ceil()), size(multiply_adds as f64));
    Answer::new(
        "What does it cost?",
        Tone::Fact,
        short,
        format!("of flash, and {adds} multiply-adds per input."),
    )
}

/// Three significant digits.
pub fn rounded(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let decimals = (2.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{x:.decimals$}")
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
