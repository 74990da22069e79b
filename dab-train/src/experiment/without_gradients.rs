//! The part of the corridor for a model that is computed: choose → fit → export, and its distances in float64.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use dab_core::artifact::quantise::rounded;

use super::Listener;
use crate::{
    choose::{
        self, Choice, Wish,
        plan::{Rows, most_codes},
    },
    config::{Experiment, Weights, retrofit::Retrofit},
    data::{Description, Seen, Targets, Task, count_labels},
    export::{artifact, band, head, int8, retrofit},
    learn::retrofit::{Affine, Retrofitted, classes},
    measure::{assessed::assess, evaluate::TaskScores, parity::Twice},
    model::snapshot::Scores,
};

/// How often codes, or axes where each class has one, are taken away from a file that came out too large.
const SHRINKS: usize = 12;
/// What each time leaves of them.
const SHRINK: f64 = 0.95;
/// Bytes around each string in a file, at most.
const STRING: usize = 4;

/// A model that was computed.
pub struct Made {
    pub fitted: Retrofitted,
    pub choice: Choice,
    /// `model.dab`, its weights as floats.
    pub bytes: Vec<u8>,
}

/// Chooses views unless the experiment has them, fits them and makes the file. The views are then in the experiment. Of the time
/// for choosing, `spent` is gone.
pub fn make(
    experiment: &mut Experiment,
    description: &Description,
    seen: &Seen,
    spent: Duration,
    listener: &mut dyn Listener,
) -> Result<Made> {
    let asked = experiment.retrofit.clone().context("the experiment learns by gradients")?;
    let own = last_layer(&asked)?;
    let mut info = artifact::info(experiment, description)?;
    // The bands are made when the file is final; it has room for them from now on, so that its size is known.
    info.extend(band::room(&seen.held_out));
    // The means of the inputs are among them where no view has them.
    let means = artifact::means(&seen.train.inputs);
    let strings =
        info.iter().chain([&means]).map(|(key, value)| (key.len() + value.len() + 2 * STRING) as u64).sum();
    let mut rows = rows(seen, strings)?;
    let chooses = experiment.weights.is_none() && asked.views.is_empty();
    if chooses && choose::wants_bytes(&seen.train.inputs, &rows, asked.flash) {
        experiment.weights = Some(Weights::Int8);
    }
    rows.int8 = experiment.weights == Some(Weights::Int8);
    // Too long for the clock is no limit.
    let time = asked.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.map(|time| time.saturating_sub(spent));
    let wish = Wish { flash: asked.flash, time, own_head: own.is_some(), seed: experiment.seed };
    let mut choice = decide(&asked, &wish, seen, &rows, listener)?;
    // What was chosen may have room for floats.
    let floats = Rows { int8: false, ..rows.clone() };
    let bytes = floats.bytes(&choice.views, own.is_some());
    if chooses && asked.flash.is_none_or(|flash| bytes <= flash) {
        (experiment.weights, choice.bytes, rows) = (None, bytes, floats);
        choice.curve.iter_mut().filter(|point| point.chosen).for_each(|point| point.bytes = bytes);
        choice.curve.sort_by_key(|point| point.bytes);
    }
    listener.chosen(&choice);
    let calibration = match &description.calibration {
        Some(unseen) => retrofit::Calibration::Unseen(unseen),
        None => retrofit::Calibration::HeldOut(&seen.held_out.inputs),
    };
    let mut shrinks = 0;
    let (fitted, bytes) = loop {
        let fitted =
            Retrofitted::fit_for(&choice.views, &seen.train, own.clone(), rows.int8, experiment.seed)?;
        let bytes = stored(&fitted, seen, calibration, &info)?;
        let length = if rows.int8 { int8::quantised(&bytes, None)?.len() } else { bytes.len() };
        choice.bytes = length as u64;
        if asked.flash.is_none_or(|flash| choice.bytes <= flash) || shrinks == SHRINKS {
            break (fitted, bytes);
        }
        shrinks += 1;
        let fewer = |count: usize| ((count as f64 * SHRINK) as usize).max(1);
        for view in &mut choice.views {
            match view.codes {
                1 => view.rank = Some(fewer(view.rank.unwrap_or(rows.inputs))),
                codes => view.codes = fewer(codes),
            }
        }
    };
    experiment.retrofit = Some(Retrofit { views: choice.views.clone(), ..asked });
    Ok(Made { fitted, choice, bytes })
}

/// The user's own last layer, its logits moved so that their mean is 0.
fn last_layer(retrofit: &Retrofit) -> Result<Option<Affine>> {
    let Some(file) = &retrofit.head else { return Ok(None) };
    Ok(Some(head::read(Path::new(file))?.centred()))
}

fn rows(seen: &Seen, strings: u64) -> Result<Rows> {
    let (labels, count) = classes(&seen.train.targets);
    let mut counts = count_labels(&labels, count);
    let outputs = match &seen.train.targets {
        Targets::Classes { count, .. } => *count,
        Targets::Regression(table) => {
            counts = vec![most_codes(table.rows)];
            table.cols
        }
    };
    ensure!(seen.train.inputs.cols > 0, "the rows have no columns");
    Ok(Rows { inputs: seen.train.inputs.cols, outputs, counts, strings, int8: false })
}

fn decide(
    retrofit: &Retrofit,
    wish: &Wish,
    seen: &Seen,
    rows: &Rows,
    listener: &mut dyn Listener,
) -> Result<Choice> {
    if !retrofit.views.is_empty() {
        return Ok(choose::given(retrofit.views.clone(), rows, wish));
    }
    if matches!(seen.train.targets, Targets::Regression(_)) {
        return match retrofit.fast {
            true => choose::one_code(rows, wish, "a fixed view: nothing was tried (--fast)"),
            false => choose::choose_clusters(&seen.train.inputs, rows, wish, &*listener.choosing()),
        };
    }
    let (labels, _) = classes(&seen.train.targets);
    if retrofit.fast || rows.classes() < 2 {
        return choose::fixed(&seen.train.inputs, rows, wish, "fixed views: nothing was tried (--fast)");
    }
    let progress = listener.choosing();
    choose::choose(&seen.train.inputs, &labels, rows, wish, &*progress)
}

/// The file of fitted views.
fn stored(
    fitted: &Retrofitted,
    seen: &Seen,
    calibration: retrofit::Calibration,
    info: &[(String, String)],
) -> Result<Vec<u8>> {
    let mut info = info.to_vec();
    if fitted.views.iter().all(|view| view.prepare.columns.is_none()) {
        info.push(artifact::means(&seen.train.inputs));
    }
    retrofit::artifact(fitted, calibration, info)
}

/// Distances from the codes of the base view, in float64.
pub fn exact(fitted: &Retrofitted, task: &Task) -> Result<TaskScores> {
    let base = &fitted.views[0];
    TaskScores::of(task, |inputs| Ok(Scores { uncertainty: base.exact(inputs), ..Scores::default() }))
}

/// Every input of an experiment scored by the views that it names, fitted anew, and by a file. Where the file has weights of one
/// byte, the fitted ones are rounded as those are.
pub fn twice(experiment: &Experiment, task: Task, artifact: &[u8]) -> Result<Twice> {
    let retrofit = experiment.retrofit.as_ref().filter(|retrofit| !retrofit.views.is_empty());
    let retrofit = retrofit.context("the experiment names no views to fit")?;
    let own = last_layer(retrofit)?;
    let (seen, sealed) = task.seal();
    let bytes = experiment.weights == Some(Weights::Int8);
    let mut fitted = Retrofitted::fit_for(&retrofit.views, &seen.train, own, bytes, experiment.seed)?;
    if bytes {
        let (head, columns) = (&mut fitted.views[0].head, seen.train.inputs.cols);
        head.weight = rounded(&head.weight, columns);
    }
    let task = sealed.open(seen);
    Ok(Twice::new(&exact(&fitted, &task)?, &assess(artifact, &task)?))
}
