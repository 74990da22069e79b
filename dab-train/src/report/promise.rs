//! Whether the p-values can be trusted: the card, and its part of the headline.

use super::words::{Answer, Facts, Tone, doubtful, percent, sentence};
use crate::{
    measure::{
        alarms::{AlarmRate, as_a_whole, more, reason, remedy, too_few},
        assessed::AMBIGUITY,
    },
    support::text::counted,
};

/// Fewer held-out rows than this give no p-value of 0.01.
const CALIBRATED: usize = 99;

/// The answer, from the false alarms among the fresh rows.
pub(super) fn p_values(facts: &Facts) -> Answer {
    let question = "Can its p-values be trusted?";
    let (Some(held_out), Some(first)) = (facts.held_out, doubtful(facts)) else {
        let words = "No row was held out to calibrate it: it gives scores, but no p-values and no verdicts.";
        return Answer::new(question, Tone::Bad, "There are none", words).in_headline("it has no p-values");
    };
    let few = if held_out < CALIBRATED {
        let calibrate = if held_out == 1 { "calibrates" } else { "calibrate" };
        let rows = counted(held_out, "row");
        format!(" Only {rows} {calibrate} it: no p-value falls below 1/{}.", held_out + 1)
    } else {
        String::new()
    };
    if facts.rows == 0 {
        let words = format!("No fresh familiar rows were given to try them on.{few}");
        return Answer::new(question, Tone::Unknown, "Not tried", words)
            .in_headline("nobody has tried its p-values");
    }
    let rate = |alarms: &AlarmRate| format!("{} at {}", percent(alarms.actual), percent(alarms.nominal));
    let broken = facts.alarms.iter().find(|alarms| !alarms.kept);
    let suspect = facts.alarms.iter().find(|alarms| alarms.suspect);
    let shown = broken.or(suspect).unwrap_or(first);
    let [low, high] = shown.expected.map(percent);
    let measured = format!(
        "{} of {} are called {}{}, {} were promised; chance allows {low} to {high}.",
        percent(shown.actual),
        counted(facts.rows, if facts.origin.cut { "test row" } else { "fresh familiar row" }),
        shown.verdict,
        if shown.verdict == "doubtful" { " or worse" } else { "" },
        percent(shown.nominal)
    );
    let calibrated = facts.origin.calibrated;
    let condition = if facts.origin.cut { ", if no network was trained on these rows" } else { "" };
    if broken.is_some() {
        let words =
            format!("{measured} {} {}{few}", sentence(reason(&shown.channel)), sentence(remedy(calibrated)));
        // The first rates are those of strangers: where they are kept, only the ambiguity breaks its promise.
        if shown.channel == AMBIGUITY {
            let words = format!("Those of {} hold: {}. {words}", first.channel, rate(first));
            let clause = format!(
                "trust its p-values of {}{condition}: {}; do not trust those of ambiguity: {}",
                first.channel,
                rate(first),
                rate(shown)
            );
            return Answer::new(question, Tone::Mixed, "Not of ambiguity", words).in_headline(clause);
        }
        return Answer::new(question, Tone::Bad, "No", words).in_headline(format!(
            "do not trust its p-values of {}: {}",
            shown.channel,
            rate(shown)
        ));
    }
    let seen = match facts.origin.cut {
        true => {
            " The test rows were cut from the training file: this holds only if no network was trained on them."
        }
        false => "",
    };
    if suspect.is_some() {
        let words = format!(
            "{measured}{seen} By themselves these rows speak against it, but {} too few to tell chance from a fault: {}.{few}",
            too_few(shown.held_out),
            more(calibrated)
        );
        let clause = match shown.channel == AMBIGUITY {
            true => format!(
                "its p-values of {} hold{condition}: {}; those of ambiguity may not: {}",
                first.channel,
                rate(first),
                rate(shown)
            ),
            false => format!("its p-values of {} may not hold: {}", shown.channel, rate(shown)),
        };
        return Answer::new(question, Tone::Mixed, "Perhaps not", words).in_headline(clause);
    }
    if let Some(stranger) = facts.alarms.iter().find(|alarms| alarms.stranger) {
        let words = format!(
            "{measured} But {}. {} {}{few}",
            as_a_whole(stranger),
            sentence(reason(&stranger.channel)),
            sentence(remedy(calibrated))
        );
        return Answer::new(question, Tone::Bad, "Not as a whole", words).in_headline(format!(
            "do not trust its p-values of {}: their mean is {:.2} instead of 0.5",
            stranger.channel, stranger.mean_p
        ));
    }
    if let Some(rare) = facts.alarms.iter().find(|alarms| alarms.actual < alarms.expected[0]) {
        let rate = rate(rare);
        let words =
            format!("Alarms are rarer than promised: {rate}. That is safe, but misses strangers.{seen}{few}");
        return Answer::new(question, Tone::Mixed, "Too careful", words)
            .in_headline(format!("alarms are rarer than promised ({rate})"));
    }
    // Less than one alarm was promised, so none says nothing, and one hardly more.
    if facts.rows as f64 * first.nominal < 1.0 {
        let words = format!("{measured}{seen} That is too few rows to tell.{few}");
        return Answer::new(question, Tone::Unknown, "Too few rows", words)
            .in_headline(format!("{} are too few to try its p-values", counted(facts.rows, "row")));
    }
    let (tone, short) = if few.is_empty() { (Tone::Good, "Yes") } else { (Tone::Mixed, "Yes, coarsely") };
    Answer::new(question, tone, short, measured + seen + &few)
        .in_headline(format!("trust its p-values{condition}: {}", rate(first)))
}
