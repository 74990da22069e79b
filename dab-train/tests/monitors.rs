//! A tuned monitor keeps its budget of false alarms on hours that it has not seen, and still finds faults and drifts.

mod streams;

use dab_core::Model;
use dab_core::artifact::AlignedBytes;
use dab_core::monitor::{Config, Monitor, State, Why};
use dab_train::internals::measure::stream::tune::{Goal, Request, Tuned};

use streams::{Ar1, Motor};

const BUDGET: f64 = 1.0;
const HOURS: f64 = 100.0;

fn tuned(log: Vec<f32>, tick: f64) -> Tuned {
    let logs = [log];
    Request { logs: &logs, faults: &[], goal: Goal { tick, budget: BUDGET, confidence: 0.95 }, timeout: 10 }
        .tune()
        .unwrap()
}

/// Alarms in fresh scores, then when and why a rise by `shift` within `ramp` ticks is found.
fn run(
    config: Config,
    mut next: impl FnMut() -> f32,
    ticks: usize,
    shift: f32,
    ramp: usize,
) -> (u64, Option<(usize, Why)>) {
    let mut monitor = Monitor::new(config).unwrap();
    let mut now = 0u32;
    let mut observe = |monitor: &mut Monitor, score| {
        now += 1;
        monitor.observe(now, score)
    };
    for _ in 0..ticks {
        let _ = observe(&mut monitor, next());
    }
    let alarms = monitor.statistics().alarms;
    while observe(&mut monitor, next()) != State::Nominal {}
    let found = (1..=ramp + 20 * config.drift.block as usize).find(|&after| {
        let share = if ramp == 0 { 1.0 } else { (after as f32 / ramp as f32).min(1.0) };
        observe(&mut monitor, next() + shift * share) != State::Nominal
    });
    (alarms, found.map(|after| (after, monitor.why())))
}

/// 100 hours at ten scores a second. `cargo run --release -p dab-train --example monitors 100 0.001` is the same at 1 kHz.
#[test]
fn correlated_streams_keep_the_budget_and_slow_drifts_are_found() {
    let tick = 0.1;
    for keep in [0.0, 0.9, 0.99, 0.999] {
        let mut stream = Ar1::new(7, keep);
        let found = tuned((0..(10.0 * 3600.0 / tick) as usize).map(|_| stream.next()).collect(), tick);
        let config = found.config;
        assert!(found.upper <= BUDGET, "{keep}: {found:?}");
        let mut fresh = Ar1::new(8, keep);
        let drift = 0.9 * (config.enter - found.quantiles[0]);
        let (alarms, slow) = run(config, || fresh.next(), (HOURS * 3600.0 / tick) as usize, drift, 6000);
        println!("correlation {keep}: {alarms} alarms in {HOURS} hours, drift {slow:?}, {config:?}");
        assert!(alarms as f64 <= BUDGET * HOURS, "correlation {keep}: {alarms} alarms in {HOURS} hours");
        assert!(slow.is_some(), "correlation {keep}: a slow drift to 90 % is not found");
        // The same without noise, so that no score is near the threshold: only the drift channel can find it.
        let mut quiet = Monitor::new(config).unwrap();
        let still = |now: u32| {
            if now < 40 * config.drift.block { found.quantiles[0] } else { found.quantiles[0] + drift }
        };
        let after = (0..60 * config.drift.block)
            .find(|&now| quiet.observe(now, still(now)) != State::Nominal && now >= 40 * config.drift.block);
        assert!(
            after.is_some() && quiet.why() == Why::DRIFT,
            "correlation {keep}: {after:?}, {}",
            quiet.why()
        );
        // Far beyond the threshold: found at once.
        let step = 2.0 * (config.enter - found.quantiles[0]);
        let (_, fast) = run(config, || fresh.next(), 3 * config.drift.block as usize, step, 0);
        let (after, why) = fast.expect("a step is found");
        assert!(after <= 2 * config.window as usize && why.contains(Why::SPIKE), "{keep}: {fast:?}");
    }
}

/// The motor of examples/motor, one window a second: a healthy one for 100 hours, then a winding opens.
#[test]
fn the_motor_keeps_the_budget_and_an_open_winding_is_found() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/motor/model.dab");
    let Ok(bytes) = std::fs::read(path) else {
        println!("SKIPPED the_motor_keeps_the_budget_and_an_open_winding_is_found: there is no {path}");
        return;
    };
    let bytes = AlignedBytes::from(&bytes[..]);
    let model = Model::from_bytes(bytes.as_slice()).unwrap();
    let mut scratch = vec![0.0; model.scratch_len()];
    let mut score = |motor: &mut Motor| model.assess(&motor.window(), &mut scratch).unwrap().score();
    let mut motor = Motor::new(1);
    let found = tuned((0..36_000).map(|_| score(&mut motor)).collect(), 1.0);
    let mut motor = Motor::new(2);
    let (alarms, _) = run(found.config, || score(&mut motor), 360_000, 0.0, 0);
    println!("motor: {alarms} alarms in 100 hours, {found:?}");
    assert!(alarms as f64 <= BUDGET * HOURS, "{alarms} alarms");
    motor.winding = true;
    let mut monitor = Monitor::new(found.config).unwrap();
    let mut healthy = Motor::new(3);
    for now in 0..5000u32 {
        let _ = monitor.observe(now, score(&mut healthy));
    }
    let after = (0..3600u32).find(|after| monitor.observe(5000 + after, score(&mut motor)) != State::Nominal);
    assert!(after.is_some_and(|ticks| ticks < 600), "{after:?}");
}
