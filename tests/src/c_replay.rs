//! What `tests/c/replay.c` must give: many models and inputs through dab-core itself, in the order of its calls.

use dab::assess::{
    Assessment, DAB_FLAG_AMBIGUITY, DAB_FLAG_CALIBRATED, DAB_FLAG_CHANNELS, DAB_FLAG_SATURATED, DAB_NONE,
};
use dab::monitor::MonitorStatistics;
use dab::status::{DAB_ERR_NOT_CALIBRATED, DAB_OK};
use dab_core::artifact::AlignedBytes;
use dab_core::explore::{Config as BonusConfig, Exploration, Schedule};
use dab_core::monitor::{Config as MonitorConfig, Drift, Monitor, State};
use dab_core::{CovarianceKind, Model, Rates, Task, Verdict};

use crate::specs::{Random, any, real};

/// Bytes of a file under construction.
#[derive(Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    fn word(&mut self, x: u32) {
        self.0.extend(x.to_ne_bytes());
    }

    fn long(&mut self, x: u64) {
        self.0.extend(x.to_ne_bytes());
    }

    fn status(&mut self, x: i32) {
        self.0.extend(x.to_ne_bytes());
    }

    fn floats(&mut self, values: &[f32]) {
        for x in values {
            self.word(x.to_bits());
        }
    }

    fn assessment(&mut self, a: &dab_core::Assessment) {
        self.word(size_of::<Assessment>() as u32);
        let flag = |set, bit| if set { bit } else { 0 };
        self.word(
            flag(a.p_value.is_some(), DAB_FLAG_CALIBRATED)
                | flag(a.saturated, DAB_FLAG_SATURATED)
                | flag(a.unfamiliarity.is_some(), DAB_FLAG_CHANNELS)
                | flag(a.ambiguity.is_some(), DAB_FLAG_AMBIGUITY),
        );
        self.floats(&[a.uncertainty, a.p_value.unwrap_or(-1.0)]);
        self.status(match a.verdict {
            None => 0,
            Some(Verdict::Familiar) => 1,
            Some(Verdict::Ambiguous) => 2,
            Some(Verdict::Doubtful) => 3,
            Some(Verdict::Unfamiliar) => 4,
        });
        self.word(a.nearest as u32);
        self.floats(&[a.nearest_distance, a.score(), a.unfamiliarity.unwrap_or(-1.0)]);
        self.floats(&[a.ambiguity.unwrap_or(0.0), a.ambiguity_p.unwrap_or(-1.0)]);
        for place in [a.class, a.runner_up, a.view] {
            self.word(place.map_or(DAB_NONE, |i| i as u32));
        }
    }
}

/// The cases' file, and what every build of the library must make of it.
///
/// # Panics
/// When a model cannot be built.
#[must_use]
pub fn cases(random_models: usize, rows: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut cases, mut expected) = (Bytes::default(), Bytes::default());
    let random = &mut Random(2024);
    let mut specs: Vec<_> = real().into_iter().map(|(_, spec)| spec).collect();
    for i in 0..random_models {
        let kind = [
            CovarianceKind::Spectral,
            CovarianceKind::Diagonal,
            CovarianceKind::Cholesky,
            CovarianceKind::Constant,
        ][i % 4];
        let scale = random.pick(&[1e-3, 1.0, 30.0, 1e7]);
        specs.push(any(random, kind, scale));
    }
    for spec in specs {
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let mut model = bytes.model().expect("a model");
        let inputs: Vec<Vec<f32>> = (0..rows)
            .map(|_| {
                let scale = random.pick(&[1e-9, 0.1, 1.0, 10.0, 1e4, 1e12]);
                random.floats(model.shape().inputs, scale)
            })
            .collect();
        cases.word(bytes.as_slice().len() as u32);
        cases.word(rows as u32);
        let mut scratch = vec![0.0; model.scratch_len()];
        let mut u: Vec<f32> =
            inputs.iter().map(|x| model.assess(x, &mut scratch).expect("an input").uncertainty).collect();
        expect(&mut expected, &mut model, &inputs);
        let measured = u.clone();
        u.sort_by(f32::total_cmp);
        let (enter, exit) = (u[2 * rows / 3], u[rows / 2]);
        watch(&mut expected, &measured, enter, exit);
        for i in 0..6 {
            explore(&mut expected, &measured, i / 2, i % 2 == 1);
        }
        cases.floats(&[enter, exit]);
        cases.0.extend(bytes.as_slice());
        cases.floats(&inputs.concat());
    }
    cases.word(0);
    (cases.0, expected.0)
}

fn expect(out: &mut Bytes, model: &mut Model<'_>, inputs: &[Vec<f32>]) {
    let shape = model.shape();
    let mut scratch = vec![0.0; model.scratch_len()];
    out.status(DAB_OK);
    out.status(DAB_OK);
    for n in [44, shape.inputs, shape.outputs, shape.codes, shape.dim, shape.layers, shape.features] {
        out.word(n as u32);
    }
    out.word(match shape.covariance {
        CovarianceKind::Diagonal => 0,
        CovarianceKind::Spectral => 1,
        CovarianceKind::Cholesky => 2,
        CovarianceKind::Constant => 3,
    });
    out.word(match shape.task {
        None => 0,
        Some(Task::Regression) => 1,
        Some(Task::Classification) => 2,
    });
    out.word(model.calibration().map_or(0, |table| table.held_out));
    out.word(shape.views as u32);
    model.self_test(&mut scratch).expect("known answers");
    out.status(DAB_OK);
    let threshold = model.calibration().and_then(|table| table.threshold(0.25));
    out.status(if threshold.is_some() { DAB_OK } else { DAB_ERR_NOT_CALIBRATED });
    out.floats(&[threshold.unwrap_or(-f32::MAX)]);
    for x in inputs {
        let a = model.assess(x, &mut scratch).expect("an input");
        out.status(DAB_OK);
        out.assessment(&a);
        let mut outputs = vec![0.0; shape.outputs];
        let a = model.predict_into(x, &mut outputs, &mut scratch).expect("an input");
        out.status(DAB_OK);
        out.assessment(&a);
        out.floats(&outputs);
        let (mut distances, mut weights) = (vec![0.0; shape.codes], vec![0.0; shape.codes]);
        let mut dimensions = vec![0.0; shape.dim];
        let a = model.explain_into(x, &mut distances, &mut weights, &mut dimensions, &mut scratch);
        out.status(DAB_OK);
        out.assessment(&a.expect("an input"));
        out.floats(&distances);
        out.floats(&weights);
        out.floats(&dimensions);
    }
    let set = model.set_rates(Rates::new(0.75, 0.5).expect("rates"));
    out.status(if set.is_ok() { DAB_OK } else { DAB_ERR_NOT_CALIBRATED });
    out.status(DAB_OK);
    for x in inputs {
        out.assessment(&model.assess(x, &mut scratch).expect("an input"));
    }
}

fn watch(out: &mut Bytes, u: &[f32], enter: f32, exit: f32) {
    let number = |state| match state {
        State::Fallback => 0,
        State::Nominal => 1,
        State::Stale => 2,
    };
    let drift = Drift {
        block: 6,
        alarm: 0.5,
        levels: [exit, exit, exit, exit, enter, enter, enter],
        p_values: [0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02],
        restart: true,
    };
    let config = MonitorConfig {
        enter,
        exit,
        window: 5,
        enter_votes: 3,
        exit_votes: 4,
        reject_votes: 0,
        min_dwell: 7,
        timeout: 20,
        drift,
    };
    let mut monitor = Monitor::new(config).expect("a configuration");
    out.status(DAB_OK);
    let mut now = u32::MAX - 100;
    for (i, &u) in u.iter().enumerate() {
        now = now.wrapping_add(if i % 17 == 16 { 30 } else { 3 });
        out.status(number(monitor.observe(now, u)));
        out.status(number(monitor.poll(now.wrapping_add(2))));
    }
    out.status(DAB_OK);
    let s = monitor.statistics();
    out.word(size_of::<MonitorStatistics>() as u32);
    out.status(number(monitor.state()));
    for n in [s.inputs, s.votes, s.alarms, s.stales, s.nominal_ticks, s.fallback_ticks] {
        out.long(n);
    }
    for n in [s.rejected, s.spikes, s.drifts, s.rejections, monitor.event_count()] {
        out.long(n);
    }
    out.floats(&[s.uncertainty.mean(), s.uncertainty.std(), s.uncertainty.min(), s.uncertainty.max()]);
    out.word(monitor.why().bits().into());
    out.status(DAB_OK);
    out.floats(&[monitor.drift().0, monitor.drift().1]);
}

fn explore(out: &mut Bytes, u: &[f32], schedule: usize, centered: bool) {
    let (start, end, steps) = (1.5, -0.25, 40);
    let schedule = match schedule {
        0 => Schedule::Constant { start },
        1 => Schedule::Linear { start, end, steps },
        _ => Schedule::Exponential { start, end, steps },
    };
    let config = BonusConfig { schedule, clip: 2.5, centered, warmup: 5 };
    let mut e = Exploration::new(config).expect("a configuration");
    let mut f = e;
    let (first, second) = u.split_at(u.len() / 2);
    let bonuses = |e: &Exploration, step| u.iter().map(|&u| e.compute(u, step)).collect::<Vec<_>>();
    first.iter().for_each(|&u| e.update(u));
    for _ in 0..4 {
        out.status(DAB_OK);
    }
    out.floats(&bonuses(&e, 17));
    out.status(DAB_OK);
    out.0.extend(e.save());
    f.restore(&e.save()).expect("a saved normaliser");
    second.iter().for_each(|&u| f.update(u));
    for _ in 0..3 {
        out.status(DAB_OK);
    }
    out.floats(&bonuses(&f, 90));
}
