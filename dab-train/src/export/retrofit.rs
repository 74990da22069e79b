//! Views that were fitted without gradients → `model.dab`.
//!
//! ```text
//! trials' views → Spec → u, E of the trials' rows → their tails → t → its tail
//! views, tails  → Spec → U, A of calibration rows → both tables
//! ```
//!
//! Every number about rows comes from a file, through dab-core: the device ranks an input among numbers that it would have
//! computed itself, bit for bit. Tails and tables are made of different rows. A row that shapes a tail looks less surprising
//! than a fresh one: with 99 rows for both, 5.9 % of fresh rows had p ≤ 5 %.

use anyhow::{Context, Result};
use dab_core::artifact::writer::{
    AmbiguitySpec, BaseSpec, CalibrationSpec, ChannelsSpec, Codes, DecoderSpec, Head, LocalSpec, RestSpec,
    Spec, ViewDecoder, ViewSpec,
};
use dab_core::channels::{DecoderReads, Form, Tail, Tails, ViewScore};
use dab_core::{Activation, CovarianceKind, Rates, Task};

use super::device;
use crate::{
    data::{Scale, Table},
    learn::retrofit::{Affine, Fitted, Retrofitted},
};

/// Inputs that travel in the file as known answers.
const SELF_TESTS: usize = 4;
/// Of the user's calibration rows, one in this many shapes the tails.
const SHAPING: usize = 4;
/// Share of familiar inputs that may be called ambiguous.
const AMBIGUOUS: f32 = 0.05;

/// Rows that calibrate.
#[derive(Clone, Copy, Debug)]
pub enum Calibration<'a> {
    /// Held out of the rows that the model was fitted to; without any, the file has no p-values.
    HeldOut(&'a Table),
    /// Rows that the user's network has not seen. A part of them shapes the tails, since training rows would not.
    Unseen(&'a Table),
}

impl Calibration<'_> {
    /// How many unseen rows there have to be for tables of `rows`: the first of every [`SHAPING`] shapes the tails.
    pub const fn rows_for(rows: usize) -> usize {
        rows + rows.div_ceil(SHAPING - 1)
    }

    /// The rows that the tables are made of.
    pub fn table(self) -> Table {
        match self {
            Self::HeldOut(rows) => rows.clone(),
            Self::Unseen(rows) => {
                let rest: Vec<usize> = (0..rows.rows).filter(|row| !row.is_multiple_of(SHAPING)).collect();
                rows.select(&rest)
            }
        }
    }
}

pub fn artifact(
    model: &Retrofitted,
    calibration: Calibration,
    info: Vec<(String, String)>,
) -> Result<Vec<u8>> {
    store(&calibrated(model, calibration, info)?)
}

/// The model of a file, before it is one.
pub fn calibrated(
    model: &Retrofitted,
    calibration: Calibration,
    info: Vec<(String, String)>,
) -> Result<Spec> {
    let mut spec = spec(model, &model.views, info)?;
    let rows = match calibration {
        Calibration::HeldOut(rows) => {
            let trials = model.trials.iter().map(|trial| self::spec(model, &trial.views, Vec::new()));
            let mut trials = trials.collect::<Result<Vec<_>>>()?;
            let aside: Vec<&Table> = model.trials.iter().map(|trial| &trial.rows).collect();
            fit_tails(&mut trials, &aside)?;
            for (own, tried) in tails(&mut spec).zip(tails(&mut trials[0])) {
                *own = *tried;
            }
            rows.clone()
        }
        Calibration::Unseen(rows) => shaped(&mut spec, rows)?,
    };
    with_tables(spec, &rows, &model.trials[0].rows)
}

/// The file of a network, given as its `spec`, with views of its inputs beside it; unless they judge `alone`, U is of both, and
/// the network's score has the given form. A part of the rows that calibrate shapes the tails: the network has seen all
/// training rows.
pub fn beside(
    mut spec: Spec,
    model: &Retrofitted,
    (alone, form): (bool, Form),
    rows: &Table,
) -> Result<Vec<u8>> {
    /// A score with this tail is never a surprise.
    const SILENT: Tail = Tail { a: 0.0, b: 1e12 };
    let base = BaseSpec { l2: false, form, decoder_reads: DecoderReads::Latent, tails: Tails::UNIT };
    let views = model.views.iter().map(|fitted| ViewSpec { decoder: None, ..view(fitted) }).collect();
    spec.channels = Some(ChannelsSpec {
        base,
        views,
        ambiguity: None,
        rests: rests(&model.views, 1),
        locals: locals(&model.views, 1),
    });
    let rest = if rows.rows > 0 { shaped(&mut spec, rows)? } else { rows.clone() };
    if rows.rows == 0 {
        fit_tails(std::slice::from_mut(&mut spec), &[&model.trials[0].rows])?;
    }
    if let Some(channels) = spec.channels.as_mut().filter(|_| alone) {
        channels.base.tails.view = SILENT;
    }
    store(&with_tables(spec, &rest, &model.trials[0].rows)?)
}

/// Fits the tails to some of the rows; gives the others.
fn shaped(spec: &mut Spec, rows: &Table) -> Result<Table> {
    let (shaping, rest): (Vec<usize>, Vec<usize>) =
        (0..rows.rows).partition(|row| row.is_multiple_of(SHAPING));
    fit_tails(std::slice::from_mut(spec), &[&rows.select(&shaping)])?;
    Ok(rows.select(&rest))
}

/// The model with both tables of `rows`, and known answers; without rows, of `others`.
fn with_tables(mut spec: Spec, rows: &Table, others: &Table) -> Result<Spec> {
    let known = if rows.rows > 0 { rows } else { others };
    spec.self_test = known.iter().take(SELF_TESTS).map(<[f32]>::to_vec).collect();
    if rows.rows == 0 {
        return Ok(spec);
    }
    let said = device::assessments(&store(&spec)?, rows)?;
    let scores = said.iter().map(dab_core::Assessment::score).collect();
    let held_out = u32::try_from(rows.rows).unwrap_or(u32::MAX);
    let rates = Rates::for_held_out(held_out);
    spec.calibration = Some(CalibrationSpec { scores, rates });
    let scores: Vec<f32> = said.iter().filter_map(|assessment| assessment.ambiguity).collect();
    if let Some(channels) = spec.channels.as_mut().filter(|_| !scores.is_empty()) {
        let rate = AMBIGUOUS.max(rates.unfamiliar());
        channels.ambiguity = Some(AmbiguitySpec { scores, rate });
    }
    Ok(spec)
}

fn store(spec: &Spec) -> Result<Vec<u8>> {
    spec.to_bytes().context("the model cannot be stored")
}

/// Gives all models the tails of their rows together.
fn fit_tails(specs: &mut [Spec], rows: &[&Table]) -> Result<()> {
    let found = scores(specs, rows)?;
    for spec in &mut *specs {
        for (view, tails) in found.iter().zip(tails(spec)) {
            tails.u = fit(view, |score| Some(score.distance));
            tails.energy = fit(view, |score| score.energy);
        }
    }
    let found = scores(specs, rows)?;
    for spec in specs {
        for (view, tails) in found.iter().zip(tails(spec)) {
            tails.view = fit(view, |score| Some(score.score));
        }
    }
    Ok(())
}

/// What each view says about rows, those of all models together.
fn scores(specs: &[Spec], rows: &[&Table]) -> Result<Vec<Vec<ViewScore>>> {
    let mut all: Vec<Vec<ViewScore>> = Vec::new();
    for (spec, rows) in specs.iter().zip(rows) {
        let found = device::views(&store(spec)?, rows)?;
        all.resize_with(found.len(), Vec::new);
        all.iter_mut().zip(found).for_each(|(view, more)| view.extend(more));
    }
    Ok(all)
}

/// The tail of what `score` takes out of a view's rows; the unit tail where there is nothing.
fn fit(view: &[ViewScore], score: impl Fn(&ViewScore) -> Option<f32>) -> Tail {
    let scores: Vec<f32> = view.iter().filter_map(score).collect();
    Tail::fit(&scores).unwrap_or(Tail::UNIT)
}

/// The tails of all views, the base first.
fn tails(spec: &mut Spec) -> impl Iterator<Item = &mut Tails> {
    spec.channels.iter_mut().flat_map(|channels| {
        std::iter::once(&mut channels.base.tails).chain(channels.views.iter_mut().map(|view| &mut view.tails))
    })
}

/// What the views of a file leave out; the first is view `first` of the file.
fn rests(views: &[Fitted], first: usize) -> Vec<RestSpec> {
    let of = |(index, view): (usize, &Fitted)| {
        let rest = view.rest.as_ref()?;
        Some(RestSpec { view: first + index, scales: rest.scales.clone(), gain: rest.gain })
    };
    views.iter().enumerate().filter_map(of).collect()
}

/// The precisions of views whose distances count locally; the first is view `first` of the file.
fn locals(views: &[Fitted], first: usize) -> Vec<LocalSpec> {
    let of = |(index, view): (usize, &Fitted)| {
        let precisions = view.codes.precisions.clone();
        (!precisions.is_empty()).then(|| LocalSpec { view: first + index, precisions })
    };
    views.iter().enumerate().filter_map(of).collect()
}

fn view(fitted: &Fitted) -> ViewSpec {
    ViewSpec {
        normalization: fitted.prepare.columns.as_ref().map(Scale::to_normalization),
        l2: fitted.prepare.l2,
        head_weight: fitted.head.weight.clone(),
        head_bias: fitted.head.bias.clone(),
        dim: fitted.head.outputs(),
        alpha: fitted.alpha as f32,
        means: fitted.codes.means.values.clone(),
        priors: fitted.codes.priors.clone(),
        decoder: fitted.decoder.as_ref().map(|affine| ViewDecoder {
            outputs: affine.outputs(),
            weight: affine.weight.clone(),
            bias: Some(affine.bias.clone()),
        }),
        form: fitted.config.form,
        tails: Tails::UNIT,
    }
}

fn spec(model: &Retrofitted, views: &[Fitted], info: Vec<(String, String)>) -> Result<Spec> {
    let base = views.first().context("a model has at least one view")?;
    let (reads, affine): (_, Option<&Affine>) = match &model.head {
        Some(own) => (DecoderReads::Input, Some(own)),
        None => (DecoderReads::Latent, base.decoder.as_ref()),
    };
    let task = if model.regression { Task::Regression } else { Task::Classification };
    let head = Head {
        weight: base.head.weight.clone(),
        bias: Some(base.head.bias.clone()),
        activation: Activation::Identity,
        covariance: CovarianceKind::Constant,
        dim: base.head.outputs(),
    };
    let codes = Codes {
        means: base.codes.means.values.iter().map(|&m| f64::from(m)).collect(),
        covs: Vec::new(),
        priors: base.codes.priors.clone(),
        alpha: base.alpha as f32,
    };
    Ok(Spec {
        normalization: base.prepare.columns.as_ref().map(Scale::to_normalization),
        decoder: affine.map(|affine| DecoderSpec {
            weight: affine.weight.clone(),
            bias: Some(affine.bias.clone()),
            outputs: affine.outputs(),
            task,
        }),
        channels: Some(ChannelsSpec {
            base: BaseSpec {
                l2: base.prepare.l2,
                form: base.config.form,
                decoder_reads: reads,
                tails: Tails::UNIT,
            },
            views: views[1..].iter().map(view).collect(),
            ambiguity: None,
            rests: rests(views, 0),
            locals: locals(views, 0),
        }),
        info,
        ..Spec::new(model.inputs, head, codes)
    })
}

#[cfg(test)]
mod tests {
    use dab_core::artifact::AlignedBytes;

    use super::*;
    use crate::{
        config::retrofit::{Norm, ViewConfig},
        data::{Split, Targets},
        export::artifact::scores as uncertainties,
        support::random::Random,
    };

    /// Three classes in four columns, two of them near one another.
    fn rows(count: usize, random: &mut Random) -> Split {
        let labels: Vec<u32> = (0..count).map(|_| random.below(3) as u32).collect();
        let mut row = |&label: &u32| {
            let centre = [0.0, 2.0, 8.0][label as usize];
            [(); 4].map(|()| centre + random.normal() as f32)
        };
        let inputs = Table::from_rows(&labels.iter().map(&mut row).collect::<Vec<_>>()).unwrap();
        Split { inputs, targets: Targets::Classes { labels, count: 3 } }
    }

    fn views() -> Vec<ViewConfig> {
        vec![
            ViewConfig {
                norm: Norm::Columns,
                ridge: 0.1,
                codes: 1,
                form: Form::Sum,
                ..ViewConfig::default()
            },
            ViewConfig {
                norm: Norm::Raw,
                ridge: 10.0,
                codes: 5,
                local: true,
                form: Form::Distance,
                ..ViewConfig::default()
            },
            ViewConfig { norm: Norm::L2, ridge: 1.0, codes: 2, form: Form::Joined, ..ViewConfig::default() },
        ]
    }

    #[test]
    fn both_channels_alarm_on_fresh_rows_at_their_rates_over_200_splits() {
        const SPLITS: u64 = 200;
        const FRESH: usize = 100;
        // With 99 rows, p ≤ 0.05 has probability 5 / 100 exactly, and p ≤ 0.01 has 1 / 100.
        const CALIBRATION: usize = 99;
        let mut alarms = [0.0_f64; 3];
        for seed in 0..SPLITS {
            let mut random = Random::new(seed, "validity");
            let (train, held_out) = (rows(120, &mut random), rows(CALIBRATION, &mut random));
            let model = Retrofitted::fit(&views(), &train, None, seed).unwrap();
            let bytes = artifact(&model, Calibration::HeldOut(&held_out.inputs), Vec::new()).unwrap();
            for said in device::assessments(&bytes, &rows(FRESH, &mut random).inputs).unwrap() {
                let p = said.p_value.unwrap();
                for (count, alarm) in
                    alarms.iter_mut().zip([p <= 0.05, p <= 0.01, said.ambiguity_p.unwrap() <= 0.05])
                {
                    *count += f64::from(u8::from(alarm));
                }
            }
        }
        for (count, rate) in alarms.into_iter().zip([0.05, 0.01, 0.05]) {
            let share = count / (SPLITS as f64 * FRESH as f64);
            // Each split's threshold has a true rate that varies as a beta law, and its fresh rows vary as a binomial one.
            let variance =
                rate * (1.0 - rate) * (1.0 / (CALIBRATION as f64 + 2.0) + 1.0 / FRESH as f64) / SPLITS as f64;
            assert!(
                (share - rate).abs() < 3.5 * variance.sqrt(),
                "{share} at {rate}, one sd is {}",
                variance.sqrt()
            );
        }
    }

    #[test]
    fn what_no_axis_keeps_is_seen_all_the_same() {
        // Three classes in two of twelve columns; the others vary little, about an offset.
        let rows = |count: usize, offset: f32, random: &mut Random| -> Split {
            let labels: Vec<u32> = (0..count).map(|_| random.below(3) as u32).collect();
            let row = |&label: &u32| -> Vec<f32> {
                let class = |column| if column == label { 9.0 } else { 0.0 };
                let spread = |column| if column < 2 { 1.0 } else { 0.3 };
                (0..12)
                    .map(|column| offset + class(column) + spread(column) * random.normal() as f32)
                    .collect()
            };
            let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
            Split { inputs, targets: Targets::Classes { labels, count: 3 } }
        };
        // Nothing centres rows before they are brought to length 1.
        for (norm, offset, local) in
            [(Norm::Raw, 500.0, false), (Norm::Columns, 500.0, true), (Norm::L2, 5.0, true)]
        {
            let mut random = Random::new(2, "rest");
            let (train, held_out) = (rows(600, offset, &mut random), rows(400, offset, &mut random));
            let config =
                ViewConfig { norm, rank: Some(2), ridge: 1.0, codes: 2, local, ..ViewConfig::default() };
            let model = Retrofitted::fit(&[config.clone(), config], &train, None, 0).unwrap();
            let bytes = artifact(&model, Calibration::HeldOut(&held_out.inputs), Vec::new()).unwrap();
            let file = AlignedBytes::from(&*bytes);
            let held = file.model().unwrap();
            assert!(held.has_rest(0) && held.has_rest(1) && !held.has_rest(2) && held.shape().dim == 3);
            assert!(held.is_local(0) == local && held.is_local(1) == local && !held.is_local(2));
            let device = uncertainties(&bytes, &held_out.inputs).unwrap();
            let (exact, latent) =
                (model.views[0].exact(&held_out.inputs), model.views[0].latent(&held_out.inputs));
            let fast = model.views[0].codes.uncertainty(&latent, &[], model.views[0].alpha);
            for ((a, b), c) in device.iter().zip(exact).zip(fast) {
                assert!(
                    (a - b).abs() <= 1e-4 * b.max(1.0) && (c - b).abs() <= 1e-2 * b.max(1.0),
                    "{norm:?}: {a} {b} {c}"
                );
            }
            // A sensor of a column that no axis keeps shows too much.
            let mut broken = held_out.inputs.clone();
            (0..broken.rows).for_each(|row| broken.values[row * 12 + 7] += 9.0);
            let said = device::assessments(&bytes, &broken).unwrap();
            let found = said.iter().filter(|a| a.verdict == Some(dab_core::Verdict::Unfamiliar)).count();
            assert!(found > 390, "{norm:?}: {found}");
        }
    }

    #[test]
    fn the_file_holds_what_was_fitted_and_strangers_alarm() {
        let mut random = Random::new(1, "file");
        let (train, held_out) = (rows(300, &mut random), rows(150, &mut random));
        let model = Retrofitted::fit(&views(), &train, None, 0).unwrap();
        let bytes = artifact(&model, Calibration::HeldOut(&held_out.inputs), Vec::new()).unwrap();
        let file = AlignedBytes::from(&*bytes);
        let shape = file.model().unwrap().shape();
        assert_eq!((shape.views, shape.codes, shape.outputs), (3, 3, 3));
        let far = Table::from_rows(&[[40.0_f32, -40.0, 40.0, -40.0]]).unwrap();
        let said = device::assessments(&bytes, &far).unwrap();
        assert_eq!(said[0].verdict, Some(dab_core::Verdict::Unfamiliar));
        assert_eq!([0, 1, 2].map(|view| file.model().unwrap().is_local(view)), [false, true, false]);
        let seen = device::views(&bytes, &held_out.inputs).unwrap();
        assert_eq!(seen.len(), model.views.len());
        for (seen, view) in seen.iter().zip(&model.views) {
            for (a, b) in seen.iter().zip(view.exact(&held_out.inputs)) {
                assert!((a.distance - b).abs() <= 1e-4 * b.max(1.0), "{} {b}", a.distance);
            }
        }
        // Without calibration rows there are scores and no p-values.
        let none = Table { rows: 0, cols: 4, values: Vec::new() };
        let known = calibrated(&model, Calibration::HeldOut(&none), Vec::new()).unwrap().self_test;
        let first = (0..4).map(|row| model.trials[0].rows.row(row).to_vec());
        assert_eq!(known, first.collect::<Vec<_>>(), "known answers are rows of the trial");
        let bytes = artifact(&model, Calibration::HeldOut(&none), Vec::new()).unwrap();
        let said = device::assessments(&bytes, &far).unwrap();
        assert!(
            said[0].unfamiliarity.unwrap() > 5.0 && said[0].p_value.is_none() && said[0].verdict.is_none()
        );
    }
    #[test]
    fn rows_that_a_network_has_not_seen_shape_the_tails_or_make_the_tables() {
        let mut random = Random::new(3, "unseen");
        let (train, unseen) = (rows(300, &mut random), rows(101, &mut random));
        let model = Retrofitted::fit(&views(), &train, None, 0).unwrap();
        let calibration = Calibration::Unseen(&unseen.inputs);
        // One row in four shapes, from the first on: 26 of 101.
        let table = calibration.table();
        assert_eq!(
            (table.rows, table.row(0), table.row(3)),
            (75, unseen.inputs.row(1), unseen.inputs.row(5))
        );
        assert_eq!(Calibration::HeldOut(&unseen.inputs).table(), unseen.inputs);
        for rows in 1..70 {
            let left = |given: usize| {
                let given = Table { rows: given, ..unseen.inputs.clone() };
                Calibration::Unseen(&given).table().rows
            };
            let given = Calibration::rows_for(rows);
            assert!(left(given) == rows && left(given - 1) < rows, "{rows}");
        }
        let spec = calibrated(&model, calibration, Vec::new()).unwrap();
        let shaping: Vec<usize> = (0..101).step_by(4).collect();
        let mut expected = super::spec(&model, &model.views, Vec::new()).unwrap();
        fit_tails(std::slice::from_mut(&mut expected), &[&unseen.inputs.select(&shaping)]).unwrap();
        let of = |spec: &Spec| tails(&mut spec.clone()).map(|tails| *tails).collect::<Vec<_>>();
        assert_eq!(of(&spec), of(&expected));
        assert!(of(&spec).iter().all(|tails| tails.u != Tail::UNIT && tails.view != Tail::UNIT));
        // Known answers are rows of the table.
        assert_eq!(spec.self_test, (0..4).map(|row| table.row(row).to_vec()).collect::<Vec<_>>());
        let found = spec.calibration.unwrap();
        let said = device::assessments(&store(&expected).unwrap(), &table).unwrap();
        assert_eq!(found.scores, said.iter().map(dab_core::Assessment::score).collect::<Vec<_>>());
        assert_eq!(found.rates, Rates::for_held_out(75));
        let ambiguity = spec.channels.unwrap().ambiguity.unwrap();
        assert_eq!(ambiguity.scores, said.iter().filter_map(|one| one.ambiguity).collect::<Vec<_>>());
        assert_eq!((ambiguity.rate, ambiguity.scores.len()), (AMBIGUOUS, 75));
    }

    #[test]
    fn views_beside_a_network_judge_with_it_or_alone() {
        let mut random = Random::new(4, "beside");
        let (train, fresh) = (rows(300, &mut random), rows(60, &mut random));
        let model = Retrofitted::fit(&views()[1..2], &train, None, 0).unwrap();
        // Any model of four inputs stands for the network.
        let network = || {
            let mut plain = spec(&model, &model.views, Vec::new()).unwrap();
            plain.channels = None;
            plain.head.covariance = CovarianceKind::Diagonal;
            plain.head.weight.extend(plain.head.weight.clone());
            plain.head.bias.as_mut().unwrap().extend(vec![5.0; plain.head.dim]);
            plain.codes.covs = vec![1.0; plain.codes.means.len()];
            plain
        };
        let none = Table { rows: 0, cols: 4, values: Vec::new() };
        for rows in [&fresh.inputs, &none] {
            let [both, alone] =
                [false, true].map(|alone| beside(network(), &model, (alone, Form::Distance), rows).unwrap());
            let [both, alone] = [both, alone].map(|bytes| device::views(&bytes, &train.inputs).unwrap());
            // The network's own score counts, or is the same for all rows; the view says the same in both.
            let range = |view: &[ViewScore]| {
                let surprises = view.iter().map(|one| one.surprise);
                (surprises.clone().fold(f32::MAX, f32::min), surprises.fold(0.0, f32::max))
            };
            let [(low, high), (least, most)] = [range(&both[0]), range(&alone[0])];
            assert!(high - low > 0.5 && most - least < 1e-6, "{low} to {high}, {least} to {most}");
            assert_eq!(both[1], alone[1]);
            // The rows that shape a tail, or those of the trial, are surprising on the average as their tail says.
            let bytes = beside(network(), &model, (false, Form::Distance), rows).unwrap();
            let shaping = match rows.rows {
                0 => model.trials[0].rows.clone(),
                count => rows.select(&(0..count).step_by(SHAPING).collect::<Vec<_>>()),
            };
            let found = device::views(&bytes, &shaping).unwrap();
            let scores: Vec<f32> = found[1].iter().map(|one| one.score).collect();
            let tail = Tail::fit(&scores).unwrap();
            assert!(
                found[1].iter().all(|one| one.surprise == tail.surprise(one.score)),
                "{} rows",
                rows.rows
            );
        }
        let bytes = beside(network(), &model, (false, Form::Distance), &fresh.inputs).unwrap();
        let file = AlignedBytes::from(&*bytes);
        assert_eq!(file.model().unwrap().calibration().unwrap().held_out, 45, "three of four rows");
        let bytes = beside(network(), &model, (false, Form::Distance), &none).unwrap();
        assert!(AlignedBytes::from(&*bytes).model().unwrap().calibration().is_none());
    }
}
