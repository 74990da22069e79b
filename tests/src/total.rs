//! One call of everything a model can be asked about an input, and what must hold of every answer.

use dab_core::channels::ViewScore;
use dab_core::{Assessment, Model, Verdict};

/// An assignment is k quotients whose exact sum is 1.
const ASSIGNMENT_SUM: f32 = 1e-5;

/// Asks `model` everything about `input`, with scratch full of `fill`, and returns the bits of all answers.
///
/// # Panics
/// When an answer is not finite, negative where it cannot be, or contradicts another.
#[must_use]
pub fn answers(model: &Model<'_>, input: &[f32], fill: f32) -> Vec<u32> {
    let shape = model.shape();
    let mut scratch = vec![fill; model.scratch_len()];
    let (mut distances, mut assignment) = (vec![fill; shape.codes], vec![fill; shape.codes]);
    let (mut shares, mut outputs) = (vec![fill; shape.dim], vec![fill; shape.outputs]);

    let found = model.assess(input, &mut scratch).expect("an input");
    scratch.fill(fill);
    let again = model.predict_into(input, &mut outputs, &mut scratch).expect("an input");
    scratch.fill(fill);
    let explained = model.explain_into(input, &mut distances, &mut assignment, &mut shares, &mut scratch);
    assert_eq!(again, found);
    assert_eq!(explained.expect("an input"), found);

    let u = found.uncertainty;
    assert!(u.is_finite() && u >= 0.0, "{found:?}");
    assert!(found.nearest_distance.is_finite() && found.nearest_distance <= u, "{found:?}");
    assert_eq!(found.saturated, u == f32::MAX);
    assert_eq!(distances[found.nearest], found.nearest_distance);
    assert!(model.codebook().priors[found.nearest] > 0.0);
    assert!(found.p_value.is_none_or(|p| p > 0.0 && p <= 1.0), "{found:?}");
    let ambiguous = |p: f32| model.ambiguity_calibration().is_some_and(|(_, rate)| p <= rate);
    let verdict = found.p_value.map(|p| match model.rates().verdict(p) {
        Verdict::Familiar if found.ambiguity_p.is_some_and(ambiguous) => Verdict::Ambiguous,
        verdict => verdict,
    });
    assert_eq!(found.verdict, verdict);
    assert!(distances.iter().all(|d| d.is_finite() && *d >= 0.0), "{distances:?}");
    assert!(assignment.iter().all(|a| (0.0..=1.0).contains(a)), "{assignment:?}");
    assert!((assignment.iter().sum::<f32>() - 1.0).abs() <= ASSIGNMENT_SUM, "{assignment:?}");
    assert!(shares.iter().chain(&outputs).all(|x| x.is_finite()), "{shares:?} {outputs:?}");

    let channels = channels(model, input, fill, &found);
    let numbers =
        [&channels[..], &[u, found.nearest_distance, found.p_value.unwrap_or(2.0)], &distances, &assignment];
    numbers.concat().iter().chain(&shares).chain(&outputs).map(|x| x.to_bits()).collect()
}

/// What the channels say, with what must hold of it: finite numbers, U the mean of the surprises, in their order.
fn channels(model: &Model<'_>, input: &[f32], fill: f32, found: &Assessment) -> Vec<f32> {
    let mut scratch = vec![fill; model.scratch_len()];
    let mut views = vec![ViewScore::default(); model.shape().views];
    assert_eq!(model.views_into(input, &mut views, &mut scratch).as_ref(), Ok(found));
    assert_eq!(views[0].distance, found.uncertainty);
    assert_eq!(found.unfamiliarity.is_some(), model.channels_meta().is_some());
    assert_eq!(found.score(), found.unfamiliarity.unwrap_or(found.uncertainty));
    assert_eq!(found.ambiguity.is_some(), found.runner_up.is_some());
    if let Some(unfamiliarity) = found.unfamiliarity {
        let sum = views.iter().fold(0.0, |sum, view| sum + view.surprise);
        assert_eq!(unfamiliarity, (sum / views.len() as f32).min(f32::MAX), "{views:?}");
        assert!(views.iter().all(|v| v.surprise <= views[found.view.expect("a view")].surprise));
    }
    let numbers = views.iter().flat_map(|v| [v.distance, v.score, v.surprise, v.energy.unwrap_or(0.0)]);
    let mut numbers: Vec<f32> = numbers.collect();
    numbers.extend([found.score(), found.ambiguity.unwrap_or(0.0), found.ambiguity_p.unwrap_or(2.0)]);
    assert!(numbers.iter().all(|x| x.is_finite()), "{numbers:?}");
    numbers
}
