//! The page itself, as HTML.
//!
//! `Report` → one document. Widths are fluid and nothing is wider than a phone: tables have three columns, figures are
//! drawn small enough that their text can be read there, and legends are text that wraps.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Report,
    contest::{Contest, Entry, Outcome},
    examples::Examples,
    figures::Figure,
    plot,
    words::{Answer, Tone, rounded},
};
use crate::{
    measure::metrics::{Positive, Summary},
    support::text::counted,
};

/// Methods that a table shows at once; the rest is behind a click.
const SHOWN: usize = 6;

/// A replayed stream as one self-contained HTML document.
pub fn timeline_page(title: &str, svg: &str, words: &str) -> String {
    page(
        title,
        &html! {
            header { h1 { (title) } }
            section { div.figures { (PreEscaped(svg)) } }
            section { pre { (words) } }
        },
    )
}

fn page(title: &str, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body { main { (main) } }
        }
    };
    page.into_string()
}

impl Report {
    /// The page as one self-contained HTML document.
    pub fn html(&self) -> String {
        let extras = &self.extras;
        page(
            &format!("{}, dab report", self.title),
            &html! {
                header {
                    h1 { (self.title) }
                    p.lead { (held(&self.headline())) }
                }
                dl.answers { @for answer in &self.answers { (card(answer)) } }
                @if !extras.notes.is_empty() {
                    section {
                        h2 { "Worth knowing about the data" }
                        ul.notes { @for note in &extras.notes { li { (note) } } }
                    }
                }
                @if !self.contests.is_empty() {
                    section {
                        h2 { "Against simple methods" }
                        p.note {
                            "AUROC is the chance that a row to be found scores higher than one that is not: 1 is perfect, "
                            "0.5 is guessing. Behind each method stands how far its AUROC lies above dab's (95 % interval). "
                            @if extras.origin.sealed {
                                "Settings were chosen on training and held-out rows; the rows that are measured here were "
                                "opened once, afterwards."
                            }
                        }
                        div.contests { @for contest in &self.contests { (table(contest)) } }
                    }
                }
                @if !self.figures.is_empty() {
                    section {
                        h2 { "Familiar or not" }
                        div.figures { @for figure in &self.figures { (drawn(figure)) } }
                    }
                }
                @if let Some((figures, reasons)) = &self.sizes {
                    section {
                        h2 { "Why this model" }
                        ul.notes { @for reason in reasons { li { (reason) } } }
                        div.figures { @for figure in figures { (drawn(figure)) } }
                    }
                }
                @if !self.examples.is_empty() {
                    section {
                        h2 { "Rows to look at" }
                        p.note { (extras.rows) }
                        div.lists { @for list in &self.examples { (rows(list)) } }
                    }
                }
                @if let Some(latent) = &self.latent {
                    section {
                        h2 { "The map" }
                        div.figures { (drawn(latent)) }
                    }
                }
                section {
                    h2 { "Details" }
                    @if !self.details.is_empty() {
                        (folded("More figures", &html! {
                            div.figures { @for figure in &self.details { (drawn(figure)) } }
                        }))
                    }
                    @if !extras.numbers.is_empty() { (folded("All numbers", &pairs(&extras.numbers))) }
                    @if !extras.settings.is_empty() { (folded("Settings", &pairs(&extras.settings))) }
                }
                footer { p.note { "Made by dab " (env!("CARGO_PKG_VERSION")) ". Every score is the device's, bit for bit." } }
            },
        )
    }
}

/// The words with no line break inside `5 %` and `p-value`.
fn held(words: &str) -> String {
    words.replace(" %", "\u{a0}%").replace("p-value", "p\u{2011}value")
}

fn card(answer: &Answer) -> Markup {
    let (class, mark) = match answer.tone {
        Tone::Good => ("good", "✓ "),
        Tone::Mixed => ("mixed", "≈ "),
        Tone::Bad => ("bad", "✗ "),
        Tone::Unknown => ("unknown", "? "),
        Tone::Fact => ("unknown", ""),
    };
    html! {
        div class=(class) {
            dt { (answer.question) }
            dd { b { (mark) (held(&answer.short)) } (held(&answer.words)) }
        }
    }
}

fn table(contest: &Contest) -> Markup {
    let (second, meaning) = contest.second();
    let (wanted, others) = contest.counts;
    let about = match contest.job {
        Positive::OutOfDistribution => {
            format!("{} among {}", counted(wanted, "stranger"), counted(others, "familiar test row"))
        }
        Positive::Misclassified => {
            format!("{} among {}", counted(wanted, "wrong answer"), counted(others, "right one"))
        }
    };
    let split = contest.entries.len().min(SHOWN);
    let (first, rest) = contest.entries.split_at(split);
    // The model's own row is always seen.
    let (hidden, seen): (Vec<&Entry>, Vec<&Entry>) = rest.iter().partition(|entry| !entry.main);
    let head = html! {
        thead { tr { th scope="col" { "method" } th scope="col" { "AUROC" } th scope="col" title=(meaning) { (second) } } }
    };
    html! {
        div.card {
            table {
                caption { (contest.name) " " small { (about) ". " (second) ": " (meaning) } }
                (head)
                tbody { @for entry in first.iter().chain(seen) { (line(entry)) } }
            }
            @if !hidden.is_empty() {
                (folded(&format!("{} more", hidden.len()), &html! {
                    table { (head) tbody { @for entry in hidden { (line(entry)) } } }
                }))
            }
        }
    }
}

fn line(entry: &Entry) -> Markup {
    let outcome = match entry.outcome {
        Some(Outcome::Wins) => "worse than dab",
        Some(Outcome::Ties) => "ties with dab",
        Some(Outcome::Loses) => "better than dab",
        None => "",
    };
    // The bar shows what is above guessing.
    let share = (200.0 * (entry.auroc.mean - 0.5)).clamp(0.0, 100.0);
    html! {
        tr.own[entry.main] {
            th.name scope="row" {
                (entry.name)
                @if !outcome.is_empty() { " " small { (outcome) @if let Some(gap) = entry.gap { ": " (interval(gap)) } } }
            }
            td { (cell(&entry.auroc)) i style=(format!("--share:{share:.1}%")) {} }
            td { @if let Some(second) = &entry.second { (cell(second)) } @else { "–" } }
        }
    }
}

/// `−0.031 to +0.004`; an end keeps so many digits that its sign is seen.
fn interval(gap: [f64; 2]) -> String {
    let end = |x: f64| {
        let digits = (3..6).find(|&digits| x.abs() >= 0.5 * 0.1_f64.powi(digits)).unwrap_or(6);
        match digits {
            6 => "0".to_owned(),
            digits => format!("{x:+.*}", digits as usize).replace('-', "−"),
        }
    };
    gap.map(end).join(" to ")
}

fn cell(summary: &Summary) -> Markup {
    html! {
        (format!("{:.3}", summary.mean))
        @if summary.count > 1 { " " small { (format!("± {:.3}", summary.sd)) } }
    }
}

fn drawn(figure: &Figure) -> Markup {
    let drawing = &figure.drawing;
    let label = html! { (drawing.title) ". " (figure.caption) }.into_string();
    let described = format!("<svg role=\"img\" aria-label=\"{label}\" ");
    html! {
        figure id=(figure.file) {
            figcaption { h3 { (drawing.title) } span { (figure.caption) } }
            (PreEscaped(drawing.plot.replacen("<svg ", &described, 1)))
            @if !drawing.legend.is_empty() {
                ul.legend { @for entry in &drawing.legend { (key(entry)) } }
            }
        }
    }
}

fn key(entry: &plot::Entry) -> Markup {
    html! {
        li {
            svg viewBox="0 0 26 14" aria-hidden="true" { (PreEscaped(entry.key())) }
            (entry.name)
        }
    }
}

fn rows(list: &Examples) -> Markup {
    html! {
        div.card {
            table {
                caption { (list.title) " " small { (list.advice) } }
                thead { tr { th scope="col" { "row" } th scope="col" { "score " small { "p-value" } } th.words scope="col" { "why" } } }
                tbody {
                    @for example in &list.rows {
                        tr {
                            th scope="row" { (example.row) }
                            td { (rounded(f64::from(example.score)))
                                @if let Some(p) = example.p_value { " " small { (rounded(f64::from(p))) } } }
                            td.words { @if let Some(name) = &example.name { small { (name) } }
                                @if let Some(verdict) = &example.verdict { (verdict) ": " } (example.words) }
                        }
                    }
                }
            }
        }
    }
}

fn pairs(list: &[(String, String)]) -> Markup {
    html! { dl.settings { @for (name, value) in list { div { dt { (name) } dd { (value) } } } } }
}

fn folded(title: &str, inner: &Markup) -> Markup {
    html! { details { summary { (title) } (inner) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Extras, contest::Role, words::Facts, words::answers};

    fn report() -> Report {
        let entry = |name: &str, mean: f64, outcome| Entry {
            name: name.into(),
            role: Role::Rival,
            main: name == "dab",
            auroc: Summary::of(&[mean, mean + 0.02]).unwrap(),
            second: None,
            outcome,
            gap: outcome.map(|_| [-0.031, 0.004]),
        };
        // Nine methods are better than the model: its row is seen all the same.
        let mut entries: Vec<Entry> =
            (0..9).map(|i| entry(&format!("MSP & co {i}"), 0.9, Some(Outcome::Loses))).collect();
        entries.push(entry("dab", 0.8, None));
        let contests = vec![Contest {
            name: "svhn <OOD>".into(),
            job: Positive::OutOfDistribution,
            counts: (2, 3),
            entries,
        }];
        Report {
            title: "a < b".into(),
            answers: answers(&Facts { contests: contests.clone(), ..Facts::default() }),
            contests,
            figures: vec![Figure::new(
                "roc",
                "a \"good\" one",
                plot::Drawing {
                    title: "R".into(),
                    legend: Vec::new(),
                    plot: "<svg width=\"1\"></svg>".into(),
                    height: 1,
                },
            )],
            extras: Extras { settings: vec![("alpha".into(), "1 & 2".into())], ..Extras::default() },
            ..Report::default()
        }
    }

    #[test]
    fn the_page_is_whole_and_escaped() {
        let page = report().html();
        for part in [
            "<!DOCTYPE html>",
            "a &lt; b",
            "1 &amp; 2",
            "0.910",
            "± 0.014",
            "better than dab: −0.031 to +0.004",
            "svhn &lt;OOD&gt;",
            "aria-label=\"R. a &quot;good&quot; one\" width=\"1\"",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        assert!(!page.contains("http://") && !page.contains("https://"), "no external resource");
    }

    #[test]
    fn an_interval_that_leaves_out_0_shows_so() {
        assert_eq!(interval([-0.0231, -0.000_31]), "−0.023 to −0.0003");
        assert_eq!(interval([0.0, 0.0123]), "0 to +0.012");
    }

    #[test]
    fn only_a_run_knows_that_its_test_rows_were_opened_last() {
        let mut report = report();
        assert!(!report.html().contains("opened once"));
        report.extras.origin.sealed = true;
        assert!(report.html().contains("opened once"));
    }

    #[test]
    fn the_models_row_is_never_behind_a_click() {
        let page = report().html();
        let (seen, hidden) =
            page.split_once("<summary>3 more</summary>").expect("three methods are behind a click");
        assert!(seen.contains(">dab<") && !hidden.contains(">dab<"));
        assert_eq!(hidden.matches("MSP &amp; co").count(), 3);
    }
}
