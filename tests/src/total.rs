//! One call of everything a model can be asked about an input, and what must hold of every answer.

use dab_core::Model;

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
    assert_eq!(found.verdict, found.p_value.map(|p| model.rates().verdict(p)));
    assert!(distances.iter().all(|d| d.is_finite() && *d >= 0.0), "{distances:?}");
    assert!(assignment.iter().all(|a| (0.0..=1.0).contains(a)), "{assignment:?}");
    assert!((assignment.iter().sum::<f32>() - 1.0).abs() <= ASSIGNMENT_SUM, "{assignment:?}");
    assert!(shares.iter().chain(&outputs).all(|x| x.is_finite()), "{shares:?} {outputs:?}");

    let numbers = [&[u, found.nearest_distance, found.p_value.unwrap_or(2.0)][..], &distances, &assignment];
    numbers.concat().iter().chain(&shares).chain(&outputs).map(|x| x.to_bits()).collect()
}
