//! The tables of docs/monitor.md: false alarms an hour and delays of monitors on correlated streams.
//!
//! ```sh
//! cargo run --release -p dab-train --example monitors [HOURS [TICK_SECONDS]]      # 100 hours at 0.01 s unless given
//! ```
//!
//! A stream is 3 + ½ AR(1) with Gaussian steps, as if in nats. Each monitor is set up on ten hours, then runs on HOURS that it
//! has not seen (false alarms) and on faults that begin in them (delays).

#[path = "../tests/streams/mod.rs"]
mod streams;

use dab_core::monitor::{Config, Drift, Monitor, State};
use dab_train::internals::measure::stream::{
    peaks::quantiles,
    tune::{Goal, Request},
};
use streams::Ar1;

/// Hours that a monitor is set up on.
const RECORDED: f64 = 10.0;
/// Runs of each fault.
const FAULTS: u64 = 15;

/// CUSUM of single scores with the settings of textbooks: a slack of half a deviation, an alarm at five; after an alarm it
/// starts anew.
struct Cusum {
    mean: f32,
    std: f32,
    sum: f32,
}

/// Something that says whether the fallback drives.
enum Watch {
    Monitor(Box<Monitor>, u32),
    Cusum(Cusum),
}

impl Watch {
    /// Whether an alarm begins with this score.
    fn alarms(&mut self, score: f32) -> bool {
        match self {
            Self::Monitor(monitor, now) => {
                let before = monitor.state();
                let state = monitor.observe(*now, score);
                *now = now.wrapping_add(1);
                before == State::Nominal && state != State::Nominal
            }
            Self::Cusum(c) => {
                c.sum = (c.sum + (score - c.mean) / c.std - 0.5).max(0.0);
                let alarm = c.sum > 5.0;
                if alarm {
                    c.sum = 0.0;
                }
                alarm
            }
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let hours: f64 = arguments.next().map_or(100.0, |text| text.parse().expect("hours"));
    let tick: f64 = arguments.next().map_or(0.01, |text| text.parse().expect("seconds of a tick"));
    let ticks = |seconds: f64| (seconds / tick).round() as usize;
    println!(
        "| correlation | monitor | false alarms an hour | step to the 99.9 % score | twice that | drift to 90 % |"
    );
    println!("|---|---|---|---|---|---|");
    for keep in [0.0, 0.9, 0.99, 0.999] {
        let mut stream = Ar1::new(1, keep);
        let log: Vec<f32> = (0..ticks(RECORDED * 3600.0)).map(|_| stream.next()).collect();
        let logs = [log];
        let [median, low, rare] = quantiles(&logs, [0.5, 0.9, 0.999]).expect("scores");
        let votes = Config {
            enter: rare,
            exit: low,
            enter_votes: 5,
            exit_votes: 20,
            window: 20,
            reject_votes: 0,
            min_dwell: ticks(0.5) as u32,
            timeout: 0,
            drift: Drift::OFF,
        };
        let request = Request {
            logs: &logs,
            faults: &[],
            goal: Goal { tick, budget: 1.0, confidence: 0.95 },
            timeout: 0,
        };
        let tuned = request.tune().expect("ten hours are enough").config;
        let plain = Config { exit: low, min_dwell: ticks(0.5) as u32, ..Config::plain(rare) };
        let monitor = |config| Watch::Monitor(Box::new(Monitor::new(config).expect("a monitor")), 0);
        let fresh = || -> [(&str, Watch); 4] {
            [
                ("threshold, 1 in 1000", monitor(plain)),
                ("5 of 20, 1 in 1000", monitor(votes)),
                ("CUSUM, slack 0.5, alarm 5", Watch::Cusum(Cusum { mean: 3.0, std: 0.5, sum: 0.0 })),
                ("`dab monitor tune`, 1 an hour", monitor(tuned)),
            ]
        };
        let mut watches = fresh();
        let mut alarms = [0u64; 4];
        let mut stream = Ar1::new(2, keep);
        for _ in 0..ticks(hours * 3600.0) {
            let score = stream.next();
            for (count, (_, watch)) in alarms.iter_mut().zip(&mut watches) {
                *count += u64::from(watch.alarms(score));
            }
        }
        // A step by the way from the median to the rare score, twice that, and 90 % of it within ten minutes.
        let way = rare - median;
        let shifts = [(way, 0), (2.0 * way, 0), (0.9 * way, ticks(600.0))];
        let mut delays: [[Vec<usize>; 3]; 4] = Default::default();
        for (which, (shift, ramp)) in shifts.into_iter().enumerate() {
            for seed in 0..FAULTS {
                let mut stream = Ar1::new(100 + seed, keep);
                let mut watches = fresh();
                // Until all trust, and at no special place of a block.
                for _ in 0..2 * tuned.drift.block as usize + ticks(1.0) + 997 * seed as usize {
                    let score = stream.next();
                    watches.iter_mut().for_each(|(_, watch)| {
                        let _ = watch.alarms(score);
                    });
                }
                let limit = ramp + ticks(1800.0);
                let mut found = [None; 4];
                for after in 0..limit {
                    let share = if ramp == 0 { 1.0 } else { (after as f32 / ramp as f32).min(1.0) };
                    let score = stream.next() + shift * share;
                    for (found, (_, watch)) in found.iter_mut().zip(&mut watches) {
                        if watch.alarms(score) && found.is_none() {
                            *found = Some(after + 1);
                        }
                    }
                    if found.iter().all(Option::is_some) {
                        break;
                    }
                }
                for (delays, found) in delays.iter_mut().zip(found) {
                    delays[which].push(found.unwrap_or(limit));
                }
            }
        }
        for (i, (name, _)) in fresh().iter().enumerate() {
            let shown: Vec<String> = (0..3)
                .map(|which| {
                    let mut ticks = delays[i][which].clone();
                    ticks.sort_unstable();
                    time(ticks[ticks.len() / 2] as f64 * tick)
                })
                .collect();
            let rate = alarms[i] as f64 / hours;
            println!("| {keep} | {name} | {rate:.2} | {} |", shown.join(" | "));
        }
    }
}

/// Three digits are enough.
fn time(seconds: f64) -> String {
    match seconds {
        1800.0.. => "not in 30 min".into(),
        60.0.. => format!("{:.1} min", seconds / 60.0),
        1.0.. => format!("{seconds:.1} s"),
        _ => format!("{:.0} ms", seconds * 1e3),
    }
}
