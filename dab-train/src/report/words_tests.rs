//! Every case of the words: what was measured, what was not, and what went wrong.

use super::*;
use crate::{
    measure::metrics::Summary,
    report::contest::{Entry, Role},
};

fn alarms(nominal: f32, actual: f64, kept: bool) -> AlarmRate {
    let expected = [0.02, 0.09];
    AlarmRate {
        expected,
        actual,
        kept,
        ..AlarmRate::new(("unfamiliarity", "doubtful"), nominal, &[], 118, 2)
    }
}

fn entry(name: &str, auroc: f64, outcome: Option<Outcome>) -> Entry {
    let (auroc, main) = (Summary::of(&[auroc]).unwrap(), outcome.is_none());
    let role = if main { Role::Unfamiliarity } else { Role::Rival };
    Entry { name: name.into(), role, main, auroc, second: None, outcome, gap: None }
}

fn contest(name: &str, own: f64, rival: f64, outcome: Outcome) -> Contest {
    let entries = vec![entry("1-NN", rival, Some(outcome)), entry("dab", own, None)];
    Contest { name: name.into(), job: Positive::OutOfDistribution, counts: (354, 288), entries }
}

/// A good model on digits.
fn good() -> Facts {
    Facts {
        held_out: Some(118),
        rows: 288,
        alarms: vec![alarms(0.05, 0.048, true)],
        found: vec![("8 and 9".into(), 0.97)],
        contests: vec![contest("8 and 9", 0.99, 0.994, Outcome::Ties)],
        skill: Some(Skill::Accuracy(0.996, 0.13, Worth::Clear)),
        cost: (120_097, 24_000),
        ..Facts::default()
    }
}

fn told(facts: &Facts) -> String {
    let all = answers(facts);
    let each: Vec<String> = all.iter().map(|a| format!("{} {} {}", a.question, a.short, a.words)).collect();
    format!("{}\n{}", headline(&all), each.join("\n"))
}

#[track_caller]
fn says(facts: &Facts, parts: &[&str]) {
    let words = told(facts);
    for part in parts {
        assert!(words.contains(part), "{part:?} is missing in\n{words}");
    }
}

#[test]
fn a_good_model_is_praised_in_one_sentence() {
    let first = headline(&answers(&good()));
    assert_eq!(
        first,
        "Finds 97 % of strangers (8 and 9) at 5 % false alarms; ties with 1-NN on 8 and 9; trust its p-values: 4.8 % at 5 %."
    );
    says(
        &good(),
        &[
            "It ties with the best",
            "99.6 % of the classes are right",
            "118 KB of flash, and 24,000 multiply-adds",
        ],
    );
    assert!(answers(&good()).iter().all(|answer| matches!(answer.tone, Tone::Good | Tone::Fact)));
}

#[test]
fn without_strangers_nothing_is_claimed_about_them() {
    let facts = Facts { found: Vec::new(), contests: Vec::new(), ..good() };
    says(
        &facts,
        &[
            "Nobody has tried whether it finds strangers",
            "Not tried",
            "--ood NAME=FILE",
            "There are no strangers",
        ],
    );
    assert!(!told(&facts).contains("Finds"));
}

#[test]
fn without_fresh_rows_the_p_values_are_not_judged() {
    let facts = Facts { rows: 0, skill: None, contests: Vec::new(), ..good() };
    says(&facts, &["nobody has tried its p-values", "No fresh familiar rows were given"]);
    assert!(!told(&facts).contains("rust its p-values"));
}

#[test]
fn fewer_rows_than_one_alarm_takes_say_nothing_about_p_values() {
    let few = |rows: usize| Facts { rows, alarms: vec![alarms(0.05, 1.0 / rows as f64, true)], ..good() };
    says(&few(19), &["19 rows are too few to try its p-values", "That is too few rows to tell"]);
    assert!(!told(&few(19)).contains("trust its"));
    says(&few(20), &["trust its p-values: 5 % at 5 %"]);
}

#[test]
fn few_held_out_rows_are_named() {
    says(&Facts { held_out: Some(50), ..good() }, &["Only 50 rows calibrate it", "1/51", "Yes, coarsely"]);
}

#[test]
fn a_model_without_calibration_has_no_p_values() {
    let facts = Facts { held_out: None, alarms: Vec::new(), ..good() };
    says(
        &facts,
        &["it has no p-values", "There are none", "AUROC of 0.990 for 8 and 9, but has no threshold"],
    );
}

#[test]
fn p_values_that_break_their_promise_are_not_to_be_trusted() {
    let facts = Facts { alarms: vec![alarms(0.05, 0.206, false)], ..good() };
    says(
        &facts,
        &[
            "do not trust its p-values of unfamiliarity: 21 % at 5 %",
            "but with 21 % false alarms instead of 5 %",
            "5 % were promised; chance allows 2 % to 9 %",
            "--calibration FILE",
        ],
    );
    let careful = Facts { alarms: vec![alarms(0.05, 0.004, true)], ..good() };
    says(&careful, &["alarms are rarer than promised (0.4 % at 5 %)", "Too careful"]);
}

#[test]
fn a_promise_that_breaks_at_one_rate_only_is_broken() {
    let facts = Facts { alarms: vec![alarms(0.05, 0.05, true), alarms(0.01, 0.1, false)], ..good() };
    says(&facts, &["do not trust its p-values of unfamiliarity: 10 % at 1 %"]);
}

#[test]
fn what_is_no_better_than_guessing_is_said_first() {
    let facts = Facts { skill: Some(Skill::Accuracy(0.11, 0.13, Worth::Nothing)), ..good() };
    let first = headline(&answers(&facts));
    assert!(first.starts_with("Its classes are no better than guessing: do not use them; "), "{first}");
    let facts = Facts { skill: Some(Skill::Error(80.6, 77.3, Some(0.94), Worth::Nothing)), ..good() };
    says(
        &facts,
        &[
            "Its predictions are no better than the mean",
            "error is 80.6",
            "94 % of the targets lie in the band",
        ],
    );
}

#[test]
fn a_model_that_predicts_nothing_has_no_tick() {
    let tones = |facts: &Facts| {
        answers(facts)
            .into_iter()
            .filter(|answer| {
                answer.question.contains("predictions right") || answer.question.contains("learnt")
            })
            .map(|answer| answer.tone)
            .collect::<Vec<_>>()
    };
    // A little above the commonest class, and within chance of it.
    let nothing = Skill::Accuracy(0.29, 0.27, Worth::Nothing);
    let facts = Facts { skill: Some(nothing), classifier: Classifier::Linear, ..good() };
    assert_eq!(tones(&facts), [Tone::Bad, Tone::Bad]);
    says(
        &facts,
        &["which is linear", "--learn trains a network", "--head", "Finding strangers does not depend on it"],
    );
    assert!(!told(&Facts { classifier: Classifier::Learnt, ..facts.clone() }).contains("linear"));
    says(&Facts { classifier: Classifier::Own, ..facts }, &["the layer of --head is another network's"]);
    let unknown = Facts { skill: Some(Skill::Accuracy(0.993, 0.993, Worth::Unknown)), ..good() };
    assert_eq!(tones(&unknown), [Tone::Unknown]);
    says(&unknown, &["These test rows cannot tell"]);
}

#[test]
fn ambiguity_that_breaks_its_promise_is_named() {
    let torn =
        AlarmRate { channel: "ambiguity".into(), verdict: "ambiguous".into(), ..alarms(0.05, 0.12, false) };
    let facts = Facts { alarms: vec![alarms(0.05, 0.048, true), torn], ..good() };
    says(
        &facts,
        &[
            "trust its p-values of unfamiliarity: 4.8 % at 5 %; do not trust those of ambiguity: 12 % at 5 %",
            "torn between two classes",
            "Not of ambiguity",
        ],
    );
    assert!(!told(&facts).contains("stranger than the rows that calibrated"));
}

#[test]
fn several_sets_are_told_in_one_sentence() {
    let both = |least: f64| vec![("near".into(), least), ("far".into(), 1.0)];
    says(
        &Facts { found: both(1.0), ..good() },
        &["Finds 100 % of strangers in each set at 5 % false alarms"],
    );
    let facts = Facts { found: both(0.4), alarms: vec![alarms(0.05, 0.1, false)], ..good() };
    says(&facts, &["depending on the set, but with 10 % false alarms instead of 5 %"]);
    let one = Facts { held_out: Some(1), ..good() };
    says(&one, &["Only 1 row calibrates it"]);
}

#[test]
fn wins_ties_and_losses_are_counted() {
    let mut facts = good();
    facts.contests = vec![contest("SVHN", 0.99, 0.95, Outcome::Wins)];
    says(&facts, &["beats every simple method;"]);
    facts.contests.push(contest("CINIC", 0.70, 0.71, Outcome::Loses));
    facts.found = vec![("SVHN".into(), 0.93), ("CINIC".into(), 0.21)];
    says(
        &facts,
        &[
            "beats every simple method on 1 of 2 sets and loses to 1-NN on CINIC",
            "Not on 1 of 2 sets",
            "inds 21 to 93 % of strangers, depending on the set, at 5 % false alarms",
            "CINIC: AUROC 0.700, the best simple method (1-NN) 0.710",
        ],
    );
    facts.contests.remove(0);
    says(&facts, &["simple methods? No "]);
}

#[test]
fn strangers_that_pass_as_familiar_are_bad_news() {
    let facts = Facts { found: vec![("near".into(), 0.06)], ..good() };
    assert_eq!(answers(&facts)[0].tone, Tone::Bad);
    let facts = Facts { found: vec![("near".into(), 0.5)], ..good() };
    assert_eq!(answers(&facts)[0].tone, Tone::Mixed);
}

#[test]
fn errors_have_an_answer_of_their_own() {
    let mut facts = good();
    facts.contests.push(Contest {
        job: Positive::Misclassified,
        counts: (12, 276),
        ..contest("the model's own errors", 0.93, 0.95, Outcome::Loses)
    });
    facts.flagged = Some((9, 0.08));
    says(
        &facts,
        &[
            "9 of 12 flagged",
            "9 of its 12 errors raised some alarm, as did 8 % of all rows",
            "0.930, worse than 1-NN (0.950)",
        ],
    );
    assert!(!headline(&answers(&facts)).contains("errors"));
}

#[test]
fn alarms_that_come_as_often_at_right_answers_do_not_know_errors() {
    let mut facts = good();
    facts.contests.push(Contest {
        job: Positive::Misclassified,
        counts: (32, 118),
        ..contest("the model's own errors", 0.81, 0.7, Outcome::Wins)
    });
    let tone = |facts: &Facts| {
        answers(facts).into_iter().find(|answer| answer.question.contains("errors")).map(|answer| answer.tone)
    };
    facts.flagged = Some((1, 0.027));
    assert_eq!(tone(&facts), Some(Tone::Mixed), "1 of 32 errors, 4 of 150 rows");
    facts.flagged = Some((9, 0.08));
    assert_eq!(tone(&facts), Some(Tone::Mixed), "23 of 32 errors are missed");
    facts.flagged = Some((16, 0.12));
    assert_eq!(tone(&facts), Some(Tone::Good));
}

#[test]
fn numbers_read_well() {
    let shown = [0.0, 0.002, 0.05, 0.0483, 0.206, 0.97, 0.994, 1.0].map(percent);
    assert_eq!(shown, ["0 %", "0.2 %", "5 %", "4.8 %", "21 %", "97 %", "99.4 %", "100 %"]);
    assert_eq!([0.012345, 1.5, 123.456, 0.0].map(rounded), ["0.0123", "1.50", "123", "0"]);
}

#[test]
fn rows_that_were_cut_from_the_training_file_are_not_called_fresh() {
    let facts = Facts { origin: Origin { cut: true, ..Origin::default() }, ..good() };
    says(
        &facts,
        &[
            "trust its p-values, if no network was trained on these rows: 4.8 % at 5 %",
            "The test rows were cut from the training file: this holds only if no network was trained on them",
        ],
    );
    assert!(!told(&facts).contains("fresh"));
}

#[test]
fn a_high_rate_that_may_be_chance_is_in_the_headline() {
    let torn = AlarmRate {
        channel: "ambiguity".into(),
        verdict: "ambiguous".into(),
        suspect: true,
        ..alarms(0.05, 0.11, true)
    };
    let facts = Facts { alarms: vec![alarms(0.05, 0.034, true), torn], ..good() };
    says(
        &facts,
        &[
            "its p-values of unfamiliarity hold: 3.4 % at 5 %; those of ambiguity may not: 11 % at 5 %",
            "118 rows that calibrate are too few to tell chance from a fault",
            "--calibration FILE",
        ],
    );
    assert!(!told(&facts).contains("trust its p-values"));
    let own = AlarmRate { suspect: true, ..alarms(0.05, 0.11, true) };
    says(
        &Facts { alarms: vec![own], ..good() },
        &["its p-values of unfamiliarity may not hold: 11 % at 5 %"],
    );
}

#[test]
fn who_gave_calibration_rows_is_not_told_to_give_a_file() {
    let origin = Origin { calibrated: true, ..Origin::default() };
    let facts = Facts { origin, alarms: vec![alarms(0.05, 0.206, false)], ..good() };
    says(&facts, &["The rows of --calibration must be of the kind of the test rows"]);
    assert!(!told(&facts).contains("--calibration FILE"));
}

#[test]
fn a_regression_that_is_hardly_better_than_the_mean_has_no_tick() {
    let tone = |rmse: f64| {
        let facts = Facts { skill: Some(Skill::Error(rmse, 0.721, None, Worth::Clear)), ..good() };
        answers(&facts).into_iter().find(|answer| answer.question.contains("predictions right")).unwrap()
    };
    assert_eq!(tone(0.5).tone, Tone::Good);
    let slight = tone(0.7195);
    assert!(slight.tone == Tone::Mixed && slight.words.contains("That is hardly better."), "{slight:?}");
}
