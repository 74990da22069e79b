//! A model of three views with local precisions and rests, as a file and in float64.

use dab_core::artifact::schema::{CovarianceKind, Form};
use dab_core::artifact::writer::{ChannelsSpec, LocalSpec, RestSpec, Spec, ViewSpec};
use dab_core::channels::Tails;
use dab_tests::specs::{Random, bare};

/// Inputs of [`three`].
pub const INPUTS: usize = 6;
/// Axes and codes of its views.
pub const SIZES: [[usize; 2]; 3] = [[3, 4], [2, 2], [4, 5]];

/// Three views of other sizes; those whose bit is in `locals` have local precisions from ⅛ to 8, those whose bit is in `rests` a rest.
pub fn three(locals: u32, rests: u32) -> Spec {
    let random = &mut Random(14);
    let [[dim, codes], others @ ..] = SIZES;
    let mut spec = bare(random, CovarianceKind::Constant, dim, codes, 0.5);
    spec.inputs = INPUTS;
    spec.head.weight = random.floats(dim * INPUTS, 1.5);
    spec.head.bias = Some(random.floats(dim, 0.5));
    spec.self_test = (0..4).map(|_| random.floats(INPUTS, 2.0)).collect();
    let mut others = others.map(|[dim, codes]| ViewSpec {
        normalization: None,
        l2: false,
        head_weight: random.floats(dim * INPUTS, 1.5),
        head_bias: random.floats(dim, 0.5),
        dim,
        alpha: 0.25,
        means: random.floats(dim * codes, 2.0),
        priors: (0..codes).map(|code| (code + 1) as f64 * 2.0 / (codes * (codes + 1)) as f64).collect(),
        decoder: None,
        form: Form::Distance,
        tails: Tails::UNIT,
    });
    // Codes are at 0 along a rest.
    if rests & 1 == 1 {
        spec.codes.means.iter_mut().skip(dim - 1).step_by(dim).for_each(|x| *x = 0.0);
    }
    for (_, view) in others.iter_mut().enumerate().filter(|(place, _)| rests >> place & 2 == 2) {
        view.means.iter_mut().skip(view.dim - 1).step_by(view.dim).for_each(|x| *x = 0.0);
    }
    let locals = SIZES
        .map(|[_, codes]| (0..codes).map(|_| (3.0 * random.unit()).exp2() as f32).collect())
        .into_iter()
        .enumerate()
        .filter(|(view, _)| locals >> view & 1 == 1)
        .map(|(view, precisions)| LocalSpec { view, precisions });
    let rests = SIZES
        .map(|[dim, _]| random.floats(dim - 1, 0.1).iter().map(|s| s.abs()).collect())
        .into_iter()
        .enumerate()
        .filter(|(view, _)| rests >> view & 1 == 1)
        .map(|(view, scales)| RestSpec { view, scales, gain: 0.75 });
    spec.channels = Some(ChannelsSpec {
        views: others.into(),
        locals: locals.collect(),
        rests: rests.collect(),
        ..ChannelsSpec::default()
    });
    spec
}

/// The distances of an input from all codes of a view of [`three`] in float64, and their average with the weights of the assignment.
pub fn exact(spec: &Spec, view: usize, input: &[f32]) -> (Vec<f64>, f64) {
    let channels = spec.channels.as_ref().expect("channels");
    let narrow = |values: &[f64]| values.iter().map(|&x| f64::from(x as f32)).collect::<Vec<_>>();
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let (weight, bias, means, priors, alpha) = match view.checked_sub(1).map(|other| &channels.views[other]) {
        None => {
            let (head, codes) = (&spec.head, &spec.codes);
            let bias = head.bias.as_ref().expect("a bias");
            (&head.weight, bias, narrow(&codes.means), narrow(&codes.priors), codes.alpha)
        }
        Some(v) => (&v.head_weight, &v.head_bias, wide(&v.means), narrow(&v.priors), v.alpha),
    };
    let x = wide(input);
    let rows = wide(weight);
    let rows = rows.chunks(INPUTS).zip(wide(bias));
    let mut z: Vec<f64> =
        rows.map(|(row, b)| row.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>() + b).collect();
    if let Some(rest) = channels.rests.iter().find(|rest| rest.view == view) {
        let (last, others) = z.split_last_mut().expect("axes");
        let along: f64 = others.iter().zip(&rest.scales).map(|(z, &s)| (z * f64::from(s)).powi(2)).sum();
        let square = x.iter().map(|x| x * x).sum::<f64>() - 2.0 * *last - along;
        *last = f64::from(rest.gain) * square.max(0.0).sqrt();
    }
    let local = channels.locals.iter().find(|local| local.view == view);
    let codes = means.chunks(z.len()).enumerate();
    let distances: Vec<f64> = codes
        .map(|(code, mean)| {
            let precision = local.map_or(1.0, |local| f64::from(local.precisions[code]));
            precision * 0.5 * z.iter().zip(mean).map(|(z, m)| (z - m).powi(2)).sum::<f64>()
        })
        .collect();
    let weights: Vec<f64> =
        distances.iter().zip(&priors).map(|(d, p)| p * (-f64::from(alpha) * d).exp()).collect();
    let u = weights.iter().zip(&distances).map(|(w, d)| w * d).sum::<f64>() / weights.iter().sum::<f64>();
    (distances, u)
}
