//! Why these views, in sentences: for the console, the report and metrics.json.

use super::{Candidate, plan::Filling, select::TIE};
use crate::{config::retrofit::Norm, support::text::counted};

/// The choice in sentences; `folds` are those that were judged, of so many.
pub(super) fn reasons(
    candidates: &[Candidate],
    chosen: &[Candidate],
    norms: &[Norm],
    (folds, of): (usize, usize),
    classes: usize,
) -> Vec<String> {
    let hidden = match classes < 2 {
        true => "clusters of inputs left out, and rows with one column of another row",
        false => "classes left out, and chimeras of two rows",
    };
    let mut reasons = vec![format!(
        "{} were judged by {} of training rows with {hidden}",
        counted(candidates.len(), "candidate"),
        counted(folds, "fold")
    )];
    if folds < of {
        reasons.push(format!("stopped after {folds} of {} (--time)", counted(of, "fold")));
    }
    if norms.len() == 1 && classes > 1 {
        reasons.push("the columns have different units, so each is standardised".to_owned());
    }
    for candidate in chosen {
        let kind = candidate.kind(classes);
        let best = candidates.iter().filter(|other| other.kind(classes) == kind).map(|other| other.auroc);
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let codes = match (candidate.filling, classes < 2) {
            (Filling::Local, _) => "as many codes as fit, local distances",
            (Filling::Full, _) => "as many codes as fit",
            (Filling::Single, true) => "one code",
            (Filling::Single, false) => "one code a class",
        };
        let tie = match best - candidate.auroc {
            less if less <= 0.0 => String::new(),
            less if less <= TIE => format!(", within {TIE} of the best of its kind ({best:.4}) and simpler"),
            _ => format!(" ({best:.4} without the energy, which sees strangers that no hidden class plays)"),
        };
        reasons.push(format!(
            "{}: ridge {}, {codes}, {}: AUROC {:.4}{tie}",
            candidate.norm.name(),
            candidate.ridge,
            candidate.form.name(),
            candidate.auroc
        ));
    }
    if chosen.iter().all(|candidate| candidate.norm.has_length()) {
        reasons.push("every view has rows at length 1: an input of another gain is not seen".to_owned());
    }
    let left = norms.iter().filter(|norm| chosen.iter().all(|candidate| candidate.norm != **norm));
    let left: Vec<&str> = left.map(|norm| norm.name()).collect();
    if !left.is_empty() {
        reasons.push(format!("left out, for joining them hurts or they have no room: {}", left.join(", ")));
    }
    reasons
}
